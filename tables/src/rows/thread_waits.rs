//! What threads ran and waited for, and who ended their waits.

use std::borrow::Cow;
use std::cmp::Reverse;
use std::collections::BTreeMap;

use etl_analysis::behavior::Histogram;
use etl_analysis::behavior::waits::{ThreadTimes, Waits};
use etl_analysis::{Machine, ProcessIndex, ThreadKey};
use etl_format::ThreadId;

use super::{OfProcess, THREAD, add_process, name_or_number, process_label, ticks};
use crate::cell::{Cell, Label};
use crate::column::{Column, Kind};
use crate::comparison::Compared;
use crate::row::{Columns, Row};
use crate::selection::Selection;

const TID: Column = Column::count("tid", "Id of the thread");
const WAITS: Column =
    Column::count("waits", "Waits that ended").sum("waits_delta", "waits_before", "waits_after");
const WAIT: Column = Column::micros("wait_us", "Sum of the waits").sum(
    "wait_delta_us",
    "wait_before_us",
    "wait_after_us",
);
const WAIT_P50: Column =
    Column::micros("wait_p50_us", "Median, at most 1/32 above the exact value").or_null();
const WAIT_P99: Column = Column::micros(
    "wait_p99_us",
    "99th percentile, at most 1/32 above the exact value",
)
.or_null();
const WAIT_MAX: Column = Column::micros("wait_max_us", "The longest wait").or_null();
const WAKER_PID: Column =
    Column::count("waker_pid", "Process of the thread that ended the waits").or_null();
const WAKER_TID: Column = Column::count("waker_tid", "The thread that ended the waits");

/// The name of a reason of waits.
fn reason_name(waits: &Waits, reason: u8) -> Cow<'static, str> {
    name_or_number(waits.reason_name(reason), reason.into())
}

/// The label of a thread: the name of its process.
fn thread_label(machine: &Machine, key: ThreadKey) -> Label<'_> {
    let process = process_label(machine, key.process);
    Label::ThreadOf {
        name: process.value(),
        pid: process.pid(),
        tid: key.tid,
    }
}

/// A row of `thread_waits`.
#[derive(Clone, Debug)]
pub struct ThreadWaitRow<'m> {
    machine: &'m Machine,
    key: ThreadKey,
    process: Label<'m>,
    thread: &'m str,
    times: &'m ThreadTimes,
    waits: Histogram,
    reason: Cow<'static, str>,
    waker: Option<Waker<'m>>,
}

/// The thread that ended most of the waits.
#[derive(Clone, Copy, Debug)]
struct Waker<'m> {
    label: Label<'m>,
    tid: ThreadId,
    /// In ticks of the recording's clock.
    time: u64,
}

impl OfProcess for ThreadWaitRow<'_> {
    fn process(&self) -> &Label<'_> {
        &self.process
    }
}

