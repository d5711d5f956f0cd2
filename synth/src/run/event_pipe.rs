//! The end of EventPipe sessions of .NET: the session states the command line of its process, the
//! runtime of the process lists what is loaded, and the session ends.

use etl_format::EventDescriptor;
use etl_schema::encode::OwnedValue;
use etl_schema::providers::{CLR_RUNDOWN, DOTNET_EVENT_PIPE};
use etl_schema::sources::tracelogging::{self, ProviderTraits};
use etl_schema::{EventSchema, Field, InType};

use crate::clr::ClrOp;
use crate::error::{Error, Result};
use crate::etw::{Event, Origin};
use crate::model::{EnablePlan, Request};
use crate::time::{MICROSECOND, Nanos};

use super::op_queue::Op;
use super::{Simulator, Task};

/// The provider of the event about the process.
const PROVIDER: &str = "Microsoft-DotNETCore-EventPipe";
/// The event about the process.
const PROCESS_INFO: u16 = 1;
/// Channel of events that describe themselves.
const SELF_DESCRIBING: u8 = 11;
/// The level of the rundown: verbose.
const RUNDOWN_LEVEL: u8 = 5;

impl Simulator<'_> {
    /// Whether a session is an EventPipe session that runs and whose end has not begun.
    pub(super) fn is_open_event_pipe(&self, session: usize) -> bool {
        self.etw.sessions.get(session).is_some_and(|session| {
            session.is_running() && session.plan.event_pipe.is_some() && !session.is_ending
        })
    }

    /// Begins the end of the EventPipe sessions among some sessions. Returns the other sessions,
    /// which end at once.
    pub(super) fn begin_ends(&mut self, sessions: Vec<usize>) -> Result<Vec<usize>> {
        let mut others = Vec::new();
        for session in sessions {
            if self.is_open_event_pipe(session) {
                self.begin_end(session)?;
            } else {
                others.push(session);
            }
        }
        Ok(others)
    }

    /// Begins the end of an EventPipe session: its process runs the rundown.
    pub(super) fn begin_end(&mut self, session: usize) -> Result<()> {
        let pid = self.etw.sessions.get(session).and_then(|s| s.process);
        let mut processes = self.machine.processes.iter();
        let process = processes.position(|p| Some(p.pid) == pid && p.is_alive());
        let ops = self.ops_of_end(session)?;
        let thread = process
            .and_then(|process| self.machine.processes.get(process))
            .and_then(|process| process.callback_thread());
        match thread {
            Some(thread) => self.enqueue(thread, ops),
            // The process is gone, and its session with it.
            None => Ok(()),
        }
    }

    /// What the process of an EventPipe session does at its end.
    fn ops_of_end(&mut self, session: usize) -> Result<Vec<Op>> {
        let Some(found) = self.etw.sessions.get_mut(session) else {
            return Ok(Vec::new());
        };
        found.is_ending = true;
        let pid = found.process;
        let name = found.plan.name.clone();
        let rundown = found.plan.event_pipe.and_then(|plan| plan.rundown);
        let mut ops = vec![Op::DescribeProcess(session)];
        if let Some(keywords) = rundown {
            let request = Request::Enable(EnablePlan::new(CLR_RUNDOWN, keywords, RUNDOWN_LEVEL));
            let now = self.now;
            let callbacks = self.etw.perform_request(session, &name, &request, now)?;
            for callback in callbacks {
                let clr = callback.registrant.clr;
                let is_of_process = Some(callback.registrant.pid) == pid;
                let Some(clr) = clr.filter(|_| is_of_process) else {
                    continue;
                };
                let Some(runtime) = self.clrs.get(clr) else {
                    continue;
                };
                for op in runtime.rundown_ops(&callback.union) {
                    ops.push(Op::Clr(clr, op));
                }
            }
        }
        ops.push(Op::EndEventPipe(session));
        Ok(ops)
    }

    /// What a process does for its EventPipe sessions before it exits.
    pub(super) fn event_pipe_ops_at_exit(&mut self, pid: u32) -> Result<Vec<Op>> {
        let mut ops = Vec::new();
        for session in 0..self.etw.sessions.len() {
            let is_of_process = self
                .etw
                .sessions
                .get(session)
                .is_some_and(|session| session.process == Some(pid));
            if is_of_process && self.is_open_event_pipe(session) {
                ops.extend(self.ops_of_end(session)?);
            }
        }
        if ops.is_empty() {
            return Ok(ops);
        }
        let mut all = self.unloads_before_ends(pid);
        all.append(&mut ops);
        Ok(all)
    }

    /// The unload events of a runtime that raises them before its EventPipe sessions end.
    fn unloads_before_ends(&self, pid: u32) -> Vec<Op> {
        let mut ops = Vec::new();
        for index in self.clrs_of(pid) {
            let clr = self.clrs.get(index);
            if clr.is_some_and(|clr| clr.started && clr.reports_exit_to_event_pipe()) {
                ops.push(Op::Clr(index, ClrOp::ReportExit));
            }
        }
        ops
    }

    /// The CLRs of a process that runs.
    pub(super) fn clrs_of(&self, pid: u32) -> Vec<usize> {
        let mut processes = self.machine.processes.iter();
        let process = processes.find(|process| process.pid == pid && process.is_alive());
        process.map_or(Vec::new(), |process| process.clrs.clone())
    }

    /// The rundown is complete: the session ends.
    pub(super) fn finish_event_pipe(&mut self, session: usize, origin: &Origin) -> Nanos {
        self.plan(origin.at, Task::EndSession(session));
        10 * MICROSECOND
    }

    /// The session states its process, before the rundown.
    pub(super) fn describe_process(&mut self, session: usize, origin: &Origin) -> Result<Nanos> {
        let process = self
            .machine
            .processes
            .iter()
            .find(|process| process.pid == origin.pid);
        let command_line = process.map_or(String::new(), |process| process.command_line.clone());
        self.raise_process_info(session, &command_line, origin)?;
        Ok(10 * MICROSECOND)
    }

    fn raise_process_info(
        &mut self,
        session: usize,
        command_line: &str,
        origin: &Origin,
    ) -> Result<()> {
        // .NET Core 3 states the command line only.
        let version = u8::from(self.is_of_net_5(origin.pid));
        let mut texts = vec![("CommandLine", command_line)];
        if version > 0 {
            texts.push(("OSInformation", "Windows"));
            texts.push(("ArchInformation", "x64"));
        }
        let fields = texts
            .iter()
            .map(|(name, _)| Field::new(*name, InType::Utf16));
        let schema = EventSchema::tracelogging(PROVIDER, "ProcessInfo", fields.collect::<Vec<_>>());
        let metadata = tracelogging::build(&schema);
        let metadata = metadata.map_err(|error| Error::impossible(origin.at, error.to_string()))?;
        let traits = ProviderTraits {
            name: PROVIDER.into(),
            ..ProviderTraits::default()
        };
        let traits = traits.build();
        let values = texts
            .iter()
            .map(|(_, text)| OwnedValue::Text((*text).to_owned()));
        let values: Vec<OwnedValue> = values.collect();
        let plan = EnablePlan::new(DOTNET_EVENT_PIPE, 0, 0);
        let name = self
            .etw
            .sessions
            .get(session)
            .map_or(String::new(), |session| session.plan.name.clone());
        let request = Request::Enable(plan);
        self.etw
            .perform_request(session, &name, &request, origin.at)?;
        let provider = self.etw.provider(DOTNET_EVENT_PIPE, false);
        let event = Event {
            descriptor: EventDescriptor {
                id: PROCESS_INFO,
                version,
                channel: SELF_DESCRIBING,
                ..EventDescriptor::default()
            },
            traits: &traits,
            metadata: &metadata,
            ..Event::new(&schema, &values)
        };
        self.etw.raise(provider, origin, &event)
    }

    /// Whether a process has a runtime of .NET 5 or later.
    fn is_of_net_5(&self, pid: u32) -> bool {
        let clrs = self.clrs_of(pid);
        let mut runtimes = clrs.iter().filter_map(|clr| self.clrs.get(*clr));
        runtimes.any(|clr| clr.is_core(5))
    }
}
