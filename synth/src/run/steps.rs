//! The scenario's steps: what controllers do, and what processes are told to do.

use crate::error::Result;
use crate::etw::{Origin, impossible};
use crate::kernel::{self, Change};
use crate::model::{Action, SessionPlan};

use super::{Simulation, Task};

impl Simulation<'_> {
    /// A step is due; one that repeats is planned again.
    pub(super) fn step(&mut self, index: usize) -> Result<()> {
        let scenario = self.scenario;
        let Some(step) = scenario.steps.get(index) else { return Ok(()) };
        if let Some(repeat) = &step.repeat {
            if self.now >= repeat.until {
                return Ok(());
            }
            self.plan(self.now.saturating_add(repeat.period.max(1)), Task::Step(index));
        }
        let now = self.now;
        if let Some(what) = describe(&step.action) {
            self.etw.witness().happened(now, &what)?;
        }
        match &step.action {
            Action::Start(plan) => self.start(plan),
            Action::Stop { session } => {
                self.before_stop(session)?;
                let notices = self.etw.stop(session, self.settled())?;
                self.tell(notices);
                Ok(())
            }
            Action::Enable { session, plan } => {
                let notices = self.etw.enable(session, plan, now)?;
                self.tell(notices);
                Ok(())
            }
            Action::Disable { session, provider } => {
                let notices = self.etw.disable(session, *provider, now)?;
                self.tell(notices);
                Ok(())
            }
            Action::CaptureState { session, provider } => {
                let notices = self.etw.capture_state(session, *provider, now)?;
                self.tell(notices);
                Ok(())
            }
            Action::Flush { session } => self.etw.flush(session, now),
            Action::Merge { inputs, output } => self.etw.merge(inputs, output, now),
            Action::Work { process, work } => self.work(*process, work),
        }
    }

    /// Where controllers run: the shell.
    fn controller(&self) -> (u32, u32) {
        let shell = self.machine.processes.iter().find(|p| p.pid == 1000);
        let thread = shell.and_then(|p| self.machine.threads.get(*p.threads.first()?));
        (1000, thread.map_or(1004, |t| t.tid))
    }

    /// The latest moment that any processor has come to.
    fn settled(&self) -> u64 {
        self.machine.processors.iter().map(|p| p.horizon).fold(self.now, u64::max)
    }

    fn start(&mut self, plan: &SessionPlan) -> Result<()> {
        // A session sees nothing of what was before it, though a processor may be ahead of now.
        let controller = self.controller();
        let index = self.etw.sessions.len();
        let notices = self.etw.start(plan, self.now, controller)?;
        self.kernel_rundown(index, Change::AtStart)?;
        self.tell(notices);
        if plan.kernel.profile {
            self.kernel_interval(index, 73)?;
            self.plan(self.now.saturating_add(plan.sample_interval), Task::Sample(index));
        }
        Ok(())
    }

    fn before_stop(&mut self, name: &str) -> Result<()> {
        let found = self
            .etw
            .sessions
            .iter()
            .position(|s| s.is_running() && s.plan.name.eq_ignore_ascii_case(name));
        match found {
            Some(index) => {
                if self.etw.sessions.get(index).is_some_and(|s| s.plan.kernel.profile) {
                    self.kernel_interval(index, 74)?;
                }
                self.kernel_rundown(index, Change::AtEnd)
            }
            None => Err(impossible(self.now, format!("no session \"{name}\" is running"))),
        }
    }

    /// The kernel tells a session what is there, on the first processor.
    fn kernel_rundown(&mut self, session: usize, change: Change) -> Result<()> {
        let origin = self.controller_origin();
        kernel::rundown(&mut self.etw, session, change, &self.machine, &origin)?;
        self.passed(&origin);
        Ok(())
    }

    /// The kernel tells how often it samples.
    fn kernel_interval(&mut self, session: usize, opcode: u8) -> Result<()> {
        let origin = self.controller_origin();
        kernel::interval(&mut self.etw, session, opcode, &origin)?;
        self.passed(&origin);
        Ok(())
    }

    /// The controller's thread, on the first processor.
    fn controller_origin(&self) -> Origin {
        let (pid, tid) = self.controller();
        let horizon = self.machine.processors.first().map_or(0, |p| p.horizon);
        Origin {
            at: self.now.max(horizon),
            processor: 0,
            pid,
            tid,
            pointer_size: etl_format::constants::PointerSize::P8,
            activity: etl_format::Guid::ZERO,
            user_time: 0,
        }
    }

    fn passed(&mut self, origin: &Origin) {
        if let Some(processor) = self.machine.processors.first_mut() {
            processor.horizon = processor.horizon.max(origin.at);
        }
    }
}

/// What a controller does, for the timeline; what processes do shows in their events.
fn describe(action: &Action) -> Option<String> {
    Some(match action {
        Action::Start(plan) => {
            let file = plan.file.as_deref().map_or("memory".to_owned(), |f| format!("\"{f}\""));
            let providers: Vec<String> = plan.providers.iter().map(asked).collect();
            let kernel = if plan.kernel == crate::model::KernelFlags::default() {
                String::new()
            } else {
                format!(", kernel {:?}", plan.kernel)
            };
            format!(
                "session \"{}\" starts into {file}{}{}{kernel}",
                plan.name,
                if providers.is_empty() { "" } else { ", enables " },
                providers.join(", ")
            )
        }
        Action::Stop { session } => format!("session \"{session}\" is stopped"),
        Action::Enable { session, plan } => {
            format!("session \"{session}\" enables {}", asked(plan))
        }
        Action::Disable { session, provider } => {
            format!("session \"{session}\" disables {provider}")
        }
        Action::CaptureState { session, provider } => {
            format!("session \"{session}\" asks {provider} for its state")
        }
        Action::Flush { session } => format!("session \"{session}\" is flushed"),
        Action::Merge { inputs, output } => format!("{} become {output}", inputs.join(", ")),
        Action::Work { .. } => return None,
    })
}

fn asked(plan: &crate::model::EnablePlan) -> String {
    format!("{}:{:#x}:{}", plan.provider, plan.rule.any, plan.rule.level)
}
