//! Compressed traces: formats, unaligned offsets, wrong fills, truncated streams.

use crate::common::packed::{huffman, lznt1, xpress};
use crate::common::reading::{Outcome, file_order, salvage, sound, strict, time_order};
use crate::common::{Buffer, Encoder, File, patch, run, small, system};
use etl_format::compress::{Effort, compress};
use etl_format::constants::CompressionFormat;
use etl_format::read::{Note, Options, Trace};
use etl_format::{Error, ErrorKind};

const FORMATS: [(u32, CompressionFormat, Encoder); 3] = [
    (2, CompressionFormat::LZNT1, lznt1),
    (3, CompressionFormat::XPRESS, xpress),
    (4, CompressionFormat::XPRESS_HUFF, huffman),
];

/// Offsets of the buffers, by their sizes.
fn offsets(bytes: &[u8]) -> Vec<usize> {
    let mut out = vec![0];
    while let Some(size) = bytes
        .get(out[out.len() - 1]..)
        .and_then(|b| b.first_chunk())
    {
        out.push(out[out.len() - 1] + u32::from_le_bytes(*size) as usize);
    }
    out
}

/// Records after the header event, without the offsets of their buffers.
fn content(outcome: &Outcome) -> Vec<(u32, u16, i64, Vec<u8>)> {
    outcome
        .records
        .iter()
        .skip(1)
        .map(|r| (r.at, r.cpu, r.timestamp, r.bytes.clone()))
        .collect()
}

#[test]
fn each_format_returns_the_records_of_the_uncompressed_trace() {
    let plain = salvage(&small().bytes());
    for (number, format, encode) in FORMATS {
        let bytes = small().compressed(number, encode).bytes();
        let outcome = salvage(&bytes);
        assert_eq!(
            (content(&outcome), outcome.damage.len()),
            (content(&plain), 0),
            "{format}"
        );
        assert_eq!(outcome.notes, [""; 0]);
        let trace = Trace::open(bytes.as_slice(), &strict()).unwrap();
        assert_eq!(trace.compression(), format);
        let packed: Vec<_> = trace
            .buffers()
            .iter()
            .map(|b| (b.compressed, b.format))
            .collect();
        assert_eq!(packed[0], (false, CompressionFormat::NONE));
        assert!(packed[1..].iter().all(|&p| p == (true, format)));
    }
}

#[test]
fn compressed_buffers_may_have_any_offset() {
    let mut file = small().compressed(3, xpress);
    for (i, buffer) in file.buffers.iter_mut().enumerate() {
        buffer.records = crate::common::lay(&[system(true, 0x0f01, 1000, &vec![1; i])]);
        let mut packed = xpress(&buffer.records);
        // A stream may be followed by bytes that are not needed.
        packed.resize(packed.len() + i, 0xff);
        (buffer.packed, buffer.size) = (Some(packed), 0);
    }
    let bytes = file.bytes();
    let offsets = offsets(&bytes);
    assert_eq!(
        (offsets[1], offsets.iter().any(|at| at % 2 == 1)),
        (0x200, true),
        "{offsets:x?}"
    );
    assert_eq!(salvage(&bytes).records.len(), 7);
    // With more in it buffer 0 is longer, in steps of 0x200.
    file.extras = run(901, 10);
    let bytes = file.bytes();
    assert_eq!(u32::from_le_bytes(*bytes.first_chunk().unwrap()), 0x400);
    assert_eq!(salvage(&bytes).records.len(), 17);
}

#[test]
fn unnamed_format_is_read_as_xpress() {
    for state in [0, 1, 5, 0x1234] {
        let mut file = small().compressed(state, xpress);
        let trace = file.bytes();
        let outcome = salvage(&trace);
        assert_eq!(
            (outcome.records.len(), outcome.notes),
            (25, vec!["compression-unnamed".into()])
        );
        let trace = Trace::open(trace.as_slice(), &strict()).unwrap();
        assert_eq!(trace.notes(), [Note::CompressionUnnamed { state }]);
        // Without compression the state is ignored.
        file.format = None;
        file.event.mode = 1;
        assert_eq!(salvage(&file.bytes()).notes, [""; 0]);
    }
}

#[test]
fn unnamed_format_is_inferred_from_the_data() {
    for (number, format, encode) in FORMATS {
        let whole = small().compressed(number, encode).bytes();
        let (mut unnamed, mut headless) = (whole.clone(), whole);
        patch(&mut unnamed, 0x2c, &[0x34, 0x12]);
        headless[..0x200].fill(0);
        for (bytes, records) in [(unnamed, 25), (headless, 24)] {
            assert_eq!(salvage(&bytes).records.len(), records, "{format}");
            let trace = Trace::open(bytes.as_slice(), &Options::salvage()).unwrap();
            assert_eq!(trace.compression(), format);
        }
    }
}

