//! Garbage collections: number, generation, reason, pauses, and sizes of the heap.
//!
//! Needs the events of the CLR's runtime provider with the keyword GC (0x1) at level 4; at level 5
//! there are allocations as well. Without them, the histories of heaps (.NET Framework 4.6, .NET
//! Core and later) tell what was allocated: the objects before a collection minus the objects after
//! the previous one.
//!
//! ```no_run
//! use etl_analysis::behavior::collections::Collections;
//! use etl_analysis::{Analysis, Recording};
//!
//! let bytes = std::fs::read("trace.etl")?;
//! let mut recording = Recording::open([(bytes.as_slice(), "trace.etl")])?;
//! let mut collections = Collections::new();
//! let machine = Analysis::new().run(&mut recording, &mut collections)?;
//! for gc in collections.list() {
//!     println!("GC {} of generation {}, {}, {}", gc.number, gc.generation, gc.kind, gc.reason);
//! }
//! # drop(machine);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

use std::collections::BTreeMap;

use etl_format::constants::PointerSize;
use etl_format::cursor::Bytes;
use etl_format::read::Record;
use etl_format::{ThreadId, Ticks, TimeRange};
use etl_schema::clr::collection::{
    ALLOCATED, BACKGROUND, END, HEAP_HISTORY, HEAP_STATS, RESTARTED, START, SUSPEND, SUSPENDED,
};
use etl_schema::providers::CLR_RUNTIME;
use etl_schema::views::FieldReader;

use super::{NamedValue, runtime_event, ticks_since, ticks_within};
use crate::keys::{ClrKey, ProcessIndex};
use crate::loss::Loss;
use crate::machine::Machine;
use crate::observe::{EventRef, Joins, Observer};
use crate::{OpenOperations, Scope};

/// Reasons of suspensions: for a collection, and to prepare one.
const FOR_COLLECTION: [u64; 2] = [1, 6];

/// Generations with a size of their own: 0, 1, 2, large objects, pinned objects.
pub const GENERATIONS: usize = 5;

/// The generations in which programs allocate: 0, large objects, pinned objects.
const ALLOCATING: [usize; 3] = [0, 3, 4];

/// Bytes of a generation in the history of a heap: before and after, and what survived.
const SIZE_BEFORE: usize = 0;
const FREE_LIST_BEFORE: usize = 1;
const FREE_OBJECTS_BEFORE: usize = 2;
const SIZE_AFTER: usize = 3;
const FREE_LIST_AFTER: usize = 4;
const FREE_OBJECTS_AFTER: usize = 5;
const PINNED_SURVIVORS: usize = 7;
const OTHER_SURVIVORS: usize = 8;
/// Numbers of a generation in the history of a heap.
const NUMBERS: usize = 10;

/// The first version of the history of a heap that lists generations in this way.
const FIRST_HISTORY: u8 = 3;

/// Collections of a CLR that are expected to end. It has two at most: one in the background, and
/// one that interrupts it.
const MAX_OPEN: usize = 1 << 6;

/// Heaps of a collection that are kept; the runtime has at most 1024.
const MAX_HEAPS: usize = 1 << 10;

/// What a collection did to one heap. A server's CLR has a heap for each processor.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct HeapHistory {
    /// Number of the heap.
    pub heap: u32,
    /// Bytes of each generation before the collection.
    pub before: [u64; GENERATIONS],
    /// Bytes of each generation after it.
    pub after: [u64; GENERATIONS],
    /// Bytes of the objects in each generation before the collection: without free space.
    pub objects_before: [u64; GENERATIONS],
    /// Bytes of the objects in each generation after it.
    pub objects_after: [u64; GENERATIONS],
    /// Bytes of free space within the generations after it.
    pub fragmented: u64,
    /// Bytes that survived.
    pub survived: u64,
}

