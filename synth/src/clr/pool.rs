//! The thread pool: its work items and its threads.

use etl_schema::encode::OwnedValue;

use super::op::{ClrOp, OpEffect, TargetThread};
use super::raise::Runtime;
use crate::error::Result;
use crate::etw::values;
use crate::model::ClrWork;
use crate::time::{MICROSECOND, Nanos};

/// Maximum number of threads that one step adds or removes.
const MAX_STEPS: u32 = 10_000;

impl Runtime<'_, '_> {
    /// The limits of the pool, reported once (since .NET 8).
    fn begin_pool(&mut self) -> Result<()> {
        if std::mem::replace(&mut self.clr.pool.begun, true) {
            return Ok(());
        }
        self.raise(
            59,
            0,
            &values![4u16, 32_767u16, 1u16, 1_000u16, self.clr.instance],
        )
    }

    fn started_worker(&mut self) -> Result<()> {
        self.clr.pool.workers = self.clr.pool.workers.saturating_add(1);
        self.emit_workers(50)
    }

    /// Reports the threads of the pool: 50 when one starts, 51 when one ends, 52 when one retires,
    /// 53 when one returns. The older pool has ids of its own for these, without its CLR.
    fn emit_workers(&mut self, id: u16) -> Result<()> {
        let workers = self.clr.pool.workers;
        let retired = self.clr.pool.retired_workers;
        if self.clr.has_older_pool() {
            return self.raise(id - 10, 0, &values![workers, retired]);
        }
        self.raise(id, 0, &values![workers, retired, self.clr.instance])
    }

    /// Reports the I/O threads of the pool: 44 when one starts, 45 when one ends, 46 when one
    /// retires, 47 when one returns.
    fn emit_io(&mut self, id: u16) -> Result<()> {
        let io = self.clr.pool.io;
        let retired = self.clr.pool.retired_io;
        self.raise(id, 1, &values![io, retired, self.clr.instance])
    }

    /// Threads of the pool retire because they have no work, or return because there is some.
    pub fn retire(&mut self, by: i32, io: bool) -> Result<OpEffect> {
        for _ in 0..by.unsigned_abs().min(MAX_STEPS) {
            let pool = &mut self.clr.pool;
            let (active, retired) = match io {
                false => (&mut pool.workers, &mut pool.retired_workers),
                true => (&mut pool.io, &mut pool.retired_io),
            };
            let (from, to) = if by > 0 {
                (active, retired)
            } else {
                (retired, active)
            };
            if *from == 0 {
                break;
            }
            *from -= 1;
            *to = to.saturating_add(1);
            let id = match (io, by > 0) {
                (false, true) => 52,
                (false, false) => 53,
                (true, true) => 46,
                (true, false) => 47,
            };
            if io {
                self.emit_io(id)?
            } else {
                self.emit_workers(id)?
            }
            self.pass(3 * MICROSECOND);
        }
        Ok(OpEffect::after(5 * MICROSECOND))
    }

    /// The older pool suspends threads while the processors are busy, and resumes them.
    pub fn suspend(&mut self, by: i32) -> Result<OpEffect> {
        for _ in 0..by.unsigned_abs().min(MAX_STEPS) {
            let (id, thread, busy) = if by > 0 {
                let suspended = &self.clr.pool.suspended;
                let mut ids = self.clr.thread_ids.values().copied();
                let Some(thread) = ids.find(|tid| !suspended.contains(tid)) else {
                    break;
                };
                self.clr.pool.suspended.push(thread);
                (48, thread, 97u32)
            } else {
                let Some(thread) = self.clr.pool.suspended.pop() else {
                    break;
                };
                (49, thread, 62)
            };
            let older = self.clr.has_older_pool();
            self.raise_if(older, id, 0, &values![thread, busy])?;
            self.pass(3 * MICROSECOND);
        }
        Ok(OpEffect::after(5 * MICROSECOND))
    }

    /// The pool gets more threads, or fewer.
    pub fn resize_pool(&mut self, by: i32) -> Result<OpEffect> {
        self.begin_pool()?;
        let before = self.clr.pool.workers;
        self.raise(54, 0, &values![throughput(before), self.clr.instance])?;
        for _ in 0..by.unsigned_abs().min(MAX_STEPS) {
            if by > 0 {
                self.started_worker()?;
            } else if self.clr.pool.workers > 0 {
                self.clr.pool.workers -= 1;
                self.emit_workers(51)?;
            }
            self.pass(3 * MICROSECOND);
        }
        // Why: a climbing move, or a thread that timed out.
        let reason = if by > 0 { 3u32 } else { 7 };
        let after = self.clr.pool.workers;
        self.raise(
            55,
            0,
            &values![throughput(after), after, reason, self.clr.instance],
        )?;
        self.emit_climb(before, after)?;
        Ok(OpEffect::after(10 * MICROSECOND))
    }