#[test]
fn uncompressed_buffer_among_compressed_ones_is_read() {
    let mut file = small().compressed(3, xpress);
    let plain = &mut file.buffers[2];
    (plain.size, plain.flags) = (0, 0x20);
    let bytes = file.buffers[2].bytes();
    file.buffers[2].packed = None;
    // Replaces the encoded buffer by the uncompressed one.
    let mut all = file.bytes();
    let at = offsets(&all);
    all.splice(at[3]..at[4], bytes);
    let outcome = salvage(&all);
    assert_eq!((outcome.records.len(), outcome.damage.len()), (25, 0));
}

#[test]
fn compressed_buffer_in_an_uncompressed_file_is_read() {
    let mut file = small();
    file.buffers[2].packed = Some(xpress(&file.buffers[2].records));
    let outcome = salvage(&file.bytes());
    assert_eq!((outcome.records.len(), outcome.damage.len()), (25, 0));
}

#[test]
fn buffers_of_16_mib_are_read() {
    for (number, format, encode) in FORMATS {
        let mut file = File::new(0x100_0000);
        let record = system(true, 0x0f01, 1000, &[7; 0x8000]);
        file = file
            .buffer(0, &vec![record; 400])
            .compressed(number, encode);
        let outcome = file_order(file.bytes().as_slice(), &strict());
        assert_eq!(
            (outcome.end.is_ok(), outcome.records.len()),
            (true, 401),
            "{format}"
        );
    }
}

/// [`small`], compressed, with another fill in buffer 3; the fault that strict mode meets.
fn with_fill(fill: u32) -> (Vec<u8>, Option<Error>) {
    let mut file = small().compressed(3, xpress);
    file.buffers[2].fill = Some(fill);
    let bytes = file.bytes();
    let end = file_order(bytes.as_slice(), &strict()).end;
    (bytes, end.err())
}

#[test]
fn fill_beyond_the_data_is_damage() {
    let whole = 0x48 + 4 * 0x28;
    for fill in [whole + 1, whole + 8, 0x3ff, 0x400] {
        let (bytes, error) = with_fill(fill);
        let at = offsets(&bytes)[3] as u64..offsets(&bytes)[4] as u64;
        let error = error.unwrap();
        assert_eq!(error.offset, at.start);
        let ErrorKind::Compression {
            format,
            produced,
            declared,
        } = error.kind
        else {
            panic!("{error}")
        };
        assert_eq!(
            (format, produced, declared),
            ("XPRESS", 0xa0, u64::from(fill) - 0x48)
        );
        let outcome = salvage(&bytes);
        assert_eq!(outcome.records.len(), 25, "all that there is");
        assert_eq!(outcome.damage, [(at, "compression", 9, 16)]);
    }
}

#[test]
fn fill_beyond_the_buffer_size_skips_the_buffer() {
    for fill in [0x401, 0x1_0000, 0x7fff_ffff, u32::MAX] {
        let (bytes, error) = with_fill(fill);
        let at = offsets(&bytes)[3] as u64..offsets(&bytes)[4] as u64;
        let error = error.unwrap();
        assert_eq!(
            (error.offset, error.code()),
            (at.start + 4, "invalid"),
            "{fill:#x}"
        );
        let outcome = salvage(&bytes);
        assert_eq!(
            (outcome.records.len(), outcome.damage),
            (21, vec![(at, "invalid", 9, 12)])
        );
    }
}

#[test]
fn fill_below_the_data_is_damage_and_loses_no_record() {
    for fill in [0x48, 0x48 + 2 * 0x28, 0x48 + 2 * 0x28 + 0x10] {
        let (bytes, error) = with_fill(fill);
        let field = offsets(&bytes)[3] as u64 + 4;
        let error = error.unwrap();
        assert_eq!(
            (error.offset, error.code()),
            (field, "invalid"),
            "{fill:#x}"
        );
        let outcome = salvage(&bytes);
        assert_eq!(outcome.records.len(), 25, "{fill:#x}");
        assert_eq!(
            outcome.damage,
            [(field..field + 4, "invalid", 9, 16)],
            "{fill:#x}"
        );
    }
    for fill in [0, 1, 0x47] {
        assert_eq!(with_fill(fill).1.unwrap().code(), "invalid");
    }
}