impl HeapHistory {
    /// Sets the sizes of a generation from its numbers in the event.
    fn set_generation(&mut self, generation: usize, numbers: &[u64; NUMBERS]) {
        let free_before = numbers[FREE_LIST_BEFORE].saturating_add(numbers[FREE_OBJECTS_BEFORE]);
        let free = numbers[FREE_LIST_AFTER].saturating_add(numbers[FREE_OBJECTS_AFTER]);
        let survived = numbers[PINNED_SURVIVORS].saturating_add(numbers[OTHER_SURVIVORS]);
        if let Some(before) = self.before.get_mut(generation) {
            *before = numbers[SIZE_BEFORE];
        }
        if let Some(after) = self.after.get_mut(generation) {
            *after = numbers[SIZE_AFTER];
        }
        if let Some(objects) = self.objects_before.get_mut(generation) {
            *objects = numbers[SIZE_BEFORE].saturating_sub(free_before);
        }
        if let Some(objects) = self.objects_after.get_mut(generation) {
            *objects = numbers[SIZE_AFTER].saturating_sub(free);
        }
        self.fragmented = self.fragmented.saturating_add(free);
        self.survived = self.survived.saturating_add(survived);
    }
}

/// A collection.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Collection {
    /// The process.
    pub process: ProcessIndex,
    /// The CLR of the process.
    pub clr: u16,
    /// Its number within its CLR.
    pub number: u32,
    /// The oldest generation that it collects.
    pub generation: u32,
    /// Why it was started: `AllocSmall`, `Induced`.
    pub reason: NamedValue,
    /// Its type: `NonConcurrentGC`, `BackgroundGC`.
    pub kind: NamedValue,
    /// When it started, in ticks.
    pub started: Ticks,
    /// When it ended; `None` if the recording does not show it.
    pub ended: Option<Ticks>,
    /// The thread that collected: the one that reports the end, or the start if there is no end.
    pub tid: Option<ThreadId>,
    /// The thread that started it.
    pub started_by: Option<ThreadId>,
    /// How often the threads of the process were suspended for it.
    pub pauses: u32,
    /// For how many ticks: from the beginning of each suspension to the end of the restart.
    pub paused: u64,
    /// For how many ticks of these not all threads were suspended yet.
    pub suspending: u64,
    /// Whether it started in the suspension of another collection.
    shares_pause: bool,
    /// Bytes that were promoted.
    pub promoted: Option<u64>,
    /// Bytes of each generation when it ended.
    pub heap: Option<[u64; GENERATIONS]>,
    /// Bytes that were allocated since the collection before, to about 100 KB for each heap; 0
    /// if allocation events were not recorded.
    pub allocated: u64,
    /// The same by the histories of heaps; see [`Collections::allocated`].
    allocated_by_heaps: Option<i64>,
    /// Index of the collection of its CLR that started before it.
    previous: Option<usize>,
    /// Ticks since the collection before started, in which this was allocated.
    pub since_previous: Option<u64>,
    /// Whether the runtime reports a heap of pinned objects: .NET 5 and later.
    has_pinned: bool,
    /// What it did to each heap, where the runtime reports it: .NET Framework 4.6, .NET Core and
    /// later.
    pub heaps: Vec<HeapHistory>,
}

impl Collection {
    /// The ticks for which threads were suspended for it; `None` if no suspension was recorded in
    /// which it started.
    #[must_use]
    pub fn pause(&self) -> Option<u64> {
        (self.pauses > 0 || self.shares_pause).then_some(self.paused)
    }

    /// Bytes of all generations of all heaps before it.
    #[must_use]
    pub fn heap_before(&self) -> Option<u64> {
        self.sum(|heap| sum(&heap.before))
    }

    /// Bytes of free space within the generations of all heaps after it.
    #[must_use]
    pub fn fragmented(&self) -> Option<u64> {
        self.sum(|heap| heap.fragmented)
    }

    fn sum(&self, of: impl Fn(&HeapHistory) -> u64) -> Option<u64> {
        let sum = self
            .heaps
            .iter()
            .fold(0, |sum: u64, heap| sum.saturating_add(of(heap)));
        (!self.heaps.is_empty()).then_some(sum)
    }

