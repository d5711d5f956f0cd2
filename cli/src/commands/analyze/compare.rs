//! `--compare`: how the sums of a report changed since an earlier trace.

use std::path::Path;

use etl_analysis::{Observer, ProcessSelector};
use etl_format::TimeRange;
use etl_tables::comparison::{Renames, Scale, TableSums};
use etl_tables::{Cell, Column, Kind, Report, ReportTable};

use super::{ReportArgs, selected_time};
use crate::Outcome;
use crate::compare_args::CompareArgs;
use crate::error::Failure;
use crate::input;
use crate::process_args::ProcessArgs;
use crate::recording::Analyzed;

/// Lengths that differ by more than this part of the longer one are pointed out.
const DIFFERENT_LENGTH: f64 = 0.05;

/// The arguments of a kind of report that can be compared.
#[derive(Debug, clap::Args)]
pub(super) struct ComparableArgs {
    #[command(flatten)]
    pub compare: CompareArgs,
    #[command(flatten)]
    pub report: ReportArgs,
}

/// A kind of report that can be compared with the same report of another trace.
pub(super) trait ReportKind {
    /// What is observed for it.
    type Observer: Observer;

    /// The arguments of the command.
    fn args(&self) -> &ComparableArgs;

    /// What is observed of a trace.
    fn observer(&self) -> Result<Self::Observer, Failure>;

    /// The observer for a part of the time.
    fn within(observer: Self::Observer, range: TimeRange) -> Self::Observer;

    /// The report of a trace.
    fn report<'a>(&self, analyzed: &'a Analyzed<Self::Observer>) -> Result<Report<'a>, Failure>;
}

/// Prints a report, or how it changed since an earlier trace.
pub(super) fn print<K: ReportKind>(kind: &K) -> Result<Outcome, Failure> {
    let ComparableArgs { compare, report } = kind.args();
    if let Some(before) = &compare.compare {
        return print_changes(kind, before);
    }
    let observer = kind.observer()?;
    let analyzed = report
        .recording
        .analyze(|range| K::within(observer, range))?;
    let mut printed = kind.report(&analyzed)?;
    report.print(&mut printed, analyzed.outcome)
}

/// The report of the earlier trace, without its rows.
struct Earlier {
    name: String,
    sums: Vec<TableSums>,
    headline: Vec<String>,
    missing: Vec<String>,
    /// The selected time, in 100 ns.
    time: u64,
    outcome: Outcome,
    names: ComparedNames,
}

fn earlier<K: ReportKind>(kind: &K, before: &Path) -> Result<Earlier, Failure> {
    let ComparableArgs { compare, report } = kind.args();
    let recording = &report.recording;
    let selector = compare.earlier_processes(&recording.processes);
    let observer = kind.observer()?;
    let files = [before.to_owned()];
    let analyzed =
        recording.analyze_files(&files, selector.clone(), |range| K::within(observer, range))?;
    let report = kind.report(&analyzed)?;
    Ok(Earlier {
        name: input::display(before),
        sums: report.sums(&compare.renames()),
        headline: report.headline.clone(),
        missing: report.missing.clone(),
        time: selected_time(&analyzed),
        outcome: analyzed.outcome,
        names: ComparedNames::new(&selector, &analyzed),
    })
}

fn print_changes<K: ReportKind>(kind: &K, before: &Path) -> Result<Outcome, Failure> {
    let ComparableArgs { compare, report } = kind.args();
    let earlier = earlier(kind, before)?;
    let recording = &report.recording;
    let selector = recording.processes.selector().with_any();
    let observer = kind.observer()?;
    let files = &recording.files;
    let analyzed =
        recording.analyze_files(files, selector.clone(), |range| K::within(observer, range))?;
    earlier
        .names
        .require(&ComparedNames::new(&selector, &analyzed))?;
    let mut changes = kind.report(&analyzed)?;
    let time = selected_time(&analyzed);
    let scale = if compare.normalize {
        Some(Scale {
            before: earlier.time,
            after: time,
        })
    } else {
        None
    };
    describe_change(&mut changes, &earlier, time, compare.normalize);
    let later_sums = changes.sums(&Renames::default());
    changes.tables.clear();
    for (after, before) in later_sums.into_iter().zip(earlier.sums) {
        let table = after.since(before, scale);
        changes.tables.push(ReportTable::of_changes(table));
    }
    report.print(&mut changes, earlier.outcome.max(analyzed.outcome))
}

pub(super) const WITH: Column = Column::new("compared_with", Kind::Text, "The earlier recording");
pub(super) const NORMALIZED: Column =
    Column::count("normalized", "1 if the earlier recording is scaled, else 0");
const TIME: Column = Column::micros("time_us", "Length of the selected time");
const TIME_BEFORE: Column = Column::micros("time_before_us", "The same in the earlier recording");

/// What a comparison with a scaled trace says in text.
pub(super) const SCALED: &str = "the earlier trace is scaled to the time of this one";

/// Adds the earlier recording, and the lengths of both.
fn describe_change(report: &mut Report<'_>, earlier: &Earlier, time: u64, is_scaled: bool) {
    let name = &earlier.name;
    report.fact(WITH, Cell::text(name));
    report.fact(NORMALIZED, Cell::Int(is_scaled.into()));
    report.fact(TIME, Cell::micros(Some(time)));
    report.fact(TIME_BEFORE, Cell::micros(Some(earlier.time)));
    let before = earlier.headline.join("; ");
    report
        .headline
        .push(format!("compared with {name}: {before}"));
    let seconds = time as f64 / 1e7;
    let seconds_before = earlier.time as f64 / 1e7;
    let mut line = format!("{seconds:.3} s, before {seconds_before:.3} s");
    let longer = seconds.max(seconds_before);
    if is_scaled {
        line += &format!("; {SCALED}");
    } else if (seconds - seconds_before).abs() > longer * DIFFERENT_LENGTH {
        line += "; --normalize compares the same time";
    }
    report.headline.push(line);
    for missing in &earlier.missing {
        report.missing.push(format!("in {name}: {missing}"));
    }
}

/// The selected names that are not in a recording.
pub(super) struct ComparedNames {
    files: Vec<String>,
    unknown: Vec<String>,
}

impl ComparedNames {
    pub fn new<O>(selector: &ProcessSelector, analyzed: &Analyzed<O>) -> Self {
        let unknown = selector.unknown_names(&analyzed.machine);
        ComparedNames {
            files: analyzed.names.clone(),
            unknown: unknown.into_iter().map(str::to_owned).collect(),
        }
    }

    /// Fails if a selected process is in neither recording.
    pub fn require(&self, later: &ComparedNames) -> Result<(), Failure> {
        // Ids that only events have are not known here, but each recording has a selected process.
        for name in &later.unknown {
            let is_name = etl_format::parse_number::<u32>(name).is_none();
            if is_name && self.unknown.contains(name) {
                let files = [self.files.join(", "), later.files.join(", ")];
                let message = format!("no process of the traces is {name:?}");
                return Err(Failure::new(files.join(", "), message).hint(ProcessArgs::HINT));
            }
        }
        Ok(())
    }
}
