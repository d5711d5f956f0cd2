//! One test for each way in which a trace can be broken: what is still read, and the exact map of
//! what is not.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod common;

use common::event::{Event, chain};
use common::reading::{Outcome, file_order, salvage, sound, spots, strict, time_order};
use common::{Buffer, File, HeaderEvent, patch, run, small, system};
use etl_format::ErrorKind;
use etl_format::read::{FileOrder, Limits, Options, Record, Trace};

/// Size of the buffers of [`small`].
const SIZE: usize = 0x400;
/// Size of its records.
const RECORD: usize = 0x28;

/// File offset of a record of [`small`].
fn at(buffer: usize, record: usize) -> usize {
    buffer * SIZE + 0x48 + record * RECORD
}

/// The records that were read, and that all others of the undamaged trace were not.
fn lost(outcome: &Outcome, whole: &[u8]) -> Vec<i64> {
    outcome.end.as_ref().expect("salvage goes on to the end");
    let stamps = outcome.stamps();
    let all = sound(whole);
    assert!(stamps.iter().all(|s| all.iter().any(|r| r.stamp == *s)), "nothing is made up");
    all.iter().map(|r| r.stamp).filter(|s| !stamps.contains(s)).collect()
}

/// What strict mode says: offset, code, and what was needed and there.
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
fn a_sound_trace_has_no_damage() {
    let whole = small().bytes();
    let outcome = salvage(&whole);
    assert_eq!((outcome.records.len(), outcome.damage.len(), outcome.notes.len()), (25, 0, 0));
    assert!(outcome.end.is_ok());
}

#[test]
fn a_buffer_of_zeros_in_the_middle() {
    let bytes = broken(|b| b[3 * SIZE..4 * SIZE].fill(0));
    let outcome = salvage(&bytes);
    assert_eq!(outcome.damage, [(0xc00..0x1000, "invalid", 9, 12)]);
    assert_eq!(lost(&outcome, &small().bytes()), [1020, 1021, 1022, 1023]);
    assert_eq!(outcome.notes, ["buffer-count"]);
    assert_eq!(strict_fault(&bytes), (0xc00, "invalid", None));
}

#[test]
fn many_buffers_of_zeros_in_the_middle() {
    // More than one look takes, so that a pipe has let go of the beginning.
    let mut file = File::new(0x1_0000);
    for i in 0..60 {
        file = file.buffer(0, &run(1000 + i * 10, 3));
    }
    let mut bytes = file.bytes();
    bytes[0x2_0000..0x39_0000].fill(0);
    let outcome = salvage(&bytes);
    assert_eq!(outcome.damage, [(0x2_0000..0x39_0000, "invalid", 4, 12)]);
    assert_eq!(outcome.notes, ["buffer-count"]);
}

#[test]
fn zeros_inside_a_buffer() {
    let bytes = broken(|b| b[at(2, 1)..at(2, 3)].fill(0));
    let outcome = salvage(&bytes);
    let range = at(2, 1) as u64..at(2, 3) as u64;
    assert_eq!(outcome.damage, [(range, "invalid", 6, 17)]);
    assert_eq!(lost(&outcome, &small().bytes()), [1011, 1012]);
}

#[test]
fn zeros_from_the_middle_of_a_buffer_to_the_middle_of_the_next() {
    let bytes = broken(|b| b[at(2, 2)..at(3, 2)].fill(0));
    let outcome = salvage(&bytes);
    // Zeros up to the fill are what ends a buffer; only the next header shows that more is gone.
    assert_eq!(lost(&outcome, &small().bytes()), [1012, 1013, 1020, 1021]);
    assert_eq!(outcome.damage, [(0xc00..at(3, 2) as u64, "invalid", 7, 14)]);
}

