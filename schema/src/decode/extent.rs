//! Lengths of values in a payload, with a budget against hostile counts.
//!
//! Each step of a walk over nested arrays is counted. The payload's size limits the steps, so that
//! counts in a hostile payload cannot make the walk long: an element of no bytes takes one step.

use super::plan::{Op, Shape, Slots, load};
use super::text::{ansi_len, utf16_len};
use crate::model::{Count, Length};
use etl_format::cursor::Bytes;

/// Steps that a walk may take beyond one for each byte of the payload.
const SPARE_STEPS: usize = 4096;

/// What a walk may still do.
#[derive(Debug)]
pub(super) struct Budget(usize);

impl Budget {
    pub(super) fn new(data: &[u8]) -> Self {
        Budget(data.len().saturating_add(SPARE_STEPS))
    }

    fn step(&mut self) -> bool {
        match self.0.checked_sub(1) {
            Some(left) => {
                self.0 = left;
                true
            }
            None => false,
        }
    }
}

/// Where a variable value starts and ends within `data`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Span {
    /// First byte of the value (after a length prefix).
    pub(super) start: usize,
    /// End of the value.
    pub(super) end: usize,
    /// Where the next value starts (after a NUL).
    pub(super) next: usize,
    /// Whether the value was cut by the end of the payload.
    pub(super) clipped: bool,
}

/// The extent of text or binary with a resolved length.
#[inline]
pub(super) fn text_span(shape: Shape, length: Length, data: &[u8]) -> Option<Span> {
    let unit = if shape == Shape::Utf16 { 2 } else { 1 };
    Some(match length {
        Length::NulTerminated | Length::Natural => {
            if data.len() < unit {
                return None;
            }
            match shape {
                Shape::Utf16 => {
                    let (end, next) = utf16_len(data);
                    // Half a code unit is left over: no value can follow.
                    let clipped = end == next && end < data.len();
                    Span {
                        start: 0,
                        end,
                        next,
                        clipped,
                    }
                }
                Shape::Ansi | Shape::Utf8 => {
                    let (end, next) = ansi_len(data);
                    Span {
                        start: 0,
                        end,
                        next,
                        clipped: false,
                    }
                }
                _ => sized_span(data, 0, data.len()),
            }
        }
        Length::Fixed(n) => {
            let len = usize::from(n) * unit;
            if len > 0 && data.is_empty() {
                return None;
            }
            sized_span(data, 0, len)
        }
        Length::U16 => sized_span(data, 2, usize::from(data.u16_at(0)?)),
        Length::U16BigEndian => sized_span(data, 2, usize::from(data.u16_at(0)?.swap_bytes())),
        Length::U32 => sized_span(
            data,
            4,
            usize::try_from(data.u32_at(0)?).unwrap_or(usize::MAX),
        ),
        Length::Rest => sized_span(data, 0, data.len()),
        // References are resolved before.
        Length::Field(_) => return None,
    })
}

/// The span of a value of `len` bytes, cut at the end of the payload.
#[inline]
fn sized_span(data: &[u8], start: usize, len: usize) -> Span {
    let available = data.len().saturating_sub(start);
    let clipped = len > available;
    let end = start + len.min(available);
    Span {
        start,
        end,
        next: end,
        clipped,
    }
}

/// The span of a SID, or of the kernel's SID field; an empty value if that field has no SID.
pub(super) fn sid_span(shape: Shape, data: &[u8]) -> Option<Span> {
    let start = match shape {
        Shape::WbemSid(pointer) => {
            let start = pointer.checked_mul(2)?;
            if data.u32_at(0)? == 0 && !is_sid_after_zeros(data, start) {
                return Some(Span {
                    start: 4,
                    end: 4,
                    next: 4,
                    clipped: false,
                });
            }
            start
        }
        _ => 0,
    };
    let end = start + 8 + usize::from(data.u8_at(start + 1)?) * 4;
    (end <= data.len()).then_some(Span {
        start,
        end,
        next: end,
        clipped: false,
    })
}

/// Whether a SID follows zeros instead of pointers. Events of the kernel can lose the pointers when
/// a program logs them again.
fn is_sid_after_zeros(data: &[u8], pointers: usize) -> bool {
    let Some((zeros, sid)) = data.split_at_checked(pointers) else {
        return false;
    };
    // Revision 1, up to 15 sub-authorities, and an authority below 256.
    matches!(sid, [1, 1..=15, 0, 0, 0, 0, 0, _, ..]) && zeros.iter().all(|byte| *byte == 0)
}

/// The bytes of the kernel's SID field at the start of `data`, for pointers of this width.
pub(crate) fn wbem_sid_len(pointer: usize, data: &[u8]) -> Option<usize> {
    sid_span(Shape::WbemSid(pointer), data).map(|span| span.next)
}

/// The bytes of one value of `op` at the start of `data` that ends at `next`: without a count
/// before them, and without the NUL after text.
pub(super) fn value_range(
    op: &Op,
    length: Length,
    data: &[u8],
    next: usize,
) -> std::ops::Range<usize> {
    let span = match op.shape {
        _ if op.size.is_some() => None,
        Shape::Sid | Shape::WbemSid(_) => sid_span(op.shape, data),
        Shape::Utf16 | Shape::Ansi | Shape::Utf8 | Shape::Binary | Shape::BinaryIpv6 => {
            text_span(op.shape, length, data)
        }
        _ => None,
    };
    span.map_or(0..next, |span| span.start..span.end)
}

