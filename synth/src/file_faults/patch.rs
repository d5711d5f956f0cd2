//! Changes of numbers in the headers of a finished file, in place.

use etl_format::constants::{BUFFER_HEADER_SIZE, PointerSize};
use etl_format::read::{Options, Order, Trace};

use super::problem::Problem;
use crate::model::{Amount, BufferField, HeaderField};

/// Bytes of the header event's own header.
const RECORD_HEADER: usize = 0x20;

/// Offset in the payload of the header event, with 8-byte pointers, and width.
const fn header_place(field: HeaderField) -> (usize, usize) {
    match field {
        HeaderField::Build => (0x08, 4),
        HeaderField::Processors => (0x0c, 4),
        HeaderField::EndTime => (0x10, 8),
        HeaderField::Buffers => (0x24, 4),
        HeaderField::EventsLost => (0x30, 4),
        HeaderField::BootTime => (0xf8, 8),
        HeaderField::StartTime => (0x108, 8),
        HeaderField::BuffersLost => (0x114, 4),
    }
}

/// Offset after the two pointers of the header event.
const AFTER_POINTERS: usize = 0x48;

/// Offset in the header of a buffer, and width.
const fn buffer_place(field: BufferField) -> (usize, usize) {
    match field {
        BufferField::Sequence => (0x18, 8),
        BufferField::Processor => (0x28, 2),
    }
}

pub(super) fn header(bytes: &mut [u8], field: HeaderField, amount: Amount) -> Result<(), Problem> {
    let pointers = open(bytes)?.header().pointer_size;
    let (at, width) = header_place(field);
    let narrow = pointers == PointerSize::P4 && at >= AFTER_POINTERS;
    let at = at.saturating_sub(if narrow { 8 } else { 0 });
    change(bytes, BUFFER_HEADER_SIZE + RECORD_HEADER + at, width, amount)
}

pub(super) fn buffer(
    bytes: &mut [u8],
    nth: i64,
    field: BufferField,
    amount: Amount,
) -> Result<(), Problem> {
    let start = nth_buffer(bytes, nth)?;
    let (at, width) = buffer_place(field);
    change(bytes, start.saturating_add(at), width, amount)
}

/// The last record of a buffer gets a size larger than the rest of the buffer.
pub(super) fn damage(bytes: &mut [u8], nth: i64) -> Result<(), Problem> {
    let start = nth_buffer(bytes, nth)?;
    let mut last = None;
    {
        let mut trace = open(bytes)?;
        let mut records = trace.records(Order::File)?;
        while let Some(record) = records.next_record()? {
            let place = record.location();
            if usize::try_from(place.buffer_offset) == Ok(start) {
                let offset = place.buffer_offset.saturating_add(place.in_buffer.into());
                last = Some((offset, record.is_kernel()));
            }
        }
    }
    let (offset, kernel) = last.ok_or("the buffer is empty")?;
    let at = usize::try_from(offset).map_err(|_| "too far")?;
    change(bytes, at.saturating_add(if kernel { 4 } else { 0 }), 2, Amount::Set(0xfff0))
}

fn open(bytes: &[u8]) -> Result<Trace<&[u8]>, Problem> {
    Ok(Trace::open(bytes, &Options::default())?)
}

/// The offset of a buffer; `nth` counts from 1, or from -1 backwards.
fn nth_buffer(bytes: &[u8], nth: i64) -> Result<usize, Problem> {
    let trace = open(bytes)?;
    let buffers = trace.buffers();
    let n = usize::try_from(nth.unsigned_abs()).unwrap_or(usize::MAX);
    let at = if nth > 0 { n.checked_sub(1) } else { buffers.len().checked_sub(n) };
    let found = at.and_then(|at| buffers.get(at));
    let found = found.ok_or_else(|| format!("the file has {} buffers", buffers.len()))?;
    Ok(usize::try_from(found.offset).map_err(|_| "too far")?)
}

fn change(bytes: &mut [u8], at: usize, width: usize, amount: Amount) -> Result<(), Problem> {
    let Some(place) = bytes.get_mut(at..at.saturating_add(width)) else {
        return Err(format!("the file ends before {at:#x}").into());
    };
    let mut old = [0; 8];
    for (to, from) in old.iter_mut().zip(place.iter()) {
        *to = *from;
    }
    let new = match amount {
        Amount::Set(n) => n,
        Amount::Raise(by) => i64::from_le_bytes(old).wrapping_add(by),
    };
    for (to, from) in place.iter_mut().zip(new.to_le_bytes()) {
        *to = from;
    }
    Ok(())
}
