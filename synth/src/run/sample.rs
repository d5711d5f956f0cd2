//! The profiler: it samples every processor at each interval, idle ones too.

use crate::clr::thread_stack;
use crate::error::Result;
use crate::etw::Origin;
use crate::kernel;
use crate::model::KernelEvent;

use super::process::KERNEL;
use super::schedule::PRIORITY;
use super::{Simulator, Task};

/// Where an idle processor waits, in the kernel.
const IDLE: u64 = KERNEL + 0x15_f552;

/// The flags of a sample have the priority of the thread above their three lowest bits; those of
/// idle processors are 0x80 (the samples of net.4.5.2.x64.etl).
const FLAGS: u8 = PRIORITY.cast_unsigned() << 3;
const IDLE_FLAGS: u8 = 0x80;

impl Simulator<'_> {
    pub(super) fn sample(&mut self, session: usize) -> Result<()> {
        // After a change of the flags the next sample has another time.
        let due = |s: &&mut crate::etw::Session| s.is_running() && s.next_sample == Some(self.now);
        let Some(found) = self.etw.sessions.get_mut(session).filter(due) else {
            return Ok(());
        };
        let next = self.now.saturating_add(found.sample_interval);
        found.next_sample = Some(next);
        for processor in 0..self.machine.processors.len() {
            // An operation is not interrupted: the sample waits for its end.
            let at = self.now.max(self.machine.horizon(processor));
            self.settle(processor, at)?;
            let running = self.machine.processors.get(processor).and_then(|p| p.running(at));
            let Some(thread) = running else {
                let origin = self.origin_on(processor, None, at);
                let waits = kernel::address(origin.pointer_size, IDLE);
                self.etw.log_sample(session, (waits, IDLE_FLAGS), &origin)?;
                self.machine.advance(processor, at);
                continue;
            };
            let Some(process) = self.machine.threads.get(thread).map(|t| t.process) else {
                continue;
            };
            let Some(process) = self.machine.processes.get(process).filter(|p| p.is_alive()) else {
                continue;
            };
            let rng = self.machine.threads.get(thread).map(|t| t.stack_rng(at));
            let frames = thread_stack(&self.clrs, process, at, &mut rng.unwrap_or_default());
            let origin = self.origin(thread, at);
            let origin = Origin { processor: u16::try_from(processor).unwrap_or(0), ..origin };
            if let Some(&address) = frames.first() {
                self.etw.log_sample(session, (address, FLAGS), &origin)?;
                self.etw.log_stack_in(session, KernelEvent::Sample, &frames, &origin)?;
            }
            self.machine.advance(processor, at);
        }
        self.plan(next, Task::Sample(session));
        Ok(())
    }
}
