//! Waits of threads for locks of .NET.

use std::cmp::Reverse;

use etl_analysis::behavior::Distribution;
use etl_analysis::behavior::contention::{Contention, LockWaits};
use etl_analysis::{Machine, ThreadKey};
use etl_format::ThreadId;

use super::{
    Durations, HasDurations, OfProcess, THREAD, add_durations, add_process, process_label, ticks,
};
use crate::cell::{Cell, Label};
use crate::column::Column;
use crate::comparison::Compared;
use crate::row::{Columns, Row};
use crate::selection::Selection;

/// A row of `lock_waits`.
#[derive(Clone, Debug)]
pub struct LockWaitRow<'m> {
    machine: &'m Machine,
    process: Label<'m>,
    tid: ThreadId,
    thread: &'m str,
    count: u64,
    waits: &'m LockWaits,
    durations: Durations,
}

impl OfProcess for LockWaitRow<'_> {
    fn process(&self) -> &Label<'_> {
        &self.process
    }
}

impl HasDurations for LockWaitRow<'_> {
    fn durations(&self) -> &Durations {
        &self.durations
    }
}

impl Row for LockWaitRow<'_> {
    const NAME: &'static str = "lock_waits";
    const ROW: &'static str = "The waits of one thread for locks of .NET, the longest first";
    const ABOUT: &'static str = "`analyze contention` prints the same rows.";
    const COMPARED: Option<Compared> = Some(Compared {
        name: "contention.compare.lock_waits",
        counted: "",
        largest: "total_us",
    });

    fn columns<C: Columns<Self>>(columns: &mut C) {
        const UNENDED: Column = Column::count(
            "unended",
            "Waits whose end was not recorded: in a deadlock, for example",
        )
        .sum("unended_delta", "unended_before", "unended_after");
        const LONGEST: Column = Column::time("longest_at", "When the longest wait began").or_null();
        add_process(columns);
        columns.add(
            Column::count("tid", "Id of the thread").heading("tid"),
            |row| Cell::int(Some(row.tid)),
        );
        columns.add(THREAD.heading("thread"), |row| Cell::text(row.thread));
        columns.add(
            Column::count("count", "Waits that ended")
                .sum("count_delta", "count_before", "count_after")
                .heading("waits"),
            |row| Cell::int(Some(row.count)),
        );
        columns.add(UNENDED.heading("unended"), |row| {
            Cell::int(Some(row.waits.unended))
        });
        add_durations(columns);
        columns.add(LONGEST.heading("longest at"), |row| {
            Cell::time(
                row.machine.clock(),
                row.waits.longest.map(|wait| wait.since),
            )
        });
    }
}

/// A row for each selected thread that waited for a lock, the longest waits first.
#[must_use]
pub fn lock_waits<'m>(
    machine: &'m Machine,
    contention: &'m Contention,
    selection: &Selection,
) -> Vec<LockWaitRow<'m>> {
    let clock = machine.clock();
    let mut rows = Vec::new();
    for (&ThreadKey { process, tid }, waits) in contention.threads() {
        if !selection.has_thread(Some(tid)) || !selection.has_process(process) {
            continue;
        }
        let durations = waits
            .durations
            .iter()
            .map(|&duration| ticks(clock, duration));
        let all = Distribution::new(durations);
        rows.push(LockWaitRow {
            machine,
            process: process_label(machine, process),
            tid,
            thread: machine
                .thread_of(process, tid)
                .map_or("", |thread| &thread.name),
            count: all.count(),
            waits,
            durations: Durations::of_distribution(&all),
        });
    }
    rows.sort_by_key(|row| Reverse(row.durations.total));
    rows
}
