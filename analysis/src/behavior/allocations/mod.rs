//! Who allocates on the garbage collected heap: types, bytes, and large objects; what survives, and
//! what is pinned.
//!
//! Needs the events of the CLR's runtime provider. With the keyword GC (0x1) at level 5, it logs an
//! allocation tick (GCAllocationTick) for about each 100 KB of small objects, and of large objects,
//! that a heap allocates: the bytes since the tick before, and the type of the object that was
//! allocated then. With the keywords GCSampledObjectAllocationHigh (0x200000) or -Low (0x2000000)
//! it samples objects by type (GCSampledObjectAllocation). With the keyword AllocationSampling
//! (0x80000000000), .NET 10 samples about one of 102,400 bytes at random (AllocationSampled): an
//! object stands for its size divided by the probability of its sample. If several were recorded,
//! they are views of the same allocations. [`StackedAllocations`] adds stacks.
//!
//! ```no_run
//! use etl_analysis::behavior::allocations::Allocations;
//! use etl_analysis::{Analysis, Recording};
//!
//! let bytes = std::fs::read("trace.etl")?;
//! let mut recording = Recording::open([(bytes.as_slice(), "trace.etl")])?;
//! let mut allocations = Allocations::new();
//! let machine = Analysis::new().run(&mut recording, &mut allocations)?;
//! for (key, total) in allocations.by_type() {
//!     println!("{}: {} bytes", allocations.type_name(key.object), total.bytes);
//! }
//! # drop(machine);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

mod reader;
mod stacked;

use std::collections::BTreeMap;

use etl_format::read::Record;
use etl_format::{ThreadId, Ticks, TimeRange};
use foldhash::HashMap;
use foldhash::fast::RandomState;
use indexmap::IndexSet;

use reader::{AllocationEvent, NamedType, Reader, id};

use super::runtime_event;
use crate::keys::ProcessIndex;
use crate::machine::Machine;
use crate::machine::names::text;
use crate::observe::{EventRef, Joins, Observer};

pub use stacked::StackedAllocations;

/// Types that are told apart; further ones count as one.
const MAX_TYPES: usize = 1 << 18;

/// Seconds of processes that are kept.
const MAX_SECONDS: usize = 1 << 20;

/// Large objects that are kept.
const MAX_LARGE: usize = 1 << 20;

/// The kind of the heap of an object.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[non_exhaustive]
pub enum HeapKind {
    /// Small objects.
    Small,
    /// Large objects, of 85,000 bytes or more.
    Large,
    /// Pinned objects, since .NET 5.
    Pinned,
    /// The event does not state it.
    Unknown,
}

impl HeapKind {
    /// The kind of the heap in an allocation tick.
    const fn of_tick(number: u64) -> Self {
        match number {
            0 => HeapKind::Small,
            1 => HeapKind::Large,
            2 => HeapKind::Pinned,
            _ => HeapKind::Unknown,
        }
    }

    /// Its name in reports.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            HeapKind::Small => "small",
            HeapKind::Large => "large",
            HeapKind::Pinned => "pinned",
            HeapKind::Unknown => "",
        }
    }
}

/// The events that state allocations.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[non_exhaustive]
pub enum AllocationSource {
    /// Allocation ticks.
    Tick,
    /// Samples of objects.
    Sampled,
    /// Objects that .NET 10 samples at random: their bytes are estimates.
    Random,
}

impl AllocationSource {
    /// Its name in reports.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            AllocationSource::Tick => "tick",
            AllocationSource::Sampled => "sample",
            AllocationSource::Random => "random",
        }
    }
}

/// A type: a number for [`Allocations::type_name`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ObjectType(u32);

/// What allocations are summed by.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[non_exhaustive]
pub struct AllocationKey {
    /// The process; `None` if no event describes it.
    pub process: Option<ProcessIndex>,
    /// The type of the objects.
    pub object: ObjectType,
    /// The heap.
    pub heap: HeapKind,
    /// The events.
    pub source: AllocationSource,
}

/// A sum of allocations.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct AllocationTotal {
    /// Events.
    pub events: u64,
    /// Bytes that they state.
    pub bytes: u64,
    /// Objects that samples state; 0 for ticks.
    pub objects: u64,
}

