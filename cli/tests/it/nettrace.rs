//! EventPipe streams (`.nettrace`) as input of the commands, and `etlkit convert`.

use std::io::{Cursor, Write};

use etl_test_support::{needs, trace};
use serde_json::Value;
use zip::write::SimpleFileOptions;

use crate::common::{
    CommandOutput, directory, etlkit, etlkit_bytes, etlkit_piped, etlverify, names,
};
use write::{EventRow, ObjectStream, START_TICKS, metadata_blob, sample, stack_block, utf16};

#[allow(dead_code, reason = "other tests need more of it")]
#[path = "../../../nettrace/examples/common/write.rs"]
mod write;

fn all(said: &CommandOutput) -> String {
    format!("{}{}exit code {}\n", said.out, said.err, said.code)
}

/// Two samples of a thread, and the command line of the process.
pub fn sampled() -> Vec<u8> {
    let sampler = metadata_blob(1, "Microsoft-DotNETCore-SampleProfiler", 0, "");
    let session = metadata_blob(2, "Microsoft-DotNETCore-EventPipe", 1, "");
    let sample = EventRow {
        metadata: 1,
        sequence: 1,
        capture_thread: 31,
        processor: u32::MAX,
        thread: 40,
        stack: 1,
        time: START_TICKS + 1_000_000,
        payload: 2u32.to_le_bytes().to_vec(),
        ..EventRow::default()
    };
    let second = EventRow {
        sequence: 2,
        time: START_TICKS + 2_000_000,
        ..sample.clone()
    };
    let info = EventRow {
        metadata: 2,
        sequence: 1,
        capture_thread: 50,
        thread: 50,
        stack: 0,
        time: START_TICKS + 3_000_000,
        payload: utf16("/usr/bin/orders --port 80"),
        ..sample.clone()
    };
    let mut stream = ObjectStream::new(8);
    stream.metadata(&[sampler, session]);
    stream.block("StackBlock", &stack_block(1, 8, &[&[0x7f01, 0x7f02]]));
    stream.events(&[sample, second, info]);
    stream.finish()
}

fn zipped(name: &str, bytes: &[u8]) -> Vec<u8> {
    let mut out = zip::ZipWriter::new(Cursor::new(Vec::new()));
    let options = SimpleFileOptions::default();
    for (name, bytes) in [("readme.txt", &b"hello"[..]), (name, bytes)] {
        out.start_file(name, options).unwrap();
        out.write_all(bytes).unwrap();
    }
    out.finish().unwrap().into_inner()
}

#[test]
fn commands_read_streams() {
    let stream = sample();
    let cut = &stream[..stream.len() - 1];
    let here = directory(&[
        ("a.nettrace", &stream),
        ("cut.nettrace", cut),
        ("sampled.nettrace", &sampled()),
    ]);
    let mut text = String::new();
    for command in [
        &["info", "a.nettrace"][..],
        &["info", "cut.nettrace"],
        &["info", "cut.nettrace", "--strict"],
        &["dump", "a.nettrace", "--provider", "Contoso-Web"],
        &["analyze", "cpu", "sampled.nettrace"],
        &["analyze", "processes", "sampled.nettrace"],
        &["export", "folded", "sampled.nettrace", "-o", "-"],
    ] {
        text += &format!("$ etlkit {}\n", command.join(" "));
        text += &all(&etlkit(here.path(), command));
    }
    insta::assert_snapshot!("commands", text);
}

#[test]
fn every_form_of_a_stream_is_read() {
    let stream = sample();
    let mut gzip = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::default());
    gzip.write_all(&stream).unwrap();
    let level = ruzstd::encoding::CompressionLevel::Fastest;
    let here = directory(&[
        ("a.nettrace", &stream),
        ("a.nettrace.gz", &gzip.finish().unwrap()),
        (
            "a.nettrace.zst",
            &ruzstd::encoding::compress_to_vec(stream.as_slice(), level),
        ),
        ("a.nettrace.zip", &zipped("x/a.nettrace", &stream)),
        ("not-listed.txt", b"text"),
    ]);
    let expected = etlkit(here.path(), &["dump", "a.nettrace"]).out;
    assert_eq!(expected.matches("Contoso-Web").count(), 2, "{expected}");
    for name in ["a.nettrace.gz", "a.nettrace.zst", "a.nettrace.zip"] {
        let said = etlkit(here.path(), &["dump", name]);
        assert_eq!(
            (said.out.as_str(), said.code),
            (expected.as_str(), 0),
            "{name}"
        );
    }
    assert_eq!(etlkit_piped(&stream, &["dump", "-"]).out, expected);
    let reports = etlkit(here.path(), &["info", ".", "--format", "json"]).out;
    let reports: Value = serde_json::from_str(&reports).unwrap();
    assert_eq!(reports.as_array().unwrap().len(), 4);
    let verified = etlverify(here.path(), &["a.nettrace", "--format", "json"]);
    assert!(verified.code < 2, "{}", verified.err);
}

