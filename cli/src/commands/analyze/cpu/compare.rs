//! `etlkit analyze cpu --compare`: which methods became slower between two traces.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use etl_analysis::profile::{Profile, ProfileOptions, Weight};

use etl_tables::rows::profiles::{Change, ProfileChangeRow};
use etl_tables::{Cell, Column, Kind, Report, ReportTable};

use super::{Args, GroupBy, describe, profile, time};
use crate::Outcome;
use crate::commands::analyze::report;
use crate::error::Failure;

/// What is compared: self and total, before and after.
#[derive(Clone, Copy, Debug, Default)]
struct Pair {
    own: [Weight; 2],
    total: [Weight; 2],
}

/// The rows of both profiles by name, with the kind of code.
type Rows = BTreeMap<(String, &'static str), Pair>;

pub(super) fn run(args: &Args, before: &Path) -> Result<Outcome, Failure> {
    if args.group_by == GroupBy::Thread {
        return Err(Failure::new("--group-by thread", "threads of two traces are not the same")
            .hint("compare by method, module or process"));
    }
    let recording = &args.report.recording;
    let options = ProfileOptions::new().idle(args.idle);
    let earlier = profile(args, &[PathBuf::from(before)], options.clone())?;
    let later = profile(args, &recording.files, options)?;
    let profiles = [&earlier.profile, &later.profile];

    let mut rows = Rows::new();
    for (at, profile) in profiles.into_iter().enumerate() {
        collect(&mut rows, at, profile, args.group_by);
    }
    let [all, now] = profiles.map(Profile::total);
    if args.normalize {
        for pair in rows.values_mut() {
            for [before, _] in [&mut pair.own, &mut pair.total] {
                before.samples = scaled(before.samples, now.samples, all.samples);
                before.time = scaled(before.time, now.time, all.time);
            }
        }
    }
    let mut report = report("cpu", &later.analyzed);
    describe(&mut report, &later.profile);
    facts(&mut report, before, profiles, args.normalize);
    let base = if args.normalize { now } else { all };
    report.tables.push(table(rows, [base, now], profiles, args.group_by));
    args.report.print(&mut report, earlier.analyzed.outcome.max(later.analyzed.outcome))
}

fn facts(report: &mut Report<'_>, before: &Path, profiles: [&Profile; 2], normalized: bool) {
    const WITH: Column = Column::new("compared_with", Kind::Text, "The earlier recording");
    const SAMPLES: Column = Column::count("samples_before", "Its selected samples");
    const CPU: Column = Column::micros("cpu_before_us", "Their time");
    const NORMALIZED: Column =
        Column::count("normalized", "1 if the earlier recording is scaled, else 0");
    let [all, now] = profiles.map(Profile::total);
    let name = crate::input::display(before);
    let seconds = |weight: Weight| weight.time as f64 / 1e7;
    let change = if profiles.iter().all(|profile| profile.has_times()) {
        format!(", {:.3} s; now {:+.3} s", seconds(all), seconds(now) - seconds(all))
    } else {
        let change = now.samples.cast_signed().saturating_sub(all.samples.cast_signed());
        format!("; now {change:+} samples, as not both traces state an interval")
    };
    report.headline.push(format!("compared with {name}: {} samples{change}", all.samples));
    let [before, _] = profiles;
    if all.samples + before.idle().samples == 0 {
        report.missing.push(format!("CPU samples in {name}, with which the traces are compared"));
    }
    if normalized {
        report.headline.push("the earlier trace is scaled to the time of this one".to_owned());
    }
    report.fact(WITH, Cell::text(&name));
    report.fact(SAMPLES, Cell::int(Some(all.samples)));
    report.fact(CPU, time(before, all));
    report.fact(NORMALIZED, Cell::Int(normalized.into()));
}

/// A part of a whole as the same share of another whole.
fn scaled(part: u64, to: u64, from: u64) -> u64 {
    let wide = (u128::from(part) * u128::from(to)).checked_div(u128::from(from));
    wide.and_then(|scaled| u64::try_from(scaled).ok()).unwrap_or(0)
}

/// Adds the rows of a profile.
fn collect(rows: &mut Rows, at: usize, profile: &Profile, group_by: GroupBy) {
    let mut add = |name: String, code: &'static str, own: Weight, total: Weight| {
        let pair = rows.entry((name, code)).or_default();
        if let (Some(to), Some(of)) = (pair.own.get_mut(at), pair.total.get_mut(at)) {
            (*to, *of) = (*to + own, *of + total);
        }
    };
    match group_by {
        GroupBy::Method => {
            for (frame, total) in profile.by_frame() {
                let code = profile.frames().get(frame).map_or("", |frame| frame.kind.name());
                add(profile.label(frame), code, total.exclusive, total.inclusive);
            }
        }
        GroupBy::Module => {
            // Paths have the case that each recording states.
            for (name, total) in profile.by_module() {
                add(name.to_lowercase(), "", total.exclusive, total.inclusive);
            }
        }
        GroupBy::Process | GroupBy::Thread => {
            // Processes of two traces have other ids.
            for root in profile.roots() {
                let node = profile.nodes().get(root.first);
                let weight = node.map(|node| node.inclusive).unwrap_or_default();
                let name = if root.process_name.is_empty() { "?" } else { &root.process_name };
                add(name.to_owned(), "", Weight::default(), weight);
            }
        }
    }
}

