//! The loop in which everything happens.
//!
//! The calendar holds what is to come: the scenario's steps, the appointments of threads that have
//! something to do, and what ETW does later. A thread does one operation after the other; an
//! operation is not interrupted, takes time, and raises its events on the thread's processor, whose
//! own time never goes back.

mod ending;
mod kernel;
mod ops;
mod process;
mod provider;
mod sample;
mod schedule;
mod steps;
mod work;

use etl_format::Guid;
use etl_schema::providers::{CLR_RUNDOWN, CLR_RUNTIME};

use crate::clr::{Clr, ClrOp, Ctx, Where};
use crate::error::Result;
use crate::etw::{Duty, Etw, Files, Notice, Origin, Store};
use crate::machine::{Dice, Machine, Nanos, Queue};
use crate::model::{ProviderKind, Scenario};
use crate::truth::Witness;

pub(crate) use ops::Ops;
pub(crate) use process::Op;
pub(crate) use provider::item;

/// What the calendar holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Task {
    /// A step of the scenario.
    Step(usize),
    /// A process begins.
    Begin(usize),
    /// A process is to exit.
    Exit(usize),
    /// A thread does its next operation.
    Thread(usize),
    /// The profiler looks what the processors do, for a session.
    Sample(usize),
    /// The thread that has a processor may be through.
    Switch(usize),
    /// ETW does what is due.
    Etw(Duty),
    /// A session has run for its time.
    Ending(usize),
    /// A session goes on in its next file.
    Roll(usize),
}

impl Task {
    /// Whether it comes again and again by itself, so that it keeps nothing alive.
    fn is_service(self) -> bool {
        matches!(self, Task::Etw(_) | Task::Sample(_) | Task::Switch(_) | Task::Roll(_))
    }
}

/// A simulation.
pub(crate) struct Simulation<'s> {
    scenario: &'s Scenario,
    now: Nanos,
    queue: Queue<Task>,
    machine: Machine,
    clrs: Vec<Clr>,
    etw: Etw<'s>,
    dice: Dice,
    /// Files of images that were ever loaded.
    files: Files,
    /// Chance of the stacks that the kernel takes: who takes them changes nothing else.
    stacks: Dice,
    /// The process of the scenario, by place, to that of the machine.
    places: Vec<usize>,
    /// Tasks that are not ETW's own: when none is left, nothing will happen any more.
    alive: usize,
    /// Sessions that go on in another file after a time: the session, its plan, the time, and the
    /// number of its file.
    rolls: Vec<(usize, crate::model::SessionPlan, Nanos, u32)>,
    /// Providers of the scenario's own, by place.
    sources: Vec<provider::Source>,
}

/// Lets a scenario happen: files go to `store`, `witness` is told of every event.
///
/// # Errors
/// When the scenario asks for what cannot be (a session that does not run is stopped, say), and
/// when a file cannot be written.
pub fn simulate(
    scenario: &Scenario,
    store: &mut dyn Store,
    witness: &mut dyn Witness,
) -> Result<()> {
    witness.begins(scenario)?;
    for plan in scenario.providers.iter().filter(|p| p.kind == ProviderKind::Wpp) {
        let mut file = store.create(&format!("{}.tmf", plan.name))?;
        file.write_at(0, provider::tmf(plan).as_bytes()).map_err(std::io::Error::other)?;
        file.flush().map_err(std::io::Error::other)?;
    }
    Simulation::new(scenario, store, witness)?.run()
}

impl<'s> Simulation<'s> {
    fn new(
        scenario: &'s Scenario,
        store: &'s mut dyn Store,
        witness: &'s mut dyn Witness,
    ) -> Result<Self> {
        let machine = Machine::new(&scenario.machine);
        let dice = Dice::new(scenario.seed, 1);
        let etw = Etw::new(
            &scenario.machine,
            machine.clock,
            Dice::new(scenario.seed, 2),
            scenario.faults.clone(),
            store,
            witness,
        );
        let mut simulation = Simulation {
            scenario,
            now: 0,
            queue: Queue::default(),
            machine,
            clrs: Vec::new(),
            etw,
            dice,
            files: Files::new(scenario.machine.os),
            stacks: Dice::new(scenario.seed, 3),
            places: Vec::new(),
            alive: 0,
            rolls: Vec::new(),
            sources: scenario.providers.iter().map(provider::Source::new).collect::<Result<_>>()?,
        };
        simulation.system();
        simulation.populate()?;
        for (index, step) in scenario.steps.iter().enumerate() {
            simulation.plan(step.at, Task::Step(index));
        }
        Ok(simulation)
    }

    fn plan(&mut self, at: Nanos, task: Task) {
        if !task.is_service() {
            self.alive += 1;
        }
        self.queue.push(at.max(self.now), task);
    }

