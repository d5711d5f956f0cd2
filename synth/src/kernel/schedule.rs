//! Which thread a processor runs: switches, threads that become ready, and stacks behind them.

use etl_schema::encode::OwnedValue;

use etl_schema::providers::kernel_class::{PERF_INFO, STACK_WALK, THREAD};

use super::{Recipients, classic, emit, layout, log_to_session};
use crate::error::Result;
use crate::etw::{Etw, Origin, values};
use crate::machine::LeaveReason;
use crate::model::KernelEvent;
use crate::truth::RecordFormat;

/// A thread as a switch tells of it.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct SwitchThread {
    pub tid: u32,
    /// Its priority; 0 is the idle thread's.
    pub priority: u8,
    /// The processor that it is at home on.
    pub ideal: u16,
}

/// What a switch tells.
#[derive(Clone, Copy, Debug)]
pub(crate) struct ContextSwitch {
    pub old: SwitchThread,
    pub new: SwitchThread,
    /// Why the old thread leaves; `None` of the idle thread.
    pub why: Option<LeaveReason>,
    /// How long the new one has been away, in ticks of the timer.
    pub waited: u32,
}

/// Reason, mode and state of a thread that leaves its processor, as the kernel numbers them.
const fn left(why: Option<LeaveReason>) -> (u8, i8, u8) {
    match why {
        // The idle thread stays what it is: running, in the kernel.
        None => (0, 0, 2),
        // WrPreempted, and ready.
        Some(LeaveReason::Preempted) => (32, 0, 1),
        // UserRequest: it waits, in user mode.
        Some(LeaveReason::Waits) => (6, 1, 5),
        // WrTerminated, and terminated.
        Some(LeaveReason::Ended) => (22, 0, 4),
    }
}

/// Tells of a switch.
pub(crate) fn context_switch(etw: &mut Etw<'_>, s: &ContextSwitch, origin: &Origin) -> Result<()> {
    let version = match etw.os() {
        (..=6, ..=1, _) => 2,
        (..=6, ..) => 3,
        _ => 4,
    };
    // The layout has stayed as it was.
    let table = layout(THREAD, 36, 2)?;
    let (reason, mode, state) = left(s.why);
    let priority = |p: SwitchThread| i8::try_from(p.priority).unwrap_or(i8::MAX);
    let values = values![
        s.new.tid,
        s.old.tid,
        priority(s.new),
        priority(s.old),
        0u8,
        0i8,
        reason,
        mode,
        state,
        u8::try_from(s.old.ideal).unwrap_or(u8::MAX),
        s.waited,
        0i32
    ];
    let event = KernelEvent::ContextSwitch;
    let format = RecordFormat::PerfInfo(event.hook());
    emit(etw, Recipients::All, origin, &classic(table, format, 36, version, &values), event)
}

/// Tells that a thread that waited is ready, because a timer has run down.
pub(crate) fn ready_thread(etw: &mut Etw<'_>, tid: u32, origin: &Origin) -> Result<()> {
    let table = layout(THREAD, 50, 0)?;
    // Its wait is over, without a boost; a deferred procedure of the timer says so.
    let values = values![tid, 1u8, 0i8, 1u8, 0u8];
    let event = KernelEvent::ReadyThread;
    let format = RecordFormat::PerfInfo(event.hook());
    emit(etw, Recipients::All, origin, &classic(table, format, 50, 2, &values), event)
}

/// The stack that goes with the event of a moment, for each session that takes one.
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

/// A stack for one session: it names the event by the session's own timestamp.
fn stack_in(etw: &mut Etw<'_>, session: usize, frames: &[u64], origin: &Origin) -> Result<()> {
    if frames.is_empty() {
        return Ok(());
    }
    let table = layout(STACK_WALK, 32, 0)?;
    let timestamp = etw.timestamp(session, origin.at);
    let addresses: Vec<OwnedValue> = frames.iter().map(|a| OwnedValue::Pointer(*a)).collect();
    let values = values![timestamp.cast_unsigned(), origin.pid, origin.tid, addresses];
    let event = classic(table, RecordFormat::PerfInfo(0x1820), 32, 2, &values);
    log_to_session(etw, session, origin, &event)
}

/// A sample of a processor, and the stack that goes with it.
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

/// How often samples are taken: 73 when that begins, 74 when it ends.
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
    let format = RecordFormat::PerfInfo(0x0f00 | u16::from(opcode));
    log_to_session(etw, session, origin, &classic(table, format, opcode, 3, &values))
}
