//! Records: invalid sizes and first words, broken chains of items.

use super::{RECORD, SIZE, at, broken, lost, strict_fault};
use crate::common::event::{Event, chain};
use crate::common::reading::salvage;
use crate::common::{File, patch, run, small, system};

/// Patches the size of the second record of buffer 2.
pub fn with_size(size: u16) -> Vec<u8> {
    broken(|b| patch(b, at(2, 1) + 4, &size.to_le_bytes()))
}

#[test]
fn invalid_record_sizes_are_damage() {
    let here = at(2, 1) as u64;
    let left = 3 * RECORD as u64;
    for (size, need, have) in [
        (0, 0x20, 0),
        (1, 0x20, 1),
        (0x1f, 0x20, 0x1f),
        (left as u16 + 1, left + 1, left),
        (0xffff, 0xffff, left),
    ] {
        let bytes = with_size(size);
        let outcome = salvage(&bytes);
        assert_eq!(
            outcome.damage,
            [(here..here + RECORD as u64, "truncated", 6, 18)],
            "{size:#x}"
        );
        assert_eq!(lost(&outcome, &small().bytes()), [1011], "{size:#x}");
        assert_eq!(
            strict_fault(&bytes),
            (here, "truncated", Some((need, have))),
            "{size:#x}"
        );
    }
}

#[test]
fn record_size_into_the_next_record_is_damage() {
    // The record whose size leads into the middle of the next one is damaged, and not the next one.
    let outcome = salvage(&with_size(0x38));
    let here = at(2, 1) as u64;
    assert_eq!(
        outcome.damage,
        [(here..here + RECORD as u64, "invalid", 6, 18)]
    );
    assert_eq!(lost(&outcome, &small().bytes()), [1011]);
    assert_eq!(strict_fault(&with_size(0x38)), (here, "invalid", None));
}

/// One bit of a size: the record seems to hold up to 819 others.
#[test]
fn flipped_bit_of_a_record_size_loses_one_record() {
    let whole = File::new(0x1_0000)
        .buffer(0, &run(1000, 1600))
        .buffer(1, &run(1000, 40))
        .bytes();
    for (record, bit) in [(0, 6), (3, 8), (3, 12), (700, 14), (1590, 7)] {
        let begin = 0x1_0000 + 0x48 + record * RECORD;
        let mut bytes = whole.clone();
        bytes[begin + 4 + bit / 8] ^= 1 << (bit % 8);
        let outcome = salvage(&bytes);
        let range = begin as u64..(begin + RECORD) as u64;
        let before = 1 + record as u64;
        assert_eq!(
            outcome.damage,
            [(range, "invalid", before, 1640 - before)],
            "{record} {bit}"
        );
        assert_eq!(outcome.records.len(), 1640, "{record} {bit}");
    }
}

#[test]
fn zeroed_record_header_is_damage() {
    for len in [4, 8, 0x20] {
        let bytes = broken(|b| b[at(2, 1)..at(2, 1) + len].fill(0));
        let outcome = salvage(&bytes);
        let range = at(2, 1) as u64..at(2, 2) as u64;
        assert_eq!(outcome.damage, [(range, "invalid", 6, 18)], "{len:#x}");
        assert_eq!(lost(&outcome, &small().bytes()), [1011], "{len:#x}");
    }
}

#[test]
fn unknown_first_words_are_damage() {
    for word in [
        1u32,
        0x28,
        0x1234,
        0x1234_5678,
        0x8000_0028,
        0x8fff_0028,
        0xc0ff_ffff,
        0xffff_fff0,
    ] {
        let bytes = broken(|b| patch(b, at(2, 1), &word.to_le_bytes()));
        let outcome = salvage(&bytes);
        assert_eq!(lost(&outcome, &small().bytes()), [1011], "{word:#x}");
        assert_eq!(outcome.damage.len(), 1, "{word:#x}");
        let (range, _, before, after) = outcome.damage[0].clone();
        assert_eq!(range, at(2, 1) as u64..at(2, 2) as u64, "{word:#x}");
        assert_eq!((before, after), (6, 18));
    }
}

/// The first word is then the size of the record, like the first word of a WNODE.
#[test]
fn record_without_marker_is_damage() {
    for record in 0..3 {
        let event = Event {
            timestamp: 1011,
            payload: vec![7; 8],
            ..Event::default()
        }
        .bytes();
        let mut records = run(1008, 5);
        records.splice(record..=record, [event]);
        let mut bytes = File::new(SIZE as u32).buffer(0, &records).bytes();
        let begin = SIZE + 0x48 + record * RECORD;
        bytes[begin + 2..begin + 4].fill(0);
        let outcome = salvage(&bytes);
        let range = begin as u64..(begin + 0x58) as u64;
        assert_eq!(
            outcome.damage,
            [(range, "invalid", 1 + record as u64, 4 - record as u64)]
        );
        assert_eq!(strict_fault(&bytes).0, begin as u64);
    }
}

