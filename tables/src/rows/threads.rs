//! Threads.

use etl_analysis::Machine;
use etl_analysis::machine::Thread;

use super::{ENDED, STARTED, THREAD};
use crate::cell::Cell;
use crate::column::{Column, Kind};
use crate::row::{Columns, Row};
use crate::selection::Selection;

/// A row of `threads`.
#[derive(Clone, Debug)]
pub struct ThreadRow<'m> {
    machine: &'m Machine,
    thread: &'m Thread,
}

impl Row for ThreadRow<'_> {
    const NAME: &'static str = "threads";
    const ROW: &'static str = "One thread, in the order in which they appear";

    fn columns<C: Columns<Self>>(columns: &mut C) {
        const START: Column =
            Column::address("start_address", "Where its own code begins, as bits");
        columns.add(Column::count("tid", "Its id"), |row| {
            Cell::int(Some(row.thread.tid))
        });
        columns.add(Column::count("pid", "Its process"), |row| {
            Cell::int(Some(row.thread.pid))
        });
        columns.add(
            Column {
                kind: Kind::Text,
                ..THREAD
            },
            |row| Cell::text(&row.thread.name),
        );
        columns.add(STARTED, |row| {
            Cell::time(row.machine.clock(), row.thread.started)
        });
        columns.add(ENDED, |row| {
            Cell::time(row.machine.clock(), row.thread.ended)
        });
        columns.add(START.or_null(), |row| match row.thread.start_address {
            0 => Cell::Null,
            address => Cell::bits(Some(address)),
        });
    }
}

/// A row for each selected thread.
pub fn threads<'m>(
    machine: &'m Machine,
    selection: &Selection,
) -> impl Iterator<Item = ThreadRow<'m>> {
    let threads = machine.threads().iter();
    threads
        .filter(move |thread| is_selected(machine, thread, selection))
        .map(move |thread| ThreadRow { machine, thread })
}

fn is_selected(machine: &Machine, thread: &Thread, selection: &Selection) -> bool {
    let process = machine.process_of(thread);
    process.is_some() && selection.has_process(process) && selection.has_thread(Some(thread.tid))
}
