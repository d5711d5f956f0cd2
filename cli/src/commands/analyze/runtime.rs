//! `etlkit analyze jit`, `exceptions` and `contention`: the CLRs of a recording.

use etl_analysis::Within;
use etl_analysis::behavior::compilations::Compilations;
use etl_analysis::behavior::contention::{Contention, StackedContention};
use etl_analysis::behavior::exceptions::Exceptions;
use etl_analysis::behavior::missing::MissingData;
use etl_tables::rows::compilations::{compilation_processes, compilations};
use etl_tables::rows::exceptions::exceptions as exception_rows;
use etl_tables::rows::lock_waits::lock_waits;
use etl_tables::{Cell, Column, Report, ReportTable};

use super::waits::{StackArgs, ensure_stacks};
use super::{ReportArgs, report};
use crate::Outcome;
use crate::diagnostics::plural;
use crate::error::Failure;
use crate::profile::Profiled;
use crate::symbols::SymbolArgs;

/// Prints the methods that were compiled, the slowest first.
pub(super) fn jit(args: &ReportArgs) -> Result<Outcome, Failure> {
    let analyzed = args
        .recording
        .analyze(|range| Compilations::new().within(range))?;
    let machine = &analyzed.machine;
    let compiled = &analyzed.observer;
    let rows = compilations(machine, compiled, &args.selection(&analyzed));
    let sums = compilation_processes(machine, &rows);
    let mut report = report("jit", &analyzed);
    let methods = plural(rows.len() as u64, "method", "methods");
    report
        .headline
        .push(format!("{methods} compiled at run time"));
    report.add_missing(compiled.missing());
    report.tables.push(ReportTable::new("methods", rows));
    report.tables.push(ReportTable::new("by process", sums));
    if args.is_text() {
        report.tables.reverse();
    }
    args.print(&mut report, analyzed.outcome)
}

/// Arguments of `etlkit analyze exceptions`.
#[derive(Debug, clap::Args)]
pub(super) struct ExceptionArgs {
    #[command(flatten)]
    symbols: SymbolArgs,
    #[command(flatten)]
    report: ReportArgs,
}

/// Prints exceptions by process, type and throwing method.
pub(super) fn exceptions(args: &ExceptionArgs) -> Result<Outcome, Failure> {
    const COUNT: Column = Column::count("count", "How many");
    let pdbs = args.symbols.open()?;
    let args = &args.report;
    let threads = &args.recording.thread;
    let analyzed = args
        .recording
        .analyze(|span| Within::new(span, Exceptions::new()).threads(threads))?;
    let machine = &analyzed.machine;
    let thrown = &analyzed.observer.observer;
    let rows = exception_rows(
        machine,
        thrown,
        pdbs.functions(),
        &args.selection(&analyzed),
    );
    pdbs.note_missing();
    let count: u64 = rows.iter().map(|row| row.count()).sum();
    let mut report = report("exceptions", &analyzed);
    report.fact(COUNT, Cell::int(Some(count)));
    report
        .headline
        .push(plural(count, "exception", "exceptions"));
    report.add_missing(thrown.missing());
    report.tables.push(ReportTable::new("", rows));
    args.print(&mut report, analyzed.outcome)
}

/// Arguments of `etlkit analyze contention`.
#[derive(Debug, clap::Args)]
pub(super) struct ContentionArgs {
    #[command(flatten)]
    stacks: StackArgs,
    #[command(flatten)]
    report: ReportArgs,
}

/// Prints the waits for locks by thread, or by the stacks of their beginnings.
pub(super) fn contention(args: &ContentionArgs) -> Result<Outcome, Failure> {
    let stacks = &args.stacks;
    let args = &args.report;
    if stacks.is_empty() {
        let analyzed = args
            .recording
            .analyze(|range| Contention::new().within(range))?;
        let rows = lock_waits(
            &analyzed.machine,
            &analyzed.observer,
            &args.selection(&analyzed),
        );
        let mut report = report("contention", &analyzed);
        describe_lock_waits(&mut report, &analyzed.observer, rows.len());
        report.tables.push(ReportTable::new("", rows));
        return args.print(&mut report, analyzed.outcome);
    }
    let Profiled { analyzed, profile } = stacks.profile(
        &args.recording,
        |range| StackedContention::new().within(range),
        StackedContention::costs,
    )?;
    let waits = analyzed.observer.waits();
    let threads = lock_waits(&analyzed.machine, waits, &args.selection(&analyzed)).len();
    let mut report = report("contention", &analyzed);
    ensure_stacks(&mut report, &profile, MissingData::LockWaitStacks);
    report.add_missing(MissingData::of_stacks(&analyzed.machine, &profile));
    report.tables.push(stacks.table(&profile)?);
    describe_lock_waits(&mut report, waits, threads);
    args.print(&mut report, analyzed.outcome)
}

/// Adds the number of threads that waited, and missing data.
fn describe_lock_waits(report: &mut Report<'_>, waits: &Contention, threads: usize) {
    let count = plural(threads as u64, "thread", "threads");
    report.headline.push(format!("{count} waited for locks"));
    report.add_missing(waits.missing(threads));
}
