//! `etlkit analyze summary`: a recording on one screen.

use std::collections::BTreeMap;

use etl_analysis::behavior::hardware::Hardware;
use etl_analysis::behavior::presence::Presence;
use etl_analysis::profile::{IlMaps, Profile, ProfileOptions};
use etl_analysis::{Machine, loss::LossKind, observers};
use etl_events::contents::Contents;
use etl_format::FileHeader;
use etl_format::read::Part;
use etl_tables::rows::contents::{event_kinds, failures};
use etl_tables::rows::duration;
use etl_tables::rows::summary::{facts as columns, methods, processes, subjects};
use etl_tables::rows::usage::{Usage, UsageObserver, Usages};
use etl_tables::{Cell, Column, Kind, Report, ReportTable};

use super::{ReportArgs, cpu, report, selected_time, summary_commands};
use crate::Outcome;
use crate::diagnostics::plural;
use crate::error::Failure;
use crate::output;
use crate::profile;
use crate::schemas::SchemaArgs;
use crate::symbols::SymbolArgs;

/// Rows of each table in text, unless the user names another number.
const TOP: usize = 10;

observers! {
    /// The observers of a summary.
    struct Observers {
        hardware: Hardware,
        presence: Presence,
        usage: UsageObserver,
        maps: Option<IlMaps>,
        contents: Contents,
    }
}

/// Arguments of `etlkit analyze summary`.
#[derive(Debug, clap::Args)]
pub(super) struct Args {
    #[command(flatten)]
    symbols: SymbolArgs,
    #[command(flatten)]
    schemas: SchemaArgs,
    #[command(flatten)]
    pub report: ReportArgs,
}

pub(super) fn summary(args: &Args) -> Result<Outcome, Failure> {
    let symbols = args.symbols.open()?;
    let store = args.schemas.store(&args.report.recording.input)?;
    let args = args.report.of_any_thread()?;
    let analyzed = args.recording.analyze(|range| Observers {
        hardware: Hardware::new(),
        presence: Presence::default(),
        usage: UsageObserver::new(range),
        maps: symbols.maps(),
        contents: Contents::new(store).within(range),
    })?;
    let machine = &analyzed.machine;
    let Observers {
        hardware,
        presence,
        usage,
        maps,
        contents,
    } = &analyzed.observer;
    let options = profile::select(&args.recording, &analyzed, ProfileOptions::new());
    let profile = usage
        .samples
        .profile(machine, &symbols.apply(options, maps.as_ref()));
    symbols.note_missing();
    let selection = args.selection(&analyzed);
    let usages = usage.usages(machine, &profile, &selection);
    let mut report = report("summary", &analyzed);
    facts(&mut report, machine, &profile);
    report.headline = headline(machine, &analyzed.conditions, hardware, &profile);
    let time = selected_time(&analyzed);
    totals(&mut report, hardware, &usages, time);
    let processes = processes(machine, &usages, &profile, time);
    let failures = failures(machine, contents, &selection);
    let kinds = event_kinds(machine, contents, &selection);
    let commands = summary_commands::commands(&analyzed.names, &kinds, &failures);
    report.tables.push(ReportTable::new("processes", processes));
    report.tables.push(ReportTable::new(
        "methods by CPU samples",
        methods(&profile),
    ));
    report.tables.push(ReportTable::new("failures", failures));
    report.tables.push(ReportTable::new("events", kinds));
    report
        .tables
        .push(ReportTable::new("what can be analysed", subjects(presence)));
    report.tables.push(ReportTable::new("more", commands));
    report.missing = summary_commands::missing(presence);
    let mut max_rows = args.rows();
    if args.top.is_none() && args.is_text() {
        max_rows = Some(TOP);
    }
    // Unlike other reports, this one lists data that the whole recording lacks.
    args.format.print(&report, max_rows)?;
    Ok(analyzed.outcome)
}

fn facts(report: &mut Report<'_>, machine: &Machine, profile: &Profile) {
    const PROCESSORS: Column = Column::count("processors", "Processors of the computer");
    const EVENTS: Column = Column::count("events", "Events");
    const EVENTS_LOST: Column = Column::count("events_lost", "Lost events, by the headers");
    const BUFFERS_LOST: Column = Column::count("buffers_lost", "Lost buffers, by the headers");
    let header = machine.files().first().map(|file| &file.header);
    let events_lost = sum_over_files(machine, |header| header.events_lost);
    let buffers_lost = sum_over_files(machine, |header| header.buffers_lost);
    report.fact(
        PROCESSORS,
        Cell::int(header.map(|header| header.processors)),
    );
    report.fact(EVENTS, Cell::int(Some(machine.records())));
    report.fact(EVENTS_LOST, Cell::int(Some(events_lost)));
    report.fact(BUFFERS_LOST, Cell::int(Some(buffers_lost)));
    report.fact(cpu::SAMPLES, Cell::int(Some(profile.total().samples)));
    report.fact(cpu::IDLE_SAMPLES, Cell::int(Some(profile.idle().samples)));
    report.fact(cpu::INTERVAL, cpu::interval(profile));
}

