//! The header event and buffer 0 damaged, and files cut anywhere.

use super::{SIZE, broken, lost, strict_fault};
use crate::common::reading::{file_order, salvage, sound, strict};
use crate::common::{patch, small, system};
use etl_format::read::{Options, Trace};

#[test]
fn damaged_header_event_keeps_the_records() {
    let mut file = small();
    file.extras = vec![system(true, 0x0050, 901, b"extra of some length")];
    let whole = file.bytes();
    let size = file.event.bytes().len();
    for (offset, new) in [(0, [1u8, 1, 1, 1]), (4, [1, 0, 0, 0])] {
        let mut bytes = whole.clone();
        patch(&mut bytes, 0x48 + offset, &new);
        let outcome = salvage(&bytes);
        let extra = 0x48 + size.next_multiple_of(8) as u64;
        assert_eq!(outcome.records.len(), 25, "all but the header event");
        assert_eq!(outcome.records[0].at as u64, extra);
        assert_eq!(outcome.damage.len(), 1);
        assert_eq!(outcome.damage[0].0, 0x48..extra);
        assert_eq!((outcome.damage[0].2, outcome.damage[0].3), (0, 25));
        let trace = Trace::open(bytes.as_slice(), &Options::salvage()).unwrap();
        let header = trace.header();
        assert_eq!(
            (
                header.start_time.get(),
                header.timestamp.get(),
                header.clock_type.0
            ),
            (0, 0, 0)
        );
    }
}

#[test]
fn replaced_header_event_is_damage() {
    let mut file = small();
    file.event.hook = 0x0301;
    let outcome = salvage(&file.bytes());
    assert_eq!(outcome.records.len(), 25, "it is a record all the same");
    assert_eq!(
        outcome.damage,
        [(0x48..0x50, "not-etl", 0, 25)],
        "the marker of the header event"
    );
}

#[test]
fn replaced_header_event_in_a_compressed_buffer_is_damage() {
    let mut file = small();
    file.event.hook = 0x0301;
    let mut bytes = file.bytes();
    patch(&mut bytes, 0x34, &[0x40, 0]);
    let outcome = salvage(&bytes);
    // The records are plain, so that the flag is a fault of its own.
    let faults = [
        (0x34..0x36, "invalid", 0, 25),
        (0x48..0x50, "not-etl", 0, 25),
    ];
    assert_eq!(outcome.damage, faults);
    assert_eq!(outcome.records.len(), 25);
    // If they are not, the fault of the event is part of the fault of its buffer.
    patch(&mut bytes, 0x4c, &[0, 0]);
    let outcome = salvage(&bytes);
    assert_eq!(outcome.damage, [(0..0x400, "compression", 0, 24)]);
    assert_eq!(outcome.records.len(), 24);
}

#[test]
fn lost_buffer_0_is_damage() {
    for byte in [0, 0xff, 0x5a] {
        let bytes = broken(|b| b[..SIZE].fill(byte));
        let outcome = salvage(&bytes);
        assert_eq!(
            (
                outcome.records.len(),
                lost(&outcome, &small().bytes()).len()
            ),
            (24, 1)
        );
        assert_eq!(outcome.damage, [(0..0x400, "not-etl", 0, 24)]);
    }
}

#[test]
fn file_without_its_beginning_is_read() {
    for gone in [1, 0x48, 0x100, 0x3ff, 0x400, 0x401, 0x800] {
        let bytes = broken(|b| drop(b.drain(..gone)));
        let outcome = salvage(&bytes);
        let lost = if gone > 0x400 { 5 } else { 1 };
        let first = if gone > 0x400 {
            0x800 - gone
        } else {
            0x400 - gone
        };
        assert_eq!(outcome.records.len(), 25 - lost, "{gone:#x}");
        assert_eq!(outcome.damage[0].0, 0..first as u64, "{gone:#x}");
    }
}

#[test]
fn overwritten_header_of_buffer_0_keeps_the_header_event() {
    for byte in [0, 0xff, 0x5a] {
        let bytes = broken(|b| b[..0x48].fill(byte));
        let outcome = salvage(&bytes);
        assert_eq!(
            (
                lost(&outcome, &small().bytes()).len(),
                outcome.records[0].timestamp
            ),
            (0, 900)
        );
        assert_eq!(outcome.damage, [(0..0x48, "invalid", 0, 25)]);
        let trace = Trace::open(bytes.as_slice(), &Options::salvage()).unwrap();
        assert_eq!(trace.header().perf_freq, 10_000_000);
    }
}

#[test]
fn cutting_a_file_keeps_complete_records() {
    let whole = small().bytes();
    let all = sound(&whole);
    for len in 0..whole.len() {
        let bytes = &whole[..len];
        let ends: Vec<_> = all
            .iter()
            .filter(|r| r.buffer as usize + r.at as usize + r.bytes.len() <= len)
            .collect();
        if ends.is_empty() && len < 0x48 + 0x138 {
            assert_eq!(
                file_order(bytes, &Options::salvage()).records,
                [],
                "{len:#x}"
            );
            assert!(file_order(bytes, &strict()).end.is_err(), "{len:#x}");
            continue;
        }
        let outcome = salvage(bytes);
        assert!(
            outcome.records.iter().eq(ends),
            "{len:#x}: {:?}",
            outcome.records
        );
        assert_eq!(outcome.damage.len(), 1, "{len:#x}");
        let (range, code, before, after) = outcome.damage[0].clone();
        assert_eq!(
            (code, before, after),
            ("truncated", outcome.records.len() as u64, 0),
            "{len:#x}"
        );
        // A header that begins with a zero looks like unused space.
        assert!(range.end + 1 >= len as u64, "{len:#x}");
        let (offset, code, found) = strict_fault(bytes);
        assert_eq!(
            (offset, code),
            ((len / SIZE * SIZE) as u64, "truncated"),
            "{len:#x}"
        );
        assert!(found.is_some_and(|(need, have)| need > have));
    }
}
