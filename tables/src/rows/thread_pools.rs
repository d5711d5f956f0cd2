//! The thread pools of .NET: changes of their threads, sums, and waits of work items.

use std::borrow::Cow;
use std::cmp::Reverse;
use std::collections::BTreeMap;

use etl_analysis::behavior::thread_pool::{Pool, PoolChange, PoolEvent, Queue, ThreadPool};
use etl_analysis::{ClrKey, Machine};

use super::{
    CLR, Durations, HasDurations, OfProcess, TID, TIME, add_durations, add_process, name_or_number,
    process_label,
};
use crate::cell::{Cell, Label};
use crate::column::{Column, Kind};
use crate::row::{Columns, Row};
use crate::selection::Selection;

/// A row of `thread_pool_changes`.
#[derive(Clone, Debug)]
pub struct ThreadPoolChangeRow<'m> {
    machine: &'m Machine,
    process: Label<'m>,
    event: &'m PoolEvent,
    reason: Cow<'static, str>,
}

impl OfProcess for ThreadPoolChangeRow<'_> {
    fn process(&self) -> &Label<'_> {
        &self.process
    }
}

impl Row for ThreadPoolChangeRow<'_> {
    const NAME: &'static str = "thread_pool_changes";
    const ROW: &'static str = "One change of the threads of a thread pool of .NET, in time order";
    const ABOUT: &'static str = "`analyze threadpool` prints the same rows.";

    fn columns<C: Columns<Self>>(columns: &mut C) {
        const KIND: Column = Column::new("thread_kind", Kind::Word, "`workers` or `I/O`");
        const CHANGE: Column = Column::new("change", Kind::Word, "What changed");
        const COUNT: Column = Column::count("count", "Threads after it");
        const RETIRED: Column = Column::count("retired", "Retired threads after it");
        const REASON: Column = Column::new("reason", Kind::Word, "Why, by its name or its number");
        const RATE: Column = Column::new(
            "items_per_second",
            Kind::Float64,
            "Throughput that the pool measured: completed work items in a second",
        );
        add_process(columns);
        columns.add(CLR, |row| Cell::int(Some(row.event.clr)));
        columns.add(TIME.heading("time"), |row| {
            Cell::time(row.machine.clock(), Some(row.event.time))
        });
        columns.add(TID.heading("tid"), |row| Cell::int(row.event.tid));
        columns.add(KIND.heading("threads"), |row| {
            Cell::Text(if row.event.is_io { "I/O" } else { "workers" })
        });
        columns.add(CHANGE.heading("change"), |row| {
            Cell::Text(row.event.change.name())
        });
        columns.add(COUNT.heading("now"), |row| {
            Cell::int(Some(row.event.threads))
        });
        columns.add(RETIRED.or_null().heading("retired"), |row| {
            Cell::int(row.event.retired)
        });
        columns.add(REASON.or_null().heading("reason"), |row| {
            Cell::text(&row.reason)
        });
        columns.add(RATE.unit("1/s").or_null().heading("items/s"), |row| {
            row.event.throughput.map_or(Cell::Null, Cell::Float)
        });
    }
}

/// A row for each change of a pool of the selected processes.
#[must_use]
pub fn thread_pool_changes<'m>(
    machine: &'m Machine,
    pools: &'m ThreadPool,
    selection: &Selection,
) -> Vec<ThreadPoolChangeRow<'m>> {
    let mut rows = Vec::new();
    for event in pools.changes() {
        if !selection.has_process(Some(event.process)) {
            continue;
        }
        let reason = match event.reason {
            Some(reason) => name_or_number(pools.reason_name(reason), reason),
            None => Cow::Borrowed(""),
        };
        let process = process_label(machine, Some(event.process));
        rows.push(ThreadPoolChangeRow {
            machine,
            process,
            event,
            reason,
        });
    }
    rows
}

