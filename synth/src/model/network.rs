//! Packets on the network of the machine.

use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;

use crate::time::{MILLISECOND, Nanos};

/// What the bytes of a packet begin with.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum PacketMedium {
    /// An Ethernet header.
    #[default]
    Ethernet,
    /// An 802.11 header.
    Wifi,
    /// An IP header, as on mobile broadband.
    Raw,
}

/// A packet that the machine sends or receives.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Packet {
    /// When, after the first one.
    pub after: Nanos,
    /// Whether the machine sends it.
    pub sent: bool,
    /// What its bytes begin with.
    pub medium: PacketMedium,
    /// Its bytes, or as many of them as are known.
    pub bytes: Arc<[u8]>,
    /// Its length on the network.
    pub length: u32,
}

/// A name that is resolved by DNS over UDP.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ResolvePlan {
    /// The name.
    pub name: String,
    /// Its addresses, all IPv4 or all IPv6. Without any the name does not exist.
    pub answers: Vec<IpAddr>,
    /// The time from the query to the response.
    pub round_trip: Nanos,
}

/// A TCP connection that the machine opens: handshake, a request, a response, and its end.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ExchangePlan {
    /// The other end.
    pub to: SocketAddr,
    /// Bytes of the request.
    pub send: u32,
    /// Bytes of the response.
    pub receive: u32,
    /// The time from a packet to the answer of the other end.
    pub round_trip: Nanos,
}

impl ExchangePlan {
    /// A connection with a request of 200 bytes and a response of 2000.
    #[must_use]
    pub fn new(to: SocketAddr) -> Self {
        ExchangePlan {
            to,
            send: 200,
            receive: 2000,
            round_trip: 20 * MILLISECOND,
        }
    }
}
