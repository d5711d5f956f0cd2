//! Bytes too few or too many, and buffers out of their places.

use super::{SIZE, at, broken, lost, strict_fault};
use crate::common::reading::{salvage, sound, strict, time_order};
use crate::common::{patch, small};
use etl_format::read::{Note, Options, Trace, Weight};

#[test]
fn missing_record_bytes_are_damage() {
    let whole = small().bytes();
    for gone in [1, 3, 8, 0x27, 0x28, 0x55, 0x100] {
        let bytes = broken(|b| drop(b.drain(at(3, 1) + 5..at(3, 1) + 5 + gone)));
        let outcome = salvage(&bytes);
        let others = |records: &[crate::common::reading::Seen]| -> Vec<_> {
            records
                .iter()
                .filter(|r| r.buffer != 0xc00)
                .map(|r| r.bytes.clone())
                .collect()
        };
        assert_eq!(
            others(&outcome.records),
            others(&sound(&whole)),
            "though nothing is aligned"
        );
        assert!(outcome.timestamps().contains(&1020), "before the gap");
        let end = (4 * SIZE - gone) as u64;
        let last = outcome.damage.last().unwrap();
        assert!(
            (0xc00..=end).contains(&last.0.start) && last.0.end == end,
            "{:x?}",
            outcome.damage
        );
    }
}

#[test]
fn missing_filler_bytes_lose_no_record() {
    for gone in [1, 3, 8, 0x100] {
        let bytes = broken(|b| drop(b.drain(4 * SIZE - gone..4 * SIZE)));
        let outcome = salvage(&bytes);
        assert_eq!(lost(&outcome, &small().bytes()), [0; 0]);
        let end = (4 * SIZE - gone) as u64;
        assert_eq!(outcome.damage, [(end..end, "truncated", 13, 12)], "{gone}");
    }
}

#[test]
fn extra_bytes_between_buffers_are_skipped() {
    for more in [1, 5, 8, 0x47, 0x48, 0x100, 0x400, 0x1234] {
        let bytes = broken(|b| drop(b.splice(3 * SIZE..3 * SIZE, vec![0x5a; more])));
        let outcome = salvage(&bytes);
        assert_eq!(lost(&outcome, &small().bytes()), [0; 0], "{more:#x}");
        assert_eq!(
            outcome.damage,
            [(0xc00..0xc00 + more as u64, "invalid", 9, 16)],
            "{more:#x}"
        );
    }
}

#[test]
fn extra_bytes_inside_a_buffer_are_damage() {
    let bytes = broken(|b| drop(b.splice(at(3, 1)..at(3, 1), vec![0x5a; 5])));
    let outcome = salvage(&bytes);
    let mut lost = lost(&outcome, &small().bytes());
    lost.retain(|timestamp| !(1021..=1023).contains(timestamp));
    assert_eq!(lost, [0; 0]);
}

#[test]
fn duplicated_buffer_is_a_note() {
    let bytes = broken(|b| {
        let copy = b[3 * SIZE..4 * SIZE].to_vec();
        b.splice(4 * SIZE..4 * SIZE, copy);
    });
    let outcome = salvage(&bytes);
    assert_eq!((outcome.records.len(), outcome.damage.len()), (29, 0));
    assert_eq!(outcome.notes, ["buffer-count", "sequence-twice"]);
    let trace = Trace::open(bytes.as_slice(), &strict()).unwrap();
    let notes: Vec<_> = trace
        .notes()
        .iter()
        .map(|n| (n.code(), n.offset()))
        .collect();
    assert_eq!(notes, [("buffer-count", 0), ("sequence-twice", 0x1000)]);
}

#[test]
fn missing_buffer_is_a_note() {
    let bytes = broken(|b| drop(b.drain(3 * SIZE..4 * SIZE)));
    let outcome = salvage(&bytes);
    assert_eq!(outcome.damage, [(0x1800..0x1800, "truncated", 21, 0)]);
    assert_eq!(
        strict_fault(&bytes),
        (0x1800, "truncated", Some((0x400, 0)))
    );
    let trace = Trace::open(bytes.as_slice(), &Options::salvage()).unwrap();
    let gap = etl_format::read::Note::SequenceGap {
        offset: 0xc00,
        first: 3,
        count: 1,
    };
    assert!(trace.notes().contains(&gap), "{:?}", trace.notes());
}

#[test]
fn wrong_sequence_number_is_no_gap() {
    // One after all others, and ones that cannot be.
    for number in [700i64, 1 << 44, i64::MIN + 3] {
        for buffer in [3, 6] {
            if buffer == 6 && (0..1 << 20).contains(&number) {
                continue;
            }
            let bytes = broken(|b| patch(b, buffer * SIZE + 0x18, &number.to_le_bytes()));
            let trace = Trace::open(bytes.as_slice(), &Options::salvage()).unwrap();
            let (offset, expected) = ((buffer * SIZE) as u64, buffer as i64);
            assert_eq!(
                trace.notes(),
                [Note::SequenceWrong {
                    offset,
                    number,
                    expected
                }]
            );
            assert_eq!(trace.notes()[0].weight(trace.header().mode), Weight::Loss);
            let timestamps = time_order(bytes.as_slice(), &strict()).timestamps();
            assert!(
                timestamps.len() == 25 && timestamps.is_sorted(),
                "{number} {timestamps:?}"
            );
        }
    }
}

#[test]
fn number_out_of_order_next_to_a_gap_is_not_wrong() {
    let mut file = small();
    for (buffer, number) in file.buffers.iter_mut().zip([1, 5, 3, 4, 6, 7]) {
        buffer.seq = number;
    }
    let bytes = file.bytes();
    let trace = Trace::open(bytes.as_slice(), &strict()).unwrap();
    let codes: Vec<_> = trace.notes().iter().map(|n| n.code()).collect();
    assert_eq!(codes, ["sequence-gap"]);
}

#[test]
fn shuffled_buffers_are_read_in_order() {
    let mut file = small();
    file.buffers.reverse();
    let bytes = file.bytes();
    assert_eq!(salvage(&bytes).damage, []);
    let trace = Trace::open(bytes.as_slice(), &strict()).unwrap();
    let codes: Vec<_> = trace.notes().iter().map(|n| n.code()).collect();
    assert_eq!(codes, ["reordered"]);
    let timestamps = time_order(bytes.as_slice(), &strict()).timestamps();
    assert!(timestamps.is_sorted(), "{timestamps:?}");
}
