//! The memory that reading takes, of long and of hostile streams.
// Tests fail by panicking.
#![allow(clippy::unwrap_used, clippy::panic, clippy::indexing_slicing)]

#[path = "../../tests/tests/limits/counting.rs"]
mod counting;
#[allow(dead_code)]
#[path = "../examples/common/write.rs"]
mod write;

use std::io::{Chain, Cursor, Read};

use counting::{allocations, peak};
use etl_nettrace::{Limits, LossTracker, Options, Order, Reader};
use write::*;

const MIB: usize = 1 << 20;

fn options(order: Order, limits: Limits) -> Options {
    Options {
        order,
        limits,
        ..Options::default()
    }
}

/// Reads to the end, or up to an error. Returns the number of events.
fn read(source: impl Read, options: &Options) -> u64 {
    let mut reader = Reader::with_options(source, options).unwrap();
    let mut losses = LossTracker::new();
    while let Ok(Some(item)) = reader.next_item() {
        losses.add(&item);
    }
    reader.events()
}

fn rows(count: usize) -> Vec<EventRow> {
    let mut rows = Vec::new();
    for number in 0..count {
        rows.push(EventRow {
            metadata: 1,
            sequence: number as u32 + 1,
            stack: 1,
            time: number as u64,
            activity: [number as u8; 16],
            payload: vec![7; 20],
            ..EventRow::default()
        });
    }
    rows
}

fn with_metadata() -> ObjectStream {
    let mut stream = ObjectStream::new(8);
    stream.metadata(&[metadata_blob(1, "A", 1, "")]);
    stream.block("StackBlock", &stack_block(1, 8, &[&[1, 2, 3]]));
    stream
}

#[test]
fn reading_allocates_nothing_for_each_event() {
    let stream = |events: usize| {
        let mut stream = with_metadata();
        for _ in 0..5 {
            stream.events(&rows(events));
        }
        stream.finish()
    };
    let few = stream(100);
    let many = stream(1_000);
    for order in [Order::File, Order::Time] {
        let options = options(order, Limits::default());
        let (events, few) = allocations(|| read(few.as_slice(), &options));
        assert_eq!(events, 500);
        let (events, many) = allocations(|| read(many.as_slice(), &options));
        assert_eq!(events, 5_000);
        // The vectors of blocks and of held events are larger.
        assert!(many < few + 40, "{order:?}: {few}, then {many}");
    }
}

#[test]
fn false_sizes_take_no_memory() {
    let mut stream = with_metadata();
    stream.begin("EventBlock", 2);
    stream.bytes.extend((60u32 << 20).to_le_bytes());
    stream.bytes.extend([0; 100]);
    let mut blocks = BlockStream::new(8);
    blocks
        .bytes
        .extend([0xff, 0xff, 0xff, 5, 1, 0, 0, 0, 0xff, 0xff, 0xff, 0xff, 8]);
    for bytes in [stream.bytes, blocks.bytes] {
        let (_, most) = peak(|| read(bytes.as_slice(), &Options::default()));
        assert!(most < 100_000, "{most}");
    }
}

#[test]
fn tables_have_a_limit() {
    let limits = Limits {
        tables: MIB as u64,
        ..Limits::default()
    };
    let options = options(Order::File, limits);
    let mut metadata = ObjectStream::new(8);
    let mut stacks = ObjectStream::new(4);
    let mut threads = BlockStream::new(8);
    let mut labels = BlockStream::new(8);
    for id in 0..100_000u32 {
        metadata.metadata(&[metadata_blob(id, "Provider", id, "Name")]);
        stacks.block("StackBlock", &stack_block(id * 2, 4, &[&[1]]));
        let mut row = Vec::new();
        var(&mut row, id.into());
        row.extend([1, 1, b'x']);
        threads.rows(block_kind::THREADS, &[], &[row]);
        let list = [id.to_le_bytes(), 1u32.to_le_bytes(), [0x87, 1, 0, 0]].concat();
        labels.block(block_kind::LABEL_LISTS, &list[..10]);
    }
    for bytes in [metadata.bytes, stacks.bytes, threads.bytes, labels.bytes] {
        let mut reader = Reader::with_options(bytes.as_slice(), &options).unwrap();
        let (error, most) = peak(|| {
            loop {
                match reader.next_item() {
                    Ok(Some(_)) => {}
                    Ok(None) => break None,
                    Err(error) => break Some(error.code()),
                }
            }
        });
        assert_eq!(error, Some("limit"));
        assert!(most < 3 * MIB, "{most}");
    }
}

