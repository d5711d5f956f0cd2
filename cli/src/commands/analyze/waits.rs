//! `etlkit analyze waits`: what the threads of a recording ran, waited for and how long.

use std::cmp::Reverse;
use std::collections::BTreeMap;

use etl_analysis::behavior::Histogram;
use etl_analysis::behavior::waits::{StackedWaits, ThreadKey, ThreadTimes, WaitStack, Waits};
use etl_analysis::profile::{Profile, ProfileOptions, StackCosts};
use etl_analysis::{Machine, Observer};
use etl_format::{Clock, TimeRange};

use super::cpu::{self, GroupBy};
use super::{
    PROCESS, ReportArgs, known_process, note_given_up, profile_options, report, span_facts, ticks,
};
use crate::Outcome;
use crate::diagnostics::plural;
use crate::error::Failure;
use crate::recording::{Analyzed, RecordingArgs};
use crate::symbols::SymbolArgs;
use crate::table::{Cell, Column, Table, TableReport};

/// The columns of a thread after those of its process.
const THREAD: [Column; 16] = [
    ("tid", "tid"),
    ("thread_name", "thread"),
    ("running_us", "running ms"),
    ("switches", "switches"),
    ("waits", "waits"),
    ("wait_us", "waiting ms"),
    ("wait_p50_us", "p50"),
    ("wait_p99_us", "p99"),
    ("wait_max_us", "max"),
    ("ready", ""),
    ("ready_us", "ready ms"),
    ("ready_p99_us", ""),
    ("ready_max_us", "max"),
    ("reason", "reason"),
    ("waker", "ended by"),
    ("waker_us", ""),
];

/// The name of a thread: its process and its id.
fn thread_label(machine: &Machine, (process, tid): ThreadKey) -> String {
    let [label, ..] = known_process(machine, process);
    match label {
        Cell::Text(label) => format!("{label} thread {tid}"),
        _ => format!("thread {tid}"),
    }
}

/// The row of a thread.
fn thread_row(
    machine: &Machine,
    waits: &Waits,
    key: ThreadKey,
    times: &ThreadTimes,
) -> (u64, Vec<Cell>) {
    let clock = machine.clock();
    let cell = |value: Option<u64>| value.map_or(Cell::None, |v| Cell::Duration(ticks(clock, v)));
    let mut all = Histogram::default();
    for histogram in times.waits.values() {
        all += histogram;
    }
    let reason = times.waits.iter().max_by_key(|(_, waits)| waits.total());
    let reason = reason.map(|(reason, _)| reason_name(waits, *reason)).unwrap_or_default();
    let waker = times.wakers.iter().max_by_key(|(_, (_, ticks))| *ticks);
    let name = machine.thread_of(key.0, key.1).map_or("", |thread| &thread.name);
    let mut row = known_process(machine, key.0).to_vec();
    row.extend([
        Cell::Count(key.1.into()),
        Cell::text(name),
        cell(Some(times.running)),
        Cell::Count(times.switches),
        Cell::Count(all.count()),
        cell(Some(all.total())),
        cell(all.percentile(50)),
        cell(all.percentile(99)),
        cell(all.max()),
        Cell::Count(times.ready.count()),
        cell(Some(times.ready.total())),
        cell(times.ready.percentile(99)),
        cell(times.ready.max()),
        Cell::text(reason),
        Cell::text(waker.map(|(key, _)| thread_label(machine, *key)).unwrap_or_default()),
        cell(waker.map(|(_, (_, ticks))| *ticks)),
    ]);
    (all.total(), row)
}

fn reason_name(waits: &Waits, reason: u8) -> String {
    waits.reason_name(reason).map_or_else(|| reason.to_string(), str::to_owned)
}

/// Adds the waits of a process by reason.
fn reasons(
    clock: &Clock,
    machine: &Machine,
    waits: &Waits,
    by_reason: BTreeMap<(Option<usize>, u8), Histogram>,
) -> Table {
    let mut table = Table::new("reasons", "waits by process and reason", &PROCESS);
    table.columns.extend([
        ("reason", "reason"),
        ("waits", "waits"),
        ("wait_us", "waiting ms"),
        ("wait_p50_us", "p50"),
        ("wait_p99_us", "p99"),
        ("wait_max_us", "max"),
    ]);
    let cell = |value: Option<u64>| value.map_or(Cell::None, |v| Cell::Duration(ticks(clock, v)));
    let mut sorted: Vec<_> = by_reason.into_iter().collect();
    sorted.sort_by_key(|(_, histogram)| Reverse(histogram.total()));
    for ((process, reason), histogram) in sorted {
        let mut row = known_process(machine, process).to_vec();
        row.extend([
            Cell::text(reason_name(waits, reason)),
            Cell::Count(histogram.count()),
            cell(Some(histogram.total())),
            cell(histogram.percentile(50)),
            cell(histogram.percentile(99)),
            cell(histogram.max()),
        ]);
        table.rows.push(row);
    }
    table
}

