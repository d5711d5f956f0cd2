//! Garbage collections.

use std::borrow::Cow;
use std::collections::BTreeMap;

use etl_analysis::behavior::Distribution;
use etl_analysis::behavior::collections::{Collection, Collections, HeapHistory, SelectedPause};
use etl_analysis::machine::Span;
use etl_analysis::{Machine, ProcessIndex};
use etl_format::TimeRange;

use super::{
    CLR, Durations, HasDurations, OfProcess, add_durations, add_process, duration, name_or_number,
    process_label, ticks,
};
use crate::cell::{Cell, Label};
use crate::column::{Column, Kind};
use crate::comparison::Compared;
use crate::row::{Columns, Row};
use crate::selection::Selection;

/// Ticks of 100 ns in a second.
const SECOND: u128 = 10_000_000;

const NUMBER: Column = Column::count("number", "Number of the collection in its runtime");
const FRAGMENTED: Column = Column::bytes(
    "fragmented_bytes",
    "Free space within the generations afterwards",
);
const GEN0: Column = Column::bytes("gen0_bytes", "Size of generation 0 when it ended");
const GEN1: Column = Column::bytes("gen1_bytes", "Size of generation 1");
const GEN2: Column = Column::bytes("gen2_bytes", "Size of generation 2");
const LARGE: Column = Column::bytes("large_object_bytes", "Size of the heap of large objects");
const PINNED: Column = Column::bytes("pinned_object_bytes", "Size of the heap of pinned objects");

/// A row of `gcs`.
#[derive(Clone, Debug)]
pub struct GcRow<'m> {
    machine: &'m Machine,
    process: Label<'m>,
    gc: &'m Collection,
    reason: Cow<'static, str>,
    kind: Cow<'static, str>,
    allocated: Option<u64>,
}

impl OfProcess for GcRow<'_> {
    fn process(&self) -> &Label<'_> {
        &self.process
    }
}

impl Row for GcRow<'_> {
    const NAME: &'static str = "gcs";
    const ROW: &'static str = "One garbage collection of .NET, in the order in which they started";
    const ABOUT: &'static str = "`analyze gc` prints the same rows.";
    const COMPARED: Option<Compared> = Some(Compared {
        name: "gc.compare.gcs",
        counted: "gcs",
        largest: "pause_us",
    });

    fn columns<C: Columns<Self>>(columns: &mut C) {
        const GENERATION: Column = Column::new(
            "generation",
            Kind::Int32,
            "Oldest generation that it collects",
        )
        .key();
        const REASON: Column =
            Column::new("reason", Kind::Word, "Why, by its name or its number").key();
        const TYPE: Column =
            Column::new("type", Kind::Word, "Its type, by its name or its number").key();
        const ENDED: Column =
            Column::time("ended", "When it ended; null if the trace does not show it");
        const DURATION: Column = Column::micros(
            "duration_us",
            "From its start to its end: a background collection runs while threads do",
        );
        const PAUSES: Column = Column::count(
            "pauses",
            "How often the threads of the process were suspended for it",
        );
        const PAUSE: Column = Column::micros(
            "pause_us",
            "Sum of these suspensions, each from its beginning to the end of the restart",
        )
        .sum("pause_delta_us", "pause_before_us", "pause_after_us");
        const SUSPENDING: Column = Column::micros(
            "suspend_us",
            "The part of these suspensions in which threads still ran, until all were suspended",
        )
        .sum("suspend_delta_us", "suspend_before_us", "suspend_after_us");
        const ALLOCATED: Column = Column::bytes(
            "allocated_bytes",
            "Allocated since the previous collection, by events of allocations to about 100 KB for \
             each heap; else the objects before it minus the objects after the previous one; null \
             if neither is known",
        )
        .sum(
            "allocated_delta_bytes",
            "allocated_before_bytes",
            "allocated_after_bytes",
        );
        const RATE: Column = Column::count(
            "allocated_bytes_per_second",
            "The same, divided by the time since the previous collection started",
        )
        .unit("bytes/s");
        add_process(columns);
        columns.add(CLR, |row| Cell::int(Some(row.gc.clr)));
        columns.add(NUMBER.heading("gc"), |row| Cell::int(Some(row.gc.number)));
        columns.add(GENERATION.heading("gen"), |row| {
            Cell::int(Some(row.gc.generation))
        });
        columns.add(REASON.heading("reason"), |row| Cell::Text(&row.reason));
        columns.add(TYPE.heading("type"), |row| Cell::Text(&row.kind));
        columns.add(
            Column::time("started", "When it started").heading("start"),
            |row| Cell::time(row.machine.clock(), Some(row.gc.started)),
        );
        columns.add(ENDED.or_null(), |row| {
            Cell::time(row.machine.clock(), row.gc.ended)
        });
        columns.add(DURATION.or_null().heading("ms"), |row| {
            Cell::micros(row.duration())
        });
        columns.add(PAUSES, |row| Cell::int(Some(row.gc.pauses)));
        columns.add(PAUSE.or_null().heading("pause ms"), |row| {
            Cell::micros(row.pause())
        });
        columns.add(SUSPENDING.or_null().heading("suspend ms"), |row| {
            Cell::micros(row.suspending())
        });
        columns.add(ALLOCATED.or_null().heading("allocated"), |row| {
            Cell::bits(row.allocated())
        });
        columns.add(RATE.or_null().heading("per second"), |row| {
            Cell::bits(row.allocation_rate())
        });
        GcRow::add_sizes(columns);
    }
}

