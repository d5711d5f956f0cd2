//! The tables of `analyze summary`: what each process used, and which subjects have events.

use std::cmp::Reverse;

use etl_analysis::Machine;
use etl_analysis::behavior::presence::{Presence, Subject};
use etl_analysis::profile::{FrameTotal, ProcessorInterrupt, Profile};

use super::usage::{Usage, UsageOwner, Usages};
use super::{OfProcess, add_process, process_label};
use crate::cell::{Cell, Label};
use crate::column::{Column, Kind};
use crate::row::{Columns, Row};

/// Columns that are facts of the whole report as well.
#[doc(hidden)]
pub mod facts {
    use crate::column::Column;

    pub const COLLECTIONS: Column = Column::count("collections", "Garbage collections");
    pub const PAUSE: Column = Column::micros("gc_pause_us", "Time of suspensions for collections");
    pub const EXCEPTIONS: Column = Column::count("exceptions", "Exceptions of .NET");
    pub const DISK_READ: Column = Column::bytes("disk_read_bytes", "Bytes that disks read");
    pub const DISK_WRITTEN: Column = Column::bytes("disk_written_bytes", "Bytes that disks wrote");
    pub const SENT: Column = Column::bytes("sent_bytes", "Bytes that were sent");
    pub const RECEIVED: Column = Column::bytes("received_bytes", "Bytes that were received");
}

/// A row of processes.
#[derive(Clone, Debug)]
pub struct SummaryProcessRow<'m> {
    /// The process, or what interrupted idle processors.
    pub process: Label<'m>,
    /// What it used.
    pub usage: Usage,
    /// Size of all samples: see [`Profile::size`].
    pub all_size: u64,
    /// Size of its samples.
    pub cpu_size: u64,
    /// Whether samples have times.
    pub has_times: bool,
    /// The selected time, in 100 ns.
    pub time: u64,
}

impl<'m> SummaryProcessRow<'m> {
    fn new(process: Label<'m>, usage: Usage, profile: &Profile, time: u64) -> Self {
        SummaryProcessRow {
            process,
            usage,
            all_size: profile.size(profile.total()),
            cpu_size: profile.size(usage.cpu),
            has_times: profile.has_times(),
            time,
        }
    }

    /// Sorts processes with the most samples, pauses and bytes first.
    fn rank(&self) -> impl Ord + use<> {
        let usage = &self.usage;
        let bytes = usage.disk_read + usage.disk_written + usage.sent + usage.received;
        (Reverse(usage.cpu), Reverse(usage.paused), Reverse(bytes))
    }
}

impl OfProcess for SummaryProcessRow<'_> {
    fn process(&self) -> &Label<'_> {
        &self.process
    }
}

impl Row for SummaryProcessRow<'_> {
    const NAME: &'static str = "summary.processes";
    const ROW: &'static str = "One process, or what interrupted an idle processor";

    fn columns<C: Columns<Self>>(columns: &mut C) {
        const CPU: Column = Column::micros(
            "cpu_us",
            "Time of its samples; null if their interval is not known",
        );
        const CPU_SHARE: Column = Column::percent("cpu_percent", "Share of all samples");
        const GC_SHARE: Column = Column::percent("gc_percent", "Share of these suspensions");
        add_process(columns);
        columns.add(Column::count("cpu_samples", "CPU samples"), |row| {
            Cell::int(Some(row.usage.cpu.samples))
        });
        columns.add(CPU.or_null().heading("CPU ms"), |row| {
            Cell::micros(if row.has_times {
                Some(row.usage.cpu.time)
            } else {
                None
            })
        });
        columns.add(CPU_SHARE.heading("CPU %"), |row| {
            Cell::share(row.cpu_size, row.all_size)
        });
        columns.add(facts::COLLECTIONS.heading("gcs"), |row| {
            Cell::int(Some(row.usage.collections))
        });
        columns.add(facts::PAUSE.heading("gc pause ms"), |row| {
            Cell::micros(Some(row.usage.paused))
        });
        columns.add(GC_SHARE.heading("gc %"), |row| {
            Cell::share(row.usage.paused, row.time)
        });
        columns.add(facts::EXCEPTIONS.heading("exceptions"), |row| {
            Cell::int(Some(row.usage.exceptions))
        });
        columns.add(facts::DISK_READ.heading("disk read"), |row| {
            Cell::int(Some(row.usage.disk_read))
        });
        columns.add(facts::DISK_WRITTEN.heading("disk written"), |row| {
            Cell::int(Some(row.usage.disk_written))
        });
        columns.add(facts::SENT.heading("sent"), |row| {
            Cell::int(Some(row.usage.sent))
        });
        columns.add(facts::RECEIVED.heading("received"), |row| {
            Cell::int(Some(row.usage.received))
        });
    }
}

