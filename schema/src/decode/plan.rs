//! Lists of fields, compiled for 32-bit or for 64-bit pointers.

use super::Reach;
use crate::model::{Count, Field, FieldKind, FieldRef, InType, Length, OutType};
use etl_format::constants::PointerSize;
use std::collections::BTreeMap;
use std::ops::RangeFrom;

/// Counts that are kept at a time. A list of fields ends before one whose count could not be kept.
pub(super) const SLOTS: usize = 16;

/// Structs within structs; members below are left out.
pub(crate) const MAX_DEPTH: usize = 16;

/// Elements without bytes that an array has, by the number of arrays around it. Where elements take
/// bytes the payload bounds how many there can be; these could be any number, and arrays of them in
/// each other that number to any power.
const EMPTY: [u16; 4] = [16, 4, 4, 4];

/// The values of counting fields, by slot. A payload is shorter than 64 KiB, so a count that does
/// not fit means "more than there can be" and saturates.
pub(super) type Slots = [u16; SLOTS];

/// How to read one value.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Shape {
    Null,
    I8,
    U8,
    I16,
    U16,
    I32,
    U32,
    I64,
    U64,
    F32,
    F64,
    Bool8,
    Bool16,
    Bool32,
    Char8,
    Char16,
    Port,
    Guid,
    Pointer32,
    Pointer64,
    FileTime,
    SystemTime,
    Ipv4,
    Sid,
    WbemSid(usize),
    Utf16,
    Ansi,
    Utf8,
    Binary,
    BinaryIpv6,
    Struct,
}

/// The value of a counting field. In compiled fields a reference names a slot instead of a field.
#[inline]
pub(super) fn load(reference: FieldRef, here: &Slots, top: &Slots) -> usize {
    let value = match reference {
        FieldRef::Here(slot) => here.get(usize::from(slot)),
        FieldRef::Top(slot) => top.get(usize::from(slot)),
    };
    usize::from(value.copied().unwrap_or(0))
}

/// A slot that does not exist: counts 0.
const NOWHERE: FieldRef = FieldRef::Here(u16::MAX);

/// One field, compiled.
#[derive(Debug, Clone)]
pub(super) struct Op {
    pub(super) shape: Shape,
    /// Number of values and length of each; references are to slots.
    pub(super) count: Count,
    pub(super) length: Length,
    /// The slot in which this field's value is kept for others.
    pub(super) keep: Option<u8>,
    /// The size of one value in bytes, if it is always the same.
    pub(super) size: Option<usize>,
    /// Most elements that an array of elements without bytes can have.
    pub(super) empty: usize,
    pub(super) members: Vec<Op>,
    /// The number of the field: see [`Fields::next_numbered`](super::Fields::next_numbered).
    pub(super) number: usize,
    /// The run of fields from this one on, which is skipped at once.
    pub(super) run: Run,
}

/// Consecutive fields that have a fixed size and count no others.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Run {
    pub(super) fields: usize,
    pub(super) bytes: usize,
}

impl Run {
    /// The run at the start of a list; empty if its first field is not in a run.
    pub(super) fn at_start_of(ops: &[Op]) -> Self {
        match ops.first() {
            Some(op) => op.run,
            None => Run::default(),
        }
    }
}

impl Op {
    /// The length of each value, without a reference.
    #[inline]
    pub(super) fn length(&self, here: &Slots, top: &Slots) -> Length {
        match self.length {
            Length::Field(slot) => {
                Length::Fixed(u16::try_from(load(slot, here, top)).unwrap_or(u16::MAX))
            }
            other => other,
        }
    }

    /// The number of values, if it is fixed.
    fn times(&self) -> Option<usize> {
        match self.count {
            Count::One => Some(1),
            Count::Const(n) => Some(usize::from(n)),
            _ => None,
        }
    }

    /// How far the field reaches.
    pub(super) fn reach(&self) -> Reach {
        if let Some(size) = self.size
            && let Some(times) = self.times()
            && let Some(bytes) = size.checked_mul(times)
        {
            return match u16::try_from(bytes) {
                Ok(bytes) => Reach::Fixed(bytes),
                Err(_) => Reach::Open,
            };
        }
        match (self.count, self.shape, self.length) {
            (Count::One, Shape::Utf16, Length::NulTerminated) => Reach::Utf16,
            (Count::One, Shape::Ansi | Shape::Utf8, Length::NulTerminated) => Reach::Ansi,
            (Count::One, Shape::WbemSid(pointer), _) => Reach::Sid(pointer),
            _ => Reach::Open,
        }
    }
}

/// The top level: fields to operations.
pub(super) fn compile(fields: &[Field], pointers: PointerSize) -> Vec<Op> {
    let top = slots(fields, true);
    let mut numbers = 0..;
    let scope = Scope {
        here: &top,
        top: &top,
    };
    let mut ops = list(fields, scope, pointers, Nesting::default(), &mut numbers);
    let mut run = Run::default();
    for op in ops.iter_mut().rev() {
        let bytes = match (op.count, op.size, op.keep) {
            (Count::One, Some(size), None) => run.bytes.checked_add(size),
            _ => None,
        };
        run = match bytes {
            Some(bytes) => Run {
                fields: run.fields + 1,
                bytes,
            },
            None => Run::default(),
        };
        op.run = run;
    }
    ops
}

