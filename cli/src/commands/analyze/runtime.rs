//! `etlkit analyze gc`, `jit`, `exceptions` and `contention`: the CLRs of a recording.

use std::collections::BTreeMap;

use etl_analysis::behavior::Distribution;
use etl_analysis::behavior::collections::{Collection, Collections};
use etl_analysis::behavior::compilations::Compilations;
use etl_analysis::behavior::contention::Contention;
use etl_analysis::behavior::exceptions::Exceptions;
use etl_analysis::symbols::Symbol;

use super::{
    PROCESS, ReportArgs, duration, process_cells, process_label, processes, report, span_facts,
    ticks,
};
use crate::Outcome;
use crate::error::Failure;
use crate::recording::Between;
use crate::table::{Cell, Column, Table};

fn columns(own: &[Column]) -> Vec<Column> {
    PROCESS.iter().chain(own).copied().collect()
}

/// Count, sum, mean, percentiles and maximum of durations, which are in 100 ns.
fn distribution(all: &Distribution) -> [Cell; 6] {
    let cell = |value: Option<u64>| value.map_or(Cell::None, Cell::Duration);
    [
        Cell::Duration(all.total()),
        cell(all.mean()),
        cell(all.percentile(50)),
        cell(all.percentile(95)),
        cell(all.percentile(99)),
        cell(all.max()),
    ]
}

/// The columns of [`distribution`].
const DISTRIBUTION: [Column; 6] = [
    ("total_us", "total ms"),
    ("mean_us", "mean"),
    ("p50_us", "p50"),
    ("p95_us", "p95"),
    ("p99_us", "p99"),
    ("max_us", "max"),
];

/// Prints each collection, and sums for each process.
pub(super) fn gc(args: &ReportArgs) -> Result<Outcome, Failure> {
    let analyzed = args.recording.analyze(|span| Between::new(span, Collections::new()))?;
    let (machine, collections) = (&analyzed.machine, &analyzed.observer.observer);
    let selected = processes(args, machine)?;
    let clock = machine.clock();
    let admits = |process: usize| selected.as_ref().is_none_or(|s| s.contains(&process));
    let own = [
        ("clr", ""),
        ("number", "gc"),
        ("generation", "gen"),
        ("reason", "reason"),
        ("type", "type"),
        ("started", "start"),
        ("duration_us", "ms"),
        ("pauses", ""),
        ("pause_us", "pause ms"),
        ("allocated_bytes", "allocated"),
        ("promoted_bytes", "promoted"),
        ("heap_bytes", "heap after"),
        ("gen0_bytes", ""),
        ("gen1_bytes", ""),
        ("gen2_bytes", ""),
        ("large_object_bytes", ""),
        ("pinned_object_bytes", ""),
    ];
    let mut list = Table::new("collections", "collections", &columns(&own));
    let mut by_process: BTreeMap<usize, Vec<&Collection>> = BTreeMap::new();
    for gc in collections.list().iter().filter(|gc| admits(gc.process)) {
        by_process.entry(gc.process).or_default().push(gc);
        let bytes = |bytes: Option<u64>| bytes.map_or(Cell::None, Cell::Bytes);
        let value = |name: Option<&'static str>, value: u32| {
            name.map_or_else(|| Cell::Text(value.to_string()), Cell::text)
        };
        let mut row = process_cells(machine, gc.process).to_vec();
        row.extend([
            Cell::Count(gc.clr.into()),
            Cell::Count(gc.number.into()),
            Cell::Count(gc.generation.into()),
            value(collections.reason_name(gc.reason), gc.reason),
            value(collections.type_name(gc.kind), gc.kind),
            Cell::time(clock, Some(gc.started)),
            gc.ended.map_or(Cell::None, |e| Cell::Duration(duration(clock, gc.started, e))),
            Cell::Count(gc.pauses.into()),
            Cell::Duration(ticks(clock, gc.paused)),
            Cell::Bytes(gc.allocated),
            bytes(gc.promoted),
            bytes(gc.heap_size()),
        ]);
        row.extend((0..5).map(|at| bytes(gc.heap.and_then(|heap| heap.get(at).copied()))));
        list.rows.push(row);
    }
    let own = [
        ("collections", "gcs"),
        ("gen0", "gen 0"),
        ("gen1", "gen 1"),
        ("gen2", "gen 2"),
        ("induced", "induced"),
        ("allocated_bytes", "allocated"),
        ("largest_heap_bytes", "largest heap"),
        ("pause_percent", "pause %"),
    ];
    let mut sums = Table::new("processes", "pauses by process", &columns(&own));
    sums.columns.extend(DISTRIBUTION);
    let whole = machine.span().map_or(0, |(first, last)| duration(clock, first, last));
    for (process, gcs) in &by_process {
        let pauses = Distribution::new(gcs.iter().map(|gc| ticks(clock, gc.paused)));
        let of = |generation: u32| {
            Cell::Count(gcs.iter().filter(|gc| gc.generation == generation).count() as u64)
        };
        let is_induced = |gc: &&&Collection| {
            collections.reason_name(gc.reason).is_some_and(|name| name.starts_with("Induced"))
        };
        let mut row = process_cells(machine, *process).to_vec();
        row.extend([
            Cell::Count(gcs.len() as u64),
            of(0),
            of(1),
            of(2),
            Cell::Count(gcs.iter().filter(is_induced).count() as u64),
            Cell::Bytes(gcs.iter().map(|gc| gc.allocated).sum()),
            gcs.iter().filter_map(|gc| gc.heap_size()).max().map_or(Cell::None, Cell::Bytes),
            Cell::share(pauses.total(), whole),
        ]);
        row.extend(distribution(&pauses));
        sums.rows.push(row);
    }
    let mut report = report("gc", &analyzed);
    report.facts.extend(span_facts(machine));
    report.headline.push(format!("{} collections", list.rows.len()));
    for ((process, _), other) in collections.other_pauses().filter(|((p, _), _)| admits(*p)) {
        let paused = ticks(clock, other.paused) as f64 / 1e4;
        report.headline.push(format!(
            "{}: {} suspensions without a collection, {paused:.3} ms",
            process_label(machine, process),
            other.count
        ));
    }
    if list.rows.is_empty() {
        report.missing.push(
            "events of collections: enable Microsoft-Windows-DotNETRuntime with the keyword GC \
             (0x1) at level 4, or at level 5 for allocations as well"
                .to_owned(),
        );
    }
    report.tables = vec![list, sums];
    // In text, the sums come first.
    if args.is_text() {
        report.tables.reverse();
    }
    args.print(&report, analyzed.outcome)
}

