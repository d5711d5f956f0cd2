//! `etlkit analyze faults` and `startup`: pages that were read from disks, and the start of
//! processes.

use etl_analysis::behavior::collections::Collections;
use etl_analysis::behavior::compilations::Compilations;
use etl_analysis::behavior::io::{HardFaults, Io};
use etl_analysis::behavior::loads::Loads;
use etl_analysis::behavior::missing::MissingData;
use etl_analysis::machine::Process;
use etl_analysis::observers;
use etl_tables::ReportTable;
use etl_tables::rows::hard_faults::{HardFaultProcessRow, hard_fault_processes, hard_faults};
use etl_tables::rows::startup::{StartupSources, startup as startup_rows, startup_kinds};

use super::processors::length_of_time;
use super::{ReportArgs, report};
use crate::Outcome;
use crate::diagnostics::plural;
use crate::error::Failure;
use crate::output;

/// Memory for the row of something that happened.
const ROW_BYTES: u64 = 256;

observers! {
    /// What happens at the start of processes.
    struct Starts {
        loads: Loads,
        compilations: Compilations,
        collections: Collections,
        io: Io,
        faults: HardFaults,
    }
}

/// Prints hard faults by process and file.
pub(super) fn faults(args: &ReportArgs) -> Result<Outcome, Failure> {
    let analyzed = args
        .recording
        .analyze(|range| HardFaults::new().within(range))?;
    let machine = &analyzed.machine;
    let rows = hard_faults(machine, &analyzed.observer, &args.selection(&analyzed));
    let sums = hard_fault_processes(machine, &rows);
    let mut report = report("faults", &analyzed);
    let count: u64 = sums.iter().map(HardFaultProcessRow::count).sum();
    let bytes: u64 = sums.iter().map(HardFaultProcessRow::bytes).sum();
    let count = plural(count, "hard fault", "hard faults");
    let bytes = output::size(bytes);
    report.headline.push(format!("{count}, {bytes} read"));
    report.add_missing(analyzed.observer.missing());
    report.tables.push(ReportTable::new("by file", rows));
    report.tables.push(ReportTable::new("by process", sums));
    if args.is_text() {
        report.tables.reverse();
    }
    args.print(&mut report, analyzed.outcome)
}

/// Arguments of `etlkit analyze startup`.
#[derive(Debug, clap::Args)]
pub(super) struct StartupArgs {
    /// How long after the start of each process: a duration (500ms), or seconds
    #[arg(long = "for", value_name = "TIME", default_value = "5s", value_parser = length_of_time)]
    length: u64,
    #[command(flatten)]
    report: ReportArgs,
}

/// Prints what happened after the starts of processes.
pub(super) fn startup(args: &StartupArgs) -> Result<Outcome, Failure> {
    let length = args.length;
    let args = &args.report;
    let analyzed = args.recording.analyze(|_| Starts {
        loads: Loads::new(),
        compilations: Compilations::new(),
        collections: Collections::new(),
        io: Io::new().keep_disk_operations(),
        faults: HardFaults::new().keep_faults(),
    })?;
    let machine = &analyzed.machine;
    let observed = &analyzed.observer;
    let sources = StartupSources {
        loads: &observed.loads,
        compilations: &observed.compilations,
        collections: &observed.collections,
        io: &observed.io,
        faults: &observed.faults,
    };
    let selection = args.selection(&analyzed);
    let rows = startup_rows(machine, sources, &selection, length);
    analyzed.ensure_memory((rows.len() as u64).saturating_mul(ROW_BYTES))?;
    let kinds = startup_kinds(machine, &rows);
    let mut report = report("startup", &analyzed);
    let mut started = 0;
    for (index, process) in machine.indexed_processes() {
        if selection.has_process(Some(index)) && Process::started(process).is_some() {
            started += 1;
        }
    }
    let started = plural(started, "process started", "processes started");
    report
        .headline
        .push(format!("{started} during the recording"));
    report.add_missing(observed.loads.missing(machine));
    report.add_missing(observed.compilations.missing());
    report.add_missing(observed.faults.missing());
    // Operations on files are not part of it.
    let of_disks = observed.io.missing().into_iter();
    report.add_missing(of_disks.filter(|missing| *missing != MissingData::Files));
    report.tables.push(ReportTable::new("steps", rows));
    report.tables.push(ReportTable::new("by kind", kinds));
    if args.is_text() {
        report.tables.reverse();
    }
    args.print(&mut report, analyzed.outcome)
}