    /// Bytes of each generation when it ended; `None` if the runtime does not report the
    /// generation.
    #[must_use]
    pub fn sizes(&self) -> [Option<u64>; GENERATIONS] {
        let mut sizes = self.heap.map_or([None; GENERATIONS], |heap| heap.map(Some));
        if !self.has_pinned
            && let Some(pinned) = sizes.last_mut()
        {
            *pinned = None;
        }
        sizes
    }

    /// Whether it runs beside the process.
    #[must_use]
    pub fn is_background(&self) -> bool {
        self.kind.value() == BACKGROUND
    }

    /// Bytes of all generations when it ended.
    #[must_use]
    pub fn heap_size(&self) -> Option<u64> {
        self.heap.as_ref().map(sum)
    }
}

/// Bytes of all generations.
fn sum(sizes: &[u64; GENERATIONS]) -> u64 {
    sizes.iter().fold(0, |sum, &size| sum.saturating_add(size))
}

/// A suspension of the threads of a process.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Pause {
    /// The process.
    pub process: ProcessIndex,
    /// The CLR of the process.
    pub clr: u16,
    /// The thread that suspended the others.
    pub tid: Option<ThreadId>,
    /// When the suspension began, in ticks.
    pub since: Ticks,
    /// When the restart ended.
    pub until: Ticks,
    /// Why threads were suspended: `SuspendForGC`.
    pub reason: NamedValue,
    /// Index of its collection in [`Collections::list`]; `None` if it was for something else.
    pub collection: Option<usize>,
}

/// A suspension that is at least partly in the selected time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct SelectedPause<'c> {
    /// The suspension.
    pub pause: &'c Pause,
    /// Its ticks in the selected time.
    pub ticks: u64,
}

/// Suspensions by a CLR for something else than a collection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct OtherPauses {
    /// The CLR.
    pub clr: ClrKey,
    /// How many.
    pub count: u64,
    /// For how many ticks.
    pub paused: u64,
}

/// A suspension that has not ended.
#[derive(Clone, Copy, Debug)]
struct Suspended {
    since: Ticks,
    /// When all threads were suspended.
    complete: Option<Ticks>,
    reason: u64,
    /// Index of the first collection that started in it.
    started: Option<usize>,
}

/// A CLR at work.
#[derive(Clone, Debug, Default)]
struct Collector {
    /// Indices of collections that have not ended.
    open: Vec<usize>,
    /// Index of the collection that started last.
    latest: Option<usize>,
    allocated: u64,
    /// Whether it logged allocations.
    has_allocations: bool,
    /// Suspensions for something else than a collection, and their ticks.
    other_pauses: u64,
    other_paused: u64,
    /// The session of its events.
    session: usize,
}

/// Collects the collections of a recording.
#[derive(Clone, Debug)]
pub struct Collections {
    list: Vec<Collection>,
    pauses: Vec<Pause>,
    collectors: BTreeMap<ClrKey, Collector>,
    /// CLRs whose threads are suspended.
    suspended: OpenOperations<ClrKey, Suspended>,
    /// Index of the collection that ended last, to which what is stated after it belongs.
    ended: OpenOperations<ClrKey, usize>,
    given_up: u64,
    range: TimeRange,
    start: FieldReader<5>,
    end: FieldReader<2>,
    restarted: FieldReader<1>,
    suspension_end: FieldReader<1>,
    suspend: FieldReader<2>,
    stats: FieldReader<11>,
    allocation: FieldReader<3>,
    history: FieldReader<3>,
}

impl Default for Collections {
    fn default() -> Self {
        Collections::new()
    }
}

