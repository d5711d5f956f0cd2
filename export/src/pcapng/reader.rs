//! Packets as values, for other formats than pcapng.

use etl_format::ThreadId;
use std::collections::BTreeMap;

use etl_events::EventDecoder;
use etl_format::read::Record;

use super::packet::{self, Link, Place};
use super::reassembly::Reassembly;
use super::{complete, place_name};

/// A packet at one place of capture.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Packet {
    /// Where it was captured: the name of the interface in pcapng, without the name of a component.
    pub place: String,
    /// `ethernet`, `wifi` or `ip`.
    pub link: &'static str,
    /// Whether the machine sent it; `None` where the event does not say.
    pub is_sent: Option<bool>,
    /// Bytes on the network.
    pub length: u32,
    /// Why and where in the driver's code it was dropped, as numbers.
    pub dropped: Option<(u64, u64)>,
    /// What was captured of it.
    pub bytes: Vec<u8>,
}

/// Reads packets at all places where they were captured; parts of packets become whole ones.
#[derive(Debug, Default)]
pub struct Packets {
    parts: Reassembly,
    /// A number for each place.
    places: BTreeMap<Place, u32>,
}

impl Packets {
    /// None so far.
    #[must_use]
    pub fn new() -> Self {
        Packets::default()
    }

    /// Learns the schemas that a record defines, and returns the packet that is whole with it.
    pub fn record(
        &mut self,
        decoder: &mut EventDecoder<'_>,
        record: &Record<'_>,
    ) -> Option<Packet> {
        decoder.learn(record);
        if !packet::may_have_packet(record) {
            return None;
        }
        let part = packet::part_of(&decoder.decode(record))?;
        let next = self.places.len() as u32;
        let interface = *self.places.entry(part.place.clone()).or_insert(next);
        let key = (
            interface,
            record.processor(),
            record.thread_id().map_or(0, ThreadId::get),
        );
        let link = part.place.link();
        let bytes = self.parts.add(key, part.bytes, part.begins, part.ends)?;
        let (bytes, length) = complete(&part, bytes);
        let captured = bytes.len() as u32;
        Some(Packet {
            place: place_name(&part.place),
            link: match link {
                Link::Ethernet => "ethernet",
                Link::Wifi => "wifi",
                Link::Raw => "ip",
            },
            is_sent: part.is_sent,
            length: length.max(captured),
            dropped: part.dropped,
            bytes: bytes.into_owned(),
        })
    }
}
