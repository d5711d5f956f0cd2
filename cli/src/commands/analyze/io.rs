//! `etlkit analyze io` and `network`: disks, files and connections of a recording.

use etl_analysis::behavior::io::{Io, Operation};
use etl_analysis::behavior::network::Network;
use etl_tables::ReportTable;
use etl_tables::rows::io::{io as io_rows, io_processes};
use etl_tables::rows::network::connections;

use super::{ReportArgs, note_given_up, report};
use crate::Outcome;
use crate::diagnostics::plural;
use crate::error::Failure;
use crate::recording::Between;

/// Prints reads and writes by process, path and operation, and sums for each process.
pub(super) fn io(args: &ReportArgs) -> Result<Outcome, Failure> {
    let analyzed = args.recording.analyze(|range| Io::new().within(range))?;
    let machine = &analyzed.machine;
    let io = &analyzed.observer;
    let rows = io_rows(machine, io, &args.selection(&analyzed));
    let sums = io_processes(machine, &rows);
    let mut report = report("io", &analyzed);
    let count: u64 = sums.iter().map(|row| row.count()).sum();
    report.headline.push(plural(count, "operation", "operations"));
    if !io.totals().any(|(_, _, operation, _)| is_of_disk(operation)) {
        report.missing.push("events of disks: record them with `xperf -on DISK_IO`".to_owned());
    }
    if !io.totals().any(|(_, _, operation, _)| !is_of_disk(operation)) {
        report.missing.push(
            "reads and writes of files: record them with `xperf -on FILENAME+FILE_IO+FILE_IO_INIT`"
                .to_owned(),
        );
    }
    note_given_up(&mut report, io.given_up(), "operations on files without a time");
    report.tables.push(ReportTable::new("by file", rows));
    report.tables.push(ReportTable::new("by process", sums));
    if args.is_text() {
        report.tables.reverse();
    }
    args.print(&mut report, analyzed.outcome)
}

fn is_of_disk(operation: Operation) -> bool {
    operation.name().starts_with("disk")
}

/// Prints connections with their bytes, the most bytes first.
pub(super) fn network(args: &ReportArgs) -> Result<Outcome, Failure> {
    let analyzed = args.recording.analyze(|span| Between::new(span, Network::new()))?;
    let network = &analyzed.observer.observer;
    let rows = connections(&analyzed.machine, network, &args.selection(&analyzed));
    let mut report = report("network", &analyzed);
    report.headline.push(plural(rows.len() as u64, "connection", "connections"));
    if network.connections().is_empty() {
        report
            .missing
            .push("events of the network: record them with `xperf -on NETWORKTRACE`".to_owned());
    }
    report.tables.push(ReportTable::new("", rows));
    args.print(&mut report, analyzed.outcome)
}