#[test]
fn convert_writes_the_trace_of_a_stream() {
    let stream = sample();
    let cut = &stream[..stream.len() - 1];
    let here = directory(&[("a.nettrace", &stream), ("cut.nettrace", cut)]);
    let mut text = String::new();
    for command in [
        &["convert", "a.nettrace", "-o", "a.etl"][..],
        &["convert", "a.nettrace", "-o", "a.etl"],
        &["convert", "cut.nettrace", "-o", "cut.etl"],
        &[
            "convert",
            "cut.nettrace",
            "-o",
            "json.etl",
            "--format",
            "json",
        ],
        &["convert", "cut.nettrace", "-o", "strict.etl", "--strict"],
        &["convert", "a.etl", "-o", "again.etl"],
    ] {
        text += &format!("$ etlkit {}\n", command.join(" "));
        text += &all(&etlkit(here.path(), command));
    }
    insta::assert_snapshot!("convert", text);
    let expected = ["a.etl", "a.nettrace", "cut.etl", "cut.nettrace", "json.etl"];
    assert_eq!(names(here.path()), expected);

    let file = std::fs::read(here.path().join("a.etl")).unwrap();
    let (piped, _) = etlkit_bytes(&stream, &["convert", "-", "-o", "-"]);
    assert!(piped == file);
    let of_stream = etlkit(here.path(), &["dump", "a.nettrace"]).out;
    assert_eq!(etlkit(here.path(), &["dump", "a.etl"]).out, of_stream);
}

/// The program counted its collections by generation and its exceptions.
#[needs(traces)]
#[test]
fn a_recorded_stream_has_what_its_program_counted() {
    let here = directory(&[]);
    let stream = trace("nettrace/8.0-1CCBD-5.nettrace.gz");
    let stream = stream.to_str().unwrap();
    let said = etlkit(here.path(), &["analyze", "gc", stream]);
    assert!(said.out.contains("  9 collections\n"), "{}", said.out);
    let said = etlkit(here.path(), &["analyze", "exceptions", stream]);
    assert!(said.out.contains("  10 exceptions\n"), "{}", said.out);
}

/// The events of .NET 10 have no address of the thrower, and none of a rethrow.
#[needs(traces)]
#[test]
fn exceptions_of_net_10_are_thrown_where_their_stack_says() {
    let here = directory(&[]);
    let stream = trace("nettrace/10.0-1CCBD-5.nettrace.gz");
    let said = etlkit(
        here.path(),
        &["analyze", "exceptions", stream.to_str().unwrap()],
    );
    assert!(said.out.contains("  9 exceptions\n"), "{}", said.out);
    for thrower in ["Work.dll!Work.Throw", "Work.dll!Work.Exceptions"] {
        assert!(said.out.contains(thrower), "{}", said.out);
    }
    assert!(!said.out.contains("System.Runtime.EH"), "{}", said.out);
}

#[needs(traces)]
#[test]
fn files_that_are_mapped_into_memory_are_images() {
    let here = directory(&[]);
    let stream = trace("nettrace/v6-one_collect.nettrace.gz");
    let said = etlkit(
        here.path(),
        &["analyze", "images", stream.to_str().unwrap()],
    );
    for path in ["/usr/bin/alpha", "/usr/bin/beta"] {
        assert!(said.out.contains(path), "{}", said.out);
    }
}

#[needs(traces)]
#[test]
fn a_recorded_profile_has_the_methods_of_its_program() {
    let here = directory(&[]);
    let stream = trace("nettrace/8.0-sampled.nettrace.gz");
    let said = etlkit(here.path(), &["analyze", "cpu", stream.to_str().unwrap()]);
    assert!(said.out.contains("  2520 samples: 2.520 s"), "{}", said.out);
    for method in ["Work.dll!Work.Main", "!System.Threading.Thread.Sleep"] {
        assert!(said.out.contains(method), "{}", said.out);
    }
}
