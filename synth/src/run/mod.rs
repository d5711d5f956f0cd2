//! The event loop.
//!
//! The queue contains future tasks: steps of the scenario, operations of threads, and tasks of ETW.
//! A thread performs one operation after the other. An operation is not interrupted, takes time,
//! and raises its events on the processor of the thread, whose time never goes back.

mod actions;
mod command;
mod event_pipe;
mod interrupts;
mod inventory;
mod io;
mod io_op;
mod io_work;
mod kernel;
mod network;
mod op_queue;
mod process;
mod provider;
mod sample;
mod schedule;
mod thread;
mod thread_samples;
mod work;

use std::collections::BTreeMap;

use etl_format::Guid;

use crate::clr::{Clr, ClrOp};
use crate::error::Result;
use crate::etw::{EnableCallback, Etw, EtwTask, ImageFiles, Origin, Registrant};
use crate::file_faults;
use crate::file_system::FileSystem;
use crate::machine::{Machine, Queue, Thread};
use crate::model::{Action, Scenario, SessionPlan};
use crate::network::Network;
use crate::provider_text::description_file;
use crate::rng::{Rng, Source};
use crate::time::Nanos;
use crate::truth::{ExpectedFiles, Fact, Observer};
use etl_schema::providers::{CLR_PRIVATE, CLR_RUNDOWN, CLR_RUNTIME, PKTMON};

use command::FailedLines;
use op_queue::{Op, OpQueue};

/// A task in the queue.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Task {
    /// A step of the scenario.
    Step(usize),
    /// A process starts.
    StartProcess(usize),
    /// A process exits.
    ExitProcess(usize),
    /// A thread performs its next operation.
    RunThread(usize),
    /// The profiler begins a round of samples for a session, with the first processor.
    Sample(usize),
    /// It samples another processor for that session.
    SampleOn(usize, usize),
    /// The sampling thread of an EventPipe session begins a round.
    SampleThreads(usize),
    /// The delay of a CLR after which it counts calls may be over.
    TieringDelay(usize),
    /// The current thread of a processor may have finished.
    Switch(usize),
    /// A disk has served a request, by its packet.
    Disk(u64),
    /// A thread that waited for a disk or the network continues.
    Resume(usize),
    /// A task of ETW.
    Etw(EtwTask),
    /// A session has reached its time limit.
    EndSession(usize),
    /// A session continues in its next file.
    RollFile(usize),
    /// A packet passes.
    Packet(usize),
}

impl Task {
    /// Whether it repeats by itself, so that it does not keep the simulation running.
    fn is_periodic(self) -> bool {
        matches!(
            self,
            Task::Etw(_)
                | Task::Sample(_)
                | Task::SampleOn(..)
                | Task::SampleThreads(_)
                | Task::Switch(_)
                | Task::RollFile(_)
        )
    }
}

/// The state of a simulation.
struct Simulator<'s> {
    scenario: &'s Scenario,
    now: Nanos,
    queue: Queue<Task>,
    machine: Machine,
    /// The operations of each thread of the machine.
    ops: Vec<OpQueue>,
    clrs: Vec<Clr>,
    etw: Etw<'s>,
    /// The chance in the times of steps, by index of the step.
    step_rngs: BTreeMap<usize, Rng>,
    /// The chance in the events of providers, by process and provider.
    provider_rngs: BTreeMap<(usize, usize), Rng>,
    /// The files of all images that were loaded so far.
    image_files: ImageFiles,
    /// The index in the machine of each process of the scenario.
    processes: Vec<usize>,
    /// Threads that `start-thread` has started.
    started_threads: u32,
    /// Tasks that are not periodic. Without them the simulation ends.
    pending: usize,
    /// Sessions that continue in another file after a time: session, plan, time, number of the
    /// file.
    rolls: Vec<(usize, SessionPlan, Nanos, u32)>,
    /// The providers of the scenario.
    sources: Vec<provider::Source>,
    failed_lines: FailedLines,
    network: Network,
    /// Samples of idle processors so far.
    idle_samples: u64,
    /// Requests that disks serve, by their packets.
    requests: BTreeMap<u64, io::Pending>,
}

/// Runs a scenario: writes its files to `files` and reports to `observer`.
pub(crate) fn run(
    scenario: &Scenario,
    files: &mut dyn FileSystem,
    observer: &mut dyn Observer,
) -> Result<()> {
    observer.observe(&Fact::Scenario(scenario))?;
    for (name, text) in scenario.providers.iter().filter_map(description_file) {
        write_text(files, &name, &text)?;
    }
    let mut expected = ExpectedFiles::new(scenario, observer);
    Simulator::new(scenario, files, &mut expected)?.run()?;
    let texts = expected.into_files();
    texts
        .iter()
        .try_for_each(|(name, text)| write_text(files, name, text))
}

/// Writes a file that is not a trace.
fn write_text(files: &mut dyn FileSystem, name: &str, text: &str) -> Result<()> {
    let mut file = files.create(name)?;
    file.write_at(0, text.as_bytes())
        .map_err(std::io::Error::other)?;
    file.flush().map_err(std::io::Error::other)?;
    Ok(())
}