impl GcRow<'_> {
    /// Adds the sizes of the heap and of its generations.
    fn add_sizes<C: Columns<Self>>(columns: &mut C) {
        const BEFORE: Column =
            Column::bytes("heap_before_bytes", "Size of all generations before it");
        const HEAP: Column = Column::bytes("heap_bytes", "Size of all generations when it ended");
        const PROMOTED: Column = Column::bytes("promoted_bytes", "Bytes that were promoted").sum(
            "promoted_delta_bytes",
            "promoted_before_bytes",
            "promoted_after_bytes",
        );
        const SHARE: Column = Column::percent(
            "fragmented_percent",
            "Share of free space within the generations",
        );
        columns.add(BEFORE.or_null().heading("heap before"), |row| {
            Cell::bits(row.gc.heap_before())
        });
        columns.add(HEAP.or_null().heading("after"), |row| {
            Cell::bits(row.gc.heap_size())
        });
        columns.add(PROMOTED.or_null().heading("promoted"), |row| {
            Cell::bits(row.gc.promoted)
        });
        columns.add(FRAGMENTED.or_null().heading("free inside"), |row| {
            Cell::bits(row.gc.fragmented())
        });
        columns.add(SHARE.or_null(), |row| row.fragmented_share());
        columns.add(GEN0.or_null(), |row| row.size(0));
        columns.add(GEN1.or_null(), |row| row.size(1));
        columns.add(GEN2.or_null(), |row| row.size(2));
        columns.add(LARGE.or_null(), |row| row.size(3));
        columns.add(PINNED.or_null(), |row| row.size(4));
    }
}

impl<'m> GcRow<'m> {
    /// The collection.
    #[must_use]
    pub fn collection(&self) -> &'m Collection {
        self.gc
    }

    /// How long threads were suspended for it, in 100 ns; `None` if that was not recorded.
    #[must_use]
    pub fn pause(&self) -> Option<u64> {
        let paused = self.gc.pause()?;
        Some(ticks(self.machine.clock(), paused))
    }

    /// How long the suspensions took until all threads were suspended, in 100 ns; `None` if that
    /// was not recorded.
    #[must_use]
    pub fn suspending(&self) -> Option<u64> {
        self.gc.pause()?;
        Some(ticks(self.machine.clock(), self.gc.suspending))
    }

    /// Bytes that were allocated since the previous collection; `None` if that is not known: see
    /// [`Collections::allocated`].
    #[must_use]
    pub fn allocated(&self) -> Option<u64> {
        self.allocated
    }

    fn duration(&self) -> Option<u64> {
        let ended = self.gc.ended?;
        Some(duration(self.machine.clock(), self.gc.started, ended))
    }

    fn allocation_rate(&self) -> Option<u64> {
        let allocated = self.allocated.filter(|&bytes| bytes > 0)?;
        let elapsed = ticks(self.machine.clock(), self.gc.since_previous?);
        let rate = (u128::from(allocated) * SECOND).checked_div(elapsed.into())?;
        u64::try_from(rate).ok()
    }

    fn fragmented_share(&self) -> Cell<'static> {
        match (self.gc.fragmented(), self.gc.heap_size()) {
            (Some(free), Some(size)) if size > 0 => Cell::share(free, size),
            _ => Cell::Null,
        }
    }

    /// The size of a generation.
    fn size(&self, generation: usize) -> Cell<'static> {
        Cell::bits(self.gc.sizes().get(generation).copied().flatten())
    }
}

