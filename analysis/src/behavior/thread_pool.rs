//! The thread pool of .NET: its threads, why their number changed, and how long work waited in its
//! queues.
//!
//! Needs the events of the CLR's runtime provider with the keyword Threading (0x10000) at level 4;
//! at level 5 there are the work items and their waits as well.
//!
//! ```no_run
//! use etl_analysis::behavior::thread_pool::ThreadPool;
//! use etl_analysis::{Analysis, Recording};
//!
//! let bytes = std::fs::read("trace.etl")?;
//! let mut recording = Recording::open([(bytes.as_slice(), "trace.etl")])?;
//! let mut pools = ThreadPool::new();
//! let machine = Analysis::new().run(&mut recording, &mut pools)?;
//! for change in pools.changes() {
//!     println!("{}: {:?}, {} threads", change.time, change.change, change.threads);
//! }
//! # drop(machine);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

use etl_format::{ThreadId, Ticks};
use std::collections::BTreeMap;

use etl_format::read::Record;
use etl_schema::providers::CLR_RUNTIME;
use etl_schema::views::FieldReader;
use foldhash::HashMap;

use super::{Histogram, runtime_event};
use crate::keys::{ClrKey, ProcessIndex};
use crate::machine::Machine;
use crate::observe::{EventRef, Joins, Observer};

/// Events of the pool before .NET Framework 4, which have ids of their own for the same.
const OLDER: std::ops::RangeInclusive<u16> = 40..=43;
const IO_STARTED: u16 = 44;
const IO_RETURNED: u16 = 47;
pub(super) const WORKER_STARTED: u16 = 50;
const WORKER_RETURNED: u16 = 53;
pub(super) const ADJUSTED: u16 = 55;
const LIMITS: u16 = 59;
const WORKING: u16 = 60;
const QUEUED: u16 = 61;
const TAKEN: u16 = 62;
const IO_QUEUED: u16 = 63;
const IO_TAKEN: u16 = 64;

/// Whether an event is one of the thread pool.
pub(super) fn is_of_pool(id: u16) -> bool {
    matches!(id, 40..=49 | WORKER_STARTED..=57 | LIMITS..=65)
}

/// What happened to the threads of a pool.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[non_exhaustive]
pub enum PoolChange {
    /// A thread started.
    Started,
    /// A thread ended.
    Ended,
    /// A thread retired: it has no work.
    Retired,
    /// A retired thread works again.
    Returned,
    /// The pool changed the number of threads that it aims at.
    Adjusted,
}

impl PoolChange {
    /// Its name in reports.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            PoolChange::Started => "started",
            PoolChange::Ended => "ended",
            PoolChange::Retired => "retired",
            PoolChange::Returned => "returned",
            PoolChange::Adjusted => "adjusted",
        }
    }

    /// The change that an event reports, by its place among the events of its kind of thread.
    const fn of(place: u16) -> Self {
        match place {
            0 => PoolChange::Started,
            1 => PoolChange::Ended,
            2 => PoolChange::Retired,
            _ => PoolChange::Returned,
        }
    }
}

/// A change of the threads of a pool.
#[derive(Clone, Copy, Debug, PartialEq)]
#[non_exhaustive]
pub struct PoolEvent {
    /// The process.
    pub process: ProcessIndex,
    /// The CLR of the process; 0 where the event does not state it.
    pub clr: u16,
    /// When, in ticks.
    pub time: Ticks,
    /// The thread that reported it.
    pub tid: Option<ThreadId>,
    /// Whether it is about threads for input and output, not about workers.
    pub is_io: bool,
    /// What happened.
    pub change: PoolChange,
    /// The threads after it; for an adjustment, the number that the pool aims at.
    pub threads: u32,
    /// Retired threads after it; an adjustment does not state them.
    pub retired: Option<u32>,
    /// Why the pool adjusted the number: a value that [`ThreadPool::reason_name`] names.
    pub reason: Option<u32>,
    /// Work items in a second, as the adjustment states it.
    pub throughput: Option<f64>,
}

/// What a queue of a pool did.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Queue {
    /// Work items that were queued.
    pub queued: u64,
    /// Ticks from when an item was queued until a thread took it.
    pub waits: Histogram,
    /// Items that were queued and that no thread took.
    pub waiting: u64,
    /// Items that a thread took and whose queuing was not recorded.
    pub unknown: u64,
}

