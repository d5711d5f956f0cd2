//! The history events of .NET Core at the end of a collection: large objects, global, per heap.

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
    /// For one heap: the mechanism is set.
    pub const SET: u32 = 0x8000_0000;
}

impl Runtime<'_, '_> {
    pub(super) fn emit_history(&mut self, collection: &Collection) -> Result<()> {
        if collection.large {
            self.emit_large(collection)?;
        }
        self.emit_global_history(collection)?;
        for heap in 0..self.clr.heap.heaps {
            self.emit_heap_history(collection, heap)?;
        }
        Ok(())
    }

    fn emit_heap_history(&mut self, collection: &Collection, heap: u32) -> Result<()> {
        let depth = usize::from(collection.generation);
        let all_pinned = self.clr.heap.pinned().count() as u64 * 4096;
        let pinned = self.clr.heap.share(all_pinned, heap);
        let before = self.shares(collection.before, heap);
        let after = self.shares(self.clr.heap.sizes, heap);
        let promoted = self.shares(collection.promoted, heap);
        let mut generations = Vec::new();
        for (number, ((before, after), promoted)) in
            before.into_iter().zip(after).zip(promoted).enumerate()
        {
            // A collection of generation 2 also collects the large objects.
            let is_collected = number <= depth || number == 3 && depth >= 2;
            let is_youngest = number == 0;
            generations.push(generation([
                before,
                after,
                if is_collected { before } else { 0 },
                if is_youngest { pinned.min(promoted) } else { 0 },
                promoted,
                if is_youngest { BUDGET } else { after / 2 },
            ]));
        }
        if self.clr.heap.pinned_heap {
            generations.push(generation([0; 6]));
        }
        let [p0, p1, ..] = promoted;
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

    /// A heap's part of the size of each generation.
    fn shares(&self, sizes: [u64; 4], heap: u32) -> [u64; 4] {
        sizes.map(|size| self.clr.heap.share(size, heap))
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
