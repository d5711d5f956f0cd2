//! CPU samples.

use etl_analysis::Interrupt;
use etl_format::{FileTime, ThreadId};

use super::{CPU, FILETIME, OfProcess, SEQUENCE, TID, TIME, add_process};
use crate::cell::{Cell, Label};
use crate::column::{Column, Kind};
use crate::row::{Columns, Row};

/// A row of `samples`.
#[derive(Clone, Copy, Debug)]
pub struct SampleRow<'m> {
    pub(crate) sequence: u64,
    pub(crate) time: FileTime,
    pub(crate) cpu: u16,
    pub(crate) process: Label<'m>,
    pub(crate) tid: Option<ThreadId>,
    pub(crate) address: u64,
    pub(crate) interrupt: Option<Interrupt>,
    pub(crate) module: &'m str,
    pub(crate) method: &'m str,
    pub(crate) stack_id: Option<i64>,
    /// In 100 ns.
    pub(crate) weight: u64,
}

impl OfProcess for SampleRow<'_> {
    fn process(&self) -> &Label<'_> {
        &self.process
    }
}

impl Row for SampleRow<'_> {
    const NAME: &'static str = "samples";
    const ROW: &'static str = "One CPU sample, in time order";
    const ABOUT: &'static str = "`analyze cpu` counts the same samples; samples of idle processors belong to process 0, and \
         are work if `interrupt` is not null.";

    fn columns<C: Columns<Self>>(columns: &mut C) {
        const ADDRESS: Column = Column::address("address", "Instruction pointer, as bits");
        const MODULE: Column = Column::new(
            "module",
            Kind::Word,
            "File name of the module or the image at the address",
        );
        const METHOD: Column = Column::new("method", Kind::Word, "Type and method at the address");
        const INTERRUPT: Column = Column::new(
            "interrupt",
            Kind::Word,
            "`DPC` or `ISR` if one interrupted the thread; null if the thread itself ran",
        );
        const STACK: Column = Column::count(
            "stack_id",
            "Its stack, in `stacks`; null if none was recorded",
        );
        const WEIGHT: Column = Column::micros(
            "weight_us",
            "Time that the sample represents; 0 if the trace states no interval",
        );
        columns.add(SEQUENCE, |row| Cell::int(Some(row.sequence)));
        columns.add(TIME, |row| Cell::Time(row.time));
        columns.add(FILETIME, |row| Cell::Int(row.time.get()));
        columns.add(CPU, |row| Cell::int(Some(row.cpu)));
        add_process(columns);
        columns.add(TID, |row| Cell::int(row.tid));
        columns.add(ADDRESS, |row| Cell::bits(Some(row.address)));
        columns.add(MODULE.or_null(), |row| Cell::text(row.module));
        columns.add(METHOD.or_null(), |row| Cell::text(row.method));
        columns.add(INTERRUPT.or_null(), |row| {
            Cell::text(row.interrupt.map_or("", Interrupt::name))
        });
        columns.add(STACK.or_null(), |row| Cell::int(row.stack_id));
        columns.add(WEIGHT, |row| Cell::micros(Some(row.weight)));
    }
}