/// A row for each process, the most samples, pauses and bytes first. `time` is the selected time,
/// in 100 ns.
#[must_use]
pub fn processes<'m>(
    machine: &'m Machine,
    usages: &Usages,
    profile: &'m Profile,
    time: u64,
) -> Vec<SummaryProcessRow<'m>> {
    let mut rows = Vec::new();
    for (&owner, &usage) in usages {
        let process = match owner {
            UsageOwner::Process(process) => process_label(machine, process),
            UsageOwner::Interrupt(interrupt) => interrupt_label(profile, interrupt),
        };
        rows.push(SummaryProcessRow::new(process, usage, profile, time));
    }
    rows.sort_by_key(SummaryProcessRow::rank);
    rows
}

/// The label of what interrupted an idle processor.
fn interrupt_label(profile: &Profile, interrupt: ProcessorInterrupt) -> Label<'_> {
    let mut roots = profile.roots().iter();
    let root = roots.find(|root| root.interrupt == Some(interrupt));
    Label::Interrupt {
        name: root.map_or(interrupt.kind.name(), |root| &root.process_name),
    }
}

/// A row of methods.
#[derive(Clone, Debug)]
pub struct SummaryMethodRow {
    samples: u64,
    own_size: u64,
    total_size: u64,
    all_size: u64,
    name: String,
}

impl Row for SummaryMethodRow {
    const NAME: &'static str = "summary.methods";
    const ROW: &'static str = "One method";

    fn columns<C: Columns<Self>>(columns: &mut C) {
        const OWN: Column = Column::count("self_samples", "Samples in the method itself");
        const OWN_SHARE: Column = Column::percent("self_percent", "Their share of all");
        const TOTAL_SHARE: Column = Column::percent(
            "total_percent",
            "Share of samples in it and in what it called",
        );
        const NAME: Column = Column::new("name", Kind::Text, "`module!method`");
        columns.add(OWN.heading("self"), |row| Cell::int(Some(row.samples)));
        columns.add(OWN_SHARE.heading("self %"), |row| {
            Cell::share(row.own_size, row.all_size)
        });
        columns.add(TOTAL_SHARE.heading("total %"), |row| {
            Cell::share(row.total_size, row.all_size)
        });
        columns.add(NAME.or_null().heading("method"), |row| {
            Cell::text(&row.name)
        });
    }
}

/// The methods with the most samples in themselves.
#[must_use]
pub fn methods(profile: &Profile) -> Vec<SummaryMethodRow> {
    let mut frames = profile.by_frame();
    frames.sort_by_key(|frame| (Reverse(frame.total.exclusive), frame.frame));
    let mut rows = Vec::new();
    for FrameTotal { frame, total, .. } in frames {
        if total.exclusive.samples > 0 {
            rows.push(SummaryMethodRow {
                samples: total.exclusive.samples,
                own_size: profile.size(total.exclusive),
                total_size: profile.size(total.inclusive),
                all_size: profile.size(profile.total()),
                name: profile.label(frame),
            });
        }
    }
    rows
}

/// A row of subjects.
#[derive(Clone, Debug)]
pub struct SubjectRow {
    subject: Subject,
    events: u64,
    command: String,
}

impl Row for SubjectRow {
    const NAME: &'static str = "summary.subjects";
    const ROW: &'static str = "One subject that the recording has events of";

    fn columns<C: Columns<Self>>(columns: &mut C) {
        const SUBJECT: Column = Column::new("subject", Kind::Word, "What the events are about");
        const RECORDED: Column = Column::new("recorded_by", Kind::Text, "What records them");
        const COMMAND: Column = Column::new("command", Kind::Word, "What shows them");
        columns.add(SUBJECT.heading("recorded"), |row| {
            Cell::text(row.subject.name())
        });
        columns.add(
            Column::count("events", "How many").heading("events"),
            |row| Cell::int(Some(row.events)),
        );
        columns.add(RECORDED, |row| Cell::text(row.subject.recorded_by()));
        columns.add(COMMAND.heading("see"), |row| Cell::text(&row.command));
    }
}

/// A row for each subject of which the recording has events.
#[must_use]
pub fn subjects(presence: &Presence) -> Vec<SubjectRow> {
    let mut rows = Vec::new();
    for subject in Subject::ALL {
        let events = presence.count(subject);
        if events > 0 {
            let command = format!("etlkit analyze {}", subject.analysis());
            rows.push(SubjectRow {
                subject,
                events,
                command,
            });
        }
    }
    rows
}