/// A counting field, and the slot of its value.
struct CounterSlot {
    /// The index of the field.
    index: u16,
    slot: u8,
}

/// The slot of a counting field for which none was free.
const NO_SLOT: u8 = SLOTS as u8;

/// Indices of top-level fields that a field or its members refer to.
fn top_references(field: &Field, depth: usize, out: &mut Vec<u16>) {
    for reference in references(field) {
        if let FieldRef::Top(index) = reference {
            out.push(index);
        }
    }
    if let FieldKind::Struct(members) = &field.kind
        && depth < MAX_DEPTH
    {
        for member in members {
            top_references(member, depth + 1, out);
        }
    }
}

fn references(field: &Field) -> impl Iterator<Item = FieldRef> {
    let count = match field.count {
        Count::Field(reference) => Some(reference),
        _ => None,
    };
    let length = match field.length {
        Length::Field(reference) => Some(reference),
        _ => None,
    };
    count.into_iter().chain(length)
}

/// Assigns slots to the counting fields of a list. A slot is free again after the last field that
/// needs its value.
fn slots(fields: &[Field], is_top: bool) -> Vec<CounterSlot> {
    let mut last_uses = BTreeMap::new();
    for (index, field) in (0..=u16::MAX).zip(fields) {
        let mut counters = Vec::new();
        for reference in references(field) {
            if let FieldRef::Here(counter) = reference {
                counters.push(counter);
            }
        }
        if is_top {
            top_references(field, 0, &mut counters);
        }
        for counter in counters {
            if counter < index && can_count(fields, counter) {
                last_uses.insert(counter, index);
            }
        }
    }
    let mut used_until = [0; SLOTS];
    let mut slots = Vec::new();
    for (index, last_use) in last_uses {
        let slot = take_slot(&mut used_until, index, last_use);
        slots.push(CounterSlot { index, slot });
    }
    slots
}

/// Whether the field with this index is a single integer.
fn can_count(fields: &[Field], index: u16) -> bool {
    match fields.get(usize::from(index)) {
        Some(field) => field.count == Count::One && field.in_type().is_some_and(InType::is_integer),
        None => false,
    }
}

/// Takes a slot that is free at a field, until its last use.
fn take_slot(used_until: &mut [u16; SLOTS], index: u16, last_use: u16) -> u8 {
    for (slot, used_until) in (0..).zip(used_until) {
        if *used_until <= index {
            *used_until = last_use;
            return slot;
        }
    }
    NO_SLOT
}

fn slot_of(slots: &[CounterSlot], index: u16) -> Option<u8> {
    let slot = slots.iter().find(|slot| slot.index == index)?;
    Some(slot.slot)
}

/// The slots that a list of fields can refer to.
#[derive(Clone, Copy)]
struct Scope<'s> {
    here: &'s [CounterSlot],
    top: &'s [CounterSlot],
}

impl Scope<'_> {
    /// A reference to the slot of a counting field, for the field with this index in its list and
    /// in the top level. `None` if no slot was free for the counting field.
    fn resolve(self, reference: FieldRef, index: u16, outermost: u16) -> Option<FieldRef> {
        // A field cannot be counted by a later field.
        let slot = match reference {
            FieldRef::Here(counter) if counter < index => slot_of(self.here, counter),
            FieldRef::Top(counter) if counter < outermost => slot_of(self.top, counter),
            _ => None,
        };
        match (reference, slot) {
            (_, Some(NO_SLOT)) => None,
            (_, None) => Some(NOWHERE),
            (FieldRef::Here(_), Some(slot)) => Some(FieldRef::Here(slot.into())),
            (FieldRef::Top(_), Some(slot)) => Some(FieldRef::Top(slot.into())),
        }
    }
}

/// How deep a list of fields is nested, and in which field of the top level.
#[derive(Clone, Copy, Default)]
struct Nesting {
    structs: usize,
    arrays: usize,
    outermost: u16,
}

