//! The start of processes: loads, compilations, reads and collections on one axis of time.

use std::borrow::Cow;
use std::collections::BTreeMap;

use etl_analysis::behavior::collections::Collections;
use etl_analysis::behavior::compilations::Compilations;
use etl_analysis::behavior::io::{HardFaults, Io};
use etl_analysis::behavior::loads::Loads;
use etl_analysis::machine::Process;
use etl_analysis::{Machine, ProcessIndex};
use etl_format::{ThreadId, Ticks};

use super::{OfProcess, TID, add_process, duration, process_label, ticks};
use crate::cell::{Cell, Label};
use crate::column::{Column, Kind};
use crate::row::{Columns, Row};
use crate::selection::Selection;

const KIND: Column = Column::new(
    "kind",
    Kind::Word,
    "`image`, `assembly`, `module`, `domain`, `compilation`, `disk read`, `disk write`, \
     `disk flush`, `hard fault` or `collection`",
);

/// What observers collected of the starts of processes.
#[derive(Clone, Copy, Debug)]
pub struct StartupSources<'m> {
    /// What CLRs loaded.
    pub loads: &'m Loads,
    /// Methods that were compiled.
    pub compilations: &'m Compilations,
    /// Garbage collections.
    pub collections: &'m Collections,
    /// Operations of disks, which are kept.
    pub io: &'m Io,
    /// Hard faults, which are kept.
    pub faults: &'m HardFaults,
}

/// A row of `analyze startup`.
#[derive(Clone, Debug)]
pub struct StartupRow<'m> {
    machine: &'m Machine,
    process: Label<'m>,
    index: ProcessIndex,
    kind: &'static str,
    /// When it began.
    began: Ticks,
    /// The same since the start of the process, in 100 ns.
    at: u64,
    /// In 100 ns.
    lasted: Option<u64>,
    bytes: Option<u64>,
    tid: Option<ThreadId>,
    name: Cow<'m, str>,
}

impl OfProcess for StartupRow<'_> {
    fn process(&self) -> &Label<'_> {
        &self.process
    }
}

impl Row for StartupRow<'_> {
    const NAME: &'static str = "startup.steps";
    const ROW: &'static str = "Something that happened after the start of a process, in time order";

    fn columns<C: Columns<Self>>(columns: &mut C) {
        const AT: Column = Column::micros("at_us", "Time since the start of the process");
        const TIME: Column = Column::time("time", "When it began");
        const DURATION: Column = Column::micros("duration_us", "How long it lasted").or_null();
        const BYTES: Column = Column::bytes("bytes", "Bytes that were read or written").or_null();
        const NAME: Column = Column::new(
            "name",
            Kind::Text,
            "The image, assembly, module, method or file; generation and reason of a collection",
        )
        .or_null();
        add_process(columns);
        columns.add(AT.heading("at ms"), |row| Cell::micros(Some(row.at)));
        columns.add(TIME, |row| Cell::time(row.machine.clock(), Some(row.began)));
        columns.add(DURATION.heading("ms"), |row| Cell::micros(row.lasted));
        columns.add(KIND.heading("kind"), |row| Cell::Text(row.kind));
        columns.add(BYTES.heading("bytes"), |row| Cell::int(row.bytes));
        columns.add(TID.heading("tid"), |row| Cell::int(row.tid));
        columns.add(NAME.heading("name"), |row| Cell::text(&row.name));
    }
}

/// Something that happened, before it is known whether a process was starting then.
struct Happened<'m> {
    process: Option<ProcessIndex>,
    kind: &'static str,
    began: Ticks,
    lasted: Option<u64>,
    bytes: Option<u64>,
    tid: Option<ThreadId>,
    name: Cow<'m, str>,
}

/// Collects rows.
struct Starts<'m, 's> {
    machine: &'m Machine,
    selection: &'s Selection,
    /// How long after the start of a process, in 100 ns.
    limit: u64,
    rows: Vec<StartupRow<'m>>,
}