impl<'s> Simulator<'s> {
    fn new(
        scenario: &'s Scenario,
        files: &'s mut dyn FileSystem,
        observer: &'s mut dyn Observer,
    ) -> Result<Self> {
        let machine = Machine::new(&scenario.machine, Source::new(scenario.seed));
        let etw = Etw::new(
            &scenario.machine,
            machine.clock,
            Source::new(scenario.seed),
            scenario.faults.clone(),
            scenario.creates_files_again(),
            files,
            observer,
        );
        let mut simulator = Simulator {
            scenario,
            now: 0,
            queue: Queue::default(),
            machine,
            ops: Vec::new(),
            clrs: Vec::new(),
            etw,
            step_rngs: schedule_rngs(scenario),
            provider_rngs: BTreeMap::new(),
            image_files: ImageFiles::new(scenario.machine.os, &scenario.machine.disks),
            processes: Vec::new(),
            started_threads: 0,
            pending: 0,
            rolls: Vec::new(),
            failed_lines: FailedLines::default(),
            network: Network::new(&scenario.machine, Source::new(scenario.seed)),
            idle_samples: 0,
            requests: BTreeMap::new(),
            sources: scenario
                .providers
                .iter()
                .map(provider::Source::new)
                .collect::<Result<_>>()?,
        };
        simulator.add_system_processes();
        simulator.register_drivers();
        simulator.add_processes()?;
        for (index, step) in scenario.steps.iter().enumerate() {
            simulator.plan(step.at, Task::Step(index));
        }
        Ok(simulator)
    }

    fn plan(&mut self, at: Nanos, task: Task) {
        if !task.is_periodic() {
            self.pending += 1;
        }
        self.queue.push(at.max(self.now), task);
    }

    fn run(mut self) -> Result<()> {
        while let Some((at, task)) = self.queue.pop() {
            if self.scenario.end.is_some_and(|end| at > end) {
                break;
            }
            self.now = at;
            self.etw.settle(self.nothing_before(), at)?;
            self.perform(task)?;
            if !task.is_periodic() {
                self.pending -= 1;
            }
            for (at, task) in std::mem::take(&mut self.etw.tasks) {
                self.plan(at, Task::Etw(task));
            }
            if self.pending == 0 && self.scenario.end.is_none() {
                break;
            }
        }
        self.etw.lose_power(self.now)?;
        self.report_inventory()?;
        let schemas: Vec<_> = self
            .scenario
            .providers
            .iter()
            .flat_map(|p| p.events.iter().cloned())
            .collect();
        for plan in &self.scenario.edits {
            file_faults::edit(plan, &schemas, &mut self.etw.files, self.now)?;
        }
        Ok(())
    }

    fn perform(&mut self, task: Task) -> Result<()> {
        match task {
            Task::Step(index) => {
                let step = self.scenario.steps.get(index);
                let location = step.and_then(|step| step.location.as_ref());
                self.step(index)
                    .map_err(|error| error.with_location(location))
            }
            Task::StartProcess(process) => self.start_process(process),
            Task::ExitProcess(process) => self.exit_process(process),
            Task::RunThread(thread) => self.run_thread(thread),
            Task::Sample(session) => self.sample(session),
            Task::SampleOn(session, processor) => self.sample_on(session, processor),
            Task::SampleThreads(session) => self.begin_thread_samples(session),
            Task::TieringDelay(clr) => self.end_tiering_delay(clr),
            Task::Switch(processor) => self.settle(processor, self.now),
            Task::Disk(irp) => self.disk_done(irp),
            Task::Resume(thread) => self.resume(thread),
            Task::Etw(task) => self.etw.perform(task, self.now),
            Task::EndSession(session) => self.end_session(session),
            Task::RollFile(roll) => self.roll_file(roll),
            Task::Packet(number) => self.pass(number),
        }
    }

    /// Adds a thread to a process of the machine.
    fn add_thread(&mut self, process: usize) -> usize {
        let thread = self.machine.add_thread(process);
        self.ops
            .resize_with(self.machine.threads.len(), OpQueue::default);
        thread
    }

    /// Appends operations to the queue of a thread.
    fn enqueue(&mut self, thread: usize, ops: impl IntoIterator<Item = Op>) -> Result<()> {
        self.enqueue_repeated(thread, ops.into_iter().map(|op| (op, 1)))
    }

    /// Adds operations to the thread of a process that runs the callbacks of providers.
    fn enqueue_callback(
        &mut self,
        process: usize,
        ops: impl IntoIterator<Item = Op>,
    ) -> Result<()> {
        let process = self.machine.processes.get(process).filter(|p| p.is_alive());
        let Some(thread) = process.and_then(|p| p.callback_thread()) else {
            return Ok(());
        };
        self.enqueue(thread, ops)
    }

