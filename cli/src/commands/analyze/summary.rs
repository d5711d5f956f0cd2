//! `etlkit analyze summary`: a recording on one screen.

use std::collections::BTreeMap;

use etl_analysis::behavior::collections::Collections;
use etl_analysis::behavior::exceptions::Exceptions;
use etl_analysis::behavior::hardware::Hardware;
use etl_analysis::behavior::io::{Io, Operation};
use etl_analysis::behavior::network::Network;
use etl_analysis::behavior::presence::{Presence, Subject};
use etl_analysis::profile::{IlMaps, Profile, ProfileOptions, SampleCollector, Weight};
use etl_analysis::{Machine, loss::LossKind, observers};
use etl_format::read::{FileHeader, Part};

use super::{
    PROCESS, ReportArgs, cpu, duration, known_process, profile_options, report, selected_time,
    span_facts, ticks,
};
use crate::Outcome;
use crate::diagnostics::plural;
use crate::error::Failure;
use crate::output;
use crate::recording::Between;
use crate::symbols::SymbolArgs;
use crate::table::{Cell, Table, TableReport};

/// Rows of each table in text, unless the user names another number.
const TOP: usize = 10;

/// What is summarized of a process.
#[derive(Clone, Copy, Debug, Default)]
struct Row {
    cpu: Weight,
    collections: u64,
    paused: u64,
    exceptions: u64,
    disk_read: u64,
    disk_written: u64,
    sent: u64,
    received: u64,
}

/// Rows by index of the process.
type Rows = BTreeMap<Option<usize>, Row>;

observers! {
    /// What happens at the selected time, and is complete without what happened before and after.
    struct Parts {
        network: Network,
        exceptions: Exceptions,
    }
}

observers! {
    /// What is summarized. Samples, input and output, and collections need what happened before and
    /// after the selected time: intervals of samples, names of files, suspensions.
    struct Observers {
        hardware: Hardware,
        presence: Presence,
        samples: SampleCollector,
        io: Io,
        collections: Collections,
        parts: Between<Parts>,
        maps: Option<IlMaps>,
    }
}

/// Arguments of `etlkit analyze summary`.
#[derive(Debug, clap::Args)]
pub(super) struct Args {
    #[command(flatten)]
    symbols: SymbolArgs,
    #[command(flatten)]
    pub report: ReportArgs,
}

pub(super) fn summary(args: &Args) -> Result<Outcome, Failure> {
    let symbols = args.symbols.open()?;
    let args = args.report.of_any_thread()?;
    let analyzed = args.recording.analyze(|range| {
        let parts = Parts { network: Network::new(), exceptions: Exceptions::new() };
        Observers {
            hardware: Hardware::new(),
            presence: Presence::default(),
            samples: SampleCollector::new().within(range),
            io: Io::new().within(range),
            collections: Collections::new().within(range),
            parts: Between::new(range, parts),
            maps: symbols.maps(),
        }
    })?;
    let machine = &analyzed.machine;
    let Observers { hardware, presence, samples, io, collections, parts, maps } =
        &analyzed.observer;
    let Parts { network, exceptions } = &parts.observer;
    let options = profile_options(&args.recording, &analyzed, ProfileOptions::new());
    let profile = samples.profile(machine, &symbols.apply(options, maps.as_ref()));
    symbols.note_missing();
    let mut rows = Rows::new();
    for root in profile.roots() {
        let weight = profile.nodes().get(root.first).map(|node| node.inclusive);
        rows.entry(root.process).or_default().cpu += weight.unwrap_or_default();
    }
    for gc in collections.selected() {
        rows.entry(Some(gc.process)).or_default().collections += 1;
    }
    for (pause, paused) in collections.selected_pauses().filter(|(p, _)| p.collection.is_some()) {
        rows.entry(Some(pause.process)).or_default().paused += ticks(machine.clock(), paused);
    }
    for thrown in exceptions.list() {
        rows.entry(Some(thrown.process)).or_default().exceptions += thrown.count;
    }
    for (process, _, operation, total) in io.totals() {
        match operation {
            Operation::DiskRead => rows.entry(process).or_default().disk_read += total.bytes,
            Operation::DiskWrite => rows.entry(process).or_default().disk_written += total.bytes,
            _ => {}
        }
    }
    for (connection, traffic) in network.connections() {
        let row = rows.entry(machine.process_at(connection.pid, traffic.first)).or_default();
        row.sent += traffic.sent;
        row.received += traffic.received;
    }
    if let Some(selected) = &analyzed.selected {
        rows.retain(|process, _| process.is_some_and(|process| selected.contains(&process)));
    }
    let mut report = report("summary", &analyzed);
    report.facts.extend(span_facts(machine));
    report.facts.extend(facts(machine, &profile));
    report.headline = headline(machine, hardware, &profile);
    let time = selected_time(args, machine)?;
    totals(&mut report, hardware, &rows, time);
    let table = table(machine, &rows, &profile, time);
    report.tables = vec![table, methods(&profile), subjects(presence)];
    for subject in Subject::ALL {
        if presence.count(subject) == 0 {
            report.missing.push(format!("{}: {}", subject.name(), subject.recorded_by()));
        }
    }
    let mut args_rows = args.rows();
    if args.top.is_none() && args.is_text() {
        args_rows = Some(TOP);
    }
    // What is missing is missing from the whole recording.
    output::print(&report.render(args.format, args_rows, false))?;
    Ok(analyzed.outcome)
}

