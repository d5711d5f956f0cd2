//! Bytes and connections of TCP and UDP, by process and endpoint.
//!
//! Needs the kernel's flag `NETWORKTRACE`.
//!
//! ```no_run
//! use etl_analysis::behavior::network::Network;
//! use etl_analysis::{Analysis, Recording};
//!
//! let bytes = std::fs::read("trace.etl")?;
//! let mut recording = Recording::open([(bytes.as_slice(), "trace.etl")])?;
//! let mut network = Network::new();
//! let machine = Analysis::new().run(&mut recording, &mut network)?;
//! for (connection, traffic) in network.connections() {
//!     println!("{} to {}: {} bytes sent", connection.pid, connection.remote, traffic.sent);
//! }
//! # drop(machine);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

use etl_format::{ProcessId, Ticks};
use std::collections::BTreeMap;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};

use etl_format::constants::hook;
use etl_format::read::Record;
use etl_schema::views::{FieldReader, FieldValues};

use crate::machine::Machine;
use crate::observe::{EventRef, Joins, Observer};

/// Types of events of IPv4. `IPV6` more is the same type of IPv6.
const SEND: u8 = 10;
const RECEIVE: u8 = 11;
const CONNECT: u8 = 12;
const DISCONNECT: u8 = 13;
const RETRANSMIT: u8 = 14;
const ACCEPT: u8 = 15;
const IPV6: u8 = 16;

/// A connection, or the datagrams between two endpoints, of a process.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[non_exhaustive]
pub struct Connection {
    /// Id of the process, as the events state it.
    pub pid: ProcessId,
    /// Whether it is UDP, not TCP.
    pub is_udp: bool,
    /// Address and port of this machine.
    pub local: SocketAddr,
    /// Address and port of the other side.
    pub remote: SocketAddr,
}

/// What went over a connection.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Traffic {
    /// When its first event was, in ticks.
    pub first: Ticks,
    /// When its last event was, in ticks.
    pub last: Ticks,
    /// Events of sent data.
    pub sends: u64,
    /// Bytes that were sent.
    pub sent: u64,
    /// Events of received data.
    pub receives: u64,
    /// Bytes that were received.
    pub received: u64,
    /// Connections that this machine opened.
    pub connects: u64,
    /// Connections that it accepted.
    pub accepts: u64,
    /// Connections that ended.
    pub disconnects: u64,
    /// Events of data that was sent again.
    pub retransmits: u64,
}

/// Collects the traffic of a recording.
#[derive(Clone, Debug, Default)]
pub struct Network {
    connections: BTreeMap<Connection, Traffic>,
    readers: BTreeMap<u16, FieldReader<6>>,
}

impl Network {
    /// Nothing is collected yet.
    #[must_use]
    pub fn new() -> Self {
        Network::default()
    }

    /// The traffic of each connection.
    #[must_use]
    pub fn connections(&self) -> &BTreeMap<Connection, Traffic> {
        &self.connections
    }
}

/// An address and a port of an event, both in network order.
fn endpoint(
    fields: &FieldValues<'_, 6>,
    address: usize,
    port: usize,
    v6: bool,
) -> Option<SocketAddr> {
    let address: IpAddr = match v6 {
        true => Ipv6Addr::from(*fields.from(address)?.first_chunk::<16>()?).into(),
        false => Ipv4Addr::from(*fields.from(address)?.first_chunk::<4>()?).into(),
    };
    let port = u16::from_be_bytes(*fields.from(port)?.first_chunk::<2>()?);
    Some(SocketAddr::new(address, port))
}

impl Observer for Network {
    const JOINS: Joins = Joins::Nothing;

    fn record(&mut self, _: &Machine, record: &Record<'_>, event: &EventRef) {
        let Some(hook) = event.kind.hook() else {
            return;
        };
        let [opcode, group] = hook.to_le_bytes();
        if group != hook::GROUP_TCP && group != hook::GROUP_UDP {
            return;
        }
        let is_v6 = opcode >= SEND + IPV6;
        let kind = if is_v6 { opcode - IPV6 } else { opcode };
        if !(SEND..=ACCEPT).contains(&kind) {
            return;
        }
        let reader = self.readers.entry(hook).or_insert_with(|| {
            FieldReader::of_hook(hook, ["PID", "size", "saddr", "sport", "daddr", "dport"])
        });
        let Some(fields) = reader.read(record) else {
            return;
        };
        let Some(source) = endpoint(&fields, 2, 3, is_v6) else {
            return;
        };
        let Some(destination) = endpoint(&fields, 4, 5, is_v6) else {
            return;
        };
        let is_udp = group == hook::GROUP_UDP;
        // A datagram has its own source and destination; of a connection, the source is local.
        let mut local = source;
        let mut remote = destination;
        if is_udp && kind == RECEIVE {
            std::mem::swap(&mut local, &mut remote);
        }
        let pid = ProcessId::new(fields.uint(0).unwrap_or(0) as u32);
        let new = Traffic {
            first: event.time,
            ..Traffic::default()
        };
        let traffic = self
            .connections
            .entry(Connection {
                pid,
                is_udp,
                local,
                remote,
            })
            .or_insert(new);
        let bytes = fields.uint(1).unwrap_or(0);
        traffic.last = event.time;
        match kind {
            SEND => {
                traffic.sends += 1;
                traffic.sent = traffic.sent.saturating_add(bytes);
            }
            RECEIVE => {
                traffic.receives += 1;
                traffic.received = traffic.received.saturating_add(bytes);
            }
            CONNECT => traffic.connects += 1,
            DISCONNECT => traffic.disconnects += 1,
            RETRANSMIT => traffic.retransmits += 1,
            _ => traffic.accepts += 1,
        }
    }

    fn restart(&mut self) {
        *self = Network::new();
    }
}
