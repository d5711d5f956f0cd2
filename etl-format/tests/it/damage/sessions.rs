//! Sessions that were not closed, tails, and files that consist of several others.

use super::{at, broken, lost, strict_fault};
use crate::common::reading::{salvage, strict};
use crate::common::{File, run, small};
use etl_format::read::Trace;

/// The file of a session that was never closed: its header was written at the start.
fn unclosed() -> File {
    let mut file = small();
    file.event.end_time = 0;
    file.event.buffers_written = Some(1);
    file
}

#[test]
fn unclosed_session_is_a_note() {
    for written in [0, 1] {
        let mut file = unclosed();
        file.event.buffers_written = Some(written);
        let outcome = salvage(&file.bytes());
        assert_eq!((outcome.records.len(), outcome.damage.len()), (25, 0));
        assert_eq!(outcome.notes, ["unclosed"]);
    }
}

#[test]
fn unclosed_session_with_a_partial_buffer_is_damage() {
    let mut bytes = unclosed().bytes();
    bytes.truncate(at(6, 2) + 3);
    let outcome = salvage(&bytes);
    let cut = at(6, 2) as u64 + 3;
    assert_eq!(outcome.damage, [(cut..0x1c00, "truncated", 23, 0)]);
    assert_eq!(lost(&outcome, &small().bytes()), [1122, 1123]);
    assert_eq!(
        strict_fault(&bytes),
        (0x1800, "truncated", Some((0x400, cut - 0x1800)))
    );
}

#[test]
fn unused_tail_is_a_note() {
    for (byte, len) in [(0, 1), (0, 0x47), (0, 0x400), (0xff, 0x400), (0, 0x12_3456)] {
        for file in [small(), unclosed()] {
            let mut bytes = file.bytes();
            bytes.resize(bytes.len() + len, byte);
            let outcome = salvage(&bytes);
            assert_eq!(
                (outcome.records.len(), outcome.damage.len()),
                (25, 0),
                "{byte} {len:#x}"
            );
            assert_eq!(outcome.notes.last().unwrap(), "unused-tail");
        }
    }
}

#[test]
fn preallocated_tail_of_garbage_is_unused() {
    let mut file = small();
    file.event.mode |= 0x20;
    let mut bytes = file.bytes();
    bytes.extend([0x5a; 0x900]);
    let outcome = salvage(&bytes);
    assert_eq!((outcome.records.len(), outcome.damage.len()), (25, 0));
    assert_eq!(outcome.notes, ["unused-tail"]);
    // Without the count it is damage.
    file.event.buffers_written = Some(0);
    let mut bytes = file.bytes();
    bytes.extend([0x5a; 0x900]);
    assert_eq!(salvage(&bytes).damage, [(0x1c00..0x2500, "invalid", 25, 0)]);
}

#[test]
fn tail_of_garbage_is_damage() {
    let bytes = broken(|b| b.extend([0x5a; 0x900]));
    let outcome = salvage(&bytes);
    assert_eq!(outcome.damage, [(0x1c00..0x2500, "invalid", 25, 0)]);
}

#[test]
fn later_file_of_a_session_may_start_at_any_number() {
    for mode in [0x9, 0x2, 0x1] {
        let mut file = small();
        file.event.mode = mode;
        (908..)
            .zip(&mut file.buffers)
            .for_each(|(seq, b)| b.seq = seq);
        let bytes = file.bytes();
        assert_eq!(salvage(&bytes).damage, []);
        let trace = Trace::open(bytes.as_slice(), &strict()).unwrap();
        let gaps = trace
            .notes()
            .iter()
            .filter(|n| n.code() == "sequence-gap")
            .count();
        // A circular file that was never full begins with its first buffer.
        let expected = usize::from(mode != 0x9);
        assert_eq!((gaps, trace.notes().len()), (expected, expected));
    }
}

#[test]
fn appended_trace_is_read() {
    let (first, mut second) = (small(), small());
    second.event.timestamp += 5000;
    second
        .buffers
        .iter_mut()
        .zip(0..)
        .for_each(|(b, i)| b.records = crate::common::lay(&run(6000 + i * 10, 4)));
    let mut bytes = first.bytes();
    bytes.extend(second.bytes());
    let outcome = salvage(&bytes);
    assert_eq!((outcome.records.len(), outcome.damage.len()), (50, 0));
    let trace = Trace::open(bytes.as_slice(), &strict()).unwrap();
    let notes: Vec<_> = trace
        .notes()
        .iter()
        .map(|n| (n.code(), n.offset()))
        .collect();
    assert_eq!(notes, [("another-header", 0x1c00), ("buffer-count", 0)]);
}

#[test]
fn appended_trace_may_have_other_buffer_sizes() {
    for size in [0x800u32, 0x1000] {
        let mut second = File::new(size)
            .buffer(0, &run(7000, 4))
            .buffer(1, &run(7000, 4));
        second.event.timestamp = 6999;
        let mut bytes = small().bytes();
        bytes.extend(second.bytes());
        let outcome = salvage(&bytes);
        assert_eq!(
            (outcome.records.len(), outcome.damage.len()),
            (34, 0),
            "{size:#x}"
        );
    }
}

#[test]
fn appended_trace_may_have_another_compression_format() {
    use crate::common::packed::{lznt1, xpress};
    let (first, mut second) = (small().compressed(3, xpress), small().compressed(2, lznt1));
    second.event.timestamp += 5000;
    let bytes = [first.bytes(), second.bytes(), small().bytes()].concat();
    let outcome = salvage(&bytes);
    assert_eq!((outcome.records.len(), outcome.damage.len()), (75, 0));
}

#[test]
fn appended_compressed_trace_leaves_earlier_buffers_readable() {
    use crate::common::packed::xpress;
    let mut bytes = small().bytes();
    let flags = 0x34;
    bytes[flags] |= 0x40;
    bytes.extend(small().compressed(3, xpress).bytes());
    let outcome = salvage(&bytes);
    assert_eq!(
        outcome.records.len(),
        50,
        "the flag of compression in buffer 0 is not believed"
    );
    assert_eq!(outcome.damage.len(), 1);
    assert_eq!(outcome.damage[0].0, 0x34..0x36);
}
