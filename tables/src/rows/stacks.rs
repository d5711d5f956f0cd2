//! Stacks of events, distinct stacks, and their frames.

use etl_format::{FileTime, ThreadId};

use super::{OfProcess, SEQUENCE, TID, add_process};
use crate::cell::{Cell, Label};
use crate::column::{Column, Kind, Style};
use crate::row::{Columns, Row};

/// A row of `event_stacks`.
#[derive(Clone, Copy, Debug)]
pub struct EventStackRow<'m> {
    pub(crate) sequence: u64,
    pub(crate) time: FileTime,
    pub(crate) process: Label<'m>,
    pub(crate) tid: Option<ThreadId>,
    pub(crate) stack_id: i64,
}

impl Row for EventStackRow<'_> {
    const NAME: &'static str = "event_stacks";
    const ROW: &'static str = "One event with a stack, samples included";
    const ABOUT: &'static str = "Stacks come after the events that they belong to, in records of \
        their own or with them. Here they are joined: `events` by `trace` and `sequence`, `stacks` \
        and `frames` by `trace` and `stack_id`.";

    fn columns<C: Columns<Self>>(columns: &mut C) {
        columns.add(SEQUENCE, |row| Cell::int(Some(row.sequence)));
        columns.add(Column::time("time", "Time of the event in UTC"), |row| {
            Cell::Time(row.time)
        });
        columns.add(super::PID, |row| Cell::int(row.process.pid()));
        columns.add(TID, |row| Cell::int(row.tid));
        columns.add(Column::count("stack_id", "Its stack, in `stacks`"), |row| {
            Cell::Int(row.stack_id)
        });
    }
}

/// A row of `stacks`.
#[derive(Clone, Copy, Debug)]
pub struct StackRow<'m> {
    pub(crate) stack_id: i64,
    pub(crate) process: Label<'m>,
    pub(crate) depth: usize,
    pub(crate) kernel: usize,
    pub(crate) is_partial: bool,
    pub(crate) text: &'m str,
}

impl OfProcess for StackRow<'_> {
    fn process(&self) -> &Label<'_> {
        &self.process
    }
}

impl Row for StackRow<'_> {
    const NAME: &'static str = "stacks";
    const ROW: &'static str = "One distinct stack of a process";
    const ABOUT: &'static str = "`stack_id` is computed from the process id and the addresses, so \
        it is the same in every run and differs between traces: join by `trace` and `stack_id`.";

    fn columns<C: Columns<Self>>(columns: &mut C) {
        const DEPTH: Column = Column::new(
            "depth",
            Kind::Int32,
            "Number of its addresses, which are in `frames`",
        );
        const KERNEL: Column =
            Column::new("kernel", Kind::Int32, "How many of them are in the kernel");
        const TEXT: Column = Column::new(
            "text",
            Kind::Text,
            "The names of its frames, outermost first, with `;` between them",
        );
        columns.add(Column::count("stack_id", "Its id"), |row| {
            Cell::Int(row.stack_id)
        });
        add_process(columns);
        columns.add(DEPTH, |row| Cell::int(Some(row.depth)));
        columns.add(KERNEL, |row| Cell::int(Some(row.kernel)));
        columns.add(
            Column::new("partial", Kind::Bool, "Whether a part is missing"),
            |row| Cell::Bool(row.is_partial),
        );
        columns.add(TEXT, |row| Cell::Text(row.text));
    }
}

/// A row of `frames`.
#[derive(Clone, Copy, Debug)]
pub struct FrameRow<'m> {
    pub(crate) stack_id: i64,
    pub(crate) depth: usize,
    pub(crate) address: u64,
    pub(crate) module: &'m str,
    pub(crate) method: &'m str,
    pub(crate) offset: Option<u64>,
    pub(crate) is_kernel: bool,
}

impl Row for FrameRow<'_> {
    const NAME: &'static str = "frames";
    const ROW: &'static str = "One address of a stack, innermost first";
    const ABOUT: &'static str =
        "Names are from the time at which the trace has the stack for the first time.";

    fn columns<C: Columns<Self>>(columns: &mut C) {
        const STACK: Column = Column::count("stack_id", "The stack, in `stacks`");
        const DEPTH: Column = Column::new(
            "depth",
            Kind::Int32,
            "Place in the stack, 0 for the innermost",
        );
        const MODULE: Column =
            Column::new("module", Kind::Word, "File name of the module or the image");
        const METHOD: Column = Column::new(
            "method",
            Kind::Word,
            "Type and method; null if only the image is known",
        );
        const OFFSET: Column =
            Column::count("offset", "Offset in the method or the image, in bytes");
        const KERNEL: Column = Column::new("is_kernel", Kind::Bool, "Whether it is in the kernel");
        columns.add(STACK, |row| Cell::Int(row.stack_id));
        columns.add(DEPTH, |row| Cell::int(Some(row.depth)));
        columns.add(Column::address("address", "Address, as bits"), |row| {
            Cell::bits(Some(row.address))
        });
        columns.add(MODULE.or_null(), |row| Cell::text(row.module));
        columns.add(METHOD.or_null(), |row| Cell::text(row.method));
        columns.add(OFFSET.or_null().style(Style::Plain), |row| {
            Cell::bits(row.offset)
        });
        columns.add(KERNEL, |row| Cell::Bool(row.is_kernel));
    }
}