fn list(
    fields: &[Field],
    scope: Scope<'_>,
    pointers: PointerSize,
    nesting: Nesting,
    numbers: &mut RangeFrom<usize>,
) -> Vec<Op> {
    let mut ops = Vec::with_capacity(fields.len());
    for (index, field) in fields.iter().enumerate() {
        let index = u16::try_from(index).unwrap_or(u16::MAX);
        let outermost = if nesting.structs == 0 {
            index
        } else {
            nesting.outermost
        };
        let count = match field.count {
            Count::Field(counter) => match scope.resolve(counter, index, outermost) {
                Some(slot) => Count::Field(slot),
                None => break,
            },
            other => other,
        };
        let length = match field.length {
            Length::Field(counter) => match scope.resolve(counter, index, outermost) {
                Some(slot) => Length::Field(slot),
                None => break,
            },
            other => other,
        };
        let number = numbers.next().unwrap_or(usize::MAX);
        let (shape, members) = match &field.kind {
            FieldKind::Value(ty) => (shape(*ty, field.out, pointers), Vec::new()),
            FieldKind::Struct(_) if nesting.structs >= MAX_DEPTH => (Shape::Null, Vec::new()),
            FieldKind::Struct(fields) => {
                let slots = slots(fields, false);
                let members_scope = Scope {
                    here: &slots,
                    top: scope.top,
                };
                let inner = Nesting {
                    structs: nesting.structs + 1,
                    arrays: nesting.arrays + usize::from(field.count != Count::One),
                    outermost,
                };
                let mut members = list(fields, members_scope, pointers, inner, numbers);
                if members.len() < fields.len() {
                    break;
                }
                if field.aligned {
                    pad(&mut members);
                }
                (Shape::Struct, members)
            }
        };
        let size = fixed_size(shape, length, &members);
        let keep = slot_of(scope.here, index);
        let empty = EMPTY.get(nesting.arrays).copied().unwrap_or(1).into();
        ops.push(Op {
            shape,
            count,
            length,
            keep,
            size,
            empty,
            members,
            number,
            run: Run::default(),
        });
    }
    ops
}

/// Adds to each member the padding that C has after it. Structs with members of variable size have
/// no padding.
fn pad(members: &mut [Op]) {
    let Some(widest) = members.iter().map(alignment).max() else {
        return;
    };
    let mut next_alignments: Vec<usize> = members.iter().skip(1).map(alignment).collect();
    next_alignments.push(widest);
    let mut end = 0usize;
    for (member, next_alignment) in members.iter_mut().zip(next_alignments) {
        let Some(size) = &mut member.size else {
            return;
        };
        if member.count != Count::One {
            return;
        }
        end = end.saturating_add(*size);
        let next = end.next_multiple_of(next_alignment);
        *size += next - end;
        end = next;
    }
}

/// The alignment of a member in C.
fn alignment(op: &Op) -> usize {
    match op.size {
        Some(2) => 2,
        Some(4) => 4,
        Some(8) => 8,
        _ => 1,
    }
}

fn fixed_size(shape: Shape, length: Length, members: &[Op]) -> Option<usize> {
    match (shape, length) {
        (Shape::Struct, _) => members.iter().try_fold(0usize, |sum, op| {
            sum.checked_add(op.size?.checked_mul(op.times()?)?)
        }),
        (Shape::Utf16, Length::Fixed(n)) => Some(usize::from(n) * 2),
        (Shape::Ansi | Shape::Utf8 | Shape::Binary | Shape::BinaryIpv6, Length::Fixed(n)) => {
            Some(usize::from(n))
        }
        (shape, _) => shape.size(),
    }
}

fn shape(ty: InType, out: OutType, pointers: PointerSize) -> Shape {
    match (ty, out) {
        (InType::Null, _) => Shape::Null,
        (InType::Utf16, _) => Shape::Utf16,
        (InType::Ansi, OutType::Utf8 | OutType::Xml | OutType::Json) => Shape::Utf8,
        (InType::Ansi, _) => Shape::Ansi,
        (InType::Int8 | InType::UInt8, OutType::Boolean) => Shape::Bool8,
        (InType::Int16 | InType::UInt16, OutType::Boolean) => Shape::Bool16,
        (InType::Int32 | InType::UInt32, OutType::Boolean) => Shape::Bool32,
        (InType::Int8 | InType::UInt8, OutType::String) => Shape::Char8,
        (InType::UInt16, OutType::String) => Shape::Char16,
        (InType::UInt16, OutType::Port) => Shape::Port,
        (InType::UInt32, OutType::Ipv4) => Shape::Ipv4,
        (InType::Int8, _) => Shape::I8,
        (InType::UInt8, _) => Shape::U8,
        (InType::Int16, _) => Shape::I16,
        (InType::UInt16, _) => Shape::U16,
        (InType::Int32, _) => Shape::I32,
        (InType::UInt32 | InType::HexInt32, _) => Shape::U32,
        (InType::Int64, _) => Shape::I64,
        (InType::UInt64 | InType::HexInt64, _) => Shape::U64,
        (InType::Float, _) => Shape::F32,
        (InType::Double, _) => Shape::F64,
        (InType::Boolean, _) => Shape::Bool32,
        (InType::Binary, OutType::Ipv6) => Shape::BinaryIpv6,
        (InType::Binary, _) => Shape::Binary,
        (InType::Guid, _) => Shape::Guid,
        (InType::Pointer, _) if pointers == PointerSize::P4 => Shape::Pointer32,
        (InType::Pointer, _) => Shape::Pointer64,
        (InType::SizeT, _) if pointers == PointerSize::P4 => Shape::U32,
        (InType::SizeT, _) => Shape::U64,
        (InType::FileTime, _) => Shape::FileTime,
        (InType::SystemTime, _) => Shape::SystemTime,
        (InType::Sid, _) => Shape::Sid,
        (InType::WbemSid, _) => Shape::WbemSid(pointers.bytes()),
    }
}
