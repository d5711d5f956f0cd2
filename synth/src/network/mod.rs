//! The network of the machine: packets of conversations and of captures, and the drivers that log
//! them (Microsoft-Windows-NDIS-PacketCapture, Microsoft-Windows-PktMon).
//!
//! What is sent and received does not depend on sessions.

mod capture_file;
mod card;
mod conversation;
mod frame;
mod ndis;
mod pktmon;
mod schemas;

use std::collections::BTreeMap;

pub(crate) use capture_file::packets;

use crate::error::Result;
use crate::etw::{Etw, Origin};
use crate::model::{ExchangePlan, MachinePlan, Packet, ResolvePlan};
use crate::rng::Source;
use crate::time::{MICROSECOND, Nanos};
use card::{Card, other_end};
use ndis::Ndis;
use pktmon::PacketMonitor;

/// The first port of outgoing connections in Windows, and how many there are.
const FIRST_PORT: u16 = 49_152;
const PORTS: u64 = 16_384;
/// Limits of packets on their way, and of bytes of conversations among them. Further packets are
/// dropped, so that memory does not grow with the length of an overloaded scenario.
const MAX_PASSING: usize = 1 << 20;
const MAX_PASSING_BYTES: usize = 64 << 20;
/// Time between two layers of the network stack.
const BETWEEN_LAYERS: Nanos = MICROSECOND;

/// A packet on its way, and the thread that sends it, if any.
#[derive(Clone, Debug)]
pub(crate) struct Passing {
    pub packet: Packet,
    pub thread: Option<usize>,
}

impl Passing {
    /// Bytes that it owns. The bytes of a capture are in the scenario.
    fn own_bytes(&self) -> usize {
        if self.thread.is_some() {
            self.packet.bytes.len()
        } else {
            0
        }
    }
}

/// The network of the machine.
#[derive(Debug)]
pub(crate) struct Network {
    card: Card,
    ndis: Ndis,
    monitor: PacketMonitor,
    source: Source,
    /// Conversations so far.
    conversations: u64,
    /// Packets that have not passed yet.
    passing: BTreeMap<usize, Passing>,
    passing_bytes: usize,
    next: usize,
    /// Whether it was reported that packets are dropped.
    pub reported_full: bool,
}

impl Network {
    pub fn new(machine: &MachinePlan, source: Source) -> Self {
        let card = Card::new(machine);
        Network {
            ndis: Ndis::new(machine),
            monitor: PacketMonitor::new(machine, &card),
            card,
            source: source.named("network"),
            conversations: 0,
            passing: BTreeMap::new(),
            passing_bytes: 0,
            next: 0,
            reported_full: false,
        }
    }

    /// The packets of a name's resolution.
    pub fn resolve(&mut self, plan: &ResolvePlan) -> Vec<Packet> {
        let (port, mut rng) = self.conversation();
        let server = self.card.name_server();
        let client = self.card.own_end(server.ip, port);
        conversation::resolve(plan, &client, &server, &mut rng)
    }

    /// The packets of a connection.
    pub fn exchange(&mut self, plan: &ExchangePlan) -> Vec<Packet> {
        let (port, mut rng) = self.conversation();
        let client = self.card.own_end(plan.to.ip(), port);
        conversation::exchange(plan, &client, &other_end(plan.to), &mut rng)
    }

    /// The port and the random numbers of the next conversation.
    fn conversation(&mut self) -> (u16, crate::rng::Rng) {
        let number = self.conversations;
        self.conversations += 1;
        let port = FIRST_PORT.saturating_add(u16::try_from(number % PORTS).unwrap_or(0));
        (port, self.source.numbered(number).rng())
    }

    /// Keeps a packet until it passes. Returns its number, or `None` if there are too many.
    pub fn keep(&mut self, passing: Passing) -> Option<usize> {
        let bytes = self.passing_bytes.saturating_add(passing.own_bytes());
        if self.passing.len() >= MAX_PASSING || bytes > MAX_PASSING_BYTES {
            return None;
        }
        self.passing_bytes = bytes;
        let number = self.next;
        self.next += 1;
        self.passing.insert(number, passing);
        Some(number)
    }

    pub fn take(&mut self, number: usize) -> Option<Passing> {
        let passing = self.passing.remove(&number)?;
        self.passing_bytes = self.passing_bytes.saturating_sub(passing.own_bytes());
        Some(passing)
    }

    /// A packet passes: the drivers log it. Returns the time of the last event.
    pub fn log(&mut self, etw: &mut Etw<'_>, packet: &Packet, origin: &Origin) -> Result<Nanos> {
        let mut origin = *origin;
        if packet.sent {
            self.monitor.log(etw, packet, &mut origin)?;
            self.ndis.log(etw, packet, &mut origin)?;
        } else {
            self.ndis.log(etw, packet, &mut origin)?;
            self.monitor.log(etw, packet, &mut origin)?;
        }
        Ok(origin.at)
    }

    /// PktMon lists its components and their counters, as it does when a capture ends. Returns the
    /// time of the last event.
    pub fn log_components(&self, etw: &mut Etw<'_>, origin: &Origin) -> Result<Nanos> {
        self.monitor.log_components(etw, &self.card, origin)
    }
}