fn facts(machine: &Machine, profile: &Profile) -> Vec<(&'static str, Cell)> {
    let header = machine.files().first().map(|file| &file.header);
    let [events_lost, buffers_lost] = lost(machine);
    vec![
        ("processors", Cell::count(header.map(|header| header.processors))),
        ("events", Cell::Count(machine.records())),
        ("events_lost", Cell::Count(events_lost)),
        ("buffers_lost", Cell::Count(buffers_lost)),
        ("samples", Cell::Count(profile.total().samples)),
        ("idle_samples", Cell::Count(profile.idle().samples)),
        ("interval_us", cpu::interval(profile)),
    ]
}

/// Events and buffers that the headers of the files count as lost.
fn lost(machine: &Machine) -> [u64; 2] {
    let sum = |count: fn(&FileHeader) -> u32| {
        let files = machine.files().iter();
        let counts = files.map(|file| (file.part.as_ref(), count(&file.header)));
        Part::added(counts).map(u64::from).sum()
    };
    [sum(|header| header.events_lost), sum(|header| header.buffers_lost)]
}

/// What was lost, with the counts of the headers.
fn losses(machine: &Machine) -> String {
    let [events, buffers] = lost(machine);
    let mut all: BTreeMap<LossKind, String> = BTreeMap::new();
    for loss in machine.losses() {
        all.entry(loss.what).or_insert_with(|| loss.what.message().to_owned());
    }
    let counts = [
        (LossKind::EventsLost, events, "event was lost", "events were lost"),
        (LossKind::BuffersLost, buffers, "buffer was lost", "buffers were lost"),
    ];
    for (kind, count, one, many) in counts.into_iter().filter(|(_, count, ..)| *count > 0) {
        all.insert(kind, plural(count, one, many));
    }
    if all.is_empty() {
        return "nothing was lost".to_owned();
    }
    all.into_values().collect::<Vec<_>>().join(", ")
}

/// Sums over all selected processes, as facts and as a line.
fn totals(report: &mut TableReport, hardware: &Hardware, rows: &Rows, time: u64) {
    let mut all = Row::default();
    for row in rows.values() {
        all.collections += row.collections;
        all.paused += row.paused;
        all.exceptions += row.exceptions;
        all.disk_read += row.disk_read;
        all.disk_written += row.disk_written;
        all.sent += row.sent;
        all.received += row.received;
    }
    report.facts.extend([
        ("machine", Cell::text(hardware.name())),
        ("memory_bytes", Cell::count(hardware.megabytes().map(|mb| u64::from(mb) << 20))),
        ("collections", Cell::Count(all.collections)),
        ("gc_pause_us", Cell::Duration(all.paused)),
        ("exceptions", Cell::Count(all.exceptions)),
        ("disk_read_bytes", Cell::Bytes(all.disk_read)),
        ("disk_written_bytes", Cell::Bytes(all.disk_written)),
        ("sent_bytes", Cell::Bytes(all.sent)),
        ("received_bytes", Cell::Bytes(all.received)),
    ]);
    let mut lines = Vec::new();
    if all.collections > 0 {
        let paused = all.paused as f64 / 1e4;
        let share = all.paused as f64 / time.max(1) as f64 * 100.0;
        lines.push(format!(
            "{} paused for {paused:.3} ms, {share:.2} % of the time",
            plural(all.collections, "collection", "collections")
        ));
    }
    let pairs = [
        ("disks: ", all.disk_read, " read, ", all.disk_written, " written"),
        ("network: ", all.sent, " sent, ", all.received, " received"),
    ];
    for (what, first, one, second, other) in pairs {
        if first + second > 0 {
            let (first, second) = (output::size(first), output::size(second));
            lines.push(format!("{what}{first}{one}{second}{other}"));
        }
    }
    report.headline.extend(lines);
}