#[test]
fn any_bit_of_a_buffer_size() {
    for bit in 0..32 {
        let bytes = broken(|b| b[3 * SIZE + bit / 8] ^= 1 << (bit % 8));
        let outcome = salvage(&bytes);
        assert_eq!(lost(&outcome, &small().bytes()), [], "bit {bit}");
        assert_eq!(outcome.damage.len(), 1, "bit {bit}");
        let (range, code, before, after) = &outcome.damage[0];
        let header = if bit == 10 { 0x48 } else { 4 };
        assert_eq!((range, *code), (&(0xc00..0xc00 + header), "invalid"), "bit {bit}");
        assert_eq!((*before, *after), (9, 16));
        assert_eq!(outcome.records[9].cpu, 2, "the processor is not lost with the size");
        assert_eq!(strict_fault(&bytes), (0xc00, "invalid", None));
    }
}

#[test]
fn any_bit_of_the_last_buffers_size() {
    for bit in 0..32 {
        let bytes = broken(|b| b[6 * SIZE + bit / 8] ^= 1 << (bit % 8));
        let outcome = salvage(&bytes);
        assert_eq!(lost(&outcome, &small().bytes()), [], "bit {bit}");
        assert_eq!(outcome.damage.len(), 1, "bit {bit}: {:?}", outcome.damage);
    }
}

#[test]
fn any_bit_of_buffer_0s_size() {
    for bit in 0..32 {
        let bytes = broken(|b| b[bit / 8] ^= 1 << (bit % 8));
        let outcome = salvage(&bytes);
        assert_eq!(lost(&outcome, &small().bytes()), [], "bit {bit}");
        assert_eq!(outcome.damage.len(), 1, "bit {bit}: {:?}", outcome.damage);
    }
}

#[test]
fn any_bit_of_one_of_the_two_fills() {
    for (field, bit) in (0..64).map(|i| (if i < 32 { 4 } else { 0x30 }, i % 32)) {
        let bytes = broken(|b| b[3 * SIZE + field + bit / 8] ^= 1 << (bit % 8));
        let outcome = salvage(&bytes);
        assert_eq!(lost(&outcome, &small().bytes()), [], "field {field:#x} bit {bit}");
        assert_eq!(outcome.damage, [], "field {field:#x} bit {bit}");
        assert_eq!(outcome.notes, ["fill-differs"]);
    }
}

#[test]
fn a_fill_inside_the_header() {
    let bytes = broken(|b| {
        patch(b, 3 * SIZE + 4, &[7, 0, 0, 0]);
        patch(b, 3 * SIZE + 0x30, &[7, 0, 0, 0]);
    });
    let outcome = salvage(&bytes);
    assert_eq!(lost(&outcome, &small().bytes()), []);
    assert_eq!(outcome.damage, [(0xc00..0xc48, "invalid", 9, 16)]);
    assert_eq!(outcome.records[9].cpu, 2);
    assert_eq!(strict_fault(&bytes), (0xc30, "invalid", None));
}

#[test]
fn a_fill_in_the_middle_of_a_record() {
    let bytes = broken(|b| {
        patch(b, 3 * SIZE + 4, &[0x80, 0, 0, 0]);
        patch(b, 3 * SIZE + 0x30, &[0x80, 0, 0, 0]);
    });
    let outcome = salvage(&bytes);
    assert_eq!(outcome.damage, [(at(3, 1) as u64..0xc80, "truncated", 10, 12)]);
    assert_eq!(strict_fault(&bytes), (at(3, 1) as u64, "truncated", Some((0x28, 0x10))));
}

#[test]
fn a_wiped_buffer_header() {
    for byte in [0, 0xff, 0x5a] {
        let bytes = broken(|b| b[3 * SIZE..3 * SIZE + 0x48].fill(byte));
        let outcome = salvage(&bytes);
        assert_eq!(lost(&outcome, &small().bytes()), [], "{byte:#x}");
        assert_eq!(outcome.damage, [(0xc00..0xc48, "invalid", 9, 16)], "{byte:#x}");
        assert_eq!(outcome.records[9].cpu, 0, "the processor is not known");
        assert!((0xc00..0xc48).contains(&strict_fault(&bytes).0));
        let trace = Trace::open(bytes.as_slice(), &Options::salvage()).unwrap();
        assert!(trace.buffers()[3].rebuilt);
        let codes: Vec<_> = trace.notes().iter().map(|n| n.code()).collect();
        assert_eq!(codes, ["sequence-gap"], "its number is not known either");
    }
}

