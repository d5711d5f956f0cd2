//! Packets of virtual switches (event 1003): where a packet is in the payload, and its VLAN tag.
//!
//! No table describes the destinations before the packet. What follows them ends with the payload:
//! so the packet is where its length, and that of the data after it, lead to the end.

use etl_format::constants::PointerSize;
use etl_format::cursor::{Bytes, utf16_nul};

/// Offsets in the payload: numbers of the card, the layer and the port, and the texts after them.
const CARD: usize = 0;
const LAYER: usize = 4;
const PORT: usize = 8;
const FIRST_TEXT: usize = 12;

/// Texts before the number of destinations: names of the port and its card, and the card's type.
const TEXTS: usize = 3;

/// Index of the VLAN tag in the data about a packet (`NDIS_NET_BUFFER_LIST_INFO`).
const VLAN: usize = 4;

/// Bytes of an Ethernet header.
const HEADER: usize = 14;

/// What a payload has.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct SwitchPacket<'a> {
    pub card: u32,
    pub layer: u32,
    pub port: u32,
    /// Names of the port and its card, UTF-16.
    pub names: [&'a [u8]; 2],
    pub bytes: &'a [u8],
    /// The tag that the packet had on the network, as it stands in a frame.
    pub vlan: Option<u16>,
}

impl<'a> SwitchPacket<'a> {
    pub fn of(payload: &'a [u8], pointers: PointerSize) -> Option<Self> {
        let card = payload.u32_at(CARD)?;
        let layer = payload.u32_at(LAYER)?;
        let port = payload.u32_at(PORT)?;
        let mut texts: [&[u8]; TEXTS] = [&[]; TEXTS];
        let mut at = FIRST_TEXT;
        for text in &mut texts {
            let rest = payload.get(at..)?;
            let len = utf16_nul(rest)?;
            *text = rest.get(..len)?;
            at += len + 2;
        }
        // Of each destination there are at least a number and three ends of texts.
        let destinations = usize::try_from(payload.u32_at(at)?).ok()?;
        let first = (at + 4).checked_add(destinations.checked_mul(4 + 2 * TEXTS)?)?;
        let mut all = (first..payload.len()).filter_map(|at| Some((at, parts(payload, at)?)));
        // After destinations there is always data.
        let (_, (bytes, data)) = all.find(|(at, (_, data))| *at == first || !data.is_empty())?;
        let [port_name, card_name, _] = texts;
        let vlan = tag(data, pointers);
        Some(SwitchPacket {
            card,
            layer,
            port,
            names: [port_name, card_name],
            bytes,
            vlan,
        })
    }
}

/// The packet whose length is at an offset and the data after it, if they end with the payload.
fn parts(payload: &[u8], at: usize) -> Option<(&[u8], &[u8])> {
    let (bytes, rest) = sized(payload.get(at..)?)?;
    let (data, rest) = sized(rest)?;
    (rest.is_empty() && bytes.len() >= HEADER).then_some((bytes, data))
}

/// Bytes after their length, and the rest.
fn sized(bytes: &[u8]) -> Option<(&[u8], &[u8])> {
    let len = usize::try_from(bytes.u32_at(0)?).ok()?;
    bytes.get(4..)?.split_at_checked(len)
}

/// The tag in the data about a packet: from the lowest bit on priority (3), format (1), VLAN (12).
fn tag(data: &[u8], pointers: PointerSize) -> Option<u16> {
    let value = data.u16_at(VLAN * pointers.bytes())?;
    let (priority, format, vlan) = (value & 7, value >> 3 & 1, value >> 4);
    Some(priority << 13 | format << 12 | vlan).filter(|&tag| tag != 0)
}

/// Puts a tag back into an Ethernet frame, after the addresses.
pub(super) fn tagged(frame: &[u8], tag: u16) -> Option<Vec<u8>> {
    const ADDRESSES: usize = HEADER - 2;
    const TYPE: [u8; 2] = [0x81, 0x00];
    let (addresses, rest) = frame.split_at_checked(ADDRESSES)?;
    Some([addresses, &TYPE, &tag.to_be_bytes(), rest].concat())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A payload with this many destinations.
    fn payload(destinations: u32, frame: &[u8], data: &[u8]) -> Vec<u8> {
        let text = |text: &str| -> Vec<u8> {
            text.encode_utf16()
                .chain([0])
                .flat_map(u16::to_le_bytes)
                .collect()
        };
        let number = |number: u32| number.to_le_bytes().to_vec();
        let mut parts = vec![
            number(5),
            number(6),
            number(7),
            text("port"),
            text("card"),
            text("t"),
        ];
        parts.push(number(destinations));
        for at in 0..destinations {
            parts.extend([
                number(at),
                text("to"),
                text("other card"),
                text("synthetic"),
            ]);
        }
        let len = |bytes: &[u8]| number(bytes.len() as u32);
        parts.extend([len(frame), frame.to_vec(), len(data), data.to_vec()]);
        parts.concat()
    }

    #[test]
    fn packet_is_found_after_any_destinations() {
        let frame: Vec<u8> = (0..60).collect();
        for (width, pointers) in [(8, PointerSize::P8), (4, PointerSize::P4)] {
            let mut data = vec![0; 20 * width];
            data[VLAN * width..][..4].copy_from_slice(&(42u32 << 4 | 5).to_le_bytes());
            for destinations in [0, 1, 3] {
                let payload = payload(destinations, &frame, &data);
                let found = SwitchPacket::of(&payload, pointers).unwrap();
                assert_eq!((found.card, found.layer, found.port), (5, 6, 7));
                assert_eq!((found.bytes, found.vlan), (&frame[..], Some(5 << 13 | 42)));
                assert_eq!(found.names[1], b"c\0a\0r\0d\0");
                assert_eq!(
                    SwitchPacket::of(&payload[..payload.len() - 1], pointers),
                    None
                );
            }
        }
        let untagged = payload(0, &frame, &[]);
        assert_eq!(
            SwitchPacket::of(&untagged, PointerSize::P8).unwrap().vlan,
            None
        );
    }

    #[test]
    fn tag_stands_after_the_addresses() {
        let frame: Vec<u8> = (0..20).collect();
        let tagged = tagged(&frame, 0x202a).unwrap();
        assert_eq!(tagged[..12], frame[..12]);
        assert_eq!(tagged[12..16], [0x81, 0, 0x20, 0x2a]);
        assert_eq!(tagged[16..], frame[12..]);
        assert_eq!(super::tagged(&frame[..11], 1), None);
    }
}
