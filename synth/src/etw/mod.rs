//! A small, deterministic ETW: providers register and are told what is asked of them, events are
//! routed to the buffers of every session that admits them, and lost where no buffer is free.

mod event;
mod ledger;
mod merge;
mod route;
mod session;
mod store;

pub(crate) use event::Origin;
pub use event::{Form, Outcome, Raised};
pub use ledger::{BufferReport, Fate};
pub(crate) use route::Event;
pub(crate) use session::Session;
pub use session::SessionReport;
pub use store::{Memory, Reading, Store};

use etl_format::Guid;
use etl_schema::enable::Union;

use crate::error::{Error, Result};
use crate::machine::{Clock, Dice, Nanos};
use crate::model::{EnablePlan, Fault, MachinePlan, SessionPlan};
use crate::truth::Witness;

/// Sessions that the system has room for.
const MOST_SESSIONS: usize = 64;
/// Sessions that may enable one modern provider.
const MOST_SESSIONS_OF_A_PROVIDER: usize = 8;

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
    union: Union,
}

/// A provider has to be told that something is asked of it, or no more.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Notice {
    pub provider: Guid,
    pub pid: u32,
    /// What it sees of its sessions now.
    pub union: Union,
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
}

impl<'s> Etw<'s> {
    pub fn new(
        machine: &MachinePlan,
        clock: Clock,
        dice: Dice,
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
        }
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
                union: Union::default(),
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
        let union = provider.seen(pid);
        let notice = Notice { provider: guid, pid, union, capture_state: false };
        (index, union.enabled.then_some(notice))
    }

    /// All providers of a process are gone.
    pub fn unregister(&mut self, pid: u32) {
        for provider in &mut self.providers {
            provider.instances.retain(|p| *p != pid);
        }
    }

    /// What a provider sees of its sessions in a process.
    pub fn seen(&self, provider: ProviderIndex, pid: u32) -> Union {
        self.providers.get(provider.0).map(|p| p.seen(pid)).unwrap_or_default()
    }

    /// Whether any session takes a stack with each event of a provider.
    pub fn wants_stacks(&self, provider: ProviderIndex) -> bool {
        self.providers.get(provider.0).is_some_and(|p| p.enables.iter().any(|(_, e)| e.stacks))
    }

    /// The running session of this name.
    fn running(&self, name: &str, at: Nanos) -> Result<usize> {
        let found = self
            .sessions
            .iter()
            .position(|s| s.is_running() && s.plan.name.eq_ignore_ascii_case(name));
        found.ok_or_else(|| impossible(at, format!("no session \"{name}\" is running")))
    }

    /// Starts a session; its providers are told.
    pub fn start(
        &mut self,
        plan: &SessionPlan,
        at: Nanos,
        controller: (u32, u32),
    ) -> Result<Vec<Notice>> {
        if self.running(&plan.name, at).is_ok() {
            return Err(impossible(at, format!("session \"{}\" runs already", plan.name)));
        }
        if self.sessions.iter().filter(|s| s.is_running()).count() >= MOST_SESSIONS {
            return Err(impossible(at, format!("{MOST_SESSIONS} sessions run already")));
        }
        let index = self.sessions.len();
        let id = self.free_id();
        let session =
            Session::start(plan, id, at, controller, &self.machine, &self.clock, self.store)?;
        if plan.flush_timer > 0 {
            self.duties.push((at.saturating_add(plan.flush_timer), Duty::Timer(index)));
        }
        self.sessions.push(session);
        self.witness.session_started(index, &plan.name, plan.file.as_deref())?;
        let mut notices = Vec::new();
        for enable in &plan.providers {
            notices.extend(self.enable_in(index, enable, at)?);
        }
        Ok(notices)
    }

    /// The least session id that no running session has.
    fn free_id(&self) -> u16 {
        let taken = |id| self.sessions.iter().any(|s| s.is_running() && s.id == id);
        (3..).find(|id| !taken(*id)).unwrap_or(u16::MAX)
    }

    /// Enables a provider in a session, or replaces what the session asked of it.
    pub fn enable(&mut self, name: &str, plan: &EnablePlan, at: Nanos) -> Result<Vec<Notice>> {
        let session = self.running(name, at)?;
        self.enable_in(session, plan, at)
    }

    fn enable_in(&mut self, session: usize, plan: &EnablePlan, at: Nanos) -> Result<Vec<Notice>> {
        let index = self.provider(plan.provider, false);
        let Some(provider) = self.providers.get_mut(index.0) else { return Ok(Vec::new()) };
        if provider.classic {
            let others = provider.enables.drain(..).map(|(s, _)| s).filter(|s| *s != session);
            provider.former.extend(others);
        } else {
            provider.enables.retain(|(s, _)| *s != session);
        }
        if provider.enables.len() >= MOST_SESSIONS_OF_A_PROVIDER {
            let what = format!(
                "{} is enabled by {MOST_SESSIONS_OF_A_PROVIDER} sessions already",
                plan.provider
            );
            return Err(impossible(at, what));
        }
        provider.former.retain(|s| *s != session);
        provider.enables.push((session, plan.clone()));
        provider.changed_union();
        Ok(provider.changed())
    }

    /// Disables a provider in a session.
    pub fn disable(&mut self, name: &str, guid: Guid, at: Nanos) -> Result<Vec<Notice>> {
        let session = self.running(name, at)?;
        Ok(self.disable_in(session, guid))
    }

    fn disable_in(&mut self, session: usize, guid: Guid) -> Vec<Notice> {
        let found = self.providers.iter_mut().find(|p| p.guid == guid);
        found.map(|p| p.drop_session(session)).unwrap_or_default()
    }

    /// A session asks a provider to log its state.
    pub fn capture_state(&mut self, name: &str, guid: Guid, at: Nanos) -> Result<Vec<Notice>> {
        let session = self.running(name, at)?;
        let found = self.providers.iter().find(|p| p.guid == guid);
        let asked = found.filter(|p| p.enables.iter().any(|(s, _)| *s == session));
        let Some(provider) = asked else {
            return Err(impossible(at, format!("session \"{name}\" does not enable {guid}")));
        };
        let notices = provider.changed();
        Ok(notices.into_iter().map(|n| Notice { capture_state: true, ..n }).collect())
    }

    /// Stops a session: its providers are told, and what it has is written.
    pub fn stop(&mut self, name: &str, at: Nanos) -> Result<Vec<Notice>> {
        let session = self.running(name, at)?;
        let mut notices = Vec::new();
        for provider in &mut self.providers {
            notices.extend(provider.drop_session(session));
        }
        self.close(session, at, false)?;
        Ok(notices)
    }

    /// Leaves the sessions that still run as the loss of power would.
    pub fn lose_power(&mut self, at: Nanos) -> Result<()> {
        for session in 0..self.sessions.len() {
            self.close(session, at, true)?;
        }
        Ok(())
    }

    fn close(&mut self, index: usize, at: Nanos, abandon: bool) -> Result<()> {
        let Some(session) = self.sessions.get_mut(index).filter(|s| s.is_running()) else {
            return Ok(());
        };
        let abandon = abandon || session.plan.faults.contains(&Fault::NotClosed);
        session.close(at, abandon, &self.clock)?;
        if let Some(file) = &session.plan.file {
            for fault in &session.plan.faults {
                let hit =
                    crate::faults::apply(fault, file, &session.plan, &mut self.dice, self.store)?;
                for bytes in hit {
                    self.witness.fault(index, fault, file, &bytes)?;
                    let gone = matches!(fault, Fault::Truncated(_));
                    session.ledger.damaged(file, &bytes, gone);
                }
            }
        }
        self.tell_buffers(index)?;
        let Some(session) = self.sessions.get(index) else { return Ok(()) };
        self.witness.session(&session.report(index))
    }

    /// Tells what became of buffers of a session.
    fn tell_buffers(&mut self, index: usize) -> Result<()> {
        let Some(session) = self.sessions.get_mut(index) else { return Ok(()) };
        // A session without a file has none that could be written or lost.
        if session.ledger.has_news() {
            for report in session.ledger.take() {
                if session.plan.file.is_some() {
                    self.witness.buffer(index, &report)?;
                }
            }
        }
        Ok(())
    }

    /// Writes what a session has in memory.
    pub fn flush(&mut self, name: &str, at: Nanos) -> Result<()> {
        let session = self.running(name, at)?;
        let stamp = self.stamp(session, at);
        if let Some(session) = self.sessions.get_mut(session) {
            session.flush_now(stamp)?;
        }
        self.tell_buffers(session)
    }

    /// Does what was due.
    pub fn attend(&mut self, duty: Duty, at: Nanos) -> Result<()> {
        match duty {
            Duty::Timer(index) => {
                let Some(session) = self.sessions.get_mut(index).filter(|s| s.is_running()) else {
                    return Ok(());
                };
                session.seal_all();
                let next = at.saturating_add(session.plan.flush_timer);
                self.duties.push((next, duty));
                self.keep_writing(index, at);
            }
            Duty::Written(index) => {
                let stamp = self.stamp(index, at);
                if let Some(session) = self.sessions.get_mut(index) {
                    session.written(stamp)?;
                }
                self.tell_buffers(index)?;
                self.keep_writing(index, at);
            }
        }
        Ok(())
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
    }

    /// The raw stamp of a moment in a session.
    pub fn stamp(&self, session: usize, at: Nanos) -> i64 {
        self.sessions.get(session).map_or(0, |s| s.stamp(&self.clock, at))
    }

    /// Who watches.
    pub fn witness(&mut self) -> &mut dyn Witness {
        self.witness
    }
}

