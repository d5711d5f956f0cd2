//! A small, deterministic ETW: providers register and are told what is asked of them, events are
//! routed to the buffers of every session that admits them, and lost where no buffer is free.

mod control;
mod disk;
mod event;
mod identity;
mod ledger;
mod logfile;
mod merge;
mod pool;
mod refusal;
mod route;
mod session;
mod store;

pub(crate) use event::Origin;
pub use event::{Form, Outcome, Raised};
pub(crate) use identity::Files;
pub use identity::ImageIdentity;
pub use ledger::{BufferReport, Fate};
pub(crate) use logfile::numbered;
pub use refusal::{Code, Refusal};
pub(crate) use route::Event;
use session::BUFFER_HEADER;
pub(crate) use session::Session;
pub use session::SessionReport;
pub use store::{Counted, Memory, Reading, Store};

use std::collections::BTreeMap;

use etl_control::enable::CombinedEnablement;
use etl_format::Guid;
use etl_format::constants::PointerSize;

use crate::error::{Error, Result};
use crate::machine::{Clock, Dice, Nanos};
use crate::model::{EnablePlan, Fault, KernelEvent, MachinePlan};
use crate::truth::Witness;

/// A provider, by its place.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct ProviderIndex(pub usize);

/// A provider: who registered it, and who asks for its events.
#[derive(Debug)]
struct Provider {
    guid: Guid,
    /// Classic providers have one session, the last one to enable them.
    classic: bool,
    /// Processes that registered it.
    instances: Vec<u32>,
    /// Sessions that enable it, with what they ask for.
    enables: Vec<(usize, EnablePlan)>,
    /// Sessions that have done so once, and do no more.
    former: Vec<usize>,
    /// What it sees of its sessions.
    union: CombinedEnablement,
    /// Whether any of them leaves out processes.
    scoped: bool,
}

/// A provider has to be told that something is asked of it, or no more.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Notice {
    pub provider: Guid,
    pub pid: u32,
    /// What it sees of its sessions now.
    pub union: CombinedEnablement,
    /// Whether this is a request to log its state, and not a change.
    pub capture_state: bool,
}

/// What ETW itself does later.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Duty {
    /// A session's flush timer has run down.
    Timer(usize),
    /// The disk has taken a buffer of a session.
    Written(usize),
    /// The consumer of a session in real time has taken a buffer.
    Delivered(usize),
}

/// All of ETW.
pub(crate) struct Etw<'s> {
    clock: Clock,
    machine: MachinePlan,
    providers: Vec<Provider>,
    pub sessions: Vec<Session>,
    store: &'s mut dyn Store,
    witness: &'s mut dyn Witness,
    /// What is to be planned: the calendar takes it from here.
    pub duties: Vec<(Nanos, Duty)>,
    raised: u64,
    payload: Vec<u8>,
    outcomes: Vec<(usize, Outcome)>,
    dice: Dice,
    /// Faults that the script names beside its sessions: the session's name, and the fault.
    faults: Vec<(String, Fault)>,
    /// Names of processes by id.
    pub names: BTreeMap<u32, String>,
    /// Sessions that were refused: what is asked of them later is refused as well.
    refused: Vec<String>,
    /// Events of the kernel's that any session logs, or did so while it ran, and those that one takes stacks with, a bit for each.
    kernel: (u16, u16),
}

impl<'s> Etw<'s> {
    pub fn new(
        machine: &MachinePlan,
        clock: Clock,
        dice: Dice,
        faults: Vec<(String, Fault)>,
        store: &'s mut dyn Store,
        witness: &'s mut dyn Witness,
    ) -> Self {
        Etw {
            clock,
            machine: machine.clone(),
            providers: Vec::new(),
            sessions: Vec::new(),
            store,
            witness,
            duties: Vec::new(),
            raised: 0,
            payload: Vec::new(),
            outcomes: Vec::new(),
            dice,
            faults,
            names: BTreeMap::new(),
            refused: Vec::new(),
            kernel: (0, 0),
        }
    }

