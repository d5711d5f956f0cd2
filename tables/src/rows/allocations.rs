//! Allocations on the garbage collected heap: types, large objects, pinned objects, survivors.

use std::cmp::Reverse;
use std::collections::BTreeMap;

use etl_analysis::Machine;
use etl_analysis::behavior::allocations::{
    AllocationKey, AllocationSource, AllocationTotal, Allocations, LargeObject, SecondKey,
    SecondSum, Survivors,
};
use etl_format::FileTime;

use super::{OfProcess, TID, TIME, add_process, process_label};
use crate::cell::{Cell, Label};
use crate::column::{Column, Kind};
use crate::comparison::Compared;
use crate::row::{Columns, Row};
use crate::selection::Selection;

const TYPE: Column = Column::new(
    "type",
    Kind::Word,
    "Type of the objects; its id if no event names it, null in events of .NET Framework before 4.5",
)
.or_null()
.key();
const EVENTS: Column = Column::count("events", "Events that state them").sum(
    "events_delta",
    "events_before",
    "events_after",
);

/// 100 ns of a second.
const SECOND: i64 = 10_000_000;

/// A row of `allocations`.
#[derive(Clone, Debug)]
pub struct AllocationRow<'m> {
    process: Label<'m>,
    key: AllocationKey,
    total: AllocationTotal,
    object: String,
    /// The bytes of the rows of the same kind of events.
    all: u64,
}

impl OfProcess for AllocationRow<'_> {
    fn process(&self) -> &Label<'_> {
        &self.process
    }
}

impl AllocationRow<'_> {
    /// The bytes that the events state.
    #[must_use]
    pub fn bytes(&self) -> u64 {
        self.total.bytes
    }

    /// The key of the sum.
    #[must_use]
    pub fn key(&self) -> &AllocationKey {
        &self.key
    }
}

impl Row for AllocationRow<'_> {
    const NAME: &'static str = "allocations";
    const ROW: &'static str = "What a process allocated of one type, the most bytes first";
    const ABOUT: &'static str = "`analyze allocations` prints the same rows.";
    const COMPARED: Option<Compared> = Some(Compared {
        name: "allocations.compare.allocations",
        counted: "",
        largest: "bytes",
    });

    fn columns<C: Columns<Self>>(columns: &mut C) {
        const BYTES: Column = Column::bytes(
            "bytes",
            "Bytes that the events state: of ticks the bytes since the tick before, of the heap",
        )
        .sum("delta_bytes", "before_bytes", "after_bytes");
        const SHARE: Column = Column::percent(
            "bytes_percent",
            "Their share in the rows of the same kind of events",
        );
        const HEAP: Column =
            Column::new("heap_kind", Kind::Word, "`small`, `large` or `pinned`").key();
        const SOURCE: Column = Column::new(
            "source",
            Kind::Word,
            "`tick` for allocation ticks, `sample` for samples of objects, `random` for objects that \
             .NET 10 samples at random: their bytes are estimates",
        )
        .key();
        const OBJECTS: Column =
            Column::count("objects", "Objects that samples state; null for ticks")
                .or_null()
                .sum("objects_delta", "objects_before", "objects_after");
        add_process(columns);
        columns.add(BYTES.heading("bytes"), |row| {
            Cell::int(Some(row.total.bytes))
        });
        columns.add(SHARE.heading("%"), |row| {
            Cell::share(row.total.bytes, row.all)
        });
        columns.add(EVENTS.heading("events"), |row| {
            Cell::int(Some(row.total.events))
        });
        columns.add(OBJECTS.heading("objects"), |row| {
            Cell::int(Some(row.total.objects).filter(|&objects| objects > 0))
        });
        columns.add(SOURCE.heading("by"), |row| {
            Cell::Text(row.key.source.name())
        });
        columns.add(HEAP.or_null().heading("heap"), |row| {
            Cell::text(row.key.heap.name())
        });
        columns.add(TYPE.heading("type"), |row| Cell::text(&row.object));
    }
}

