//! The target for EventPipe streams, and its seeds.

use std::io::Read;

use etl_events::eventpipe::{ConvertError, ConvertOptions, convert};
use etl_format::read::{self, Options as TraceOptions, Trace};
use etl_nettrace::{ErrorKind, Event, Item, Limits, LossTracker, Options, Order, Reader};

use super::choice;
use write::{
    BlockStream, EventRow, Format, Headers, ObjectStream, block_kind, event_block, metadata_blob,
    metadata_row, sample, sample_of_version_6, sequence_point, stack_block,
};

#[allow(dead_code, missing_docs)]
#[path = "../../../nettrace/examples/common/write.rs"]
mod write;

/// Limits that a short input can reach.
const LIMITS: Limits = Limits {
    block: 1 << 20,
    tables: 1 << 20,
    sorting: 20_000,
};

/// A source that returns a few bytes at a time.
struct Slow<'a>(&'a [u8]);

impl Read for Slow<'_> {
    fn read(&mut self, out: &mut [u8]) -> std::io::Result<usize> {
        let len = out.len().min(7);
        self.0.read(&mut out[..len])
    }
}

/// What a reader returns of a stream.
#[derive(Debug, PartialEq)]
struct Outcome {
    events: Vec<Summary>,
    damage: u64,
    error: Option<&'static str>,
}

/// An event, by its place.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Summary {
    offset: u64,
    sequence_number: u32,
    stack: Vec<u64>,
    payload: Vec<u8>,
}

impl Summary {
    fn new(event: &Event<'_>) -> Self {
        Summary {
            offset: event.offset,
            sequence_number: event.sequence_number,
            stack: event.stack.to_vec(),
            payload: event.payload.to_vec(),
        }
    }
}

fn read(source: impl Read, order: Order) -> Option<Outcome> {
    let options = Options {
        order,
        limits: LIMITS,
        ..Options::default()
    };
    let mut reader = match Reader::with_options(source, &options) {
        Ok(reader) => reader,
        Err(error) => {
            assert!(!error.to_string().is_empty());
            return None;
        }
    };
    let mut losses = LossTracker::new();
    let mut events = Vec::new();
    let error = loop {
        match reader.next_item() {
            Ok(Some(item)) => {
                losses.add(&item);
                assert!(!format!("{item:?}").is_empty());
                if let Item::Event(event) = item {
                    events.push(Summary::new(&event));
                }
            }
            Ok(None) => break None,
            Err(error) => {
                assert!(matches!(error.kind, ErrorKind::Limit { .. }), "{error}");
                break Some(error.code());
            }
        }
    };
    assert_eq!(reader.events(), events.len() as u64);
    let is_whole = reader.is_complete() && error.is_none();
    assert!(is_whole || error.is_some() || reader.damage_count() > 0);
    for damage in reader.damage() {
        assert!(damage.range.start <= damage.range.end, "{damage:?}");
        assert!(!damage.error.to_string().is_empty());
    }
    Some(Outcome {
        events,
        damage: reader.damage_count(),
        error,
    })
}

/// Reads a stream at once and in pieces, in both orders, and a part of it.
pub(super) fn run(data: &[u8]) {
    let (part, stream) = choice(data);
    let whole = read(stream, Order::File);
    assert_eq!(read(Slow(stream), Order::File), whole);
    let mut by_time = read(stream, Order::Time);
    if let Some(outcome) = &mut by_time {
        outcome.events.sort();
    }
    assert_eq!(by_time, whole, "in time order");
    check_trace(stream);
    let Some(whole) = whole else { return };
    assert!(whole.events.len() <= stream.len());
    let len = stream.len() * usize::from(part) / 256;
    if let Some(cut) = read(&stream[..len], Order::File) {
        assert!(whole.events.starts_with(&cut.events), "{len} bytes");
    }
}

/// Converts a stream, and reads the trace strictly.
fn check_trace(stream: &[u8]) {
    let mut options = ConvertOptions::default();
    options.limits = LIMITS;
    let finished = match convert(stream, Vec::new(), &options) {
        Ok(finished) => finished,
        Err(ConvertError::Read(_)) => return,
        Err(error) => panic!("{error}"),
    };
    let mut trace = Trace::open(finished.output.as_slice(), &TraceOptions::default()).unwrap();
    let mut records = trace.records(read::Order::Time).unwrap();
    let mut events = 0;
    while let Some(record) = records.next_record().unwrap() {
        events += u64::from(record.is_event());
    }
    assert_eq!(events, finished.report.events);
}

/// Small streams of both encodings, each after a byte that selects a part of it.
pub(super) fn seeds() -> Vec<(String, Vec<u8>)> {
    let seeds = [
        ("objects", sample()),
        ("blocks", sample_of_version_6()),
        ("plain-objects", plain_objects()),
        ("plain-blocks", plain_blocks()),
        ("tags", tags()),
    ];
    let mut out = Vec::new();
    for (name, stream) in seeds {
        out.push((name.to_owned(), [&[0xc0], &stream[..]].concat()));
    }
    out
}

fn rows() -> Vec<EventRow> {
    let mut rows = Vec::new();
    for number in 1..9 {
        rows.push(EventRow {
            metadata: 1 + number % 2,
            sequence: number,
            stack: number % 3,
            time: u64::from(number * 5 % 8),
            barrier: number == 5,
            payload: vec![7; number as usize],
            ..EventRow::default()
        });
    }
    rows
}

fn plain_objects() -> Vec<u8> {
    let mut stream = ObjectStream::new(4);
    stream.metadata(&[metadata_blob(1, "A", 1, "a"), metadata_blob(2, "B", 2, "b")]);
    stream.block("StackBlock", &stack_block(1, 4, &[&[1, 2], &[3]]));
    let content = event_block(&rows(), Headers::Plain, Format::Objects);
    stream.block("EventBlock", &content);
    stream.block("SPBlock", &sequence_point(9, &[(0, 8), (1, 2)]));
    stream.events(&rows());
    stream.finish()
}

fn plain_blocks() -> Vec<u8> {
    let mut stream = BlockStream::new(8);
    let metadata = [
        metadata_row(1, "A", 1, "a", &[]),
        metadata_row(2, "B", 2, "b", &[7, 1]),
    ];
    stream.rows(block_kind::METADATA, &[0, 0], &metadata);
    stream.rows(block_kind::THREADS, &[], &[vec![0, 2, 1, 3, 2]]);
    stream.block(block_kind::STACKS, &stack_block(1, 8, &[&[1, 2], &[3]]));
    let content = event_block(&rows(), Headers::Plain, Format::Blocks);
    stream.block(block_kind::EVENTS, &content);
    stream.finish()
}

/// Metadata with nested fields and with the tags of version 5.
fn tags() -> Vec<u8> {
    let mut blob = metadata_blob(1, "A", 1, "WorkStart");
    blob.extend(1u32.to_le_bytes());
    blob.extend(1u32.to_le_bytes());
    blob.extend(1u32.to_le_bytes());
    blob.extend(write::field(19, ""));
    blob.extend(write::field(9, "Count"));
    for (tag, content) in [
        (1, &[9][..]),
        (2, &[1, 0, 0, 0, 10, 0, 0, 0, 0, 0, 5, 0, 0, 0]),
    ] {
        blob.extend((content.len() as u32).to_le_bytes());
        blob.push(tag);
        blob.extend(content);
    }
    let mut stream = ObjectStream::new(8);
    stream.metadata(&[blob]);
    stream.events(&rows());
    stream.finish()
}
