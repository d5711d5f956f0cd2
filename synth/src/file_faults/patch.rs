//! Changes of numbers in the headers of a finished file, in place.

use etl_format::constants::offset::{header_event, kernel};
use etl_format::constants::{BUFFER_HEADER_SIZE, PointerSize};
use etl_format::read::{Options, Order, SystemHeader, Trace};

use super::Problem;
use crate::model::{Amount, HeaderField};

pub(super) fn header(bytes: &mut [u8], field: HeaderField, amount: Amount) -> Result<(), Problem> {
    let pointers = open(bytes)?.header().pointer_size;
    let narrow = pointers == PointerSize::P4 && field.offset >= header_event::AFTER_POINTERS;
    let at = field.offset.saturating_sub(if narrow { 8 } else { 0 });
    change(
        bytes,
        BUFFER_HEADER_SIZE + SystemHeader::SIZE + at,
        field.width,
        amount,
    )
}

pub(super) fn buffer(
    bytes: &mut [u8],
    nth: i64,
    field: HeaderField,
    amount: Amount,
) -> Result<(), Problem> {
    let (start, _) = nth_buffer(bytes, nth)?;
    change(
        bytes,
        start.saturating_add(field.offset),
        field.width,
        amount,
    )
}

/// The last record of a buffer gets a size larger than the rest of the buffer.
pub(super) fn damage(bytes: &mut [u8], nth: i64) -> Result<(), Problem> {
    let (start, compressed) = nth_buffer(bytes, nth)?;
    if compressed {
        return Err("the records of this buffer are compressed".into());
    }
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
    let (offset, is_kernel) = last.ok_or("the buffer is empty")?;
    let at = usize::try_from(offset).map_err(|_| "too far")?;
    change(
        bytes,
        at.saturating_add(if is_kernel { kernel::SIZE } else { 0 }),
        2,
        Amount::Set(0xfff0),
    )
}

fn open(bytes: &[u8]) -> Result<Trace<&[u8]>, Problem> {
    Ok(Trace::open(bytes, &Options::default())?)
}

/// The offset of a buffer, and whether it is compressed; `nth` counts from 1, or from -1 backwards.
fn nth_buffer(bytes: &[u8], nth: i64) -> Result<(usize, bool), Problem> {
    let trace = open(bytes)?;
    let buffers = trace.buffers();
    let n = usize::try_from(nth.unsigned_abs()).unwrap_or(usize::MAX);
    let at = if nth > 0 {
        n.checked_sub(1)
    } else {
        buffers.len().checked_sub(n)
    };
    let buffer = at.and_then(|at| buffers.get(at));
    let buffer = buffer.ok_or_else(|| format!("the file has {} buffers", buffers.len()))?;
    Ok((
        usize::try_from(buffer.offset).map_err(|_| "too far")?,
        buffer.compressed,
    ))
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
