//! Packets of virtual switches (event 1003): finds a packet in the payload, and its VLAN tag.
//!
//! The payload contains destinations, the packet and data about it, and no table describes the
//! destinations. The packet is found by its length and the length of the data, which together lead
//! to the end of the payload.

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

/// The contents of a payload.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct SwitchPacket<'a> {
    pub card: u32,
    pub layer: u32,
    pub port: u32,
    /// UTF-16.
    pub port_name: &'a [u8],
    /// UTF-16.
    pub card_name: &'a [u8],
    pub bytes: &'a [u8],
    /// The tag that the packet had on the network, as a frame has it.
    pub vlan: Option<u16>,
}

impl<'a> SwitchPacket<'a> {
    pub fn of(payload: &'a [u8], pointers: PointerSize) -> Option<Self> {
        let card = payload.u32_at(CARD)?;
        let layer = payload.u32_at(LAYER)?;
        let port = payload.u32_at(PORT)?;
        let mut texts: [&[u8]; TEXTS] = [&[]; TEXTS];
        let mut offset = FIRST_TEXT;
        for text in &mut texts {
            let rest = payload.get(offset..)?;
            let len = utf16_nul(rest)?;
            *text = rest.get(..len)?;
            offset += len + 2;
        }
        let destinations = usize::try_from(payload.u32_at(offset)?).ok()?;
        offset += 4;
        // Each destination has at least a number and three ends of texts.
        let min_len = destinations.checked_mul(4 + 2 * TEXTS)?;
        let frame = find_frame(payload, offset.checked_add(min_len)?)?;
        let [port_name, card_name, _] = texts;
        Some(SwitchPacket {
            card,
            layer,
            port,
            port_name,
            card_name,
            bytes: frame.bytes,
            vlan: tag(frame.data, pointers),
        })
    }
}

/// A packet and the data about it.
struct Frame<'a> {
    bytes: &'a [u8],
    data: &'a [u8],
}

/// Finds the packet from an offset on.
fn find_frame(payload: &[u8], min_offset: usize) -> Option<Frame<'_>> {
    for offset in min_offset..payload.len() {
        // After destinations there is always data.
        if let Some(frame) = frame_at(payload, offset)
            && (offset == min_offset || !frame.data.is_empty())
        {
            return Some(frame);
        }
    }
    None
}

/// The packet whose length is at an offset, if the data after it end with the payload.
fn frame_at(payload: &[u8], offset: usize) -> Option<Frame<'_>> {
    let mut rest = payload.get(offset..)?;
    let bytes = take_sized(&mut rest)?;
    let data = take_sized(&mut rest)?;
    if rest.is_empty() && bytes.len() >= HEADER {
        Some(Frame { bytes, data })
    } else {
        None
    }
}

/// Takes bytes after their length from the front of a slice.
fn take_sized<'a>(bytes: &mut &'a [u8]) -> Option<&'a [u8]> {
    let len = usize::try_from(bytes.u32_at(0)?).ok()?;
    let (taken, rest) = bytes.get(4..)?.split_at_checked(len)?;
    *bytes = rest;
    Some(taken)
}

/// The tag in the data about a packet: from the lowest bit on priority (3), format (1), VLAN (12).
fn tag(data: &[u8], pointers: PointerSize) -> Option<u16> {
    let value = data.u16_at(VLAN * pointers.bytes())?;
    let priority = value & 7;
    let format = value >> 3 & 1;
    let vlan = value >> 4;
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
                assert_eq!(found.card_name, b"c\0a\0r\0d\0");
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
    fn tag_follows_the_addresses() {
        let frame: Vec<u8> = (0..20).collect();
        let tagged = tagged(&frame, 0x202a).unwrap();
        assert_eq!(tagged[..12], frame[..12]);
        assert_eq!(tagged[12..16], [0x81, 0, 0x20, 0x2a]);
        assert_eq!(tagged[16..], frame[12..]);
        assert_eq!(super::tagged(&frame[..11], 1), None);
    }
}