/// The rows, the largest growth first.
fn table(
    rows: Rows,
    [all, now]: [Weight; 2],
    profiles: [&Profile; 2],
    by: GroupBy,
) -> ReportTable<'static> {
    let has_times = profiles.iter().all(|profile| profile.has_times());
    let size = |weight: Weight| if has_times { weight.time } else { weight.samples };
    let growth = |[before, after]: [Weight; 2]| {
        size(after).cast_signed().saturating_sub(size(before).cast_signed())
    };
    let mut sorted: Vec<_> = rows.into_iter().collect();
    sorted.sort_by_key(|(name, pair)| {
        // Processes have no time of their own, apart from that of their methods.
        (std::cmp::Reverse((growth(pair.own), growth(pair.total))), name.clone())
    });
    let share = |weight: Weight, all: Weight| match size(all) {
        0 => 0.0,
        all => size(weight) as f64 / all as f64,
    };
    let change = |[before, after]: [Weight; 2]| Change {
        before,
        after,
        before_share: share(before, all),
        after_share: share(after, now),
    };
    let mut rows = Vec::new();
    for ((name, code), pair) in sorted {
        let own = change(pair.own);
        let total = change(pair.total);
        rows.push(ProfileChangeRow { name, code, own, total, has_times });
    }
    let mut table = ReportTable::new("", rows).without(match by {
        GroupBy::Method => &["module", "process"],
        GroupBy::Module => &["name", "process", "code"],
        GroupBy::Process | GroupBy::Thread => &["name", "module", "code"],
    });
    table = table.with_heading("code", "");
    if !has_times {
        // Without intervals there are only numbers of samples.
        for (name, heading) in SAMPLE_HEADINGS {
            table = table.with_heading(name, heading);
        }
        for name in TIMES {
            table = table.with_heading(name, "");
        }
    }
    if by == GroupBy::Process {
        // Processes have no samples of their own, apart from those of their methods.
        for name in OWN {
            table = table.with_heading(name, "");
        }
    }
    table
}

/// Headings of numbers of samples.
const SAMPLE_HEADINGS: [(&str, &str); 6] = [
    ("self_delta_samples", "self +"),
    ("self_before_samples", "before"),
    ("self_after_samples", "after"),
    ("total_delta_samples", "total +"),
    ("total_before_samples", "before"),
    ("total_after_samples", "after"),
];

const TIMES: [&str; 6] = [
    "self_delta_us",
    "self_before_us",
    "self_after_us",
    "total_delta_us",
    "total_before_us",
    "total_after_us",
];

/// What a row has in itself.
const OWN: [&str; 7] = [
    "self_delta_us",
    "self_before_us",
    "self_after_us",
    "self_delta_samples",
    "self_before_samples",
    "self_after_samples",
    "self_delta_percent",
];
