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

/// The value of a counting field. In compiled fields a reference has a slot in place of the field.
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
    /// The size of one value in bytes, where it is always the same.
    pub(super) size: Option<usize>,
    /// Most elements that an array of elements without bytes can have.
    pub(super) empty: usize,
    pub(super) members: Vec<Op>,
    /// The number of the field: see [`Fields::next_numbered`](super::Fields::next_numbered).
    pub(super) number: usize,
    /// From this field on, how many fields have a fixed size and count nothing, and their bytes:
    /// they are stepped over at once.
    pub(super) run: (usize, usize),
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

    /// How many values there are, where that is fixed.
    fn times(&self) -> Option<usize> {
        match self.count {
            Count::One => Some(1),
            Count::Const(n) => Some(usize::from(n)),
            _ => None,
        }
    }

    /// How far the field reaches.
    pub(super) fn reach(&self) -> Reach {
        let bytes = self
            .size
            .zip(self.times())
            .and_then(|(size, n)| size.checked_mul(n));
        if let Some(bytes) = bytes {
            return u16::try_from(bytes).map_or(Reach::Open, Reach::Fixed);
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
    let mut ops = list(
        fields,
        &top,
        &top,
        pointers,
        Nesting::default(),
        &mut numbers,
    );
    let mut run = (0usize, 0usize);
    for op in ops.iter_mut().rev() {
        let bytes = match (op.count, op.size, op.keep) {
            (Count::One, Some(size), None) => run.1.checked_add(size),
            _ => None,
        };
        run = bytes.map_or((0, 0), |bytes| (run.0 + 1, bytes));
        op.run = run;
    }
    ops
}

/// The counting fields of a list: `(index, slot)`.
type SlotMap = Vec<(u16, u8)>;

/// In place of the slot of a counting field for which none was free.
const NO_SLOT: u8 = SLOTS as u8;

/// Indices of top-level fields that a field or its members refer to.
fn top_references(field: &Field, depth: usize, out: &mut Vec<u16>) {
    out.extend(references(field).filter_map(|r| match r {
        FieldRef::Top(at) => Some(at),
        FieldRef::Here(_) => None,
    }));
    if let FieldKind::Struct(members) = &field.kind
        && depth < MAX_DEPTH
    {
        members
            .iter()
            .for_each(|member| top_references(member, depth + 1, out));
    }
}

fn references(field: &Field) -> impl Iterator<Item = FieldRef> {
    let count = if let Count::Field(at) = field.count {
        Some(at)
    } else {
        None
    };
    let length = if let Length::Field(at) = field.length {
        Some(at)
    } else {
        None
    };
    count.into_iter().chain(length)
}

/// Assigns slots to the fields of this list that count others. A slot is free again after the last
/// field that is counted by it.
fn slots(fields: &[Field], is_top: bool) -> SlotMap {
    let mut last_uses = BTreeMap::new();
    for (index, field) in (0..=u16::MAX).zip(fields) {
        let mut used = Vec::new();
        used.extend(references(field).filter_map(|r| match r {
            FieldRef::Here(at) => Some(at),
            FieldRef::Top(_) => None,
        }));
        if is_top {
            top_references(field, 0, &mut used);
        }
        let counts = |at: &u16| {
            fields.get(usize::from(*at)).is_some_and(|f| {
                f.count == Count::One && f.in_type().is_some_and(InType::is_integer)
            })
        };
        let before = used.into_iter().filter(|at| *at < index).filter(counts);
        last_uses.extend(before.map(|at| (at, index)));
    }
    let mut in_use_to = [0; SLOTS];
    let slot = |(at, last): (u16, u16)| {
        let free = in_use_to.iter_mut().zip(0..).find(|(to, _)| **to <= at);
        let slot = free.map(|(to, slot)| {
            *to = last;
            slot
        });
        (at, slot.unwrap_or(NO_SLOT))
    };
    last_uses.into_iter().map(slot).collect()
}

fn slot_of(map: &SlotMap, index: u16) -> Option<u8> {
    map.iter()
        .find(|(at, _)| *at == index)
        .map(|(_, slot)| *slot)
}

/// How deep a list of fields stands, and in which field of the top level.
#[derive(Clone, Copy, Default)]
struct Nesting {
    structs: usize,
    arrays: usize,
    outermost: u16,
}

fn list(
    fields: &[Field],
    here: &SlotMap,
    top: &SlotMap,
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
        let mut is_kept = true;
        let mut find = |reference: FieldRef| {
            // A field cannot be counted by one that comes after it.
            let slot = match reference {
                FieldRef::Here(at) => slot_of(here, at).filter(|_| at < index),
                FieldRef::Top(at) => slot_of(top, at).filter(|_| at < outermost),
            };
            is_kept &= slot != Some(NO_SLOT);
            match (reference, slot) {
                (_, None) => NOWHERE,
                (FieldRef::Here(_), Some(slot)) => FieldRef::Here(slot.into()),
                (FieldRef::Top(_), Some(slot)) => FieldRef::Top(slot.into()),
            }
        };
        let count = match field.count {
            Count::Field(at) => Count::Field(find(at)),
            other => other,
        };
        let length = match field.length {
            Length::Field(at) => Length::Field(find(at)),
            other => other,
        };
        if !is_kept {
            break;
        }
        let number = numbers.next().unwrap_or(usize::MAX);
        let (shape, members) = match &field.kind {
            FieldKind::Value(ty) => (shape(*ty, field.out, pointers), Vec::new()),
            FieldKind::Struct(_) if nesting.structs >= MAX_DEPTH => (Shape::Null, Vec::new()),
            FieldKind::Struct(fields) => {
                let slots = slots(fields, false);
                let inner = Nesting {
                    structs: nesting.structs + 1,
                    arrays: nesting.arrays + usize::from(field.count != Count::One),
                    outermost,
                };
                let mut members = list(fields, &slots, top, pointers, inner, numbers);
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
        let keep = slot_of(here, index);
        let run = (0, 0);
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
            run,
        });
    }
    ops
}

/// Adds to each member the padding that C has after it. Structs with members of variable size have
/// none.
fn pad(members: &mut [Op]) {
    let alignment = |op: &Op| {
        op.size
            .filter(|size| matches!(size, 2 | 4 | 8))
            .unwrap_or(1)
    };
    let Some(widest) = members.iter().map(alignment).max() else {
        return;
    };
    let after = members
        .iter()
        .skip(1)
        .map(alignment)
        .chain([widest])
        .collect::<Vec<_>>();
    let mut end = 0usize;
    for (member, after) in members.iter_mut().zip(after) {
        let Some(size) = member.size.as_mut().filter(|_| member.count == Count::One) else {
            return;
        };
        end = end.saturating_add(*size);
        let next = end.next_multiple_of(after);
        *size += next - end;
        end = next;
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
