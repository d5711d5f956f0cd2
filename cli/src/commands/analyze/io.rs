//! `etlkit analyze io` and `network`: disks, files and connections of a recording.

use etl_analysis::Within;
use etl_analysis::behavior::io::Io;
use etl_analysis::behavior::network::Network;
use etl_format::TimeRange;
use etl_tables::rows::io::{io as io_rows, io_processes};
use etl_tables::rows::network::connections;
use etl_tables::{Report, ReportTable};

use super::compare::{self, ComparableArgs, ReportKind};
use super::{ReportArgs, report};
use crate::Outcome;
use crate::diagnostics::plural;
use crate::error::Failure;
use crate::recording::Analyzed;

/// Prints reads and writes by process, path and operation, and sums for each process.
pub(super) fn io(args: &ComparableArgs) -> Result<Outcome, Failure> {
    args.report.of_any_thread()?;
    compare::print(&IoKind { args })
}

/// The disks and files of a recording.
struct IoKind<'a> {
    args: &'a ComparableArgs,
}

impl ReportKind for IoKind<'_> {
    type Observer = Io;

    fn args(&self) -> &ComparableArgs {
        self.args
    }

    fn observer(&self) -> Result<Io, Failure> {
        Ok(Io::new())
    }

    fn within(observer: Io, range: TimeRange) -> Io {
        observer.within(range)
    }

    fn report<'a>(&self, analyzed: &'a Analyzed<Io>) -> Result<Report<'a>, Failure> {
        let args = &self.args.report;
        let machine = &analyzed.machine;
        let io = &analyzed.observer;
        let rows = io_rows(machine, io, &args.selection(analyzed));
        let sums = io_processes(machine, &rows);
        let mut report = report("io", analyzed);
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
        Ok(report)
    }
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