/// The sum of a count in the headers of the files.
fn sum_over_files(machine: &Machine, count: fn(&FileHeader) -> u32) -> u64 {
    let files = machine.files().iter();
    let counts = files.map(|file| (file.part.as_ref(), count(&file.header)));
    Part::added(counts).map(u64::from).sum()
}

/// The losses: what standard error says of a file, or else what headers and records say. Of several
/// files, the parts of a session count what was lost since its start: their sum counts it once.
fn losses(machine: &Machine, conditions: &[String]) -> String {
    if machine.files().len() == 1 && !conditions.is_empty() {
        return conditions.join("; ");
    }
    let events = sum_over_files(machine, |header| header.events_lost);
    let buffers = sum_over_files(machine, |header| header.buffers_lost);
    let mut all: BTreeMap<LossKind, String> = BTreeMap::new();
    for loss in machine.losses() {
        all.entry(loss.what)
            .or_insert_with(|| loss.what.message().to_owned());
    }
    if events > 0 {
        let text = plural(events, "event was lost", "events were lost");
        all.insert(LossKind::EventsLost, text);
    }
    if buffers > 0 {
        let text = plural(buffers, "buffer was lost", "buffers were lost");
        all.insert(LossKind::BuffersLost, text);
    }
    if all.is_empty() {
        return "nothing was lost".to_owned();
    }
    all.into_values().collect::<Vec<_>>().join(", ")
}

/// Sums over all selected processes, as facts and as a line.
fn totals(report: &mut Report<'_>, hardware: &Hardware, usages: &Usages, time: u64) {
    const MACHINE: Column = Column::new("machine", Kind::Text, "Name of the computer");
    const MEMORY: Column = Column::bytes("memory_bytes", "Memory of the computer");
    let mut all = Usage::default();
    for usage in usages.values() {
        all += *usage;
    }
    let memory = hardware
        .megabytes()
        .map(|megabytes| u64::from(megabytes) << 20);
    report.fact(MACHINE, Cell::text(hardware.name()));
    report.fact(MEMORY, Cell::int(memory));
    report.fact(columns::COLLECTIONS, Cell::int(Some(all.collections)));
    report.fact(columns::PAUSE, Cell::micros(Some(all.paused)));
    report.fact(columns::EXCEPTIONS, Cell::int(Some(all.exceptions)));
    report.fact(columns::DISK_READ, Cell::int(Some(all.disk_read)));
    report.fact(columns::DISK_WRITTEN, Cell::int(Some(all.disk_written)));
    report.fact(columns::SENT, Cell::int(Some(all.sent)));
    report.fact(columns::RECEIVED, Cell::int(Some(all.received)));
    let mut lines = Vec::new();
    if all.collections > 0 {
        let paused = all.paused as f64 / 1e4;
        let share = all.paused as f64 / time.max(1) as f64 * 100.0;
        lines.push(format!(
            "{} paused for {paused:.3} ms, {share:.2} % of the time",
            plural(all.collections, "collection", "collections")
        ));
    }
    if all.disk_read + all.disk_written > 0 {
        let read = output::size(all.disk_read);
        let written = output::size(all.disk_written);
        lines.push(format!("disks: {read} read, {written} written"));
    }
    if all.sent + all.received > 0 {
        let sent = output::size(all.sent);
        let received = output::size(all.received);
        lines.push(format!("network: {sent} sent, {received} received"));
    }
    report.headline.extend(lines);
}

fn headline(
    machine: &Machine,
    conditions: &[String],
    hardware: &Hardware,
    profile: &Profile,
) -> Vec<String> {
    let clock = machine.clock();
    let span = machine.span().unwrap_or_default();
    let seconds = duration(clock, span.first, span.last) as f64 / 1e7;
    let mut lines = Vec::new();
    if let Some(header) = machine.files().first().map(|file| &file.header) {
        let processors = plural(header.processors.into(), "processor", "processors");
        let mut line = format!("{}, {processors}", header.windows());
        if let Some(megahertz) = hardware.megahertz() {
            line += &format!(" of {megahertz} MHz");
        }
        if let Some(megabytes) = hardware.megabytes() {
            line += &format!(", {} of memory", output::size(u64::from(megabytes) << 20));
        }
        if !hardware.name().is_empty() {
            line = format!("{}: {line}", hardware.name());
        }
        lines.push(line);
    }
    let start = clock.time(span.first).to_string();
    let events = plural(machine.records(), "event", "events");
    lines.push(format!("{seconds:.3} s from {start}, {events}"));
    lines.push(losses(machine, conditions));
    let busy = profile.total();
    let idle = profile.idle();
    let samples = busy.samples + idle.samples;
    if samples > 0 {
        let share = profile.size(busy) as f64 / profile.size(busy + idle) as f64 * 100.0;
        lines.push(format!(
            "processors busy {share:.1} % of the time, by {samples} samples"
        ));
    }
    lines
}
