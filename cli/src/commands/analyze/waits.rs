//! `etlkit analyze waits`: what the threads of a recording ran, waited for and how long.

use std::cmp::Reverse;
use std::collections::BTreeMap;

use etl_analysis::Machine;
use etl_analysis::behavior::Histogram;
use etl_analysis::behavior::waits::{ThreadKey, ThreadTimes, Waits};
use etl_format::Clock;

use super::{PROCESS, ReportArgs, known_process, processes, report, span_facts, ticks};
use crate::Outcome;
use crate::error::Failure;
use crate::recording::Between;
use crate::table::{Cell, Column, Table};

/// The columns of a thread after those of its process.
const THREAD: [Column; 16] = [
    ("tid", "tid"),
    ("thread_name", "thread"),
    ("running_us", "running ms"),
    ("switches", "switches"),
    ("waits", "waits"),
    ("wait_us", "waiting ms"),
    ("wait_p50_us", "p50"),
    ("wait_p99_us", "p99"),
    ("wait_max_us", "max"),
    ("ready", ""),
    ("ready_us", "ready ms"),
    ("ready_p99_us", ""),
    ("ready_max_us", "max"),
    ("reason", "reason"),
    ("waker", "ended by"),
    ("waker_us", ""),
];

/// The name of a thread: its process and its id.
fn thread_label(machine: &Machine, (process, tid): ThreadKey) -> String {
    let [label, ..] = known_process(machine, process);
    match label {
        Cell::Text(label) => format!("{label} thread {tid}"),
        _ => format!("thread {tid}"),
    }
}

/// The row of a thread.
fn thread_row(
    machine: &Machine,
    waits: &Waits,
    key: ThreadKey,
    times: &ThreadTimes,
) -> (u64, Vec<Cell>) {
    let clock = machine.clock();
    let cell = |value: Option<u64>| value.map_or(Cell::None, |v| Cell::Duration(ticks(clock, v)));
    let mut all = Histogram::default();
    for histogram in times.waits.values() {
        all += histogram;
    }
    let reason = times.waits.iter().max_by_key(|(_, waits)| waits.total());
    let reason = reason.map(|(reason, _)| reason_name(waits, *reason)).unwrap_or_default();
    let waker = times.wakers.iter().max_by_key(|(_, (_, ticks))| *ticks);
    let name = machine.thread_at(key.1, i64::MAX).map_or("", |thread| &thread.name);
    let mut row = known_process(machine, key.0).to_vec();
    row.extend([
        Cell::Count(key.1.into()),
        Cell::text(name),
        cell(Some(times.running)),
        Cell::Count(times.switches),
        Cell::Count(all.count()),
        cell(Some(all.total())),
        cell(all.percentile(50)),
        cell(all.percentile(99)),
        cell(all.max()),
        Cell::Count(times.ready.count()),
        cell(Some(times.ready.total())),
        cell(times.ready.percentile(99)),
        cell(times.ready.max()),
        Cell::text(reason),
        Cell::text(waker.map(|(key, _)| thread_label(machine, *key)).unwrap_or_default()),
        cell(waker.map(|(_, (_, ticks))| *ticks)),
    ]);
    (all.total(), row)
}

fn reason_name(waits: &Waits, reason: u8) -> String {
    waits.reason_name(reason).map_or_else(|| reason.to_string(), str::to_owned)
}

/// Adds the waits of a process by reason.
fn reasons(
    clock: &Clock,
    machine: &Machine,
    waits: &Waits,
    by_reason: BTreeMap<(Option<usize>, u8), Histogram>,
) -> Table {
    let mut table = Table::new("reasons", "waits by process and reason", &PROCESS);
    table.columns.extend([
        ("reason", "reason"),
        ("waits", "waits"),
        ("wait_us", "waiting ms"),
        ("wait_p50_us", "p50"),
        ("wait_p99_us", "p99"),
        ("wait_max_us", "max"),
    ]);
    let cell = |value: Option<u64>| value.map_or(Cell::None, |v| Cell::Duration(ticks(clock, v)));
    let mut sorted: Vec<_> = by_reason.into_iter().collect();
    sorted.sort_by_key(|(_, histogram)| Reverse(histogram.total()));
    for ((process, reason), histogram) in sorted {
        let mut row = known_process(machine, process).to_vec();
        row.extend([
            Cell::text(reason_name(waits, reason)),
            Cell::Count(histogram.count()),
            cell(Some(histogram.total())),
            cell(histogram.percentile(50)),
            cell(histogram.percentile(99)),
            cell(histogram.max()),
        ]);
        table.rows.push(row);
    }
    table
}

/// Prints what threads did, those that waited longest first.
pub(super) fn waits(args: &ReportArgs) -> Result<Outcome, Failure> {
    let analyzed = args.recording.analyze(|span| Between::new(span, Waits::new()))?;
    let (machine, waits) = (&analyzed.machine, &analyzed.observer.observer);
    let selected = processes(args, machine)?;
    let mut rows = Vec::new();
    let mut by_reason: BTreeMap<(Option<usize>, u8), Histogram> = BTreeMap::new();
    for (&key, times) in waits.threads() {
        let is_selected =
            selected.as_ref().is_none_or(|s| key.0.is_some_and(|process| s.contains(&process)));
        if !is_selected || !args.has_thread(Some(key.1)) {
            continue;
        }
        for (&reason, histogram) in &times.waits {
            *by_reason.entry((key.0, reason)).or_default() += histogram;
        }
        rows.push(thread_row(machine, waits, key, times));
    }
    rows.sort_by_key(|(total, _)| Reverse(*total));
    let mut table = Table::new("threads", "threads", &PROCESS);
    table.columns.extend(THREAD);
    table.rows = rows.into_iter().map(|(_, row)| row).collect();
    let mut report = report("waits", &analyzed);
    report.facts.extend(span_facts(machine));
    report.headline.push(format!("{} threads ran", table.rows.len()));
    if waits.threads().is_empty() {
        report.missing.push(
            "context switches: record them with `xperf -on PROC_THREAD+CSWITCH+DISPATCHER`"
                .to_owned(),
        );
    } else if waits.threads().values().all(|times| times.wakers.is_empty()) {
        report.missing.push(
            "events of threads that become ready, so who ended a wait is not known: record them \
             with `xperf -on DISPATCHER`"
                .to_owned(),
        );
    }
    report.tables = vec![table, reasons(machine.clock(), machine, waits, by_reason)];
    args.print(&report, analyzed.outcome)
}
