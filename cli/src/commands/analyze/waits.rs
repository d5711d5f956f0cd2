//! `etlkit analyze waits`: run times, waits and their reasons of the threads of a recording.

use etl_analysis::behavior::missing::MissingData;
use etl_analysis::behavior::waits::{StackedWaits, WaitStack, Waits};
use etl_analysis::profile::{Detail, Profile, ProfileOptions, StackCosts};
use etl_analysis::{Machine, Observer};
use etl_format::TimeRange;
use etl_tables::rows::profiles;
use etl_tables::rows::thread_waits::{thread_waits, wait_reasons, wakers};
use etl_tables::{Cell, Column, Report, ReportTable};

use super::compare::{self, ComparableArgs, ReportKind};
use super::cpu::{self, GroupBy};
use super::report;
use crate::Outcome;
use crate::diagnostics::plural;
use crate::error::Failure;
use crate::profile::{ProfileRequest, Profiled};
use crate::recording::{Analyzed, RecordingArgs};
use crate::symbols::SymbolArgs;

/// The arguments about stacks.
#[derive(Debug, clap::Args)]
pub(super) struct StackArgs {
    /// Group waits by a part of their stacks
    #[arg(long, value_enum)]
    #[arg(conflicts_with_all = ["tree", "focus", "compare", "normalize", "renamed"])]
    group_by: Option<GroupBy>,
    /// Print the call tree of the waits
    #[arg(long, conflicts_with_all = ["focus", "compare", "normalize", "renamed"])]
    tree: bool,
    /// Print only the parts of the tree with at least PERCENT of the time
    #[arg(long, value_name = "PERCENT", default_value_t = 1.0, requires = "tree")]
    #[arg(value_parser = super::percent, conflicts_with_all = ["focus", "group_by"])]
    min_percent: f64,
    /// Print each call of a method that calls itself, alone or through a few others
    #[arg(long, requires = "tree", conflicts_with_all = ["focus", "group_by"])]
    unfold: bool,
    /// Print the callers and the callees of the methods whose names contain TEXT
    #[arg(
        long,
        value_name = "TEXT",
        allow_hyphen_values = true,
        conflicts_with = "compare"
    )]
    focus: Option<String>,
    #[command(flatten)]
    pub symbols: SymbolArgs,
}

impl StackArgs {
    /// Whether stacks are not needed.
    pub fn is_empty(&self) -> bool {
        self.group_by.is_none() && !self.tree && self.focus.is_none()
    }

    /// Reads waits with their stacks, and makes the profile of the selected ones.
    pub fn profile<O: Observer>(
        &self,
        recording: &RecordingArgs,
        observer: impl FnOnce(TimeRange) -> O,
        costs: impl Fn(&mut O) -> &mut StackCosts,
    ) -> Result<Profiled<O>, Failure> {
        self.profile_of(
            recording,
            observer,
            |observer| costs(observer).profile_bytes(),
            |observer, machine, options| costs(observer).profile(machine, options),
        )
    }

    /// Reads a recording, and makes a profile of what was observed. `needed_bytes` is about the
    /// memory that `make` needs.
    pub fn profile_of<O: Observer>(
        &self,
        recording: &RecordingArgs,
        observer: impl FnOnce(TimeRange) -> O,
        needed_bytes: impl FnOnce(&mut O) -> u64,
        make: impl FnOnce(&mut O, &Machine, &ProfileOptions) -> Profile,
    ) -> Result<Profiled<O>, Failure> {
        // The idle process waits for nothing, but ends waits in interrupts.
        let mut options = ProfileOptions::new().with_idle();
        if self.group_by == Some(GroupBy::Thread) {
            options = options.by_thread();
        }
        let symbols = self.symbols.open()?;
        let request = ProfileRequest::new(recording, &symbols, options);
        let mut profiled = request.run(observer, needed_bytes, make)?;
        if self.tree && !self.unfold {
            profiled.profile = profiled.profile.fold_recursion();
        }
        Ok(profiled)
    }

    pub fn table<'p>(&self, profile: &'p Profile) -> Result<ReportTable<'p>, Failure> {
        if self.tree {
            return Ok(profiles::tree(profile, self.min_percent));
        }
        match &self.focus {
            Some(text) if profile.with_stack() > 0 => cpu::focus(profile, text),
            _ => Ok(cpu::grouped(
                profile,
                self.group_by.unwrap_or_default(),
                Detail::Methods,
            )),
        }
    }
}

