//! The sampling thread of .NET in an EventPipe session: it suspends the runtime at each interval
//! and takes the stacks of all managed threads, also of threads that wait.

use etl_schema::encode::OwnedValue;
use etl_schema::providers::DOTNET_SAMPLE_PROFILER;
use etl_schema::tables::Registry;
use etl_schema::{EventSchema, Identity};

use super::op_queue::{Op, OpQueue};
use super::{Simulator, Task};
use crate::clr::{ClrOp, thread_stack};
use crate::error::{Error, Result};
use crate::etw::{Event, Origin};
use crate::time::{MICROSECOND, MILLISECOND, Nanos};

/// The time between two rounds of samples.
const INTERVAL: Nanos = MILLISECOND;
/// The time for the stack of a thread: 5 to 20 microseconds in real streams.
const SAMPLING: Nanos = 8 * MICROSECOND;
/// The only event of the provider.
const SAMPLE: Identity = Identity::Modern { id: 0, version: 0 };
/// The thread waits or runs native code.
const EXTERNAL: u64 = 1;
/// The thread runs managed code.
const MANAGED: u64 = 2;

impl Simulator<'_> {
    /// Plans the samples of an EventPipe session that requests them.
    pub(super) fn watch_threads(&mut self, session: usize) {
        let plan = self.etw.sessions.get(session).map(|session| &session.plan);
        let Some(plan) = plan.filter(|plan| plan.event_pipe.is_some()) else {
            return;
        };
        let mut providers = plan.providers.iter();
        if providers.any(|enabled| enabled.provider == DOTNET_SAMPLE_PROFILER) {
            self.plan(self.now + INTERVAL, Task::SampleThreads(session));
        }
    }

    /// A round of samples begins, unless the one before still runs.
    pub(super) fn begin_thread_samples(&mut self, session: usize) -> Result<()> {
        if !self.is_open_event_pipe(session) {
            return Ok(());
        }
        self.plan(self.now + INTERVAL, Task::SampleThreads(session));
        let pid = self.etw.sessions.get(session).and_then(|s| s.process);
        let Some(pid) = pid else { return Ok(()) };
        let mut processes = self.machine.processes.iter();
        let process = processes.find(|process| process.pid == pid && process.is_alive());
        let Some(sampler) = process.and_then(|process| process.callback_thread()) else {
            return Ok(());
        };
        let is_busy = self.machine.threads.get(sampler).is_none_or(|t| t.busy);
        if is_busy || !self.ops.get(sampler).is_some_and(OpQueue::is_empty) {
            return Ok(());
        }
        let mut ops = Vec::new();
        for clr in self.clrs_of(pid) {
            if self.clrs.get(clr).is_some_and(|clr| clr.started) {
                ops.push(Op::Clr(clr, ClrOp::SuspendForSamples));
                ops.push(Op::SampleThreads(clr));
                ops.push(Op::Clr(clr, ClrOp::ResumeAfterSamples));
            }
        }
        self.enqueue(sampler, ops)
    }

    /// Takes the stacks of the managed threads of a CLR. Returns how long it takes.
    pub(super) fn sample_threads(&mut self, clr: usize, origin: &Origin) -> Result<Nanos> {
        let threads = self.clrs.get(clr).map(|clr| clr.threads.clone());
        let mut at = origin.at;
        for thread in threads.unwrap_or_default() {
            let state = self.machine.threads.get(thread);
            if state.is_some_and(|thread| thread.started && !thread.ended) {
                self.sample_thread(thread, at)?;
                at += SAMPLING;
            }
        }
        Ok(at - origin.at)
    }

    fn sample_thread(&mut self, thread: usize, at: Nanos) -> Result<()> {
        let Some(state) = self.machine.threads.get(thread) else {
            return Ok(());
        };
        let Some(process) = self.machine.processes.get(state.process) else {
            return Ok(());
        };
        let stack = thread_stack(&self.clrs, process, at, &mut state.stack_rng(at));
        if stack.managed().is_empty() {
            return Ok(());
        }
        let processor = self.machine.processors.get(usize::from(state.processor));
        let is_running = processor.and_then(|processor| processor.current()) == Some(thread);
        let kind = if is_running { MANAGED } else { EXTERNAL };
        let values = [OwnedValue::UInt(kind)];
        let provider = self.etw.provider(DOTNET_SAMPLE_PROFILER, false);
        let event = Event {
            stack: &stack.frames,
            managed_stack: stack.managed(),
            ..Event::new(sample_schema(at)?, &values)
        };
        let origin = self.origin(thread, at);
        self.etw.raise(provider, &origin, &event)
    }
}

/// The event of the tables.
fn sample_schema(at: Nanos) -> Result<&'static EventSchema> {
    match Registry::builtin().event(DOTNET_SAMPLE_PROFILER, SAMPLE) {
        Some(event) => Ok(&event.schema),
        None => Err(Error::impossible(
            at,
            "no table has the event of a sample".to_owned(),
        )),
    }
}
