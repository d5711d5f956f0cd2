//! Buffer headers: invalid sizes and fills, zeroed headers.

use super::{SIZE, at, broken, lost, strict_fault};
use crate::common::reading::{file, salvage, time_order};
use crate::common::{File, patch, run, small};
use etl_format::read::{Options, Trace};

#[test]
fn zeroed_buffer_is_damage() {
    let bytes = broken(|b| b[3 * SIZE..4 * SIZE].fill(0));
    let outcome = salvage(&bytes);
    assert_eq!(outcome.damage, [(0xc00..0x1000, "invalid", 9, 12)]);
    assert_eq!(lost(&outcome, &small().bytes()), [1020, 1021, 1022, 1023]);
    assert_eq!(outcome.notes, ["buffer-count", "sequence-gap"]);
    assert_eq!(strict_fault(&bytes), (0xc00, "invalid", None));
}

#[test]
fn many_zeroed_buffers_are_one_damage() {
    // More than one look takes, so that a pipe has let go of the beginning.
    let mut file = File::new(0x1_0000);
    for i in 0..60 {
        file = file.buffer(0, &run(1000 + i * 10, 3));
    }
    let mut bytes = file.bytes();
    bytes[0x2_0000..0x39_0000].fill(0);
    let outcome = salvage(&bytes);
    assert_eq!(outcome.damage, [(0x2_0000..0x39_0000, "invalid", 4, 12)]);
    assert_eq!(outcome.notes, ["buffer-count", "sequence-gap"]);
}

/// Whole buffers are gone, and the header of the buffer after them.
#[test]
fn buffers_destroyed_before_a_bad_header_lose_their_records() {
    for byte in [0, 0xff, 0x5a] {
        for first in [2, 3] {
            let bytes = broken(|b| b[first * SIZE..4 * SIZE + 0x48].fill(byte));
            let outcome = salvage(&bytes);
            let gone: Vec<_> = [1010, 1020].iter().skip(first - 2).copied().collect();
            let gone: Vec<i64> = gone.iter().flat_map(|at| *at..at + 4).collect();
            assert_eq!(lost(&outcome, &small().bytes()), gone, "{byte:#x} {first}");
            let range = (first * SIZE) as u64..(4 * SIZE + 0x48) as u64;
            let before = 1 + 4 * (first as u64 - 1);
            let after = 25 - before - gone.len() as u64;
            assert_eq!(
                outcome.damage,
                [(range, "invalid", before, after)],
                "{byte:#x} {first}"
            );
        }
    }
}

#[test]
fn zeroed_records_are_damage() {
    let bytes = broken(|b| b[at(2, 1)..at(2, 3)].fill(0));
    let outcome = salvage(&bytes);
    let range = at(2, 1) as u64..at(2, 3) as u64;
    assert_eq!(outcome.damage, [(range, "invalid", 6, 17)]);
    assert_eq!(lost(&outcome, &small().bytes()), [1011, 1012]);
}

#[test]
fn zeros_across_two_buffers_are_damage_of_both() {
    let bytes = broken(|b| b[at(2, 2)..at(3, 2)].fill(0));
    let outcome = salvage(&bytes);
    assert_eq!(lost(&outcome, &small().bytes()), [1012, 1013, 1020, 1021]);
    let first = at(2, 2) as u64..at(2, 4) as u64;
    let second = 0xc00..at(3, 2) as u64;
    assert_eq!(
        outcome.damage,
        [(first, "invalid", 7, 14), (second, "invalid", 7, 14)]
    );
}

#[test]
fn filler_in_the_used_part_is_damage() {
    for byte in [0, 0xff] {
        for record in 0..4 {
            let bytes = broken(|b| b[at(2, record)..at(2, 4)].fill(byte));
            let outcome = salvage(&bytes);
            let gone: Vec<_> = (1010 + record as i64..1014).collect();
            assert_eq!(lost(&outcome, &small().bytes()), gone, "{byte:#x} {record}");
            let (from, to) = (at(2, record) as u64, at(2, 4) as u64);
            let before = 5 + record as u64;
            assert_eq!(
                outcome.damage,
                [(from..to, "invalid", before, 16)],
                "{byte:#x} {record}"
            );
            assert_eq!(strict_fault(&bytes), (from, "invalid", None));
        }
    }
}

