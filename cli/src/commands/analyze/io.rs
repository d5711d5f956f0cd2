//! `etlkit analyze io` and `network`: disks, files and connections of a recording.

use etl_analysis::Within;
use etl_analysis::behavior::io::Io;
use etl_analysis::behavior::network::Network;
use etl_tables::ReportTable;
use etl_tables::rows::io::{io as io_rows, io_processes};
use etl_tables::rows::network::connections;

use super::{ReportArgs, report};
use crate::Outcome;
use crate::diagnostics::plural;
use crate::error::Failure;

/// Prints reads and writes by process, path and operation, and sums for each process.
pub(super) fn io(args: &ReportArgs) -> Result<Outcome, Failure> {
    let analyzed = args.recording.analyze(|range| Io::new().within(range))?;
    let machine = &analyzed.machine;
    let io = &analyzed.observer;
    let rows = io_rows(machine, io, &args.selection(&analyzed));
    let sums = io_processes(machine, &rows);
    let mut report = report("io", &analyzed);
    let count: u64 = sums.iter().map(|row| row.count()).sum();
    report
        .headline
        .push(plural(count, "operation", "operations"));
    report.add_missing(io.missing());
    report.tables.push(ReportTable::new("by file", rows));
    report.tables.push(ReportTable::new("by process", sums));
    if args.is_text() {
        report.tables.reverse();
    }
    args.print(&mut report, analyzed.outcome)
}

/// Prints connections with their bytes, the most bytes first.
pub(super) fn network(args: &ReportArgs) -> Result<Outcome, Failure> {
    let analyzed = args
        .recording
        .analyze(|span| Within::new(span, Network::new()))?;
    let network = &analyzed.observer.observer;
    let rows = connections(&analyzed.machine, network, &args.selection(&analyzed));
    let mut report = report("network", &analyzed);
    report
        .headline
        .push(plural(rows.len() as u64, "connection", "connections"));
    report.add_missing(network.missing());
    report.tables.push(ReportTable::new("", rows));
    args.print(&mut report, analyzed.outcome)
}
