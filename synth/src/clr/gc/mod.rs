//! The garbage collector: allocations and handles.
//!
//! `collect` performs a collection from the suspension of the threads to their resumption,
//! `history` reports what newer runtimes report at its end.

mod collect;
mod history;

use etl_schema::encode::OwnedValue;

use super::heap::{Kind, Segment, Sizes};
use super::op::{ClrOp, OpEffect};
use super::raise::Context;
use super::state::Clr;
use crate::error::Result;
use crate::etw::values;
use crate::model::{GcPlan, HandleKind};
use crate::time::MICROSECOND;
use etl_schema::clr::keyword;

/// Bytes between two allocation ticks.
const TICK: u64 = 102_400;
/// Bytes allocated between two collections of generation 0.
const BUDGET: u64 = 6 << 20;
/// Ticks between two files that the program opens.
const FILES: u64 = 32;
/// Bytes allocated in a domain between two of its events.
const DOMAIN_TICK: u64 = 4 << 20;

/// Types that programs allocate, and whether they have a finalizer.
const TYPES: [(&str, bool); 10] = [
    ("System.String", false),
    ("System.Byte[]", false),
    ("System.Char[]", false),
    ("System.Object[]", false),
    ("System.Collections.Generic.Dictionary`2+Entry[System.String,System.Object][]", false),
    ("System.Threading.Tasks.Task", false),
    ("System.Int32[]", false),
    ("System.Text.StringBuilder", false),
    ("System.IO.FileStream", true),
    ("Microsoft.Win32.SafeHandles.SafeFileHandle", true),
];
/// How many of them programs allocate by themselves; the others come with files.
const COMMON: usize = 8;

impl Clr {
    pub fn type_id(&self, kind: usize) -> u64 {
        self.domains.first().map_or(0, |d| d.id) + 0x40_0000 + kind as u64 * 0x40
    }

    /// The heap that a thread allocates on: one processor, one heap.
    fn heap_of(&self, ctx: &Context<'_, '_>) -> u32 {
        u32::from(ctx.origin.processor) % self.heap.heaps.max(1)
    }

    fn segment_sizes(&self, ctx: &Context<'_, '_>) -> Sizes {
        Sizes::new(self.is_core(7), ctx.process.pointer_size)
    }

    /// Reserves the first segments.
    pub fn start_heap(&mut self, ctx: &mut Context<'_, '_>) -> Result<()> {
        self.grow_heap(ctx)?;
        self.heap.settle();
        Ok(())
    }

    fn grow_heap(&mut self, ctx: &mut Context<'_, '_>) -> Result<()> {
        let sizes = self.segment_sizes(ctx);
        for segment in self.heap.grow(sizes, &mut ctx.process.space) {
            let Segment { address, size, kind, .. } = segment;
            self.raise(5, 1, &values![address, size, kind as u32, self.instance], ctx)?;
        }
        Ok(())
    }

    /// Allocates as much as lies between two allocation ticks, and collects when the budget is
    /// used up.
    pub fn allocate(&mut self, ctx: &mut Context<'_, '_>) -> Result<OpEffect> {
        ctx.pass(20 * MICROSECOND);
        let amount = TICK + ctx.rng.below(8192);
        let kind = ctx.rng.pick(COMMON);
        let large = ctx.rng.below(50) == 0;
        let object = 24 + ctx.rng.below(4096);
        let slot = if large { 3 } else { 0 };
        if let Some(size) = self.heap.sizes.get_mut(slot) {
            *size += amount;
        }
        self.heap.fresh += amount;
        // Some files are not closed: their finalizers run.
        self.heap.ticks += 1;
        self.heap.dying += u32::from(self.heap.ticks.is_multiple_of(FILES));
        self.grow_heap(ctx)?;
        let index = self.heap_of(ctx);
        let address = if large {
            let segment = self.heap.of(index, Kind::Large).next_back();
            segment.map_or(0, |s| s.address + self.heap.share(self.heap.sizes[3], index) % s.size)
        } else {
            self.heap.object(index, amount)
        };
        self.emit_tick(amount, kind, large, address, object, index, ctx)?;
        self.emit_sample(amount, kind, address, object, ctx)?;
        self.emit_domain(amount, ctx)?;
        let mut then = Vec::new();
        let budget = BUDGET * u64::from(self.heap.heaps.max(1));
        if self.heap.fresh >= budget {
            self.heap.fresh = 0;
            let [young, middle] = self.heap.since;
            let generation = if middle >= 8 {
                2
            } else if young >= 6 {
                1
            } else {
                0
            };
            let background = generation == 2;
            then.push(ClrOp::Collect(GcPlan { generation, background, ..GcPlan::default() }));
        }
        Ok(OpEffect { cost: 30 * MICROSECOND, then, ..OpEffect::default() })
    }

