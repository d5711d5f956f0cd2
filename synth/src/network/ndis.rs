//! Microsoft-Windows-NDIS-PacketCapture: the filter driver of `netsh trace start capture=yes`.

use etl_schema::encode::OwnedValue;
use etl_schema::providers::NDIS_PACKET_CAPTURE;

use super::BETWEEN_LAYERS;
use super::card::FIRST_INDEX;
use super::schemas::Driver;
use crate::error::Result;
use crate::etw::{Etw, Origin};
use crate::model::{MachinePlan, Packet, PacketMedium};

/// Ids: a packet or a part of it, and how a Wi-Fi packet was received.
const FRAGMENT: u16 = 1001;
const METADATA: u16 = 1002;

/// Keywords of packets.
mod keyword {
    pub const ETHERNET: u64 = 0x1;
    pub const MOBILE_BROADBAND: u64 = 0x200;
    pub const WIFI: u64 = 0x1_0000;
    pub const PACKET_START: u64 = 0x4000_0000;
    pub const PACKET_END: u64 = 0x8000_0000;
    pub const SEND: u64 = 0x1_0000_0000;
    pub const RECEIVE: u64 = 0x2_0000_0000;
}

/// Windows 8.1: from here on, a packet is one event.
const FIRST_WITH_WHOLE_PACKETS: u32 = 9600;
/// Bytes of the first part of a packet in older versions, and of each other part: network drivers
/// keep the headers and the data in memory of their own.
const FIRST_PART: usize = 54;
const PART: usize = 1024;

/// The driver.
#[derive(Debug)]
pub(super) struct Ndis {
    driver: Driver,
    in_parts: bool,
}

impl Ndis {
    pub fn new(machine: &MachinePlan) -> Self {
        let build = machine.os.build;
        Ndis {
            driver: Driver::new(NDIS_PACKET_CAPTURE, &[FRAGMENT, METADATA], build),
            in_parts: build < FIRST_WITH_WHOLE_PACKETS,
        }
    }

    /// Logs a packet, with the time of its last event in `origin`.
    pub fn log(&self, etw: &mut Etw<'_>, packet: &Packet, origin: &mut Origin) -> Result<()> {
        let medium = match packet.medium {
            PacketMedium::Ethernet => keyword::ETHERNET,
            PacketMedium::Wifi => keyword::WIFI,
            PacketMedium::Raw => keyword::MOBILE_BROADBAND,
        };
        let common = medium
            | if packet.sent {
                keyword::SEND
            } else {
                keyword::RECEIVE
            };
        if packet.medium == PacketMedium::Wifi && !packet.sent {
            let values = of_card("Metadata", OwnedValue::Binary(wifi_reception()));
            self.driver.log(etw, origin, METADATA, common, &values)?;
            origin.at += BETWEEN_LAYERS;
        }
        let (first, rest) = match packet.bytes.split_at_checked(FIRST_PART) {
            Some(parts) if self.in_parts => parts,
            _ => (&*packet.bytes, &[][..]),
        };
        let parts: Vec<&[u8]> = std::iter::once(first).chain(rest.chunks(PART)).collect();
        for (number, part) in (1..).zip(&parts) {
            let start = if number == 1 {
                keyword::PACKET_START
            } else {
                0
            };
            let end = if number == parts.len() {
                keyword::PACKET_END
            } else {
                0
            };
            let values = of_card("Fragment", OwnedValue::Binary(part.to_vec()));
            self.driver
                .log(etw, origin, FRAGMENT, common | start | end, &values)?;
            origin.at += BETWEEN_LAYERS;
        }
        Ok(())
    }
}

/// `DOT11_EXTSTA_RECV_CONTEXT`: how a Wi-Fi packet was received. A capture file does not say: one
/// part, on channel 1, well received, with 54 Mbit/s.
fn wifi_reception() -> Vec<u8> {
    const SIZE: u16 = 48;
    const CENTER_MHZ: u32 = 2412;
    const PARTS: u16 = 1;
    const SIGNAL_DBM: i32 = -50;
    const HALF_MBITS: u8 = 108;
    // An object header: type, revision, size.
    let mut out = vec![0x80, 1];
    out.extend(SIZE.to_le_bytes());
    // Flags, number of the physical layer.
    out.extend([0; 8]);
    out.extend(CENTER_MHZ.to_le_bytes());
    out.extend(PARTS.to_le_bytes());
    out.extend([0; 2]);
    out.extend(SIGNAL_DBM.to_le_bytes());
    out.push(HALF_MBITS);
    out.resize(SIZE.into(), 0);
    out
}

/// The fields that name the card, and another field.
fn of_card(name: &'static str, value: OwnedValue) -> [(&'static str, OwnedValue); 3] {
    let index = OwnedValue::UInt(FIRST_INDEX.into());
    [
        ("MiniportIfIndex", index.clone()),
        ("LowerIfIndex", index),
        (name, value),
    ]
}
