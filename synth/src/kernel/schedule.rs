//! Events of processors: context switches, ready threads, samples, and the stacks after them.

use etl_format::constants::hook;
use etl_schema::encode::OwnedValue;

use etl_schema::providers::kernel_class::{PERF_INFO, STACK_WALK, THREAD};

use super::{Lifecycle, classic, emit, layout, log_to_session};
use crate::error::Result;
use crate::etw::{Etw, Origin, values};
use crate::machine::LeaveReason;
use crate::model::KernelEvent;
use crate::truth::RecordFormat;

/// A thread in a context switch.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct SwitchThread {
    pub tid: u32,
    /// Its priority; 0 for the idle thread.
    pub priority: u8,
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

/// Logs a context switch.
pub(crate) fn context_switch(etw: &mut Etw<'_>, s: &ContextSwitch, origin: &Origin) -> Result<()> {
    let version = match etw.os() {
        (..=6, ..=1, _) => 2,
        (..=6, ..) => 3,
        _ => 4,
    };
    // All versions have the same layout.
    let table = layout(THREAD, 36, 2)?;
    let (reason, mode, state) = left(s.why);
    let priority = |p: SwitchThread| i8::try_from(p.priority).unwrap_or(i8::MAX);
    let (new, old) = (s.new.tid, s.old.tid);
    let (new_prio, old_prio) = (priority(s.new), priority(s.old));
    let ideal = u8::try_from(s.old.ideal).unwrap_or(u8::MAX);
    let waited = s.waited;
    let values =
        values![new, old, new_prio, old_prio, 0u8, 0i8, reason, mode, state, ideal, waited, 0i32];
    let event = KernelEvent::ContextSwitch;
    let format = RecordFormat::PerfInfo(event.hook());
    emit(etw, Lifecycle::Start, origin, &classic(table, format, 36, version, &values), event)
}

/// Logs that a waiting thread is ready because a timer expired.
pub(crate) fn ready_thread(etw: &mut Etw<'_>, tid: u32, origin: &Origin) -> Result<()> {
    let table = layout(THREAD, 50, 0)?;
    // Its wait is over, without a boost, reported by the timer's deferred procedure.
    let values = values![tid, 1u8, 0i8, 1u8, 0u8];
    let event = KernelEvent::ReadyThread;
    let format = RecordFormat::PerfInfo(event.hook());
    emit(etw, Lifecycle::Start, origin, &classic(table, format, 50, 2, &values), event)
}

/// Logs the stack of the last event in each session that takes one.
pub(crate) fn stack(
    etw: &mut Etw<'_>,
    event: KernelEvent,
    frames: &[u64],
    origin: &Origin,
) -> Result<()> {
    for session in 0..etw.sessions.len() {
        let takes = etw.sessions.get(session).is_some_and(|s| {
            let kernel = &s.kernel;
            s.is_running() && kernel.logs(event) && kernel.takes_stack(event)
        });
        if takes {
            stack_in(etw, session, frames, origin)?;
        }
    }
    Ok(())
}

/// Logs a stack in a session; it refers to its event by the timestamp in that session.
fn stack_in(etw: &mut Etw<'_>, session: usize, frames: &[u64], origin: &Origin) -> Result<()> {
    if frames.is_empty() {
        return Ok(());
    }
    let table = layout(STACK_WALK, 32, 0)?;
    let timestamp = etw.timestamp(session, origin.at);
    let addresses: Vec<OwnedValue> = frames.iter().map(|a| OwnedValue::Pointer(*a)).collect();
    let values = values![timestamp.cast_unsigned(), origin.pid, origin.tid, addresses];
    let event = classic(table, RecordFormat::PerfInfo(hook::STACK), 32, 2, &values);
    log_to_session(etw, session, origin, &event)
}

/// Logs a sample of a processor, and its stack.
pub(crate) fn sample(
    etw: &mut Etw<'_>,
    session: usize,
    frames: &[u64],
    origin: &Origin,
) -> Result<()> {
    let Some(&address) = frames.first() else { return Ok(()) };
    let table = layout(PERF_INFO, 46, 2)?;
    let values = values![OwnedValue::Pointer(address), origin.tid, 1u16, 0u8, 0u8];
    let format = RecordFormat::PerfInfo(KernelEvent::Sample.hook());
    log_to_session(etw, session, origin, &classic(table, format, 46, 2, &values))?;
    let takes =
        etw.sessions.get(session).is_some_and(|s| s.kernel.takes_stack(KernelEvent::Sample));
    if takes { stack_in(etw, session, frames, origin) } else { Ok(()) }
}

/// Logs the sample interval: opcode 73 at the start, 74 at the end.
pub(crate) fn interval(
    etw: &mut Etw<'_>,
    session: usize,
    opcode: u8,
    origin: &Origin,
) -> Result<()> {
    let Some(every) = etw.sessions.get(session).map(|s| s.sample_interval) else {
        return Ok(());
    };
    let table = layout(PERF_INFO, opcode, 3)?;
    let units = u32::try_from(every / 100).unwrap_or(u32::MAX);
    let values = values![0u32, units, units, "Timer"];
    let format = RecordFormat::PerfInfo(hook::SAMPLE & 0xff00 | u16::from(opcode));
    log_to_session(etw, session, origin, &classic(table, format, opcode, 3, &values))
}
