//! The garbage collector: allocations and handles.
//!
//! `collect` performs a collection from the suspension of the threads to their resumption,
//! `history` reports what newer runtimes report at its end.

mod collect;
mod history;

use etl_schema::encode::OwnedValue;

use super::heap::{Handle, Segment, Sizes};
use super::op::{ClrOp, OpEffect};
use super::raise::Runtime;
use super::state::Clr;
use crate::error::Result;
use crate::etw::values;
use crate::model::{ClrWork, GcPlan, HandleKind};
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
    (
        "System.Collections.Generic.Dictionary`2+Entry[System.String,System.Object][]",
        false,
    ),
    ("System.Threading.Tasks.Task", false),
    ("System.Int32[]", false),
    ("System.Text.StringBuilder", false),
    ("System.IO.FileStream", true),
    ("Microsoft.Win32.SafeHandles.SafeFileHandle", true),
];
/// How many of them programs allocate by themselves; the others come with files.
const COMMON: usize = 8;

/// The name of a type.
fn type_name(kind: usize) -> &'static str {
    TYPES.get(kind).map_or("", |(name, _)| name)
}

/// What was allocated since the last allocation tick, and the object that the tick reports.
struct Allocation {
    amount: u64,
    kind: usize,
    large: bool,
    address: u64,
    object: u64,
    heap: u32,
}

impl Runtime<'_, '_> {
    /// The heap that a thread allocates on: one processor, one heap.
    fn heap_of(&self) -> u32 {
        u32::from(self.origin.processor) % self.clr.heap.heaps.max(1)
    }

    fn segment_sizes(&self) -> Sizes {
        Sizes::new(self.clr.is_core(7), self.process.pointer_size)
    }

    /// Reserves the first segments.
    pub fn start_heap(&mut self) -> Result<()> {
        self.grow_heap()?;
        self.clr.heap.settle();
        Ok(())
    }

    /// A session enables the private provider: the collector reports its settings and, under the
    /// runtime provider, its segments. This is how a session gets the segments of a process that
    /// runs already.
    pub fn report_heap(&mut self) -> Result<OpEffect> {
        self.emit_settings()?;
        for segment in self.clr.heap.segments.clone() {
            self.emit_segment(&segment)?;
        }
        Ok(OpEffect::default())
    }

    /// The sizes of segments, and whether this is the collector for servers.
    pub fn emit_settings(&mut self) -> Result<()> {
        let sizes = self.segment_sizes();
        let values = values![
            sizes.small(),
            sizes.large(),
            self.clr.heap.heaps > 1,
            self.clr.instance
        ];
        self.raise_private(2, 1, &values)
    }

    fn emit_segment(&mut self, segment: &Segment) -> Result<()> {
        let Segment {
            address,
            size,
            kind,
            ..
        } = *segment;
        self.raise(
            5,
            1,
            &values![address, size, kind as u32, self.clr.instance],
        )
    }

    fn grow_heap(&mut self) -> Result<()> {
        let sizes = self.segment_sizes();
        for segment in self.clr.heap.grow(sizes, &mut self.process.space) {
            self.emit_segment(&segment)?;
        }
        Ok(())
    }

    /// Allocates as much as lies between two allocation ticks, and collects when the budget is
    /// used up.
    pub fn allocate(&mut self) -> Result<OpEffect> {
        self.pass(20 * MICROSECOND);
        let rng = &mut self.clr.heap.rng;
        let amount = TICK + rng.below(8192);
        let kind = rng.pick(COMMON);
        let large = rng.below(50) == 0;
        let object = 24 + rng.below(4096);
        let slot = if large { 3 } else { 0 };
        if let Some(size) = self.clr.heap.sizes.get_mut(slot) {
            *size += amount;
        }
        self.clr.heap.fresh += amount;
        // Some files are not closed: their finalizers run.
        self.clr.heap.ticks += 1;
        self.clr.heap.dying += u32::from(self.clr.heap.ticks.is_multiple_of(FILES));
        self.grow_heap()?;
        let index = self.heap_of();
        let address = self.clr.heap.place(index, amount, large);
        let tick = Allocation {
            amount,
            kind,
            large,
            address,
            object,
            heap: index,
        };
        self.emit_tick(&tick)?;
        self.emit_sample(&tick)?;
        self.emit_domain(amount)?;
        let mut then = Vec::new();
        let budget = BUDGET * u64::from(self.clr.heap.heaps.max(1));
        if self.clr.heap.fresh >= budget {
            self.clr.heap.fresh = 0;
            let [young, middle] = self.clr.heap.since;
            let generation = if middle >= 8 { 2 } else { u8::from(young >= 6) };
            let background = generation == 2;
            let plan = GcPlan {
                generation,
                background,
                ..GcPlan::default()
            };
            then.push(ClrOp::Work(ClrWork::Gc(plan)));
        }
        Ok(OpEffect {
            cost: 30 * MICROSECOND,
            then,
            ..OpEffect::default()
        })
    }