#[test]
fn contradicting_fills_lose_no_record() {
    let whole = small().compressed(3, xpress).bytes();
    let start = offsets(&whole)[3];
    for field in [4, 0x30] {
        for fill in [0u32, 0x47, 0x48, 0x98, 0xf0, 0x400, 0x401, u32::MAX] {
            let mut bytes = whole.clone();
            bytes[start + field..start + field + 4].copy_from_slice(&fill.to_le_bytes());
            let outcome = salvage(&bytes);
            assert_eq!(outcome.records.len(), 25, "{field:#x} {fill:#x}");
            let [(range, "invalid", 9, 16)] = &outcome.damage[..] else {
                panic!("{field:#x} {fill:#x}: {:?}", outcome.damage)
            };
            let start = start as u64;
            assert!([start + 4..start + 8, start + 0x30..start + 0x34].contains(range));
        }
    }
}

/// A trace whose one large buffer is compressed well.
fn dense() -> (Vec<u8>, usize) {
    fn encode(plain: &[u8]) -> Vec<u8> {
        let mut out = Vec::new();
        compress(CompressionFormat::XPRESS, plain, Effort::Default, &mut out).unwrap();
        out
    }
    let bytes = File::new(0x1_0000)
        .buffer(0, &run(1000, 1500))
        .compressed(3, encode)
        .bytes();
    let start = offsets(&bytes)[1] + 0x48;
    (bytes, start)
}

#[test]
fn records_after_a_hole_are_left_out() {
    let (whole, start) = dense();
    let all = sound(&whole);
    for byte in [0, 0xff] {
        for part in 0..8 {
            let mut bytes = whole.clone();
            let hole = start + (bytes.len() - start - 0x200) * part / 8;
            bytes[hole..hole + 0x200].fill(byte);
            let outcome = salvage(&bytes);
            assert!(
                all.starts_with(&outcome.records),
                "{byte:#x} {part}: nothing is made up"
            );
            assert!(part == 0 || outcome.records.len() > 1, "{byte:#x} {part}");
            assert_eq!(
                outcome.damage.len(),
                1,
                "{byte:#x} {part}: {:?}",
                outcome.damage
            );
        }
    }
}

#[test]
fn nothing_is_searched_for_after_a_fault_of_a_compressed_buffer() {
    let mut file = small();
    let second = 2 * 0x28;
    file.buffers[2].records[second..second + 4].fill(0xab);
    let outcome = salvage(&file.compressed(3, xpress).bytes());
    let [(_, "truncated", 11, 12)] = &outcome.damage[..] else {
        panic!("{:?}", outcome.damage)
    };
}

/// A match that states a length of 4 GB produces only what the buffer can hold.
#[test]
fn decompression_bomb_is_bounded() {
    let mut file = small().compressed(3, xpress);
    let mut packed = vec![0, 0, 0, 0x40];
    // One literal, then a match of distance 1: length 7, 15, 255, and then 32 bits.
    packed.extend([0, 7, 0, 0xff, 0xff, 0, 0, 0xff, 0xff, 0xff, 0xff]);
    packed.extend([0; 64]);
    file.buffers[2].packed = Some(packed);
    (file.buffers[2].size, file.buffers[2].fill) = (0, Some(0x400));
    let outcome = salvage(&file.bytes());
    assert_eq!(outcome.records.len(), 21);
    let mut file = small().compressed(3, xpress);
    file.event.buffer_size = 0xffff_ffff;
    file.buffers[2].fill = Some(64 << 20);
    let limits = etl_format::read::Limits {
        buffer: 1 << 20,
        ..Default::default()
    };
    let bytes = file.bytes();
    let outcome = file_order(
        bytes.as_slice(),
        &Options {
            limits,
            ..Options::salvage()
        },
    );
    assert_eq!((outcome.end.is_ok(), outcome.records.len()), (true, 21));
}

#[test]
fn cutting_a_compressed_file_keeps_complete_buffers() {
    for (number, format, encode) in FORMATS {
        let whole = small().compressed(number, encode).bytes();
        let (all, offsets) = (sound(&whole), offsets(&whole));
        for len in (0x200..whole.len()).step_by(if number == 3 { 1 } else { 3 }) {
            let outcome = salvage(&whole[..len]);
            assert!(all.starts_with(&outcome.records), "{format} {len:#x}");
            let complete = offsets.iter().filter(|&&end| end <= len).count() - 1;
            let least = if complete == 0 {
                0
            } else {
                1 + 4 * (complete - 1)
            };
            assert!(
                (least..=least + 4).contains(&outcome.records.len()),
                "{format} {len:#x}"
            );
            assert_eq!(
                outcome.damage.len(),
                1,
                "{format} {len:#x}: {:?}",
                outcome.damage
            );
            assert_eq!(outcome.damage[0].1, "truncated");
        }
    }
}