#[test]
fn flipped_bit_of_a_buffer_size_loses_no_record() {
    for bit in 0..32 {
        let bytes = broken(|b| b[3 * SIZE + bit / 8] ^= 1 << (bit % 8));
        let outcome = salvage(&bytes);
        assert_eq!(lost(&outcome, &small().bytes()), [0; 0], "bit {bit}");
        assert_eq!(outcome.damage.len(), 1, "bit {bit}");
        let (range, code, before, after) = &outcome.damage[0];
        let header = if bit == 10 { 0x48 } else { 4 };
        assert_eq!(
            (range, *code),
            (&(0xc00..0xc00 + header), "invalid"),
            "bit {bit}"
        );
        assert_eq!((*before, *after), (9, 16));
        assert_eq!(
            outcome.records[9].cpu, 2,
            "the processor is not lost with the size"
        );
        assert_eq!(strict_fault(&bytes), (0xc00, "invalid", None));
    }
}

#[test]
fn flipped_bit_of_the_last_buffer_size_loses_no_record() {
    for bit in 0..32 {
        let bytes = broken(|b| b[6 * SIZE + bit / 8] ^= 1 << (bit % 8));
        let outcome = salvage(&bytes);
        assert_eq!(lost(&outcome, &small().bytes()), [0; 0], "bit {bit}");
        assert_eq!(outcome.damage.len(), 1, "bit {bit}: {:?}", outcome.damage);
    }
}

#[test]
fn flipped_bit_of_buffer_0_size_loses_no_record() {
    for bit in 0..32 {
        let bytes = broken(|b| b[bit / 8] ^= 1 << (bit % 8));
        let outcome = salvage(&bytes);
        assert_eq!(lost(&outcome, &small().bytes()), [0; 0], "bit {bit}");
        assert_eq!(outcome.damage.len(), 1, "bit {bit}: {:?}", outcome.damage);
    }
}

#[test]
fn flipped_bit_of_one_fill_is_damage_and_loses_no_record() {
    for (field, bit) in (0..64).map(|i| (if i < 32 { 4 } else { 0x30 }, i % 32)) {
        let bytes = broken(|b| b[3 * SIZE + field + bit / 8] ^= 1 << (bit % 8));
        let outcome = salvage(&bytes);
        assert_eq!(
            lost(&outcome, &small().bytes()),
            [0; 0],
            "field {field:#x} bit {bit}"
        );
        let [(range, "invalid", 9, 16)] = &outcome.damage[..] else {
            panic!("field {field:#x} bit {bit}: {:?}", outcome.damage)
        };
        assert!(
            [0xc04..0xc08, 0xc30..0xc34].contains(range),
            "field {field:#x} bit {bit}"
        );
        assert_eq!(outcome.notes, [""; 0]);
        assert_eq!(strict_fault(&bytes).1, "invalid");
    }
}

#[test]
fn fill_inside_the_header_is_damage() {
    let bytes = broken(|b| {
        patch(b, 3 * SIZE + 4, &[7, 0, 0, 0]);
        patch(b, 3 * SIZE + 0x30, &[7, 0, 0, 0]);
    });
    let outcome = salvage(&bytes);
    assert_eq!(lost(&outcome, &small().bytes()), [0; 0]);
    assert_eq!(outcome.damage, [(0xc00..0xc48, "invalid", 9, 16)]);
    assert_eq!(outcome.records[9].cpu, 2);
    assert_eq!(strict_fault(&bytes), (0xc30, "invalid", None));
}

#[test]
fn wrong_fill_is_damage_and_loses_no_record() {
    // Before the first record, between two, inside one, and beyond the buffer.
    for fill in [0u32, 0x48, 0x48 + 2 * 0x28, 0x80, 0x401, 0x8000, u32::MAX] {
        let bytes = broken(|b| {
            patch(b, 3 * SIZE + 4, &fill.to_le_bytes());
            patch(b, 3 * SIZE + 0x30, &fill.to_le_bytes());
        });
        let outcome = salvage(&bytes);
        assert_eq!(lost(&outcome, &small().bytes()), [0; 0], "{fill:#x}");
        assert_eq!(
            outcome.damage,
            [(0xc30..0xc34, "invalid", 9, 16)],
            "{fill:#x}"
        );
        assert_eq!(strict_fault(&bytes), (0xc30, "invalid", None), "{fill:#x}");
    }
}