impl Collections {
    /// Nothing is collected yet.
    #[must_use]
    pub fn new() -> Self {
        const CLR: &str = "ClrInstanceID";
        Collections {
            list: Vec::new(),
            pauses: Vec::new(),
            collectors: BTreeMap::new(),
            suspended: OpenOperations::default(),
            ended: OpenOperations::default(),
            given_up: 0,
            range: TimeRange::default(),
            start: FieldReader::of_event(
                CLR_RUNTIME,
                START,
                [CLR, "Count", "Depth", "Reason", "Type"],
            ),
            end: FieldReader::of_event(CLR_RUNTIME, END, [CLR, "Count"]),
            restarted: FieldReader::of_event(CLR_RUNTIME, RESTARTED, [CLR]),
            suspension_end: FieldReader::of_event(CLR_RUNTIME, SUSPENDED, [CLR]),
            suspend: FieldReader::of_event(CLR_RUNTIME, SUSPEND, [CLR, "Reason"]),
            stats: FieldReader::of_event(
                CLR_RUNTIME,
                HEAP_STATS,
                [
                    CLR,
                    "GenerationSize0",
                    "GenerationSize1",
                    "GenerationSize2",
                    "GenerationSize3",
                    "GenerationSize4",
                    "TotalPromotedSize0",
                    "TotalPromotedSize1",
                    "TotalPromotedSize2",
                    "TotalPromotedSize3",
                    "TotalPromotedSize4",
                ],
            ),
            allocation: FieldReader::of_event(
                CLR_RUNTIME,
                ALLOCATED,
                [CLR, "AllocationAmount64", "AllocationAmount"],
            ),
            history: FieldReader::of_event(CLR_RUNTIME, HEAP_HISTORY, [CLR, "HeapIndex", "Count"]),
        }
    }

    /// The collections, in the order in which they started.
    #[must_use]
    pub fn list(&self) -> &[Collection] {
        &self.list
    }

    /// Selects the collections that started in a range of the recording's clock, as a whole. Of a
    /// suspension for something else, the part in the range is used.
    #[must_use]
    pub fn within(self, range: TimeRange) -> Self {
        Collections { range, ..self }
    }

    /// The selected collections.
    pub fn selected(&self) -> impl Iterator<Item = &Collection> {
        self.list
            .iter()
            .filter(|collection| self.range.contains(collection.started))
    }

    /// Bytes that were allocated since the collection before: by events of allocations, to about
    /// 100 KB for each heap, or else by the histories of heaps, as PerfView counts them. `None` if
    /// its CLR logged neither. By histories the first collection has none, nor has the first one
    /// during a background collection; a background collection has only large and pinned objects.
    #[must_use]
    pub fn allocated(&self, collection: &Collection) -> Option<u64> {
        let clr = ClrKey::new(collection.process, collection.clr);
        if self.collectors.get(&clr)?.has_allocations {
            return Some(collection.allocated);
        }
        let bytes = collection.allocated_by_heaps?;
        Some(u64::try_from(bytes).unwrap_or(0))
    }

    /// Suspensions that are not counted, as records are missing in which they may have ended.
    #[must_use]
    pub fn given_up(&self) -> u64 {
        self.given_up
    }