/// A large object whose allocation an event states.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct LargeObject {
    /// The process; `None` if no event describes it.
    pub process: Option<ProcessIndex>,
    /// The thread that allocated it.
    pub tid: Option<ThreadId>,
    /// When, in ticks.
    pub time: Ticks,
    /// Its type.
    pub object: ObjectType,
    /// Bytes that large objects took since the event before, with this one.
    pub bytes: u64,
    /// Its size in bytes; `None` before .NET 5.
    pub size: Option<u64>,
}

/// Objects that collections found pinned.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[non_exhaustive]
pub struct PinnedKey {
    /// The process; `None` if no event describes it.
    pub process: Option<ProcessIndex>,
    /// Their type.
    pub object: ObjectType,
}

/// What survived the collections of a process.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Survivors {
    /// Ranges of objects that follow each other in memory.
    pub ranges: u64,
    /// Their bytes.
    pub bytes: u64,
}

/// A second of a recording, and a process.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[non_exhaustive]
pub struct SecondKey {
    /// The number of the second since the start of the recording.
    pub second: u64,
    /// The process; `None` if no event describes it.
    pub process: Option<ProcessIndex>,
}

/// What allocation ticks of a second state; samples if there are no ticks.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct SecondSum {
    /// Allocation ticks.
    pub ticks: AllocationTotal,
    /// Of these, large objects.
    pub large: AllocationTotal,
    /// Samples of objects.
    pub sampled: AllocationTotal,
}

impl AllocationTotal {
    fn add(&mut self, bytes: u64, objects: u64) {
        self.events += 1;
        self.bytes = self.bytes.saturating_add(bytes);
        self.objects = self.objects.saturating_add(objects);
    }
}

/// A type as an event states it.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
enum TypeKey {
    Name(Box<str>),
    /// The id of a type of a process.
    Id(Option<ProcessIndex>, u64),
    /// Types beyond the limit.
    Others,
}

/// Collects allocations.
#[derive(Clone, Debug)]
pub struct Allocations {
    types: IndexSet<TypeKey, RandomState>,
    /// The names of types by process and id, which events of their own state.
    names: HashMap<(Option<ProcessIndex>, u64), Box<str>>,
    by_type: BTreeMap<AllocationKey, AllocationTotal>,
    by_second: BTreeMap<SecondKey, SecondSum>,
    large: Vec<LargeObject>,
    pinned: BTreeMap<PinnedKey, AllocationTotal>,
    survivors: BTreeMap<Option<ProcessIndex>, Survivors>,
    reader: Reader,
    range: TimeRange,
}

impl Default for Allocations {
    fn default() -> Self {
        Allocations::new()
    }
}

impl Allocations {
    /// Nothing is collected yet.
    #[must_use]
    pub fn new() -> Self {
        Allocations {
            types: IndexSet::default(),
            names: HashMap::default(),
            by_type: BTreeMap::new(),
            by_second: BTreeMap::new(),
            large: Vec::new(),
            pinned: BTreeMap::new(),
            survivors: BTreeMap::new(),
            reader: Reader::new(),
            range: TimeRange::default(),
        }
    }

    /// Counts only the events in a range of the recording's clock. Types are named by all events of
    /// the recording.
    #[must_use]
    pub fn within(self, range: TimeRange) -> Self {
        Allocations { range, ..self }
    }

    /// The allocations by process, type, heap and kind of event.
    #[must_use]
    pub fn by_type(&self) -> &BTreeMap<AllocationKey, AllocationTotal> {
        &self.by_type
    }

    /// The allocations by second and process.
    #[must_use]
    pub fn by_second(&self) -> &BTreeMap<SecondKey, SecondSum> {
        &self.by_second
    }

    /// Large objects in time order.
    #[must_use]
    pub fn large_objects(&self) -> &[LargeObject] {
        &self.large
    }

    /// The objects that collections found pinned, by process and type.
    #[must_use]
    pub fn pinned(&self) -> &BTreeMap<PinnedKey, AllocationTotal> {
        &self.pinned
    }

    /// What survived the collections of each process.
    #[must_use]
    pub fn survivors(&self) -> &BTreeMap<Option<ProcessIndex>, Survivors> {
        &self.survivors
    }

    /// The name of a type; its id if no event names it, empty if events state neither.
    #[must_use]
    pub fn type_name(&self, object: ObjectType) -> String {
        match self.types.get_index(object.0 as usize) {
            Some(TypeKey::Name(name)) => name.to_string(),
            Some(TypeKey::Id(_, 0)) | None => String::new(),
            Some(TypeKey::Id(process, id)) => match self.names.get(&(*process, *id)) {
                Some(name) => name.to_string(),
                None => format!("type {id:#x}"),
            },
            Some(TypeKey::Others) => "(other types)".to_owned(),
        }
    }