/// Prints the methods that were compiled, those that took longest first.
pub(super) fn jit(args: &ReportArgs) -> Result<Outcome, Failure> {
    let analyzed = args.recording.analyze(|span| Between::new(span, Compilations::new()))?;
    let (machine, compiled) = (&analyzed.machine, &analyzed.observer.observer);
    let selected = processes(args, machine)?;
    let clock = machine.clock();
    let own = [
        ("duration_us", "ms"),
        ("tier", "tier"),
        ("il_bytes", "IL"),
        ("code_bytes", "code"),
        ("loaded", "time"),
        ("tid", "tid"),
        ("method", "method"),
    ];
    let mut table = Table::new("methods", "methods", &columns(&own));
    let mut by_process: BTreeMap<usize, (u64, Vec<u64>)> = BTreeMap::new();
    let mut list: Vec<_> = (compiled.list().iter())
        .filter(|c| selected.as_ref().is_none_or(|s| s.contains(&c.process)))
        .filter(|c| args.has_thread(c.tid))
        .collect();
    list.sort_by_key(|c| (std::cmp::Reverse(c.duration), c.loaded));
    for one in list {
        let duration = one.duration.map(|d| ticks(clock, d));
        let (count, durations) = by_process.entry(one.process).or_default();
        *count += 1;
        durations.extend(duration);
        let mut row = process_cells(machine, one.process).to_vec();
        row.extend([
            duration.map_or(Cell::None, Cell::Duration),
            Cell::text(one.tier_name()),
            Cell::count(one.il_size),
            Cell::Count(one.code_size.into()),
            Cell::time(clock, Some(one.loaded)),
            Cell::count(one.tid),
            Cell::text(&*one.method),
        ]);
        table.rows.push(row);
    }
    let mut sums = Table::new("processes", "by process", &columns(&[("methods", "methods")]));
    sums.columns.extend(DISTRIBUTION);
    for (process, (count, durations)) in by_process {
        let mut row = process_cells(machine, process).to_vec();
        row.push(Cell::Count(count));
        row.extend(distribution(&Distribution::new(durations)));
        sums.rows.push(row);
    }
    let mut report = report("jit", &analyzed);
    report.facts.extend(span_facts(machine));
    report.headline.push(format!("{} methods compiled at run time", table.rows.len()));
    if table.rows.is_empty() {
        report.missing.push(
            "events of compiled methods: enable Microsoft-Windows-DotNETRuntime with the keywords \
             Jit and NGen (0x30) at level 5"
                .to_owned(),
        );
    }
    report.tables = vec![table, sums];
    if args.is_text() {
        report.tables.reverse();
    }
    args.print(&report, analyzed.outcome)
}

/// The exceptions of one type that a method threw.
struct ThrownIn<'a> {
    count: u64,
    first: i64,
    last: i64,
    /// The message of the first.
    message: &'a str,
}

