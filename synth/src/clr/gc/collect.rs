//! A garbage collection: all threads are suspended, the heap is collected, all threads resume.

use etl_schema::encode::OwnedValue;

use super::{COMMON, TYPES};
use crate::clr::heap::{Handle, PINNED_SIZE, Range};
use crate::clr::op::{ClrOp, OpEffect, TargetThread};
use crate::clr::raise::Runtime;
use crate::error::Result;
use crate::etw::values;
use crate::model::GcPlan;
use crate::time::{MICROSECOND, MILLISECOND, Nanos};
use etl_schema::clr::keyword;

/// Objects that one collection finds for the finalizer at most.
const MAX_FINALIZED: u32 = 1000;

/// A collection that runs.
pub(super) struct Collection {
    pub generation: u8,
    pub reason: u32,
    pub background: bool,
    /// Whether the large objects are put together as well.
    pub large: bool,
    pub before: [u64; 4],
    pub promoted: [u64; 4],
}

impl Runtime<'_, '_> {
    pub fn collect(&mut self, plan: &GcPlan) -> Result<OpEffect> {
        // One collection at a time: the next one waits for the end of the last.
        self.pass(self.clr.heap.free_at.saturating_sub(self.origin.at));
        self.clr.heap.collections += 1;
        let number = self.clr.heap.collections;
        let instance = self.clr.instance;
        // 1: for a collection; 6: to prepare one in the background.
        let why = if plan.background { 6u32 } else { 1 };
        self.raise(9, 1, &values![why, number - 1, instance])?;
        let halting = 10 * MICROSECOND + self.clr.heap.rng.below(60 * MICROSECOND);
        self.pass(halting);
        self.raise(8, 1, &values![instance])?;

        let reason = u32::from(plan.induced);
        self.raise(35, 0, &values![reason, instance])?;
        let depth = u32::from(plan.generation);
        let kind = u32::from(plan.background);
        // .NET Framework raises two versions since 4.5.
        if self.clr.is_desktop(0, 0) {
            self.raise(1, 1, &values![number, depth, reason, kind, instance])?;
        }
        if self.clr.is_4_5() {
            let values = values![number, depth, reason, kind, instance, 0u64];
            self.raise(1, 2, &values)?;
        }
        if plan.background && !self.clr.heap.background_thread {
            self.clr.heap.background_thread = true;
            self.raise(11, 1, &values![instance])?;
        }
        self.emit_ranges()?;

        let old: Vec<Range> = (0..self.clr.heap.heaps)
            .flat_map(|h| self.clr.heap.ranges(h))
            .collect();
        let before = self.clr.heap.sizes;
        let all: u64 = before.iter().sum();
        let promoted = self.clr.heap.clean(plan.generation);
        let collection = Collection {
            generation: plan.generation,
            reason,
            background: plan.background,
            large: plan.compact && plan.generation >= 2,
            before,
            promoted,
        };
        self.pass(100 * MICROSECOND + all / 4096 * MICROSECOND / 8);
        self.emit_marks(&collection)?;
        self.pass(all / 4096 * MICROSECOND / 8);
        self.emit_survivors(&collection, &old)?;
        self.grow_heap()?;
        for segment in self.clr.heap.shrink() {
            self.raise(6, 1, &values![segment.address, instance])?;
        }
        self.clr.heap.settle();
        self.emit_history(&collection)?;
        self.emit_ranges()?;
        self.raise(2, 1, &values![number, depth, instance])?;
        let finalizable = self.clr.heap.dying.min(MAX_FINALIZED);
        self.clr.heap.dying = 0;
        self.emit_heap(&promoted, finalizable)?;
        self.emit_domains(&collection)?;
        self.raise(7, 1, &values![instance])?;
        self.pass(8 * MICROSECOND);
        self.raise(3, 1, &values![instance])?;
        self.clr.heap.free_at = self.origin.at;
        let mut done = OpEffect::after(MILLISECOND / 4);
        // The finalizer has a thread of its own, which wakes up after each collection.
        done.other_threads.push((
            TargetThread::Finalizer,
            ClrOp::Finalize(finalizable, self.origin.at),
        ));
        Ok(done)
    }

    /// The address ranges of the generations.
    fn emit_ranges(&mut self) -> Result<()> {
        for heap in 0..self.clr.heap.heaps {
            for range in self.clr.heap.ranges(heap) {
                let Range {
                    generation,
                    start,
                    used,
                    reserved,
                } = range;
                let values = values![generation, start, used, reserved, self.clr.instance];
                self.raise(23, 0, &values)?;
            }
        }
        Ok(())
    }