/// The size of a record is too small, and what is left of its payload looks like a record that ends
/// where an intact one or the buffer does, at a time that cannot be.
#[test]
fn false_record_does_not_hide_intact_ones() {
    for (timestamp, hides) in [(5i64, 2), (5, 6), (1 << 45, 2), (1 << 45, 6)] {
        let len = 0x10 + hides * RECORD as u16;
        let payload = [&[7; 8], &perfinfo_header(len)[..], &timestamp.to_le_bytes()].concat();
        let mut records = run(1000, 8);
        records[1] = system(true, 0x0f01, 1001, &payload);
        let mut bytes = File::new(SIZE as u32).buffer(0, &records).bytes();
        let begin = SIZE + 0x48 + RECORD;
        patch(&mut bytes, begin + 4, &(RECORD as u16).to_le_bytes());
        let outcome = salvage(&bytes);
        assert_eq!(
            outcome.timestamps()[1..],
            (1000..1008).collect::<Vec<_>>(),
            "{timestamp}"
        );
        let here = (begin + RECORD) as u64;
        assert_eq!(
            outcome.damage,
            [(here..here + 0x10, "invalid", 3, 6)],
            "{timestamp} {hides}"
        );
        assert_eq!(strict_fault(&bytes).0, here, "{timestamp} {hides}");
    }
}

/// The bytes of a PERFINFO record before its timestamp.
fn perfinfo_header(len: u16) -> [u8; 8] {
    let [low, high] = len.to_le_bytes();
    [2, 0, 0x11, 0xc0, low, high, 0x2e, 0x0f]
}

#[test]
fn each_damaged_record_is_reported() {
    let bytes = broken(|b| {
        for record in [0, 2] {
            patch(b, at(2, record), &[1, 1, 1, 1]);
        }
    });
    let outcome = salvage(&bytes);
    assert_eq!(lost(&outcome, &small().bytes()), [1010, 1012]);
    let range = |record| at(2, record) as u64..at(2, record + 1) as u64;
    assert_eq!(
        outcome.damage,
        [(range(0), "invalid", 5, 18), (range(2), "invalid", 6, 17)]
    );
}

#[test]
fn wrong_future_timestamp_does_not_hide_later_records() {
    let bytes = broken(|b| {
        patch(b, at(2, 0) + 0x10, &(i64::MAX - 1).to_le_bytes());
        patch(b, at(2, 1), &[1, 1, 1, 1]);
    });
    let outcome = salvage(&bytes);
    assert_eq!(outcome.records.len(), 24);
    assert_eq!(outcome.damage.len(), 1);
}

/// A trace whose second record is an event with these bytes as its chain of items.
fn with_chain(items: Vec<u8>) -> Vec<u8> {
    let event = Event {
        timestamp: 1000,
        items,
        payload: b"payload".into(),
        ..Event::default()
    };
    let next = Event {
        timestamp: 1001,
        ..Event::default()
    };
    File::new(0x1000)
        .buffer(0, &[event.bytes(), next.bytes()])
        .bytes()
}

/// Checks that the event with the broken chain is left out and reported, and the next one is read.
fn assert_left_out(bytes: &[u8], what: &str) {
    let outcome = salvage(bytes);
    assert_eq!(outcome.damage.len(), 1, "{what}");
    let (range, code, before, after) = &outcome.damage[0];
    assert_eq!((*code, *before, *after), ("invalid", 1, 1), "{what}");
    assert_eq!(outcome.records.len(), 2, "{what}");
    assert_eq!(strict_fault(bytes).0, range.start, "{what}");
}

#[test]
fn broken_chains_of_extended_items_are_damage() {
    let whole = chain(&[(3, &[1, 0, 0, 0]), (3, &[2, 0, 0, 0]), (3, &[3, 0, 0, 0])]);
    assert_eq!(salvage(&with_chain(whole.clone())).damage, []);
    // The total size of the second item: nothing, too short for its data, beyond the record.
    for total in [0u16, 1, 8, 11, 0x100, 0xffff] {
        let mut items = whole.clone();
        patch(&mut items, 0x10, &total.to_le_bytes());
        assert_left_out(&with_chain(items), &format!("{total:#x}"));
    }
    // The last item is linked to another one.
    let mut items = whole.clone();
    items[0x24] = 1;
    assert_left_out(&with_chain(items), "no end");
    // The flag announces items, but there are none.
    let event = Event {
        flags: 1,
        timestamp: 1000,
        ..Event::default()
    };
    let next = Event {
        timestamp: 1001,
        ..Event::default()
    };
    let bytes = File::new(0x1000)
        .buffer(0, &[event.bytes(), next.bytes()])
        .bytes();
    assert_left_out(&bytes, "no items");
}

/// A record with a fixed layout is not longer than 128 bytes: what a longer one hides is read.
#[test]
fn overlong_record_with_a_fixed_layout_hides_nothing() {
    let records: Vec<Vec<u8>> = (0..40)
        .map(|number| {
            let mut record = perfinfo_header(0x20).to_vec();
            record.extend((1000_i64 + number).to_le_bytes());
            record.resize(0x20, 7);
            record
        })
        .collect();
    let whole = File::new(0x1000).buffer(0, &records).bytes();
    let all = salvage(&whole).records.len();
    let first = whole
        .windows(8)
        .position(|bytes| bytes == perfinfo_header(0x20))
        .unwrap();
    // Sizes that lead to the beginning of a later record, and to the end of all.
    for hidden in [16, 31, 39] {
        let mut bytes = whole.clone();
        let size = 0x20 * (1 + hidden);
        patch(&mut bytes, first + 4, &(size as u16).to_le_bytes());
        let outcome = salvage(&bytes);
        assert_eq!(outcome.records.len(), all - 1, "{hidden}");
        assert_eq!(outcome.damage.len(), 1, "{hidden}");
        assert_eq!(strict_fault(&bytes).0, first as u64, "{hidden}");
    }
}
