//! Packet captures of other tools: pcap and pcapng.

use std::sync::Arc;

use crate::model::{Packet, PacketMedium};
use crate::time::{Nanos, SECOND};

/// Packets of a file that are read.
const MAX_PACKETS: usize = 1_000_000;

/// Why a capture cannot be replayed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub(crate) enum CaptureError {
    #[error("neither pcap nor pcapng")]
    OtherFormat,
    #[error("it ends within a block or a packet")]
    Cut,
    #[error("link type {0} cannot be replayed: 1 (Ethernet), 101 (IP), 105 (802.11)")]
    LinkType(u16),
    #[error("a packet of an interface that is not described")]
    NoInterface,
    #[error("more than {MAX_PACKETS} packets")]
    TooMany,
}

/// A packet as a capture has it: its time in nanoseconds, and whether the machine sent it, where
/// the file states that.
struct Captured {
    at: u128,
    sent: Option<bool>,
    medium: PacketMedium,
    bytes: Arc<[u8]>,
    length: u32,
}

/// The packets of a capture, in the order of their times. The machine in the capture is the one
/// with the physical address `own`, or else the one that sent the first packet.
pub(crate) fn packets(bytes: &[u8], own: Option<[u8; 6]>) -> Result<Vec<Packet>, CaptureError> {
    let mut packets = match bytes.first_chunk::<4>() {
        Some([0x0a, 0x0d, 0x0d, 0x0a]) => pcapng(bytes)?,
        _ => pcap(bytes)?,
    };
    packets.sort_by_key(|packet| packet.at);
    let first = packets.first();
    let start = first.map_or(0, |packet| packet.at);
    let source = first
        .and_then(|packet| sender(packet.medium, &packet.bytes))
        .map(<[u8]>::to_vec);
    let made = packets.into_iter().map(|packet| {
        let from = sender(packet.medium, &packet.bytes);
        let is_own = match own {
            Some(own) if packet.medium != PacketMedium::Raw => from == Some(&own[..]),
            _ => from == source.as_deref(),
        };
        Packet {
            after: Nanos::try_from(packet.at - start).unwrap_or(Nanos::MAX),
            sent: packet.sent.unwrap_or(is_own),
            medium: packet.medium,
            bytes: packet.bytes,
            length: packet.length,
        }
    });
    Ok(made.collect())
}

/// The address from which a packet comes: a physical address, or the address in its IP header.
fn sender(medium: PacketMedium, bytes: &[u8]) -> Option<&[u8]> {
    match medium {
        PacketMedium::Ethernet => bytes.get(6..12),
        PacketMedium::Wifi => bytes.get(10..16),
        PacketMedium::Raw if bytes.first()? >> 4 == 6 => bytes.get(8..24),
        PacketMedium::Raw => bytes.get(12..16),
    }
}

fn medium(link_type: u16) -> Result<PacketMedium, CaptureError> {
    match link_type {
        1 => Ok(PacketMedium::Ethernet),
        101 | 228 | 229 => Ok(PacketMedium::Raw),
        105 => Ok(PacketMedium::Wifi),
        other => Err(CaptureError::LinkType(other)),
    }
}

/// Reads numbers in the byte order of a file.
#[derive(Clone, Copy)]
struct Numbers {
    big: bool,
}

impl Numbers {
    fn u16(self, bytes: &[u8], at: usize) -> Option<u16> {
        let bytes = *bytes.get(at..)?.first_chunk::<2>()?;
        Some(if self.big {
            u16::from_be_bytes(bytes)
        } else {
            u16::from_le_bytes(bytes)
        })
    }

    /// A number that the format demands.
    fn field(self, bytes: &[u8], offset: usize) -> Result<u32, CaptureError> {
        self.u32(bytes, offset).ok_or(CaptureError::Cut)
    }

    fn u32(self, bytes: &[u8], at: usize) -> Option<u32> {
        let bytes = *bytes.get(at..)?.first_chunk::<4>()?;
        Some(if self.big {
            u32::from_be_bytes(bytes)
        } else {
            u32::from_le_bytes(bytes)
        })
    }
}

/// The part of a file from a position, of a length that the file states.
fn part(bytes: &[u8], at: usize, length: u32) -> Result<&[u8], CaptureError> {
    let end = usize::try_from(length)
        .ok()
        .and_then(|length| at.checked_add(length));
    end.and_then(|end| bytes.get(at..end))
        .ok_or(CaptureError::Cut)
}