/// Who ended the waits of whom.
fn wakers<'w>(
    machine: &Machine,
    threads: impl Iterator<Item = (ThreadKey, &'w ThreadTimes)>,
) -> Table {
    let columns = [
        ("tid", "tid"),
        ("waker", "ended by"),
        ("waker_pid", ""),
        ("waker_tid", ""),
        ("waits", "waits"),
        ("wait_us", "waiting ms"),
    ];
    let mut table = Table::new("wakers", "waits by the thread that ended them", &PROCESS);
    table.columns.extend(columns);
    let pairs = threads.flat_map(|(key, times)| {
        times.wakers.iter().map(move |(waker, &(count, ticks))| (key, *waker, count, ticks))
    });
    let mut pairs: Vec<_> = pairs.collect();
    pairs.sort_by_key(|&(key, waker, _, ticks)| (Reverse(ticks), key, waker));
    for (key, waker, count, waited) in pairs {
        let [_, _, pid] = known_process(machine, waker.0);
        let mut row = known_process(machine, key.0).to_vec();
        row.extend([
            Cell::Count(key.1.into()),
            Cell::text(thread_label(machine, waker)),
            pid,
            Cell::Count(waker.1.into()),
            Cell::Count(count),
            Cell::Duration(ticks(machine.clock(), waited)),
        ]);
        table.rows.push(row);
    }
    table
}

/// What is printed of stacks.
#[derive(Debug, clap::Args)]
pub(super) struct StackArgs {
    /// Print waits by what their stacks show
    #[arg(long, value_enum, conflicts_with_all = ["tree", "focus"])]
    group_by: Option<GroupBy>,
    /// Print the call tree of the waits
    #[arg(long, conflicts_with = "focus")]
    tree: bool,
    /// Print only the parts of the tree with at least PERCENT of the time
    #[arg(long, value_name = "PERCENT", default_value_t = 1.0, requires = "tree")]
    #[arg(value_parser = super::percent, conflicts_with_all = ["focus", "group_by"])]
    min_percent: f64,
    /// Print each call of a method that calls itself, alone or through a few others
    #[arg(long, requires = "tree", conflicts_with_all = ["focus", "group_by"])]
    unfold: bool,
    /// Print the callers and the callees of the methods whose names contain TEXT
    #[arg(long, value_name = "TEXT")]
    focus: Option<String>,
    #[command(flatten)]
    symbols: SymbolArgs,
}

impl StackArgs {
    /// Whether stacks are not needed.
    pub fn is_empty(&self) -> bool {
        self.group_by.is_none() && !self.tree && self.focus.is_none()
    }

    /// Reads waits with their stacks, and makes the profile of those that are selected.
    pub fn profile<O: Observer>(
        &self,
        recording: &RecordingArgs,
        observer: impl FnOnce(TimeRange) -> O,
        costs: impl FnOnce(&mut O) -> &mut StackCosts,
    ) -> Result<(Analyzed<O>, Profile), Failure> {
        let symbols = self.symbols.open()?;
        let observer = |span| (observer(span), symbols.maps());
        let Analyzed { names, machine, selected, range, observer: (observer, maps), outcome } =
            recording.analyze(observer)?;
        let mut analyzed = Analyzed { names, machine, selected, range, observer, outcome };
        // The idle process waits for nothing, but ends waits in interrupts.
        let options = ProfileOptions::new().idle(true);
        let options = options.by_thread(self.group_by == Some(GroupBy::Thread));
        let options = profile_options(recording, &analyzed, options);
        let (machine, costs) = (&analyzed.machine, costs(&mut analyzed.observer));
        let profile = costs.profile(machine, &symbols.apply(options, maps.as_ref()));
        symbols.note_missing();
        Ok((analyzed, profile))
    }

    pub fn table(&self, profile: &Profile) -> Result<Table, Failure> {
        if self.tree {
            return Ok(cpu::tree(profile, self.min_percent, self.unfold));
        }
        match &self.focus {
            Some(text) if profile.with_stack() > 0 => cpu::focus(profile, text),
            _ => Ok(cpu::grouped(profile, self.group_by.unwrap_or_default(), false)),
        }
    }
}