    /// The suspensions of threads that are at least partly in the selected time.
    pub fn selected_pauses(&self) -> impl Iterator<Item = SelectedPause<'_>> {
        self.pauses.iter().filter_map(|pause| {
            let ticks = ticks_within(self.range, pause.since, pause.until)?;
            Some(SelectedPause { pause, ticks })
        })
    }

    /// The suspensions of threads, in the order in which they ended.
    #[must_use]
    pub fn pauses(&self) -> &[Pause] {
        &self.pauses
    }

    /// Suspensions for something else than a collection, by CLR.
    pub fn other_pauses(&self) -> impl Iterator<Item = OtherPauses> + '_ {
        let pauses = self.collectors.iter().map(|(&clr, collector)| OtherPauses {
            clr,
            count: collector.other_pauses,
            paused: collector.other_paused,
        });
        pauses.filter(|pauses| pauses.count > 0)
    }

    /// The CLR starts a collection or a suspension in a session, which becomes its session.
    fn enter(&mut self, key: ClrKey, session: usize) {
        let collector = self.collectors.entry(key).or_default();
        if std::mem::replace(&mut collector.session, session) != session {
            self.suspended.change_scope(key, Scope::session(session));
            self.ended.change_scope(key, Scope::session(session));
        }
    }

    fn start(&mut self, process: ProcessIndex, record: &Record<'_>, event: &EventRef) {
        let Some(fields) = self.start.read(record) else {
            return;
        };
        let [clr, number, generation, reason, kind] =
            std::array::from_fn(|index| fields.uint(index).unwrap_or(0) as u32);
        let clr = clr as u16;
        let collector = self
            .collectors
            .entry(ClrKey::new(process, clr))
            .or_default();
        // Some runtimes report a start in two versions of the event.
        let latest = collector.latest.and_then(|index| self.list.get(index));
        if latest.is_some_and(|latest| latest.number == number && latest.ended.is_none()) {
            return;
        }
        let index = self.list.len();
        let since = latest.map(|latest| event.time.saturating_since(latest.started));
        let previous = collector.latest;
        self.enter(ClrKey::new(process, clr), event.session);
        let suspended = self.suspended.get_mut(&ClrKey::new(process, clr));
        let shares_pause = suspended.as_ref().is_some_and(|of| of.started.is_some());
        if let Some(suspended) = suspended {
            suspended.started.get_or_insert(index);
        }
        let collector = self
            .collectors
            .entry(ClrKey::new(process, clr))
            .or_default();
        collector.latest = Some(index);
        self.list.push(Collection {
            process,
            clr,
            number,
            generation,
            reason: NamedValue::new(reason, self.start.value_name(3, reason.into())),
            kind: NamedValue::new(kind, self.start.value_name(4, kind.into())),
            started: event.time,
            tid: event.tid,
            started_by: event.tid,
            allocated: std::mem::take(&mut collector.allocated),
            shares_pause,
            previous,
            since_previous: since.and_then(|since| u64::try_from(since).ok()),
            ..Collection::default()
        });
        if collector.open.len() >= MAX_OPEN {
            collector.open.remove(0);
        }
        collector.open.push(index);
    }

    fn end(&mut self, process: ProcessIndex, record: &Record<'_>, event: &EventRef) {
        let Some(fields) = self.end.read(record) else {
            return;
        };
        let clr = fields.uint(0).unwrap_or(0) as u16;
        let Some(collector) = self.collectors.get_mut(&ClrKey::new(process, clr)) else {
            return;
        };
        let number = fields.uint(1);
        let list = &mut self.list;
        let at = collector.open.iter().rposition(|index| {
            let collection = list.get(*index);
            collection.is_some_and(|of| Some(u64::from(of.number)) == number)
        });
        let Some(at) = at else {
            return;
        };
        let index = collector.open.remove(at);
        self.ended.begin(
            ClrKey::new(process, clr),
            Scope::session(collector.session),
            index,
        );
        if let Some(collection) = list.get_mut(index) {
            collection.ended = Some(event.time);
            collection.tid = event.tid.or(collection.tid);
        }
    }

    /// Threads run again: the pause belongs to the collection that started in it, or to one that
    /// runs beside the process.
    fn restarted(&mut self, process: ProcessIndex, record: &Record<'_>, event: &EventRef) {
        let clr = self
            .restarted
            .read(record)
            .and_then(|fields| fields.uint(0));
        let clr = clr.unwrap_or(0) as u16;
        let Some(collector) = self.collectors.get_mut(&ClrKey::new(process, clr)) else {
            return;
        };
        let suspended = self.suspended.end(&ClrKey::new(process, clr));
        let Some(Suspended {
            since,
            complete,
            reason,
            started,
        }) = suspended
        else {
            return;
        };
        let paused = ticks_since(since, event.time);
        let list = &mut self.list;
        let mut owner = started;
        if owner.is_none() && FOR_COLLECTION.contains(&reason) {
            let mut open = collector.open.iter().rev();
            owner = open
                .find(|index| list.get(**index).is_some_and(Collection::is_background))
                .copied();
        }
        self.pauses.push(Pause {
            process,
            clr,
            tid: event.tid,
            since,
            until: event.time,
            reason: NamedValue::new(reason as u32, self.suspend.value_name(1, reason)),
            collection: owner,
        });
        match owner.and_then(|index| list.get_mut(index)) {
            Some(collection) => {
                collection.pauses += 1;
                collection.paused += paused;
                if let Some(complete) = complete {
                    collection.suspending += ticks_since(since, complete);
                }
            }
            None => {
                if let Some(paused) = ticks_within(self.range, since, event.time) {
                    collector.other_pauses += 1;
                    collector.other_paused += paused;
                }
            }
        }
    }

    /// All threads are suspended.
    fn suspended(&mut self, process: ProcessIndex, record: &Record<'_>, event: &EventRef) {
        let fields = self.suspension_end.read(record);
        let clr = fields.and_then(|fields| fields.uint(0)).unwrap_or(0) as u16;
        if let Some(suspended) = self.suspended.get_mut(&ClrKey::new(process, clr)) {
            suspended.complete = Some(event.time);
        }
    }

    fn stats(&mut self, process: ProcessIndex, record: &Record<'_>) {
        let Some(fields) = self.stats.read(record) else {
            return;
        };
        let clr = fields.uint(0).unwrap_or(0) as u16;
        let ended = self.ended.get(&ClrKey::new(process, clr));
        let Some(collection) = ended.and_then(|&index| self.list.get_mut(index)) else {
            return;
        };
        collection.has_pinned = fields.uint(GENERATIONS).is_some();
        collection.heap = Some(std::array::from_fn(|generation| {
            fields.uint(1 + generation).unwrap_or(0)
        }));
        let promoted: [u64; GENERATIONS] = std::array::from_fn(|generation| {
            fields.uint(1 + GENERATIONS + generation).unwrap_or(0)
        });
        collection.promoted = Some(sum(&promoted));
    }

    /// What the collection that runs did to a heap.
    fn history(&mut self, process: ProcessIndex, record: &Record<'_>) {
        let version = record.event().map_or(0, |header| header.descriptor.version);
        let Some(fields) = self
            .history
            .read(record)
            .filter(|_| version >= FIRST_HISTORY)
        else {
            return;
        };
        let clr = fields.uint(0).unwrap_or(0) as u16;
        let Some(collector) = self.collectors.get(&ClrKey::new(process, clr)) else {
            return;
        };
        let index = collector
            .open
            .last()
            .or_else(|| self.ended.get(&ClrKey::new(process, clr)));
        let Some(&index) = index else {
            return;
        };
        let Some(collection) = self.list.get(index) else {
            return;
        };
        let Some(heap) = fields.uint(1) else {
            return;
        };
        let Some(rest) = fields.from(2) else {
            return;
        };
        if collection.heaps.len() >= MAX_HEAPS {
            return;
        }
        // The number of generations, and then their numbers.
        let count = fields.uint(2).unwrap_or(0).min(GENERATIONS as u64) as usize;
        let pointers = record.pointer_size().unwrap_or(PointerSize::P8);
        let mut history = HeapHistory {
            heap: heap as u32,
            ..HeapHistory::default()
        };
        for generation in 0..count {
            let numbers: [u64; NUMBERS] = std::array::from_fn(|at| {
                pointer_at(rest, generation * NUMBERS + at, pointers).unwrap_or(0)
            });
            history.set_generation(generation, &numbers);
        }
        let allocated = self.allocated_on_heap(collection, &history);
        if let Some(collection) = self.list.get_mut(index) {
            collection.heaps.push(history);
            if let Some(allocated) = allocated {
                let sum = collection.allocated_by_heaps.get_or_insert(0);
                *sum = sum.saturating_add(allocated);
            }
        }
    }

    /// Bytes that were allocated on a heap since the previous collection: the objects before a
    /// collection minus the objects after the previous one. `None` if the previous one is not
    /// known, or still runs in the background.
    fn allocated_on_heap(&self, collection: &Collection, history: &HeapHistory) -> Option<i64> {
        let previous = self.list.get(collection.previous?)?;
        if previous.heaps.is_empty() {
            return None;
        }
        let before = previous.heaps.iter().find(|of| of.heap == history.heap);
        let mut allocated = 0i64;
        for generation in ALLOCATING {
            // The collection that a background collection begins with has counted generation 0.
            if generation == 0 && collection.is_background() {
                continue;
            }
            let now = history.objects_before.get(generation).copied().unwrap_or(0);
            let then = before.and_then(|of| of.objects_after.get(generation).copied());
            let grown = i128::from(now) - i128::from(then.unwrap_or(0));
            allocated = allocated.saturating_add(i64::try_from(grown).unwrap_or(0));
        }
        Some(allocated)
    }

    fn add_allocation(&mut self, process: ProcessIndex, record: &Record<'_>) {
        let Some(fields) = self.allocation.read(record) else {
            return;
        };
        let clr = fields.uint(0).unwrap_or(0) as u16;
        let bytes = fields.uint(1).or_else(|| fields.uint(2)).unwrap_or(0);
        let collector = self
            .collectors
            .entry(ClrKey::new(process, clr))
            .or_default();
        collector.allocated = collector.allocated.saturating_add(bytes);
        collector.has_allocations = true;
    }
}

