//! `etlkit analyze threadpool`: the thread pools of .NET in a recording.

use std::collections::BTreeMap;

use etl_analysis::behavior::Histogram;
use etl_analysis::behavior::thread_pool::{Pool, PoolChange, PoolEvent, ThreadPool};

use super::runtime::columns;
use super::{ReportArgs, process_cells, report, span_facts, ticks};
use crate::Outcome;
use crate::diagnostics::plural;
use crate::error::Failure;
use crate::recording::Between;
use crate::table::{Cell, Table};

/// A pool: index of its process, and its CLR.
type Key = (usize, u16);

/// Prints the pools, the changes of their threads and the waits in their queues.
pub(super) fn threadpool(args: &ReportArgs) -> Result<Outcome, Failure> {
    let analyzed = args.recording.analyze(|span| Between::new(span, ThreadPool::new()))?;
    let (machine, pool) = (&analyzed.machine, &analyzed.observer.observer);
    let selected = &analyzed.selected;
    let admits = |process: usize| selected.as_ref().is_none_or(|s| s.contains(&process));
    let changes: Vec<&PoolEvent> =
        pool.changes().iter().filter(|change| admits(change.process)).collect();
    let pools: Vec<(Key, &Pool)> = (pool.pools().iter())
        .filter(|((process, _), _)| admits(*process))
        .map(|(&key, pool)| (key, pool))
        .collect();
    let clock = machine.clock();
    let own = [
        ("clr", ""),
        ("time", "time"),
        ("tid", "tid"),
        ("threads", "threads"),
        ("change", "change"),
        ("count", "now"),
        ("retired", "retired"),
        ("reason", "reason"),
        ("per_second", "items/s"),
    ];
    let mut list = Table::new("changes", "changes of threads", &columns(&own));
    for change in &changes {
        let reason = change.reason.map(|reason| {
            pool.reason_name(reason).map_or_else(|| reason.to_string(), str::to_owned)
        });
        let mut row = process_cells(machine, change.process).to_vec();
        row.extend([
            Cell::Count(change.clr.into()),
            Cell::time(clock, Some(change.time)),
            Cell::count(change.tid),
            Cell::text(kind(change.is_io)),
            Cell::text(change.change.name()),
            Cell::Count(change.threads.into()),
            Cell::count(change.retired),
            Cell::text(reason.unwrap_or_default()),
            change.throughput.map_or(Cell::None, Cell::Number),
        ]);
        list.rows.push(row);
    }
    let mut report = report("threadpool", &analyzed);
    report.facts.extend(span_facts(machine));
    let count = plural(pools.len() as u64, "pool", "pools");
    let changed = plural(list.rows.len() as u64, "change", "changes");
    report.headline.push(format!("{count}, {changed} of threads"));
    let mut sums = Table::new("pools", "pools", &columns(&SUMS));
    let mut by_pool: BTreeMap<Key, Vec<&PoolEvent>> = BTreeMap::new();
    for &change in &changes {
        by_pool.entry((change.process, change.clr)).or_default().push(change);
    }
    let names = ThreadPool::new();
    for &(key, of) in &pools {
        let mut row = process_cells(machine, key.0).to_vec();
        let own = by_pool.get(&key).map_or(&[][..], Vec::as_slice);
        row.extend(sum(key, of, own, &names));
        sums.rows.push(row);
    }
    let mut queues = Table::new("queues", "waits of work items", &columns(&QUEUES));
    let cell = |value: Option<u64>| value.map_or(Cell::None, |v| Cell::Duration(ticks(clock, v)));
    for &(key, of) in &pools {
        for (is_io, queue) in [(false, &of.work), (true, &of.io)] {
            if queue.queued + queue.unknown == 0 {
                continue;
            }
            let waits: &Histogram = &queue.waits;
            let mut row = process_cells(machine, key.0).to_vec();
            row.extend([
                Cell::Count(key.1.into()),
                Cell::text(if is_io { "I/O" } else { "work" }),
                Cell::Count(queue.queued),
                Cell::Count(waits.count()),
                Cell::Count(queue.waiting),
                Cell::Count(queue.unknown),
                cell(Some(waits.total())),
                cell(waits.mean()),
                cell(waits.percentile(50)),
                cell(waits.percentile(95)),
                cell(waits.percentile(99)),
                cell(waits.max()),
            ]);
            queues.rows.push(row);
        }
    }
    if list.rows.is_empty() {
        report.missing.push(
            "changes of threads, or their events: enable Microsoft-Windows-DotNETRuntime with the \
             keyword Threading (0x10000) at level 4"
                .to_owned(),
        );
    }
    if queues.rows.is_empty() {
        report.missing.push(
            "work items, or their events: enable Microsoft-Windows-DotNETRuntime with the keyword \
             Threading (0x10000) at level 5"
                .to_owned(),
        );
    }
    report.tables = vec![list, sums, queues];
    // In text, the list comes last.
    if args.is_text() {
        report.tables.rotate_left(1);
    }
    args.print(&report, analyzed.outcome)
}

const SUMS: [(&str, &str); 10] = [
    ("clr", ""),
    ("min_workers", "least"),
    ("max_workers", "most allowed"),
    ("started", "started"),
    ("ended", "ended"),
    ("most_threads", "most workers"),
    ("most_working", "most busy"),
    ("most_io_threads", "most I/O"),
    ("adjustments", "adjustments"),
    ("main_reason", "main reason"),
];

const QUEUES: [(&str, &str); 12] = [
    ("clr", ""),
    ("queue", "queue"),
    ("queued", "queued"),
    ("taken", "taken"),
    ("waiting", "waiting"),
    ("queued_before", ""),
    ("total_us", "total ms"),
    ("mean_us", "mean"),
    ("p50_us", "p50"),
    ("p95_us", "p95"),
    ("p99_us", "p99"),
    ("max_us", "max"),
];

fn kind(is_io: bool) -> &'static str {
    if is_io { "I/O" } else { "workers" }
}

/// The cells of [`SUMS`], from the changes of a pool.
fn sum(key: Key, pool: &Pool, changes: &[&PoolEvent], names: &ThreadPool) -> Vec<Cell> {
    let count = |what: PoolChange| {
        changes.iter().filter(|change| change.change == what && !change.is_io).count() as u64
    };
    let most = |is_io: bool| {
        let there = changes.iter();
        let there = there.filter(|c| c.is_io == is_io && c.change != PoolChange::Adjusted);
        there.map(|change| change.threads).max()
    };
    let mut reasons: BTreeMap<u32, u64> = BTreeMap::new();
    for reason in changes.iter().filter_map(|change| change.reason) {
        *reasons.entry(reason).or_default() += 1;
    }
    let main =
        reasons.into_iter().max_by_key(|&(reason, count)| (count, std::cmp::Reverse(reason)));
    let main = main.map(|(reason, _)| {
        names.reason_name(reason).map_or_else(|| reason.to_string(), str::to_owned)
    });
    vec![
        Cell::Count(key.1.into()),
        Cell::count(pool.limits.map(|(least, _)| least)),
        Cell::count(pool.limits.map(|(_, most)| most)),
        Cell::Count(count(PoolChange::Started)),
        Cell::Count(count(PoolChange::Ended)),
        Cell::count(most(false)),
        Cell::count(pool.most_working),
        Cell::count(most(true)),
        Cell::Count(count(PoolChange::Adjusted)),
        Cell::text(main.unwrap_or_default()),
    ]
}
