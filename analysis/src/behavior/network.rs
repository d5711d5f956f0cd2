//! Bytes and connections of TCP and UDP, by process and endpoint.
//!
//! Needs the kernel's flag `NETWORKTRACE`, or the provider Microsoft-Windows-Kernel-Network. The
//! answers in events of Microsoft-Windows-DNS-Client name the endpoints.
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
use etl_schema::providers::{DNS_CLIENT, KERNEL_NETWORK};
use etl_schema::views::{FieldReader, FieldValues};
use foldhash::HashMap;

use crate::machine::Machine;
use crate::machine::names::text;
use crate::observe::{EventKind, EventRef, Joins, Observer};

/// Types of events of IPv4. `IPV6` more is the same type of IPv6.
const SEND: u8 = 10;
const RECEIVE: u8 = 11;
const CONNECT: u8 = 12;
const DISCONNECT: u8 = 13;
const RETRANSMIT: u8 = 14;
const ACCEPT: u8 = 15;
const IPV6: u8 = 16;

/// Ids of the provider Microsoft-Windows-Kernel-Network are the types of the kernel's events; of
/// UDP, they are greater by this number.
const UDP_IDS: u16 = 32;
/// The first id of UDP.
const FIRST_UDP_ID: u16 = UDP_IDS + SEND as u16;

/// Ids of the answers in the events of the DNS client: of a query, from its cache, and of a server.
const ANSWERS: [u16; 3] = [3008, 3018, 3020];

/// Addresses whose names are kept.
const MAX_NAMES: usize = 1 << 16;

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
#[derive(Clone, Debug)]
pub struct Network {
    /// By the events of the kernel.
    classic: BTreeMap<Connection, Traffic>,
    /// By the events of Microsoft-Windows-Kernel-Network, which are about the same traffic.
    events: BTreeMap<Connection, Traffic>,
    /// The names that addresses had in the last answers of the DNS client.
    names: HashMap<IpAddr, Box<str>>,
    tcp: FieldReader<6>,
    udp: FieldReader<6>,
    manifest: FieldReader<6>,
    answer: FieldReader<2>,
}

impl Default for Network {
    fn default() -> Self {
        Network::new()
    }
}

impl Network {
    /// Nothing is collected yet.
    #[must_use]
    pub fn new() -> Self {
        const NAMES: [&str; 6] = ["PID", "size", "saddr", "sport", "daddr", "dport"];
        let send = u16::from(SEND);
        let tcp = u16::from_le_bytes([SEND, hook::GROUP_TCP]);
        let udp = u16::from_le_bytes([SEND, hook::GROUP_UDP]);
        let answer = ["QueryName", "QueryResults"];
        Network {
            classic: BTreeMap::new(),
            events: BTreeMap::new(),
            names: HashMap::default(),
            tcp: FieldReader::of_hook(tcp, NAMES),
            udp: FieldReader::of_hook(udp, NAMES),
            manifest: FieldReader::of_event(KERNEL_NETWORK, send, NAMES),
            answer: FieldReader::of_event(DNS_CLIENT, ANSWERS[0], answer),
        }
    }

    /// The traffic of each connection. If the recording has both the kernel's events and the events
    /// of Microsoft-Windows-Kernel-Network, only the kernel's are counted.
    #[must_use]
    pub fn connections(&self) -> &BTreeMap<Connection, Traffic> {
        if self.classic.is_empty() {
            &self.events
        } else {
            &self.classic
        }
    }

    /// The name of an address, if the DNS client found it: the last name that was looked up.
    #[must_use]
    pub fn name_of(&self, address: IpAddr) -> Option<&str> {
        let name = self.names.get(&address.to_canonical())?;
        Some(name)
    }

    /// The addresses of an answer, such as `type:  5 www.example.org;192.0.2.7;::ffff:192.0.2.8;`.
    fn answer(&mut self, record: &Record<'_>) {
        let Some(fields) = self.answer.read(record) else {
            return;
        };
        let Some(name) = fields.text(0).map(text) else {
            return;
        };
        let Some(results) = fields.text(1).map(text) else {
            return;
        };
        if name.is_empty() {
            return;
        }
        for result in results.split(';') {
            let Ok(address) = result.trim().parse::<IpAddr>() else {
                continue;
            };
            let address = address.to_canonical();
            if self.names.len() < MAX_NAMES || self.names.contains_key(&address) {
                self.names.insert(address, name.as_str().into());
            }
        }
    }