#[test]
fn a_wiped_buffer_header_and_first_record() {
    let bytes = broken(|b| b[3 * SIZE..at(3, 1)].fill(0x5a));
    let outcome = salvage(&bytes);
    assert_eq!(lost(&outcome, &small().bytes()), [1020]);
    assert_eq!(outcome.damage, [(0xc00..at(3, 1) as u64, "invalid", 9, 15)]);
}

/// Patches the size of the second record of buffer 2.
fn with_size(size: u16) -> Vec<u8> {
    broken(|b| patch(b, at(2, 1) + 4, &size.to_le_bytes()))
}

#[test]
fn record_sizes_that_cannot_be() {
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
        assert_eq!(outcome.damage, [(here..here + RECORD as u64, "truncated", 6, 18)], "{size:#x}");
        assert_eq!(lost(&outcome, &small().bytes()), [1011], "{size:#x}");
        assert_eq!(strict_fault(&bytes), (here, "truncated", Some((need, have))), "{size:#x}");
    }
}

#[test]
fn a_record_that_ends_in_the_middle_of_the_next() {
    // What follows begins no record, and the one behind it is found again.
    let outcome = salvage(&with_size(0x38));
    let from = (at(2, 1) + 0x38) as u64;
    assert_eq!(outcome.damage, [(from..at(2, 3) as u64, "invalid", 7, 17)]);
    assert_eq!(lost(&outcome, &small().bytes()), [1012]);
}

#[test]
fn unknown_first_words() {
    for word in
        [1u32, 0x28, 0x1234, 0x1234_5678, 0x8000_0028, 0x8fff_0028, 0xc0ff_ffff, 0xffff_fff0]
    {
        let bytes = broken(|b| patch(b, at(2, 1), &word.to_le_bytes()));
        let outcome = salvage(&bytes);
        assert_eq!(lost(&outcome, &small().bytes()), [1011], "{word:#x}");
        assert_eq!(outcome.damage.len(), 1, "{word:#x}");
        let (range, _, before, after) = outcome.damage[0].clone();
        assert_eq!(range, at(2, 1) as u64..at(2, 2) as u64, "{word:#x}");
        assert_eq!((before, after), (6, 18));
    }
}

#[test]
fn every_second_record_is_damaged() {
    let bytes = broken(|b| {
        for record in [0, 2] {
            patch(b, at(2, record), &[1, 1, 1, 1]);
        }
    });
    let outcome = salvage(&bytes);
    assert_eq!(lost(&outcome, &small().bytes()), [1010, 1012]);
    let range = |record| at(2, record) as u64..at(2, record + 1) as u64;
    assert_eq!(outcome.damage, [(range(0), "invalid", 5, 18), (range(2), "invalid", 6, 17)]);
}

#[test]
fn a_stamp_in_the_far_future_does_not_hide_what_follows_damage() {
    let bytes = broken(|b| {
        patch(b, at(2, 0) + 0x10, &(i64::MAX - 1).to_le_bytes());
        patch(b, at(2, 1), &[1, 1, 1, 1]);
    });
    let outcome = salvage(&bytes);
    assert_eq!(outcome.records.len(), 24);
    assert_eq!(outcome.damage.len(), 1);
}