/// A row of `thread_pools`.
#[derive(Clone, Debug)]
pub struct ThreadPoolRow<'m> {
    process: Label<'m>,
    clr: u16,
    pool: &'m Pool,
    started: u64,
    ended: u64,
    most_threads: Option<u32>,
    most_io_threads: Option<u32>,
    adjustments: u64,
    main_reason: Cow<'static, str>,
}

impl OfProcess for ThreadPoolRow<'_> {
    fn process(&self) -> &Label<'_> {
        &self.process
    }
}

impl Row for ThreadPoolRow<'_> {
    const NAME: &'static str = "thread_pools";
    const ROW: &'static str = "The thread pool of one CLR";
    const ABOUT: &'static str = "`analyze threadpool` prints the same rows.";

    fn columns<C: Columns<Self>>(columns: &mut C) {
        const MIN: Column = Column::count("min_workers", "Minimum number of worker threads");
        const MAX: Column = Column::count("max_workers", "Maximum number of worker threads");
        const STARTED: Column = Column::count("threads_started", "Worker threads that started");
        const ENDED: Column = Column::count("threads_ended", "Worker threads that ended");
        const THREADS: Column = Column::count(
            "most_threads",
            "Largest number of worker threads at one time",
        );
        const WORKING: Column = Column::count(
            "most_working",
            "Largest number of busy worker threads at one time",
        );
        const IO: Column = Column::count(
            "most_io_threads",
            "Largest number of I/O threads at one time",
        );
        const ADJUSTMENTS: Column =
            Column::count("adjustments", "Adjustments of the number of worker threads");
        const REASON: Column = Column::new(
            "main_reason",
            Kind::Word,
            "The most frequent reason of adjustments",
        );
        add_process(columns);
        columns.add(CLR, |row| Cell::int(Some(row.clr)));
        columns.add(MIN.or_null().heading("least"), |row| {
            Cell::int(row.pool.limits.map(|limits| limits.min))
        });
        columns.add(MAX.or_null().heading("most allowed"), |row| {
            Cell::int(row.pool.limits.map(|limits| limits.max))
        });
        columns.add(STARTED.heading("started"), |row| {
            Cell::int(Some(row.started))
        });
        columns.add(ENDED.heading("ended"), |row| Cell::int(Some(row.ended)));
        columns.add(THREADS.or_null().heading("most workers"), |row| {
            Cell::int(row.most_threads)
        });
        columns.add(WORKING.or_null().heading("most busy"), |row| {
            Cell::int(row.pool.most_working)
        });
        columns.add(IO.or_null().heading("most I/O"), |row| {
            Cell::int(row.most_io_threads)
        });
        columns.add(ADJUSTMENTS.heading("adjustments"), |row| {
            Cell::int(Some(row.adjustments))
        });
        columns.add(REASON.or_null().heading("main reason"), |row| {
            Cell::text(&row.main_reason)
        });
    }
}

/// A row for each pool of the selected processes.
#[must_use]
pub fn thread_pools<'m>(
    machine: &'m Machine,
    pools: &'m ThreadPool,
    selection: &Selection,
) -> Vec<ThreadPoolRow<'m>> {
    let mut by_pool: BTreeMap<ClrKey, Vec<&PoolEvent>> = BTreeMap::new();
    for event in pools.changes() {
        by_pool
            .entry(ClrKey::new(event.process, event.clr))
            .or_default()
            .push(event);
    }
    let mut rows = Vec::new();
    for (key, pool) in pools.pools() {
        let process = Some(key.process);
        if selection.has_process(process) {
            let changes = by_pool.remove(key).unwrap_or_default();
            rows.push(ThreadPoolRow {
                process: process_label(machine, process),
                clr: key.clr,
                pool,
                started: count_workers(&changes, PoolChange::Started),
                ended: count_workers(&changes, PoolChange::Ended),
                most_threads: most_threads(&changes, false),
                most_io_threads: most_threads(&changes, true),
                adjustments: count_workers(&changes, PoolChange::Adjusted),
                main_reason: main_reason(&changes, pools),
            });
        }
    }
    rows
}

