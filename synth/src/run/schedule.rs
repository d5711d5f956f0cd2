//! Context switches: which thread runs on a processor, and the events about it.

use crate::clr::thread_stack;
use crate::error::Result;
use crate::etw::Origin;
use crate::kernel::{ContextSwitch, SwitchThread};
use crate::machine::{LeaveReason, Switch};
use crate::model::KernelEvent;
use crate::time::Nanos;

use super::op_queue::Op;
use super::{Simulator, Task};

/// The priority of threads in events.
pub(super) const PRIORITY: i8 = 8;
/// A timer tick.
const TICK: Nanos = 15_625_000;

impl Simulator<'_> {
    /// Threads that are finished by a time leave a processor.
    pub(super) fn settle(&mut self, processor: usize, at: Nanos) -> Result<()> {
        loop {
            let threads = &self.machine.threads;
            let Some(state) = self.machine.processors.get_mut(processor) else {
                return Ok(());
            };
            let switch = state.settle(at, |thread| {
                threads
                    .get(thread)
                    .is_some_and(|thread| thread.busy && !thread.blocked)
            });
            let Some(switch) = switch else { return Ok(()) };
            self.switched(processor, switch)?;
        }
    }

    /// The same on all processors.
    pub(super) fn settle_all(&mut self, at: Nanos) -> Result<()> {
        (0..self.machine.processors.len()).try_for_each(|processor| self.settle(processor, at))
    }

    /// A thread takes a processor.
    pub(super) fn enter(&mut self, processor: usize, thread: usize, at: Nanos) -> Result<()> {
        self.settle(processor, at)?;
        let Some(state) = self.machine.processors.get_mut(processor) else {
            return Ok(());
        };
        match state.enter(thread, at) {
            Some(switch) => self.switched(processor, switch),
            None => Ok(()),
        }
    }

    /// The thread that has a processor computes there.
    pub(super) fn compute(&mut self, processor: usize, thread: usize, time: Nanos) {
        if let Some(state) = self.machine.processors.get_mut(processor) {
            state.compute(thread, time);
            self.plan_switch(processor);
        }
    }

    /// A thread has ended and leaves its processor.
    pub(super) fn remove_from_processor(&mut self, thread: usize, at: Nanos) -> Result<()> {
        let Some(found) = self.machine.threads.get(thread) else {
            return Ok(());
        };
        let processor = usize::from(found.processor);
        self.settle(processor, at)?;
        // Whether or not a session logs the switch.
        self.machine.advance(processor, at);
        let Some(state) = self.machine.processors.get_mut(processor) else {
            return Ok(());
        };
        match state.end(thread, at) {
            Some(switch) => self.switched(processor, switch),
            None => Ok(()),
        }
    }

    /// When the threads that an operation takes something away from have done what they do now:
    /// their operations are simulated in one go, up to later than now. Nothing else is waited for.
    pub(super) fn others_until(&self, thread: usize, op: &Op) -> Nanos {
        match op {
            Op::EndThread(other) => self.busy_until(*other),
            Op::EndProcess | Op::UnloadImage(_) => self.process_busy_until(thread),
            Op::Clr(_, op) if op.takes_code_away() => self.process_busy_until(thread),
            _ => 0,
        }
    }

    /// When a thread has done what it does now.
    fn busy_until(&self, thread: usize) -> Nanos {
        match self.machine.threads.get(thread) {
            Some(thread) if thread.started && !thread.ended => {
                self.machine.horizon(usize::from(thread.processor))
            }
            _ => 0,
        }
    }

    /// The same for all threads of the process of a thread.
    fn process_busy_until(&self, thread: usize) -> Nanos {
        let state = self.machine.threads.get(thread);
        let Some(process) = state.and_then(|t| self.machine.processes.get(t.process)) else {
            return 0;
        };
        let times = process
            .threads
            .iter()
            .map(|thread| self.busy_until(*thread));
        times.max().unwrap_or(0)
    }

    /// The time before which nothing can happen any more. A switch whose thread had more to do is
    /// found later, at the time when the thread was done.
    pub(super) fn nothing_before(&self) -> Nanos {
        if !self.etw.logs(KernelEvent::ContextSwitch) {
            return self.now;
        }
        let switches = self
            .machine
            .processors
            .iter()
            .filter_map(|p| Some(p.until()?.max(p.horizon)));
        switches.fold(self.now, Nanos::min)
    }

    /// Whether the next operation of a thread is put off until the other threads are done, so that
    /// what comes before it in time is simulated before it. It is put off once: where processors
    /// are never idle, others are never done.
    pub(super) fn waits_for_others(&mut self, thread: usize, others: Nanos) -> bool {
        let now = self.now;
        let Some(found) = self.machine.threads.get_mut(thread) else {
            return false;
        };
        found.waited = others > now && !found.waited;
        found.waited
    }

    /// Plans the switch at the end of the current thread's time, if a session logs switches.
    pub(super) fn plan_switch(&mut self, processor: usize) {
        let until = self
            .machine
            .processors
            .get(processor)
            .and_then(|p| p.until());
        if let Some(until) = until.filter(|_| self.etw.logs(KernelEvent::ContextSwitch)) {
            self.plan(until, Task::Switch(processor));
        }
    }

    /// A processor has gone from one thread to another.
    fn switched(&mut self, processor: usize, switch: Switch) -> Result<()> {
        let at = switch.at;
        let mut why = None;
        if let Some((old, leaves)) = switch.old
            && let Some(old) = self.machine.threads.get_mut(old)
        {
            old.left = at;
            why = Some(if old.ended {
                LeaveReason::Ended
            } else {
                leaves
            });
        }
        if !self.etw.logs(KernelEvent::ContextSwitch) {
            return Ok(());
        }
        let away = switch
            .new
            .and_then(|t| self.machine.threads.get(t))
            .map_or(0, |t| t.left);
        let switched = ContextSwitch {
            old: self.switch_thread(switch.old.map(|(thread, _)| thread), processor),
            new: self.switch_thread(switch.new, processor),
            why,
            waited: u32::try_from(at.saturating_sub(away) / TICK).unwrap_or(u32::MAX),
        };
        let origin = self.origin_on(processor, switch.new, at);
        self.etw.log_switch(&switched, &origin)?;
        self.take_stack(KernelEvent::ContextSwitch, switch.new, &origin)?;
        self.machine.advance(processor, at);
        self.plan_switch(processor);
        Ok(())
    }

    /// A thread in the event of a switch, or the idle thread of the processor.
    fn switch_thread(&self, thread: Option<usize>, processor: usize) -> SwitchThread {
        match thread.and_then(|thread| self.machine.threads.get(thread)) {
            Some(thread) => SwitchThread {
                tid: thread.tid,
                priority: PRIORITY,
                ideal: thread.processor,
            },
            None => SwitchThread {
                ideal: u16::try_from(processor).unwrap_or(0),
                ..SwitchThread::default()
            },
        }
    }

    /// A waiting thread has work: a timer wakes it on its processor.
    pub(super) fn wake(&mut self, thread: usize) -> Result<()> {
        let Some(found) = self.machine.threads.get(thread) else {
            return Ok(());
        };
        let tid = found.tid;
        let processor = usize::from(found.processor);
        let lives = found.started && !found.ended;
        self.settle(processor, self.now)?;
        let Some(state) = self.machine.processors.get(processor) else {
            return Ok(());
        };
        if !lives || !self.etw.logs(KernelEvent::ReadyThread) || state.has(thread) {
            return Ok(());
        }
        let at = self.now.max(state.horizon);
        let current = state.current();
        let origin = self.origin_on(processor, current, at);
        self.etw.log_ready(tid, &origin)?;
        self.take_stack(KernelEvent::ReadyThread, current, &origin)?;
        self.machine.advance(processor, at);
        Ok(())
    }

    /// Logs a stack of a thread after a kernel event, for the sessions that take one.
    pub(super) fn take_stack(
        &mut self,
        event: KernelEvent,
        thread: Option<usize>,
        origin: &Origin,
    ) -> Result<()> {
        let Some(thread) = thread.filter(|_| self.etw.takes_stack(event)) else {
            return Ok(());
        };
        let Some(found) = self.machine.threads.get(thread) else {
            return Ok(());
        };
        let process = self.machine.processes.get(found.process);
        let Some(process) = process.filter(|p| p.is_alive()) else {
            return Ok(());
        };
        let mut rng = found.stack_rng(origin.at);
        let frames = thread_stack(&self.clrs, process, origin.at, &mut rng).frames;
        self.etw.log_stack(event, &frames, origin)
    }

    /// The origin of an event of a processor that runs a thread or is idle.
    pub(super) fn origin_on(&self, processor: usize, thread: Option<usize>, at: Nanos) -> Origin {
        // No thread has this index: the processor is idle.
        let origin = self.origin(thread.unwrap_or(usize::MAX), at);
        Origin {
            processor: u16::try_from(processor).unwrap_or(0),
            ..origin
        }
    }
}
