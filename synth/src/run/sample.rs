//! The profiler: it samples every busy processor at each interval.

use crate::clr::thread_stack;
use crate::error::Result;
use crate::etw::Origin;

use super::{Simulator, Task};

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
            let Some(thread) = running else { continue };
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
            self.etw.log_sample(session, &frames, &origin)?;
            self.machine.advance(processor, at);
        }
        self.plan(next, Task::Sample(session));
        Ok(())
    }
}
