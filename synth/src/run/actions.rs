//! The steps of a scenario: requests of controllers, and work of processes.

use etl_format::constants::LogFileMode;

use crate::error::{Error, Result};
use crate::etw::{Origin, StartRequest};
use crate::model::{Action, CollectorProblem, Request, SessionPlan, numbered_file};
use crate::truth::RefusalCode;

use super::{Simulator, Task};

/// The process in which controllers run.
const SHELL: u32 = 1000;

impl Simulator<'_> {
    /// Performs a step; one that repeats is planned again.
    pub(super) fn step(&mut self, index: usize) -> Result<()> {
        let scenario = self.scenario;
        let Some(step) = scenario.steps.get(index) else {
            return Ok(());
        };
        if let Some(repeat) = &step.repeat {
            if self.now >= repeat.until {
                return Ok(());
            }
            let period = match repeat.spread {
                Some(spread) => {
                    spread.around(repeat.period, self.step_rngs.entry(index).or_default())
                }
                None => repeat.period.max(1),
            };
            self.plan(self.now.saturating_add(period), Task::Step(index));
        }
        let Some(command) = &step.command else {
            return self.act(&step.action);
        };
        if !self.failed_lines.performs(command) {
            return Ok(());
        }
        self.etw.serve_tool();
        self.act(&step.action)?;
        let refusal = self.etw.served_tool();
        self.finish_command(command, refusal)
    }

    /// Performs the action of a step.
    fn act(&mut self, action: &Action) -> Result<()> {
        let now = self.now;
        if let Some(what) = describe(action) {
            self.etw.report_action(now, &what)?;
        }
        match action {
            Action::Start(plan) => self.start(plan),
            Action::Session(name, request) => self.request(name, request),
            Action::Roll {
                plan,
                every,
                number,
            } => {
                let index = self.etw.running(&plan.name).first().copied();
                if let Some(index) = index {
                    let at = now.saturating_add((*every).max(1));
                    self.rolls.push((index, (**plan).clone(), *every, *number));
                    self.plan(at, Task::RollFile(self.rolls.len() - 1));
                }
                Ok(())
            }
            Action::Merge {
                inputs,
                output,
                identities,
                compress,
            } => {
                let files = identities.then_some(&self.image_files);
                self.etw.merge(inputs, output, files, *compress, now)
            }
            Action::Read { files, sessions } => self.etw.read(files, sessions, now),
            Action::Collector {
                name,
                problem: Some(problem),
            } => {
                let (code, why) = match problem {
                    CollectorProblem::Missing => (RefusalCode::NotFound, "is not saved"),
                    CollectorProblem::Exists => (RefusalCode::AlreadyExists, "is saved already"),
                };
                self.etw.fail(
                    name,
                    "collector",
                    code,
                    format!("session \"{name}\" {why}"),
                    now,
                )
            }
            Action::Collector { .. } => Ok(()),
            Action::Interrupt(plan) => self.interrupt(plan),
            Action::Replay { packets, .. } => self.plan_packets(packets, None),
            Action::Work { process, work } => self.work(*process, work),
        }
    }

    /// Performs a request to the sessions of a name.
    fn request(&mut self, name: &str, request: &Request) -> Result<()> {
        if let Request::StopAfter(after) = request {
            if let Some(index) = self.etw.running(name).first().copied() {
                self.plan(self.now.saturating_add(*after), Task::EndSession(index));
            }
            return Ok(());
        }
        let at = if *request == Request::Leave {
            self.settled()
        } else {
            self.now
        };
        let sessions = self.etw.request(name, request, at)?;
        let mut callbacks = Vec::new();
        match request {
            Request::Stop => {
                let sessions = self.begin_ends(sessions)?;
                sessions
                    .iter()
                    .try_for_each(|index| self.before_stop(*index))?;
                callbacks = self.etw.stop(&sessions, self.settled())?;
                self.controller_leaves()?;
            }
            Request::KernelRundown => {
                sessions
                    .iter()
                    .try_for_each(|index| self.kernel_rundown(*index))?;
            }
            Request::Kernel(change) => {
                self.change_kernel(name, &sessions, request.name(), change)?
            }
            Request::CaptureState(provider) if !sessions.is_empty() => {
                callbacks = self.etw.capture_state(name, &sessions, *provider, at)?;
            }
            _ => {
                for index in sessions {
                    callbacks.extend(self.etw.perform_request(index, name, request, at)?);
                }
            }
        }
        self.run_callbacks(callbacks)
    }

    /// A session has reached its time limit.
    pub(super) fn end_session(&mut self, index: usize) -> Result<()> {
        // An EventPipe session first begins its rundown.
        if self.begin_ends(vec![index])?.is_empty() {
            return Ok(());
        }
        if self.etw.sessions.get(index).is_some_and(|s| s.is_running()) {
            self.before_stop(index)?;
            let callbacks = self.etw.stop(&[index], self.settled())?;
            self.controller_leaves()?;
            self.run_callbacks(callbacks)?;
        }
        Ok(())
    }

    /// A session continues in its next file.
    pub(super) fn roll_file(&mut self, roll: usize) -> Result<()> {
        let Some((index, plan, every, number)) = self.rolls.get(roll).cloned() else {
            return Ok(());
        };
        if !self.etw.sessions.get(index).is_some_and(|s| s.is_running()) {
            return Ok(());
        }
        self.end_session(index)?;
        let number = number.saturating_add(1);
        let file = plan.file.as_deref().map(|file| numbered_file(file, number));
        let next = self.etw.sessions.len();
        self.start(&SessionPlan {
            file,
            ..plan.clone()
        })?;
        self.rolls.push((next, plan, every, number));
        self.plan(
            self.now.saturating_add(every.max(1)),
            Task::RollFile(self.rolls.len() - 1),
        );
        Ok(())
    }

    /// Process and thread id of controllers, which run in the shell.
    fn controller(&self) -> (u32, u32) {
        let shell = self.machine.processes.iter().find(|p| p.pid == SHELL);
        let thread = shell.and_then(|p| self.machine.threads.get(*p.threads.first()?));
        (SHELL, thread.map_or(1004, |t| t.tid))
    }

    /// The latest time up to which any processor was simulated.
    fn settled(&self) -> u64 {
        self.machine
            .processors
            .iter()
            .map(|p| p.horizon)
            .fold(self.now, u64::max)
    }

    /// A session starts, or one in each process that it is private to.
    fn start(&mut self, plan: &SessionPlan) -> Result<()> {
        let private = plan.mode.has(LogFileMode::PRIVATE) || plan.process.is_some();
        if !private {
            return self.start_one(plan, None);
        }
        if let Some(name) = &plan.process {
            // A process that starts now exists, although its first thread has not run.
            let plans = self.processes.iter().zip(&self.scenario.processes);
            let begins: Vec<usize> = plans
                .filter(|(_, plan)| plan.start <= self.now)
                .map(|(index, _)| *index)
                .collect();
            let mut pid = None;
            for (index, process) in self.machine.processes.iter().enumerate() {
                let exists =
                    process.exited.is_none() && (process.started || begins.contains(&index));
                if exists && (process.name == *name || process.pid.to_string() == *name) {
                    pid = Some(process.pid);
                    break;
                }
            }
            let Some(pid) = pid else {
                return Err(Error::impossible(
                    self.now,
                    format!("no process \"{name}\" is running"),
                ));
            };
            // EventPipe is not ETW: its sessions have no mode.
            let in_process = match plan.event_pipe {
                Some(_) => LogFileMode(0),
                None => LogFileMode::PRIVATE | LogFileMode::PRIVATE_IN_PROC,
            };
            let plan = SessionPlan {
                mode: plan.mode | in_process,
                ..plan.clone()
            };
            return self.start_one(&plan, Some(pid));
        }
        for pid in self
            .etw
            .registered(plan.providers.iter().map(|p| p.provider))
        {
            // Each process has its own file, with its id after the name.
            let file = plan.file.as_ref().map(|file| format!("{file}_{pid}"));
            self.start_one(
                &SessionPlan {
                    file,
                    ..plan.clone()
                },
                Some(pid),
            )?;
        }
        Ok(())
    }

    fn start_one(&mut self, plan: &SessionPlan, process: Option<u32>) -> Result<()> {
        // A session contains nothing of the time before it, although a processor may be ahead of
        // now.
        self.settle_all(self.now)?;
        let of_kernel = !plan.kernel.is_empty();
        if of_kernel {
            self.controller_enters()?;
        }
        let (writer_pid, writer_tid) = self.writer(process);
        let request = StartRequest {
            plan,
            process,
            at: self.now,
            writer_pid,
            writer_tid,
        };
        if let Some(started) = self.etw.start(&request)? {
            let index = started.index;
            if of_kernel {
                self.kernel_begins(index)?;
            }
            self.watch_threads(index);
            self.run_callbacks(started.callbacks)?;
        }
        self.controller_leaves()
    }

    /// The process and the thread that write the header of a session: the controller, or the
    /// process of a private session.
    fn writer(&self, process: Option<u32>) -> (u32, u32) {
        let Some(pid) = process else {
            return self.controller();
        };
        let owner = self.machine.processes.iter().find(|p| p.pid == pid);
        let thread = owner.and_then(|p| self.machine.threads.get(*p.threads.first()?));
        (pid, thread.map_or(0, |t| t.tid))
    }

    /// The controller's thread takes the first processor.
    pub(super) fn controller_enters(&mut self) -> Result<()> {
        let at = self.controller_origin().at;
        let shell = self.machine.processes.iter().find(|p| p.pid == SHELL);
        let Some(thread) = shell.and_then(|p| p.threads.first().copied()) else {
            return Ok(());
        };
        self.enter(0, thread, at)
    }

    /// The controller waits again.
    pub(super) fn controller_leaves(&mut self) -> Result<()> {
        let at = self.controller_origin().at;
        self.settle(0, at)
    }

    /// The controller's thread, on the first processor.
    pub(super) fn controller_origin(&self) -> Origin {
        let (pid, tid) = self.controller();
        Origin {
            at: self.now.max(self.machine.horizon(0)),
            processor: 0,
            pid,
            tid,
            pointer_size: self.scenario.machine.pointer_size,
            activity: etl_format::Guid::ZERO,
            user_time: 0,
        }
    }

    pub(super) fn passed(&mut self, origin: &Origin) {
        self.machine.advance(0, origin.at);
    }
}

