//! A garbage collection: all threads are suspended, the heap is collected, all threads resume.

use etl_schema::encode::OwnedValue;

use super::{COMMON, TYPES};
use crate::clr::heap::{PINNED_SIZE, Range};
use crate::clr::op::{ClrOp, OpEffect, TargetThread};
use crate::clr::raise::Context;
use crate::clr::state::Clr;
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

impl Clr {
    pub fn collect(&mut self, plan: &GcPlan, ctx: &mut Context<'_, '_>) -> Result<OpEffect> {
        self.heap.collections += 1;
        let (number, instance) = (self.heap.collections, self.instance);
        // 1: for a collection; 6: to prepare one in the background.
        let why = if plan.background { 6u32 } else { 1 };
        self.raise(9, 1, &values![why, number - 1, instance], ctx)?;
        let halting = 10 * MICROSECOND + ctx.rng.below(60 * MICROSECOND);
        ctx.pass(halting);
        self.raise(8, 1, &values![instance], ctx)?;

        let reason = u32::from(plan.induced);
        if self.is_core(0) || self.is_desktop(4, 5) {
            self.raise(35, 0, &values![reason, instance], ctx)?;
        }
        let (depth, kind) = (u32::from(plan.generation), u32::from(plan.background));
        // .NET Framework raises two versions since 4.5.
        if self.is_desktop(0, 0) {
            self.raise(1, 1, &values![number, depth, reason, kind, instance], ctx)?;
        }
        if self.is_core(0) || self.is_desktop(4, 5) {
            let values = values![number, depth, reason, kind, instance, 0u64];
            self.raise(1, 2, &values, ctx)?;
        }
        if plan.background && !self.heap.background_thread {
            self.heap.background_thread = true;
            self.raise(11, 1, &values![instance], ctx)?;
        }
        self.emit_ranges(ctx)?;

        let old: Vec<Range> = (0..self.heap.heaps).flat_map(|h| self.heap.ranges(h)).collect();
        let before = self.heap.sizes;
        let all: u64 = before.iter().sum();
        let promoted = self.heap.clean(plan.generation);
        let collection = Collection {
            generation: plan.generation,
            reason,
            background: plan.background,
            large: plan.compact && plan.generation >= 2,
            before,
            promoted,
        };
        ctx.pass(100 * MICROSECOND + all / 4096 * MICROSECOND / 8);
        self.emit_marks(&collection, ctx)?;
        ctx.pass(all / 4096 * MICROSECOND / 8);
        self.emit_survivors(&collection, &old, ctx)?;
        self.grow_heap(ctx)?;
        for segment in self.heap.shrink() {
            self.raise(6, 1, &values![segment.address, instance], ctx)?;
        }
        self.heap.settle();
        self.emit_history(&collection, ctx)?;
        self.emit_ranges(ctx)?;
        self.raise(2, 1, &values![number, depth, instance], ctx)?;
        let found = self.heap.dying.min(MAX_FINALIZED);
        self.heap.dying = 0;
        self.emit_heap(&promoted, found, ctx)?;
        self.emit_domains(&collection, ctx)?;
        self.raise(7, 1, &values![instance], ctx)?;
        ctx.pass(8 * MICROSECOND);
        self.raise(3, 1, &values![instance], ctx)?;
        let mut done = OpEffect::after(MILLISECOND / 4);
        // The finalizer has a thread of its own, which wakes up after each collection.
        done.other_threads.push((TargetThread::Runtime, ClrOp::Finalize(found, ctx.origin.at)));
        Ok(done)
    }

    /// The address ranges of the generations. The keyword differs between the products.
    fn emit_ranges(&mut self, ctx: &mut Context<'_, '_>) -> Result<()> {
        if !(self.is_core(0) || self.is_desktop(4, 5)) {
            return Ok(());
        }
        let asked = self.asked(ctx);
        let keyword = if self.is_core(0) { keyword::GC_SURVIVAL } else { keyword::GC };
        if !asked.raises(4, keyword) {
            return Ok(());
        }
        for heap in 0..self.heap.heaps {
            for range in self.heap.ranges(heap) {
                let Range { generation, start, used, reserved } = range;
                let start = OwnedValue::Pointer(start);
                let values = values![generation, start, used, reserved, self.instance];
                self.raise(23, 0, &values, ctx)?;
            }
        }
        Ok(())
    }

    /// Marking: .NET Framework reports the kinds of roots, .NET Core the bytes that each keeps
    /// alive.
    fn emit_marks(&mut self, collection: &Collection, ctx: &mut Context<'_, '_>) -> Result<()> {
        let instance = self.instance;
        let alive: u64 = collection.promoted.iter().sum();
        let partial = collection.generation < 2;
        for heap in 0..self.heap.heaps {
            if self.is_desktop(4, 5) {
                for id in [25, 26, 27].into_iter().chain(partial.then_some(28)) {
                    self.raise(id, 0, &values![heap, instance], ctx)?;
                }
            } else if self.is_core(0) {
                let share = self.heap.share(alive, heap);
                // Stack, finalizer, handles; the rest are older generations.
                let (stack, finalizer, handles) = (share / 2, share / 16, share / 8);
                let older = share - stack - finalizer - handles;
                let roots = [(0u32, stack), (1, finalizer), (2, handles)];
                let roots = roots.into_iter().chain(partial.then_some((3, older)));
                for (root, bytes) in roots {
                    self.raise(202, 0, &values![heap, instance, root, bytes], ctx)?;
                }
            }
        }
        self.emit_joins(ctx)?;
        let pinned: Vec<_> = self.heap.pinned().copied().collect();
        for handle in pinned {
            let (id, object) = (OwnedValue::Pointer(handle.id), OwnedValue::Pointer(handle.object));
            let values = values![id, object, PINNED_SIZE, "System.Byte[]", instance];
            self.raise(33, 0, &values, ctx)?;
        }
        Ok(())
    }

