//! The history events of .NET Core at the end of a collection: per heap, global, and large objects.

use etl_schema::encode::OwnedValue;

use super::BUDGET;
use super::collect::Collection;
use crate::clr::raise::Runtime;
use crate::error::Result;
use crate::etw::values;

/// Bits of the mechanisms of a collection.
mod mechanism {
    pub const CONCURRENT: u32 = 1;
    pub const COMPACTION: u32 = 2;
    pub const PROMOTION: u32 = 4;
    /// Of one heap: the mechanism is set.
    pub const SET: u32 = 0x8000_0000;
}

impl Runtime<'_, '_> {
    pub(super) fn emit_history(&mut self, collection: &Collection) -> Result<()> {
        if collection.large {
            self.emit_large(collection)?;
        }
        for heap in 0..self.clr.heap.heaps {
            self.emit_heap_history(collection, heap)?;
        }
        self.emit_global_history(collection)
    }

    fn emit_heap_history(&mut self, collection: &Collection, heap: u32) -> Result<()> {
        let share = |size: &u64| self.clr.heap.share(*size, heap);
        let depth = usize::from(collection.generation);
        // A collection of generation 2 also collects the large objects.
        let pinned = self
            .clr
            .heap
            .share(self.clr.heap.pinned().count() as u64 * 4096, heap);
        let mut generations = Vec::new();
        let sizes = collection
            .before
            .iter()
            .zip(&self.clr.heap.sizes)
            .zip(&collection.promoted);
        for (number, ((before, after), promoted)) in sizes.enumerate() {
            let is_collected = if number == 3 {
                depth >= 2
            } else {
                number <= depth
            };
            let entered = if is_collected { share(before) } else { 0 };
            let budget = if number == 0 {
                BUDGET
            } else {
                share(after) / 2
            };
            generations.push(generation([
                share(before),
                share(after),
                entered,
                if number == 0 {
                    pinned.min(share(promoted))
                } else {
                    0
                },
                share(promoted),
                budget,
            ]));
        }
        if self.clr.heap.pinned_heap {
            generations.push(generation([0; 6]));
        }
        let [p0, p1, ..] = collection.promoted.map(|p| share(&p));
        let compacts = u32::from(!collection.background) * (mechanism::SET | 1);
        let depth = u32::from(collection.generation);
        let id = self.clr.instance;
        let count = generations.len() as u32;
        // The generation: first condemned, finally condemned, by the budget.
        let depths = depth | depth << 2 | depth << 4;
        let none = 0u64;
        let all = OwnedValue::Array(generations);
        let values = values![
            id, none, none, p1, p0, pinned, none, 0u32, depths, 0u32, compacts, 0u32, heap, none,
            count, all,
        ];
        self.raise(204, 3, &values)
    }

    fn emit_global_history(&mut self, collection: &Collection) -> Result<()> {
        let depth = u32::from(collection.generation);
        let background = collection.background;
        let how = if background {
            mechanism::CONCURRENT
        } else {
            mechanism::COMPACTION
        };
        let how = how | mechanism::PROMOTION;
        // Pause mode, and memory load in percent.
        let pause = u32::from(background);
        let load = 40u32;
        let heaps = self.clr.heap.heaps;
        let reason = collection.reason;
        let id = self.clr.instance;
        let mut values: Vec<OwnedValue> =
            values![BUDGET, heaps, depth, 0u32, reason, how, id, pause, load].into();
        let version = 2 + u8::from(self.clr.is_core(5)) + u8::from(self.clr.is_core(6));
        if version >= 3 {
            values.extend(values![depth | depth << 2 | depth << 4, 0u32]);
        }
        if version >= 4 {
            // Microseconds of marking, planning, relocating and compacting.
            let alive: u64 = collection.promoted.iter().sum();
            let times = [4, 8, 16, 16].map(|part| {
                OwnedValue::Struct(vec![OwnedValue::UInt((alive / 4096 / part).min(1 << 20))])
            });
            values.extend(values![times.len() as u32, OwnedValue::Array(times.into())]);
        }
        self.raise(205, version, &values)
    }

    /// The large objects were compacted.
    fn emit_large(&mut self, collection: &Collection) -> Result<()> {
        let [.., large] = collection.promoted;
        let heaps: Vec<OwnedValue> = (0..self.clr.heap.heaps)
            .map(|heap| {
                let pages = self.clr.heap.share(large, heap) / 4096;
                let time = u32::try_from(pages).unwrap_or(u32::MAX);
                let values = values![time / 8 + 1, time / 2 + 1, time / 4 + 1, pages * 8, 0u64];
                OwnedValue::Struct(values.into())
            })
            .collect();
        let values = values![
            self.clr.instance,
            heaps.len() as u16,
            OwnedValue::Array(heaps)
        ];
        self.raise(208, 0, &values)
    }
}

/// A generation in the history: size before and after, collected bytes, pinned survivors,
/// survivors, and the next allocation budget.
fn generation(numbers: [u64; 6]) -> OwnedValue {
    let [before, after, entered, pinned, survived, budget] = numbers;
    let all = [before, 0, 0, after, 0, 0, entered, pinned, survived, budget];
    OwnedValue::Struct(all.map(OwnedValue::UInt).into())
}
