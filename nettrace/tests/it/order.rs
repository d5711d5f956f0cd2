//! Time order.

use chacha20::ChaCha8Rng;
use etl_nettrace::{Limits, Options, Order, Reader};
use rand::{RngExt, SeedableRng};

use crate::text;
use crate::write::*;

fn row(sequence: u32, time: u64) -> EventRow {
    EventRow {
        metadata: 1,
        sequence,
        time,
        ..EventRow::default()
    }
}

fn barrier(sequence: u32, time: u64) -> EventRow {
    EventRow {
        barrier: true,
        ..row(sequence, time)
    }
}

fn stream() -> ObjectStream {
    let mut stream = ObjectStream::new(8);
    stream.metadata(&[metadata_blob(1, "A", 1, "")]);
    stream
}

/// The numbers of the events in time order, and the number of late events.
fn ordered(stream: &[u8], sorting: u64) -> (Vec<u32>, u64) {
    let options = Options {
        order: Order::Time,
        limits: Limits {
            sorting,
            ..Limits::default()
        },
        ..Options::default()
    };
    let mut reader = Reader::with_options(stream, &options).unwrap();
    let mut numbers = Vec::new();
    while let Some(event) = reader.next_event().unwrap() {
        numbers.push(event.sequence_number);
    }
    (numbers, reader.late_events())
}

#[test]
fn events_are_sorted_between_sequence_points() {
    let mut stream = stream();
    stream.events(&[row(1, 30), row(2, 40)]);
    stream.events(&[row(3, 10), row(4, 30), row(5, 20)]);
    stream.block("SPBlock", &sequence_point(50, &[]));
    stream.events(&[row(6, 60)]);
    stream.events(&[row(7, 55)]);
    let stream = stream.finish();
    assert_eq!(ordered(&stream, u64::MAX), (vec![3, 5, 1, 4, 2, 7, 6], 0));
    let items = text::items(&stream, &text::by_time());
    assert_eq!(items[6], "point 50");
    let in_file: Vec<String> = (1..=7).map(|number| format!("event {number}")).collect();
    let items = text::items(&stream, &Options::default());
    assert_eq!(
        items
            .iter()
            .filter(|item| item.starts_with("event"))
            .count(),
        7
    );
    assert!(in_file.iter().all(|event| items.contains(event)));
}

#[test]
fn an_event_after_a_sequence_point_is_never_returned_before_it() {
    let mut stream = stream();
    stream.events(&[row(1, 30)]);
    stream.block("SPBlock", &sequence_point(50, &[]));
    stream.events(&[row(2, 20), row(3, 25)]);
    assert_eq!(ordered(&stream.finish(), u64::MAX), (vec![1, 2, 3], 2));
}

#[test]
fn a_barrier_releases_what_is_older() {
    let mut stream = stream();
    stream.events(&[row(1, 30), row(2, 40)]);
    stream.events(&[barrier(3, 30), row(4, 35)]);
    let complete = stream.finish();
    assert_eq!(ordered(&complete, u64::MAX), (vec![1, 3, 4, 2], 0));
    // The first event is returned when the barrier was read, not at the end.
    let mut reader = Reader::with_options(complete.as_slice(), &text::by_time()).unwrap();
    let event = reader.next_event().unwrap().unwrap();
    assert_eq!(event.sequence_number, 1);
    assert!(!reader.is_complete());
}

#[test]
fn a_wrong_barrier_makes_late_events_and_loses_none() {
    let mut stream = stream();
    stream.events(&[row(1, 30), barrier(2, 40)]);
    stream.events(&[row(3, 10)]);
    assert_eq!(ordered(&stream.finish(), u64::MAX), (vec![1, 2, 3], 1));
}

#[test]
fn little_memory_for_sorting_loses_no_event() {
    let mut random = ChaCha8Rng::seed_from_u64(0x50_27ed);
    let mut stream = stream();
    let mut number = 0;
    for _ in 0..40 {
        let mut rows = Vec::new();
        let mut time = random.random_range(0..1000);
        for _ in 0..random.random_range(0..20) {
            number += 1;
            time += random.random_range(0..10);
            rows.push(row(number, time));
        }
        stream.events(&rows);
    }
    let stream = stream.finish();
    let (exact, late) = ordered(&stream, u64::MAX);
    assert_eq!((exact.len(), late), (number as usize, 0));
    for sorting in [0, 1_000, 20_000, 100_000] {
        let (mut numbers, late) = ordered(&stream, sorting);
        assert_eq!(
            late > 0,
            sorting < 100_000,
            "{late} late events with {sorting} bytes"
        );
        numbers.sort_unstable();
        assert_eq!(numbers, (1..=number).collect::<Vec<_>>());
    }
    // Without memory, the order is the order of the stream.
    let (numbers, _) = ordered(&stream, 0);
    assert_eq!(numbers, (1..=number).collect::<Vec<_>>());
}
