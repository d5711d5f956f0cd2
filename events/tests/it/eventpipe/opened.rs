//! Streams that are opened as inputs: they are recognized by their content.

use std::io::{Cursor, Write};

use etl_events::eventpipe::Mode;
use etl_events::input::{Error, Input, InputOptions};
use etl_format::read::{Options, Order};
use flate2::Compression;
use flate2::write::GzEncoder;

use super::write::sample;

/// The number of records of an input, without the header event.
fn count(mut input: Input) -> usize {
    let mut trace = input.trace(&Options::default()).unwrap();
    let mut records = trace.records(Order::Time).unwrap();
    let mut count = 0;
    while let Some(record) = records.next_record().unwrap() {
        count += usize::from(record.event().is_some());
    }
    count
}

fn opened(bytes: Vec<u8>, options: &InputOptions) -> Result<Input, Error> {
    Input::from_bytes(bytes, options)
}

#[test]
fn a_stream_is_opened_as_a_trace() {
    let options = InputOptions::default();
    let input = opened(sample(), &options).unwrap();
    let report = input.head().conversion.as_ref().unwrap();
    assert_eq!((report.events, report.version), (2, 4));
    assert_eq!(count(input), 2);
    let piped = Input::from_reader(Cursor::new(sample()), &options).unwrap();
    assert_eq!(count(piped), 2);
}

#[test]
fn a_packed_stream_is_opened_as_a_trace() {
    let mut packed = GzEncoder::new(Vec::new(), Compression::default());
    packed.write_all(&sample()).unwrap();
    let input = opened(packed.finish().unwrap(), &InputOptions::default()).unwrap();
    assert!(input.head().conversion.is_some());
    assert_eq!(count(input), 2);
}

#[test]
fn a_fault_of_a_stream_is_reported_with_its_offset() {
    let stream = sample();
    let options = InputOptions::default();
    let error = opened(stream[..20].to_vec(), &options).unwrap_err();
    assert!(error.to_string().contains(": at offset 0x"), "{error}");

    let mut strict = InputOptions::default();
    strict.unpacker.eventpipe.mode = Mode::Strict;
    let cut = stream.len() - 1;
    let error = opened(stream[..cut].to_vec(), &strict).unwrap_err();
    let place = format!(": at offset {cut:#x}: ");
    assert!(error.to_string().contains(&place), "{error}");
}

#[test]
fn a_stream_of_an_unsupported_version_is_refused_by_its_version() {
    let mut stream = b"Nettrace\0\0\0\0\x07\0\0\0\0\0\0\0".to_vec();
    stream.extend([0; 100]);
    let error = opened(stream, &InputOptions::default()).unwrap_err();
    assert!(error.to_string().contains("version 7"), "{error}");
}

#[test]
fn the_trace_of_a_stream_is_bounded_like_an_unpacked_trace() {
    let mut options = InputOptions::default();
    options.unpacker.max_unpacked = Some(1000);
    let error = opened(sample(), &options).unwrap_err();
    assert_eq!(error.to_string(), "unpacks to more than 1000 bytes");
}
