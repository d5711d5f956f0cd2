//! Runs the Python reader of docs/format.md on real and simulated traces, and compares each record
//! with those of `etl-format`.

use etl_synth::SimulatedFile;
use std::path::{Path, PathBuf};
use std::process::Command;

use etl_format::compress::Effort;
use etl_format::constants::CompressionFormat;
use etl_format::read::{Options, Order, Trace};
use etl_format::rewrite::repack::Repacker;
use etl_format::write::BufferCompressor;
use etl_synth::Script;
use etl_test_support::{all_traces, needs, python, root};

/// The reader on the page.
fn reader(here: &Path) -> PathBuf {
    let page = std::fs::read_to_string(root().join("docs/format.md"))
        .unwrap()
        .replace("\r\n", "\n");
    let (_, block) = page.split_once("`read_etl.py`:\n```python\n").unwrap();
    let (script, _) = block.split_once("```\n").unwrap();
    let path = here.join("read_etl.py");
    std::fs::write(&path, script).unwrap();
    path
}

/// Time, kind and size of every record in time order, by etl-format.
fn ours(bytes: &[u8]) -> Vec<String> {
    let mut trace = Trace::open(bytes, &Options::default()).unwrap();
    let clock = trace.clock();
    let mut records = trace.records(Order::Time).unwrap();
    let mut out = Vec::new();
    while let Some(record) = records.next_record().unwrap() {
        let (time, len) = (clock.time(record.timestamp()).get(), record.bytes().len());
        out.push(format!("{time} {} {len}", record.kind()));
    }
    out
}

/// The same by the reader on the page.
fn theirs(python: &Path, reader: &Path, trace: &Path) -> Vec<String> {
    let output = Command::new(python)
        .arg(reader)
        .arg(trace)
        .output()
        .unwrap();
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{}: {said}", trace.display());
    String::from_utf8(output.stdout)
        .unwrap()
        .lines()
        .map(str::to_owned)
        .collect()
}

fn compare(python: &Path, reader: &Path, trace: &Path) -> usize {
    let (ours, theirs) = (
        ours(&std::fs::read(trace).unwrap()),
        theirs(python, reader, trace),
    );
    let differ = ours.iter().zip(&theirs).find(|(a, b)| a != b);
    assert_eq!(
        (differ, ours.len()),
        (None, theirs.len()),
        "{}",
        trace.display()
    );
    ours.len()
}

#[needs(traces, python)]
#[test]
fn python_reader_of_the_page_reads_real_traces() {
    let python = python();
    let here = tempfile::tempdir().unwrap();
    let reader = reader(here.path());
    let mut records = 0;
    for trace in all_traces() {
        // Python takes a minute for the large compressed one.
        if std::fs::metadata(&trace).unwrap().len() < 2 << 20 {
            records += compare(&python, &reader, &trace);
        }
    }
    assert!(records > 10_000, "{records}");
}

#[needs(python)]
#[test]
fn python_reader_of_the_page_reads_simulated_traces() {
    let python = python();
    let here = tempfile::tempdir().unwrap();
    let reader = reader(here.path());
    for name in [
        "xperf-recipe",
        "wow64",
        "classic",
        "wpp",
        "clocks",
        "circular",
        "new-files",
        "preallocated",
        "windows-7",
        "extended-stacks",
        "profile",
        "activities",
    ] {
        let corpus = root().join("corpus");
        let text = std::fs::read_to_string(corpus.join(format!("{name}.kdl"))).unwrap();
        let include = |file: &str| std::fs::read_to_string(corpus.join(file));
        let scenario = Script::new(name, &text).include(&include).parse().unwrap();
        for SimulatedFile { name: file, bytes } in etl_synth::Simulation::new(&scenario)
            .run_in_memory()
            .unwrap()
        {
            if !file.ends_with(".etl") {
                continue;
            }
            let path = here.path().join(format!("{name}-{file}"));
            std::fs::write(&path, &bytes).unwrap();
            assert!(compare(&python, &reader, &path) > 0);
            let mut packed = Vec::new();
            let compressor =
                BufferCompressor::new(CompressionFormat::XPRESS, Effort::Default).unwrap();
            Repacker::compress(compressor)
                .run(bytes.as_slice(), &mut packed)
                .unwrap();
            std::fs::write(&path, &packed).unwrap();
            compare(&python, &reader, &path);
        }
    }
}