/// One of the numbers after the count of generations. Each is as wide as a pointer.
fn pointer_at(bytes: &[u8], index: usize, pointers: PointerSize) -> Option<u64> {
    match pointers {
        PointerSize::P8 => bytes.u64_at(4 + index * 8),
        PointerSize::P4 => bytes.u32_at(4 + index * 4).map(u64::from),
    }
}

impl Observer for Collections {
    const JOINS: Joins = Joins::Nothing;

    fn record(&mut self, _: &Machine, record: &Record<'_>, event: &EventRef) {
        let Some(id) = runtime_event(event) else {
            return;
        };
        let Some(process) = event.process else {
            return;
        };
        match id {
            START => self.start(process, record, event),
            END => self.end(process, record, event),
            RESTARTED => self.restarted(process, record, event),
            HEAP_STATS => self.stats(process, record),
            HEAP_HISTORY => self.history(process, record),
            SUSPEND => {
                let Some(fields) = self.suspend.read(record) else {
                    return;
                };
                let clr = fields.uint(0).unwrap_or(0) as u16;
                let reason = fields.uint(1).unwrap_or(1);
                self.enter(ClrKey::new(process, clr), event.session);
                let suspended = Suspended {
                    since: event.time,
                    complete: None,
                    reason,
                    started: None,
                };
                self.suspended.begin(
                    ClrKey::new(process, clr),
                    Scope::session(event.session),
                    suspended,
                );
            }
            SUSPENDED => self.suspended(process, record, event),
            ALLOCATED => self.add_allocation(process, record),
            _ => {}
        }
    }

    /// Collections end by their numbers; what belongs to the suspension or to the collection before
    /// may belong to a later one, which is missing.
    fn loss(&mut self, loss: &Loss) {
        self.given_up += self.suspended.give_up(loss) as u64;
        self.ended.give_up(loss);
    }

    fn restart(&mut self) {
        *self = Collections {
            range: self.range,
            ..Collections::new()
        };
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sums_of_sizes_do_not_wrap() {
        let sizes = [1 << 63, 1 << 63, 0, 0, 7];
        let heap = HeapHistory {
            before: sizes,
            ..HeapHistory::default()
        };
        let heaps = vec![heap, heap];
        let collection = Collection {
            heap: Some(sizes),
            heaps,
            ..Collection::default()
        };
        assert_eq!(collection.heap_size(), Some(u64::MAX));
        assert_eq!(collection.heap_before(), Some(u64::MAX));
    }
}
