//! Maps from native code to IL, as the CLR's events have them.

use etl_format::cursor::Bytes;
use etl_format::read::Record;
use etl_schema::providers::{CLR_RUNDOWN, CLR_RUNTIME};
use etl_schema::views::FieldReader;
use foldhash::HashMap;

use crate::keys::ProcessIndex;
use crate::machine::Machine;
use crate::observe::{EventRef, Joins, Observer};

/// The events: of the runtime provider when a method was compiled, and of the rundown provider.
const EVENTS: [(bool, u16); 3] = [(false, 190), (true, 149), (true, 150)];

/// IL offsets from here on stand for code without IL: the prolog, the epilog, and what belongs to
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

/// The fields of these events.
type Fields = FieldReader<4>;

/// Collects the maps from native code to IL (`MethodILToNativeMap`, keyword 0x20000); an
/// [`Observer`]. Memory grows with the maps.
#[derive(Clone, Debug)]
pub struct IlMaps {
    /// Native offsets, and the offsets in IL.
    maps: HashMap<MethodKey, Box<[(u32, u32)]>>,
    fields: [Fields; EVENTS.len()],
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
        let fields = EVENTS.map(|(is_rundown, id)| {
            FieldReader::of_event(
                if is_rundown { CLR_RUNDOWN } else { CLR_RUNTIME },
                id,
                names,
            )
        });
        IlMaps {
            maps: HashMap::default(),
            fields,
        }
    }

    /// Whether there is no map.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.maps.is_empty()
    }

    /// The offset in the IL of a method of an offset in its code; `None` without a map.
    pub(super) fn il_offset(&self, key: MethodKey, native: u32) -> Option<u32> {
        let map = self.maps.get(&key)?;
        let after = map.partition_point(|&(at, _)| at <= native);
        map.get(after.checked_sub(1)?).map(|&(_, il)| il)
    }

    fn add(&mut self, key: MethodKey, offsets: &[u8], count: usize) {
        let point = |at: usize| {
            let native = offsets.u32_at(4 * (count + at))?;
            match offsets.u32_at(4 * at)? {
                PROLOG => Some((native, 0)),
                FIRST_SPECIAL.. => None,
                il => Some((native, il)),
            }
        };
        let mut map: Vec<(u32, u32)> = (0..count).filter_map(point).collect();
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
        let is_rundown = header.provider == CLR_RUNDOWN;
        if !is_rundown && header.provider != CLR_RUNTIME {
            return;
        }
        let this = (is_rundown, header.descriptor.id);
        let Some(at) = EVENTS.iter().position(|&event| event == this) else {
            return;
        };
        let Some(fields) = self
            .fields
            .get_mut(at)
            .and_then(|fields| fields.read(record))
        else {
            return;
        };
        let (Some(process), Some(method), Some(count), Some(offsets)) = (
            event.process,
            fields.uint(0),
            fields.uint(2),
            fields.from(3),
        ) else {
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
