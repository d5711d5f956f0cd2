//! A small, deterministic ETW: providers register and are called back when their enablement
//! changes; events are written into the buffers of every session that admits them, and lost if no
//! buffer is free.

mod buffer_tracker;
mod control;
mod created;
mod file_sequence;
mod identity;
mod logfile;
mod merge;
mod origin;
mod pool;
mod route;
mod session;
mod unsettled;

use control::ServedTool;
use created::NotedFiles;
pub(crate) use identity::ImageFiles;
pub(crate) use origin::{Origin, values};
pub(crate) use route::{Event, LogTarget};
pub(crate) use session::{Session, StartRequest};

use std::collections::{BTreeMap, BTreeSet};

use etl_control::enable::{ClassicEnablement, CombinedEnablement};
use etl_format::Guid;
use etl_format::constants::{ClockType, PointerSize};

use crate::error::Result;
use crate::file_system::FileSystem;
use crate::machine::Clock;
use crate::model::{EnablePlan, KernelEvent, MachinePlan, SessionFault, WindowsVersion};
use crate::rng::Source;
use crate::time::Nanos;
use crate::truth::{Fact, Observer, SessionOutcome};

/// The index of a provider.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct ProviderIndex(pub usize);

/// A provider: the processes that registered it and the sessions that enable it.
#[derive(Debug)]
struct Provider {
    guid: Guid,
    /// A classic provider has one session, the last one that enabled it.
    classic: bool,
    /// Who registered it, once for each registration.
    registrants: Vec<Registrant>,
    /// Sessions that enable it, with their settings.
    enables: Vec<(usize, EnablePlan)>,
    /// Sessions that enabled it before.
    former: Vec<usize>,
    /// The combined enablement of its sessions.
    union: CombinedEnablement,
    /// Whether any of them filters by process.
    scoped: bool,
}

/// Who registered a provider: a process, or one of the CLRs in it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Registrant {
    pub pid: u32,
    /// The CLR by its index.
    pub clr: Option<usize>,
}

/// A call of the enable callback of a provider, as it was registered.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct EnableCallback {
    pub provider: Guid,
    pub registrant: Registrant,
    /// The combined enablement of its sessions.
    pub union: CombinedEnablement,
    /// Whether a session requests the state of the provider.
    pub capture_state: bool,
}

/// A task of ETW at a later time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum EtwTask {
    /// The flush timer of a session expires.
    FlushTimer(usize),
    /// The disk has written a buffer of a session.
    Written(usize),
    /// The consumer of a real-time session has received a buffer.
    Delivered(usize),
}

/// The state of ETW.
pub(crate) struct Etw<'s> {
    clock: Clock,
    machine: MachinePlan,
    providers: Vec<Provider>,
    pub sessions: Vec<Session>,
    pub files: NotedFiles<'s>,
    /// Whether files may be created again later.
    replaces: bool,
    pub observer: &'s mut dyn Observer,
    /// New tasks, which the event loop takes over.
    pub tasks: Vec<(Nanos, EtwTask)>,
    raised: u64,
    payload: Vec<u8>,
    outcomes: Vec<SessionOutcome>,
    source: Source,
    /// Faults that the script defines outside of sessions.
    faults: Vec<SessionFault>,
    /// Names of processes by id.
    pub names: BTreeMap<u32, String>,
    /// Names of sessions that were refused: later requests for them are refused as well.
    refused: Vec<String>,
    /// The tool whose command line makes the current request; `None` if the script makes it.
    tool: Option<ServedTool>,
    /// Kernel events that any session logs or has logged: a bit for each.
    logged: u64,
    /// Kernel events with stacks: a bit for each.
    with_stacks: u64,
    /// Sessions with records that wait for earlier ones.
    unsettled: BTreeSet<usize>,
}