    /// Windows' version: major, minor, build.
    pub fn os(&self) -> (u8, u8, u32) {
        self.machine.os
    }

    /// Width of the kernel's pointers.
    pub fn pointer_size(&self) -> PointerSize {
        self.machine.pointer_size
    }

    /// Whether any session logs events of the kernel's of a kind, or did so before its flags were changed.
    pub fn logs(&self, event: KernelEvent) -> bool {
        self.kernel.0 & event.bit() != 0
    }

    /// Whether any session takes stacks with events of the kernel's of a kind.
    pub fn takes_stack(&self, event: KernelEvent) -> bool {
        self.kernel.1 & event.bit() != 0
    }

    /// Looks what the sessions that run ask of the kernel.
    fn look_at_kernel(&mut self) {
        let running = self.sessions.iter().filter(|s| s.is_running());
        // What a session asked for once is still told of: it does without it.
        self.kernel = running
            .map(|s| (s.kernel.bits().0 | s.logged_before, s.kernel.bits().1))
            .fold((0, 0), |(all, stacks), (a, s)| (all | a, stacks | s));
    }

    /// The place of a provider, known or not so far.
    pub fn provider(&mut self, guid: Guid, classic: bool) -> ProviderIndex {
        let known = self.providers.iter().position(|p| p.guid == guid);
        ProviderIndex(known.unwrap_or_else(|| {
            self.providers.push(Provider {
                guid,
                classic,
                instances: Vec::new(),
                enables: Vec::new(),
                former: Vec::new(),
                union: CombinedEnablement::default(),
                scoped: false,
            });
            self.providers.len() - 1
        }))
    }

    /// A process registers a provider; it is told at once what is asked of it, if anything is.
    pub fn register(
        &mut self,
        guid: Guid,
        classic: bool,
        pid: u32,
    ) -> (ProviderIndex, Option<Notice>) {
        let index = self.provider(guid, classic);
        let Some(provider) = self.providers.get_mut(index.0) else { return (index, None) };
        provider.classic = classic;
        provider.instances.push(pid);
        let name = self.names.get(&pid).map_or("", String::as_str);
        let union = provider.seen(pid, || name);
        let notice = Notice { provider: guid, pid, union, capture_state: false };
        (index, union.enabled.then_some(notice))
    }

    /// Processes that have registered any of some providers, in the order of their ids.
    pub fn registered(&self, guids: impl Iterator<Item = Guid>) -> Vec<u32> {
        let guids: Vec<Guid> = guids.collect();
        let asked = self.providers.iter().filter(|p| guids.contains(&p.guid));
        let mut pids: Vec<u32> = asked.flat_map(|p| p.instances.iter().copied()).collect();
        pids.sort_unstable();
        pids.dedup();
        pids
    }

    /// All providers of a process are gone.
    pub fn unregister(&mut self, pid: u32) {
        for provider in &mut self.providers {
            provider.instances.retain(|p| *p != pid);
        }
    }

    /// What a provider sees of its sessions in a process.
    pub fn seen(&self, provider: ProviderIndex, pid: u32) -> CombinedEnablement {
        let name = || self.names.get(&pid).map_or("", String::as_str);
        self.providers.get(provider.0).map(|p| p.seen(pid, name)).unwrap_or_default()
    }

    /// Whether any session takes a stack with each event of a provider.
    pub fn wants_stacks(&self, provider: ProviderIndex) -> bool {
        self.providers.get(provider.0).is_some_and(|p| p.enables.iter().any(|(_, e)| e.stacks))
    }