    /// Adds an event of a connection.
    fn add(&mut self, kind: TrafficKind, record: &Record<'_>, event: &EventRef) {
        let reader = match kind {
            TrafficKind {
                is_classic: false, ..
            } => &mut self.manifest,
            TrafficKind { is_udp: true, .. } => &mut self.udp,
            TrafficKind { is_udp: false, .. } => &mut self.tcp,
        };
        let Some(fields) = reader.read(record) else {
            return;
        };
        let Some(connection) = kind.connection(&fields) else {
            return;
        };
        let connections = if kind.is_classic {
            &mut self.classic
        } else {
            &mut self.events
        };
        let new = Traffic {
            first: event.time,
            ..Traffic::default()
        };
        let traffic = connections.entry(connection).or_insert(new);
        traffic.last = event.time;
        traffic.add(kind.step, fields.uint(1).unwrap_or(0));
    }
}

impl Traffic {
    /// Adds an event of a type with its bytes.
    fn add(&mut self, step: u8, bytes: u64) {
        match step {
            SEND => {
                self.sends += 1;
                self.sent = self.sent.saturating_add(bytes);
            }
            RECEIVE => {
                self.receives += 1;
                self.received = self.received.saturating_add(bytes);
            }
            CONNECT => self.connects += 1,
            DISCONNECT => self.disconnects += 1,
            RETRANSMIT => self.retransmits += 1,
            _ => self.accepts += 1,
        }
    }
}

/// What an event of a connection is.
#[derive(Clone, Copy, Debug)]
struct TrafficKind {
    /// Whether the kernel logged it as a classic event.
    is_classic: bool,
    is_udp: bool,
    is_v6: bool,
    /// [`SEND`] to [`ACCEPT`].
    step: u8,
}

impl TrafficKind {
    fn of(event: &EventRef) -> Option<Self> {
        let is_classic;
        let is_udp;
        let opcode;
        match event.kind {
            EventKind::Kernel { hook } => {
                let [low, group] = hook.to_le_bytes();
                if group != hook::GROUP_TCP && group != hook::GROUP_UDP {
                    return None;
                }
                is_classic = true;
                is_udp = group == hook::GROUP_UDP;
                opcode = low;
            }
            EventKind::Event {
                provider: KERNEL_NETWORK,
                id,
            } => {
                is_classic = false;
                is_udp = id >= FIRST_UDP_ID;
                let first = if is_udp { UDP_IDS } else { 0 };
                opcode = u8::try_from(id - first).ok()?;
            }
            _ => return None,
        }
        let is_v6 = opcode >= SEND + IPV6;
        let step = if is_v6 { opcode - IPV6 } else { opcode };
        if !(SEND..=ACCEPT).contains(&step) {
            return None;
        }
        Some(TrafficKind {
            is_classic,
            is_udp,
            is_v6,
            step,
        })
    }

    /// The connection of an event.
    fn connection(self, fields: &FieldValues<'_, 6>) -> Option<Connection> {
        let source = endpoint(fields, 2, 3, self.is_v6)?;
        let destination = endpoint(fields, 4, 5, self.is_v6)?;
        // A datagram has its own source and destination; of a connection, the source is local.
        let mut local = source;
        let mut remote = destination;
        if self.is_udp && self.step == RECEIVE {
            std::mem::swap(&mut local, &mut remote);
        }
        Some(Connection {
            pid: ProcessId::new(fields.uint(0).unwrap_or(0) as u32),
            is_udp: self.is_udp,
            local,
            remote,
        })
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

    fn record(&mut self, machine: &Machine, record: &Record<'_>, event: &EventRef) {
        if let Some(kind) = TrafficKind::of(event) {
            self.add(kind, record, event);
        } else {
            self.unselected(machine, record, event);
        }
    }

    /// Answers name the endpoints of later connections, and the DNS client has threads of its own.
    fn unselected(&mut self, _: &Machine, record: &Record<'_>, event: &EventRef) {
        if let EventKind::Event {
            provider: DNS_CLIENT,
            id,
        } = event.kind
            && ANSWERS.contains(&id)
        {
            self.answer(record);
        }
    }

    fn restart(&mut self) {
        *self = Network::new();
    }
}
