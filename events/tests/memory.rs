//! The memory that the conversion of EventPipe streams takes.
// Tests fail by panicking.
#![allow(clippy::unwrap_used)]

#[allow(dead_code, reason = "other tests need more of it")]
#[path = "../../tests/tests/limits/counting.rs"]
mod counting;
#[allow(dead_code, reason = "other tests need more of it")]
#[path = "../../nettrace/examples/common/write.rs"]
mod write;

use std::io::{Cursor, Read};

use counting::{allocations, peak};
use etl_events::eventpipe::{ConvertOptions, convert};
use etl_format::write::Output;
use write::{BlockStream, EventRow, block_kind, sample_of_version_6, stack_block, utf8};

const MIB: usize = 1 << 20;

/// An output that keeps nothing.
struct Discard;

impl Output for Discard {
    fn write_at(&mut self, _: u64, _: &[u8]) -> etl_format::Result<()> {
        Ok(())
    }

    fn is_seekable(&self) -> bool {
        true
    }

    fn flush(&mut self) -> etl_format::Result<()> {
        Ok(())
    }
}

/// Converts a stream and returns the number of its events.
fn convert_all(stream: impl Read) -> u64 {
    let finished = convert(stream, Discard, &ConvertOptions::default()).unwrap();
    finished.report.events
}

/// Metadata with a number of variable length, so that payloads are encoded again.
fn metadata() -> Vec<u8> {
    let mut row = vec![1];
    row.extend(utf8("Contoso-Web"));
    row.push(7);
    row.extend(utf8("Served"));
    row.extend(1u16.to_le_bytes());
    let field = [&utf8("Size")[..], &[21]].concat();
    row.extend((field.len() as u16).to_le_bytes());
    row.extend(field);
    row.extend(0u16.to_le_bytes());
    row
}

/// Blocks with this many events, with a gap before every hundredth.
fn blocks(events: u32) -> Vec<u8> {
    let mut rows = Vec::new();
    for number in 0..events {
        rows.push(EventRow {
            metadata: 1,
            sequence: number + number / 100 + 1,
            stack: 1,
            time: u64::from(number),
            payload: vec![0x80, 0x01],
            ..EventRow::default()
        });
    }
    let mut blocks = BlockStream { bytes: Vec::new() };
    blocks.rows(block_kind::METADATA, &[0, 0], &[metadata()]);
    blocks.rows(block_kind::THREADS, &[], &[vec![0, 3, 1]]);
    blocks.block(block_kind::STACKS, &stack_block(1, 8, &[&[1, 2, 3]]));
    blocks.events(&rows);
    blocks.block(block_kind::SEQUENCE_POINT, &[0; 16]);
    blocks.bytes
}

/// A stream of these blocks, and again.
struct Repeated {
    blocks: Vec<u8>,
    times: usize,
    position: usize,
}

impl Read for Repeated {
    fn read(&mut self, out: &mut [u8]) -> std::io::Result<usize> {
        if self.times == 0 {
            return Ok(0);
        }
        let rest = self.blocks.get(self.position..).unwrap_or_default();
        let len = Cursor::new(rest).read(out)?;
        self.position += len;
        if self.position == self.blocks.len() {
            self.position = 0;
            self.times -= 1;
        }
        Ok(len)
    }
}

fn repeated(events: u32, times: usize) -> impl Read {
    let repeated = Repeated {
        blocks: blocks(events),
        times,
        position: 0,
    };
    Cursor::new(BlockStream::new(8).bytes).chain(repeated)
}

/// A stream of 1 GB: `cargo test -p etl-events --test memory -- --ignored`.
#[test]
#[ignore = "takes minutes without optimization"]
fn stream_of_1_gb_is_converted_in_the_limits_of_its_reader() {
    const GB: usize = 1_000_000_000;
    let bytes = blocks(10_000).len();
    let times = GB / bytes + 1;
    let stream = repeated(10_000, times);
    let mut options = ConvertOptions::default();
    options.limits.block = MIB as u64;
    options.limits.tables = 2 * MIB as u64;
    options.limits.sorting = MIB as u64;
    let (events, peak) = peak(|| convert(stream, Discard, &options).unwrap().report.events);
    assert_eq!(events, 10_000 * times as u64);
    // The limits, and one block of the stream in this test.
    assert!(peak < 8 * MIB, "{peak} bytes");
}

#[test]
fn converting_allocates_nothing_for_each_event() {
    // The tables are read once in a process.
    convert_all(sample_of_version_6().as_slice());
    let short = repeated(100, 5);
    let (events, few) = allocations(|| convert_all(short));
    assert_eq!(events, 500);
    let long = repeated(1_000, 5);
    let (events, many) = allocations(|| convert_all(long));
    assert_eq!(events, 5_000);
    // The vectors of blocks, of held events and of buffers are larger.
    assert!(many < few + 50, "{few}, then {many}");
}

#[test]
fn long_streams_take_constant_memory() {
    convert_all(sample_of_version_6().as_slice());
    let (events, most) = peak(|| convert_all(repeated(1_000, 2_000)));
    assert_eq!(events, 2_000_000);
    assert!(most < 4 * MIB, "{most}");
}
