//! EventPipe streams (`.nettrace`) as input of the commands, and `etlkit convert`.

use std::collections::BTreeMap;
use std::io::{Cursor, Write};
use std::path::Path;
use std::process::Command;

use etl_test_support::{needs, node_packages, root, trace};
use serde_json::Value;
use zip::write::SimpleFileOptions;

use crate::common::{
    CommandOutput, directory, etlkit, etlkit_bytes, etlkit_piped, etlverify, names,
};
use write::{EventRow, ObjectStream, START_TICKS, metadata_blob, sample, stack_block, utf16};

#[allow(dead_code, reason = "other tests need more of it")]
#[path = "../../../nettrace/examples/common/collect_linux.rs"]
mod collect_linux;

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

/// A report of `etlkit analyze` on a recorded stream.
fn analyzed(report: &str, stream: &str) -> Value {
    let path = trace(&format!("nettrace/{stream}.nettrace.gz"));
    let here = directory(&[]);
    let arguments = [
        "analyze",
        report,
        path.to_str().unwrap(),
        "--format",
        "json",
    ];
    serde_json::from_str(&etlkit(here.path(), &arguments).out).unwrap()
}

/// What the programs of the streams counted themselves, by the manifest of the streams.
fn counted_by_program(stream: &str) -> Value {
    let manifest = std::fs::read_to_string(trace("nettrace/manifest.json")).unwrap();
    let manifest: Vec<Value> = serde_json::from_str(&manifest).unwrap();
    let file = format!("{stream}.nettrace.gz");
    let mut rows = manifest.into_iter();
    let row = rows.find(|row| row["file"] == file.as_str()).unwrap();
    row["oracle"].clone()
}

/// Streams with all events of the runtime's ordinary keywords.
const COUNTED: [&str; 4] = ["3.1-1CCBD-5", "8.0-1CCBD-5", "8.0-sampled", "10.0-1CCBD-5"];

#[needs(traces)]
#[test]
fn streams_have_the_collections_that_programs_counted() {
    for stream in COUNTED {
        let report = analyzed("gc", stream);
        let collections = report["gcs"].as_array().unwrap();
        // A program counts a collection of a generation for each lower one.
        let expected = counted_by_program(stream)["gc"].clone();
        for generation in 0..3_u64 {
            let older = |gc: &&Value| gc["generation"].as_u64().unwrap() >= generation;
            let found = collections.iter().filter(older).count() as u64;
            assert_eq!(
                expected[generation as usize], found,
                "{stream}: {generation}"
            );
        }
    }
}

#[needs(traces)]
#[test]
fn streams_have_the_exceptions_that_programs_caught() {
    for stream in COUNTED {
        let mut caught = counted_by_program(stream)["caught"].as_u64().unwrap();
        // .NET 10 has one event for an exception that is thrown again.
        if stream.starts_with("10.0") {
            caught -= 1;
        }
        assert_eq!(analyzed("exceptions", stream)["count"], caught, "{stream}");
    }
}

#[needs(traces)]
#[test]
fn streams_have_the_lock_waits_that_programs_counted() {
    for stream in COUNTED {
        let counted = counted_by_program(stream);
        let report = analyzed("contention", stream);
        let mut waits = 0;
        for thread in report["lock_waits"].as_array().unwrap() {
            // The program counts waits of its main thread; others are the runtime's own.
            if thread["tid"] == thread["pid"] {
                waits += thread["count"].as_u64().unwrap();
            }
        }
        assert_eq!(counted["contended"], waits, "{stream}");
    }
}

#[needs(traces)]
#[test]
fn streams_have_the_finalizers_that_programs_counted() {
    let here = directory(&[]);
    for stream in COUNTED.into_iter().filter(|name| *name != "8.0-sampled") {
        let path = trace(&format!("nettrace/{stream}.nettrace.gz"));
        let path = path.to_str().unwrap();
        let select = [
            "dump",
            path,
            "--event",
            "FinalizeObject*",
            "--format",
            "jsonl",
        ];
        let mut by_type: BTreeMap<String, u64> = BTreeMap::new();
        for line in etlkit(here.path(), &select).out.lines() {
            let event: Value = serde_json::from_str(line).unwrap();
            *by_type
                .entry(event["fields"]["TypeID"].to_string())
                .or_default() += 1;
        }
        // The program has one type with a finalizer, the libraries have others.
        let finalized = counted_by_program(stream)["finalized"].as_u64().unwrap();
        assert!(
            by_type.values().any(|count| *count == finalized),
            "{by_type:?}"
        );
    }
}

