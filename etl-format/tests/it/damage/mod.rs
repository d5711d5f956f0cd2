//! One test for each kind of damage: what is still readable, and the exact damage map.

mod buffers;
mod bytes;
mod header;
mod limits;
mod records;
mod sessions;
mod silent;

use crate::common::reading::{Outcome, file_order, salvage, sound, strict};
use crate::common::small;
use etl_format::ErrorKind;

/// Size of the buffers of [`small`].
const SIZE: usize = 0x400;
/// Size of its records.
const RECORD: usize = 0x28;

/// File offset of a record of [`small`].
fn at(buffer: usize, record: usize) -> usize {
    buffer * SIZE + 0x48 + record * RECORD
}

/// The timestamps of the undamaged trace that were not read; no other timestamp was read.
fn lost(outcome: &Outcome, whole: &[u8]) -> Vec<i64> {
    outcome.end.as_ref().expect("salvage goes on to the end");
    let timestamps = outcome.timestamps();
    let all = sound(whole);
    assert!(
        timestamps
            .iter()
            .all(|s| all.iter().any(|r| r.timestamp == *s)),
        "nothing is made up"
    );
    all.iter()
        .map(|r| r.timestamp)
        .filter(|s| !timestamps.contains(s))
        .collect()
}

/// The error of strict mode: offset, code, bytes needed and found.
fn strict_fault(bytes: &[u8]) -> (u64, &'static str, Option<(u64, u64)>) {
    let error = file_order(bytes, &strict()).end.expect_err("a fault");
    let found = match error.kind {
        ErrorKind::Truncated { need, have, .. } => Some((need, have)),
        _ => None,
    };
    (error.offset, error.code(), found)
}

fn broken(change: impl FnOnce(&mut Vec<u8>)) -> Vec<u8> {
    let mut bytes = small().bytes();
    change(&mut bytes);
    bytes
}

#[test]
fn intact_trace_has_no_damage() {
    let whole = small().bytes();
    let outcome = salvage(&whole);
    assert_eq!(
        (
            outcome.records.len(),
            outcome.damage.len(),
            outcome.notes.len()
        ),
        (25, 0, 0)
    );
    assert!(outcome.end.is_ok());
}