    /// Adds operations to a thread, each the given number of times.
    fn enqueue_repeated(
        &mut self,
        thread: usize,
        ops: impl IntoIterator<Item = (Op, u32)>,
    ) -> Result<()> {
        let Some(queue) = self.ops.get_mut(thread) else {
            return Ok(());
        };
        ops.into_iter()
            .for_each(|(op, times)| queue.push(op, times));
        let state = self.machine.threads.get(thread);
        // Before its start a thread does nothing, except that the first one starts its process.
        let waits = state.is_none_or(|t| t.busy || !t.started && !queue.starts_process());
        if waits || queue.is_empty() {
            return Ok(());
        }
        self.wake(thread)?;
        if let Some(state) = self.machine.threads.get_mut(thread) {
            state.busy = true;
        }
        self.plan(self.now, Task::RunThread(thread));
        Ok(())
    }

    /// Whether a thread has too many operations to take more. Reports it once per process.
    fn rejects_work(&mut self, thread: usize) -> Result<bool> {
        if !self.ops.get(thread).is_some_and(OpQueue::is_full) {
            return Ok(false);
        }
        if let Some(process) = self.machine.process_of(thread)
            && !process.overloaded
        {
            process.overloaded = true;
            let description = format!(
                "process {} \"{}\" has more work than its threads can do; it rejects work from now on",
                process.pid, process.name
            );
            self.etw.report_action(self.now, &description)?;
        }
        Ok(true)
    }

    /// The origin of an event of a thread.
    fn origin(&self, thread: usize, at: Nanos) -> Origin {
        let state = self.machine.threads.get(thread);
        let process = state.and_then(|t| self.machine.processes.get(t.process));
        Origin {
            at,
            processor: state.map_or(0, |t| t.processor),
            pid: process.map_or(0, |p| p.pid),
            tid: state.map_or(0, |t| t.tid),
            pointer_size: process.map_or(self.scenario.machine.pointer_size, |p| p.pointer_size),
            activity: state
                .and_then(|t| t.activities.last().copied())
                .unwrap_or(Guid::ZERO),
            user_time: state.map_or(0, Thread::user_time),
        }
    }

    /// Runs the enable callbacks of providers on the callback threads of their processes.
    fn run_callbacks(&mut self, callbacks: Vec<EnableCallback>) -> Result<()> {
        for callback in callbacks {
            let Registrant { pid, clr } = callback.registrant;
            let process = self
                .machine
                .processes
                .iter()
                .position(|p| p.pid == pid && p.is_alive());
            let Some(process) = process else { continue };
            if callback.provider == PKTMON && callback.capture_state {
                self.list_components()?;
                continue;
            }
            let source = self
                .event_source(callback.provider)
                .filter(|_| callback.union.enabled);
            if let Some(source) = source {
                self.enqueue_callback(process, [Op::EmitManifest(source)])?;
                continue;
            }
            // Each CLR has registered its own provider, and answers only for itself.
            let Some(clr) = clr else { continue };
            let Some(runtime) = self.clrs.get(clr).filter(|c| c.started) else {
                continue;
            };
            let ops = match (callback.provider, callback.capture_state) {
                (CLR_RUNDOWN, false) => runtime.rundown_ops(&callback.union),
                (CLR_RUNTIME, true) => runtime.capture_ops(),
                (CLR_PRIVATE, false) if callback.union.enabled => vec![ClrOp::ReportHeap],
                _ => continue,
            };
            self.enqueue_callback(process, ops.into_iter().map(|op| Op::Clr(clr, op)))?;
        }
        Ok(())
    }
}

/// Random numbers for steps with random times. Their seed is derived from the name of the process
/// or session, so that another session does not change the times of other steps.
fn schedule_rngs(scenario: &Scenario) -> BTreeMap<usize, Rng> {
    let mut counts: BTreeMap<String, u64> = BTreeMap::new();
    let mut rngs = BTreeMap::new();
    for (index, step) in scenario.steps.iter().enumerate() {
        if step
            .repeat
            .as_ref()
            .is_none_or(|repeat| repeat.spread.is_none())
        {
            continue;
        }
        let subject = match &step.action {
            Action::Work { process, .. } => {
                let name = scenario
                    .processes
                    .get(*process)
                    .map_or("", |p| p.name.as_str());
                format!("process {name} {}", namesakes(scenario, *process))
            }
            Action::Start(plan) | Action::Roll { plan, .. } => format!("session {}", plan.name),
            Action::Session(name, _) => format!("session {name}"),
            Action::Merge { output, .. } => format!("merge {output}"),
            Action::Read { .. } => "read".to_owned(),
            Action::Collector { name, .. } => format!("collector {name}"),
            Action::Replay { .. } => "replay".to_owned(),
            Action::Interrupt(plan) => format!("interrupt {}", plan.driver),
        };
        let count = counts.entry(subject.clone()).or_default();
        let source = Source::new(scenario.seed)
            .named("step")
            .named(&subject)
            .numbered(*count);
        *count += 1;
        rngs.insert(index, source.rng());
    }
    rngs
}

/// Processes of the same name before this one.
fn namesakes(scenario: &Scenario, process: usize) -> u64 {
    let name = scenario.processes.get(process).map(|p| &p.name);
    let before = scenario.processes.iter().take(process);
    before.filter(|p| Some(&p.name) == name).count() as u64
}
