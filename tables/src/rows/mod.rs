//! The rows of tables: a file for each subject, with the columns and how rows are found.

pub mod activities;
pub mod allocations;
pub mod code;
pub mod compilations;
pub mod contents;
pub mod context_switches;
pub mod exceptions;
pub mod findings;
pub mod gcs;
pub mod hard_faults;
pub mod images;
pub mod interrupts;
pub mod io;
pub mod loads;
pub mod lock_waits;
pub mod losses;
pub mod network;
pub mod packets;
pub mod processes;
pub mod processor_use;
pub mod profile_changes;
pub mod profiles;
pub mod samples;
pub mod sessions;
pub mod stacks;
pub mod startup;
pub mod summary;
pub mod thread_pools;
pub mod thread_waits;
pub mod threads;
pub mod traces;
pub mod usage;

use std::borrow::Cow;

use etl_analysis::behavior::{Distribution, Histogram};
use etl_analysis::{Machine, ProcessIndex};
use etl_format::{Clock, Ticks};

use crate::cell::{Cell, Label};
use crate::column::{Column, Kind};
use crate::row::Columns;

/// Columns that many tables have.
pub(crate) const PID: Column = Column::new("pid", Kind::Int64, "Id of the process").or_null();
pub(crate) const PROCESS: Column = Column::new(
    "process",
    Kind::Word,
    "File name of the image of the process",
)
.or_null()
.heading("process")
.key_of_any_case();
pub(crate) const TID: Column = Column::new("tid", Kind::Int64, "Id of the thread").or_null();
pub(crate) const THREAD: Column = Column::new("thread", Kind::Word, "Name of the thread")
    .or_null()
    .key();
pub(crate) const CPU: Column = Column::new("cpu", Kind::Int32, "Processor");
pub(crate) const CLR: Column =
    Column::new("clr", Kind::Int32, "Number of the runtime in the process");
pub(crate) const SEQUENCE: Column =
    Column::new("sequence", Kind::Int64, "The event, as in `events`");
pub(crate) const TIME: Column = Column::time("time", "Time in UTC");
pub(crate) const FILETIME: Column = Column::new(
    "filetime",
    Kind::Int64,
    "The same, exact: since 1601-01-01 UTC",
)
.unit("100 ns");
pub(crate) const STARTED: Column =
    Column::time("started", "When it started; null if before the trace")
        .or_null()
        .heading("start");
pub(crate) const ENDED: Column = Column::time("ended", "When it ended; null if after the trace")
    .or_null()
    .heading("end");
pub(crate) const LOADED: Column =
    Column::time("loaded", "When it was loaded; null if before the trace")
        .or_null()
        .heading("load");
pub(crate) const UNLOADED: Column =
    Column::time("unloaded", "When it was unloaded; null if after the trace")
        .or_null()
        .heading("unload");

/// Rows of a process.
pub(crate) trait OfProcess {
    /// The process.
    fn process(&self) -> &Label<'_>;
}

/// Adds the id and the name of the process of a row.
pub(crate) fn add_process<R: OfProcess, C: Columns<R>>(columns: &mut C) {
    columns.add(PID, |row| Cell::int(row.process().pid()));
    columns.add(PROCESS, |row| Cell::Label(row.process()));
}

/// The label of a process.
pub fn process_label(machine: &Machine, process: Option<ProcessIndex>) -> Label<'_> {
    let process = process.and_then(|index| machine.process(index));
    match process {
        Some(process) => Label::Process {
            name: process.name(),
            pid: Some(process.pid()),
        },
        None => Label::Process {
            name: "",
            pid: None,
        },
    }
}

/// The sum, the mean and percentiles of durations, in 100 ns. `None` if there are no durations.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Durations {
    /// The sum.
    pub total: Option<u64>,
    /// The mean.
    pub mean: Option<u64>,
    /// Half of them are at most this long.
    pub p50: Option<u64>,
    /// 95 of 100 are at most this long.
    pub p95: Option<u64>,
    /// 99 of 100 are at most this long.
    pub p99: Option<u64>,
    /// The longest.
    pub max: Option<u64>,
}

