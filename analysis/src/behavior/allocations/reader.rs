//! What events of allocations, types, survivors and pinned objects state.

use etl_format::constants::PointerSize;
use etl_format::cursor::{Bytes, Cursor};
use etl_format::read::Record;
use etl_schema::providers::CLR_RUNTIME;
use etl_schema::views::FieldReader;

use super::{AllocationSource, HeapKind, Survivors};

/// Ids of events of the CLR's runtime provider.
pub(super) mod id {
    pub const TICK: u16 = 10;
    pub const BULK_TYPE: u16 = 15;
    pub const SAMPLED_HIGH: u16 = 20;
    pub const SURVIVORS: u16 = 21;
    pub const SAMPLED_LOW: u16 = 32;
    pub const PINNED: u16 = 33;
    pub const RANDOM: u16 = 303;

    /// Whether an event states an allocation.
    pub const fn is_allocation(id: u16) -> bool {
        matches!(id, TICK | SAMPLED_HIGH | SAMPLED_LOW | RANDOM)
    }
}

/// A type: its id, and its name in UTF-16, which may be empty.
#[derive(Clone, Copy, Debug)]
pub(super) struct NamedType<'a> {
    pub id: u64,
    pub name: &'a [u8],
}

/// An event that states an allocation.
#[derive(Clone, Copy, Debug)]
pub(super) struct AllocationEvent<'a> {
    pub named: NamedType<'a>,
    pub heap: HeapKind,
    pub bytes: u64,
    pub objects: u64,
    /// The size of the object.
    pub size: Option<u64>,
    pub source: AllocationSource,
}

/// A pinned object.
#[derive(Clone, Copy, Debug)]
pub(super) struct PinnedObject<'a> {
    pub named: NamedType<'a>,
    pub size: u64,
}

/// Reads events.
#[derive(Clone, Debug)]
pub(super) struct Reader {
    tick: FieldReader<6>,
    sampled: FieldReader<3>,
    random: FieldReader<4>,
    pinned: FieldReader<2>,
}

impl Reader {
    pub fn new() -> Self {
        let tick = [
            "AllocationAmount64",
            "AllocationAmount",
            "AllocationKind",
            "TypeID",
            "TypeName",
            "ObjectSize",
        ];
        let sampled = [
            "TypeID",
            "ObjectCountForTypeSample",
            "TotalSizeForTypeSample",
        ];
        let random = ["AllocationKind", "TypeID", "TypeName", "ObjectSize"];
        Reader {
            tick: FieldReader::of_event(CLR_RUNTIME, id::TICK, tick),
            sampled: FieldReader::of_event(CLR_RUNTIME, id::SAMPLED_HIGH, sampled),
            random: FieldReader::of_event(CLR_RUNTIME, id::RANDOM, random),
            pinned: FieldReader::of_event(CLR_RUNTIME, id::PINNED, ["ObjectSize", "TypeName"]),
        }
    }

    /// The allocation of an event of one of the ids of [`id::is_allocation`].
    pub fn allocation<'a>(&mut self, record: &Record<'a>) -> Option<AllocationEvent<'a>> {
        let id = record.event()?.descriptor.id;
        if id == id::RANDOM {
            return self.random(record);
        }
        if id != id::TICK {
            let fields = self.sampled.read(record)?;
            return Some(AllocationEvent {
                named: NamedType {
                    id: fields.uint(0)?,
                    name: &[],
                },
                heap: HeapKind::Unknown,
                bytes: fields.uint(2)?,
                objects: fields.uint(1)?,
                size: None,
                source: AllocationSource::Sampled,
            });
        }
        let fields = self.tick.read(record)?;
        // Versions 0 and 1 have 32 bits of the amount, and no type.
        let bytes = fields.uint(0).or_else(|| fields.uint(1))?;
        Some(AllocationEvent {
            named: NamedType {
                id: fields.uint(3).unwrap_or(0),
                name: fields.text(4).unwrap_or_default(),
            },
            heap: fields.uint(2).map_or(HeapKind::Unknown, HeapKind::of_tick),
            bytes,
            objects: 0,
            size: fields.uint(5),
            source: AllocationSource::Tick,
        })
    }

    /// The allocation of an object that .NET 10 sampled at random.
    fn random<'a>(&mut self, record: &Record<'a>) -> Option<AllocationEvent<'a>> {
        let fields = self.random.read(record)?;
        let size = fields.uint(3)?;
        Some(AllocationEvent {
            named: NamedType {
                id: fields.uint(1).unwrap_or(0),
                name: fields.text(2).unwrap_or_default(),
            },
            heap: fields.uint(0).map_or(HeapKind::Unknown, HeapKind::of_tick),
            bytes: estimated_bytes(size),
            objects: 1,
            size: Some(size),
            source: AllocationSource::Random,
        })
    }

    pub fn pinned<'a>(&mut self, record: &Record<'a>) -> Option<PinnedObject<'a>> {
        let fields = self.pinned.read(record)?;
        let name = fields.text(1).unwrap_or_default();
        Some(PinnedObject {
            named: NamedType { id: 0, name },
            size: fields.uint(0)?,
        })
    }
}

