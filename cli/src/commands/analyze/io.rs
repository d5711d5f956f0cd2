//! `etlkit analyze io` and `network`: disks, files and connections of a recording.

use std::cmp::Reverse;
use std::collections::BTreeMap;

use etl_analysis::behavior::Histogram;
use etl_analysis::behavior::io::{Io, IoTotal, Operation};
use etl_analysis::behavior::network::Network;

use super::{PROCESS, ReportArgs, known_process, note_given_up, process_cells, report, span_facts};
use crate::Outcome;
use crate::diagnostics::plural;
use crate::error::Failure;
use crate::recording::Between;
use crate::table::{Cell, Column, Table};

/// The columns of operations, which end each row.
const OPERATIONS: [Column; 8] = [
    ("count", "count"),
    ("bytes", "bytes"),
    ("total_us", "total ms"),
    ("mean_us", "mean"),
    ("p50_us", "p50"),
    ("p95_us", "p95"),
    ("p99_us", "p99"),
    ("max_us", "max"),
];

/// The cells of [`OPERATIONS`].
fn operations(count: u64, bytes: u64, latency: &Histogram) -> [Cell; 8] {
    let cell = |value: Option<u64>| value.map_or(Cell::None, Cell::Duration);
    [
        Cell::Count(count),
        Cell::Bytes(bytes),
        cell((latency.count() > 0).then_some(latency.total())),
        cell(latency.mean()),
        cell(latency.percentile(50)),
        cell(latency.percentile(95)),
        cell(latency.percentile(99)),
        cell(latency.max()),
    ]
}

/// Prints reads and writes by process, path and operation, and sums for each process.
pub(super) fn io(args: &ReportArgs) -> Result<Outcome, Failure> {
    let analyzed = args.recording.analyze(|range| Io::new().within(range))?;
    let (machine, io) = (&analyzed.machine, &analyzed.observer);
    let selected = &analyzed.selected;
    let admits = |process: Option<usize>| {
        selected.as_ref().is_none_or(|s| process.is_some_and(|process| s.contains(&process)))
    };
    let mut by_path = io.by_path(machine);
    by_path.retain(|(process, ..), _| admits(*process));
    let mut by_process: BTreeMap<(Option<usize>, Operation), IoTotal> = BTreeMap::new();
    for ((process, _, operation), total) in &by_path {
        *by_process.entry((*process, *operation)).or_default() += total;
    }
    let heaviest = |total: &IoTotal| (Reverse(total.latency.total()), Reverse(total.bytes));
    let mut list = Table::new("operations", "by file", &[]);
    list.columns.extend(PROCESS);
    list.columns.extend([("operation", "operation"), ("path", "path")]);
    list.columns.extend(OPERATIONS);
    let mut sorted: Vec<_> = by_path.into_iter().collect();
    sorted.sort_by_key(|(_, total)| heaviest(total));
    for ((process, path, operation), total) in &sorted {
        let mut row = known_process(machine, *process).to_vec();
        row.extend([Cell::text(operation.name()), Cell::text(path.clone())]);
        row.extend(operations(total.count, total.bytes, &total.latency));
        list.rows.push(row);
    }
    let mut sums = Table::new("processes", "by process", &[]);
    sums.columns.extend(PROCESS);
    sums.columns.push(("operation", "operation"));
    sums.columns.extend(OPERATIONS);
    let mut sorted: Vec<_> = by_process.into_iter().collect();
    sorted.sort_by_key(|(_, total)| heaviest(total));
    for ((process, operation), total) in &sorted {
        let mut row = known_process(machine, *process).to_vec();
        row.push(Cell::text(operation.name()));
        row.extend(operations(total.count, total.bytes, &total.latency));
        sums.rows.push(row);
    }
    let mut report = report("io", &analyzed);
    report.facts.extend(span_facts(machine));
    let count: u64 = sorted.iter().map(|(_, total)| total.count).sum();
    report.headline.push(plural(count, "operation", "operations"));
    let is_disk = |operation: &Operation| operation.name().starts_with("disk");
    if !io.totals().any(|(_, _, operation, _)| is_disk(&operation)) {
        report.missing.push("events of disks: record them with `xperf -on DISK_IO`".to_owned());
    }
    if !io.totals().any(|(_, _, operation, _)| !is_disk(&operation)) {
        report.missing.push(
            "reads and writes of files: record them with `xperf -on FILENAME+FILE_IO+FILE_IO_INIT`"
                .to_owned(),
        );
    }
    note_given_up(&mut report, io.given_up(), "operations on files without a time");
    report.tables = vec![list, sums];
    if args.is_text() {
        report.tables.reverse();
    }
    args.print(&report, analyzed.outcome)
}

/// Prints connections with their bytes, those with the most first.
pub(super) fn network(args: &ReportArgs) -> Result<Outcome, Failure> {
    let analyzed = args.recording.analyze(|span| Between::new(span, Network::new()))?;
    let (machine, network) = (&analyzed.machine, &analyzed.observer.observer);
    let selected = &analyzed.selected;
    let mut table = Table::new("connections", "", &[]);
    table.columns.extend(PROCESS);
    table.columns.extend([
        ("protocol", "protocol"),
        ("local", "local"),
        ("remote", "remote"),
        ("sends", "sends"),
        ("sent_bytes", "sent"),
        ("receives", "receives"),
        ("received_bytes", "received"),
        ("connects", ""),
        ("accepts", ""),
        ("disconnects", ""),
        ("retransmits", "retransmits"),
        ("first", "first"),
        ("last", "last"),
    ]);
    let clock = machine.clock();
    let mut rows = Vec::new();
    for (connection, traffic) in network.connections() {
        let process = machine.process_at(connection.pid, traffic.first);
        if selected.as_ref().is_some_and(|s| process.is_none_or(|p| !s.contains(&p))) {
            continue;
        }
        let mut row = match process {
            Some(process) => process_cells(machine, process),
            None => {
                let pid = connection.pid;
                [Cell::text(format!("? ({pid})")), Cell::None, Cell::Count(pid.into())]
            }
        }
        .to_vec();
        row.extend([
            Cell::text(if connection.is_udp { "udp" } else { "tcp" }),
            Cell::text(connection.local.to_string()),
            Cell::text(connection.remote.to_string()),
            Cell::Count(traffic.sends),
            Cell::Bytes(traffic.sent),
            Cell::Count(traffic.receives),
            Cell::Bytes(traffic.received),
            Cell::Count(traffic.connects),
            Cell::Count(traffic.accepts),
            Cell::Count(traffic.disconnects),
            Cell::Count(traffic.retransmits),
            Cell::time(clock, Some(traffic.first)),
            Cell::time(clock, Some(traffic.last)),
        ]);
        rows.push((Reverse(traffic.sent.saturating_add(traffic.received)), row));
    }
    rows.sort_by_key(|(bytes, _)| *bytes);
    table.rows = rows.into_iter().map(|(_, row)| row).collect();
    let mut report = report("network", &analyzed);
    report.facts.extend(span_facts(machine));
    report.headline.push(plural(table.rows.len() as u64, "connection", "connections"));
    if network.connections().is_empty() {
        report
            .missing
            .push("events of the network: record them with `xperf -on NETWORKTRACE`".to_owned());
    }
    report.tables.push(table);
    args.print(&report, analyzed.outcome)
}
