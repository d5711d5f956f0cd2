//! `etlkit analyze processes`, `images` and `sessions`: the machine of a recording.

use etl_analysis::behavior::missing::MissingData;
use etl_tables::ReportTable;
use etl_tables::rows::images::images as image_rows;
use etl_tables::rows::processes::processes_as_tree;
use etl_tables::rows::sessions::sessions as session_rows;

use super::{ReportArgs, report};
use crate::Outcome;
use crate::diagnostics::plural;
use crate::error::Failure;

/// Prints the processes as a tree: the processes that a process started follow it.
pub(super) fn processes_of(args: &ReportArgs) -> Result<Outcome, Failure> {
    let analyzed = args.recording.analyze(|_| ())?;
    let machine = &analyzed.machine;
    let rows = processes_as_tree(machine, &args.selection(&analyzed));
    let mut report = report("processes", &analyzed);
    report
        .headline
        .push(plural(rows.len() as u64, "process", "processes"));
    report.add_missing(MissingData::of_processes(machine));
    report.tables.push(ReportTable::new("", rows));
    args.print(&mut report, analyzed.outcome)
}

/// Prints the images of the selected processes.
pub(super) fn images(args: &ReportArgs) -> Result<Outcome, Failure> {
    let analyzed = args.recording.analyze(|_| ())?;
    let machine = &analyzed.machine;
    let rows: Vec<_> = image_rows(machine, &args.selection(&analyzed)).collect();
    let mut report = report("images", &analyzed);
    report
        .headline
        .push(plural(rows.len() as u64, "image", "images"));
    report.add_missing(MissingData::of_images(machine));
    report.tables.push(ReportTable::new("", rows));
    args.print(&mut report, analyzed.outcome)
}

/// Prints the sessions whose headers the files have.
pub(super) fn sessions(args: &ReportArgs) -> Result<Outcome, Failure> {
    let analyzed = args.recording.analyze(|_| ())?;
    let machine = &analyzed.machine;
    let clock = machine.clock();
    let rows: Vec<_> = session_rows(machine).collect();
    let mut report = report("sessions", &analyzed);
    let start = clock.start_time;
    report
        .headline
        .push(format!("clock {}, start {start}", clock.kind));
    report.tables.push(ReportTable::new("", rows));
    args.print(&mut report, analyzed.outcome)
}