    fn run(mut self) -> Result<()> {
        while let Some((at, task)) = self.queue.pop() {
            if self.scenario.end.is_some_and(|end| at > end) {
                break;
            }
            self.now = at;
            match task {
                Task::Step(index) => {
                    let place = self.scenario.steps.get(index).and_then(|s| s.place.as_ref());
                    self.step(index).map_err(|error| error.asked_at(place))?;
                }
                Task::Begin(process) => self.begin(process)?,
                Task::Exit(process) => self.exit(process)?,
                Task::Thread(thread) => self.thread(thread)?,
                Task::Sample(session) => self.sample(session)?,
                Task::Switch(processor) => self.settle(processor, at)?,
                Task::Etw(duty) => self.etw.attend(duty, at)?,
                Task::Ending(session) => self.end_session(session)?,
                Task::Roll(roll) => self.roll(roll)?,
            }
            if !task.is_service() {
                self.alive -= 1;
            }
            for (at, duty) in std::mem::take(&mut self.etw.duties) {
                self.plan(at, Task::Etw(duty));
            }
            // A flush timer comes again and again; by itself it keeps nothing alive.
            if self.alive == 0 && self.scenario.end.is_none() {
                break;
            }
        }
        self.etw.lose_power(self.now)?;
        self.tell_present()?;
        let schemas: Vec<_> =
            self.scenario.providers.iter().flat_map(|p| p.events.iter().cloned()).collect();
        for plan in &self.scenario.edits {
            let edited = self.etw.edit(plan, &schemas, self.now);
            edited.map_err(|error| error.asked_at(plan.place.as_ref()))?;
        }
        Ok(())
    }

    /// Gives a thread something to do, behind what it has.
    fn give(&mut self, thread: usize, ops: impl IntoIterator<Item = Op>) -> Result<()> {
        let Some(found) = self.machine.threads.get_mut(thread) else { return Ok(()) };
        ops.into_iter().for_each(|op| found.ops.push(op, 1));
        if found.busy || found.ops.is_empty() {
            return Ok(());
        }
        self.awake(thread)?;
        if let Some(found) = self.machine.threads.get_mut(thread) {
            found.busy = true;
            self.plan(self.now, Task::Thread(thread));
        }
        Ok(())
    }

    /// Gives a thread work that the scenario asks for, so often each.
    fn order(&mut self, thread: usize, ops: Vec<(Op, u32)>) -> Result<()> {
        if let Some(found) = self.machine.threads.get_mut(thread) {
            ops.into_iter().for_each(|(op, times)| found.ops.push(op, times));
        }
        self.give(thread, [])
    }

    /// Whether a thread takes on no more work, having more to do already than it will get done.
    fn turns_away(&mut self, thread: usize) -> Result<bool> {
        let found = self.machine.threads.get(thread).filter(|t| t.ops.is_full());
        let Some(found) = found else { return Ok(false) };
        let process = self.machine.processes.get_mut(found.process);
        if let Some(process) = process.filter(|p| !p.overloaded) {
            process.overloaded = true;
            let (pid, name) = (process.pid, process.name.clone());
            let what = format!(
                "process {pid} \"{name}\" has more to do than its threads can, and turns work away from now on"
            );
            self.etw.witness().happened(self.now, &what)?;
        }
        Ok(true)
    }

    /// A thread does its next operation.
    fn thread(&mut self, index: usize) -> Result<()> {
        let now = self.now;
        let Some(thread) = self.machine.threads.get_mut(index) else { return Ok(()) };
        let processor = usize::from(thread.processor);
        let Some(op) = thread.ops.pop() else {
            thread.busy = false;
            return self.settle(processor, now);
        };
        let started = thread.started;
        // Another thread may have had the processor until later than now.
        let horizon = self.machine.processors.get(processor).map_or(0, |p| p.horizon);
        let from = now.max(horizon);
        // A thread runs when it has been told of.
        if started {
            self.enter(processor, index, from)?;
        }
        let (until, cost, then) = self.perform(index, op, from)?;
        if !started {
            self.enter(processor, index, from)?;
        }
        let Some(thread) = self.machine.threads.get_mut(index) else { return Ok(()) };
        thread.used = thread.used.saturating_add(until.saturating_sub(from)).saturating_add(cost);
        thread.ops.put_first(then);
        let idle = thread.ops.is_empty();
        thread.busy = !idle;
        if let Some(processor) = self.machine.processors.get_mut(processor) {
            processor.horizon = processor.horizon.max(until);
        }
        self.compute(processor, index, until.saturating_sub(from).saturating_add(cost));
        if !idle {
            self.plan(until.saturating_add(cost), Task::Thread(index));
        }
        Ok(())
    }

    /// Does an operation: when its last event was, what it costs behind it, and what comes next.
    fn perform(&mut self, index: usize, op: Op, from: Nanos) -> Result<(Nanos, Nanos, Vec<Op>)> {
        match op {
            Op::Clr(clr, op) => self.in_clr(index, clr, &op, from),
            other => {
                let origin = self.origin(index, from);
                let (cost, then) = self.in_process(index, other, &origin)?;
                Ok((from, cost, then))
            }
        }
    }