impl<'s> Etw<'s> {
    pub fn new(
        machine: &MachinePlan,
        clock: Clock,
        source: Source,
        faults: Vec<SessionFault>,
        replaces: bool,
        files: &'s mut dyn FileSystem,
        observer: &'s mut dyn Observer,
    ) -> Self {
        Etw {
            clock,
            machine: machine.clone(),
            providers: Vec::new(),
            sessions: Vec::new(),
            files: NotedFiles::new(files),
            replaces,
            observer,
            tasks: Vec::new(),
            raised: 0,
            payload: Vec::new(),
            outcomes: Vec::new(),
            source,
            faults,
            names: BTreeMap::new(),
            refused: Vec::new(),
            tool: None,
            logged: 0,
            with_stacks: 0,
            unsettled: BTreeSet::new(),
        }
    }

    /// The version of Windows.
    pub fn os(&self) -> WindowsVersion {
        self.machine.os
    }

    /// The version of the kernel's events.
    pub fn kernel_event_version(&self) -> u32 {
        self.machine.kernel_event_version()
    }

    /// Width of the kernel's pointers.
    pub fn pointer_size(&self) -> PointerSize {
        self.machine.pointer_size
    }

    /// Whether any session logs this kind of kernel event, or did before its flags changed.
    pub fn logs(&self, event: KernelEvent) -> bool {
        self.logged & event.bit() != 0
    }

    /// Whether any session takes stacks with this kind of kernel event.
    pub fn takes_stack(&self, event: KernelEvent) -> bool {
        self.with_stacks & event.bit() != 0
    }

    /// Updates the summary of the kernel flags of all sessions.
    fn update_kernel_summary(&mut self) {
        self.logged = 0;
        self.with_stacks = 0;
        for session in self.sessions.iter().filter(|session| session.is_running()) {
            // Events that a session logged before are reported with the outcome "disabled".
            self.logged |= session.kernel.logged_bits() | session.logged_before;
            self.with_stacks |= session.kernel.stack_bits();
        }
    }

    /// The index of a provider, which is added if it is new.
    pub fn provider(&mut self, guid: Guid, classic: bool) -> ProviderIndex {
        let index = self.providers.iter().position(|p| p.guid == guid);
        ProviderIndex(index.unwrap_or_else(|| {
            self.providers.push(Provider {
                guid,
                classic,
                registrants: Vec::new(),
                enables: Vec::new(),
                former: Vec::new(),
                union: CombinedEnablement::default(),
                scoped: false,
            });
            self.providers.len() - 1
        }))
    }

    /// Registers a provider, which is called back at once if it is enabled.
    pub fn register(
        &mut self,
        guid: Guid,
        classic: bool,
        registrant: Registrant,
    ) -> (ProviderIndex, Option<EnableCallback>) {
        let index = self.provider(guid, classic);
        let Some(provider) = self.providers.get_mut(index.0) else {
            return (index, None);
        };
        provider.classic = classic;
        provider.registrants.push(registrant);
        let pid = registrant.pid;
        let name = self.names.get(&pid).map_or("", String::as_str);
        let union = provider.seen(pid, || name);
        let callback = EnableCallback {
            provider: guid,
            registrant,
            union,
            capture_state: false,
        };
        (index, union.enabled.then_some(callback))
    }

    /// Ids of the processes that registered any of these providers, sorted.
    pub fn registered(&self, guids: impl Iterator<Item = Guid>) -> Vec<u32> {
        let guids: Vec<Guid> = guids.collect();
        let asked = self.providers.iter().filter(|p| guids.contains(&p.guid));
        let mut pids: Vec<u32> = asked
            .flat_map(|p| p.registrants.iter().map(|r| r.pid))
            .collect();
        pids.sort_unstable();
        pids.dedup();
        pids
    }

    /// Removes all registrations of a process.
    pub fn unregister(&mut self, pid: u32) {
        for provider in &mut self.providers {
            provider.registrants.retain(|r| r.pid != pid);
        }
    }

    /// The combined enablement of a provider in a process.
    pub fn seen(&self, provider: ProviderIndex, pid: u32) -> CombinedEnablement {
        let Some(provider) = self.providers.get(provider.0) else {
            return CombinedEnablement::default();
        };
        provider.seen(pid, || self.names.get(&pid).map_or("", String::as_str))
    }