/// How many worker threads a pool may have.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct WorkerLimits {
    /// The pool does not end threads below this number.
    pub min: u32,
    /// The pool does not start threads above this number.
    pub max: u32,
}

/// The thread pool of a CLR.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Pool {
    /// Work items.
    pub work: Queue,
    /// Completed input and output.
    pub io: Queue,
    /// The limits of its worker threads, if the recording states them.
    pub limits: Option<WorkerLimits>,
    /// The most threads that worked at the same time, as the events state it.
    pub most_working: Option<u32>,
}

/// Collects what the thread pools of a recording did.
#[derive(Clone, Debug)]
pub struct ThreadPool {
    changes: Vec<PoolEvent>,
    pools: BTreeMap<ClrKey, Pool>,
    /// When items were queued that no thread took yet: by pool, whether of I/O, and id.
    waiting: HashMap<(ProcessIndex, u16, bool, u64), Ticks>,
    workers: FieldReader<3>,
    older: FieldReader<2>,
    io: FieldReader<3>,
    adjusted: FieldReader<4>,
    limits: FieldReader<3>,
    working: FieldReader<2>,
    queue: FieldReader<2>,
    io_queue: FieldReader<2>,
    io_take: FieldReader<2>,
}

impl Default for ThreadPool {
    fn default() -> Self {
        ThreadPool::new()
    }
}

impl ThreadPool {
    /// Nothing is collected yet.
    #[must_use]
    pub fn new() -> Self {
        const CLR: &str = "ClrInstanceID";
        const OVERLAPPED: &str = "NativeOverlapped";
        let active = ["ActiveWorkerThreadCount", "RetiredWorkerThreadCount", CLR];
        let older = ["WorkerThreadCount", "RetiredWorkerThreads"];
        let io = ["IOThreadCount", "RetiredIOThreads", CLR];
        let adjusted = ["NewWorkerThreadCount", "Reason", "AverageThroughput", CLR];
        let limits = ["MinWorkerThreads", "MaxWorkerThreads", CLR];
        ThreadPool {
            changes: Vec::new(),
            pools: BTreeMap::new(),
            waiting: HashMap::default(),
            workers: FieldReader::of_event(CLR_RUNTIME, WORKER_STARTED, active),
            older: FieldReader::of_event(CLR_RUNTIME, *OLDER.start(), older),
            io: FieldReader::of_event(CLR_RUNTIME, IO_STARTED, io),
            adjusted: FieldReader::of_event(CLR_RUNTIME, ADJUSTED, adjusted),
            limits: FieldReader::of_event(CLR_RUNTIME, LIMITS, limits),
            working: FieldReader::of_event(CLR_RUNTIME, WORKING, ["Count", CLR]),
            // The events that queue an item and that take it have the same fields.
            queue: FieldReader::of_event(CLR_RUNTIME, QUEUED, ["WorkID", CLR]),
            io_queue: FieldReader::of_event(CLR_RUNTIME, IO_QUEUED, [OVERLAPPED, CLR]),
            io_take: FieldReader::of_event(CLR_RUNTIME, IO_TAKEN, [OVERLAPPED, CLR]),
        }
    }

    /// The changes of threads, in time order.
    #[must_use]
    pub fn changes(&self) -> &[PoolEvent] {
        &self.changes
    }

    /// The pool of each CLR.
    #[must_use]
    pub fn pools(&self) -> &BTreeMap<ClrKey, Pool> {
        &self.pools
    }

