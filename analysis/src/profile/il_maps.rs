//! Maps from native code to IL, from the events of the CLR.

use etl_format::Guid;
use etl_format::cursor::Bytes;
use etl_format::read::Record;
use etl_schema::providers::{CLR_RUNDOWN, CLR_RUNTIME};
use etl_schema::views::FieldReader;
use foldhash::HashMap;

use crate::keys::ProcessIndex;
use crate::machine::Machine;
use crate::observe::{EventRef, Joins, Observer};

/// An event with a map.
#[derive(Clone, Copy, Debug)]
struct MapEvent {
    provider: Guid,
    id: u16,
}

/// The events: of the runtime provider when a method was compiled, and of the rundown provider.
const EVENTS: [MapEvent; 3] = [
    MapEvent {
        provider: CLR_RUNTIME,
        id: 190,
    },
    MapEvent {
        provider: CLR_RUNDOWN,
        id: 149,
    },
    MapEvent {
        provider: CLR_RUNDOWN,
        id: 150,
    },
];

/// IL offsets from here on mean code without IL: the prolog, the epilog, and code that belongs to
/// no statement.
const PROLOG: u32 = 0xffff_fffe;
const FIRST_SPECIAL: u32 = 0xffff_fffd;

/// Code of a method.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) struct MethodKey {
    pub process: ProcessIndex,
    pub clr: u16,
    pub method: u64,
    /// `ReJITID`.
    pub version: Option<u64>,
}

/// An offset in native code, and the offset in IL from which the code there was compiled.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct MapPoint {
    native: u32,
    il: u32,
}

/// Collects the maps from native code to IL (`MethodILToNativeMap`, keyword 0x20000); an
/// [`Observer`]. Memory grows with the maps.
#[derive(Clone, Debug)]
pub struct IlMaps {
    /// Points in order of their native offsets.
    maps: HashMap<MethodKey, Box<[MapPoint]>>,
    fields: [FieldReader<4>; EVENTS.len()],
}

impl Default for IlMaps {
    fn default() -> Self {
        IlMaps::new()
    }
}

impl IlMaps {
    /// Nothing is collected yet.
    #[must_use]
    pub fn new() -> Self {
        let names = ["MethodID", "ReJITID", "CountOfMapEntries", "ILOffsets"];
        IlMaps {
            maps: HashMap::default(),
            fields: EVENTS.map(|event| FieldReader::of_event(event.provider, event.id, names)),
        }
    }

    /// Whether there is no map.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.maps.is_empty()
    }

    /// The offset in the IL of a method from which the code at a native offset was compiled; `None`
    /// without a map.
    pub(super) fn il_offset(&self, key: MethodKey, native: u32) -> Option<u32> {
        let map = self.maps.get(&key)?;
        let after = map.partition_point(|point| point.native <= native);
        let point = map.get(after.checked_sub(1)?)?;
        Some(point.il)
    }

    /// Adds a map. `offsets` has the offsets in IL, and then the offsets in native code.
    fn add(&mut self, key: MethodKey, offsets: &[u8], count: usize) {
        let mut map = Vec::new();
        for index in 0..count {
            let Some(il) = offsets.u32_at(4 * index) else {
                break;
            };
            let Some(native) = offsets.u32_at(4 * (count + index)) else {
                break;
            };
            match il {
                PROLOG => map.push(MapPoint { native, il: 0 }),
                FIRST_SPECIAL.. => {}
                il => map.push(MapPoint { native, il }),
            }
        }
        map.sort_unstable();
        if !map.is_empty() {
            self.maps.insert(key, map.into());
        }
    }
}

impl Observer for IlMaps {
    const JOINS: Joins = Joins::Nothing;

    fn record(&mut self, _: &Machine, record: &Record<'_>, event: &EventRef) {
        let Some(header) = record.event() else { return };
        if header.provider != CLR_RUNDOWN && header.provider != CLR_RUNTIME {
            return;
        }
        let mut readers = EVENTS.iter().zip(&mut self.fields);
        let reader = readers.find(|(event, _)| {
            event.provider == header.provider && event.id == header.descriptor.id
        });
        let Some(fields) = reader.and_then(|(_, reader)| reader.read(record)) else {
            return;
        };
        let Some(process) = event.process else {
            return;
        };
        let Some(method) = fields.uint(0) else {
            return;
        };
        let Some(count) = fields.uint(2) else {
            return;
        };
        let Some(offsets) = fields.from(3) else {
            return;
        };
        let count = count as usize;
        // The instance comes after both lists.
        let Some(clr) = offsets.u16_at(8 * count) else {
            return;
        };
        self.add(
            MethodKey {
                process,
                clr,
                method,
                version: fields.uint(1),
            },
            offsets,
            count,
        );
    }

    fn restart(&mut self) {
        self.maps.clear();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_has_the_il_offset_of_the_last_point_before_it() {
        let key = MethodKey {
            process: ProcessIndex::new(1),
            clr: 9,
            method: 7,
            version: Some(0),
        };
        let lists: [[u32; 4]; 2] = [[PROLOG, 5, 9, u32::MAX], [0, 8, 8, 20]];
        let bytes: Vec<u8> = lists
            .iter()
            .flatten()
            .flat_map(|n| n.to_le_bytes())
            .collect();
        let mut maps = IlMaps::new();
        maps.add(key, &bytes, 4);
        assert_eq!(
            [0, 7, 8, 30].map(|at| maps.il_offset(key, at)),
            [0, 0, 9, 9].map(Some)
        );
        assert_eq!(
            maps.il_offset(
                MethodKey {
                    version: None,
                    ..key
                },
                8
            ),
            None
        );
    }
}
