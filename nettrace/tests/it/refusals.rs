//! Streams that are refused, and why.

use std::io::{self, Read};

use etl_nettrace::{Error, Options, Reader};

use crate::text;
use crate::write::{ObjectStream, sample, sample_of_version_6};

fn refused(stream: &[u8]) -> Error {
    Reader::new(stream).unwrap_err()
}

/// The type of a first object of version 3 and earlier.
fn old_object(name: &str, version: u32) -> Vec<u8> {
    let mut stream = b"\x14\0\0\0!FastSerialization.1\x04\x04\x01".to_vec();
    stream.extend(version.to_le_bytes());
    stream.extend(version.to_le_bytes());
    stream.extend((name.len() as u32).to_le_bytes());
    stream.extend(name.as_bytes());
    stream.push(6);
    stream
}

#[test]
fn other_versions_are_refused_by_name() {
    let error = refused(&old_object("Trace", 3));
    let text = "at offset 0x0: EventPipe format version 3 is not supported (4 to 6 are): \
                record it again as .nettrace, for example with dotnet-trace";
    assert_eq!(error.to_string(), text);
    let error = refused(&old_object("Microsoft.DotNet.Runtime.EventPipeFile", 1));
    assert!(error.to_string().contains("version 1 is not"), "{error}");

    let mut later = sample_of_version_6();
    later[12] = 7;
    let error = refused(&later);
    assert!(
        error.to_string().contains("version 7 is not supported"),
        "{error}"
    );
    assert_eq!((error.offset, error.code()), (12, "version"));

    let mut stream = ObjectStream::new(8);
    // The version of the Trace object, and the least version of its readers.
    stream.bytes[35] = 6;
    assert!(Reader::new(stream.bytes.as_slice()).is_ok());
    stream.bytes[39] = 6;
    assert_eq!(refused(&stream.bytes).code(), "version");
    stream.bytes[35] = 3;
    stream.bytes[39] = 3;
    assert_eq!(refused(&stream.bytes).code(), "version");
}

#[test]
fn later_minor_versions_of_6_are_read() {
    let mut stream = sample_of_version_6();
    stream[16] = 9;
    let reader = Reader::new(stream.as_slice()).unwrap();
    assert_eq!(reader.header().version.minor, 9);
    assert_eq!(text::events(&stream, &Options::default()).len(), 2);
}

#[test]
fn other_files_are_refused_with_a_reason() {
    for (stream, reason) in [
        (
            old_object("Microsoft.Diagnostics.Tracing.Etlx.TraceLog", 80),
            ".etlx",
        ),
        (b"\x1f\x8b\x08\0\0\0\0\0\0\0".to_vec(), "gzip"),
        (b"ElfFile\0 and more".to_vec(), "does not begin with"),
        (
            b"\x14\0\0\0!FastSerialization.2".to_vec(),
            "does not begin with",
        ),
    ] {
        let error = refused(&stream);
        assert_eq!(error.code(), "not-nettrace", "{error}");
        assert!(error.to_string().contains(reason), "{error}");
    }
}

#[test]
fn streams_that_end_in_the_header_are_refused() {
    let all = [
        ObjectStream::new(8).bytes,
        sample_of_version_6()[..100].to_vec(),
    ];
    for stream in all {
        // The last byte of version 4 is the tag after the Trace object, which is read later.
        for len in 0..stream.len() - 1 {
            let error = refused(&stream[..len]);
            assert_eq!(error.code(), "truncated", "{len} bytes: {error}");
            assert!(error.offset <= len as u64);
        }
    }
}

#[test]
fn pointer_sizes_other_than_4_and_8_are_refused() {
    let mut stream = ObjectStream::new(5);
    let error = refused(&stream.bytes);
    let text = "at offset 0x55: the size of a pointer is 0x5, expected 4 or 8";
    assert_eq!(error.to_string(), text);
    stream.bytes.clear();
    assert_eq!(refused(&stream.bytes).code(), "truncated");
}

#[test]
fn a_date_that_does_not_exist_is_no_start_time() {
    let mut stream = sample();
    let date = stream
        .windows(4)
        .position(|w| w == [0xea, 7, 11, 0])
        .unwrap();
    stream[date + 2] = 13;
    let reader = Reader::new(stream.as_slice()).unwrap();
    let header = reader.header();
    assert_eq!(header.start_time, None);
    assert_eq!(header.file_time(header.start_ticks), None);
    assert_eq!(text::events(&stream, &Options::default()).len(), 2);
}

/// A source that fails after some bytes.
#[derive(Debug)]
struct Broken<'a> {
    bytes: &'a [u8],
}

impl Read for Broken<'_> {
    fn read(&mut self, out: &mut [u8]) -> io::Result<usize> {
        match self.bytes.read(out)? {
            0 => Err(io::Error::new(
                io::ErrorKind::ConnectionReset,
                "connection reset",
            )),
            len => Ok(len),
        }
    }
}

#[test]
fn events_before_an_error_of_the_source_are_returned() {
    let stream = sample();
    let error = Reader::new(Broken {
        bytes: &stream[..20],
    })
    .unwrap_err();
    assert!(error.is_io(), "{error}");
    for options in [Options::default(), text::by_time()] {
        // In the sequence point after the events.
        let bytes = &stream[..stream.len() - 9];
        let mut reader = Reader::with_options(Broken { bytes }, &options).unwrap();
        assert!(reader.next_event().unwrap().is_some());
        assert!(reader.next_event().unwrap().is_some());
        for _ in 0..2 {
            let error = reader.next_event().unwrap_err();
            assert!(error.is_io(), "{error}");
            assert_eq!(error.offset, bytes.len() as u64);
        }
    }
}