    /// The threads of several heaps join.
    fn emit_joins(&mut self, ctx: &mut Context<'_, '_>) -> Result<()> {
        if self.heap.heaps < 2 || !self.is_core(3) {
            return Ok(());
        }
        let last = self.heap.heaps - 1;
        for step in 0..2u32 {
            for heap in 0..self.heap.heaps {
                // The last thread does not wait.
                let kind = u32::from(heap != last);
                self.raise(203, 2, &values![heap, step, kind, self.instance, 0u32], ctx)?;
            }
        }
        Ok(())
    }

    /// Survivors: those that were moved, and those that stayed in place.
    fn emit_survivors(
        &mut self,
        collection: &Collection,
        old: &[Range],
        ctx: &mut Context<'_, '_>,
    ) -> Result<()> {
        if !self.asked(ctx).raises(4, keyword::GC_SURVIVAL) {
            return Ok(());
        }
        let moves = !collection.background;
        let (mut stayed, mut moved) = (Vec::new(), Vec::new());
        for (number, size) in collection.promoted.iter().enumerate() {
            let Some(range) = old.iter().find(|r| usize::from(r.generation) == number) else {
                continue;
            };
            let length = (*size).min(range.used);
            if length == 0 {
                continue;
            }
            let start = OwnedValue::Pointer(range.start);
            if moves && (number < 3 || collection.large) {
                // Compacted at the start of the next generation.
                let into = (number + 1).min(if number < 3 { 2 } else { 3 });
                let of = |r: &&Range| usize::from(r.generation) == into;
                let base = self.heap.ranges(0).iter().find(of).map_or(range.start, |r| r.start);
                let to = OwnedValue::Pointer(base);
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
            let values = values![0u32, count, self.instance, OwnedValue::Array(ranges)];
            self.raise(id, 0, &values, ctx)?;
        }
        Ok(())
    }

    fn emit_heap(
        &mut self,
        promoted: &[u64; 4],
        found: u32,
        ctx: &mut Context<'_, '_>,
    ) -> Result<()> {
        let [gen0, gen1, gen2, large] = self.heap.sizes;
        let [p0, p1, p2, p3] = *promoted;
        let (count, bytes) = (u64::from(found), u64::from(found) * 64);
        let pinned = self.heap.pinned().count() as u32;
        let (handles, id) = (self.heap.handles.len() as u32, self.instance);
        let mut values: Vec<OwnedValue> = values![
            gen0, p0, gen1, p1, gen2, p2, large, p3, bytes, count, pinned, 1u32, handles, id
        ]
        .into();
        // The heap of pinned objects came with .NET 5.
        let version = if self.heap.pinned_heap { 2 } else { 1 };
        if version == 2 {
            values.extend(values![0u64, 0u64]);
        }
        self.raise(4, version, &values, ctx)
    }

    /// Bytes that survived in each domain of a full collection.
    fn emit_domains(&mut self, collection: &Collection, ctx: &mut Context<'_, '_>) -> Result<()> {
        if collection.generation < 2 || collection.background {
            return Ok(());
        }
        let all: u64 = self.heap.sizes.iter().sum();
        let own = self.own_domain();
        let domains: Vec<u64> = self.domains.iter().filter(|d| d.loaded).map(|d| d.id).collect();
        for domain in domains {
            let survived = if domain == own { all } else { 0 };
            self.raise(84, 0, &values![domain, survived, all, self.instance], ctx)?;
        }
        Ok(())
    }

    /// The finalizer runs for the objects that a collection found.
    pub fn finalize(
        &mut self,
        count: u32,
        since: Nanos,
        ctx: &mut Context<'_, '_>,
    ) -> Result<OpEffect> {
        ctx.until(since + 40 * MICROSECOND);
        self.raise(14, 1, &values![self.instance], ctx)?;
        for number in 0..count {
            let kind = COMMON + number as usize % (TYPES.len() - COMMON);
            let of_type = OwnedValue::Pointer(self.type_id(kind));
            let object = OwnedValue::Pointer(self.heap.object(0, 64));
            self.raise(29, 0, &values![of_type, object, self.instance], ctx)?;
            if self.asked(ctx).raises(5, keyword::GC) {
                self.emit_type(kind, ctx)?;
            }
            ctx.pass(MICROSECOND);
        }
        self.raise(13, 1, &values![count, self.instance], ctx)?;
        Ok(OpEffect::after(5 * MICROSECOND))
    }
}