/// Bytes of which .NET 10 samples one on average.
const SAMPLING_INTERVAL: f64 = 102_400.0;

/// The bytes that an object sampled at random stands for: its size, divided by the probability that
/// an object of this size is sampled. Each byte is sampled with the same probability.
fn estimated_bytes(size: u64) -> u64 {
    if size == 0 {
        return 0;
    }
    // By squaring, because `powf` has other last digits on each system.
    let mut power = 1.0 - 1.0 / SAMPLING_INTERVAL;
    let mut not_sampled = 1.0;
    let mut rest = size;
    while rest > 0 {
        if rest & 1 == 1 {
            not_sampled *= power;
        }
        power *= power;
        rest >>= 1;
    }
    (size as f64 / (1.0 - not_sampled)).round() as u64
}

/// Bytes before the list in the events of types, and of survivors.
const BULK_TYPE_HEAD: usize = 6;
const SURVIVORS_HEAD: usize = 10;

/// Bytes of a type between its id and its name, and of each type parameter.
const BEFORE_NAME: usize = 8 + 4 + 4 + 1;
const PARAMETER: usize = 8;

/// Passes the types in a record of [`id::BULK_TYPE`] to a function.
pub(super) fn for_each_type(record: &Record<'_>, mut use_type: impl FnMut(NamedType<'_>)) {
    let payload = record.payload();
    let count = payload.u32_at(0).unwrap_or(0);
    let mut cursor = Cursor::new(payload.get(BULK_TYPE_HEAD..).unwrap_or_default());
    for _ in 0..count {
        let Some(id) = cursor.u64() else { return };
        if cursor.take(BEFORE_NAME).is_none() {
            return;
        }
        let Some(name) = cursor.utf16z() else { return };
        use_type(NamedType { id, name });
        let Some(parameters) = cursor.u32() else {
            return;
        };
        let skipped = (parameters as usize).saturating_mul(PARAMETER);
        if cursor.take(skipped).is_none() {
            return;
        }
    }
}

/// The ranges in a record of [`id::SURVIVORS`]: of each the first address, and the length.
pub(super) fn survivors(record: &Record<'_>) -> Survivors {
    const COUNT: usize = 4;
    let payload = record.payload();
    let address = match record.pointer_size() {
        Some(PointerSize::P4) => 4,
        _ => 8,
    };
    let count = payload.u32_at(COUNT).unwrap_or(0);
    let mut sum = Survivors::default();
    let mut offset = SURVIVORS_HEAD;
    for _ in 0..count {
        let Some(length) = payload.u64_at(offset + address) else {
            break;
        };
        sum.ranges += 1;
        sum.bytes = sum.bytes.saturating_add(length);
        offset += address + size_of::<u64>();
    }
    sum
}

#[cfg(test)]
mod tests {
    use super::estimated_bytes;

    /// The sum of geometric probabilities, by its definition.
    #[test]
    fn objects_stand_for_their_size_by_the_chance_of_a_sample() {
        for size in [1u64, 24, 1_000, 102_400, 1_000_000] {
            let mut chance = 0.0;
            let mut first = 1.0 / 102_400.0;
            for _ in 0..size {
                chance += first;
                first *= 1.0 - 1.0 / 102_400.0;
            }
            let expected = size as f64 / chance;
            let difference = estimated_bytes(size) as f64 - expected;
            assert!(difference.abs() < 1.0, "{size}: {difference}");
        }
        assert_eq!(estimated_bytes(0), 0);
        // A large object is always sampled.
        assert_eq!(estimated_bytes(100_000_000), 100_000_000);
    }
}
