//! `etlkit analyze jit`, `exceptions` and `contention`: the CLRs of a recording.

use etl_analysis::Within;
use etl_analysis::behavior::compilations::Compilations;
use etl_analysis::behavior::contention::{Contention, StackedContention};
use etl_analysis::behavior::exceptions::Exceptions;
use etl_analysis::behavior::missing::MissingData;
use etl_format::TimeRange;
use etl_tables::rows::compilations::{compilation_processes, compilations};
use etl_tables::rows::exceptions::exceptions as exception_rows;
use etl_tables::rows::lock_waits::lock_waits;
use etl_tables::{Cell, Column, Report, ReportTable};

use super::compare::{self, ComparableArgs, ReportKind};
use super::waits::{StackArgs, ensure_stacks};
use super::{cpu, report};
use crate::Outcome;
use crate::diagnostics::plural;
use crate::error::Failure;
use crate::profile::Profiled;
use crate::recording::Analyzed;
use crate::symbols::{SymbolArgs, Symbols};

/// Prints the methods that were compiled, the slowest first.
pub(super) fn jit(args: &ComparableArgs) -> Result<Outcome, Failure> {
    compare::print(&Jit { args })
}

/// The methods that were compiled at run time.
struct Jit<'a> {
    args: &'a ComparableArgs,
}

impl ReportKind for Jit<'_> {
    type Observer = Compilations;

    fn args(&self) -> &ComparableArgs {
        self.args
    }

    fn observer(&self) -> Result<Compilations, Failure> {
        Ok(Compilations::new())
    }

    fn within(observer: Compilations, range: TimeRange) -> Compilations {
        observer.within(range)
    }

    fn report<'a>(&self, analyzed: &'a Analyzed<Compilations>) -> Result<Report<'a>, Failure> {
        let args = &self.args.report;
        let machine = &analyzed.machine;
        let compiled = &analyzed.observer;
        let rows = compilations(machine, compiled, &args.selection(analyzed));
        let sums = compilation_processes(machine, &rows);
        let mut report = report("jit", analyzed);
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
        Ok(report)
    }
}

/// Arguments of `etlkit analyze exceptions`.
#[derive(Debug, clap::Args)]
pub(super) struct ExceptionArgs {
    #[command(flatten)]
    symbols: SymbolArgs,
    #[command(flatten)]
    comparable: ComparableArgs,
}

/// Prints exceptions by process, type and throwing method.
pub(super) fn exceptions(args: &ExceptionArgs) -> Result<Outcome, Failure> {
    compare::print(&ThrownExceptions {
        args: &args.comparable,
        pdbs: args.symbols.open()?,
    })
}

/// The exceptions of a recording.
struct ThrownExceptions<'a> {
    args: &'a ComparableArgs,
    pdbs: Symbols,
}

impl ReportKind for ThrownExceptions<'_> {
    type Observer = Within<Exceptions>;

    fn args(&self) -> &ComparableArgs {
        self.args
    }

    fn observer(&self) -> Result<Self::Observer, Failure> {
        let threads = &self.args.report.recording.thread;
        Ok(Within::new(TimeRange::default(), Exceptions::new()).threads(threads))
    }

    fn within(observer: Self::Observer, range: TimeRange) -> Self::Observer {
        observer.range(range)
    }

    fn report<'a>(&self, analyzed: &'a Analyzed<Self::Observer>) -> Result<Report<'a>, Failure> {
        const COUNT: Column = Column::count("count", "How many");
        let machine = &analyzed.machine;
        let thrown = &analyzed.observer.observer;
        let selection = self.args.report.selection(analyzed);
        let rows = exception_rows(machine, thrown, self.pdbs.functions(), &selection);
        self.pdbs.note_missing();
        let count: u64 = rows.iter().map(|row| row.count()).sum();
        let mut report = report("exceptions", analyzed);
        report.fact(COUNT, Cell::int(Some(count)));
        report
            .headline
            .push(plural(count, "exception", "exceptions"));
        report.add_missing(thrown.missing());
        report.tables.push(ReportTable::new("", rows));
        Ok(report)
    }
}

/// Arguments of `etlkit analyze contention`.
#[derive(Debug, clap::Args)]
pub(super) struct ContentionArgs {
    #[command(flatten)]
    stacks: StackArgs,
    #[command(flatten)]
    comparable: ComparableArgs,
}

/// Prints the waits for locks by thread, or by the stacks of their beginnings.
pub(super) fn contention(args: &ContentionArgs) -> Result<Outcome, Failure> {
    let stacks = &args.stacks;
    if stacks.is_empty() {
        let args = &args.comparable;
        return compare::print(&LockWaits { args });
    }
    let args = &args.comparable.report;
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
    cpu::add_unnamed(&mut report, &profile, &stacks.symbols);
    report.tables.push(stacks.table(&profile)?);
    describe_lock_waits(&mut report, waits, threads);
    args.print(&mut report, analyzed.outcome)
}

/// Waits for locks by thread.
struct LockWaits<'a> {
    args: &'a ComparableArgs,
}

impl ReportKind for LockWaits<'_> {
    type Observer = Contention;

    fn args(&self) -> &ComparableArgs {
        self.args
    }

    fn observer(&self) -> Result<Contention, Failure> {
        Ok(Contention::new())
    }

    fn within(observer: Contention, range: TimeRange) -> Contention {
        observer.within(range)
    }

    fn report<'a>(&self, analyzed: &'a Analyzed<Contention>) -> Result<Report<'a>, Failure> {
        let selection = self.args.report.selection(analyzed);
        let rows = lock_waits(&analyzed.machine, &analyzed.observer, &selection);
        let mut report = report("contention", analyzed);
        describe_lock_waits(&mut report, &analyzed.observer, rows.len());
        report.tables.push(ReportTable::new("", rows));
        Ok(report)
    }
}

/// Adds the number of threads that waited, and missing data.
fn describe_lock_waits(report: &mut Report<'_>, waits: &Contention, threads: usize) {
    let count = plural(threads as u64, "thread", "threads");
    report.headline.push(format!("{count} waited for locks"));
    report.add_missing(waits.missing(threads));
}