/// A row for each of these collections whose process and starting thread are selected.
///
/// ```no_run
/// use etl_analysis::behavior::collections::Collections;
/// use etl_analysis::{Analysis, Recording};
/// use etl_tables::rows::gcs::gcs;
/// use etl_tables::{Report, ReportTable, Selection};
///
/// let bytes = std::fs::read("trace.etl")?;
/// let mut recording = Recording::open([(bytes.as_slice(), "trace.etl")])?;
/// let mut collections = Collections::new();
/// let machine = Analysis::new().with_names().run(&mut recording, &mut collections)?;
/// let mut report = Report::new("gc");
/// report.tables.push(ReportTable::new("", gcs(&machine, &collections, &Selection::new())));
/// print!("{}", report.csv(None));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[must_use]
pub fn gcs<'m>(
    machine: &'m Machine,
    collections: &'m Collections,
    selection: &Selection,
) -> Vec<GcRow<'m>> {
    let mut rows = Vec::new();
    for gc in collections.selected() {
        if !selection.has_process(Some(gc.process)) || !selection.has_thread(gc.started_by) {
            continue;
        }
        rows.push(GcRow {
            machine,
            process: process_label(machine, Some(gc.process)),
            gc,
            reason: name_or_number(gc.reason.name(), gc.reason.value()),
            kind: name_or_number(gc.kind.name(), gc.kind.value()),
            allocated: collections.allocated(gc),
        });
    }
    rows
}

/// A row of `gc_heaps`.
#[derive(Clone, Debug)]
pub struct GcHeapRow<'m> {
    process: Label<'m>,
    gc: &'m Collection,
    heap: &'m HeapHistory,
}

impl OfProcess for GcHeapRow<'_> {
    fn process(&self) -> &Label<'_> {
        &self.process
    }
}

impl Row for GcHeapRow<'_> {
    const NAME: &'static str = "gc_heaps";
    const ROW: &'static str = "One heap in one garbage collection";
    const ABOUT: &'static str = "`analyze gc` prints the same rows. The server GC has several heaps. \
        .NET Framework since 4.6 and .NET Core log them.";

    fn columns<C: Columns<Self>>(columns: &mut C) {
        const BEFORE: Column = Column::bytes("before_bytes", "Size before the collection");
        const AFTER: Column = Column::bytes("after_bytes", "Size after the collection");
        const SURVIVED: Column = Column::bytes("survived_bytes", "Bytes that survived");
        const GEN0_BEFORE: Column = Column::bytes(
            "gen0_before_bytes",
            "Size of generation 0 before the collection",
        );
        const GEN1_BEFORE: Column =
            Column::bytes("gen1_before_bytes", "Size of generation 1 before");
        const GEN2_BEFORE: Column =
            Column::bytes("gen2_before_bytes", "Size of generation 2 before");
        const LARGE_BEFORE: Column = Column::bytes(
            "large_object_before_bytes",
            "Size of the heap of large objects before",
        );
        const PINNED_BEFORE: Column = Column::bytes(
            "pinned_object_before_bytes",
            "Size of the heap of pinned objects before",
        );
        add_process(columns);
        columns.add(CLR, |row| Cell::int(Some(row.gc.clr)));
        columns.add(NUMBER.heading("gc"), |row| Cell::int(Some(row.gc.number)));
        columns.add(
            Column::count("heap", "Number of the heap").heading("heap"),
            |row| Cell::int(Some(row.heap.heap)),
        );
        columns.add(BEFORE.heading("before"), |row| {
            Cell::bits(Some(row.heap.before.iter().sum()))
        });
        columns.add(AFTER.heading("after"), |row| {
            Cell::bits(Some(row.heap.after.iter().sum()))
        });
        columns.add(SURVIVED.heading("survived"), |row| {
            Cell::bits(Some(row.heap.survived))
        });
        columns.add(FRAGMENTED.heading("free inside"), |row| {
            Cell::bits(Some(row.heap.fragmented))
        });
        columns.add(GEN0_BEFORE, |row| size_in(&row.heap.before, 0));
        columns.add(GEN0.heading("gen 0 after"), |row| {
            size_in(&row.heap.after, 0)
        });
        columns.add(GEN1_BEFORE, |row| size_in(&row.heap.before, 1));
        columns.add(GEN1.heading("gen 1"), |row| size_in(&row.heap.after, 1));
        columns.add(GEN2_BEFORE, |row| size_in(&row.heap.before, 2));
        columns.add(GEN2.heading("gen 2"), |row| size_in(&row.heap.after, 2));
        columns.add(LARGE_BEFORE, |row| size_in(&row.heap.before, 3));
        columns.add(LARGE.heading("large"), |row| size_in(&row.heap.after, 3));
        columns.add(PINNED_BEFORE, |row| size_in(&row.heap.before, 4));
        columns.add(PINNED.heading("pinned"), |row| size_in(&row.heap.after, 4));
    }
}

