//! The profiler: at each interval it looks where every busy processor is.

use crate::clr::native_stack;
use crate::error::Result;
use crate::etw::Origin;
use crate::kernel;

use super::{Simulation, Task};

impl Simulation<'_> {
    pub(super) fn sample(&mut self, session: usize) -> Result<()> {
        let Some(found) = self.etw.sessions.get(session).filter(|s| s.is_running()) else {
            return Ok(());
        };
        let interval = found.plan.sample_interval;
        for processor in 0..self.machine.processors.len() {
            let horizon = self.machine.processors.get(processor).map_or(0, |p| p.horizon);
            // An operation is not interrupted: the sample waits until it is through.
            let at = self.now.max(horizon);
            self.settle(processor, at)?;
            let running = self.machine.processors.get(processor).and_then(|p| p.running(at));
            let Some(thread) = running else { continue };
            let Some(process) = self.machine.threads.get(thread).map(|t| t.process) else {
                continue;
            };
            let Some(process) = self.machine.processes.get(process).filter(|p| p.is_alive()) else {
                continue;
            };
            let runtime = process.clrs.iter().filter_map(|c| self.clrs.get(*c)).find(|c| c.started);
            let frames = match runtime {
                Some(runtime) => runtime.call_stack(0, at, process, &mut self.dice),
                None => native_stack(process, &mut self.dice),
            };
            let origin = self.origin(thread, at);
            let origin = Origin { processor: u16::try_from(processor).unwrap_or(0), ..origin };
            kernel::sample(&mut self.etw, session, &frames, &origin)?;
            if let Some(state) = self.machine.processors.get_mut(processor) {
                state.horizon = at;
            }
        }
        self.plan(self.now.saturating_add(interval), Task::Sample(session));
        Ok(())
    }
}