/// Each sample of the sampling thread is a millisecond of its thread.
#[needs(traces, node)]
#[test]
fn speedscope_opens_the_profile_of_a_stream() {
    let path = trace("nettrace/8.0-sampled.nettrace.gz");
    let here = directory(&[]);
    let output = [
        "export",
        "speedscope",
        path.to_str().unwrap(),
        "-o",
        "a.json",
    ];
    assert_eq!(etlkit(here.path(), &output).code, 0);
    let opened = Command::new("node")
        .arg(root().join("tests/foreign/speedscope_import.cjs"))
        .args([node_packages(), here.path().join("a.json")])
        .output()
        .unwrap();
    let error = String::from_utf8_lossy(&opened.stderr);
    assert!(opened.status.success(), "{}", error.lines().last().unwrap());
    let group: Value = serde_json::from_slice(&opened.stdout).unwrap();
    let profiles = group["profiles"].as_array().unwrap();
    let sum: u64 = profiles.iter().map(|p| p["total"].as_u64().unwrap()).sum();
    assert_eq!(sum, 2_520_000_000);
    let main = &profiles[0];
    assert_eq!(main["unit"], "nanoseconds");
    // The main thread is in this method all the time.
    assert_eq!(main["frames"]["Work.dll!Work.Main"]["total"], main["total"]);
}

#[test]
fn rewriting_commands_refuse_damaged_streams() {
    let stream = sample();
    let cut = &stream[..stream.len() - 1];
    let here = directory(&[("a.nettrace", &stream), ("cut.nettrace", cut)]);
    for command in [
        &["merge", "a.nettrace", "cut.nettrace", "-o", "merged.etl"][..],
        &["compress", "cut.nettrace", "-o", "compressed.etl"],
    ] {
        let said = etlkit(here.path(), command);
        assert_eq!(said.code, 2, "{command:?}");
        assert!(said.err.contains("is cut at offset"), "{}", said.err);
        assert_eq!(names(here.path()), ["a.nettrace", "cut.nettrace"]);
    }
    let salvaged = [
        "merge",
        "a.nettrace",
        "cut.nettrace",
        "-o",
        "merged.etl",
        "--salvage",
    ];
    assert!(etlkit(here.path(), &salvaged).code < 2);
    let whole = ["compress", "a.nettrace", "-o", "compressed.etl"];
    assert_eq!(etlkit(here.path(), &whole).code, 0);
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
    let heading = "  2520 samples: 2.520 s of thread time, one sample of each thread per 1 ms\n";
    assert!(said.out.contains(heading), "{}", said.out);
    for method in ["Work.dll!Work.Main", "!System.Threading.Thread.Sleep"] {
        assert!(said.out.contains(method), "{}", said.out);
    }
}

/// A packed stream.
fn gzipped(stream: &[u8]) -> Vec<u8> {
    let mut gzip = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::default());
    gzip.write_all(stream).unwrap();
    gzip.finish().unwrap()
}

/// The reports of a command on several files.
fn reports(here: &Path, command: &[&str]) -> Vec<Value> {
    let said = etlkit(here, command);
    let reports: Value = serde_json::from_str(&said.out).unwrap();
    reports.as_array().unwrap().clone()
}