    fn emit_tick(&mut self, tick: &Allocation) -> Result<()> {
        let Allocation {
            amount,
            kind,
            address,
            object,
            heap,
            ..
        } = *tick;
        let bytes = amount as u32;
        let large = u32::from(tick.large);
        let instance = self.clr.instance;
        let of_type = self.clr.type_id(kind);
        let name = type_name(kind);
        let mut values: Vec<OwnedValue> =
            values![bytes, large, instance, amount, of_type, name, heap].into();
        let version = 2 + u8::from(self.clr.is_4_5()) + u8::from(self.clr.is_core(8));
        values.extend((version >= 3).then_some(address.into()));
        values.extend((version >= 4).then_some(object.into()));
        self.raise(10, version, &values)
    }

    /// Samples of allocations, with the type after the first of its kind.
    fn emit_sample(&mut self, sample: &Allocation) -> Result<()> {
        let Allocation {
            amount,
            kind,
            address,
            object,
            ..
        } = *sample;
        let asked = self.asked();
        let instance = self.clr.instance;
        let of_type = self.clr.type_id(kind);
        let count = (amount / object.max(1)) as u32;
        for id in [20, 32] {
            self.raise(id, 0, &values![address, of_type, count, amount, instance])?;
        }
        self.emit_type(
            kind,
            asked.raises(4, keyword::SAMPLED_HIGH | keyword::SAMPLED_LOW),
        )?;
        let name = type_name(kind);
        let offset = amount / 2;
        self.raise(
            303,
            0,
            &values![0u32, instance, of_type, name, address, object, offset],
        )
    }

    /// Reports a type once, if an event that names it is `wanted`.
    fn emit_type(&mut self, kind: usize, wanted: bool) -> Result<()> {
        let bit = 1u64 << (kind % 64);
        let is_reported = self.clr.heap.emitted_types & bit != 0;
        if is_reported || !wanted || !self.asked().raises(4, keyword::TYPE) {
            return self.skip(false, 15, 0);
        }
        self.clr.heap.emitted_types |= bit;
        let Some((name, finalizable)) = TYPES.get(kind) else {
            return Ok(());
        };
        let array = name.ends_with("[]");
        let flags = u32::from(*finalizable) << 1 | u32::from(array) << 3;
        // Classes and arrays of one dimension, as signatures have them.
        let element = if array { 0x1du8 } else { 0x12 };
        let module = self.clr.modules.first().map_or(0, |m| m.id);
        let token = 0x0200_0002 + kind as u32;
        let none = OwnedValue::Array(Vec::new());
        let id = self.clr.type_id(kind);
        let type_item = OwnedValue::Struct(
            values![id, module, token, flags, element, *name, 0u32, none].into(),
        );
        self.raise(
            15,
            0,
            &values![1u32, self.clr.instance, OwnedValue::Array(vec![type_item])],
        )
    }

    /// Bytes allocated in the domain of the program.
    fn emit_domain(&mut self, amount: u64) -> Result<()> {
        let heap = &mut self.clr.heap;
        heap.domain_bytes = heap.domain_bytes.saturating_add(amount);
        let all = heap.domain_bytes;
        let fresh = heap.domain_bytes_since.saturating_add(amount);
        heap.domain_bytes_since = fresh % DOMAIN_TICK;
        if fresh < DOMAIN_TICK {
            return Ok(());
        }
        let domain = self.clr.own_domain();
        self.raise(83, 0, &values![domain, all, self.clr.instance])
    }

    /// The program takes a handle.
    pub fn take_handle(&mut self, kind: HandleKind) -> Result<OpEffect> {
        if self.clr.handle_table == 0 {
            self.clr.handle_table = self.process.space.region(0x1_0000);
        }
        let Handle { id, object, kind } = self.clr.heap.hold(kind as u32, self.clr.handle_table);
        let domain = self.clr.own_domain();
        self.raise(
            30,
            0,
            &values![id, object, kind, 0u32, domain, self.clr.instance],
        )?;
        Ok(OpEffect::after(MICROSECOND))
    }

    /// The program frees its latest handle.
    pub fn free_handle(&mut self) -> Result<OpEffect> {
        if let Some(handle) = self.clr.heap.handles.pop() {
            self.raise(31, 0, &values![handle.id, self.clr.instance])?;
        }
        Ok(OpEffect::after(MICROSECOND))
    }

    /// The program adds or removes memory pressure: native memory that objects own.
    pub fn press(&mut self, bytes: i64) -> Result<OpEffect> {
        let id = if bytes >= 0 { 200 } else { 201 };
        self.raise(id, 0, &values![bytes.unsigned_abs(), self.clr.instance])?;
        Ok(OpEffect::after(MICROSECOND))
    }
}

impl Clr {
    pub fn type_id(&self, kind: usize) -> u64 {
        self.domains.first().map_or(0, |d| d.id) + 0x40_0000 + kind as u64 * 0x40
    }
}