#[test]
fn byte_after_the_records_of_a_sparse_buffer_is_damage() {
    const SIZE: usize = 0x2_0000;
    let records = [run(1000, 4), run(2000, 4)];
    let sparse = File::new(SIZE as u32)
        .buffer(0, &records[0])
        .buffer(1, &records[1]);
    let whole = sparse.bytes();
    assert_eq!(salvage(&whole).damage, []);
    // Right after the records, anywhere in the filler, and at the end.
    for place in [0x48 + 4 * 0x28, 0x8000, 0x9001, 0x1_2345, SIZE - 1] {
        let mut bytes = whole.clone();
        bytes[2 * SIZE + place] = 7;
        let outcome = salvage(&bytes);
        assert_eq!(lost(&outcome, &whole), [0; 0], "{place:#x}");
        let fill = 2 * SIZE as u64 + 0x30;
        assert_eq!(
            outcome.damage[0],
            (fill..fill + 4, "invalid", 5, 4),
            "{place:#x}"
        );
        let from_file = time_order(file(&bytes), &Options::salvage());
        assert_eq!(from_file.damage, outcome.damage, "{place:#x}");
        assert_eq!(strict_fault(&bytes).1, "invalid");
    }
}

/// A word in damaged filler that looks like a WPP message, of a size that leads into the filler.
#[test]
fn damaged_filler_has_no_records() {
    let whole = small().bytes();
    let mut junk = vec![0x5a; 0x40];
    let message = [
        &[0x60, 0, 0, 0x90, 1, 0, 8, 0][..],
        &(1i64 << 60).to_le_bytes(),
    ]
    .concat();
    junk[0x10..0x20].copy_from_slice(&message);
    for buffer in [3, 6] {
        let bytes = broken(|b| patch(b, buffer * SIZE + 0x200, &junk));
        let outcome = salvage(&bytes);
        assert_eq!(lost(&outcome, &whole), [0; 0], "{buffer}");
        assert_eq!(outcome.records.len(), 25, "{buffer}");
    }
}

#[test]
fn fill_that_lacks_the_last_bytes_of_a_record_loses_none() {
    for size in [SIZE, 0x2_0000] {
        let whole = File::new(size as u32)
            .buffer(0, &run(1000, 4))
            .buffer(1, &run(2000, 4));
        let whole = whole.bytes();
        // Before, between and inside the records.
        for fill in 0x48..0x48 + 4 * 0x28u32 {
            let mut bytes = whole.clone();
            patch(&mut bytes, 2 * size + 4, &fill.to_le_bytes());
            patch(&mut bytes, 2 * size + 0x30, &fill.to_le_bytes());
            let outcome = salvage(&bytes);
            assert_eq!(lost(&outcome, &whole), [0; 0], "{fill:#x}");
            let at = 2 * size as u64 + 0x30;
            assert_eq!(outcome.damage, [(at..at + 4, "invalid", 5, 4)], "{fill:#x}");
            let from_file = time_order(file(&bytes), &Options::salvage());
            assert_eq!(from_file.damage, outcome.damage, "{fill:#x}");
        }
    }
}

#[test]
fn fill_larger_than_the_records_is_damage() {
    let bytes = broken(|b| {
        patch(b, 3 * SIZE + 4, &0x200u32.to_le_bytes());
        patch(b, 3 * SIZE + 0x30, &0x200u32.to_le_bytes());
    });
    let outcome = salvage(&bytes);
    assert_eq!(lost(&outcome, &small().bytes()), [0; 0]);
    assert_eq!(
        outcome.damage,
        [(at(3, 4) as u64..0xe00, "invalid", 13, 12)]
    );
}

#[test]
fn first_buffer_may_save_less_than_its_fill() {
    let used = u32::from_le_bytes(small().bytes()[0x30..0x34].try_into().unwrap());
    for (saved, sound) in [(0, true), (0x50, true), (used, true), (used + 8, false)] {
        let bytes = broken(|b| patch(b, 4, &saved.to_le_bytes()));
        let outcome = salvage(&bytes);
        assert_eq!(lost(&outcome, &small().bytes()), [0; 0]);
        let damage = if sound {
            vec![]
        } else {
            vec![(4..8, "invalid", 0, 25)]
        };
        assert_eq!(outcome.damage, damage, "{saved:#x}");
    }
}