/// A request of a controller as text for the timeline; events show the work of processes.
fn describe(action: &Action) -> Option<String> {
    Some(match action {
        Action::Start(plan) => {
            let file = plan
                .file
                .as_deref()
                .map_or("memory".to_owned(), |f| format!("\"{f}\""));
            let providers: Vec<String> = plan.providers.iter().map(asked).collect();
            let kernel = match plan.kernel.simulated_text() {
                none if none.is_empty() => String::new(),
                logged => format!(", logs of the kernel {logged}"),
            };
            format!(
                "session \"{}\" starts into {file}{}{}{kernel}",
                plan.name,
                if providers.is_empty() {
                    ""
                } else {
                    ", enables "
                },
                providers.join(", ")
            )
        }
        Action::Session(session, request) => format!(
            "session \"{session}\" {}",
            match request {
                Request::Stop => "is stopped".to_owned(),
                Request::Enable(plan) => format!("enables {}", asked(plan)),
                Request::Disable(provider) => format!("disables {provider}"),
                Request::CaptureState(provider) => format!("asks {provider} for its state"),
                Request::Flush(file) => {
                    let into = file
                        .as_ref()
                        .map_or(String::new(), |f| format!(" into \"{f}\""));
                    format!("is flushed{into}")
                }
                Request::Consume { file, .. } => {
                    let kept = file.as_ref().map(|f| format!(", and kept in \"{f}\""));
                    format!("is read in real time{}", kept.unwrap_or_default())
                }
                Request::Leave => "is read no more".to_owned(),
                Request::Update { .. } => "gets other settings".to_owned(),
                Request::KernelRundown => {
                    return Some(format!("the kernel logs a rundown for \"{session}\""));
                }
                // The result of a change is reported when it is known.
                Request::Kernel(_) | Request::StopAfter(_) => return None,
            },
        ),
        Action::Merge {
            inputs,
            output,
            identities,
            ..
        } => {
            let without = if *identities {
                ""
            } else {
                ", without identities of images"
            };
            format!("{} become {output}{without}", inputs.join(", "))
        }
        Action::Replay { file, packets } => format!("{} packets of \"{file}\" pass", packets.len()),
        Action::Roll { .. }
        | Action::Read { .. }
        | Action::Collector { .. }
        | Action::Interrupt(_)
        | Action::Work { .. } => return None,
    })
}

fn asked(plan: &crate::model::EnablePlan) -> String {
    format!("{}:{:#x}:{}", plan.provider, plan.rule.any, plan.rule.level)
}
