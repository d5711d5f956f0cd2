//! Lost events.

use etl_nettrace::{Loss, LossTracker, Reader, Ticks};

use crate::write::*;

fn losses(stream: &[u8]) -> Vec<Loss> {
    let mut reader = Reader::new(stream).unwrap();
    let mut tracker = LossTracker::new();
    let mut losses: Vec<Loss> = Vec::new();
    while let Some(item) = reader.next_item().unwrap() {
        losses.extend(tracker.add(&item));
    }
    let sum: u64 = losses.iter().map(|loss| u64::from(loss.lost)).sum();
    assert_eq!((tracker.lost(), tracker.untracked()), (sum, 0));
    losses
}

/// Thread, lost events, and the times around them.
fn summary(loss: &Loss) -> (u64, u32, Option<i64>, Option<i64>) {
    let after = loss.after.map(Ticks::get);
    let before = loss.before.map(Ticks::get);
    (loss.capture_thread, loss.lost, after, before)
}

fn row(capture_thread: u64, sequence: u32, time: u64) -> EventRow {
    EventRow {
        metadata: 1,
        sequence,
        capture_thread,
        time,
        ..EventRow::default()
    }
}

fn found(rows: &[EventRow], points: &[&[(u64, u32)]]) -> Vec<(u64, u32, Option<i64>, Option<i64>)> {
    let mut stream = ObjectStream::new(8);
    stream.metadata(&[metadata_blob(1, "A", 1, "")]);
    stream.events(rows);
    for point in points {
        stream.block("SPBlock", &sequence_point(100, point));
    }
    losses(&stream.finish()).iter().map(summary).collect()
}

#[test]
fn gaps_of_each_thread_are_losses() {
    let rows = [row(1, 1, 10), row(2, 1, 11), row(1, 4, 12), row(2, 2, 13)];
    assert_eq!(found(&rows, &[]), [(1, 2, Some(10), Some(12))]);
}

#[test]
fn events_before_the_first_one_are_losses() {
    assert_eq!(found(&[row(1, 3, 10)], &[]), [(1, 2, None, Some(10))]);
}

#[test]
fn sequence_points_show_losses_at_the_end_and_of_silent_threads() {
    let points: [&[(u64, u32)]; 2] = [&[(1, 3), (2, 7)], &[(1, 3), (2, 7)]];
    let expected = [(1, 2, Some(10), Some(100)), (2, 7, None, Some(100))];
    assert_eq!(found(&[row(1, 1, 10)], &points), expected);
}

#[test]
fn a_thread_id_that_is_used_again_starts_at_1() {
    let rows = [row(1, 1, 10), row(1, 2, 11), row(1, 1, 12), row(1, 2, 13)];
    assert_eq!(found(&rows, &[]), []);
    let rows = [row(1, 1, 10), row(1, 2, 11), row(1, 2, 12)];
    assert_eq!(found(&rows, &[]), [(1, 1, Some(11), Some(12))]);
}

#[test]
fn numbers_start_again_after_32_bits() {
    let last = u32::MAX;
    let rows = [
        row(1, 1, 9),
        row(1, 1 << 30, 9),
        row(1, 1 << 31, 9),
        row(1, last, 10),
        row(1, 1, 11),
    ];
    let lost: Vec<u32> = found(&rows, &[]).iter().map(|loss| loss.1).collect();
    let half = (1 << 30) - 1;
    assert_eq!(lost, [(1 << 30) - 2, half, (1 << 31) - 2, 1]);
}

#[test]
fn removed_threads_show_losses() {
    let found = losses(&sample_of_version_6());
    let start = START_TICKS as i64;
    let expected = (2, 3, Some(start + 20), None);
    assert_eq!(found.iter().map(summary).collect::<Vec<_>>(), [expected]);
}