    /// Marking: .NET Framework reports the kinds of roots, .NET Core the bytes that each keeps
    /// alive.
    fn emit_marks(&mut self, collection: &Collection) -> Result<()> {
        let instance = self.clr.instance;
        let alive: u64 = collection.promoted.iter().sum();
        let partial = collection.generation < 2;
        for heap in 0..self.clr.heap.heaps {
            for id in [25, 26, 27].into_iter().chain(partial.then_some(28)) {
                self.raise(id, 0, &values![heap, instance])?;
            }
            let share = self.clr.heap.share(alive, heap);
            // Stack, finalizer, handles; the rest are older generations.
            let stack = share / 2;
            let finalizer = share / 16;
            let handles = share / 8;
            let older = share - stack - finalizer - handles;
            let roots = [(0u32, stack), (1, finalizer), (2, handles)];
            for (root, bytes) in roots.into_iter().chain(partial.then_some((3, older))) {
                self.raise(202, 0, &values![heap, instance, root, bytes])?;
            }
        }
        self.emit_joins()?;
        let pinned: Vec<_> = self.clr.heap.pinned().copied().collect();
        for Handle { id, object, .. } in pinned {
            let values = values![id, object, PINNED_SIZE, "System.Byte[]", instance];
            self.raise(33, 0, &values)?;
        }
        Ok(())
    }

    /// If there are several heaps, their threads join.
    fn emit_joins(&mut self) -> Result<()> {
        if self.clr.heap.heaps < 2 {
            return Ok(());
        }
        let last = self.clr.heap.heaps - 1;
        for step in 0..2u32 {
            for heap in 0..self.clr.heap.heaps {
                // The last thread does not wait.
                let kind = u32::from(heap != last);
                self.raise(203, 2, &values![heap, step, kind, self.clr.instance, 0u32])?;
            }
        }
        Ok(())
    }

    /// Survivors that were moved, and survivors that stayed in place.
    fn emit_survivors(&mut self, collection: &Collection, old: &[Range]) -> Result<()> {
        let moves = !collection.background;
        let mut stayed = Vec::new();
        let mut moved = Vec::new();
        for (number, size) in collection.promoted.iter().enumerate() {
            let Some(range) = old.iter().find(|r| usize::from(r.generation) == number) else {
                continue;
            };
            let length = (*size).min(range.used);
            if length == 0 {
                continue;
            }
            let start = range.start;
            if moves && (number < 3 || collection.large) {
                // Compacted at the start of the next generation.
                let into = (number + 1).min(if number < 3 { 2 } else { 3 });
                let ranges = self.clr.heap.ranges(0);
                let target = ranges.iter().find(|r| usize::from(r.generation) == into);
                let to = target.map_or(range.start, |r| r.start);
                moved.push(OwnedValue::Struct(values![start, to, length].into()));
            } else {
                stayed.push(OwnedValue::Struct(values![start, length].into()));
            }
        }
        for (id, ranges) in [(21, stayed), (22, moved)] {
            if ranges.is_empty() {
                continue;
            }
            let count = ranges.len() as u32;
            let values = values![0u32, count, self.clr.instance, OwnedValue::Array(ranges)];
            self.raise(id, 0, &values)?;
        }
        Ok(())
    }

    fn emit_heap(&mut self, promoted: &[u64; 4], found: u32) -> Result<()> {
        let heap = &self.clr.heap;
        let sizes = heap.sizes.into_iter().zip(*promoted);
        let mut values: Vec<OwnedValue> = sizes
            .flat_map(|(size, promoted)| values![size, promoted])
            .collect();
        let count = u64::from(found);
        let pinned = heap.pinned().count() as u32;
        let handles = heap.handles.len() as u32;
        values.extend(values![
            count * 64,
            count,
            pinned,
            1u32,
            handles,
            self.clr.instance
        ]);
        // The heap of pinned objects came with .NET 5.
        let version = if self.clr.heap.pinned_heap { 2 } else { 1 };
        if version == 2 {
            values.extend(values![0u64, 0u64]);
        }
        self.raise(4, version, &values)
    }

    /// Bytes that are known to have survived in each domain: all after a full collection, and those
    /// of the collected generations after others.
    fn emit_domains(&mut self, collection: &Collection) -> Result<()> {
        let full = collection.generation >= 2;
        let sizes = if full {
            &self.clr.heap.sizes
        } else {
            &collection.promoted
        };
        let all: u64 = sizes.iter().sum();
        let own_domain = self.clr.own_domain();
        let domains: Vec<u64> = self
            .clr
            .domains
            .iter()
            .filter(|d| d.loaded)
            .map(|d| d.id)
            .collect();
        for domain in domains {
            let survived = if domain == own_domain { all } else { 0 };
            self.raise(84, 0, &values![domain, survived, all, self.clr.instance])?;
        }
        Ok(())
    }

    /// The finalizer runs for the objects that a collection found.
    pub fn finalize(&mut self, count: u32, since: Nanos) -> Result<OpEffect> {
        self.until(since + 40 * MICROSECOND);
        self.raise(14, 1, &values![self.clr.instance])?;
        for number in 0..count {
            let kind = COMMON + number as usize % (TYPES.len() - COMMON);
            let of_type = self.clr.type_id(kind);
            let object = self.clr.heap.object(0, 64);
            self.raise(29, 0, &values![of_type, object, self.clr.instance])?;
            let wanted = self.asked().raises(5, keyword::GC);
            self.emit_type(kind, wanted)?;
            self.pass(MICROSECOND);
        }
        self.raise(13, 1, &values![count, self.clr.instance])?;
        Ok(OpEffect::after(5 * MICROSECOND))
    }
}