/// Adds the sum of a profile of waits, and missing data if it has no stacks.
pub(super) fn ensure_stacks(report: &mut Report<'_>, profile: &Profile, missing: MissingData) {
    const COUNT: Column = Column::count("count", "Waits that ended");
    const TIME: Column = Column::micros("wait_us", "Their time");
    const WITH_STACK: Column = Column::count("with_stack", "Waits of all processes with a stack");
    let total = profile.total();
    let seconds = total.time as f64 / 1e7;
    report.headline.push(format!(
        "{}, {seconds:.3} s; stacks for {} of all processes",
        plural(total.samples, "wait that ended", "waits that ended"),
        plural(profile.with_stack(), "wait", "waits")
    ));
    report.fact(COUNT, Cell::int(Some(total.samples)));
    report.fact(TIME, Cell::micros(Some(total.time)));
    report.fact(WITH_STACK, Cell::int(Some(profile.with_stack())));
    if profile.with_stack() == 0 {
        report.add_missing([missing]);
    }
}

/// Arguments of `etlkit analyze waits`.
#[derive(Debug, clap::Args)]
pub(super) struct WaitsArgs {
    #[command(flatten)]
    stacks: StackArgs,
    /// Use the stacks of the threads that ended the waits, not of the threads that waited
    #[arg(long)]
    ended_by: bool,
    #[command(flatten)]
    report: ComparableArgs,
}

/// Prints threads, the longest waits first; or waits by their stacks.
pub(super) fn waits(args: &WaitsArgs) -> Result<Outcome, Failure> {
    if args.ended_by && args.stacks.is_empty() {
        return Err(
            Failure::new("--ended-by", "the table of threads has no stacks")
                .hint("add --tree, --focus TEXT or --group-by method"),
        );
    }
    if args.stacks.is_empty() {
        return compare::print(&Threads { args: &args.report });
    }
    let stack = if args.ended_by {
        WaitStack::Ending
    } else {
        WaitStack::Waiting
    };
    let report_args = &args.report.report;
    let recording = &report_args.recording;
    let Profiled { analyzed, profile } = args.stacks.profile(
        recording,
        |range| StackedWaits::new(stack).within(range),
        StackedWaits::costs,
    )?;
    let mut report = report("waits", &analyzed);
    let missing = if args.ended_by {
        MissingData::ReadyStacks
    } else {
        MissingData::WaitStacks
    };
    ensure_stacks(&mut report, &profile, missing);
    report.add_missing(analyzed.observer.waits().missing());
    cpu::add_unnamed(&mut report, &profile, &args.stacks.symbols);
    report.tables.push(args.stacks.table(&profile)?);
    report_args.print(&mut report, analyzed.outcome)
}

/// Run and wait times by thread.
struct Threads<'a> {
    args: &'a ComparableArgs,
}

impl ReportKind for Threads<'_> {
    type Observer = Waits;

    fn args(&self) -> &ComparableArgs {
        self.args
    }

    fn observer(&self) -> Result<Waits, Failure> {
        Ok(Waits::new())
    }

    fn within(observer: Waits, range: TimeRange) -> Waits {
        observer.within(range)
    }

    fn report<'a>(&self, analyzed: &'a Analyzed<Waits>) -> Result<Report<'a>, Failure> {
        let machine = &analyzed.machine;
        let waits = &analyzed.observer;
        let selection = self.args.report.selection(analyzed);
        let rows = thread_waits(machine, waits, &selection);
        let reasons = wait_reasons(machine, waits, &rows);
        let wakers = wakers(machine, &rows);
        let mut report = report("waits", analyzed);
        report
            .headline
            .push(plural(rows.len() as u64, "thread ran", "threads ran"));
        report.add_missing(waits.missing());
        report.tables.push(ReportTable::new("threads", rows));
        report
            .tables
            .push(ReportTable::new("waits by process and reason", reasons));
        report.tables.push(ReportTable::new(
            "waits by the thread that ended them",
            wakers,
        ));
        Ok(report)
    }
}