fn pcap(bytes: &[u8]) -> Result<Vec<Captured>, CaptureError> {
    let (big, unit) = match bytes.first_chunk::<4>() {
        Some([0xd4, 0xc3, 0xb2, 0xa1]) => (false, 1_000),
        Some([0xa1, 0xb2, 0xc3, 0xd4]) => (true, 1_000),
        Some([0x4d, 0x3c, 0xb2, 0xa1]) => (false, 1),
        Some([0xa1, 0xb2, 0x3c, 0x4d]) => (true, 1),
        _ => return Err(CaptureError::OtherFormat),
    };
    let numbers = Numbers { big };
    let link_type = numbers.field(bytes, 20)?;
    let medium = medium(link_type as u16)?;
    let mut at = 24;
    let mut out = Vec::new();
    while at < bytes.len() {
        let seconds = numbers.field(bytes, at)?;
        let fraction = numbers.field(bytes, at + 4)?;
        let captured = numbers.field(bytes, at + 8)?;
        let length = numbers.field(bytes, at + 12)?;
        let data = part(bytes, at + 16, captured)?;
        let time = u128::from(seconds) * u128::from(SECOND) + u128::from(fraction) * unit;
        out.push(Captured {
            at: time,
            sent: None,
            medium,
            bytes: data.into(),
            length,
        });
        if out.len() > MAX_PACKETS {
            return Err(CaptureError::TooMany);
        }
        at += 16 + data.len();
    }
    Ok(out)
}

/// An interface of a pcapng section.
struct Interface {
    link_type: u16,
    /// Units of its timestamps in a second.
    per_second: u128,
}

/// Kinds of pcapng blocks.
mod block {
    pub const SECTION: u32 = 0x0a0d_0d0a;
    pub const INTERFACE: u32 = 1;
    pub const SIMPLE_PACKET: u32 = 3;
    pub const PACKET: u32 = 6;
}

fn pcapng(bytes: &[u8]) -> Result<Vec<Captured>, CaptureError> {
    let mut at = 0;
    let mut out = Vec::new();
    let mut numbers = Numbers { big: false };
    let mut interfaces: Vec<Interface> = Vec::new();
    while at < bytes.len() {
        let kind = numbers.field(bytes, at)?;
        if kind == block::SECTION {
            numbers.big = bytes.get(at + 8..at + 12) == Some(&[0x1a, 0x2b, 0x3c, 0x4d]);
            interfaces.clear();
        }
        let total = numbers.u32(bytes, at + 4).filter(|total| *total >= 12);
        let whole = part(bytes, at, total.ok_or(CaptureError::Cut)?)?;
        let body = whole.get(8..whole.len() - 4).ok_or(CaptureError::Cut)?;
        match kind {
            block::INTERFACE => interfaces.push(interface(numbers, body)?),
            block::PACKET => out.push(packet(numbers, body, &interfaces)?),
            block::SIMPLE_PACKET => {
                let length = numbers.field(body, 0)?;
                let data = body.get(4..).unwrap_or_default();
                let data = data
                    .get(..(length as usize).min(data.len()))
                    .unwrap_or_default();
                let interface = interfaces.first().ok_or(CaptureError::NoInterface)?;
                let medium = medium(interface.link_type)?;
                let bytes = data.into();
                out.push(Captured {
                    at: 0,
                    sent: None,
                    medium,
                    bytes,
                    length,
                });
            }
            _ => {}
        }
        if out.len() > MAX_PACKETS {
            return Err(CaptureError::TooMany);
        }
        at += whole.len().next_multiple_of(4);
    }
    Ok(out)
}

/// The options of a block: code and value.
fn options(numbers: Numbers, bytes: &[u8]) -> impl Iterator<Item = (u16, &[u8])> {
    let mut at = 0usize;
    std::iter::from_fn(move || {
        let code = numbers.u16(bytes, at)?;
        let length = numbers.u16(bytes, at + 2)?;
        let value = bytes.get(at + 4..)?.get(..length.into())?;
        at += 4 + usize::from(length).next_multiple_of(4);
        (code != 0).then_some((code, value))
    })
}

fn interface(numbers: Numbers, body: &[u8]) -> Result<Interface, CaptureError> {
    let link_type = numbers.u16(body, 0).ok_or(CaptureError::Cut)?;
    let mut per_second = 1_000_000;
    for (code, value) in options(numbers, body.get(8..).unwrap_or_default()) {
        // if_tsresol: a power of ten, or of two with the highest bit.
        if let (9, [resolution]) = (code, value) {
            let power = u32::from(resolution & 0x7f);
            let base: u128 = if resolution & 0x80 == 0 { 10 } else { 2 };
            per_second = base.checked_pow(power).unwrap_or(1_000_000);
        }
    }
    Ok(Interface {
        link_type,
        per_second,
    })
}