    fn type_of(&mut self, key: TypeKey) -> ObjectType {
        let is_known = self.types.contains(&key) || self.types.len() < MAX_TYPES;
        let key = if is_known { key } else { TypeKey::Others };
        let (number, _) = self.types.insert_full(key);
        ObjectType(u32::try_from(number).unwrap_or(u32::MAX))
    }

    /// The type of an event: by its name, or else by its id.
    fn type_in(&mut self, named: &NamedType<'_>, process: Option<ProcessIndex>) -> ObjectType {
        let key = if named.name.is_empty() {
            TypeKey::Id(process, named.id)
        } else {
            TypeKey::Name(text(named.name).into())
        };
        self.type_of(key)
    }

    /// An event that states an allocation. Returns its key and its bytes, if it is selected.
    fn allocation(
        &mut self,
        machine: &Machine,
        record: &Record<'_>,
        event: &EventRef,
    ) -> Option<Allocated> {
        if !self.range.contains(event.time) {
            return None;
        }
        let AllocationEvent {
            named,
            heap,
            bytes,
            objects,
            size,
            source,
        } = self.reader.allocation(record)?;
        let process = event.process;
        let object = self.type_in(&named, process);
        let key = AllocationKey {
            process,
            object,
            heap,
            source,
        };
        self.by_type.entry(key).or_default().add(bytes, objects);
        if let Some(second) = self.second(machine, event) {
            match source {
                AllocationSource::Tick => second.ticks.add(bytes, objects),
                _ => second.sampled.add(bytes, objects),
            }
            if heap == HeapKind::Large {
                second.large.add(bytes, objects);
            }
        }
        if heap == HeapKind::Large && self.large.len() < MAX_LARGE {
            self.large.push(LargeObject {
                process,
                tid: event.tid,
                time: event.time,
                object,
                bytes,
                size,
            });
        }
        Some(Allocated { key, bytes })
    }

    /// The second of an event.
    fn second(&mut self, machine: &Machine, event: &EventRef) -> Option<&mut SecondSum> {
        let clock = machine.clock();
        let since = event.time.saturating_since(clock.start_timestamp);
        let key = SecondKey {
            second: u64::try_from(since).unwrap_or(0) / clock.frequency.max(1),
            process: event.process,
        };
        if self.by_second.len() >= MAX_SECONDS && !self.by_second.contains_key(&key) {
            return None;
        }
        Some(self.by_second.entry(key).or_default())
    }

    fn pin(&mut self, record: &Record<'_>, event: &EventRef) -> Option<()> {
        let pinned = self.reader.pinned(record)?;
        if !self.range.contains(event.time) {
            return None;
        }
        let object = self.type_in(&pinned.named, event.process);
        let key = PinnedKey {
            process: event.process,
            object,
        };
        self.pinned.entry(key).or_default().add(pinned.size, 1);
        Some(())
    }

    fn survive(&mut self, record: &Record<'_>, event: &EventRef) {
        if !self.range.contains(event.time) {
            return;
        }
        let survived = reader::survivors(record);
        let sum = self.survivors.entry(event.process).or_default();
        sum.ranges += survived.ranges;
        sum.bytes = sum.bytes.saturating_add(survived.bytes);
    }

    /// An event that names types, or counts them.
    fn other(&mut self, id: u16, record: &Record<'_>, event: &EventRef) {
        match id {
            id::BULK_TYPE => {
                let process = event.process;
                let names = &mut self.names;
                reader::for_each_type(record, |named| {
                    if names.len() < MAX_TYPES {
                        names.insert((process, named.id), text(named.name).into());
                    }
                });
            }
            id::SURVIVORS => self.survive(record, event),
            id::PINNED => {
                self.pin(record, event);
            }
            _ => {}
        }
    }
}

/// An allocation that an event states.
#[derive(Clone, Copy, Debug)]
struct Allocated {
    key: AllocationKey,
    bytes: u64,
}

impl Observer for Allocations {
    const JOINS: Joins = Joins::Nothing;

    fn record(&mut self, machine: &Machine, record: &Record<'_>, event: &EventRef) {
        let Some(id) = runtime_event(event) else {
            return;
        };
        if id::is_allocation(id) {
            self.allocation(machine, record, event);
        } else {
            self.other(id, record, event);
        }
    }

