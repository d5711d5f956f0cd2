//! `etlkit analyze cpu --compare`: which methods became slower between two traces.

use std::path::{Path, PathBuf};

use etl_analysis::ProcessSelector;
use etl_analysis::profile::{Profile, ProfileOptions, Weight};
use etl_tables::rows::profile_changes::{ComparedPart, ProfileComparison};
use etl_tables::{Cell, Column, Kind, Report};

use super::{Args, GroupBy, describe, profile, time};
use crate::Outcome;
use crate::commands::analyze::report;
use crate::error::Failure;
use crate::process_args::ProcessArgs;
use crate::recording::Analyzed;

pub(super) fn run(args: &Args, before: &Path) -> Result<Outcome, Failure> {
    let part = match args.group_by {
        GroupBy::Method => ComparedPart::Method,
        GroupBy::Module => ComparedPart::Module,
        GroupBy::Process => ComparedPart::Process,
        GroupBy::Thread => {
            let message = "threads of two traces are not the same";
            return Err(Failure::new("--group-by thread", message)
                .hint("compare by method, module or process"));
        }
    };
    let recording = &args.report.recording;
    let mut options = ProfileOptions::new();
    if args.idle {
        options = options.with_idle();
    }
    // A program may have been renamed: each name has to be in one of the traces.
    let selector = recording.processes.selector().with_any();
    let files = [PathBuf::from(before)];
    let earlier = profile(args, &files, selector.clone(), options.clone())?;
    let later = profile(args, &recording.files, selector.clone(), options)?;
    require_names(&selector, &earlier.analyzed, &later.analyzed)?;
    let mut comparison = ProfileComparison::new(&earlier.profile, &later.profile);
    if args.normalize {
        comparison = comparison.scaled();
    }
    let mut report = report("cpu", &later.analyzed);
    describe(&mut report, &later.profile);
    describe_change(&mut report, before, &earlier.profile, &later.profile);
    if args.normalize {
        report
            .headline
            .push("the earlier trace is scaled to the time of this one".to_owned());
    }
    report.fact(NORMALIZED, Cell::Int(args.normalize.into()));
    report.tables.push(comparison.table(part));
    args.report.print(
        &mut report,
        earlier.analyzed.outcome.max(later.analyzed.outcome),
    )
}

/// Fails if a selected process is in neither recording.
fn require_names<A, B>(
    selector: &ProcessSelector,
    earlier: &Analyzed<A>,
    later: &Analyzed<B>,
) -> Result<(), Failure> {
    // Ids that only events have are not known here, but each recording has a selected process.
    let unknown = selector.unknown_names(&earlier.machine);
    for name in selector.unknown_names(&later.machine) {
        let is_name = etl_format::parse_number::<u32>(name).is_none();
        if is_name && unknown.contains(&name) {
            let files = [earlier.names.join(", "), later.names.join(", ")];
            let message = format!("no process of the traces is {name:?}");
            return Err(Failure::new(files.join(", "), message).hint(ProcessArgs::HINT));
        }
    }
    Ok(())
}

const NORMALIZED: Column =
    Column::count("normalized", "1 if the earlier recording is scaled, else 0");

/// Adds the samples of the earlier recording, which is in `file`, and how they changed.
fn describe_change(report: &mut Report<'_>, file: &Path, earlier: &Profile, later: &Profile) {
    const WITH: Column = Column::new("compared_with", Kind::Text, "The earlier recording");
    const SAMPLES: Column = Column::count("samples_before", "Its selected samples");
    const CPU: Column = Column::micros("cpu_before_us", "Their time");
    let before = earlier.total();
    let now = later.total();
    let name = crate::input::display(file);
    let change = if earlier.has_times() && later.has_times() {
        let seconds_before = seconds(before);
        let change = seconds(now) - seconds_before;
        format!(", {seconds_before:.3} s; now {change:+.3} s")
    } else {
        let before = before.samples.cast_signed();
        let change = now.samples.cast_signed().saturating_sub(before);
        format!("; now {change:+} samples, as not both traces state an interval")
    };
    report.headline.push(format!(
        "compared with {name}: {} samples{change}",
        before.samples
    ));
    if before.samples + earlier.idle().samples == 0 {
        report.missing.push(format!(
            "CPU samples in {name}, with which the traces are compared"
        ));
    }
    report.fact(WITH, Cell::text(&name));
    report.fact(SAMPLES, Cell::int(Some(before.samples)));
    report.fact(CPU, time(earlier, before));
}

fn seconds(weight: Weight) -> f64 {
    weight.time as f64 / 1e7
}
