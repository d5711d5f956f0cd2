//! Context switches.

use etl_format::FileTime;

use super::{CPU, FILETIME, SEQUENCE, TIME};
use crate::cell::{Cell, Label};
use crate::column::{Column, Kind};
use crate::row::{Columns, Row};

/// A row of `context_switches`.
#[derive(Clone, Copy, Debug)]
pub struct ContextSwitchRow<'m> {
    pub(crate) sequence: u64,
    pub(crate) time: FileTime,
    pub(crate) cpu: u16,
    pub(crate) old_tid: u64,
    pub(crate) old_process: Label<'m>,
    pub(crate) old_state: Option<u64>,
    pub(crate) wait_reason: &'m str,
    pub(crate) new_tid: u64,
    pub(crate) new_process: Label<'m>,
}

impl Row for ContextSwitchRow<'_> {
    const NAME: &'static str = "context_switches";
    const ROW: &'static str = "One context switch, in time order";
    const ABOUT: &'static str =
        "Its stack is in `event_stacks`: the stack of the thread that begins to run.";

    fn columns<C: Columns<Self>>(columns: &mut C) {
        const OLD_TID: Column = Column::count("old_tid", "Thread that stops running; 0 for idle");
        const OLD_PID: Column = Column::count("old_pid", "Its process");
        const OLD_PROCESS: Column =
            Column::new("old_process", Kind::Word, "File name of its image");
        const OLD_STATE: Column = Column::new("old_state", Kind::Int32, "Its state: 5 for waiting");
        const REASON: Column = Column::new(
            "wait_reason",
            Kind::Word,
            "Why it waits, by its name or its number",
        );
        const NEW_TID: Column = Column::count("new_tid", "Thread that begins to run; 0 for idle");
        const NEW_PID: Column = Column::count("new_pid", "Its process");
        const NEW_PROCESS: Column =
            Column::new("new_process", Kind::Word, "File name of its image");
        columns.add(SEQUENCE, |row| Cell::int(Some(row.sequence)));
        columns.add(TIME, |row| Cell::Time(row.time));
        columns.add(FILETIME, |row| Cell::Int(row.time.get()));
        columns.add(CPU, |row| Cell::int(Some(row.cpu)));
        columns.add(OLD_TID, |row| Cell::int(Some(row.old_tid)));
        columns.add(OLD_PID.or_null(), |row| Cell::int(row.old_process.pid()));
        columns.add(OLD_PROCESS.or_null(), |row| Cell::Label(&row.old_process));
        columns.add(OLD_STATE.or_null(), |row| Cell::int(row.old_state));
        columns.add(REASON.or_null(), |row| Cell::text(row.wait_reason));
        columns.add(NEW_TID, |row| Cell::int(Some(row.new_tid)));
        columns.add(NEW_PID.or_null(), |row| Cell::int(row.new_process.pid()));
        columns.add(NEW_PROCESS.or_null(), |row| Cell::Label(&row.new_process));
    }
}
