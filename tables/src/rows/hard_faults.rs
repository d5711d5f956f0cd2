//! Hard faults: pages that had to be read from a disk.

use std::cmp::Reverse;
use std::collections::BTreeMap;

use etl_analysis::behavior::io::{FaultTotal, HardFaults, IoTotal};
use etl_analysis::{Machine, ProcessIndex};

use super::{Durations, HasDurations, OfProcess, add_durations, add_process, process_label};
use crate::cell::{Cell, Label};
use crate::column::{Column, Kind};
use crate::row::{Columns, Row};
use crate::selection::Selection;

const COUNT: Column = Column::count("count", "How many");
const BYTES: Column = Column::bytes("bytes", "Bytes that were read");

/// A row of `hard_faults`.
#[derive(Clone, Debug)]
pub struct HardFaultRow<'m> {
    machine: &'m Machine,
    process: Label<'m>,
    process_index: Option<ProcessIndex>,
    path: String,
    faults: FaultTotal,
    durations: Durations,
}

impl OfProcess for HardFaultRow<'_> {
    fn process(&self) -> &Label<'_> {
        &self.process
    }
}

impl HasDurations for HardFaultRow<'_> {
    fn durations(&self) -> &Durations {
        &self.durations
    }
}

impl Row for HardFaultRow<'_> {
    const NAME: &'static str = "hard_faults";
    const ROW: &'static str =
        "The page faults of a process for which a disk read a file, the longest in sum first";
    const ABOUT: &'static str = "`analyze faults` prints the same rows. Single faults are in \
        events (`PageFault.HardFault`).";

    fn columns<C: Columns<Self>>(columns: &mut C) {
        const LONGEST: Column = Column::time("longest_at", "When the longest one began").or_null();
        add_process(columns);
        columns.add(
            Column::new("path", Kind::Text, "Path of the file")
                .or_null()
                .heading("path"),
            |row| Cell::text(&row.path),
        );
        columns.add(COUNT.heading("count"), |row| {
            Cell::bits(Some(row.faults.total.count))
        });
        columns.add(BYTES.heading("bytes"), |row| {
            Cell::bits(Some(row.faults.total.bytes))
        });
        add_durations(columns);
        columns.add(LONGEST.heading("longest at"), |row| {
            let started = row.faults.longest.map(|fault| fault.started);
            Cell::time(row.machine.clock(), started)
        });
    }
}

/// A row for the faults of each selected process in each file, the longest in sum first.
#[must_use]
pub fn hard_faults<'m>(
    machine: &'m Machine,
    faults: &HardFaults,
    selection: &Selection,
) -> Vec<HardFaultRow<'m>> {
    let mut rows = Vec::new();
    for (key, faults) in faults.by_path(machine) {
        if selection.has_process(key.process) {
            rows.push(HardFaultRow {
                machine,
                process: process_label(machine, key.process),
                process_index: key.process,
                path: key.path,
                durations: Durations::of_histogram(&faults.total.latency),
                faults,
            });
        }
    }
    rows.sort_by_key(|row| Reverse(row.faults.total.latency.total()));
    rows
}

/// A row of the sums of `analyze faults`.
#[derive(Clone, Debug)]
pub struct HardFaultProcessRow<'m> {
    process: Label<'m>,
    total: IoTotal,
    durations: Durations,
}

impl OfProcess for HardFaultProcessRow<'_> {
    fn process(&self) -> &Label<'_> {
        &self.process
    }
}

impl HasDurations for HardFaultProcessRow<'_> {
    fn durations(&self) -> &Durations {
        &self.durations
    }
}

impl HardFaultProcessRow<'_> {
    /// How many faults.
    #[must_use]
    pub fn count(&self) -> u64 {
        self.total.count
    }

    /// Bytes that were read.
    #[must_use]
    pub fn bytes(&self) -> u64 {
        self.total.bytes
    }
}

impl Row for HardFaultProcessRow<'_> {
    const NAME: &'static str = "faults.processes";
    const ROW: &'static str = "The hard faults of a process";

    fn columns<C: Columns<Self>>(columns: &mut C) {
        add_process(columns);
        columns.add(COUNT.heading("count"), |row| {
            Cell::bits(Some(row.total.count))
        });
        columns.add(BYTES.heading("bytes"), |row| {
            Cell::bits(Some(row.total.bytes))
        });
        add_durations(columns);
    }
}

/// The sums of rows by process, the longest first.
#[must_use]
pub fn hard_fault_processes<'m>(
    machine: &'m Machine,
    rows: &[HardFaultRow<'m>],
) -> Vec<HardFaultProcessRow<'m>> {
    let mut by_process: BTreeMap<Option<ProcessIndex>, IoTotal> = BTreeMap::new();
    for row in rows {
        *by_process.entry(row.process_index).or_default() += &row.faults.total;
    }
    let mut sums = Vec::new();
    for (process, total) in by_process {
        sums.push(HardFaultProcessRow {
            process: process_label(machine, process),
            durations: Durations::of_histogram(&total.latency),
            total,
        });
    }
    sums.sort_by_key(|row| Reverse(row.total.latency.total()));
    sums
}