#[test]
fn damaged_compressed_bytes_affect_one_buffer() {
    for (number, format, encode) in FORMATS {
        let whole = small().compressed(number, encode).bytes();
        let (all, offsets) = (sound(&whole), offsets(&whole));
        for at in offsets[3] + 0x48..offsets[4] {
            let mut bytes = whole.clone();
            bytes[at] ^= 0x41;
            let outcome = salvage(&bytes);
            let others = all.iter().filter(|r| r.buffer != offsets[3] as u64);
            let rest: Vec<_> = outcome
                .records
                .iter()
                .filter(|r| r.buffer != offsets[3] as u64)
                .collect();
            assert!(others.eq(rest), "{format} {at:#x}");
        }
    }
}

#[test]
fn missing_compressed_bytes_affect_one_buffer() {
    for (number, format, encode) in FORMATS {
        let whole = small().compressed(number, encode).bytes();
        let offsets = offsets(&whole);
        for gone in [1, 2, 7, 0x20] {
            let mut bytes = whole.clone();
            bytes.drain(offsets[3] + 0x60..offsets[3] + 0x60 + gone);
            let outcome = salvage(&bytes);
            let cpus: Vec<_> = outcome
                .records
                .iter()
                .filter(|r| r.buffer != offsets[3] as u64)
                .collect();
            assert_eq!(cpus.len(), 21, "{format} {gone}");
            assert!(!outcome.damage.is_empty());
        }
    }
}

/// What then looks like the next header is some bytes off.
#[test]
fn wrong_size_or_inserted_bytes_affect_one_compressed_buffer() {
    let whole = small().compressed(3, xpress).bytes();
    let at = offsets(&whole);
    for off in 1..8 {
        let mut shorter = whole.clone();
        let size = (at[4] - at[3] - off) as u32;
        patch(&mut shorter, at[3], &size.to_le_bytes());
        let mut longer = whole.clone();
        longer.splice(at[3] + 0x60..at[3] + 0x60, vec![0x55; off]);
        for bytes in [shorter, longer] {
            let outcome = salvage(&bytes);
            let others = outcome
                .records
                .iter()
                .filter(|r| r.buffer != at[3] as u64)
                .count();
            assert_eq!((others, outcome.notes), (21, vec![]), "{off}");
            assert!(!outcome.damage.is_empty(), "{off}");
        }
    }
}

#[test]
fn overwritten_header_loses_the_compressed_buffer() {
    let mut bytes = small().compressed(3, xpress).bytes();
    let offsets = offsets(&bytes);
    bytes[offsets[3]..offsets[3] + 0x48].fill(0x5a);
    let outcome = salvage(&bytes);
    let range = offsets[3] as u64..offsets[4] as u64;
    assert_eq!(
        (outcome.records.len(), outcome.damage),
        (21, vec![(range, "invalid", 9, 12)])
    );
}

#[test]
fn compressed_file_without_buffer_0_is_read() {
    let mut bytes = small().compressed(3, xpress).bytes();
    bytes[..0x200].fill(0x5a);
    let outcome = salvage(&bytes);
    assert_eq!(
        (outcome.records.len(), outcome.damage),
        (24, vec![(0..0x200, "not-etl", 0, 24)])
    );
    // With only the event lost, the format is still known.
    let mut bytes = small().compressed(2, lznt1).bytes();
    patch(&mut bytes, 0x48, &[1, 1, 1, 1]);
    assert_eq!(salvage(&bytes).records.len(), 24);
}

#[test]
fn held_memory_counts_compressed_and_plain_bytes() {
    let mut file = File::new(0x400);
    for cpu in 0..3 {
        file = file.buffer(cpu, &run(1000, 4));
    }
    let file = file.compressed(3, xpress);
    let bytes = file.bytes();
    let trace = Trace::open(bytes.as_slice(), &strict()).unwrap();
    let data = &trace.buffers()[1..];
    // Each buffer as stored and as unpacked, and the places of its four records.
    let both: u64 = data
        .iter()
        .map(|b| u64::from(b.stored) + u64::from(b.fill) + 4 * 16)
        .sum();
    assert_eq!(time_order(bytes.as_slice(), &strict()).order.held, both);
}

#[test]
fn empty_compressed_buffer_is_read() {
    let mut file = small().compressed(3, xpress);
    file.buffers[2].records.clear();
    let outcome = salvage(&file.bytes());
    assert_eq!((outcome.records.len(), outcome.damage.len()), (21, 0));
    let empty = Buffer {
        packed: Some(Vec::new()),
        size: 0,
        ..file.buffers[2].clone()
    };
    assert_eq!(empty.bytes().len(), 0x48);
}