#[test]
fn directories_of_streams_are_read() {
    let stream = sampled();
    let here = directory(&[
        ("streams/a.nettrace", &stream),
        ("streams/cut.nettrace", &stream[..stream.len() - 1]),
        ("streams/deeper/b.nettrace.gz", &gzipped(&stream)),
        ("streams/notes.txt", b"text"),
    ]);
    let infos = reports(here.path(), &["info", "streams", "--format", "json"]);
    let complete: Vec<&Value> = infos
        .iter()
        .map(|info| &info["stream"]["is_complete"])
        .collect();
    assert_eq!(complete, [true, false, true]);
    let verdicts = reports(here.path(), &["verify", "streams", "--format", "json"]);
    let origins: Vec<&Value> = verdicts.iter().map(|report| &report["origin"]).collect();
    assert_eq!(origins, ["event_pipe"; 3]);
    let samples = ["dump", "streams", "--event", "ThreadSample"];
    assert_eq!(etlkit(here.path(), &samples).out.lines().count(), 6);
    if cfg!(feature = "parquet") {
        let tables = ["export", "parquet", "streams", "-o", "tables"];
        assert_eq!(etlkit(here.path(), &tables).code, 0);
    }
    // These commands read one recording: its files are named.
    for command in [
        &["analyze", "cpu", "streams"][..],
        &["export", "folded", "streams", "-o", "-"],
        &["convert", "streams", "-o", "all.etl"],
    ] {
        let said = etlkit(here.path(), command);
        assert_eq!(said.code, 2, "{command:?}");
        assert!(
            said.err.contains("hint: name the traces in it"),
            "{}",
            said.err
        );
    }
}

#[test]
fn several_streams_are_one_recording() {
    let stream = sampled();
    let here = directory(&[
        ("a.nettrace", &stream),
        ("b.nettrace.gz", &gzipped(&stream)),
    ]);
    let files = ["a.nettrace", "b.nettrace.gz"];
    let said = etlkit(here.path(), &[&["analyze", "cpu"][..], &files].concat());
    assert!(
        said.out.contains("  4 samples: 0.004 s of thread time"),
        "{}",
        said.out
    );
    let said = etlkit(
        here.path(),
        &[&["export", "folded"][..], &files, &["-o", "-"]].concat(),
    );
    assert!(said.out.contains("orders (4711);? 4"), "{}", said.out);
    let merge = [&["merge"][..], &files, &["-o", "merged.etl"]].concat();
    assert_eq!(etlkit(here.path(), &merge).code, 0);
    let verified = etlverify(here.path(), &["merged.etl", "--format", "json"]).out;
    let report: Value = serde_json::from_str(&verified).unwrap();
    assert_eq!(report["origin"], "event_pipe");
    // With the header event of each stream.
    assert_eq!(report["records"], 9);
}

#[test]
fn other_versions_are_refused_by_name() {
    let mut old =
        b"\x14\0\0\0!FastSerialization.1\x04\x04\x01\x03\0\0\0\x03\0\0\0\x05\0\0\0Trace\x06"
            .to_vec();
    old.extend([0; 100]);
    let mut later = b"Nettrace\0\0\0\0\x07\0\0\0\0\0\0\0".to_vec();
    later.extend([0; 100]);
    let here = directory(&[("old.nettrace", &old), ("later.nettrace", &later)]);
    for command in [
        &["info"][..],
        &["dump"],
        &["verify"],
        &["analyze", "gc"],
        &["export", "folded", "-o", "out"],
        &["convert", "-o", "out"],
    ] {
        for (file, version) in [
            ("old.nettrace", "version 3"),
            ("later.nettrace", "version 7"),
        ] {
            let said = etlkit(here.path(), &[command, &[file]].concat());
            assert_eq!(said.code, 2, "{command:?}");
            assert!(said.err.contains(version), "{command:?}: {}", said.err);
        }
    }
}

#[test]
fn commands_read_streams_of_collect_linux() {
    let stream = collect_linux::collect_linux();
    let here = directory(&[("a.nettrace", &stream)]);
    let mut text = String::new();
    for command in [
        &["info", "a.nettrace"][..],
        &["analyze", "processes", "a.nettrace"],
        &["analyze", "images", "a.nettrace"],
        &["analyze", "cpu", "--tree", "a.nettrace"],
        &["analyze", "waits", "a.nettrace"],
        &["analyze", "waits", "--tree", "a.nettrace"],
        &["export", "folded", "a.nettrace", "-o", "-"],
    ] {
        text += &format!("$ etlkit {}\n", command.join(" "));
        text += &all(&etlkit(here.path(), command));
    }
    insta::assert_snapshot!("collect_linux", text);
}