impl Row for ThreadWaitRow<'_> {
    const NAME: &'static str = "thread_waits";
    const ROW: &'static str = "What one thread ran and waited for, the longest waits first";
    const ABOUT: &'static str = "`analyze waits` prints the same rows.";
    const COMPARED: Option<Compared> = Some(Compared {
        name: "waits.compare.thread_waits",
        counted: "threads",
        largest: "wait_us",
    });

    fn columns<C: Columns<Self>>(columns: &mut C) {
        const RUNNING: Column = Column::micros("running_us", "Time on a processor").sum(
            "running_delta_us",
            "running_before_us",
            "running_after_us",
        );
        const SWITCHES: Column = Column::count("switches", "Switches to the thread").sum(
            "switches_delta",
            "switches_before",
            "switches_after",
        );
        const READY_COUNT: Column = Column::count("ready", "How often it was ready to run");
        const READY: Column = Column::micros("ready_us", "Time between being ready and running")
            .sum("ready_delta_us", "ready_before_us", "ready_after_us");
        const READY_P99: Column = Column::micros(
            "ready_p99_us",
            "99th percentile, at most 1/32 above the exact value",
        );
        const READY_MAX: Column = Column::micros("ready_max_us", "The longest of them");
        const REASON: Column =
            Column::new("reason", Kind::Word, "The reason with the longest waits");
        const WAKER: Column = Column::new(
            "waker_process",
            Kind::Word,
            "File name of the process of the thread that ended most of this time",
        );
        const WAKER_TIME: Column =
            Column::micros("waker_us", "Time of the waits that this thread ended");
        add_process(columns);
        columns.add(TID.heading("tid"), |row| Cell::int(Some(row.key.tid)));
        columns.add(THREAD.heading("thread"), |row| Cell::text(row.thread));
        columns.add(RUNNING.heading("running ms"), |row| {
            row.time(Some(row.times.running))
        });
        columns.add(SWITCHES.heading("switches"), |row| {
            Cell::int(Some(row.times.switches))
        });
        columns.add(WAITS.heading("waits"), |row| {
            Cell::int(Some(row.waits.count()))
        });
        columns.add(WAIT.heading("waiting ms"), |row| {
            row.time(Some(row.waits.total()))
        });
        columns.add(WAIT_P50.heading("p50"), |row| {
            row.time(row.waits.percentile(50))
        });
        columns.add(WAIT_P99.heading("p99"), |row| {
            row.time(row.waits.percentile(99))
        });
        columns.add(WAIT_MAX.heading("max"), |row| row.time(row.waits.max()));
        columns.add(READY_COUNT, |row| Cell::int(Some(row.times.ready.count())));
        columns.add(READY.heading("ready ms"), |row| {
            row.time(Some(row.times.ready.total()))
        });
        columns.add(READY_P99.or_null(), |row| {
            row.time(row.times.ready.percentile(99))
        });
        columns.add(READY_MAX.or_null().heading("max"), |row| {
            row.time(row.times.ready.max())
        });
        columns.add(REASON.or_null().heading("reason"), |row| {
            Cell::text(&row.reason)
        });
        columns.add(WAKER.or_null().heading("ended by"), |row| {
            match &row.waker {
                Some(waker) => Cell::Label(&waker.label),
                None => Cell::Null,
            }
        });
        columns.add(WAKER_PID, |row| {
            Cell::int(row.waker.and_then(|waker| waker.label.pid()))
        });
        columns.add(WAKER_TID.or_null(), |row| {
            Cell::int(row.waker.map(|waker| waker.tid))
        });
        columns.add(WAKER_TIME.or_null(), |row| {
            row.time(row.waker.map(|waker| waker.time))
        });
    }
}

impl ThreadWaitRow<'_> {
    /// A number of ticks as microseconds.
    fn time(&self, time: Option<u64>) -> Cell<'static> {
        Cell::micros(time.map(|time| ticks(self.machine.clock(), time)))
    }
}

/// A row for each selected thread, the longest waits first.
#[must_use]
pub fn thread_waits<'m>(
    machine: &'m Machine,
    waits: &'m Waits,
    selection: &Selection,
) -> Vec<ThreadWaitRow<'m>> {
    let mut rows = Vec::new();
    for (&key, times) in waits.threads() {
        if !selection.has_process(key.process) || !selection.has_thread(Some(key.tid)) {
            continue;
        }
        let mut all = Histogram::default();
        for histogram in times.waits.values() {
            all += histogram;
        }
        let reason = times.waits.iter().max_by_key(|(_, waits)| waits.total());
        let waker = times.wakers.iter().max_by_key(|(_, waits)| waits.ticks);
        rows.push(ThreadWaitRow {
            machine,
            key,
            process: process_label(machine, key.process),
            thread: machine
                .thread_of(key.process, key.tid)
                .map_or("", |thread| &thread.name),
            times,
            waits: all,
            reason: reason.map_or(Cow::Borrowed(""), |(&reason, _)| reason_name(waits, reason)),
            waker: waker.map(|(&waker, waits)| Waker {
                label: thread_label(machine, waker),
                tid: waker.tid,
                time: waits.ticks,
            }),
        });
    }
    rows.sort_by_key(|row| Reverse(row.waits.total()));
    rows
}

/// A row of `wait_reasons`.
#[derive(Clone, Debug)]
pub struct WaitReasonRow<'m> {
    machine: &'m Machine,
    process: Label<'m>,
    reason: Cow<'static, str>,
    waits: Histogram,
}

impl OfProcess for WaitReasonRow<'_> {
    fn process(&self) -> &Label<'_> {
        &self.process
    }
}