/// A row for what each selected process allocated of each type, the most bytes first.
#[must_use]
pub fn allocations<'m>(
    machine: &'m Machine,
    allocations: &Allocations,
    selection: &Selection,
) -> Vec<AllocationRow<'m>> {
    let mut rows = Vec::new();
    for (&key, &total) in allocations.by_type() {
        if selection.has_process(key.process) {
            rows.push(AllocationRow {
                process: process_label(machine, key.process),
                key,
                total,
                object: allocations.type_name(key.object),
                all: 0,
            });
        }
    }
    let mut sums: BTreeMap<AllocationSource, u64> = BTreeMap::new();
    for row in &rows {
        *sums.entry(row.key.source).or_default() += row.total.bytes;
    }
    for row in &mut rows {
        row.all = sums.get(&row.key.source).copied().unwrap_or(0);
    }
    rows.sort_by_key(|row| Reverse(row.total.bytes));
    rows
}

/// A row of `large_objects`.
#[derive(Clone, Debug)]
pub struct LargeObjectRow<'m> {
    machine: &'m Machine,
    process: Label<'m>,
    large: LargeObject,
    object: String,
}

impl OfProcess for LargeObjectRow<'_> {
    fn process(&self) -> &Label<'_> {
        &self.process
    }
}

impl Row for LargeObjectRow<'_> {
    const NAME: &'static str = "large_objects";
    const ROW: &'static str = "An allocation tick of the heap of large objects, in time order";
    const ABOUT: &'static str = "`analyze allocations` prints the same rows.";

    fn columns<C: Columns<Self>>(columns: &mut C) {
        const SIZE: Column =
            Column::bytes("size_bytes", "Size of the object; null before .NET 5").or_null();
        const BYTES: Column = Column::bytes(
            "bytes",
            "Bytes of large objects since the tick before, with this object",
        );
        add_process(columns);
        columns.add(TIME.heading("time"), |row| {
            Cell::time(row.machine.clock(), Some(row.large.time))
        });
        columns.add(TID.heading("tid"), |row| Cell::int(row.large.tid));
        columns.add(BYTES.heading("bytes"), |row| {
            Cell::int(Some(row.large.bytes))
        });
        columns.add(SIZE.heading("object"), |row| Cell::int(row.large.size));
        columns.add(TYPE.heading("type"), |row| Cell::text(&row.object));
    }
}

/// A row for each selected large object, in time order.
#[must_use]
pub fn large_objects<'m>(
    machine: &'m Machine,
    allocations: &Allocations,
    selection: &Selection,
) -> Vec<LargeObjectRow<'m>> {
    let mut rows = Vec::new();
    for &large in allocations.large_objects() {
        if selection.has_process(large.process) && selection.has_thread(large.tid) {
            rows.push(LargeObjectRow {
                machine,
                process: process_label(machine, large.process),
                large,
                object: allocations.type_name(large.object),
            });
        }
    }
    rows
}

/// A row of the sums of `analyze allocations` over time.
#[derive(Clone, Debug)]
pub struct AllocationSecondRow<'m> {
    machine: &'m Machine,
    process: Label<'m>,
    key: SecondKey,
    sum: SecondSum,
}

impl OfProcess for AllocationSecondRow<'_> {
    fn process(&self) -> &Label<'_> {
        &self.process
    }
}

impl Row for AllocationSecondRow<'_> {
    const NAME: &'static str = "allocations.seconds";
    const ROW: &'static str = "What a process allocated in a second of the recording";

    fn columns<C: Columns<Self>>(columns: &mut C) {
        const FROM: Column = Column::time("interval_start", "The start of the second");
        const BYTES: Column = Column::bytes("bytes", "Bytes that allocation ticks state");
        const LARGE: Column = Column::bytes("large_bytes", "Of these, bytes of large objects");
        const SAMPLED: Column =
            Column::bytes("sampled_bytes", "Bytes that samples of objects state");
        add_process(columns);
        columns.add(FROM.heading("from"), |row| row.from());
        columns.add(BYTES.heading("bytes"), |row| {
            Cell::int(Some(row.sum.ticks.bytes))
        });
        columns.add(LARGE.heading("large"), |row| {
            Cell::int(Some(row.sum.large.bytes))
        });
        columns.add(SAMPLED.heading("sampled"), |row| {
            Cell::int(Some(row.sum.sampled.bytes))
        });
        columns.add(EVENTS.heading("events"), |row| {
            Cell::int(Some(row.sum.ticks.events + row.sum.sampled.events))
        });
    }
}

impl AllocationSecondRow<'_> {
    fn from(&self) -> Cell<'static> {
        let clock = self.machine.clock();
        let since = i64::try_from(self.key.second).unwrap_or(i64::MAX);
        let since = since.saturating_mul(SECOND);
        Cell::Time(FileTime::new(clock.start_time.get().saturating_add(since)))
    }
}