    /// Does what was due.
    pub fn attend(&mut self, duty: Duty, at: Nanos) -> Result<()> {
        match duty {
            Duty::Timer(index) => {
                let Some(session) = self.sessions.get_mut(index).filter(|s| s.is_running()) else {
                    return Ok(());
                };
                session.seal_all();
                if session.plan.flush_timer > 0 {
                    let next = at.saturating_add(session.plan.flush_timer);
                    self.duties.push((next, duty));
                }
                self.keep_writing(index, at);
            }
            Duty::Written(index) => {
                let timestamp = self.timestamp(index, at);
                if let Some(session) = self.sessions.get_mut(index) {
                    session.written(timestamp, self.store)?;
                }
                self.keep_writing(index, at);
            }
            Duty::Delivered(index) => {
                let timestamp = self.timestamp(index, at);
                if let Some(session) = self.sessions.get_mut(index) {
                    session.delivered(timestamp)?;
                }
                self.tell_buffers(index)?;
                self.keep_writing(index, at);
            }
        }
        let (Duty::Timer(index) | Duty::Written(index) | Duty::Delivered(index)) = duty;
        self.tell_buffers(index)
    }

    /// Tells what became of buffers of a session.
    fn tell_buffers(&mut self, index: usize) -> Result<()> {
        let told = self.sessions.get_mut(index).map(Session::told).unwrap_or_default();
        told.iter().try_for_each(|buffer| self.witness.buffer(index, buffer))
    }

    /// Gives the disk the next sealed buffer of a session, when it is not busy with one.
    fn keep_writing(&mut self, index: usize, at: Nanos) {
        let Some(session) = self.sessions.get_mut(index) else { return };
        if let Some(bytes) = session.next_write() {
            let time =
                u128::from(bytes) * 1_000_000_000 / u128::from(self.machine.disk_speed.max(1));
            let done = at.saturating_add(u64::try_from(time).unwrap_or(u64::MAX).max(1));
            self.duties.push((done, Duty::Written(index)));
        }
        if let Some((bytes, speed)) = session.next_delivery() {
            let time = u128::from(bytes) * 1_000_000_000 / u128::from(speed.max(1));
            let done = at.saturating_add(u64::try_from(time).unwrap_or(u64::MAX).max(1));
            self.duties.push((done, Duty::Delivered(index)));
        }
    }

    /// The raw timestamp of a moment in a session.
    pub fn timestamp(&self, session: usize, at: Nanos) -> i64 {
        self.sessions.get(session).map_or(0, |s| s.timestamp(&self.clock, at))
    }

    /// Who watches.
    pub fn witness(&mut self) -> &mut dyn Witness {
        self.witness
    }
}

impl Provider {
    /// Its sessions as one process sees them: those that leave the process out do not count.
    fn seen<'n>(&self, pid: u32, name: impl FnOnce() -> &'n str) -> CombinedEnablement {
        if !self.scoped {
            return self.union;
        }
        let name = name();
        let here = self.enables.iter().map(|(_, e)| e).filter(|e| e.is_of(name));
        let here = here.filter(|e| e.processes.is_empty() || e.processes.contains(&pid));
        CombinedEnablement::of(here.map(|e| &e.rule))
    }

    /// Its sessions have changed: everyone who registered it is told.
    fn changed_union(&mut self) {
        self.union = CombinedEnablement::of(self.enables.iter().map(|(_, e)| &e.rule));
        let scoped = |e: &EnablePlan| !e.processes.is_empty() || !e.executables.is_empty();
        self.scoped = self.enables.iter().any(|(_, e)| scoped(e));
    }

    fn changed(&self, names: &BTreeMap<u32, String>) -> Vec<Notice> {
        let name = |pid: u32| names.get(&pid).map_or("", String::as_str);
        let notice = |pid: &u32| Notice {
            provider: self.guid,
            pid: *pid,
            union: self.seen(*pid, || name(*pid)),
            capture_state: false,
        };
        self.instances.iter().map(notice).collect()
    }

    fn drop_session(&mut self, session: usize, names: &BTreeMap<u32, String>) -> Vec<Notice> {
        let before = self.enables.len();
        self.enables.retain(|(s, _)| *s != session);
        if self.enables.len() == before {
            return Vec::new();
        }
        self.former.push(session);
        self.changed_union();
        self.changed(names)
    }
}

pub(crate) fn impossible(at: Nanos, what: String) -> Error {
    Error::Impossible { at, what, place: None }
}