impl Durations {
    /// The durations of a histogram in 100 ns. `None` as their sum if there are none.
    #[must_use]
    pub fn of_histogram(histogram: &Histogram) -> Self {
        let total = if histogram.count() > 0 {
            Some(histogram.total())
        } else {
            None
        };
        Durations {
            total,
            mean: histogram.mean(),
            p50: histogram.percentile(50),
            p95: histogram.percentile(95),
            p99: histogram.percentile(99),
            max: histogram.max(),
        }
    }

    /// The durations of a distribution in 100 ns.
    #[must_use]
    pub fn of_distribution(distribution: &Distribution) -> Self {
        Durations {
            total: Some(distribution.total()),
            mean: distribution.mean(),
            p50: distribution.percentile(50),
            p95: distribution.percentile(95),
            p99: distribution.percentile(99),
            max: distribution.max(),
        }
    }

    /// The same from ticks of a clock.
    #[must_use]
    pub fn of_ticks(histogram: &Histogram, clock: &Clock) -> Self {
        let mut durations = Durations::of_histogram(histogram);
        durations.total = Some(histogram.total());
        let Durations {
            total,
            mean,
            p50,
            p95,
            p99,
            max,
        } = &mut durations;
        for duration in [total, mean, p50, p95, p99, max].into_iter().flatten() {
            *duration = ticks(clock, *duration);
        }
        durations
    }
}

/// Rows that have durations.
pub(crate) trait HasDurations {
    /// The durations.
    fn durations(&self) -> &Durations;
}

/// Adds the sum, the mean and percentiles of durations.
pub(crate) fn add_durations<R: HasDurations, C: Columns<R>>(columns: &mut C) {
    const TOTAL: Column = Column::micros("total_us", "Sum of the durations")
        .or_null()
        .sum("total_delta_us", "total_before_us", "total_after_us");
    const MEAN: Column = Column::micros("mean_us", "Mean of the durations").or_null();
    const P50: Column =
        Column::micros("p50_us", "Median, at most 1/32 above the exact value").or_null();
    const P95: Column = Column::micros(
        "p95_us",
        "95th percentile, at most 1/32 above the exact value",
    )
    .or_null();
    const P99: Column = Column::micros(
        "p99_us",
        "99th percentile, at most 1/32 above the exact value",
    )
    .or_null();
    const MAX: Column = Column::micros("max_us", "The longest one").or_null();
    columns.add(TOTAL.heading("total ms"), |row| {
        Cell::micros(row.durations().total)
    });
    columns.add(MEAN.heading("mean"), |row| {
        Cell::micros(row.durations().mean)
    });
    columns.add(P50.heading("p50"), |row| Cell::micros(row.durations().p50));
    columns.add(P95.heading("p95"), |row| Cell::micros(row.durations().p95));
    columns.add(P99.heading("p99"), |row| Cell::micros(row.durations().p99));
    columns.add(MAX.heading("max"), |row| Cell::micros(row.durations().max));
}

/// The time between two ticks of a clock, in 100 ns, rounded.
#[must_use]
pub fn duration(clock: &Clock, from: Ticks, to: Ticks) -> u64 {
    u64::try_from(clock.duration(from, to)).unwrap_or(0)
}

/// A number of ticks of a clock in 100 ns, rounded.
#[must_use]
pub fn ticks(clock: &Clock, ticks: u64) -> u64 {
    let ticks = i64::try_from(ticks).unwrap_or(i64::MAX);
    duration(clock, Ticks::new(0), Ticks::new(ticks))
}

/// The file name of a path.
pub(crate) fn file_name(path: &str) -> &str {
    path.rsplit(['\\', '/']).next().unwrap_or_default()
}

/// The name of a number, or the number.
pub(crate) fn name_or_number(name: Option<&'static str>, number: u32) -> Cow<'static, str> {
    match name {
        Some(name) => Cow::Borrowed(name),
        None => Cow::Owned(number.to_string()),
    }
}