impl Provider {
    /// Its sessions as one process sees them: those that leave the process out do not count.
    fn seen(&self, pid: u32) -> Union {
        if self.enables.iter().all(|(_, e)| e.processes.is_empty()) {
            return self.union;
        }
        let here = self.enables.iter().map(|(_, e)| e);
        let here = here.filter(|e| e.processes.is_empty() || e.processes.contains(&pid));
        Union::of(here.map(|e| &e.rule))
    }

    /// Its sessions have changed: everyone who registered it is told.
    fn changed_union(&mut self) {
        self.union = Union::of(self.enables.iter().map(|(_, e)| &e.rule));
    }

    fn changed(&self) -> Vec<Notice> {
        let notice = |&pid: &u32| Notice {
            provider: self.guid,
            pid,
            union: self.seen(pid),
            capture_state: false,
        };
        self.instances.iter().map(notice).collect()
    }

    fn drop_session(&mut self, session: usize) -> Vec<Notice> {
        let before = self.enables.len();
        self.enables.retain(|(s, _)| *s != session);
        if self.enables.len() == before {
            return Vec::new();
        }
        self.former.push(session);
        self.changed_union();
        self.changed()
    }
}

pub(crate) fn impossible(at: Nanos, what: String) -> Error {
    Error::Impossible { at, what }
}