fn packet(
    numbers: Numbers,
    body: &[u8],
    interfaces: &[Interface],
) -> Result<Captured, CaptureError> {
    let index = numbers.field(body, 0)?;
    let interface = interfaces
        .get(index as usize)
        .ok_or(CaptureError::NoInterface)?;
    let high = numbers.field(body, 4)?;
    let low = numbers.field(body, 8)?;
    let ticks = u128::from(high) << 32 | u128::from(low);
    let captured = numbers.field(body, 12)?;
    let length = numbers.field(body, 16)?;
    let data = part(body, 20, captured)?;
    let rest = body
        .get(20 + data.len().next_multiple_of(4)..)
        .unwrap_or_default();
    let flags = options(numbers, rest).find(|(code, _)| *code == 2);
    let flags = flags.and_then(|(_, value)| numbers.u32(value, 0));
    // The direction: 1 is inbound, 2 outbound.
    let sent = match flags.map(|flags| flags & 3) {
        Some(1) => Some(false),
        Some(2) => Some(true),
        _ => None,
    };
    let at = ticks * u128::from(SECOND) / interface.per_second;
    let medium = medium(interface.link_type)?;
    Ok(Captured {
        at,
        sent,
        medium,
        bytes: data.into(),
        length,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn words(big: bool, words: &[u32]) -> Vec<u8> {
        let bytes = |word: &u32| {
            if big {
                word.to_be_bytes()
            } else {
                word.to_le_bytes()
            }
        };
        words.iter().flat_map(bytes).collect()
    }

    /// A pcap file with two packets of four bytes, the second one cut.
    fn classic(big: bool, magic: u32, link_type: u32) -> Vec<u8> {
        let mut out = words(big, &[magic, 0, 0, 0, 0xffff, link_type]);
        out.extend(words(big, &[10, 999, 4, 4]));
        out.extend(b"\x45abc");
        out.extend(words(big, &[11, 1, 2, 4]));
        out.extend(b"\x45d");
        out
    }

    /// A pcapng file in nanoseconds with an inbound and an outbound packet of five bytes.
    fn next_generation(big: bool) -> Vec<u8> {
        let half = |n: u16| {
            if big {
                n.to_be_bytes()
            } else {
                n.to_le_bytes()
            }
        };
        let mut out = words(big, &[0x0a0d_0d0a, 28, 0x1a2b_3c4d, 1, !0, !0, 28]);
        out.extend(words(big, &[1, 32]));
        out.extend([half(1), half(0)].concat());
        out.extend(words(big, &[0]));
        out.extend([half(9), half(1)].concat());
        out.extend([9, 0, 0, 0]);
        out.extend(words(big, &[0, 32]));
        for (time, direction) in [(5, 1), (1005, 2)] {
            out.extend(words(big, &[6, 52, 0, 0, time, 5, 9]));
            out.extend(b"hello\0\0\0");
            out.extend([half(2), half(4)].concat());
            out.extend(words(big, &[direction, 0, 52]));
        }
        out
    }

    #[test]
    fn packets_reads_both_byte_orders_and_units() {
        for big in [false, true] {
            for (magic, unit) in [(0xa1b2_c3d4, 1_000), (0xa1b2_3c4d, 1)] {
                let found = packets(&classic(big, magic, 101), None).unwrap();
                assert_eq!(found[1].after, SECOND - 998 * unit);
                assert_eq!((&*found[1].bytes, found[1].length), (&b"\x45d"[..], 4));
                assert_eq!(found[0].medium, PacketMedium::Raw);
            }
            let found = packets(&next_generation(big), None).unwrap();
            let seen: Vec<_> = found.iter().map(|p| (p.after, p.sent, p.length)).collect();
            assert_eq!(seen, [(0, false, 9), (1000, true, 9)]);
            assert_eq!(&*found[0].bytes, b"hello");
        }
    }

    #[test]
    fn packets_names_what_is_wrong_and_never_panics() {
        assert_eq!(packets(b"", None), Err(CaptureError::OtherFormat));
        assert_eq!(
            packets(b"PK\x03\x04....", None),
            Err(CaptureError::OtherFormat)
        );
        let wrong = classic(false, 0xa1b2_c3d4, 147);
        assert_eq!(packets(&wrong, None), Err(CaptureError::LinkType(147)));
        for file in [classic(false, 0xa1b2_c3d4, 1), next_generation(false)] {
            for end in 5..file.len() {
                let cut = packets(&file[..end], None);
                assert!(cut.as_ref().is_ok_and(|p| p.len() < 2) || cut == Err(CaptureError::Cut));
            }
            for at in 0..file.len() {
                let mut flipped = file.clone();
                flipped[at] ^= 0xff;
                let _ = packets(&flipped, None);
            }
        }
        let mut no_interface = next_generation(false);
        no_interface.drain(28..60);
        assert_eq!(packets(&no_interface, None), Err(CaptureError::NoInterface));
    }
}