impl Row for WaitReasonRow<'_> {
    const NAME: &'static str = "wait_reasons";
    const ROW: &'static str = "The waits of a process with the same reason, the longest first";
    const ABOUT: &'static str = "`analyze waits` prints the same rows.";
    const COMPARED: Option<Compared> = Some(Compared {
        name: "waits.compare.wait_reasons",
        counted: "",
        largest: "wait_us",
    });

    fn columns<C: Columns<Self>>(columns: &mut C) {
        const REASON: Column =
            Column::new("reason", Kind::Word, "Why, by its name or its number").key();
        add_process(columns);
        columns.add(REASON.heading("reason"), |row| Cell::Text(&row.reason));
        columns.add(WAITS.heading("waits"), |row| {
            Cell::int(Some(row.waits.count()))
        });
        columns.add(WAIT.heading("waiting ms"), |row| {
            row.time(Some(row.waits.total()))
        });
        columns.add(WAIT_P50.heading("p50"), |row| {
            row.time(row.waits.percentile(50))
        });
        columns.add(WAIT_P99.heading("p99"), |row| {
            row.time(row.waits.percentile(99))
        });
        columns.add(WAIT_MAX.heading("max"), |row| row.time(row.waits.max()));
    }
}

impl WaitReasonRow<'_> {
    /// A number of ticks as microseconds.
    fn time(&self, time: Option<u64>) -> Cell<'static> {
        Cell::micros(time.map(|time| ticks(self.machine.clock(), time)))
    }
}

/// A row for each reason of each process of these threads, the longest waits first.
#[must_use]
pub fn wait_reasons<'m>(
    machine: &'m Machine,
    waits: &Waits,
    threads: &[ThreadWaitRow<'m>],
) -> Vec<WaitReasonRow<'m>> {
    let mut by_reason: BTreeMap<(Option<ProcessIndex>, u8), Histogram> = BTreeMap::new();
    for row in threads {
        for (&reason, histogram) in &row.times.waits {
            *by_reason.entry((row.key.process, reason)).or_default() += histogram;
        }
    }
    let mut rows = Vec::new();
    for ((process, reason), histogram) in by_reason {
        rows.push(WaitReasonRow {
            machine,
            process: process_label(machine, process),
            reason: reason_name(waits, reason),
            waits: histogram,
        });
    }
    rows.sort_by_key(|row| Reverse(row.waits.total()));
    rows
}

/// A row of `wakers`.
#[derive(Clone, Debug)]
pub struct WakerRow<'m> {
    machine: &'m Machine,
    key: ThreadKey,
    process: Label<'m>,
    waker_key: ThreadKey,
    waker: Label<'m>,
    waits: u64,
    /// In ticks of the recording's clock.
    time: u64,
}

impl OfProcess for WakerRow<'_> {
    fn process(&self) -> &Label<'_> {
        &self.process
    }
}

impl Row for WakerRow<'_> {
    const NAME: &'static str = "wakers";
    const ROW: &'static str =
        "The waits of one thread that another thread ended, the longest first";
    const ABOUT: &'static str = "`analyze waits` prints the same rows.";
    const COMPARED: Option<Compared> = Some(Compared {
        name: "waits.compare.wakers",
        counted: "",
        largest: "wait_us",
    });

    fn columns<C: Columns<Self>>(columns: &mut C) {
        const WAKER: Column = Column::new(
            "waker_process",
            Kind::Word,
            "File name of the process of the thread that ended the waits",
        )
        .key_of_any_case();
        add_process(columns);
        columns.add(TID.heading("tid"), |row| Cell::int(Some(row.key.tid)));
        columns.add(WAKER.or_null().heading("ended by"), |row| {
            Cell::Label(&row.waker)
        });
        columns.add(WAKER_PID, |row| Cell::int(row.waker.pid()));
        columns.add(WAKER_TID, |row| Cell::int(Some(row.waker_key.tid)));
        columns.add(WAITS.heading("waits"), |row| Cell::int(Some(row.waits)));
        columns.add(WAIT.heading("waiting ms"), |row| {
            Cell::micros(Some(ticks(row.machine.clock(), row.time)))
        });
    }
}

/// A row for each of these threads and each thread that ended its waits, the longest first.
#[must_use]
pub fn wakers<'m>(machine: &'m Machine, threads: &[ThreadWaitRow<'m>]) -> Vec<WakerRow<'m>> {
    let mut rows = Vec::new();
    for row in threads {
        for (&waker, waits) in &row.times.wakers {
            rows.push(WakerRow {
                machine,
                key: row.key,
                process: row.process,
                waker_key: waker,
                waker: thread_label(machine, waker),
                waits: waits.count,
                time: waits.ticks,
            });
        }
    }
    rows.sort_by_key(|row| (Reverse(row.time), row.key, row.waker_key));
    rows
}