    fn in_clr(
        &mut self,
        index: usize,
        clr: usize,
        op: &ClrOp,
        from: Nanos,
    ) -> Result<(Nanos, Nanos, Vec<Op>)> {
        let origin = self.origin(index, from);
        let nothing = (from, 0, Vec::new());
        let Some(runtime) = self.clrs.get_mut(clr) else { return Ok(nothing) };
        let Some(process) = self.machine.processes.get_mut(runtime.process) else {
            return Ok(nothing);
        };
        // What one thread left to another does not happen behind the end of the process.
        if process.exited.is_some() {
            return Ok(nothing);
        }
        let threads: Vec<(usize, u32)> = match op {
            ClrOp::Rundown(_, crate::clr::Item::Threads) => {
                let of = |t: &usize| self.machine.threads.get(*t).map(|found| (*t, found.tid));
                process.threads.iter().filter_map(of).collect()
            }
            _ => Vec::new(),
        };
        let loads = op.moves_images();
        let images = if loads { process.images.clone() } else { Vec::new() };
        let mut ctx =
            Ctx { etw: &mut self.etw, process, origin, dice: &mut self.dice, threads: &threads };
        let place = runtime.process;
        let done = runtime.perform(op, &mut ctx)?;
        let until = ctx.origin.at;
        let pid = ctx.process.pid;
        // Images come and go with modules.
        let origin = Origin { at: until, ..origin };
        if loads {
            let there = process.images.clone();
            for image in there.iter().filter(|i| !had(&images, i.base)) {
                self.image_comes(index, pid, image, &origin)?;
            }
            for image in images.iter().filter(|i| !had(&there, i.base)) {
                self.image_goes(index, pid, image, &origin)?;
            }
        }
        for (thread, op) in done.elsewhere {
            if let Some(thread) = self.somebody(place, thread) {
                self.give(thread, [Op::Clr(clr, op)])?;
            }
        }
        let then = done.then.into_iter().map(|op| Op::Clr(clr, op)).collect();
        Ok((until, done.cost, then))
    }

    /// A thread of a process.
    fn somebody(&mut self, process: usize, which: Where) -> Option<usize> {
        let process = self.machine.processes.get_mut(process)?;
        match which {
            // The last thread is the one that the system calls providers back on: nobody else has it.
            Where::Runtime => process.threads.last().copied(),
            Where::Worker => {
                let workers = process.threads.len().saturating_sub(1).max(1);
                process.turn = (process.turn + 1) % workers;
                process.threads.get(process.turn).copied()
            }
            Where::Thread(thread) => Some(thread),
        }
    }

    /// Where a thread is at a moment.
    fn origin(&self, thread: usize, at: Nanos) -> Origin {
        let found = self.machine.threads.get(thread);
        let process = found.and_then(|t| self.machine.processes.get(t.process));
        Origin {
            at,
            processor: found.map_or(0, |t| t.processor),
            pid: process.map_or(0, |p| p.pid),
            tid: found.map_or(0, |t| t.tid),
            pointer_size: process.map_or(self.scenario.machine.pointer_size, |p| p.pointer_size),
            activity: found.and_then(|t| t.activities.last().copied()).unwrap_or(Guid::ZERO),
            user_time: found.map_or(0, crate::machine::Thread::user_time),
        }
    }

    /// Providers are told what is asked of them.
    fn tell(&mut self, notices: Vec<Notice>) -> Result<()> {
        for notice in notices {
            let process =
                self.machine.processes.iter().find(|p| p.pid == notice.pid && p.is_alive());
            let Some((clrs, callback)) =
                process.map(|p| (p.clrs.clone(), p.threads.last().copied()))
            else {
                continue;
            };
            let Some(thread) = callback else { continue };
            if let Some(source) =
                self.event_source(notice.provider).filter(|_| notice.union.enabled)
            {
                self.give(thread, [Op::TellManifest(source)])?;
                continue;
            }
            for clr in clrs {
                let Some(runtime) = self.clrs.get(clr).filter(|c| c.started) else { continue };
                let ops = if notice.provider == CLR_RUNDOWN && !notice.capture_state {
                    runtime.rundown_ops(&notice.union)
                } else if notice.provider == CLR_RUNTIME && notice.capture_state {
                    runtime.capture_ops()
                } else {
                    Vec::new()
                };
                let ops: Vec<Op> = ops.into_iter().map(|op| Op::Clr(clr, op)).collect();
                self.give(thread, ops)?;
            }
        }
        Ok(())
    }
}

/// Whether there is an image at an address.
fn had(images: &[crate::machine::Image], base: u64) -> bool {
    images.iter().any(|image| image.base == base)
}