#[test]
fn bytes_gone_missing_from_the_records() {
    let whole = small().bytes();
    for gone in [1, 3, 8, 0x27, 0x28, 0x55, 0x100] {
        let bytes = broken(|b| drop(b.drain(at(3, 1) + 5..at(3, 1) + 5 + gone)));
        let outcome = salvage(&bytes);
        let others = |records: &[common::reading::Seen]| -> Vec<_> {
            records.iter().filter(|r| r.buffer != 0xc00).map(|r| r.bytes.clone()).collect()
        };
        assert_eq!(others(&outcome.records), others(&sound(&whole)), "though nothing is aligned");
        assert!(outcome.stamps().contains(&1020), "before the gap");
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
fn bytes_gone_missing_from_the_filler() {
    for gone in [1, 3, 8, 0x100] {
        let bytes = broken(|b| drop(b.drain(4 * SIZE - gone..4 * SIZE)));
        let outcome = salvage(&bytes);
        assert_eq!(lost(&outcome, &small().bytes()), []);
        let end = (4 * SIZE - gone) as u64;
        assert_eq!(outcome.damage, [(end..end, "truncated", 13, 12)], "{gone}");
    }
}

#[test]
fn bytes_too_many_between_buffers() {
    for more in [1, 5, 8, 0x47, 0x48, 0x100, 0x400, 0x1234] {
        let bytes = broken(|b| drop(b.splice(3 * SIZE..3 * SIZE, vec![0x5a; more])));
        let outcome = salvage(&bytes);
        assert_eq!(lost(&outcome, &small().bytes()), [], "{more:#x}");
        assert_eq!(outcome.damage, [(0xc00..0xc00 + more as u64, "invalid", 9, 16)], "{more:#x}");
    }
}

#[test]
fn bytes_too_many_inside_a_buffer() {
    let bytes = broken(|b| drop(b.splice(at(3, 1)..at(3, 1), vec![0x5a; 5])));
    let outcome = salvage(&bytes);
    let mut lost = lost(&outcome, &small().bytes());
    lost.retain(|stamp| !(1021..=1023).contains(stamp));
    assert_eq!(lost, []);
}

#[test]
fn a_buffer_that_stands_twice() {
    let bytes = broken(|b| {
        let copy = b[3 * SIZE..4 * SIZE].to_vec();
        b.splice(4 * SIZE..4 * SIZE, copy);
    });
    let outcome = salvage(&bytes);
    assert_eq!((outcome.records.len(), outcome.damage.len()), (29, 0));
    assert_eq!(outcome.notes, ["buffer-count"]);
    let trace = Trace::open(bytes.as_slice(), &strict()).unwrap();
    let notes: Vec<_> = trace.notes().iter().map(|n| (n.code(), n.offset())).collect();
    assert_eq!(notes, [("buffer-count", 0), ("sequence-twice", 0x1000)]);
}

#[test]
fn a_buffer_that_is_missing() {
    let bytes = broken(|b| drop(b.drain(3 * SIZE..4 * SIZE)));
    let outcome = salvage(&bytes);
    assert_eq!(outcome.damage, [(0x1800..0x1800, "truncated", 21, 0)]);
    assert_eq!(strict_fault(&bytes), (0x1800, "truncated", Some((0x400, 0))));
    let trace = Trace::open(bytes.as_slice(), &Options::salvage()).unwrap();
    let gap = etl_format::read::Note::SequenceGap { offset: 0xc00, first: 3, count: 1 };
    assert!(trace.notes().contains(&gap), "{:?}", trace.notes());
}

#[test]
fn buffers_that_are_shuffled() {
    let mut file = small();
    file.buffers.reverse();
    let bytes = file.bytes();
    assert_eq!(salvage(&bytes).damage, []);
    let trace = Trace::open(bytes.as_slice(), &strict()).unwrap();
    let codes: Vec<_> = trace.notes().iter().map(|n| n.code()).collect();
    assert_eq!(codes, ["reordered"]);
    let stamps = time_order(bytes.as_slice(), &strict()).stamps();
    assert!(stamps.is_sorted(), "{stamps:?}");
}

/// The file of a session that was never closed: its header is that of the start.
fn unclosed() -> File {
    let mut file = small();
    file.event.end_time = 0;
    file.event.buffers_written = Some(1);
    file
}

#[test]
fn a_session_that_was_never_closed() {
    for written in [0, 1] {
        let mut file = unclosed();
        file.event.buffers_written = Some(written);
        let outcome = salvage(&file.bytes());
        assert_eq!((outcome.records.len(), outcome.damage.len()), (25, 0));
        assert_eq!(outcome.notes, ["unclosed"]);
    }
}

#[test]
fn a_session_that_was_never_closed_and_its_last_buffer_half_written() {
    let mut bytes = unclosed().bytes();
    bytes.truncate(at(6, 2) + 3);
    let outcome = salvage(&bytes);
    let cut = at(6, 2) as u64 + 3;
    assert_eq!(outcome.damage, [(cut..0x1c00, "truncated", 23, 0)]);
    assert_eq!(lost(&outcome, &small().bytes()), [1122, 1123]);
    assert_eq!(strict_fault(&bytes), (0x1800, "truncated", Some((0x400, cut - 0x1800))));
}

#[test]
fn a_tail_that_was_never_used() {
    for (byte, len) in [(0, 1), (0, 0x47), (0, 0x400), (0xff, 0x400), (0, 0x12_3456)] {
        for file in [small(), unclosed()] {
            let mut bytes = file.bytes();
            bytes.resize(bytes.len() + len, byte);
            let outcome = salvage(&bytes);
            assert_eq!((outcome.records.len(), outcome.damage.len()), (25, 0), "{byte} {len:#x}");
            assert_eq!(outcome.notes.last().unwrap(), "unused-tail");
        }
    }
}

#[test]
fn a_preallocated_tail_of_garbage() {
    let mut file = small();
    file.event.mode |= 0x20;
    let mut bytes = file.bytes();
    bytes.extend([0x5a; 0x900]);
    let outcome = salvage(&bytes);
    assert_eq!((outcome.records.len(), outcome.damage.len()), (25, 0));
    assert_eq!(outcome.notes, ["unused-tail"]);
    // Without the count nothing tells it from damage.
    file.event.buffers_written = Some(0);
    let mut bytes = file.bytes();
    bytes.extend([0x5a; 0x900]);
    assert_eq!(salvage(&bytes).damage, [(0x1c00..0x2500, "invalid", 25, 0)]);
}

#[test]
fn a_tail_of_garbage() {
    let bytes = broken(|b| b.extend([0x5a; 0x900]));
    let outcome = salvage(&bytes);
    assert_eq!(outcome.damage, [(0x1c00..0x2500, "invalid", 25, 0)]);
}

#[test]
fn a_further_file_of_a_session_starts_at_any_number() {
    for mode in [0x9, 0x2, 0x1] {
        let mut file = small();
        file.event.mode = mode;
        (908..).zip(&mut file.buffers).for_each(|(seq, b)| b.seq = seq);
        let bytes = file.bytes();
        assert_eq!(salvage(&bytes).damage, []);
        let trace = Trace::open(bytes.as_slice(), &strict()).unwrap();
        let gaps = trace.notes().iter().filter(|n| n.code() == "sequence-gap").count();
        assert_eq!((gaps, trace.notes().len()), (usize::from(mode == 1), usize::from(mode == 1)));
    }
}

#[test]
fn a_trace_appended_to_a_trace() {
    let (first, mut second) = (small(), small());
    second.event.stamp += 5000;
    second
        .buffers
        .iter_mut()
        .zip(0..)
        .for_each(|(b, i)| b.records = common::lay(&run(6000 + i * 10, 4)));
    let mut bytes = first.bytes();
    bytes.extend(second.bytes());
    let outcome = salvage(&bytes);
    assert_eq!((outcome.records.len(), outcome.damage.len()), (50, 0));
    let trace = Trace::open(bytes.as_slice(), &strict()).unwrap();
    let notes: Vec<_> = trace.notes().iter().map(|n| (n.code(), n.offset())).collect();
    assert_eq!(notes, [("another-header", 0x1c00), ("buffer-count", 0)]);
}

#[test]
fn a_trace_appended_with_other_buffer_sizes() {
    for size in [0x800u32, 0x1000] {
        let mut second = File::new(size).buffer(0, &run(7000, 4)).buffer(1, &run(7000, 4));
        second.event.stamp = 6999;
        let mut bytes = small().bytes();
        bytes.extend(second.bytes());
        let outcome = salvage(&bytes);
        assert_eq!((outcome.records.len(), outcome.damage.len()), (34, 0), "{size:#x}");
    }
}

#[test]
fn a_compressed_trace_appended_to_one_of_another_format() {
    use common::packed::{lznt1, xpress};
    let (first, mut second) = (small().compressed(3, xpress), small().compressed(2, lznt1));
    second.event.stamp += 5000;
    let bytes = [first.bytes(), second.bytes(), small().bytes()].concat();
    let outcome = salvage(&bytes);
    assert_eq!((outcome.records.len(), outcome.damage.len()), (75, 0));
}

#[test]
fn a_damaged_header_event_leaves_the_rest_with_raw_stamps() {
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
        assert_eq!((header.start_time, header.stamp, header.clock_type.0), (0, 0, 0));
    }
}

#[test]
fn a_header_event_that_has_become_another_event() {
    let mut file = small();
    file.event.hook = 0x0301;
    let outcome = salvage(&file.bytes());
    assert_eq!(outcome.records.len(), 25, "it is a record all the same");
    assert_eq!(outcome.damage, [(0x48..0x50, "not-etl", 0, 25)], "of which the marker is wrong");
}

#[test]
fn a_lost_buffer_0() {
    for byte in [0, 0xff, 0x5a] {
        let bytes = broken(|b| b[..SIZE].fill(byte));
        let outcome = salvage(&bytes);
        assert_eq!((outcome.records.len(), lost(&outcome, &small().bytes()).len()), (24, 1));
        assert_eq!(outcome.damage, [(0..0x400, "not-etl", 0, 24)]);
    }
}

#[test]
fn a_file_without_its_beginning() {
    for gone in [1, 0x48, 0x100, 0x3ff, 0x400, 0x401, 0x800] {
        let bytes = broken(|b| drop(b.drain(..gone)));
        let outcome = salvage(&bytes);
        let lost = if gone > 0x400 { 5 } else { 1 };
        let first = if gone > 0x400 { 0x800 - gone } else { 0x400 - gone };
        assert_eq!(outcome.records.len(), 25 - lost, "{gone:#x}");
        assert_eq!(outcome.damage[0].0, 0..first as u64, "{gone:#x}");
    }
}

#[test]
fn a_wiped_header_of_buffer_0_keeps_the_header_event() {
    for byte in [0, 0xff, 0x5a] {
        let bytes = broken(|b| b[..0x48].fill(byte));
        let outcome = salvage(&bytes);
        assert_eq!((lost(&outcome, &small().bytes()).len(), outcome.records[0].stamp), (0, 900));
        assert_eq!(outcome.damage, [(0..0x48, "invalid", 0, 25)]);
        let trace = Trace::open(bytes.as_slice(), &Options::salvage()).unwrap();
        assert_eq!(trace.header().perf_freq, 10_000_000);
    }
}

#[test]
fn every_length_that_a_file_can_be_cut_to() {
    let whole = small().bytes();
    let all = sound(&whole);
    for len in 0..whole.len() {
        let bytes = &whole[..len];
        let ends: Vec<_> = all
            .iter()
            .filter(|r| r.buffer as usize + r.at as usize + r.bytes.len() <= len)
            .collect();
        if ends.is_empty() && len < 0x48 + 0x138 {
            assert_eq!(file_order(bytes, &Options::salvage()).records, [], "{len:#x}");
            assert!(file_order(bytes, &strict()).end.is_err(), "{len:#x}");
            continue;
        }
        let outcome = salvage(bytes);
        assert!(outcome.records.iter().eq(ends), "{len:#x}: {:?}", outcome.records);
        assert_eq!(outcome.damage.len(), 1, "{len:#x}");
        let (range, code, before, after) = outcome.damage[0].clone();
        assert_eq!(
            (code, before, after),
            ("truncated", outcome.records.len() as u64, 0),
            "{len:#x}"
        );
        // A first zero of a header cannot be told from unused space.
        assert!(range.end + 1 >= len as u64, "{len:#x}");
        let (offset, code, found) = strict_fault(bytes);
        assert_eq!((offset, code), ((len / SIZE * SIZE) as u64, "truncated"), "{len:#x}");
        assert!(found.is_some_and(|(need, have)| need > have));
    }
}

#[test]
fn processors_of_both_forms() {
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
        assert_eq!(outcome.records.last().unwrap().cpu, cpu, "{flags:#x} {field:#x}");
    }
}

