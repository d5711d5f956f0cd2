//! Reads and writes of disks and files.

use std::cmp::Reverse;
use std::collections::BTreeMap;

use etl_analysis::Machine;
use etl_analysis::behavior::io::{Io, IoTotal, Operation};

use super::{Durations, HasDurations, OfProcess, add_durations, add_process, process_label};
use crate::cell::{Cell, Label};
use crate::column::{Column, Kind};
use crate::row::{Columns, Row};
use crate::selection::Selection;

const OPERATION: Column = Column::new(
    "operation",
    Kind::Word,
    "`disk read`, `disk write`, `disk flush`, `file read` or `file write`",
);
const COUNT: Column = Column::count("count", "How many");
const BYTES: Column = Column::bytes("bytes", "Bytes that were read or written");
const TIMED: Column = Column::count("timed", "How many of them have a duration");

/// A row of `io`.
#[derive(Clone, Debug)]
pub struct IoRow<'m> {
    process: Label<'m>,
    process_index: Option<usize>,
    operation: Operation,
    path: String,
    total: IoTotal,
    durations: Durations,
}

impl OfProcess for IoRow<'_> {
    fn process(&self) -> &Label<'_> {
        &self.process
    }
}

impl HasDurations for IoRow<'_> {
    fn durations(&self) -> &Durations {
        &self.durations
    }
}

impl Row for IoRow<'_> {
    const NAME: &'static str = "io";
    const ROW: &'static str = "The operations of one kind by a process on a file";
    const ABOUT: &'static str = "As `analyze io` reports them. Single operations are events (`DiskIo.Read`, `FileIo.Read`).";

    fn columns<C: Columns<Self>>(columns: &mut C) {
        add_process(columns);
        columns.add(OPERATION.heading("operation"), |row| Cell::Text(row.operation.name()));
        columns.add(Column::new("path", Kind::Text, "Path").or_null().heading("path"), |row| {
            Cell::text(&row.path)
        });
        columns.add(COUNT.heading("count"), |row| Cell::bits(Some(row.total.count)));
        columns.add(BYTES.heading("bytes"), |row| Cell::bits(Some(row.total.bytes)));
        columns.add(TIMED, |row| Cell::bits(Some(row.total.latency.count())));
        add_durations(columns);
    }
}

/// A row for the operations of each selected process on each path, the longest first.
#[must_use]
pub fn io<'m>(machine: &'m Machine, io: &Io, selection: &Selection) -> Vec<IoRow<'m>> {
    let mut rows = Vec::new();
    for ((process, path, operation), total) in io.by_path(machine) {
        if selection.has_process(process) {
            rows.push(IoRow {
                process: process_label(machine, process),
                process_index: process,
                operation,
                path,
                durations: Durations::of_histogram(&total.latency),
                total,
            });
        }
    }
    rows.sort_by_key(|row| (Reverse(row.total.latency.total()), Reverse(row.total.bytes)));
    rows
}

/// A row of the sums of `analyze io`.
#[derive(Clone, Debug)]
pub struct IoProcessRow<'m> {
    process: Label<'m>,
    operation: Operation,
    total: IoTotal,
    durations: Durations,
}

impl OfProcess for IoProcessRow<'_> {
    fn process(&self) -> &Label<'_> {
        &self.process
    }
}

impl HasDurations for IoProcessRow<'_> {
    fn durations(&self) -> &Durations {
        &self.durations
    }
}

impl Row for IoProcessRow<'_> {
    const NAME: &'static str = "io.processes";
    const ROW: &'static str = "The operations of one kind by a process";

    fn columns<C: Columns<Self>>(columns: &mut C) {
        add_process(columns);
        columns.add(OPERATION.heading("operation"), |row| Cell::Text(row.operation.name()));
        columns.add(COUNT.heading("count"), |row| Cell::bits(Some(row.total.count)));
        columns.add(BYTES.heading("bytes"), |row| Cell::bits(Some(row.total.bytes)));
        columns.add(TIMED, |row| Cell::bits(Some(row.total.latency.count())));
        add_durations(columns);
    }
}

impl IoProcessRow<'_> {
    /// How many operations.
    #[must_use]
    pub fn count(&self) -> u64 {
        self.total.count
    }
}

/// The sums of rows by process and operation, the longest first.
#[must_use]
pub fn io_processes<'m>(machine: &'m Machine, rows: &[IoRow<'m>]) -> Vec<IoProcessRow<'m>> {
    let mut by_process: BTreeMap<(Option<usize>, Operation), IoTotal> = BTreeMap::new();
    for row in rows {
        *by_process.entry((row.process_index, row.operation)).or_default() += &row.total;
    }
    let mut sums = Vec::new();
    for ((process, operation), total) in by_process {
        sums.push(IoProcessRow {
            process: process_label(machine, process),
            operation,
            durations: Durations::of_histogram(&total.latency),
            total,
        });
    }
    sums.sort_by_key(|row| (Reverse(row.total.latency.total()), Reverse(row.total.bytes)));
    sums
}