    #[allow(clippy::too_many_arguments, reason = "what an event has")]
    fn emit_tick(
        &mut self,
        amount: u64,
        kind: usize,
        large: bool,
        address: u64,
        object: u64,
        heap: u32,
        ctx: &mut Context<'_, '_>,
    ) -> Result<()> {
        let name = TYPES.get(kind).map_or("", |(name, _)| name);
        let bytes = u32::try_from(amount).unwrap_or(u32::MAX);
        let (is_large, of_type) = (u32::from(large), OwnedValue::Pointer(self.type_id(kind)));
        let mut values: Vec<OwnedValue> =
            values![bytes, is_large, self.instance, amount, of_type, name, heap].into();
        let version = if self.is_core(8) {
            4
        } else if self.is_core(0) || self.is_desktop(4, 5) {
            3
        } else {
            2
        };
        if version >= 3 {
            values.push(OwnedValue::Pointer(address));
        }
        if version >= 4 {
            values.push(object.into());
        }
        self.raise(10, version, &values, ctx)
    }

    /// Samples of allocations, with the type before the first of its kind.
    fn emit_sample(
        &mut self,
        amount: u64,
        kind: usize,
        address: u64,
        object: u64,
        ctx: &mut Context<'_, '_>,
    ) -> Result<()> {
        let asked = self.asked(ctx);
        let of_type = OwnedValue::Pointer(self.type_id(kind));
        let count = u32::try_from(amount / object.max(1)).unwrap_or(u32::MAX);
        for (id, keyword) in [(20, keyword::SAMPLED_HIGH), (32, keyword::SAMPLED_LOW)] {
            if !asked.raises(4, keyword) {
                continue;
            }
            let address = OwnedValue::Pointer(address);
            let values = values![address, of_type.clone(), count, amount, self.instance];
            self.raise(id, 0, &values, ctx)?;
            self.emit_type(kind, ctx)?;
        }
        if self.is_core(10) {
            let name = TYPES.get(kind).map_or("", |(name, _)| name);
            let address = OwnedValue::Pointer(address);
            let offset = amount / 2;
            let values = values![0u32, self.instance, of_type, name, address, object, offset];
            self.raise(303, 0, &values, ctx)?;
        }
        Ok(())
    }

    /// Reports a type once.
    fn emit_type(&mut self, kind: usize, ctx: &mut Context<'_, '_>) -> Result<()> {
        let bit = 1u64 << (kind % 64);
        if self.heap.emitted_types & bit != 0 || !self.asked(ctx).raises(4, keyword::TYPE) {
            return Ok(());
        }
        self.heap.emitted_types |= bit;
        let Some((name, finalizable)) = TYPES.get(kind) else { return Ok(()) };
        let array = name.ends_with("[]");
        let flags = u32::from(*finalizable) << 1 | u32::from(array) << 3;
        // Classes and arrays of one dimension, as signatures have them.
        let element = if array { 0x1du8 } else { 0x12 };
        let module = self.modules.first().map_or(0, |m| m.id);
        let token = 0x0200_0002 + kind as u32;
        let none = OwnedValue::Array(Vec::new());
        let id = self.type_id(kind);
        let of = OwnedValue::Struct(
            values![id, module, token, flags, element, *name, 0u32, none].into(),
        );
        self.raise(15, 0, &values![1u32, self.instance, OwnedValue::Array(vec![of])], ctx)
    }

    /// Bytes allocated in the domain of the program.
    fn emit_domain(&mut self, amount: u64, ctx: &mut Context<'_, '_>) -> Result<()> {
        let (all, fresh) = self.heap.of_domain;
        let (all, fresh) = (all.saturating_add(amount), fresh.saturating_add(amount));
        self.heap.of_domain = (all, fresh % DOMAIN_TICK);
        if fresh < DOMAIN_TICK {
            return Ok(());
        }
        let domain = self.own_domain();
        self.raise(83, 0, &values![domain, all, self.instance], ctx)
    }

    /// The program takes a handle.
    pub fn take_handle(&mut self, kind: HandleKind, ctx: &mut Context<'_, '_>) -> Result<OpEffect> {
        if self.handle_table == 0 {
            self.handle_table = ctx.process.space.region(0x1_0000);
        }
        let handle = self.heap.hold(kind as u32, self.handle_table);
        let (id, object) = (OwnedValue::Pointer(handle.id), OwnedValue::Pointer(handle.object));
        let domain = self.own_domain();
        self.raise(30, 0, &values![id, object, handle.kind, 0u32, domain, self.instance], ctx)?;
        Ok(OpEffect::after(MICROSECOND))
    }

    /// The program frees its latest handle.
    pub fn free_handle(&mut self, ctx: &mut Context<'_, '_>) -> Result<OpEffect> {
        if let Some(handle) = self.heap.handles.pop() {
            self.raise(31, 0, &values![OwnedValue::Pointer(handle.id), self.instance], ctx)?;
        }
        Ok(OpEffect::after(MICROSECOND))
    }

    /// The program adds or removes memory pressure: native memory that objects own.
    pub fn press(&mut self, bytes: u64, more: bool, ctx: &mut Context<'_, '_>) -> Result<OpEffect> {
        let pressure = self.heap.pressure;
        self.heap.pressure =
            if more { pressure.saturating_add(bytes) } else { pressure.saturating_sub(bytes) };
        self.raise(if more { 200 } else { 201 }, 0, &values![bytes, self.instance], ctx)?;
        Ok(OpEffect::after(MICROSECOND))
    }
}