fn headline(machine: &Machine, hardware: &Hardware, profile: &Profile) -> Vec<String> {
    let clock = machine.clock();
    let (first, last) = machine.span().unwrap_or_default();
    let seconds = duration(clock, first, last) as f64 / 1e7;
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
    let start = etl_format::clock::iso_utc(clock.filetime(first));
    let events = plural(machine.records(), "event", "events");
    lines.push(format!("{seconds:.3} s from {start}, {events}"));
    lines.push(losses(machine));
    let [busy, idle] = [profile.total(), profile.idle()];
    let samples = busy.samples + idle.samples;
    if samples > 0 {
        let share = profile.size(busy) as f64 / profile.size(busy + idle) as f64 * 100.0;
        lines.push(format!("processors busy {share:.1} % of the time, by {samples} samples"));
    }
    lines
}

fn table(machine: &Machine, rows: &Rows, profile: &Profile, time: u64) -> Table {
    let mut table = Table::new("processes", "processes", &PROCESS);
    table.columns.extend([
        ("cpu_samples", ""),
        ("cpu_us", "CPU ms"),
        ("cpu_percent", "CPU %"),
        ("collections", "gcs"),
        ("gc_pause_us", "gc pause ms"),
        ("gc_percent", "gc %"),
        ("exceptions", "exceptions"),
        ("disk_read_bytes", "disk read"),
        ("disk_written_bytes", "disk written"),
        ("sent_bytes", "sent"),
        ("received_bytes", "received"),
    ]);
    let mut sorted: Vec<_> = rows.iter().collect();
    sorted.sort_by_key(|(process, row)| {
        let bytes = row.disk_read + row.disk_written + row.sent + row.received;
        (std::cmp::Reverse((row.cpu, row.paused, bytes)), **process)
    });
    for (process, row) in sorted {
        let mut cells = known_process(machine, *process).to_vec();
        cells.extend([
            Cell::Count(row.cpu.samples),
            cpu::time(profile, row.cpu),
            Cell::share(profile.size(row.cpu), profile.size(profile.total())),
            Cell::Count(row.collections),
            Cell::Duration(row.paused),
            Cell::share(row.paused, time),
            Cell::Count(row.exceptions),
            Cell::Bytes(row.disk_read),
            Cell::Bytes(row.disk_written),
            Cell::Bytes(row.sent),
            Cell::Bytes(row.received),
        ]);
        table.rows.push(cells);
    }
    table
}

/// The methods with the most samples in themselves.
fn methods(profile: &Profile) -> Table {
    let columns = [
        ("self_samples", "self"),
        ("self_percent", "self %"),
        ("total_percent", "total %"),
        ("name", "method"),
    ];
    let mut table = Table::new("methods", "methods by CPU samples", &columns);
    let all = profile.size(profile.total());
    let mut frames = profile.by_frame();
    frames.sort_by_key(|(at, total)| (std::cmp::Reverse(total.exclusive), *at));
    for (frame, total) in frames.into_iter().filter(|(_, total)| total.exclusive.samples > 0) {
        table.rows.push(vec![
            Cell::Count(total.exclusive.samples),
            Cell::share(profile.size(total.exclusive), all),
            Cell::share(profile.size(total.inclusive), all),
            Cell::text(profile.label(frame)),
        ]);
    }
    table
}

/// What the recording has events of.
fn subjects(presence: &Presence) -> Table {
    let columns =
        [("subject", "recorded"), ("events", "events"), ("recorded_by", ""), ("command", "see")];
    let mut table = Table::new("subjects", "what can be analysed", &columns);
    for subject in Subject::ALL {
        if presence.count(subject) > 0 {
            table.rows.push(vec![
                Cell::text(subject.name()),
                Cell::Count(presence.count(subject)),
                Cell::text(subject.recorded_by()),
                Cell::text(format!("etlkit analyze {}", subject.analysis())),
            ]);
        }
    }
    table
}
