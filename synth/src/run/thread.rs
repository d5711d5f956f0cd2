//! A thread performs its operations, one after the other.

use crate::clr::{ClrOp, Item, Runtime, TIERING_DELAY, TargetThread};
use crate::error::Result;
use crate::etw::Origin;
use crate::kernel::Lifecycle;
use crate::machine::Image;
use crate::time::Nanos;

use super::op_queue::{Op, OpQueue};
use super::{Simulator, Task};

impl Simulator<'_> {
    /// A thread performs its next operation.
    pub(super) fn run_thread(&mut self, index: usize) -> Result<()> {
        let now = self.now;
        let Some(thread) = self.machine.threads.get_mut(index) else {
            return Ok(());
        };
        let processor = usize::from(thread.processor);
        let Some(op) = self.ops.get_mut(index).and_then(OpQueue::pop) else {
            thread.busy = false;
            return self.settle(processor, now);
        };
        let started = thread.started;
        let others = self.others_until(index, &op);
        if self.waits_for_others(index, others) {
            if let Some(queue) = self.ops.get_mut(index) {
                queue.push_front(vec![op]);
            }
            self.plan(others, Task::RunThread(index));
            return Ok(());
        }
        // Another thread may have used the processor until later than now.
        let from = now.max(self.machine.horizon(processor)).max(others);
        // The start of a thread is logged before it takes the processor.
        if started {
            self.enter(processor, index, from)?;
        }
        let (until, cost, then) = self.perform_op(index, op, from)?;
        if !started {
            self.enter(processor, index, from)?;
        }
        let used = until.saturating_sub(from).saturating_add(cost);
        let Some(thread) = self.machine.threads.get_mut(index) else {
            return Ok(());
        };
        let Some(queue) = self.ops.get_mut(index) else {
            return Ok(());
        };
        thread.used = thread.used.saturating_add(used);
        queue.push_front(then);
        let waits = thread.blocked;
        let busy = !queue.is_empty() && !waits;
        thread.busy = busy || waits;
        self.machine.advance(processor, until);
        self.compute(processor, index, used);
        if busy {
            self.plan(until.saturating_add(cost), Task::RunThread(index));
        }
        Ok(())
    }

    /// Performs an operation. Returns the time of its last event, its cost after that, and the
    /// operations that follow.
    fn perform_op(&mut self, index: usize, op: Op, from: Nanos) -> Result<(Nanos, Nanos, Vec<Op>)> {
        match op {
            Op::Clr(clr, op) => self.perform_clr_op(index, clr, &op, from),
            Op::Io(op) => self.perform_io(index, op, from),
            other => {
                let origin = self.origin(index, from);
                let cost = self.perform_process_op(index, other, &origin)?;
                Ok((from, cost, Vec::new()))
            }
        }
    }

    fn perform_clr_op(
        &mut self,
        index: usize,
        clr: usize,
        op: &ClrOp,
        from: Nanos,
    ) -> Result<(Nanos, Nanos, Vec<Op>)> {
        let origin = self.origin(index, from);
        let nothing = (from, 0, Vec::new());
        let Some(runtime) = self.clrs.get_mut(clr) else {
            return Ok(nothing);
        };
        let process_index = runtime.process;
        let Some(process) = self.machine.processes.get_mut(process_index) else {
            return Ok(nothing);
        };
        // Operations that other threads left do not run after the exit of the process.
        if process.exited.is_some() {
            return Ok(nothing);
        }
        let threads: Vec<(usize, u32)> = match op {
            ClrOp::Rundown(_, Item::Threads, true) => {
                let threads = process.threads.iter();
                threads
                    .filter_map(|index| Some((*index, self.machine.threads.get(*index)?.tid)))
                    .collect()
            }
            _ => Vec::new(),
        };
        let changes_images = op.changes_images();
        let images_before = if changes_images {
            process.images.clone()
        } else {
            Vec::new()
        };
        let Some(thread) = self.machine.threads.get_mut(index) else {
            return Ok(nothing);
        };
        let etw = &mut self.etw;
        let threads = &threads;
        let enumerating = op.enumerates();
        let mut runtime = Runtime {
            clr: runtime,
            etw,
            process,
            origin,
            thread,
            threads,
            enumerating,
        };
        let effect = runtime.perform(op)?;
        let until = runtime.origin.at;
        let begins_delay = std::mem::take(&mut runtime.clr.tiering.begins_delay);
        let origin = Origin {
            at: until,
            ..origin
        };
        if changes_images {
            let images = process.images.clone();
            self.log_image_changes(index, &images_before, &images, &origin)?;
        }
        if begins_delay {
            self.plan(until + TIERING_DELAY, Task::TieringDelay(clr));
        }
        // What the operation logs about other threads comes after its events.
        self.machine.advance(usize::from(origin.processor), until);
        for (target, op) in effect.other_threads {
            if let Some(thread) = self.pick_thread(process_index, target) {
                self.enqueue(thread, [Op::Clr(clr, op)])?;
            }
        }
        self.enqueue_callback(
            process_index,
            effect.callbacks.into_iter().map(|op| Op::Clr(clr, op)),
        )?;
        let then = effect.then.into_iter().map(|op| Op::Clr(clr, op)).collect();
        Ok((until, effect.cost, then))
    }

    /// Logs the images that a thread loaded and unloaded with their modules.
    fn log_image_changes(
        &mut self,
        thread: usize,
        before: &[Image],
        after: &[Image],
        origin: &Origin,
    ) -> Result<()> {
        for image in after.iter().filter(|i| !has_image(before, i.base)) {
            self.image_changed(thread, Lifecycle::Start, image, origin)?;
        }
        for image in before.iter().filter(|i| !has_image(after, i.base)) {
            self.image_changed(thread, Lifecycle::End, image, origin)?;
        }
        Ok(())
    }

    /// The delay of a CLR after which it counts calls ends, if no method ran for the first time
    /// meanwhile.
    pub(super) fn end_tiering_delay(&mut self, clr: usize) -> Result<()> {
        let Some(runtime) = self.clrs.get_mut(clr).filter(|clr| clr.started) else {
            return Ok(());
        };
        if runtime.tiering.continues_delay() {
            self.plan(self.now + TIERING_DELAY, Task::TieringDelay(clr));
            return Ok(());
        }
        let process = runtime.process;
        match self.pick_thread(process, TargetThread::Tiering) {
            Some(thread) => self.enqueue(thread, [Op::Clr(clr, ClrOp::TierResume)]),
            None => Ok(()),
        }
    }

    /// A thread of a process.
    fn pick_thread(&mut self, process: usize, target: TargetThread) -> Option<usize> {
        let process = self.machine.processes.get_mut(process)?;
        match target {
            TargetThread::Finalizer => process.finalizer(),
            TargetThread::Tiering => process.tiering_thread(),
            TargetThread::Worker => process.next_worker(),
            TargetThread::Thread(thread) => Some(thread),
        }
    }
}

fn has_image(images: &[Image], base: u64) -> bool {
    images.iter().any(|image| image.base == base)
}