#[test]
fn zeros_after_the_records_are_no_damage() {
    let bytes = broken(|b| b[at(3, 4) + 8..4 * SIZE].fill(0));
    assert_eq!(salvage(&bytes).damage, []);
}

#[test]
fn overwritten_buffer_header_keeps_the_records() {
    for byte in [0, 0xff, 0x5a] {
        let bytes = broken(|b| b[3 * SIZE..3 * SIZE + 0x48].fill(byte));
        let outcome = salvage(&bytes);
        assert_eq!(lost(&outcome, &small().bytes()), [0; 0], "{byte:#x}");
        assert_eq!(
            outcome.damage,
            [(0xc00..0xc48, "invalid", 9, 16)],
            "{byte:#x}"
        );
        assert_eq!(outcome.records[9].cpu, 0, "the processor is not known");
        assert!((0xc00..0xc48).contains(&strict_fault(&bytes).0));
        let trace = Trace::open(bytes.as_slice(), &Options::salvage()).unwrap();
        assert!(trace.buffers()[3].rebuilt);
        let codes: Vec<_> = trace.notes().iter().map(|n| n.code()).collect();
        assert_eq!(codes, ["sequence-gap"], "its number is not known either");
    }
}

#[test]
fn overwritten_header_and_record_keep_the_other_records() {
    let bytes = broken(|b| b[3 * SIZE..at(3, 1)].fill(0x5a));
    let outcome = salvage(&bytes);
    assert_eq!(lost(&outcome, &small().bytes()), [1020]);
    assert_eq!(outcome.damage, [(0xc00..at(3, 1) as u64, "invalid", 9, 15)]);
}

#[test]
fn processor_has_two_forms() {
    for (flags, field, cpu) in [
        (0x20, 2047, 2047),
        (0x20, 0xffff, 2047),
        (0x20, 0x0800, 0),
        (0x20, 256, 256),
        (0, 0x0800, 0),
        (0, 0x083f, 63),
        (1, 0x08ff, 255),
    ] {
        let mut file = small();
        file.buffers.truncate(2);
        (file.buffers[1].flags, file.buffers[1].cpu) = (flags, field);
        let outcome = salvage(&file.bytes());
        assert_eq!(
            outcome.records.last().unwrap().cpu,
            cpu,
            "{flags:#x} {field:#x}"
        );
    }
}

#[test]
fn records_are_read_from_buffers_of_any_type() {
    for kind in [0, 1, 2, 3, 5, 6, 7] {
        let mut file = small();
        file.buffers[2].kind = kind;
        let outcome = salvage(&file.bytes());
        assert_eq!(
            (outcome.records.len(), outcome.damage.len()),
            (25, 0),
            "{kind}"
        );
    }
    let mut file = small();
    file.buffers[2].kind = 8;
    assert_eq!(
        salvage(&file.bytes()).damage,
        [(0xc00..0xc48, "invalid", 9, 16)]
    );
}

#[test]
fn empty_buffer_is_no_damage() {
    let mut file = small();
    file.buffers[2].records.clear();
    let outcome = salvage(&file.bytes());
    assert_eq!((outcome.records.len(), outcome.damage.len()), (21, 0));
    file.buffers[2].fill = Some(0);
    let outcome = salvage(&file.bytes());
    assert_eq!((outcome.records.len(), outcome.damage.len()), (21, 0));
}

#[test]
fn wrong_flag_of_compression_is_damage_and_loses_no_record() {
    let bytes = broken(|b| b[3 * SIZE + 0x34] ^= 0x40);
    let outcome = salvage(&bytes);
    assert_eq!(lost(&outcome, &small().bytes()), [0; 0]);
    let at = 3 * SIZE as u64 + 0x34;
    assert_eq!(outcome.damage, [(at..at + 2, "invalid", 9, 16)]);
    assert_eq!(strict_fault(&bytes), (at, "invalid", None));
}

#[test]
fn loss_flags_of_buffers_become_notes() {
    let mut file = small();
    file.buffers[1].flags |= 2;
    file.buffers[3].flags |= 4;
    assert_eq!(
        salvage(&file.bytes()).notes,
        ["events-lost-in-buffer", "buffer-lost-before"]
    );
}