/// A row for each second of each selected process in which it allocated, in time order.
#[must_use]
pub fn allocation_seconds<'m>(
    machine: &'m Machine,
    allocations: &Allocations,
    selection: &Selection,
) -> Vec<AllocationSecondRow<'m>> {
    let mut rows = Vec::new();
    for (&key, &sum) in allocations.by_second() {
        if selection.has_process(key.process) {
            rows.push(AllocationSecondRow {
                machine,
                process: process_label(machine, key.process),
                key,
                sum,
            });
        }
    }
    rows
}

/// A row of the pinned objects of `analyze allocations`.
#[derive(Clone, Debug)]
pub struct PinnedRow<'m> {
    process: Label<'m>,
    total: AllocationTotal,
    object: String,
}

impl OfProcess for PinnedRow<'_> {
    fn process(&self) -> &Label<'_> {
        &self.process
    }
}

impl Row for PinnedRow<'_> {
    const NAME: &'static str = "allocations.pinned";
    const ROW: &'static str = "The objects of one type that collections found pinned";
    const COMPARED: Option<Compared> = Some(Compared {
        name: "allocations.compare.pinned",
        counted: "",
        largest: "bytes",
    });

    fn columns<C: Columns<Self>>(columns: &mut C) {
        const COUNT: Column = Column::count(
            "count",
            "How often a collection found one; an object counts in each collection",
        )
        .sum("count_delta", "count_before", "count_after");
        const BYTES: Column = Column::bytes("bytes", "Sum of their sizes").sum(
            "delta_bytes",
            "before_bytes",
            "after_bytes",
        );
        add_process(columns);
        columns.add(COUNT.heading("count"), |row| {
            Cell::int(Some(row.total.events))
        });
        columns.add(BYTES.heading("bytes"), |row| {
            Cell::int(Some(row.total.bytes))
        });
        columns.add(TYPE.heading("type"), |row| Cell::text(&row.object));
    }
}

/// A row for the pinned objects of each selected process and type, the most bytes first.
#[must_use]
pub fn pinned_objects<'m>(
    machine: &'m Machine,
    allocations: &Allocations,
    selection: &Selection,
) -> Vec<PinnedRow<'m>> {
    let mut rows = Vec::new();
    for (key, &total) in allocations.pinned() {
        if selection.has_process(key.process) {
            rows.push(PinnedRow {
                process: process_label(machine, key.process),
                total,
                object: allocations.type_name(key.object),
            });
        }
    }
    rows.sort_by_key(|row| Reverse(row.total.bytes));
    rows
}

/// A row of the survivors of `analyze allocations`.
#[derive(Clone, Debug)]
pub struct SurvivorRow<'m> {
    process: Label<'m>,
    survivors: Survivors,
}

impl OfProcess for SurvivorRow<'_> {
    fn process(&self) -> &Label<'_> {
        &self.process
    }
}

impl Row for SurvivorRow<'_> {
    const NAME: &'static str = "allocations.survivors";
    const ROW: &'static str = "The objects that survived collections of a process";
    const COMPARED: Option<Compared> = Some(Compared {
        name: "allocations.compare.survivors",
        counted: "",
        largest: "bytes",
    });

    fn columns<C: Columns<Self>>(columns: &mut C) {
        const RANGES: Column = Column::count(
            "ranges",
            "Ranges of objects that follow each other in memory",
        )
        .sum("ranges_delta", "ranges_before", "ranges_after");
        const BYTES: Column = Column::bytes(
            "bytes",
            "Their bytes; an object counts in each collection that it survives",
        )
        .sum("delta_bytes", "before_bytes", "after_bytes");
        add_process(columns);
        columns.add(RANGES.heading("ranges"), |row| {
            Cell::int(Some(row.survivors.ranges))
        });
        columns.add(BYTES.heading("bytes"), |row| {
            Cell::int(Some(row.survivors.bytes))
        });
    }
}

/// A row for the survivors of each selected process.
#[must_use]
pub fn survivors<'m>(
    machine: &'m Machine,
    allocations: &Allocations,
    selection: &Selection,
) -> Vec<SurvivorRow<'m>> {
    let mut rows = Vec::new();
    for (&process, &survivors) in allocations.survivors() {
        if selection.has_process(process) {
            rows.push(SurvivorRow {
                process: process_label(machine, process),
                survivors,
            });
        }
    }
    rows
}