/// Prints exceptions by process, type and throwing method.
pub(super) fn exceptions(args: &ReportArgs) -> Result<Outcome, Failure> {
    let analyzed = args.recording.analyze(|span| Between::new(span, Exceptions::new()))?;
    let (machine, exceptions) = (&analyzed.machine, &analyzed.observer.observer);
    let selected = processes(args, machine)?;
    let (clock, symbols) = (machine.clock(), machine.symbols());
    let own = [
        ("count", "count"),
        ("type", "type"),
        ("method", "thrown in"),
        ("first", "first"),
        ("last", "last"),
        ("message", "first message"),
    ];
    // Addresses of one method are one row.
    let mut rows: BTreeMap<(usize, &str, String), ThrownIn<'_>> = BTreeMap::new();
    let admitted =
        exceptions.list().filter(|e| selected.as_ref().is_none_or(|s| s.contains(&e.process)));
    for thrown in admitted {
        let pid = machine.processes().get(thrown.process).map_or(u32::MAX, |p| p.pid());
        let method = match symbols.at(pid, thrown.address, thrown.first) {
            Some(symbol @ Symbol::Method(_)) => symbol.to_string(),
            Some(symbol @ Symbol::Image(_)) => {
                let text = symbol.to_string();
                format!("{}!?", text.split_once('+').map_or(text.as_str(), |(image, _)| image))
            }
            _ => "?".to_owned(),
        };
        let key = (thrown.process, &*thrown.exception, method);
        let (first, last, message) = (thrown.first, thrown.last, &*thrown.message);
        let row = rows.entry(key).or_insert(ThrownIn { count: 0, first, last, message });
        row.count += thrown.count;
        row.last = last.max(row.last);
        if first < row.first {
            (row.first, row.message) = (first, message);
        }
    }
    let mut sorted: Vec<_> = rows.into_iter().collect();
    sorted.sort_by_key(|(_, row)| (std::cmp::Reverse(row.count), row.first));
    let mut table = Table::new("exceptions", "", &columns(&own));
    for ((process, kind, method), ThrownIn { count, first, last, message }) in sorted {
        let mut row = process_cells(machine, process).to_vec();
        row.extend([
            Cell::Count(count),
            Cell::text(kind),
            Cell::text(method),
            Cell::time(clock, Some(first)),
            Cell::time(clock, Some(last)),
            Cell::text(message),
        ]);
        table.rows.push(row);
    }
    let total: u64 = exceptions.list().map(|thrown| thrown.count).sum();
    let mut report = report("exceptions", &analyzed);
    report.facts.extend(span_facts(machine));
    report.facts.push(("count", Cell::Count(total)));
    report.headline.push(format!("{total} exceptions"));
    if total == 0 {
        report.missing.push(
            "exceptions, or their events: enable Microsoft-Windows-DotNETRuntime with the keyword \
             Exception (0x8000) at level 2"
                .to_owned(),
        );
    }
    report.tables.push(table);
    args.print(&report, analyzed.outcome)
}

/// Prints the waits for locks by thread.
pub(super) fn contention(args: &ReportArgs) -> Result<Outcome, Failure> {
    let analyzed = args.recording.analyze(|span| Between::new(span, Contention::new()))?;
    let (machine, contention) = (&analyzed.machine, &analyzed.observer.observer);
    let selected = processes(args, machine)?;
    let clock = machine.clock();
    let own = [("tid", "tid"), ("thread_name", "thread"), ("count", "waits"), ("unended", "")];
    let mut table = Table::new("threads", "", &columns(&own));
    table.columns.extend(DISTRIBUTION);
    table.columns.push(("longest_at", "longest at"));
    let mut rows = Vec::new();
    for (&(process, tid), waits) in contention.threads() {
        if !args.has_thread(Some(tid)) || selected.as_ref().is_some_and(|s| !s.contains(&process)) {
            continue;
        }
        let all = Distribution::new(waits.durations.iter().map(|&d| ticks(clock, d)));
        let name = machine.thread_at(tid, i64::MAX).map_or("", |thread| &thread.name);
        let mut row = process_cells(machine, process).to_vec();
        row.extend([
            Cell::Count(tid.into()),
            Cell::text(name),
            Cell::Count(all.count()),
            Cell::Count(waits.unended),
        ]);
        row.extend(distribution(&all));
        row.push(Cell::time(clock, waits.longest.map(|(_, at)| at)));
        rows.push((std::cmp::Reverse(all.total()), row));
    }
    rows.sort_by_key(|(total, _)| *total);
    table.rows = rows.into_iter().map(|(_, row)| row).collect();
    let mut report = report("contention", &analyzed);
    report.facts.extend(span_facts(machine));
    report.headline.push(format!("{} threads waited for locks", table.rows.len()));
    if table.rows.is_empty() {
        report.missing.push(
            "waits for locks, or their events: enable Microsoft-Windows-DotNETRuntime with the \
             keyword Contention (0x4000) at level 4"
                .to_owned(),
        );
    }
    report.tables.push(table);
    args.print(&report, analyzed.outcome)
}