    /// What a classic provider received from its session, if it is enabled in a process.
    pub fn seen_by_classic(&self, provider: ProviderIndex, pid: u32) -> Option<ClassicEnablement> {
        let (_, plan) = self.providers.get(provider.0)?.enables.last()?;
        let name = self.names.get(&pid).map_or("", String::as_str);
        plan.reaches(pid.into(), || name)
            .then(|| ClassicEnablement::from(&plan.rule))
    }

    /// Whether a session enables a provider.
    pub fn enables(&self, session: usize, guid: Guid) -> bool {
        let provider = self.providers.iter().find(|p| p.guid == guid);
        provider.is_some_and(|p| p.enables.iter().any(|(index, _)| *index == session))
    }

    /// Whether any session enables a provider.
    pub fn is_enabled(&self, guid: Guid) -> bool {
        let provider = self.providers.iter().find(|p| p.guid == guid);
        provider.is_some_and(|p| !p.enables.is_empty())
    }

    /// Whether any session takes a stack with each event of a provider.
    pub fn wants_stacks(&self, provider: ProviderIndex) -> bool {
        self.providers
            .get(provider.0)
            .is_some_and(|p| p.enables.iter().any(|(_, e)| e.stacks))
    }

    /// Performs a task.
    pub fn perform(&mut self, task: EtwTask, at: Nanos) -> Result<()> {
        match task {
            EtwTask::FlushTimer(index) => {
                let Some(session) = self.sessions.get_mut(index).filter(|s| s.is_running()) else {
                    return Ok(());
                };
                session.seal_all();
                if session.plan.flush_timer > 0 {
                    let next = at.saturating_add(session.plan.flush_timer);
                    self.tasks.push((next, task));
                }
                self.keep_writing(index, at);
            }
            EtwTask::Written(index) => {
                let timestamp = self.timestamp(index, at);
                self.in_session(index, |session, files| session.written(timestamp, files))?;
                self.keep_writing(index, at);
            }
            EtwTask::Delivered(index) => {
                let timestamp = self.timestamp(index, at);
                self.in_session(index, |session, _| session.delivered(timestamp))?;
                self.report_buffers(index)?;
                self.keep_writing(index, at);
            }
        }
        let (EtwTask::FlushTimer(index) | EtwTask::Written(index) | EtwTask::Delivered(index)) =
            task;
        self.report_buffers(index)
    }

    /// Nothing before a time can come any more: sessions without buffers per processor write the
    /// records before it.
    pub fn settle(&mut self, before: Nanos, now: Nanos) -> Result<()> {
        let mut at = 0;
        while let Some(&index) = self.unsettled.range(at..).next() {
            at = index.saturating_add(1);
            let sealed = self.in_session(index, |session, _| session.settle(before))?;
            let sealed = sealed.unwrap_or(false);
            if self.sessions.get(index).is_none_or(Session::is_settled) {
                self.unsettled.remove(&index);
            }
            if sealed {
                self.keep_writing(index, now);
            }
        }
        Ok(())
    }

    /// Calls a function of a session with the file system. Its error gets the name of the session.
    fn in_session<T>(
        &mut self,
        index: usize,
        call: impl FnOnce(&mut Session, &mut dyn FileSystem) -> etl_format::Result<T>,
    ) -> Result<Option<T>> {
        let Some(session) = self.sessions.get_mut(index) else {
            return Ok(None);
        };
        let called = call(session, &mut self.files);
        Ok(Some(called.map_err(session::failed(&session.plan))?))
    }

    /// Reports something that is not an event, in words.
    pub fn report_action(&mut self, at: Nanos, description: &str) -> Result<()> {
        self.observer.observe(&Fact::Action { at, description })
    }

    /// Reports the buffers of a session whose outcome is new, and the buffers of other sessions
    /// whose files were created again.
    fn report_buffers(&mut self, index: usize) -> Result<()> {
        for file in self.files.take_created() {
            for other in (0..self.sessions.len()).filter(|other| *other != index) {
                let session = self.sessions.get_mut(other).filter(|_| self.replaces);
                if session.is_some_and(|session| session.replaced(&file)) {
                    self.report_outcomes(other)?;
                }
            }
        }
        self.report_outcomes(index)
    }

