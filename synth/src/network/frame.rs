//! Frames: Ethernet, IPv4 and IPv6, UDP and TCP, with their checksums.

use std::net::IpAddr;

/// A physical address.
pub(super) type Mac = [u8; 6];

const ETHERTYPE_IPV4: u16 = 0x0800;
const ETHERTYPE_IPV6: u16 = 0x86dd;
const TCP: u8 = 6;
const UDP: u8 = 17;

/// Flags of TCP segments.
pub(super) mod flag {
    pub const FIN: u8 = 0x01;
    pub const SYN: u8 = 0x02;
    pub const PSH: u8 = 0x08;
    pub const ACK: u8 = 0x10;
}

/// One end of a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct End {
    pub mac: Mac,
    pub ip: IpAddr,
    pub port: u16,
    /// Hops that its packets may still take.
    pub hops: u8,
}

/// The fields of a TCP segment.
#[derive(Clone, Copy, Debug)]
pub(super) struct Segment {
    pub flags: u8,
    pub sequence: u32,
    pub acknowledged: u32,
    pub window: u16,
}

/// The largest segment, as both ends announce it.
pub(super) const LARGEST_SEGMENT: u16 = 1460;

/// A frame with a TCP segment.
pub(super) fn tcp(from: &End, to: &End, id: u16, segment: &Segment, data: &[u8]) -> Vec<u8> {
    let largest = LARGEST_SEGMENT.to_be_bytes();
    // Largest segment, no operation, window scale 8, two times no operation, SACK permitted.
    let options = [2, 4, largest[0], largest[1], 1, 3, 3, 8, 1, 1, 4, 2];
    let options: &[u8] = if segment.flags & flag::SYN != 0 {
        &options
    } else {
        &[]
    };
    let words = 5 + options.len() / 4;
    let mut out = Vec::with_capacity(words * 4 + data.len());
    out.extend(from.port.to_be_bytes());
    out.extend(to.port.to_be_bytes());
    out.extend(segment.sequence.to_be_bytes());
    out.extend(segment.acknowledged.to_be_bytes());
    out.extend([(words << 4) as u8, segment.flags]);
    out.extend(segment.window.to_be_bytes());
    // Checksum, urgent pointer.
    out.extend([0; 4]);
    out.extend_from_slice(options);
    out.extend_from_slice(data);
    set_checksum(&mut out, 16, from, to, TCP);
    frame(from, to, id, TCP, &out)
}

/// A frame with a UDP datagram.
pub(super) fn udp(from: &End, to: &End, id: u16, data: &[u8]) -> Vec<u8> {
    let mut out = Vec::with_capacity(8 + data.len());
    out.extend(from.port.to_be_bytes());
    out.extend(to.port.to_be_bytes());
    out.extend(length(8 + data.len()));
    out.extend([0; 2]);
    out.extend_from_slice(data);
    set_checksum(&mut out, 6, from, to, UDP);
    // A sum of zero is sent as its other form: zero means that there is none.
    if let Some(sum @ &mut [0, 0]) = out
        .get_mut(6..8)
        .and_then(|s| <&mut [u8; 2]>::try_from(s).ok())
    {
        *sum = [0xff; 2];
    }
    frame(from, to, id, UDP, &out)
}

fn length(bytes: usize) -> [u8; 2] {
    u16::try_from(bytes).unwrap_or(u16::MAX).to_be_bytes()
}

/// Writes the checksum of a segment or datagram at its position.
fn set_checksum(out: &mut [u8], at: usize, from: &End, to: &End, protocol: u8) {
    let mut pseudo = Vec::with_capacity(40);
    match (from.ip, to.ip) {
        (IpAddr::V4(from), IpAddr::V4(to)) => {
            pseudo.extend(from.octets());
            pseudo.extend(to.octets());
        }
        (from, to) => {
            pseudo.extend(ipv6(from));
            pseudo.extend(ipv6(to));
        }
    }
    pseudo.extend([0, protocol]);
    pseudo.extend(length(out.len()));
    let sum = checksum(&[&pseudo, out]);
    if let Some(place) = out.get_mut(at..at + 2) {
        place.copy_from_slice(&sum.to_be_bytes());
    }
}

fn ipv6(address: IpAddr) -> [u8; 16] {
    match address {
        IpAddr::V4(v4) => v4.to_ipv6_mapped().octets(),
        IpAddr::V6(v6) => v6.octets(),
    }
}

/// The checksum of the Internet protocols, of parts with an even length but for the last one.
fn checksum(parts: &[&[u8]]) -> u16 {
    let words = parts.iter().flat_map(|part| part.chunks(2));
    let mut sum: u64 = words
        .map(|word| match word {
            [high, low] => u64::from(u16::from_be_bytes([*high, *low])),
            [high] => u64::from(*high) << 8,
            _ => 0,
        })
        .sum();
    while sum > 0xffff {
        sum = (sum & 0xffff) + (sum >> 16);
    }
    !(sum as u16)
}

/// The frame of an IP packet.
fn frame(from: &End, to: &End, id: u16, protocol: u8, payload: &[u8]) -> Vec<u8> {
    let mut out = Vec::with_capacity(54 + payload.len());
    out.extend(to.mac);
    out.extend(from.mac);
    match (from.ip, to.ip) {
        (IpAddr::V4(source), IpAddr::V4(target)) => {
            out.extend(ETHERTYPE_IPV4.to_be_bytes());
            let [high, low] = length(20 + payload.len());
            let [id_high, id_low] = id.to_be_bytes();
            // Version and words of the header; no fragments.
            let mut header = vec![
                0x45, 0, high, low, id_high, id_low, 0x40, 0, from.hops, protocol, 0, 0,
            ];
            header.extend(source.octets());
            header.extend(target.octets());
            let sum = checksum(&[&header]).to_be_bytes();
            if let Some(place) = header.get_mut(10..12) {
                place.copy_from_slice(&sum);
            }
            out.extend(header);
        }
        (source, target) => {
            out.extend(ETHERTYPE_IPV6.to_be_bytes());
            out.extend([0x60, 0, 0, 0]);
            out.extend(length(payload.len()));
            out.extend([protocol, from.hops]);
            out.extend(ipv6(source));
            out.extend(ipv6(target));
        }
    }
    out.extend_from_slice(payload);
    out
}

#[cfg(test)]
mod tests {
    use super::checksum;

    /// The example of RFC 1071, section 3, and a header with its known sum.
    #[test]
    fn checksum_is_that_of_the_standard() {
        assert_eq!(
            checksum(&[&[0x00, 0x01, 0xf2, 0x03, 0xf4, 0xf5, 0xf6, 0xf7]]),
            !0xddf2
        );
        let header = [
            0x45, 0, 0, 0x73, 0, 0, 0x40, 0, 0x40, 0x11, 0, 0, 0xc0, 0xa8, 0, 1, 0xc0, 0xa8, 0,
            0xc7,
        ];
        assert_eq!(checksum(&[&header]), 0xb861);
        assert_eq!(checksum(&[&[1, 2], &[3]]), !0x0402);
    }
}
