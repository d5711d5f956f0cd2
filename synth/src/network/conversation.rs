//! The packets of a DNS query and of a TCP connection.

use std::net::IpAddr;
use std::sync::Arc;

use super::frame::{End, LARGEST_SEGMENT, Segment, flag, tcp, udp};
use crate::model::{ExchangePlan, Packet, PacketMedium, ResolvePlan};
use crate::rng::Rng;
use crate::time::{MICROSECOND, Nanos};

/// Time between two packets of the same end.
const BETWEEN: Nanos = 20 * MICROSECOND;
/// Seconds for which an address is valid.
const TIME_TO_LIVE: u32 = 300;
/// Types of DNS records: A and AAAA.
const RECORD_TYPES: (u16, u16) = (1, 28);
/// Windows that the ends announce, in bytes.
const WINDOWS: (u16, u16) = (64_240, 65_535);

/// Collects packets in the order of their times.
struct Packets {
    at: Nanos,
    list: Vec<Packet>,
    /// Number of the last IP packet of this machine.
    own_id: u16,
    /// Number of the last IP packet of the other end.
    other_id: u16,
}

impl Packets {
    fn new(rng: &mut Rng) -> Self {
        let own_id = rng.bits() as u16;
        let other_id = rng.bits() as u16;
        Packets {
            at: 0,
            list: Vec::new(),
            own_id,
            other_id,
        }
    }

    fn add(&mut self, sent: bool, make: impl FnOnce(u16) -> Vec<u8>) {
        let id = if sent {
            &mut self.own_id
        } else {
            &mut self.other_id
        };
        *id = id.wrapping_add(1);
        let bytes: Arc<[u8]> = make(*id).into();
        let length = u32::try_from(bytes.len()).unwrap_or(u32::MAX);
        let medium = PacketMedium::Ethernet;
        self.list.push(Packet {
            after: self.at,
            sent,
            medium,
            bytes,
            length,
        });
        self.at = self.at.saturating_add(BETWEEN);
    }

    fn wait(&mut self, time: Nanos) {
        self.at = self.at.saturating_add(time);
    }
}

/// The query of a name, and the response.
pub(super) fn resolve(plan: &ResolvePlan, own: &End, server: &End, rng: &mut Rng) -> Vec<Packet> {
    let mut packets = Packets::new(rng);
    let id = rng.bits() as u16;
    let v6 = plan.answers.first().is_some_and(IpAddr::is_ipv6);
    let kind = if v6 { RECORD_TYPES.1 } else { RECORD_TYPES.0 };
    let question = question(&plan.name, kind);
    // Recursion is desired.
    let query = [&header(id, 0x0100, 0)[..], &question].concat();
    packets.add(true, |number| udp(own, server, number, &query));
    packets.wait(plan.round_trip);
    // A response, recursion desired and available; 3: there is no such name.
    let flags = if plan.answers.is_empty() {
        0x8183
    } else {
        0x8180
    };
    let answers = u16::try_from(plan.answers.len()).unwrap_or(u16::MAX);
    let mut response = [&header(id, flags, answers)[..], &question].concat();
    for address in plan.answers.iter().take(answers.into()) {
        let octets = match address {
            IpAddr::V4(v4) => v4.octets().to_vec(),
            IpAddr::V6(v6) => v6.octets().to_vec(),
        };
        // The name in the question; class IN.
        response.extend([0xc0, 0x0c]);
        response.extend(kind.to_be_bytes());
        response.extend([0, 1]);
        response.extend(TIME_TO_LIVE.to_be_bytes());
        response.extend([0, octets.len() as u8]);
        response.extend(octets);
    }
    packets.add(false, |number| udp(server, own, number, &response));
    packets.list
}

/// The header of a DNS message with one question.
fn header(id: u16, flags: u16, answers: u16) -> Vec<u8> {
    [id, flags, 1, answers, 0, 0]
        .into_iter()
        .flat_map(u16::to_be_bytes)
        .collect()
}

fn question(name: &str, kind: u16) -> Vec<u8> {
    let mut out = Vec::with_capacity(name.len() + 6);
    for label in name.split('.').filter(|label| !label.is_empty()) {
        // The reader of scripts refuses longer ones.
        out.push(label.len().min(63) as u8);
        out.extend(label.bytes().take(63));
    }
    out.push(0);
    out.extend(kind.to_be_bytes());
    out.extend([0, 1]);
    out
}

/// A connection: handshake, request, response, end.
pub(super) fn exchange(plan: &ExchangePlan, own: &End, other: &End, rng: &mut Rng) -> Vec<Packet> {
    let mut connection = Connection {
        packets: Packets::new(rng),
        own: *own,
        other: *other,
        own_sequence: rng.bits() as u32,
        other_sequence: rng.bits() as u32,
    };
    let c = &mut connection;
    c.segment(true, flag::SYN, &[]);
    c.packets.wait(plan.round_trip);
    c.segment(false, flag::SYN | flag::ACK, &[]);
    c.segment(true, flag::ACK, &[]);
    c.data(true, plan.send, rng);
    c.packets.wait(plan.round_trip);
    if plan.send > 0 {
        c.segment(false, flag::ACK, &[]);
    }
    c.data(false, plan.receive, rng);
    c.segment(true, flag::FIN | flag::ACK, &[]);
    c.packets.wait(plan.round_trip);
    c.segment(false, flag::FIN | flag::ACK, &[]);
    c.segment(true, flag::ACK, &[]);
    connection.packets.list
}

/// The state of a connection.
struct Connection {
    packets: Packets,
    own: End,
    other: End,
    /// The next sequence number of this machine.
    own_sequence: u32,
    /// The next sequence number of the other end.
    other_sequence: u32,
}

impl Connection {
    fn segment(&mut self, sent: bool, flags: u8, data: &[u8]) {
        let (sequence, next, window) = if sent {
            (self.own_sequence, self.other_sequence, WINDOWS.0)
        } else {
            (self.other_sequence, self.own_sequence, WINDOWS.1)
        };
        let acknowledged = if flags & flag::ACK == 0 { 0 } else { next };
        let segment = Segment {
            flags,
            sequence,
            acknowledged,
            window,
        };
        let (from, to) = if sent {
            (&self.own, &self.other)
        } else {
            (&self.other, &self.own)
        };
        self.packets
            .add(sent, |id| tcp(from, to, id, &segment, data));
        // A SYN and a FIN count as a byte each.
        let counted = u32::try_from(data.len()).unwrap_or(0)
            + u32::from(flags & (flag::SYN | flag::FIN) != 0);
        let used = if sent {
            &mut self.own_sequence
        } else {
            &mut self.other_sequence
        };
        *used = used.wrapping_add(counted);
    }

    /// Bytes in segments; the other end acknowledges every second one, and the last one.
    fn data(&mut self, sent: bool, bytes: u32, rng: &mut Rng) {
        let mut left = bytes;
        let mut unacknowledged = 0;
        while left > 0 {
            let size = left.min(LARGEST_SEGMENT.into());
            left -= size;
            let mut data: Vec<u8> = Vec::with_capacity(size as usize + 8);
            while data.len() < size as usize {
                data.extend(rng.bits().to_le_bytes());
            }
            data.truncate(size as usize);
            let push = if left == 0 { flag::PSH } else { 0 };
            self.segment(sent, flag::ACK | push, &data);
            unacknowledged += 1;
            if !sent && (unacknowledged == 2 || left == 0) {
                self.segment(!sent, flag::ACK, &[]);
                unacknowledged = 0;
            }
        }
    }
}