    fn report_outcomes(&mut self, index: usize) -> Result<()> {
        let session = self.sessions.get_mut(index);
        let reports = session
            .map(Session::take_buffer_reports)
            .unwrap_or_default();
        for buffer in &reports {
            self.observer.observe(&Fact::Buffer {
                session: index,
                buffer,
            })?;
        }
        Ok(())
    }

    /// Starts to write, and to deliver, the next sealed buffer of a session.
    fn keep_writing(&mut self, index: usize, at: Nanos) {
        let Some(session) = self.sessions.get_mut(index) else {
            return;
        };
        if let Some(bytes) = session.next_write() {
            let time =
                u128::from(bytes) * 1_000_000_000 / u128::from(self.machine.disk_speed.max(1));
            let done = at.saturating_add(u64::try_from(time).unwrap_or(u64::MAX).max(1));
            self.tasks.push((done, EtwTask::Written(index)));
        }
        if let Some((bytes, speed)) = session.next_delivery() {
            let time = u128::from(bytes) * 1_000_000_000 / u128::from(speed.max(1));
            let done = at.saturating_add(u64::try_from(time).unwrap_or(u64::MAX).max(1));
            self.tasks.push((done, EtwTask::Delivered(index)));
        }
    }

    /// The performance counter at a simulated time.
    pub fn performance_counter(&self, at: Nanos) -> i64 {
        self.clock.timestamp(ClockType::QPC, at)
    }

    /// The time since the machine was started.
    pub fn since_boot(&self, at: Nanos) -> Nanos {
        self.clock.uptime.saturating_add(at)
    }

    /// The raw timestamp of a session at a simulated time.
    pub fn timestamp(&self, session: usize, at: Nanos) -> i64 {
        self.sessions
            .get(session)
            .map_or(0, |s| s.timestamp(&self.clock, at))
    }
}

impl Provider {
    /// The combined enablement in one process, without the sessions that exclude the process.
    fn seen<'n>(&self, pid: u32, name: impl FnOnce() -> &'n str) -> CombinedEnablement {
        if !self.scoped {
            return self.union;
        }
        let name = name();
        let here = self
            .enables
            .iter()
            .map(|(_, e)| e)
            .filter(|e| e.reaches(pid.into(), || name));
        CombinedEnablement::of(here.map(|e| &e.rule))
    }

    /// Updates the combined enablement.
    fn update_union(&mut self) {
        self.union = CombinedEnablement::of(self.enables.iter().map(|(_, e)| &e.rule));
        self.scoped = self
            .enables
            .iter()
            .any(|(_, plan)| !plan.processes.is_empty() || !plan.executables.is_empty());
    }

    /// The calls of its enable callbacks after a change of these settings, in the processes where
    /// any of them applies.
    fn callbacks(
        &self,
        changed: &[EnablePlan],
        names: &BTreeMap<u32, String>,
    ) -> Vec<EnableCallback> {
        let mut callbacks = Vec::new();
        for registrant in &self.registrants {
            let pid = registrant.pid;
            let name = names.get(&pid).map_or("", String::as_str);
            if changed.iter().any(|plan| plan.reaches(pid.into(), || name)) {
                callbacks.push(EnableCallback {
                    provider: self.guid,
                    registrant: *registrant,
                    union: self.seen(pid, || name),
                    capture_state: false,
                });
            }
        }
        callbacks
    }

    /// Removes the settings of some sessions, and returns them.
    fn remove(&mut self, of: impl Fn(usize) -> bool) -> Vec<EnablePlan> {
        self.enables
            .extract_if(.., |(session, _)| of(*session))
            .map(|(_, plan)| plan)
            .collect()
    }

    fn drop_session(
        &mut self,
        session: usize,
        names: &BTreeMap<u32, String>,
    ) -> Vec<EnableCallback> {
        let gone = self.remove(|s| s == session);
        if gone.is_empty() {
            return Vec::new();
        }
        self.former.push(session);
        self.update_union();
        self.callbacks(&gone, names)
    }
}