#[test]
fn buffers_that_hold_no_records_are_passed() {
    for kind in [3, 6] {
        let mut file = small();
        file.buffers[2].kind = kind;
        let outcome = salvage(&file.bytes());
        assert_eq!((outcome.records.len(), outcome.damage.len()), (21, 0));
    }
    let mut file = small();
    file.buffers[2].kind = 8;
    assert_eq!(salvage(&file.bytes()).damage, [(0xc00..0xc48, "invalid", 9, 16)]);
}

#[test]
fn an_empty_buffer_is_none_to_worry_about() {
    let mut file = small();
    file.buffers[2].records.clear();
    let outcome = salvage(&file.bytes());
    assert_eq!((outcome.records.len(), outcome.damage.len()), (21, 0));
    file.buffers[2].fill = Some(0);
    let outcome = salvage(&file.bytes());
    assert_eq!((outcome.records.len(), outcome.damage.len()), (21, 0));
}

#[test]
fn losses_told_by_buffers() {
    let mut file = small();
    file.buffers[1].flags |= 2;
    file.buffers[3].flags |= 4;
    assert_eq!(salvage(&file.bytes()).notes, ["events-lost-in-buffer", "buffer-lost-before"]);
}

/// An event whose chain of items is these bytes.
fn with_chain<R>(items: Vec<u8>, look: impl FnOnce(&Record<'_>) -> R) -> R {
    let event = Event { stamp: 1000, items, payload: b"payload".into(), ..Event::default() };
    let bytes = File::new(0x1000).buffer(0, &[event.bytes()]).bytes();
    let mut reader = FileOrder::open(bytes.as_slice(), &strict()).unwrap();
    reader.next_record().unwrap();
    look(&reader.next_record().unwrap().unwrap())
}

#[test]
fn chains_of_extended_items_that_lead_nowhere() {
    let whole = chain(&[(3, &[1, 0, 0, 0]), (3, &[2, 0, 0, 0]), (3, &[3, 0, 0, 0])]);
    // The total size of the second item: nothing, too short for its data, beyond the record.
    for total in [0u16, 1, 8, 11, 0x100, 0xffff] {
        let mut items = whole.clone();
        patch(&mut items, 0x10, &total.to_le_bytes());
        with_chain(items.clone(), |r| {
            let mut walk = r.extended();
            assert_eq!((walk.by_ref().count(), walk.is_broken()), (1, true), "{total:#x}");
            assert_eq!(r.payload(), [&items[0x10..], b"payload"].concat());
        });
    }
    // The last item says that another one follows.
    let mut items = whole.clone();
    items[0x24] = 1;
    with_chain(items, |r| {
        let mut walk = r.extended();
        assert_eq!((walk.by_ref().count(), walk.is_broken()), (3, true));
        assert_eq!(r.payload(), b"payload");
    });
    // No item at all, though the flag says so.
    let event = Event { flags: 1, stamp: 1000, ..Event::default() };
    let bytes = File::new(0x1000).buffer(0, &[event.bytes()]).bytes();
    let mut reader = FileOrder::open(bytes.as_slice(), &strict()).unwrap();
    reader.next_record().unwrap();
    let r = reader.next_record().unwrap().unwrap();
    let mut walk = r.extended();
    assert_eq!((walk.by_ref().count(), walk.is_broken(), r.payload()), (0, true, &b""[..]));
}

#[test]
fn a_buffer_beyond_the_limit_is_an_error_or_a_loss() {
    let file = File::new(0x1_0000).buffer(0, &run(1000, 3));
    let bytes = file.bytes();
    let limits = Limits { buffer: 0x8000, ..Limits::default() };
    let outcome = file_order(bytes.as_slice(), &Options { limits, ..strict() });
    let error = outcome.end.unwrap_err();
    assert_eq!((error.code(), error.offset, outcome.records.len()), ("limit", 0, 0));
    let ErrorKind::Limit { need, limit, .. } = error.kind else { panic!("{error}") };
    assert_eq!((need, limit), (0x1_0000, 0x8000));
    assert!(Trace::open(bytes.as_slice(), &Options { limits, ..strict() }).is_err());
    let outcome = file_order(bytes.as_slice(), &Options { limits, ..Options::salvage() });
    assert!(outcome.end.is_ok());
    assert_eq!(outcome.damage[0].1, "limit");
}

#[test]
fn a_huge_buffer_size_in_a_packed_file_costs_that_buffer() {
    let mut file = common::File::new(0x1000);
    file.event.mode = 0x0401_0001;
    let event = HeaderEvent { buffers_written: Some(3), ..file.event.clone() };
    let mut bytes = Buffer::header(0x200, &event, &[]).bytes();
    for i in 0..2 {
        let mut buffer = Buffer::data(0, 0, i + 1, &run(1000 + i * 10, 4));
        buffer.packed = Some(common::packed::xpress(&buffer.records));
        if i == 0 {
            let mut damaged = buffer.bytes();
            patch(&mut damaged, 0, &0x7fff_ffffu32.to_le_bytes());
            bytes.extend(damaged);
        } else {
            bytes.extend(buffer.bytes());
        }
    }
    let outcome = salvage(&bytes);
    assert_eq!(outcome.stamps(), [900, 1010, 1011, 1012, 1013]);
    assert_eq!(outcome.damage.len(), 1);
}

#[test]
fn memory_held_for_time_order_has_a_limit() {
    let mut file = File::new(0x400);
    for cpu in [0, 1, 2, 0, 1, 2] {
        file = file.buffer(cpu, &run(1000, 4));
    }
    file.buffers[3..].iter_mut().for_each(|b| b.records = common::lay(&run(1004, 4)));
    let bytes = file.bytes();
    let limits = |held| Limits { held, ..Limits::default() };
    // A buffer of each processor, and the places of their records.
    let need = 3 * (0x400 + 4 * 24);
    for options in [strict(), common::reading::heads(Options::salvage())] {
        let outcome =
            time_order(bytes.as_slice(), &Options { limits: limits(need - 1), ..options });
        assert_eq!(outcome.end.unwrap_err().code(), "limit");
        let outcome = time_order(bytes.as_slice(), &Options { limits: limits(need), ..options });
        assert!(outcome.end.is_ok());
        assert_eq!(outcome.order.held, need);
    }
}

#[test]
fn an_error_stays() {
    let bytes = with_size(0);
    let mut trace = Trace::open(bytes.as_slice(), &common::reading::heads(strict())).unwrap();
    let mut reader = trace.ordered().unwrap();
    let first = loop {
        match reader.next_record() {
            Ok(record) => assert!(record.is_some()),
            Err(error) => break error,
        }
    };
    assert_eq!(first.offset, at(2, 1) as u64);
    assert_eq!(reader.records(), 6, "all that is due before, and the sound record of the buffer");
    assert_eq!(reader.next_record().unwrap_err().to_string(), first.to_string());
}

#[test]
fn the_trace_knows_of_damaged_buffers_and_the_readers_of_all() {
    let bytes = broken(|b| {
        b[3 * SIZE..4 * SIZE].fill(0);
        patch(b, at(1, 1), &[1, 1, 1, 1]);
    });
    let mut trace = Trace::open(bytes.as_slice(), &Options::salvage()).unwrap();
    assert_eq!(spots(trace.damage()), [(0xc00..0x1000, "invalid", 0, 0)]);
    let all =
        [(at(1, 1) as u64..at(1, 2) as u64, "invalid", 2, 18), (0xc00..0x1000, "invalid", 8, 12)];
    let mut reader = trace.file_order().unwrap();
    reader.for_each(|_| -> etl_format::Result<()> { Ok(()) }).unwrap();
    assert_eq!(spots(reader.damage()), all);
    let mut reader = trace.ordered().unwrap();
    reader.for_each(|_| -> etl_format::Result<()> { Ok(()) }).unwrap();
    assert_eq!(spots(reader.damage()), all);
    assert!(reader.next_record().unwrap().is_none());
    assert_eq!(spots(reader.damage()), all, "the end stays the end");
}