impl<'m> Starts<'m, '_> {
    fn add(&mut self, happened: Happened<'m>) {
        let Some(index) = happened.process else {
            return;
        };
        let started = self.machine.process(index).and_then(Process::started);
        let Some(started) = started.filter(|&started| started <= happened.began) else {
            return;
        };
        let at = duration(self.machine.clock(), started, happened.began);
        let is_selected = self.selection.has_process(Some(index))
            && self.selection.has_time(happened.began)
            && self.selection.has_thread(happened.tid);
        if !is_selected || at > self.limit {
            return;
        }
        self.rows.push(StartupRow {
            machine: self.machine,
            process: process_label(self.machine, Some(index)),
            index,
            kind: happened.kind,
            began: happened.began,
            at,
            lasted: happened.lasted,
            bytes: happened.bytes,
            tid: happened.tid,
            name: happened.name,
        });
    }

    fn add_images(&mut self) {
        let machine = self.machine;
        for image in machine.image_lives() {
            if let Some(loaded) = image.loaded {
                self.add(Happened {
                    process: Some(image.process),
                    kind: "image",
                    began: loaded,
                    lasted: None,
                    bytes: None,
                    tid: None,
                    name: machine.user_path(image.path),
                });
            }
        }
    }

    fn add_loads(&mut self, loads: &'m Loads) {
        for load in loads.list() {
            let lasted = load.duration.unwrap_or(0);
            let name = if load.path.is_empty() {
                &load.name
            } else {
                &load.path
            };
            self.add(Happened {
                process: Some(load.process),
                kind: load.kind.name(),
                began: before(load.loaded, lasted),
                lasted: load.duration.map(|lasted| self.units(lasted)),
                bytes: None,
                tid: load.tid,
                name: Cow::Borrowed(name),
            });
        }
    }

    fn add_compilations(&mut self, compilations: &'m Compilations) {
        for method in compilations.list() {
            let lasted = method.duration.unwrap_or(0);
            self.add(Happened {
                process: Some(method.process),
                kind: "compilation",
                began: before(method.loaded, lasted),
                lasted: method.duration.map(|lasted| self.units(lasted)),
                bytes: None,
                tid: method.tid,
                name: Cow::Borrowed(&method.method),
            });
        }
    }

    fn add_disks(&mut self, io: &'m Io) {
        let clock = *self.machine.clock();
        for operation in io.disk_operations() {
            let lasted = operation.duration.unwrap_or(0);
            let ended = clock.time(operation.time);
            let lasted_units = i64::try_from(lasted).unwrap_or(i64::MAX);
            let began = etl_format::FileTime::new(ended.get().saturating_sub(lasted_units));
            let path = io.path_of(operation).unwrap_or_default();
            self.add(Happened {
                process: operation.process(),
                kind: operation.operation.name(),
                began: clock.ticks_at(began),
                lasted: operation.duration,
                bytes: Some(operation.bytes),
                tid: operation.tid,
                name: self.machine.user_path(path),
            });
        }
    }

    fn add_faults(&mut self, faults: &'m HardFaults) {
        for listed in faults.list() {
            let fault = listed.fault;
            self.add(Happened {
                process: listed.process,
                kind: "hard fault",
                began: fault.started,
                lasted: Some(fault.duration),
                bytes: Some(fault.bytes),
                tid: fault.tid,
                name: self.machine.user_path(listed.path.unwrap_or_default()),
            });
        }
    }

    fn add_collections(&mut self, collections: &'m Collections) {
        for collection in collections.list() {
            let ended = collection.ended;
            let lasted =
                ended.map(|ended| duration(self.machine.clock(), collection.started, ended));
            let name = format!(
                "generation {}, {}",
                collection.generation, collection.reason
            );
            self.add(Happened {
                process: Some(collection.process),
                kind: "collection",
                began: collection.started,
                lasted,
                bytes: None,
                tid: collection.tid,
                name: Cow::Owned(name),
            });
        }
    }

    /// Ticks in 100 ns.
    fn units(&self, lasted: u64) -> u64 {
        ticks(self.machine.clock(), lasted)
    }
}

