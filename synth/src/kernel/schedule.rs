//! Events of processors: context switches, ready threads, samples, and the stacks after them.

use etl_format::constants::hook;
use etl_schema::encode::OwnedValue;
use etl_schema::providers::kernel_class::{PERF_INFO, STACK_WALK, THREAD};

use super::ClassicIdentity;
use crate::error::Result;
use crate::etw::{Etw, LogTarget, Origin, values};
use crate::machine::LeaveReason;
use crate::model::{KernelEvent, WindowsVersion};
use crate::time::Nanos;
use crate::truth::RecordFormat;

/// A thread in a context switch.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct SwitchThread {
    pub tid: u32,
    /// Its priority; 0 for the idle thread.
    pub priority: i8,
    /// Its ideal processor.
    pub ideal: u16,
}

/// A context switch.
#[derive(Clone, Copy, Debug)]
pub(crate) struct ContextSwitch {
    pub old: SwitchThread,
    pub new: SwitchThread,
    /// Why the old thread leaves; `None` for the idle thread.
    pub why: Option<LeaveReason>,
    /// How long the new thread has waited, in timer ticks.
    pub waited: u32,
}

/// Numbers of the wait reason, mode and state of a thread that leaves its processor.
const fn left(why: Option<LeaveReason>) -> (u8, i8, u8) {
    match why {
        // The idle thread: running, in kernel mode.
        None => (0, 0, 2),
        // WrPreempted, and ready.
        Some(LeaveReason::Preempted) => (32, 0, 1),
        // UserRequest: it waits, in user mode.
        Some(LeaveReason::Waits) => (6, 1, 5),
        // WrTerminated, and terminated.
        Some(LeaveReason::Ended) => (22, 0, 4),
    }
}

impl Etw<'_> {
    /// Logs a context switch.
    pub fn log_switch(&mut self, s: &ContextSwitch, origin: &Origin) -> Result<()> {
        // Since version 3, the mode is a bit among flags.
        let (version, layout) = match self.os() {
            WindowsVersion {
                major: ..=6,
                minor: ..=1,
                ..
            } => (2, 2),
            WindowsVersion { major: ..=6, .. } => (3, 3),
            _ => (4, 3),
        };
        let (reason, mode, state) = left(s.why);
        let mode: OwnedValue = if layout == 2 {
            mode.into()
        } else {
            mode.cast_unsigned().into()
        };
        let new = s.new.tid;
        let new_priority = s.new.priority;
        let SwitchThread {
            tid: old,
            priority: old_priority,
            ideal,
        } = s.old;
        let ideal = u8::try_from(ideal).unwrap_or(u8::MAX);
        let waited = s.waited;
        let values = values![
            new,
            old,
            new_priority,
            old_priority,
            0u8,
            0i8,
            reason,
            mode,
            state,
            ideal,
            waited,
            0i32
        ];
        let identity = ClassicIdentity {
            class: THREAD,
            opcode: 36,
            layout,
            version,
        };
        self.log_event(KernelEvent::ContextSwitch, identity, &values, origin)
    }

    /// Logs that a waiting thread is ready because a timer expired.
    pub fn log_ready(&mut self, tid: u32, origin: &Origin) -> Result<()> {
        // Its wait is over, without a boost, reported by the timer's deferred procedure.
        let values = values![tid, 1u8, 0i8, 1u8, 0u8];
        let identity = ClassicIdentity {
            class: THREAD,
            opcode: 50,
            layout: 0,
            version: 2,
        };
        self.log_event(KernelEvent::ReadyThread, identity, &values, origin)
    }

    /// Logs an event without process and thread in the sessions that enable it.
    fn log_event(
        &mut self,
        event: KernelEvent,
        identity: ClassicIdentity,
        values: &[OwnedValue],
        origin: &Origin,
    ) -> Result<()> {
        let format = RecordFormat::PerfInfo(event.hook());
        self.log_classic(LogTarget::Enabled(event), identity, format, values, origin)
    }

    /// Logs the stack of the last event in each session that takes one.
    pub fn log_stack(&mut self, event: KernelEvent, frames: &[u64], at: &Origin) -> Result<()> {
        for session in 0..self.sessions.len() {
            let session_state = self.sessions.get(session);
            if session_state.is_some_and(|s| s.is_running() && s.kernel.logs(event)) {
                self.log_stack_in(session, event, frames, at)?;
            }
        }
        Ok(())
    }

    /// Logs a stack in a session that takes stacks with an event. It refers to the event by the
    /// timestamp in this session.
    pub fn log_stack_in(
        &mut self,
        session: usize,
        event: KernelEvent,
        frames: &[u64],
        origin: &Origin,
    ) -> Result<()> {
        let takes = self
            .sessions
            .get(session)
            .is_some_and(|s| s.kernel.takes_stack(event));
        if frames.is_empty() || !takes {
            return Ok(());
        }
        let timestamp = self.timestamp(session, origin.at).cast_unsigned();
        let addresses: Vec<OwnedValue> = frames.iter().map(|a| OwnedValue::Pointer(*a)).collect();
        let values = values![timestamp, origin.pid, origin.tid, addresses];
        let to = LogTarget::Session(session);
        let format = RecordFormat::PerfInfo(hook::STACK);
        let identity = ClassicIdentity {
            class: STACK_WALK,
            opcode: 32,
            layout: 0,
            version: 2,
        };
        self.log_classic(to, identity, format, &values, origin)
    }

    /// Logs a sample of a processor: its address and flags.
    pub fn log_sample(
        &mut self,
        session: usize,
        address: u64,
        flags: u8,
        origin: &Origin,
    ) -> Result<()> {
        let event = KernelEvent::Sample;
        let to = LogTarget::Session(session);
        let values = values![OwnedValue::Pointer(address), origin.tid, 1u16, flags, 0u8];
        let format = RecordFormat::PerfInfo(event.hook());
        let identity = ClassicIdentity {
            class: PERF_INFO,
            opcode: 46,
            layout: 2,
            version: 2,
        };
        self.log_classic(to, identity, format, &values, origin)
    }

    /// Logs the sample interval and that before: opcode 72 where it changes, 73 at the start, 74 at
    /// the end.
    pub fn log_interval(
        &mut self,
        session: usize,
        opcode: u8,
        old: Nanos,
        origin: &Origin,
    ) -> Result<()> {
        let Some(found) = self.sessions.get(session) else {
            return Ok(());
        };
        let [new, old] = [found.sample_interval, old]
            .map(|interval| u32::try_from(interval / 100).unwrap_or(u32::MAX));
        let values = values![0u32, new, old, "Timer"];
        let format = RecordFormat::PerfInfo(hook::SAMPLE & 0xff00 | u16::from(opcode));
        let to = LogTarget::Session(session);
        let identity = ClassicIdentity {
            class: PERF_INFO,
            opcode,
            layout: 3,
            version: 3,
        };
        self.log_classic(to, identity, format, &values, origin)
    }
}