    /// The name of a reason of an adjustment.
    #[must_use]
    pub fn reason_name(&self, reason: u32) -> Option<&'static str> {
        self.adjusted.value_name(1, reason.into())
    }

    fn change(&mut self, id: u16, process: ProcessIndex, record: &Record<'_>, event: &EventRef) {
        let is_io = (IO_STARTED..=IO_RETURNED).contains(&id);
        let fields = if OLDER.contains(&id) {
            let fields = self.older.read(record);
            fields.map(|fields| [fields.uint(0), fields.uint(1), None])
        } else {
            let fields = if is_io {
                self.io.read(record)
            } else {
                self.workers.read(record)
            };
            fields.map(|fields| [fields.uint(0), fields.uint(1), fields.uint(2)])
        };
        let Some([Some(threads), retired, clr]) = fields else {
            return;
        };
        // The events of each kind of thread follow each other, from 40, 44 and 50.
        let place = if id >= WORKER_STARTED {
            id - WORKER_STARTED
        } else {
            id % 4
        };
        let clr = clr.unwrap_or(0) as u16;
        self.pools.entry(ClrKey::new(process, clr)).or_default();
        self.changes.push(PoolEvent {
            process,
            clr,
            time: event.time,
            tid: event.tid,
            is_io,
            change: PoolChange::of(place),
            threads: threads as u32,
            retired: retired.map(|retired| retired as u32),
            reason: None,
            throughput: None,
        });
    }

    fn adjusted(&mut self, process: ProcessIndex, record: &Record<'_>, event: &EventRef) {
        let Some(fields) = self.adjusted.read(record) else {
            return;
        };
        let Some(threads) = fields.uint(0) else {
            return;
        };
        let clr = fields.uint(3).unwrap_or(0) as u16;
        self.pools.entry(ClrKey::new(process, clr)).or_default();
        self.changes.push(PoolEvent {
            process,
            clr,
            time: event.time,
            tid: event.tid,
            is_io: false,
            change: PoolChange::Adjusted,
            threads: threads as u32,
            retired: None,
            reason: fields.uint(1).map(|reason| reason as u32),
            throughput: fields.uint(2).map(f64::from_bits),
        });
    }

    fn queued(&mut self, process: ProcessIndex, is_io: bool, record: &Record<'_>, time: Ticks) {
        let reader = if is_io {
            &mut self.io_queue
        } else {
            &mut self.queue
        };
        let Some(fields) = reader.read(record) else {
            return;
        };
        let Some(item) = fields.uint(0) else { return };
        let clr = fields.uint(1).unwrap_or(0) as u16;
        let pool = self.pools.entry(ClrKey::new(process, clr)).or_default();
        let queue = if is_io { &mut pool.io } else { &mut pool.work };
        queue.queued += 1;
        let before = self.waiting.insert((process, clr, is_io, item), time);
        queue.waiting += u64::from(before.is_none());
    }

    fn taken(&mut self, process: ProcessIndex, is_io: bool, record: &Record<'_>, time: Ticks) {
        let reader = if is_io {
            &mut self.io_take
        } else {
            &mut self.queue
        };
        let Some(fields) = reader.read(record) else {
            return;
        };
        let Some(item) = fields.uint(0) else { return };
        let clr = fields.uint(1).unwrap_or(0) as u16;
        let pool = self.pools.entry(ClrKey::new(process, clr)).or_default();
        let queue = if is_io { &mut pool.io } else { &mut pool.work };
        match self.waiting.remove(&(process, clr, is_io, item)) {
            Some(since) => {
                queue.waiting -= 1;
                queue
                    .waits
                    .add(u64::try_from(time.saturating_since(since)).unwrap_or(0));
            }
            None => queue.unknown += 1,
        }
    }
}

impl Observer for ThreadPool {
    const JOINS: Joins = Joins::Nothing;

    fn record(&mut self, _: &Machine, record: &Record<'_>, event: &EventRef) {
        let Some(id) = runtime_event(event) else {
            return;
        };
        let Some(process) = event.process else {
            return;
        };
        match id {
            40..=IO_RETURNED | WORKER_STARTED..=WORKER_RETURNED => {
                self.change(id, process, record, event);
            }
            ADJUSTED => self.adjusted(process, record, event),
            LIMITS => {
                let Some(fields) = self.limits.read(record) else {
                    return;
                };
                let clr = fields.uint(2).unwrap_or(0) as u16;
                let pool = self.pools.entry(ClrKey::new(process, clr)).or_default();
                pool.limits = None;
                if let Some(min) = fields.uint(0)
                    && let Some(max) = fields.uint(1)
                {
                    pool.limits = Some(WorkerLimits {
                        min: min as u32,
                        max: max as u32,
                    });
                }
            }
            WORKING => {
                let Some(fields) = self.working.read(record) else {
                    return;
                };
                let clr = fields.uint(1).unwrap_or(0) as u16;
                let pool = self.pools.entry(ClrKey::new(process, clr)).or_default();
                pool.most_working = pool.most_working.max(fields.uint(0).map(|n| n as u32));
            }
            QUEUED | IO_QUEUED => self.queued(process, id == IO_QUEUED, record, event.time),
            TAKEN | IO_TAKEN => self.taken(process, id == IO_TAKEN, record, event.time),
            _ => {}
        }
    }

    fn restart(&mut self) {
        *self = ThreadPool::new();
    }
}
