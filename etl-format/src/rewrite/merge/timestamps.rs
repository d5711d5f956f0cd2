//! Converts the timestamps of a record to another clock: in its header and in known payloads.

use crate::Ticks;
use crate::constants::{ExtendedType, RecordKind, hook};
use crate::cursor::Bytes;
use crate::read::{RawItem, Record, timestamp_offset};
use crate::write::put::overwrite;

use super::Relation;

/// Copies a record with its timestamps converted to `out`, and returns the new timestamp of the
/// record.
pub(super) fn convert(record: &Record<'_>, relation: &Relation, out: &mut Vec<u8>) -> Ticks {
    out.clear();
    out.extend_from_slice(record.bytes());
    let timestamp = relation.timestamp(record.timestamp());
    if let Some(offset) = timestamp_offset(record.kind(), record.bytes()) {
        overwrite(out, offset, &timestamp.get().to_le_bytes());
    }
    match record.hook().and_then(|hook| payload_value(record, hook)) {
        Some(Value::Timestamp(offset)) => {
            convert_i64(out, offset, |old| relation.timestamp(Ticks::new(old)).get());
        }
        Some(Value::Counted(offset)) => convert_i64(out, offset, |old| relation.counted(old)),
        None => {}
    }
    if let Some(offset) = counter_distance(record) {
        convert_i64(out, offset, |old| relation.counted(old));
    }
    timestamp
}

/// Replaces the 64-bit number at an offset, if the record has one there.
fn convert_i64(record: &mut [u8], offset: usize, new: impl Fn(i64) -> i64) {
    if let Some(old) = record.i64_at(offset) {
        overwrite(record, offset, &new(old).to_le_bytes());
    }
}

/// A value in a payload that depends on a clock, with its offset in the record.
enum Value {
    Timestamp(usize),
    /// A duration of the performance counter, also if the session has another clock.
    Counted(usize),
}

/// Offset of the value of an event's QPC_DELTA item: the difference between its counter and the
/// counter of the root partition.
fn counter_distance(record: &Record<'_>) -> Option<usize> {
    const ITEM_HEADER: usize = 8;
    let mut items = record.extended();
    loop {
        let item = items.position();
        let RawItem { kind, data } = items.next_raw()?;
        if kind == ExtendedType::QPC_DELTA && data.len() >= 8 {
            return Some(item + ITEM_HEADER);
        }
    }
}

/// The 64 bits in the payload of some kernel events that depend on a clock.
fn payload_value(record: &Record<'_>, id: u16) -> Option<Value> {
    let payload = record.bytes().len() - record.payload().len();
    let pointer = record.pointer_size()?.bytes();
    Some(match id {
        // Partitions: the difference between their counter and the root's, after two numbers.
        hook::PARTITION_INFO => Value::Counted(payload + 8),
        // Stacks: the timestamp of their event, by which they are found.
        hook::STACK | hook::STACK_KEY_KERNEL | hook::STACK_KEY_USER => Value::Timestamp(payload),
        // Interrupts and deferred calls, and hard faults: when they began.
        hook::ISR_MSI | hook::THREADED_DPC | hook::ISR | hook::DPC | hook::TIMER_DPC => {
            Value::Timestamp(payload)
        }
        hook::HARD_FAULT => Value::Timestamp(payload),
        // Disk reads and writes: their duration, after numbers, an offset and two pointers.
        hook::DISK_READ | hook::DISK_WRITE => Value::Counted(payload + 24 + 2 * pointer),
        // Disk flushes: the same after two numbers.
        hook::DISK_FLUSH => Value::Counted(payload + 8),
        _ => return None,
    })
}

/// Whether a record is the header event.
pub(super) fn is_header_event(record: &Record<'_>) -> bool {
    record.hook() == Some(hook::HEADER)
        && matches!(record.kind(), RecordKind::SYSTEM32 | RecordKind::SYSTEM64)
}
