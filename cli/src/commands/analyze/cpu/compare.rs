//! `etlkit analyze cpu --compare`: which methods became slower between two traces.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use etl_analysis::profile::{Profile, ProfileOptions, Weight};

use super::{Args, GroupBy, describe, profile, time};
use crate::Outcome;
use crate::commands::analyze::report;
use crate::error::Failure;
use crate::table::{Cell, Column, Table, TableReport};

/// The columns of a row before its name.
const COLUMNS: [Column; 14] = [
    ("self_delta_us", "self ms +"),
    ("self_before_us", "before"),
    ("self_after_us", "after"),
    ("self_delta_samples", ""),
    ("self_before_samples", ""),
    ("self_after_samples", ""),
    ("self_delta_percent", "self % +"),
    ("total_delta_us", "total ms +"),
    ("total_before_us", "before"),
    ("total_after_us", "after"),
    ("total_delta_samples", ""),
    ("total_before_samples", ""),
    ("total_after_samples", ""),
    ("total_delta_percent", "total % +"),
];

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
    describe(&mut report, &later.profile, &later.analyzed);
    facts(&mut report, before, profiles, args.normalize);
    let base = if args.normalize { now } else { all };
    report.tables.push(table(rows, [base, now], profiles, args.group_by));
    args.report.print(&report, earlier.analyzed.outcome.max(later.analyzed.outcome))
}

fn facts(report: &mut TableReport, before: &Path, profiles: [&Profile; 2], normalized: bool) {
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
    report.facts.extend([
        ("compared_with", Cell::text(name)),
        ("samples_before", Cell::Count(all.samples)),
        ("cpu_before_us", time(before, all)),
        ("normalized", Cell::Count(normalized.into())),
    ]);
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

fn table(rows: Rows, [all, now]: [Weight; 2], profiles: [&Profile; 2], by: GroupBy) -> Table {
    let name = match by {
        GroupBy::Method => ("name", "method"),
        GroupBy::Module => ("module", "module"),
        GroupBy::Process | GroupBy::Thread => ("process_name", "process"),
    };
    let mut table = Table::new("rows", "", &COLUMNS);
    table.columns.push(name);
    if by == GroupBy::Method {
        table.columns.push(("code", ""));
    }
    let is_timed = profiles.iter().all(|profile| profile.has_times());
    let size = |weight: Weight| if is_timed { weight.time } else { weight.samples };
    let change =
        |[before, after]: [u64; 2]| after.cast_signed().saturating_sub(before.cast_signed());
    let grown = |pair: [Weight; 2]| change(pair.map(size));
    let mut sorted: Vec<_> = rows.into_iter().collect();
    sorted.sort_by_key(|(name, pair)| {
        // Processes have no time of their own, apart from that of their methods.
        (std::cmp::Reverse((grown(pair.own), grown(pair.total))), name.clone())
    });
    let share = |weight: Weight, all: Weight| match size(all) {
        0 => 0.0,
        all => size(weight) as f64 / all as f64,
    };
    for ((name, code), pair) in sorted {
        let mut row = Vec::new();
        for [before, after] in [pair.own, pair.total] {
            let (times, samples) = ([before.time, after.time], [before.samples, after.samples]);
            if is_timed {
                row.push(Cell::SignedDuration(change(times)));
                row.extend(times.map(Cell::Duration));
            } else {
                row.extend([Cell::None, Cell::None, Cell::None]);
            }
            row.push(Cell::Signed(change(samples)));
            row.extend(samples.map(Cell::Count));
            row.push(Cell::Share(share(after, now) - share(before, all)));
        }
        row.push(Cell::Text(name));
        if by == GroupBy::Method {
            row.push(Cell::text(code));
        }
        table.rows.push(row);
    }
    for (column, heading) in &mut table.columns {
        // Processes have no samples of their own, apart from those of their methods. Without
        // intervals there are only numbers of samples.
        let is_own = column.starts_with("self_");
        *heading = match *column {
            _ if is_own && by == GroupBy::Process => "",
            name if !is_timed && name.ends_with("_us") => "",
            "self_delta_samples" if !is_timed => "self +",
            "total_delta_samples" if !is_timed => "total +",
            name if !is_timed && name.contains("_before_") => "before",
            name if !is_timed && name.contains("_after_") => "after",
            _ => heading,
        };
    }
    table
}
