//! Packets as values, for other formats than pcapng.

use std::collections::BTreeMap;

use etl_events::EventDecoder;
use etl_format::read::Record;

use super::packet::{self, DropPoint, Link, Place};
use super::reassembly::{Origin, Reassembly};
use super::{place_name, restore};

/// A packet at one place of capture.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Packet {
    /// The place where it was captured: the name of the interface in pcapng, without the name of a
    /// component.
    pub place: String,
    /// `ethernet`, `wifi` or `ip`.
    pub link: &'static str,
    /// Whether the machine sent it; `None` if the event does not say.
    pub is_sent: Option<bool>,
    /// Length on the network, in bytes.
    pub length: u32,
    /// Why and where it was dropped.
    pub dropped: Option<DropPoint>,
    /// The captured bytes.
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
    /// A reader at the beginning of a trace.
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
        let origin = Origin::new(interface, record);
        let bytes = self.parts.add(origin, part.fragment)?;
        let packet = restore(&part, bytes);
        let captured = packet.bytes.len() as u32;
        Some(Packet {
            place: place_name(&part.place),
            link: match part.place.link() {
                Link::Ethernet => "ethernet",
                Link::Wifi => "wifi",
                Link::Raw => "ip",
            },
            is_sent: part.is_sent,
            length: packet.length.max(captured),
            dropped: part.dropped,
            bytes: packet.bytes.into_owned(),
        })
    }
}