/// The size of a generation.
fn size_in(sizes: &[u64], generation: usize) -> Cell<'static> {
    Cell::bits(sizes.get(generation).copied())
}

/// A row for each heap of these collections.
#[must_use]
pub fn gc_heaps<'m>(rows: &[GcRow<'m>]) -> Vec<GcHeapRow<'m>> {
    let mut heaps = Vec::new();
    for row in rows {
        for heap in &row.gc.heaps {
            heaps.push(GcHeapRow {
                process: row.process,
                gc: row.gc,
                heap,
            });
        }
    }
    heaps
}

/// A row of the sums of `analyze gc`.
#[derive(Clone, Debug)]
pub struct GcProcessRow<'m> {
    process: Label<'m>,
    collections: u64,
    generations: [u64; 3],
    induced: u64,
    allocated: Option<u64>,
    largest_heap: Option<u64>,
    /// How long it took to suspend all threads, in 100 ns.
    suspending: u64,
    /// Time of the suspensions that is in the selected time, in 100 ns.
    paused: u64,
    /// The selected time, in 100 ns.
    time: u64,
    /// The selected part of the time from the first to the last event of the CLR, in 100 ns.
    managed_time: u64,
    durations: Durations,
}

impl OfProcess for GcProcessRow<'_> {
    fn process(&self) -> &Label<'_> {
        &self.process
    }
}

impl HasDurations for GcProcessRow<'_> {
    fn durations(&self) -> &Durations {
        &self.durations
    }
}

impl Row for GcProcessRow<'_> {
    const NAME: &'static str = "gc.processes";
    const ROW: &'static str = "The garbage collections of one process, and its pauses";
    const COMPARED: Option<Compared> = Some(Compared {
        name: "gc.compare.processes",
        counted: "",
        largest: "total_us",
    });

    fn columns<C: Columns<Self>>(columns: &mut C) {
        const ALLOCATED: Column = Column::bytes(
            "allocated_bytes",
            "Sum of what is known to be allocated before the collections; null if nothing is known",
        )
        .sum(
            "allocated_delta_bytes",
            "allocated_before_bytes",
            "allocated_after_bytes",
        );
        const HEAP: Column = Column::bytes(
            "largest_heap_bytes",
            "Largest size of all generations after a collection",
        );
        const SHARE: Column =
            Column::percent("pause_percent", "Share of the pauses in the selected time");
        const MANAGED_SHARE: Column = Column::percent(
            "managed_life_pause_percent",
            "Share of the pauses in the part of the selected time from the first to the last event \
             of the CLR in the process",
        );
        const SUSPENDING: Column = Column::micros(
            "suspend_us",
            "The part of the pauses in which threads still ran, until all were suspended",
        )
        .sum("suspend_delta_us", "suspend_before_us", "suspend_after_us");
        add_process(columns);
        add_generations(columns);
        columns.add(ALLOCATED.or_null().heading("allocated"), |row| {
            Cell::int(row.allocated)
        });
        columns.add(HEAP.or_null().heading("largest heap"), |row| {
            Cell::int(row.largest_heap)
        });
        columns.add(SHARE.heading("pause %"), |row| {
            Cell::share(row.paused, row.time)
        });
        columns.add(MANAGED_SHARE.heading("of managed %"), |row| {
            Cell::share(row.paused, row.managed_time)
        });
        columns.add(SUSPENDING.heading("suspend ms"), |row| {
            Cell::micros(Some(row.suspending))
        });
        add_durations(columns);
    }
}

