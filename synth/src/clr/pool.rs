//! The thread pool: its work items and its threads.

use etl_schema::encode::OwnedValue;

use super::op::{ClrOp, OpEffect, TargetThread};
use super::raise::Context;
use super::state::Clr;
use crate::error::Result;
use crate::etw::values;
use crate::time::{MICROSECOND, Nanos};

/// Maximum number of threads that one step adds or removes.
const MAX_STEPS: u32 = 10_000;

impl Clr {
    /// The limits of the pool, reported once (since .NET 8).
    fn begin_pool(&mut self, ctx: &mut Context<'_, '_>) -> Result<()> {
        if std::mem::replace(&mut self.pool.begun, true) || !self.is_core(8) {
            return Ok(());
        }
        self.raise(59, 0, &values![4u16, 32_767u16, 1u16, 1_000u16, self.instance], ctx)
    }

    fn started_worker(&mut self, ctx: &mut Context<'_, '_>) -> Result<()> {
        self.pool.workers = self.pool.workers.saturating_add(1);
        self.raise(50, 0, &values![self.pool.workers, 0u32, self.instance], ctx)
    }

    /// The pool gets more threads, or fewer.
    pub fn resize_pool(&mut self, by: i32, ctx: &mut Context<'_, '_>) -> Result<OpEffect> {
        self.begin_pool(ctx)?;
        let throughput = |workers: u32| OwnedValue::Double(f64::from(workers) * 125.5);
        let before = self.pool.workers;
        self.raise(54, 0, &values![throughput(before), self.instance], ctx)?;
        for _ in 0..by.unsigned_abs().min(MAX_STEPS) {
            if by > 0 {
                self.started_worker(ctx)?;
            } else if self.pool.workers > 0 {
                self.pool.workers -= 1;
                self.raise(51, 0, &values![self.pool.workers, 0u32, self.instance], ctx)?;
            }
            ctx.pass(3 * MICROSECOND);
        }
        // Why: a climbing move, or a thread that timed out.
        let reason = if by > 0 { 3u32 } else { 7 };
        let after = self.pool.workers;
        self.raise(55, 0, &values![throughput(after), after, reason, self.instance], ctx)?;
        self.emit_climb(before, after, ctx)?;
        Ok(OpEffect::after(10 * MICROSECOND))
    }

    /// The measurements of the pool when it adds threads.
    fn emit_climb(&mut self, before: u32, after: u32, ctx: &mut Context<'_, '_>) -> Result<()> {
        let (b, a) = (f64::from(before), f64::from(after));
        let growth = if before == 0 { 0.0 } else { (a - b) / b };
        let numbers = [0.5, b * 125.5, 1.0, (a - b) * 125.5, 0.0, 0.0, growth, 1.0, a];
        let mut values: Vec<OwnedValue> = numbers.map(OwnedValue::Double).into();
        values.extend(values![1u16, self.instance]);
        self.raise(56, 0, &values, ctx)
    }

    /// The pool gets more threads that wait for input and output, or fewer.
    pub fn resize_io_pool(&mut self, by: i32, ctx: &mut Context<'_, '_>) -> Result<OpEffect> {
        for _ in 0..by.unsigned_abs().min(MAX_STEPS) {
            if by < 0 && self.pool.io == 0 {
                break;
            }
            self.pool.io = if by > 0 { self.pool.io.saturating_add(1) } else { self.pool.io - 1 };
            let values = values![self.pool.io, 0u32, self.instance];
            self.raise(if by > 0 { 44 } else { 45 }, 1, &values, ctx)?;
            ctx.pass(3 * MICROSECOND);
        }
        Ok(OpEffect::after(5 * MICROSECOND))
    }

    /// Whether the runtime reports single work items.
    fn emits_work(&self) -> bool {
        self.is_core(0) || self.is_desktop(4, 5)
    }

    /// The program queues a work item, which another thread runs.
    pub fn enqueue(&mut self, ctx: &mut Context<'_, '_>) -> Result<OpEffect> {
        self.begin_pool(ctx)?;
        let work = self.heap.object(0, 64);
        if self.emits_work() {
            self.raise(61, 0, &values![OwnedValue::Pointer(work), self.instance], ctx)?;
        }
        if self.pool.workers == 0 {
            self.started_worker(ctx)?;
        }
        self.pool.waiting = self.pool.waiting.saturating_add(1);
        let mut done = OpEffect::after(2 * MICROSECOND);
        done.other_threads.push((TargetThread::Worker, ClrOp::Dequeue(work, ctx.origin.at)));
        Ok(done)
    }

    /// A thread of the pool runs a work item.
    pub fn dequeue(
        &mut self,
        work: u64,
        since: Nanos,
        ctx: &mut Context<'_, '_>,
    ) -> Result<OpEffect> {
        ctx.until(since + MICROSECOND);
        if self.emits_work() {
            self.raise(62, 0, &values![OwnedValue::Pointer(work), self.instance], ctx)?;
        }
        let workers = self.pool.workers;
        if self.is_desktop(4, 5) {
            self.raise(60, 0, &values![workers, self.instance], ctx)?;
        }
        let took = 5 * MICROSECOND + ctx.rng.mostly_low(0, 200 * MICROSECOND);
        ctx.pass(took);
        self.pool.waiting = self.pool.waiting.saturating_sub(1);
        if self.pool.waiting == 0 {
            // Nothing to do: it waits.
            self.raise(57, 0, &values![workers, 0u32, self.instance], ctx)?;
        }
        Ok(OpEffect::after(MICROSECOND))
    }

    /// The program starts input or output; a thread of the pool handles its end.
    pub fn enqueue_io(&mut self, ctx: &mut Context<'_, '_>) -> Result<OpEffect> {
        let native = ctx.process.space.heap(0x80);
        let object = self.heap.object(0, 128);
        if self.emits_work() {
            let (n, o) = (OwnedValue::Pointer(native), OwnedValue::Pointer(object));
            self.raise(65, 0, &values![n.clone(), o.clone(), self.instance], ctx)?;
            self.raise(63, 0, &values![n, o, false, self.instance], ctx)?;
        }
        let mut done = OpEffect::after(3 * MICROSECOND);
        if self.pool.io == 0 {
            done.then.push(ClrOp::IoPool(1));
        }
        done.other_threads
            .push((TargetThread::Worker, ClrOp::IoDequeue(native, object, ctx.origin.at)));
        Ok(done)
    }

    /// Input or output ends.
    pub fn dequeue_io(
        &mut self,
        native: u64,
        object: u64,
        since: Nanos,
        ctx: &mut Context<'_, '_>,
    ) -> Result<OpEffect> {
        ctx.until(since + 100 * MICROSECOND);
        if self.emits_work() {
            let (n, o) = (OwnedValue::Pointer(native), OwnedValue::Pointer(object));
            self.raise(64, 0, &values![n, o, self.instance], ctx)?;
        }
        Ok(OpEffect::after(10 * MICROSECOND))
    }
}