/// Lists of tiny entries, which take more memory than their bytes.
#[test]
fn lists_in_a_block_have_limits() {
    const BYTES: usize = 8 * MIB;
    let limits = Limits {
        tables: MIB as u64,
        ..Limits::default()
    };
    let options = options(Order::File, limits);
    let mut labels = BlockStream::new(8);
    let mut list = vec![1, 0, 0, 0, 1, 0, 0, 0];
    list.resize(BYTES, 7);
    labels.block(block_kind::LABEL_LISTS, &list);

    let mut threads = BlockStream::new(8);
    let mut point = vec![0; 12];
    point.extend([0xff; 4]);
    point.resize(BYTES, 1);
    threads.block(block_kind::SEQUENCE_POINT, &point);

    let mut fields = ObjectStream::new(8);
    let mut blob = metadata_blob(1, "A", 1, "");
    blob.extend(0x7fff_ffffu32.to_le_bytes());
    while blob.len() < BYTES {
        blob.extend(field(9, ""));
    }
    fields.metadata(&[blob]);

    for bytes in [labels.bytes, threads.bytes, fields.bytes] {
        let (_, most) = peak(|| read(bytes.as_slice(), &options));
        // The vector of the block grows by doubling.
        assert!(most < 2 * BYTES + 10 * MIB, "{most}");
    }
}

#[test]
fn sorting_has_a_limit() {
    let limits = Limits {
        sorting: MIB as u64,
        ..Limits::default()
    };
    let options = options(Order::Time, limits);
    let mut stream = with_metadata();
    // Blocks of one event each, of many events each, and each earlier than the one before.
    for number in 0..50_000 {
        let mut rows = rows(1);
        rows[0].time = 1_000_000 - number;
        stream.events(&rows);
    }
    for _ in 0..10 {
        stream.events(&rows(10_000));
    }
    let bytes = stream.finish();
    let (events, most) = peak(|| read(bytes.as_slice(), &options));
    assert_eq!(events, 150_000);
    assert!(most < 4 * MIB, "{most}");
}

/// A held event keeps its metadata, which may have been replaced.
#[test]
fn replaced_metadata_of_held_events_has_a_limit() {
    let limits = Limits {
        sorting: MIB as u64,
        ..Limits::default()
    };
    let options = options(Order::Time, limits);
    let mut stream = with_metadata();
    let name = "x".repeat(20_000);
    for _ in 0..500 {
        stream.metadata(&[metadata_blob(1, "A", 1, &name)]);
        stream.events(&rows(1));
    }
    let bytes = stream.finish();
    let (events, most) = peak(|| read(bytes.as_slice(), &options));
    assert_eq!(events, 500);
    assert!(most < 3 * MIB, "{most}");
}

/// Repeats a piece of a stream without keeping the copies.
struct Repeated {
    piece: Vec<u8>,
    left: usize,
    position: usize,
}

impl Read for Repeated {
    fn read(&mut self, out: &mut [u8]) -> std::io::Result<usize> {
        if self.left == 0 {
            return Ok(0);
        }
        let len = (&self.piece[self.position..]).read(out)?;
        self.position += len;
        if self.position == self.piece.len() {
            self.position = 0;
            self.left -= 1;
        }
        Ok(len)
    }
}

/// A stream of version 6 whose blocks repeat: 100 MB of stacks, events and sequence points.
fn long_stream() -> Chain<Cursor<Vec<u8>>, Repeated> {
    let head = BlockStream::new(8);
    let mut blocks = BlockStream { bytes: Vec::new() };
    let row = metadata_row(1, "A", 1, "", &[]);
    blocks.rows(block_kind::METADATA, &[0, 0], &[row]);
    blocks.rows(block_kind::THREADS, &[], &[vec![0, 3, 1]]);
    let stacks: Vec<u64> = (0..1_000).collect();
    blocks.block(block_kind::STACKS, &stack_block(1, 8, &[&stacks]));
    blocks.events(&rows(1_000));
    blocks.block(block_kind::SEQUENCE_POINT, &[0; 16]);
    let left = 100 * MIB / blocks.bytes.len();
    let repeated = Repeated {
        piece: blocks.bytes,
        left,
        position: 0,
    };
    Cursor::new(head.bytes).chain(repeated)
}

#[test]
fn long_streams_take_constant_memory() {
    for order in [Order::File, Order::Time] {
        let options = options(order, Limits::default());
        let (events, most) = peak(|| read(long_stream(), &options));
        assert!(events > 1_000_000, "{events}");
        assert!(most < 2 * MIB, "{most}");
    }
}