    fn restart(&mut self) {
        *self = Allocations::new().within(self.range);
    }
}

#[cfg(test)]
mod tests {
    use etl_format::write::Session;
    use etl_format::write::record::Event;
    use etl_format::{EventDescriptor, FileHeader};
    use etl_schema::providers::CLR_RUNTIME;

    use super::*;
    use crate::{Analysis, Recording};

    /// A sample of objects of a type.
    fn sample(object: u64, objects: u32, bytes: u64) -> Vec<u8> {
        let mut payload = 0x1000u64.to_le_bytes().to_vec();
        payload.extend(object.to_le_bytes());
        payload.extend(objects.to_le_bytes());
        payload.extend(bytes.to_le_bytes());
        payload.extend(9u16.to_le_bytes());
        payload
    }

    /// An object that was sampled at random.
    fn random(kind: u32, name: &str, size: u64) -> Vec<u8> {
        let mut payload = kind.to_le_bytes().to_vec();
        payload.extend(9u16.to_le_bytes());
        payload.extend(0xa0u64.to_le_bytes());
        payload.extend(name.encode_utf16().flat_map(u16::to_le_bytes));
        payload.extend([0, 0]);
        payload.extend(0x1_0000u64.to_le_bytes());
        payload.extend(size.to_le_bytes());
        payload.extend(17u64.to_le_bytes());
        payload
    }

    /// The names of types; the first one has two type parameters.
    fn types(types: &[(u64, &str)]) -> Vec<u8> {
        let mut payload = (types.len() as u32).to_le_bytes().to_vec();
        payload.extend(9u16.to_le_bytes());
        for (index, (object, name)) in types.iter().enumerate() {
            payload.extend(object.to_le_bytes());
            payload.extend([0; 17]);
            payload.extend(name.encode_utf16().flat_map(u16::to_le_bytes));
            payload.extend([0, 0]);
            let parameters = if index == 0 { 2u32 } else { 0 };
            payload.extend(parameters.to_le_bytes());
            payload.extend(vec![7; 8 * parameters as usize]);
        }
        payload
    }

    #[test]
    fn sampled_objects_have_the_names_of_their_types() {
        let header = FileHeader {
            timestamp: Ticks::new(1),
            perf_freq: 10_000_000,
            ..FileHeader::new()
        };
        let mut session = Session::in_memory(header).unwrap();
        // A type may be named after its objects; the last one is not named.
        let events = [
            (id::SAMPLED_HIGH, sample(0x70, 3, 72)),
            (
                id::BULK_TYPE,
                types(&[(0x70, "Shop.Cart"), (0x80, "System.String")]),
            ),
            (id::SAMPLED_LOW, sample(0x80, 10, 400)),
            (id::SAMPLED_HIGH, sample(0x70, 2, 48)),
            (id::SAMPLED_HIGH, sample(0x90, 1, 24)),
            (id::RANDOM, random(1, "Shop.Cart[]", 200_000)),
        ];
        for (time, (id, payload)) in (10..).zip(&events) {
            let descriptor = EventDescriptor {
                id: *id,
                ..EventDescriptor::default()
            };
            let event = Event::new(CLR_RUNTIME, descriptor, time)
                .process(4312, 8)
                .payload(payload);
            session.write(0, &event).unwrap();
        }
        let bytes = session.finish().unwrap();
        let mut recording = Recording::open([(bytes.as_slice(), "made")]).unwrap();
        let mut allocations = Allocations::new();
        let machine = Analysis::new()
            .run(&mut recording, &mut allocations)
            .unwrap();
        drop(machine);
        let mut sums = BTreeMap::new();
        for (key, total) in allocations.by_type() {
            if key.source == AllocationSource::Random {
                assert_eq!((key.heap, total.objects), (HeapKind::Large, 1));
                assert!((200_000..260_000).contains(&total.bytes), "{total:?}");
                assert_eq!(allocations.type_name(key.object), "Shop.Cart[]");
                continue;
            }
            assert_eq!(key.source, AllocationSource::Sampled);
            let sum = [total.events, total.objects, total.bytes];
            sums.insert(allocations.type_name(key.object), sum);
        }
        let expected = [
            ("Shop.Cart", [2, 5, 120]),
            ("System.String", [1, 10, 400]),
            ("type 0x90", [1, 1, 24]),
        ];
        assert_eq!(
            sums,
            expected.map(|(name, sum)| (name.to_owned(), sum)).into()
        );
    }
}
