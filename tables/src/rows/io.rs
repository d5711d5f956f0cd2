//! Reads and writes of disks and files.

use std::borrow::Cow;
use std::cmp::Reverse;
use std::collections::BTreeMap;

use etl_analysis::behavior::io::{DiskOperation, Io, IoTotal, Operation};
use etl_analysis::{Machine, ProcessIndex};

use super::{
    CPU, Durations, HasDurations, OfProcess, SEQUENCE, TID, add_durations, add_process,
    process_label,
};
use crate::cell::{Cell, Label};
use crate::column::{Column, Kind};
use crate::comparison::Compared;
use crate::row::{Columns, Row};
use crate::selection::Selection;

const OPERATION: Column = Column::new(
    "operation",
    Kind::Word,
    "`disk read`, `disk write`, `disk flush`, `file read` or `file write`",
)
.key();
const COUNT: Column =
    Column::count("count", "How many").sum("count_delta", "count_before", "count_after");
const BYTES: Column = Column::bytes("bytes", "Bytes that were read or written").sum(
    "delta_bytes",
    "before_bytes",
    "after_bytes",
);
const TIMED: Column = Column::count("timed", "How many of them have a duration");

/// A row of `io`.
#[derive(Clone, Debug)]
pub struct IoRow<'m> {
    process: Label<'m>,
    process_index: Option<ProcessIndex>,
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
    const ABOUT: &'static str = "`analyze io` prints the same rows. Single operations are in `disk_operations`, \
        and in events (`FileIo.Read`).";
    const COMPARED: Option<Compared> = Some(Compared {
        name: "io.compare.io",
        counted: "",
        largest: "total_us",
    });

    fn columns<C: Columns<Self>>(columns: &mut C) {
        add_process(columns);
        columns.add(OPERATION.heading("operation"), |row| {
            Cell::Text(row.operation.name())
        });
        columns.add(
            Column::new("path", Kind::Text, "Path")
                .or_null()
                .key_of_any_case()
                .heading("path"),
            |row| Cell::text(&row.path),
        );
        columns.add(COUNT.heading("count"), |row| {
            Cell::bits(Some(row.total.count))
        });
        columns.add(BYTES.heading("bytes"), |row| {
            Cell::bits(Some(row.total.bytes))
        });
        columns.add(TIMED, |row| Cell::bits(Some(row.total.latency.count())));
        add_durations(columns);
    }
}

/// A row for the operations of each selected process on each path, the longest first.
#[must_use]
pub fn io<'m>(machine: &'m Machine, io: &Io, selection: &Selection) -> Vec<IoRow<'m>> {
    let mut rows = Vec::new();
    for (key, total) in io.by_path(machine) {
        if selection.has_process(key.process) {
            rows.push(IoRow {
                process: process_label(machine, key.process),
                process_index: key.process,
                operation: key.operation,
                path: key.path,
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
    const COMPARED: Option<Compared> = Some(Compared {
        name: "io.compare.processes",
        counted: "",
        largest: "total_us",
    });

    fn columns<C: Columns<Self>>(columns: &mut C) {
        add_process(columns);
        columns.add(OPERATION.heading("operation"), |row| {
            Cell::Text(row.operation.name())
        });
        columns.add(COUNT.heading("count"), |row| {
            Cell::bits(Some(row.total.count))
        });
        columns.add(BYTES.heading("bytes"), |row| {
            Cell::bits(Some(row.total.bytes))
        });
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
    let mut by_process: BTreeMap<(Option<ProcessIndex>, Operation), IoTotal> = BTreeMap::new();
    for row in rows {
        *by_process
            .entry((row.process_index, row.operation))
            .or_default() += &row.total;
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

/// A row of `disk_operations`.
#[derive(Clone, Debug)]
pub struct DiskOperationRow<'m> {
    machine: &'m Machine,
    process: Label<'m>,
    operation: &'m DiskOperation,
    path: Cow<'m, str>,
}

impl OfProcess for DiskOperationRow<'_> {
    fn process(&self) -> &Label<'_> {
        &self.process
    }
}

impl Row for DiskOperationRow<'_> {
    const NAME: &'static str = "disk_operations";
    const ROW: &'static str = "One operation of a disk, in time order";
    const ABOUT: &'static str = "Their sums are in `io`. Events name the thread since Windows 8.";

    fn columns<C: Columns<Self>>(columns: &mut C) {
        const TIME: Column = Column::time("time", "When it ended, in UTC");
        const DISK: Column = Column::new("disk", Kind::Int32, "Number of the disk").or_null();
        const OFFSET: Column =
            Column::count("offset", "Offset on the disk, in bytes; null for a flush").or_null();
        const DURATION: Column = Column::micros("duration_us", "How long it took").or_null();
        columns.add(SEQUENCE, |row| Cell::int(Some(row.operation.number)));
        columns.add(TIME, |row| {
            Cell::time(row.machine.clock(), Some(row.operation.time))
        });
        columns.add(CPU, |row| Cell::int(Some(row.operation.processor)));
        add_process(columns);
        columns.add(TID, |row| Cell::int(row.operation.tid));
        columns.add(OPERATION, |row| Cell::Text(row.operation.operation.name()));
        columns.add(
            Column::new("path", Kind::Text, "Path of the file").or_null(),
            |row| Cell::text(&row.path),
        );
        columns.add(DISK, |row| Cell::int(row.operation.disk));
        columns.add(OFFSET, |row| Cell::bits(row.operation.offset));
        columns.add(BYTES, |row| Cell::bits(Some(row.operation.bytes)));
        columns.add(DURATION, |row| Cell::micros(row.operation.duration));
    }
}

/// A row for each selected operation of a disk that is kept.
pub fn disk_operations<'m>(
    machine: &'m Machine,
    io: &'m Io,
    selection: &Selection,
) -> impl Iterator<Item = DiskOperationRow<'m>> {
    let selected = io.disk_operations().iter().filter(|operation| {
        selection.has_process(operation.process()) && selection.has_thread(operation.tid)
    });
    selected.map(move |operation| DiskOperationRow {
        machine,
        process: process_label(machine, operation.process()),
        operation,
        path: machine.user_path(io.path_of(operation).unwrap_or_default()),
    })
}
