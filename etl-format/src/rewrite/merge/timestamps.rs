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
    if let Some(at) = timestamp_offset(record.kind(), record.bytes()) {
        overwrite(out, at, &timestamp.get().to_le_bytes());
    }
    if let Some(at) = record.hook().and_then(|hook| payload_value(record, hook)) {
        let (Value::Timestamp(offset) | Value::Counted(offset)) = at;
        if let Some(old) = out.as_slice().i64_at(offset) {
            let new = match at {
                Value::Timestamp(_) => relation.timestamp(Ticks::new(old)).get(),
                Value::Counted(_) => relation.counted(old),
            };
            overwrite(out, offset, &new.to_le_bytes());
        }
    }
    if let Some(at) = counter_distance(record)
        && let Some(value) = out.as_slice().i64_at(at)
    {
        overwrite(out, at, &relation.counted(value).to_le_bytes());
    }
    timestamp
}

/// A value in a payload that depends on a clock, with its offset in the record.
enum Value {
    Timestamp(usize),
    /// A distance of the performance counter, whatever the session's clock is.
    Counted(usize),
}

/// Offset of the value of an event's QPC_DELTA item: the distance of its counter from the root
/// partition's.
fn counter_distance(record: &Record<'_>) -> Option<usize> {
    let mut items = record.extended();
    loop {
        let at = items.position();
        let RawItem { kind, data } = items.next_raw()?;
        if kind == ExtendedType::QPC_DELTA && data.len() >= 8 {
            return Some(at + 8);
        }
    }
}

/// Kernel events whose payloads hold 64 bits that depend on a clock.
fn payload_value(record: &Record<'_>, id: u16) -> Option<Value> {
    let payload = record.bytes().len() - record.payload().len();
    let pointer = record.pointer_size()?.bytes();
    Some(match id {
        // Partitions: the distance of their counter from the root's, after two numbers.
        hook::PARTITION_INFO => Value::Counted(payload + 8),
        // Stacks: the timestamp of the event they belong to, which has to stay equal.
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

/// Whether a record may be taken as it is.
pub(super) fn is_plain(relation: &Relation) -> bool {
    matches!(relation, Relation::Same)
}

/// Whether a record is the header event.
pub(super) fn is_header_event(record: &Record<'_>) -> bool {
    record.hook() == Some(hook::HEADER)
        && matches!(record.kind(), RecordKind::SYSTEM32 | RecordKind::SYSTEM64)
}