/// The number of changes of one kind of worker threads.
fn count_workers(changes: &[&PoolEvent], change: PoolChange) -> u64 {
    changes
        .iter()
        .filter(|event| event.change == change && !event.is_io)
        .count() as u64
}

/// The most threads at a time.
fn most_threads(changes: &[&PoolEvent], is_io: bool) -> Option<u32> {
    let mut most = None;
    for event in changes {
        if event.is_io == is_io && event.change != PoolChange::Adjusted {
            most = most.max(Some(event.threads));
        }
    }
    most
}

/// The most frequent reason of changes; empty if no change has one.
fn main_reason(changes: &[&PoolEvent], pools: &ThreadPool) -> Cow<'static, str> {
    let mut counts: BTreeMap<u32, u64> = BTreeMap::new();
    for reason in changes.iter().filter_map(|event| event.reason) {
        *counts.entry(reason).or_default() += 1;
    }
    let main = counts
        .into_iter()
        .max_by_key(|&(reason, count)| (count, Reverse(reason)));
    match main {
        Some((reason, _)) => name_or_number(pools.reason_name(reason), reason),
        None => Cow::Borrowed(""),
    }
}

/// A row of `thread_pool_queues`.
#[derive(Clone, Debug)]
pub struct ThreadPoolQueueRow<'m> {
    process: Label<'m>,
    clr: u16,
    name: &'static str,
    queue: &'m Queue,
    durations: Durations,
}

impl OfProcess for ThreadPoolQueueRow<'_> {
    fn process(&self) -> &Label<'_> {
        &self.process
    }
}

impl HasDurations for ThreadPoolQueueRow<'_> {
    fn durations(&self) -> &Durations {
        &self.durations
    }
}

impl Row for ThreadPoolQueueRow<'_> {
    const NAME: &'static str = "thread_pool_queues";
    const ROW: &'static str = "The waits of work items, or of completed I/O, in one thread pool";
    const ABOUT: &'static str = "`analyze threadpool` prints the same rows. An item waits from when it \
        is queued until a thread takes it.";

    fn columns<C: Columns<Self>>(columns: &mut C) {
        const QUEUE: Column = Column::new("queue", Kind::Word, "`work` or `I/O`");
        const QUEUED: Column = Column::count("queued", "Items that were queued");
        const TAKEN: Column = Column::count("taken", "Items that a thread took");
        const WAITING: Column = Column::count(
            "waiting",
            "Items that were queued and not taken in the recording",
        );
        const BEFORE: Column = Column::count(
            "queued_before",
            "Items that were taken, and queued before the recording",
        );
        add_process(columns);
        columns.add(CLR, |row| Cell::int(Some(row.clr)));
        columns.add(QUEUE.heading("queue"), |row| Cell::Text(row.name));
        columns.add(QUEUED.heading("queued"), |row| {
            Cell::int(Some(row.queue.queued))
        });
        columns.add(TAKEN.heading("taken"), |row| {
            Cell::int(Some(row.queue.waits.count()))
        });
        columns.add(WAITING.heading("waiting"), |row| {
            Cell::int(Some(row.queue.waiting))
        });
        columns.add(BEFORE, |row| Cell::int(Some(row.queue.unknown)));
        add_durations(columns);
    }
}

/// A row for each used queue of the pools of the selected processes.
#[must_use]
pub fn thread_pool_queues<'m>(
    machine: &'m Machine,
    pools: &'m ThreadPool,
    selection: &Selection,
) -> Vec<ThreadPoolQueueRow<'m>> {
    let mut rows = Vec::new();
    for (key, pool) in pools.pools() {
        let process = Some(key.process);
        if !selection.has_process(process) {
            continue;
        }
        for (name, queue) in [("work", &pool.work), ("I/O", &pool.io)] {
            if queue.queued + queue.unknown > 0 {
                rows.push(ThreadPoolQueueRow {
                    process: process_label(machine, process),
                    clr: key.clr,
                    name,
                    queue,
                    durations: Durations::of_ticks(&queue.waits, machine.clock()),
                });
            }
        }
    }
    rows
}
