//! The heap: allocations, and collections of each kind.

use etl_schema::encode::OwnedValue;

use super::raise::{Ctx, values};
use super::state::Clr;
use super::{ClrOp, Done};
use crate::error::Result;
use crate::machine::{MICROSECOND, MILLISECOND};
use crate::model::{GcPlan, Sku};

/// What the runtime counts between two of its ticks.
const TICK: u64 = 102_400;
/// What may be allocated between two collections of generation 0.
const BUDGET: u64 = 6 << 20;

/// Types that programs allocate.
const TYPES: [&str; 8] = [
    "System.String",
    "System.Byte[]",
    "System.Char[]",
    "System.Object[]",
    "System.Collections.Generic.Dictionary`2+Entry[System.String,System.Object][]",
    "System.Threading.Tasks.Task",
    "System.Int32[]",
    "System.Text.StringBuilder",
];

/// What is on the heap.
#[derive(Clone, Debug, Default)]
pub(crate) struct Heap {
    /// Bytes in generations 0 to 2 and among the large objects.
    pub sizes: [u64; 4],
    /// Collections so far.
    pub collections: u32,
    /// Of generation 0 since the last of generation 1, and of 1 since the last of 2.
    since: [u32; 2],
    /// Allocated since the last collection.
    fresh: u64,
    next_address: u64,
    pub handles: u32,
}

impl Clr {
    /// Allocates as much as lies between two ticks of the runtime, and collects when the budget is
    /// used up.
    pub(super) fn allocate(&mut self, ctx: &mut Ctx<'_, '_>) -> Result<Done> {
        ctx.pass(20 * MICROSECOND);
        let amount = TICK + ctx.dice.below(8192);
        let kind = ctx.dice.pick(TYPES.len());
        let large = ctx.dice.below(50) == 0;
        if self.heap.next_address == 0 {
            self.heap.next_address = ctx.process.space.heap(0x1000_0000);
        }
        let address = self.heap.next_address + self.heap.fresh % 0x1000_0000;
        let slot = if large { 3 } else { 0 };
        if let Some(size) = self.heap.sizes.get_mut(slot) {
            *size += amount;
        }
        self.heap.fresh += amount;
        let type_id = self.domains.first().map_or(0, |d| d.id) + 0x40_0000 + kind as u64 * 0x40;
        let name = TYPES.get(kind).copied().unwrap_or_default();
        let mut values: Vec<OwnedValue> = values![
            u32::try_from(amount).unwrap_or(u32::MAX),
            u32::from(large),
            self.instance,
            amount,
            OwnedValue::Pointer(type_id),
            name,
            0u32,
        ]
        .into();
        let [major, ..] = self.version;
        let version = match (self.sku, major) {
            (Sku::Desktop, _) => 2,
            (Sku::Core, ..8) => 3,
            (Sku::Core, _) => 4,
        };
        if version >= 3 {
            values.push(OwnedValue::Pointer(address));
        }
        if version >= 4 {
            values.push((24 + ctx.dice.below(4096)).into());
        }
        self.raise(10, version, &values, ctx)?;
        let mut then = Vec::new();
        if self.heap.fresh >= BUDGET {
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
            then.push(ClrOp::Collect(GcPlan { generation, induced: false, background }));
        }
        Ok(Done { cost: 30 * MICROSECOND, then })
    }

    /// A collection: everybody is stopped, the heap is cleaned, everybody goes on.
    pub(super) fn collect(&mut self, plan: &GcPlan, ctx: &mut Ctx<'_, '_>) -> Result<Done> {
        self.heap.collections += 1;
        let (number, instance) = (self.heap.collections, self.instance);
        // 1: for a collection; 6: to prepare one in the background.
        let reason = if plan.background { 6u32 } else { 1 };
        self.raise(9, 1, &values![reason, number - 1, instance], ctx)?;
        let halting = 10 * MICROSECOND + ctx.dice.below(60 * MICROSECOND);
        ctx.pass(halting);
        self.raise(8, 1, &values![instance], ctx)?;

        let depth = u32::from(plan.generation);
        let cause = if plan.induced { 1u32 } else { 0 };
        let kind = u32::from(plan.background);
        match self.sku {
            Sku::Desktop => {
                self.raise(1, 1, &values![number, depth, cause, kind, instance], ctx)?;
            }
            Sku::Core => {
                let values = values![number, depth, cause, kind, instance, 0u64];
                self.raise(1, 2, &values, ctx)?;
            }
        }
        let before: u64 = self.heap.sizes.iter().sum();
        let promoted = self.heap.clean(plan.generation);
        ctx.pass(100 * MICROSECOND + before / 4096 * MICROSECOND / 4);
        self.raise(2, 1, &values![number, depth, instance], ctx)?;
        self.tell_heap(&promoted, ctx)?;
        self.raise(7, 1, &values![instance], ctx)?;
        ctx.pass(8 * MICROSECOND);
        self.raise(3, 1, &values![instance], ctx)?;
        if plan.generation > 0 {
            // The finalizer has something to do.
            self.raise(14, 1, &values![instance], ctx)?;
            ctx.pass(40 * MICROSECOND);
            let count = 1 + ctx.dice.below(20) as u32;
            self.raise(13, 1, &values![count, instance], ctx)?;
        }
        Ok(Done::after(MILLISECOND / 4))
    }

    fn tell_heap(&mut self, promoted: &[u64; 4], ctx: &mut Ctx<'_, '_>) -> Result<()> {
        let [gen0, gen1, gen2, large] = self.heap.sizes;
        let [p0, p1, p2, p3] = *promoted;
        let mut values: Vec<OwnedValue> = values![
            gen0,
            p0,
            gen1,
            p1,
            gen2,
            p2,
            large,
            p3,
            p0 / 64,
            p0 / 4096,
            0u32,
            1u32,
            self.heap.handles,
            self.instance,
        ]
        .into();
        let [major, ..] = self.version;
        // The pinned-object heap came with .NET 5.
        let version = if self.sku == Sku::Core && major >= 5 { 2 } else { 1 };
        if version == 2 {
            values.extend(values![0u64, 0u64]);
        }
        self.raise(4, version, &values, ctx)
    }
}

impl Heap {
    /// Collects generations up to this one: what survives moves one up. Bytes promoted, by
    /// generation.
    fn clean(&mut self, generation: u8) -> [u64; 4] {
        let [young, middle, old, large] = self.sizes;
        let survived = |size: u64, share: u64| size / 100 * share;
        let [since0, since1] = self.since;
        let mut promoted = [survived(young, 12), 0, 0, 0];
        let mut sizes = [0, middle + survived(young, 12), old, large];
        self.since = [since0 + 1, since1];
        if generation >= 1 {
            let up = survived(middle, 30);
            promoted = [survived(young, 12), up, 0, 0];
            sizes = [0, survived(young, 12), old + up, large];
            self.since = [0, since1 + 1];
        }
        if generation >= 2 {
            let [.., old, _] = sizes;
            let (keep, keep_large) = (survived(old, 70), survived(large, 50));
            promoted = [survived(young, 12), survived(middle, 30), keep, keep_large];
            sizes = [0, survived(young, 12), keep, keep_large];
            self.since = [0, 0];
        }
        self.sizes = sizes;
        promoted
    }
}
