//! Whether the bytes of a packet are an Ethernet or an 802.11 frame.
//!
//! The packet monitor labels packets by the kind of the card: at the upper edge of a capture driver
//! (npcap) on a Wi-Fi card, frames that are labelled Wi-Fi are Ethernet. So the bytes decide.

use etl_format::cursor::Bytes;

/// The kind of a frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Framing {
    Ethernet,
    Wifi,
    /// The bytes fit neither, or are too few.
    Unclear,
}

impl Framing {
    /// The kind of a frame by its bytes.
    pub fn of(frame: &[u8]) -> Self {
        // The test for Ethernet compares more bytes.
        if is_ethernet(frame) {
            Framing::Ethernet
        } else if is_wifi_data(frame) {
            Framing::Wifi
        } else {
            Framing::Unclear
        }
    }
}

/// Bytes of an Ethernet header, and the offset of the type in it.
const ETHERNET_HEADER: usize = 14;
const ETHERNET_TYPE: usize = 12;
/// Bytes of a VLAN tag.
const VLAN_TAG: usize = 4;

/// Whether a frame has a type of Ethernet and the header of that protocol.
fn is_ethernet(frame: &[u8]) -> bool {
    let mut kind = u16_be(frame, ETHERNET_TYPE);
    let mut header_len = ETHERNET_HEADER;
    if kind == Some(0x8100) {
        kind = u16_be(frame, ETHERNET_TYPE + VLAN_TAG);
        header_len += VLAN_TAG;
    }
    let Some(packet) = frame.get(header_len..) else {
        return false;
    };
    match kind {
        Some(0x0800) => is_ipv4(packet),
        Some(0x86dd) => is_ipv6(packet),
        // ARP over Ethernet for IPv4.
        Some(0x0806) => packet.starts_with(&[0, 1, 8, 0, 6, 4]),
        // EAP over LAN, versions 1 to 3.
        Some(0x888e) => matches!(packet, [1..=3, 0..=8, ..]),
        _ => false,
    }
}

fn is_ipv4(packet: &[u8]) -> bool {
    let Some(first) = packet.first() else {
        return false;
    };
    let header_len = u16::from(first & 0xf) * 4;
    // A packet that the card splits later may state the length 0.
    let has_length = u16_be(packet, 2).is_some_and(|len| len == 0 || len >= header_len);
    first >> 4 == 4 && header_len >= 20 && has_length
}

fn is_ipv6(packet: &[u8]) -> bool {
    const HEADER: usize = 40;
    packet.len() >= HEADER && packet.first().is_some_and(|first| first >> 4 == 6)
}

/// Whether a frame is a data frame of 802.11 whose payload begins with an LLC header, as decrypted
/// ones do.
fn is_wifi_data(frame: &[u8]) -> bool {
    const LLC: [u8; 3] = [0xaa, 0xaa, 0x03];
    let Some(header_len) = wifi_header_len(frame) else {
        return false;
    };
    frame
        .get(header_len..)
        .is_some_and(|payload| payload.starts_with(&LLC))
}

/// The bytes of the header of an 802.11 data frame; `None` for other frames.
fn wifi_header_len(frame: &[u8]) -> Option<usize> {
    const DATA: u8 = 2;
    const QOS: u8 = 8;
    const BOTH_SYSTEMS: u8 = 3;
    const ORDER: u8 = 0x80;
    let [control, flags] = frame.array(0)?;
    let version = control & 3;
    let kind = control >> 2 & 3;
    let has_qos = control >> 4 & QOS != 0;
    if version != 0 || kind != DATA {
        return None;
    }
    let mut len = 24;
    if flags & BOTH_SYSTEMS == BOTH_SYSTEMS {
        len += 6;
    }
    if has_qos {
        len += 2;
        if flags & ORDER != 0 {
            len += 4;
        }
    }
    Some(len)
}

/// A number in network byte order.
pub(super) fn u16_be(packet: &[u8], offset: usize) -> Option<u16> {
    packet.array(offset).map(u16::from_be_bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ethernet(destination: u8, kind: u16, packet: &[u8]) -> Vec<u8> {
        let addresses = [destination, 0x42, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10];
        [&addresses[..], &kind.to_be_bytes(), packet].concat()
    }

    fn wifi(control: u8, flags: u8, header_len: usize, payload: &[u8]) -> Vec<u8> {
        let mut frame = vec![0x11; header_len];
        frame[0] = control;
        frame[1] = flags;
        frame.extend(payload);
        frame
    }

    #[test]
    fn ethernet_is_known_by_type_and_packet() {
        let ipv4 = [&[0x45, 0, 0, 40][..], &[0; 36]].concat();
        let ipv6 = [&[0x60, 0, 0, 0][..], &[0; 40]].concat();
        let tagged = [&[0, 5, 8, 0][..], &ipv4].concat();
        // The first byte of the address may be a valid frame control of 802.11 data.
        for destination in [0x00, 0x08, 0x88] {
            for (kind, packet) in [
                (0x0800, &ipv4[..]),
                (0x86dd, &ipv6),
                (0x8100, &tagged),
                (0x0806, &[0, 1, 8, 0, 6, 4, 0, 1]),
                (0x888e, &[2, 3, 0, 95]),
            ] {
                let frame = ethernet(destination, kind, packet);
                assert_eq!(Framing::of(&frame), Framing::Ethernet, "{kind:#x}");
            }
        }
        assert_eq!(
            Framing::of(&ethernet(8, 0x0800, &[0x65; 40])),
            Framing::Unclear
        );
        assert_eq!(Framing::of(&ethernet(8, 0x1234, &ipv4)), Framing::Unclear);
        assert_eq!(Framing::of(&[]), Framing::Unclear);
    }

    #[test]
    fn data_frames_of_wifi_are_known_by_their_llc_header() {
        let llc = [0xaa, 0xaa, 3, 0, 0, 0, 8, 0, 0x45];
        for (control, flags, header_len) in [
            (0x08, 0x42, 24),
            (0x88, 0x41, 26),
            (0x88, 0xc1, 30),
            (0x08, 0x43, 30),
            (0x88, 0x03, 32),
        ] {
            let frame = wifi(control, flags, header_len, &llc);
            assert_eq!(
                Framing::of(&frame),
                Framing::Wifi,
                "{control:#x} {flags:#x}"
            );
        }
        // A beacon, and a frame whose payload is encrypted.
        assert_eq!(Framing::of(&wifi(0x80, 0, 24, &llc)), Framing::Unclear);
        assert_eq!(
            Framing::of(&wifi(0x08, 0x42, 24, &[0x77; 20])),
            Framing::Unclear
        );
    }
}
