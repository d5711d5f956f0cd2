//! `etlkit analyze cpu --compare`: which methods became slower between two traces.

use std::path::{Path, PathBuf};

use etl_analysis::profile::{Profile, ProfileOptions, Weight};
use etl_tables::rows::profile_changes::{ComparedPart, ProfileComparison};
use etl_tables::{Cell, Column, Report};

use super::{Args, GroupBy, describe, profile, time};
use crate::Outcome;
use crate::commands::analyze::compare::{ComparableArgs, ComparedNames, NORMALIZED, SCALED, WITH};
use crate::commands::analyze::report;
use crate::error::Failure;

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
    let ComparableArgs {
        compare,
        report: report_args,
    } = &args.comparable;
    let recording = &report_args.recording;
    let mut options = ProfileOptions::new();
    if args.idle {
        options = options.with_idle();
    }
    let files = [PathBuf::from(before)];
    let selector = compare.earlier_processes(&recording.processes);
    let earlier = profile(args, &files, selector.clone(), options.clone())?;
    let names = ComparedNames::new(&selector, &earlier.analyzed);
    let selector = recording.processes.selector().with_any();
    let later = profile(args, &recording.files, selector.clone(), options)?;
    names.require(&ComparedNames::new(&selector, &later.analyzed))?;
    let renames = compare.renames();
    let mut comparison = ProfileComparison::new(&earlier.profile, &later.profile).renamed(&renames);
    if compare.normalize {
        comparison = comparison.scaled();
    }
    let mut report = report("cpu", &later.analyzed);
    describe(&mut report, &later.profile);
    describe_change(&mut report, before, &earlier.profile, &later.profile);
    if compare.normalize {
        report.headline.push(SCALED.to_owned());
    }
    report.fact(NORMALIZED, Cell::Int(compare.normalize.into()));
    report.tables.push(comparison.table(part));
    report_args.print(
        &mut report,
        earlier.analyzed.outcome.max(later.analyzed.outcome),
    )
}

/// Adds the samples of the earlier recording, which is in `file`, and how they changed.
fn describe_change(report: &mut Report<'_>, file: &Path, earlier: &Profile, later: &Profile) {
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