/// Adds the sum of a profile of waits, and what is missing if it has no stacks.
pub(super) fn ensure_stacks(report: &mut TableReport, profile: &Profile, missing: &str) {
    let total = profile.total();
    let seconds = total.time as f64 / 1e7;
    report.headline.push(format!(
        "{}, {seconds:.3} s; stacks for {} of all processes",
        plural(total.samples, "wait that ended", "waits that ended"),
        plural(profile.with_stack(), "wait", "waits")
    ));
    report.facts.extend([
        ("count", Cell::Count(total.samples)),
        ("wait_us", Cell::Duration(total.time)),
        ("with_stack", Cell::Count(profile.with_stack())),
    ]);
    if profile.with_stack() == 0 {
        report.missing.push(missing.to_owned());
    }
}

/// Arguments of `etlkit analyze waits`.
#[derive(Debug, clap::Args)]
pub(super) struct WaitsArgs {
    #[command(flatten)]
    stacks: StackArgs,
    /// Take the stacks of the threads that ended the waits, not those of the threads that waited
    #[arg(long)]
    ended_by: bool,
    #[command(flatten)]
    report: ReportArgs,
}

/// Prints what threads did, those that waited longest first; or waits by their stacks.
pub(super) fn waits(args: &WaitsArgs) -> Result<Outcome, Failure> {
    if args.ended_by && args.stacks.is_empty() {
        return Err(Failure::new("--ended-by", "there are no stacks in the table of threads")
            .hint("add --tree, --focus TEXT or --group-by method"));
    }
    if args.stacks.is_empty() {
        return threads(&args.report);
    }
    let (of, event) = match args.ended_by {
        false => (WaitStack::Waiting, "CSwitch"),
        true => (WaitStack::Ending, "ReadyThread"),
    };
    let recording = &args.report.recording;
    let observer = |range: TimeRange| StackedWaits::new(of).within(range);
    let (analyzed, profile) = args.stacks.profile(recording, observer, StackedWaits::costs)?;
    let mut report = report("waits", &analyzed);
    report.facts.extend(span_facts(&analyzed.machine));
    let missing = format!(
        "stacks of waits: record them with `xperf -on PROC_THREAD+LOADER+CSWITCH+DISPATCHER \
         -stackwalk {event}`"
    );
    ensure_stacks(&mut report, &profile, &missing);
    ensure_switches(&mut report, analyzed.observer.waits());
    report.tables.push(args.stacks.table(&profile)?);
    args.report.print(&report, analyzed.outcome)
}

/// Says what is missing of the events of switches.
fn ensure_switches(report: &mut TableReport, waits: &Waits) {
    note_given_up(report, waits.given_up(), "runs and waits of threads that are not counted");
    if waits.threads().is_empty() {
        report.missing.push(
            "context switches: record them with `xperf -on PROC_THREAD+CSWITCH+DISPATCHER`"
                .to_owned(),
        );
    } else if waits.threads().values().all(|times| times.wakers.is_empty()) {
        report.missing.push(
            "events of threads that become ready, so who ended a wait is not known: record them \
             with `xperf -on DISPATCHER`"
                .to_owned(),
        );
    }
}

/// Prints what threads did.
fn threads(args: &ReportArgs) -> Result<Outcome, Failure> {
    let analyzed = args.recording.analyze(|range| Waits::new().within(range))?;
    let (machine, waits) = (&analyzed.machine, &analyzed.observer);
    let selected = &analyzed.selected;
    let mut rows = Vec::new();
    let mut admitted = Vec::new();
    let mut by_reason: BTreeMap<(Option<usize>, u8), Histogram> = BTreeMap::new();
    for (&key, times) in waits.threads() {
        let is_selected =
            selected.as_ref().is_none_or(|s| key.0.is_some_and(|process| s.contains(&process)));
        if !is_selected || !args.has_thread(Some(key.1)) {
            continue;
        }
        for (&reason, histogram) in &times.waits {
            *by_reason.entry((key.0, reason)).or_default() += histogram;
        }
        rows.push(thread_row(machine, waits, key, times));
        admitted.push((key, times));
    }
    rows.sort_by_key(|(total, _)| Reverse(*total));
    let mut table = Table::new("threads", "threads", &PROCESS);
    table.columns.extend(THREAD);
    table.rows = rows.into_iter().map(|(_, row)| row).collect();
    let mut report = report("waits", &analyzed);
    report.facts.extend(span_facts(machine));
    report.headline.push(plural(table.rows.len() as u64, "thread ran", "threads ran"));
    ensure_switches(&mut report, waits);
    let reasons = reasons(machine.clock(), machine, waits, by_reason);
    report.tables = vec![table, reasons, wakers(machine, admitted.into_iter())];
    args.print(&report, analyzed.outcome)
}