/// How many collections there were, by generation and cause.
fn add_generations<'m, C: Columns<GcProcessRow<'m>>>(columns: &mut C) {
    const COLLECTIONS: Column = Column::count("collections", "Garbage collections").sum(
        "collections_delta",
        "collections_before",
        "collections_after",
    );
    const GEN0: Column = Column::count("gen0", "Collections of generation 0").sum(
        "gen0_delta",
        "gen0_before",
        "gen0_after",
    );
    const GEN1: Column = Column::count("gen1", "Collections of generation 1").sum(
        "gen1_delta",
        "gen1_before",
        "gen1_after",
    );
    const GEN2: Column = Column::count("gen2", "Collections of generation 2").sum(
        "gen2_delta",
        "gen2_before",
        "gen2_after",
    );
    const INDUCED: Column = Column::count("induced", "Collections that the program asked for").sum(
        "induced_delta",
        "induced_before",
        "induced_after",
    );
    columns.add(COLLECTIONS.heading("gcs"), |row| {
        Cell::int(Some(row.collections))
    });
    columns.add(GEN0.heading("gen 0"), |row| {
        Cell::int(row.generations.first().copied())
    });
    columns.add(GEN1.heading("gen 1"), |row| {
        Cell::int(row.generations.get(1).copied())
    });
    columns.add(GEN2.heading("gen 2"), |row| {
        Cell::int(row.generations.get(2).copied())
    });
    columns.add(INDUCED.heading("induced"), |row| {
        Cell::int(Some(row.induced))
    });
}

/// The sums of rows by process. `time` is the selected time, in 100 ns.
#[must_use]
pub fn gc_processes<'m>(
    machine: &'m Machine,
    collections: &'m Collections,
    rows: &[GcRow<'m>],
    selection: &Selection,
    time: u64,
) -> Vec<GcProcessRow<'m>> {
    let clock = machine.clock();
    let mut by_process: BTreeMap<ProcessIndex, Vec<&GcRow<'m>>> = BTreeMap::new();
    for row in rows {
        by_process.entry(row.gc.process).or_default().push(row);
    }
    // Of a pause that crosses the ends of the selected time, only the part inside is a share of it.
    let mut paused: BTreeMap<ProcessIndex, u64> = BTreeMap::new();
    for SelectedPause {
        pause, ticks: time, ..
    } in collections.selected_pauses()
    {
        let gc = pause
            .collection
            .and_then(|index| collections.list().get(index));
        if let Some(gc) = gc
            && selection.has_thread(gc.started_by)
        {
            *paused.entry(pause.process).or_default() += time;
        }
    }
    let mut sums = Vec::new();
    for (process, rows) in by_process {
        let pauses = Distribution::new(rows.iter().filter_map(|row| row.pause()));
        let mut sum = GcProcessRow {
            process: process_label(machine, Some(process)),
            collections: rows.len() as u64,
            generations: [0; 3],
            induced: 0,
            allocated: None,
            largest_heap: None,
            paused: ticks(clock, paused.get(&process).copied().unwrap_or(0)),
            time,
            managed_time: managed_time(machine, process, selection, time),
            suspending: 0,
            durations: Durations::of_distribution(&pauses),
        };
        for row in rows {
            if let Some(count) = sum.generations.get_mut(row.gc.generation as usize) {
                *count += 1;
            }
            let reason = row.gc.reason.name().unwrap_or_default();
            sum.induced += u64::from(reason.starts_with("Induced"));
            if let Some(allocated) = row.allocated() {
                sum.allocated = Some(sum.allocated.unwrap_or(0) + allocated);
            }
            sum.suspending += row.suspending().unwrap_or(0);
            sum.largest_heap = sum.largest_heap.max(row.gc.heap_size());
        }
        sums.push(sum);
    }
    sums
}

/// The selected part of the time from the first to the last event of the CLR in a process, in
/// 100 ns.
fn managed_time(machine: &Machine, process: ProcessIndex, selection: &Selection, time: u64) -> u64 {
    let span = machine
        .process(process)
        .and_then(|process| process.clr_span());
    let Some(Span { first, last }) = span else {
        return time;
    };
    let life = TimeRange::new(Some(first), Some(last));
    let selected = selection.range().intersection(life);
    match (selected.from, selected.to) {
        (Some(from), Some(to)) => duration(machine.clock(), from, to),
        _ => time,
    }
}