/// The length of one value of `op` at the start of `data`; `None` if `data` ends within it.
fn element_len(
    op: &Op,
    length: Length,
    data: &[u8],
    top: &Slots,
    budget: &mut Budget,
) -> Option<usize> {
    if !budget.step() {
        return None;
    }
    if let Some(size) = op.size {
        return (size <= data.len()).then_some(size);
    }
    match op.shape {
        Shape::Sid | Shape::WbemSid(_) => sid_span(op.shape, data).map(|s| s.next),
        Shape::Struct => struct_len(op, data, top, budget),
        shape => {
            let span = text_span(shape, length, data)?;
            (!span.clipped).then_some(span.next)
        }
    }
}

/// The length of one struct of variable size; `None` if `data` ends within it.
pub(super) fn struct_len(op: &Op, data: &[u8], top: &Slots, budget: &mut Budget) -> Option<usize> {
    let mut here = Slots::default();
    let mut offset = 0usize;
    for member in &op.members {
        let rest = data.get(offset..)?;
        let extent = field_extent(member, rest, &here, top, budget)?;
        if extent.clipped {
            return None;
        }
        keep(member, rest, &mut here);
        offset = offset.checked_add(extent.next)?;
    }
    Some(offset)
}

/// Keeps the value of a counting field.
#[inline]
pub(super) fn keep(op: &Op, data: &[u8], slots: &mut Slots) {
    if let Some(slot) = op.keep
        && let Some(slot) = slots.get_mut(usize::from(slot))
    {
        let value = op.shape.scalar(data).and_then(|v| v.as_u64()).unwrap_or(0);
        *slot = u16::try_from(value).unwrap_or(u16::MAX);
    }
}

/// Where a field's values are.
#[derive(Debug, Clone, Copy)]
pub(super) struct Extent {
    /// First byte of the first element (after a count prefix).
    pub(super) start: usize,
    /// Where the next field starts.
    pub(super) next: usize,
    /// Elements that are not cut.
    pub(super) count: usize,
    /// Whether elements are missing.
    pub(super) clipped: bool,
}

/// The extent of a field at the start of `data`; `None` if `data` ends before it.
pub(super) fn field_extent(
    op: &Op,
    data: &[u8],
    here: &Slots,
    top: &Slots,
    budget: &mut Budget,
) -> Option<Extent> {
    let length = op.length(here, top);
    if op.count == Count::One {
        let next = element_len(op, length, data, top, budget)?;
        return Some(Extent {
            start: 0,
            next,
            count: 1,
            clipped: false,
        });
    }
    let (start, wanted) = match op.count {
        Count::One => (0, Some(1)),
        Count::Const(n) => (0, Some(usize::from(n))),
        Count::Field(slot) => (0, Some(load(slot, here, top))),
        Count::Prefixed => (2, Some(usize::from(data.u16_at(0)?))),
        Count::Rest => (0, None),
    };
    let rest = data.get(start..)?;
    match op.size {
        Some(size) if size > 0 => fixed_extent(size, rest, start, wanted),
        _ => variable_extent(op, length, rest, start, wanted, top, budget),
    }
}

/// The extent of elements of a fixed size. They begin at `start`, where `rest` begins; `wanted` is
/// their number, or `None` for as many as there are.
fn fixed_extent(size: usize, rest: &[u8], start: usize, wanted: Option<usize>) -> Option<Extent> {
    let fit = rest.len() / size;
    let count = wanted.unwrap_or(fit).min(fit);
    let clipped = wanted.is_some_and(|wanted| wanted > fit);
    if clipped && rest.is_empty() && start == 0 {
        return None;
    }
    let bytes = if clipped { rest.len() } else { count * size };
    Some(Extent {
        start,
        next: start + bytes,
        count,
        clipped,
    })
}

/// The same for elements of variable size.
fn variable_extent(
    op: &Op,
    length: Length,
    rest: &[u8],
    start: usize,
    wanted: Option<usize>,
    top: &Slots,
    budget: &mut Budget,
) -> Option<Extent> {
    let mut offset = 0usize;
    let mut count = 0usize;
    let mut empty = 0usize;
    while wanted.is_none_or(|w| count < w) {
        let left = rest.get(offset..)?;
        if wanted.is_none() && left.is_empty() {
            break;
        }
        match element_len(op, length, left, top, budget) {
            // "The rest" of values without bytes would never end.
            Some(0) if wanted.is_none() => break,
            // Any number of them would cost nothing to ask for.
            Some(0) if empty >= op.empty => break,
            Some(len) => {
                offset += len;
                count += 1;
                empty += usize::from(len == 0);
            }
            None => {
                if count == 0 && left.is_empty() && start == 0 {
                    return None;
                }
                return Some(Extent {
                    start,
                    next: start + offset,
                    count,
                    clipped: true,
                });
            }
        }
    }
    Some(Extent {
        start,
        next: start + offset,
        count,
        clipped: false,
    })
}