    /// The measurements of the pool when it adds threads.
    fn emit_climb(&mut self, before: u32, after: u32) -> Result<()> {
        let b = f64::from(before);
        let a = f64::from(after);
        let growth = if before == 0 { 0.0 } else { (a - b) / b };
        let numbers = [
            0.5,
            b * 125.5,
            1.0,
            (a - b) * 125.5,
            0.0,
            0.0,
            growth,
            1.0,
            a,
        ];
        let mut values: Vec<OwnedValue> = numbers.map(OwnedValue::Double).into();
        values.extend(values![1u16, self.clr.instance]);
        self.raise(56, 0, &values)
    }

    /// The pool gets more threads that wait for input and output, or fewer.
    pub fn resize_io_pool(&mut self, by: i32) -> Result<OpEffect> {
        for _ in 0..by.unsigned_abs().min(MAX_STEPS) {
            if by < 0 && self.clr.pool.io == 0 {
                break;
            }
            self.clr.pool.io = if by > 0 {
                self.clr.pool.io.saturating_add(1)
            } else {
                self.clr.pool.io - 1
            };
            self.emit_io(if by > 0 { 44 } else { 45 })?;
            self.pass(3 * MICROSECOND);
        }
        Ok(OpEffect::after(5 * MICROSECOND))
    }

    /// The program queues a work item, which another thread runs.
    pub fn enqueue(&mut self) -> Result<OpEffect> {
        self.begin_pool()?;
        let work = self.clr.heap.object(0, 64);
        self.raise(61, 0, &values![work, self.clr.instance])?;
        if self.clr.pool.workers == 0 {
            self.started_worker()?;
        }
        self.clr.pool.waiting = self.clr.pool.waiting.saturating_add(1);
        let mut done = OpEffect::after(2 * MICROSECOND);
        done.other_threads
            .push((TargetThread::Worker, ClrOp::Dequeue(work, self.origin.at)));
        Ok(done)
    }

    /// A thread of the pool runs a work item.
    pub fn dequeue(&mut self, work: u64, since: Nanos) -> Result<OpEffect> {
        self.until(since + MICROSECOND);
        self.raise(62, 0, &values![work, self.clr.instance])?;
        let workers = self.clr.pool.workers;
        self.raise(60, 0, &values![workers, self.clr.instance])?;
        let took = 5 * MICROSECOND + self.thread.rng.mostly_low(0, 200 * MICROSECOND);
        self.pass(took);
        self.clr.pool.waiting = self.clr.pool.waiting.saturating_sub(1);
        if self.clr.pool.waiting == 0 {
            // Nothing to do: it waits.
            let retired = self.clr.pool.retired_workers;
            self.raise(57, 0, &values![workers, retired, self.clr.instance])?;
        }
        Ok(OpEffect::after(MICROSECOND))
    }

    /// The program starts input or output; a thread of the pool handles its end.
    pub fn enqueue_io(&mut self) -> Result<OpEffect> {
        let native = self.process.space.heap(0x80);
        let object = self.clr.heap.object(0, 128);
        self.raise(65, 0, &values![native, object, self.clr.instance])?;
        self.raise(63, 0, &values![native, object, false, self.clr.instance])?;
        let mut done = OpEffect::after(3 * MICROSECOND);
        if self.clr.pool.io == 0 {
            done.then.push(ClrOp::Work(ClrWork::IoPool(1)));
        }
        done.other_threads.push((
            TargetThread::Worker,
            ClrOp::IoDequeue(native, object, self.origin.at),
        ));
        Ok(done)
    }

    /// Input or output ends.
    pub fn dequeue_io(&mut self, native: u64, object: u64, since: Nanos) -> Result<OpEffect> {
        self.until(since + 100 * MICROSECOND);
        self.raise(64, 0, &values![native, object, self.clr.instance])?;
        Ok(OpEffect::after(10 * MICROSECOND))
    }
}

/// The throughput that so many workers have, in work items per second.
fn throughput(workers: u32) -> OwnedValue {
    OwnedValue::Double(f64::from(workers) * 125.5)
}