/// The time so many ticks before another.
fn before(time: Ticks, ticks: u64) -> Ticks {
    let ticks = i64::try_from(ticks).unwrap_or(i64::MAX);
    time.saturating_add(-ticks)
}

/// A row for everything that happened in selected processes until `limit` after their starts, in
/// 100 ns, in time order. Processes that started before the recording have no rows.
#[must_use]
pub fn startup<'m>(
    machine: &'m Machine,
    sources: StartupSources<'m>,
    selection: &Selection,
    limit: u64,
) -> Vec<StartupRow<'m>> {
    let mut starts = Starts {
        machine,
        selection,
        limit,
        rows: Vec::new(),
    };
    starts.add_images();
    starts.add_loads(sources.loads);
    starts.add_compilations(sources.compilations);
    starts.add_disks(sources.io);
    starts.add_faults(sources.faults);
    starts.add_collections(sources.collections);
    let mut rows = starts.rows;
    rows.sort_by_key(|row| (row.began, row.index));
    rows
}

/// A row of the sums of `analyze startup`.
#[derive(Clone, Debug)]
pub struct StartupKindRow<'m> {
    process: Label<'m>,
    kind: &'static str,
    sum: KindSum,
}

/// What happened of one kind.
#[derive(Clone, Copy, Debug, Default)]
struct KindSum {
    count: u64,
    first: u64,
    last: u64,
    lasted: Option<u64>,
    bytes: Option<u64>,
}

/// A process, and a kind of what happened.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct KindKey {
    process: ProcessIndex,
    kind: &'static str,
}

impl OfProcess for StartupKindRow<'_> {
    fn process(&self) -> &Label<'_> {
        &self.process
    }
}

impl Row for StartupKindRow<'_> {
    const NAME: &'static str = "startup.kinds";
    const ROW: &'static str = "What happened of one kind after the start of a process";

    fn columns<C: Columns<Self>>(columns: &mut C) {
        const COUNT: Column = Column::count("count", "How many");
        const FIRST: Column = Column::micros(
            "first_us",
            "When the first began, since the start of the process",
        );
        const LAST: Column = Column::micros(
            "last_us",
            "When the last began, since the start of the process",
        );
        const TOTAL: Column = Column::micros("total_us", "Sum of the durations").or_null();
        const BYTES: Column = Column::bytes("bytes", "Bytes that were read or written").or_null();
        add_process(columns);
        columns.add(KIND.heading("kind"), |row| Cell::Text(row.kind));
        columns.add(COUNT.heading("count"), |row| Cell::int(Some(row.sum.count)));
        columns.add(FIRST.heading("first ms"), |row| {
            Cell::micros(Some(row.sum.first))
        });
        columns.add(LAST.heading("last ms"), |row| {
            Cell::micros(Some(row.sum.last))
        });
        columns.add(TOTAL.heading("total ms"), |row| {
            Cell::micros(row.sum.lasted)
        });
        columns.add(BYTES.heading("bytes"), |row| Cell::int(row.sum.bytes));
    }
}

/// The sums of rows, which are in time order, by process and kind.
#[must_use]
pub fn startup_kinds<'m>(machine: &'m Machine, rows: &[StartupRow<'m>]) -> Vec<StartupKindRow<'m>> {
    let mut sums: BTreeMap<KindKey, KindSum> = BTreeMap::new();
    for row in rows {
        let key = KindKey {
            process: row.index,
            kind: row.kind,
        };
        let sum = sums.entry(key).or_default();
        if sum.count == 0 {
            sum.first = row.at;
        }
        sum.count += 1;
        sum.last = row.at;
        if let Some(lasted) = row.lasted {
            sum.lasted = Some(sum.lasted.unwrap_or(0).saturating_add(lasted));
        }
        if let Some(bytes) = row.bytes {
            sum.bytes = Some(sum.bytes.unwrap_or(0).saturating_add(bytes));
        }
    }
    let mut kinds = Vec::new();
    for (key, sum) in sums {
        kinds.push(StartupKindRow {
            process: process_label(machine, Some(key.process)),
            kind: key.kind,
            sum,
        });
    }
    kinds.sort_by_key(|row| row.sum.first);
    kinds
}
