//! The end of EventPipe sessions of .NET: the runtime of their process lists what is loaded, then
//! the session states the command line of its process, and ends.

use etl_format::EventDescriptor;
use etl_schema::encode::OwnedValue;
use etl_schema::providers::{CLR_RUNDOWN, DOTNET_EVENT_PIPE};
use etl_schema::sources::tracelogging::{self, ProviderTraits};
use etl_schema::{EventSchema, Field, InType};

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
    fn is_open_event_pipe(&self, session: usize) -> bool {
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
        let mut ops = Vec::new();
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
        Ok(ops)
    }

    /// The rundown is complete: the session states its process, and ends.
    pub(super) fn finish_event_pipe(&mut self, session: usize, origin: &Origin) -> Result<Nanos> {
        let process = self
            .machine
            .processes
            .iter()
            .find(|process| process.pid == origin.pid);
        let command_line = process.map_or(String::new(), |process| process.command_line.clone());
        self.raise_process_info(session, &command_line, origin)?;
        self.plan(origin.at, Task::EndSession(session));
        Ok(10 * MICROSECOND)
    }

    fn raise_process_info(
        &mut self,
        session: usize,
        command_line: &str,
        origin: &Origin,
    ) -> Result<()> {
        let names = ["CommandLine", "OSInformation", "ArchInformation"];
        let fields = names.map(|name| Field::new(name, InType::Utf16));
        let schema = EventSchema::tracelogging(PROVIDER, "ProcessInfo", fields.to_vec());
        let metadata = tracelogging::build(&schema);
        let metadata = metadata.map_err(|error| Error::impossible(origin.at, error.to_string()))?;
        let traits = ProviderTraits {
            name: PROVIDER.into(),
            ..ProviderTraits::default()
        };
        let traits = traits.build();
        let texts = [command_line, "Windows", "x64"];
        let values = texts.map(|text| OwnedValue::Text(text.to_owned()));
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
                version: 1,
                channel: SELF_DESCRIBING,
                ..EventDescriptor::default()
            },
            traits: &traits,
            metadata: &metadata,
            ..Event::new(&schema, &values)
        };
        self.etw.raise(provider, origin, &event)
    }
}
