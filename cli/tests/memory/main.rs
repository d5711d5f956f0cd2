//! The memory that every command takes for hostile traces.
//!
//! This is a test binary of its own, and small: a process counts the memory of the one that started
//! it as its own peak.
// Tests fail by panicking.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing
)]

mod hostile;

#[path = "../../../etl-format/tests/it/common/mod.rs"]
mod common;

use std::io::Read;
use std::path::Path;
use std::process::{Command, Stdio};

use etl_test_support::needs;
use hostile::Hostile;
use wait4::Wait4;

const MIB: u64 = 1 << 20;

/// What a process takes beside its budget: its code, and the pages of mapped files.
const BESIDE: u64 = 64 * MIB;

/// Commands that keep most of what the records are about.
const KEEPING: [&[&str]; 3] = [
    &["verify", "t.etl"],
    &["diff", "t.etl", "t.etl"],
    &[
        "slice",
        "t.etl",
        "-o",
        "out.etl",
        "--force",
        "--process",
        "app.exe",
    ],
];

/// Commands that keep little, and buffers.
const COPYING: [&[&str]; 9] = [
    &["info", "t.etl"],
    &["dump", "t.etl"],
    &["dump", "t.etl", "--file-order", "--format", "jsonl"],
    &["slice", "t.etl", "-o", "out.etl", "--force", "--pid", "8"],
    &["scrub", "t.etl", "-o", "out.etl", "--force", "--salt", "x"],
    &["merge", "t.etl", "-o", "out.etl", "--force"],
    &["repair", "t.etl", "-o", "out.etl", "--force"],
    &["compress", "t.etl", "-o", "out.etl", "--force"],
    &["decompress", "t.etl", "-o", "out.etl", "--force"],
];

struct Ran {
    code: i32,
    err: String,
    peak: u64,
}

fn run(here: &Path, args: &[&str]) -> Ran {
    let mut command = Command::new(env!("CARGO_BIN_EXE_etlkit"));
    command.current_dir(here).args(args).stdin(Stdio::null());
    let mut child = command
        .stdout(Stdio::null())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let mut err = String::new();
    child
        .stderr
        .take()
        .unwrap()
        .read_to_string(&mut err)
        .unwrap();
    let done = child.wait4().unwrap();
    Ran {
        code: done.status.code().unwrap_or(-1),
        err,
        peak: done.rusage.maxrss,
    }
}

/// Runs commands on a trace; returns those that took more than `budget` and what goes beside it, or
/// ended in another way than by a result or a refusal.
fn beyond(commands: &[&[&str]], hostile: &Hostile, options: &[&str], budget: u64) -> Vec<String> {
    let here = tempfile::tempdir().unwrap();
    std::fs::write(here.path().join("t.etl"), &hostile.bytes).unwrap();
    let mut beyond = Vec::new();
    for args in commands {
        let Ran { code, err, peak } = run(here.path(), &[*args, options].concat());
        let mib = peak / MIB;
        if std::env::var_os("ETLKIT_MEMORY").is_some() {
            let first = err.lines().next().unwrap_or_default();
            println!(
                "{mib:5} MiB, exit code {code}: {} {} {first}",
                args[0], hostile.name
            );
        }
        let refused = err.contains("--max-memory") || err.contains("no process of the trace");
        if peak > budget + BESIDE || !(0..=2).contains(&code) || (code == 2) != refused {
            beyond.push(format!(
                "{} {args:?}: {mib} MiB, exit code {code}: {err}",
                hostile.name
            ));
        }
    }
    beyond
}

#[needs(time)]
#[test]
fn commands_keep_the_budget_that_they_are_given() {
    let mut found = Vec::new();
    let mut judge = |commands: &[&[&str]], hostile: &Hostile| {
        found.extend(beyond(
            commands,
            hostile,
            &["--max-memory", "64M"],
            64 * MIB,
        ));
    };
    for (name, make) in hostile::KINDS {
        judge(&KEEPING, &hostile::growing(name, make, 3 << 20));
    }
    for name in ["tiny", "events"] {
        judge(
            &COPYING,
            &hostile::growing(name, hostile::kind(name), 8 << 20),
        );
    }
    for hostile in [hostile::empty_buffers(100_000), hostile::processors(200)] {
        judge(&KEEPING, &hostile);
        judge(&COPYING, &hostile);
    }
    assert!(found.is_empty(), "{}", found.join("\n"));
}

#[test]
fn reports_keep_the_budget_that_they_are_given() {
    let options = ["--max-memory", "64M"];
    let mut found = Vec::new();
    for (count, one) in [(1_000, true), (4_000, false)] {
        let hostile = hostile::waiting_keys(count, one);
        found.extend(beyond(
            &[&["analyze", "cpu", "t.etl"]],
            &hostile,
            &options,
            64 * MIB,
        ));
    }
    let info: &[&str] = &["info", "--format", "json", "t.etl"];
    found.extend(beyond(&[info], &hostile::gaps(4_000), &options, 64 * MIB));
    assert!(found.is_empty(), "{}", found.join("\n"));
}

/// Commands whose results are larger than what they were made from.
const RESULTS: [&[&str]; 7] = [
    &["analyze", "cpu", "t.etl", "--format", "json"],
    &["analyze", "cpu", "t.etl", "--tree", "--format", "csv"],
    &["export", "firefox", "t.etl", "-o", "out", "--force"],
    &["export", "perfetto", "t.etl", "-o", "out", "--force"],
    &["export", "pprof", "t.etl", "-o", "out", "--force"],
    &["export", "flamegraph", "t.etl", "-o", "out", "--force"],
    &["export", "speedscope", "t.etl", "-o", "out", "--force"],
];

#[needs(time)]
#[test]
fn results_keep_the_budget_that_they_are_given() {
    let stacks = hostile::growing("stacks", hostile::sampled_stack, 4 << 20);
    let processes = hostile::growing("processes", hostile::kind("processes"), 16 << 20);
    let info: &[&str] = &["info", "--format", "json", "t.etl"];
    let mut found = Vec::new();
    // Too little for reading, for the result, and for neither.
    for mib in [32, 96, 160, 512] {
        let memory = format!("{mib}M");
        let options = ["--max-memory", &memory];
        found.extend(beyond(&RESULTS, &stacks, &options, mib * MIB));
        found.extend(beyond(&[info], &processes, &options, mib * MIB));
    }
    assert!(found.is_empty(), "{}", found.join("\n"));
}

#[needs(time)]
#[test]
fn memory_is_tied_to_the_size_of_the_trace() {
    let mut found = Vec::new();
    for name in ["samples", "tiny"] {
        for (plain, count) in [(1 << 20, 6), (16 << 20, 1)] {
            let hostile = hostile::repeating(name, hostile::kind(name), plain, count);
            let budget = 128 * MIB + 256 * hostile.bytes.len() as u64;
            found.extend(beyond(&KEEPING, &hostile, &[], budget));
            if name == "tiny" {
                found.extend(beyond(&COPYING, &hostile, &[], budget));
            }
        }
    }
    assert!(found.is_empty(), "{}", found.join("\n"));
}

#[test]
fn refusal_names_file_place_budget_and_option() {
    let hostile = hostile::growing("samples", hostile::kind("samples"), 8 << 20);
    let here = tempfile::tempdir().unwrap();
    std::fs::write(here.path().join("t.etl"), &hostile.bytes).unwrap();
    let args = ["verify", "t.etl", "--threads", "1", "--max-memory", "32M"];
    let said = run(here.path(), &args);
    assert_eq!(said.code, 2, "{}", said.err);
    let (before, place) = said.err.split_once("at offset 0x").unwrap();
    let (_, after) = place.split_once(": ").unwrap();
    assert_eq!(before, "error: t.etl: ");
    assert_eq!(
        after,
        "the memory budget of 33554432 bytes is exceeded while the trace is read\n\
         hint: --max-memory allows more\n"
    );
    for _ in 0..3 {
        assert_eq!(run(here.path(), &args).err, said.err, "the same every time");
    }
}

#[test]
fn files_that_are_read_together_are_judged_as_each_alone() {
    let hostile = hostile::growing("samples", hostile::kind("samples"), 4 << 20);
    let here = tempfile::tempdir().unwrap();
    for name in ["a.etl", "b.etl", "c.etl"] {
        std::fs::write(here.path().join(name), &hostile.bytes).unwrap();
    }
    let files = ["verify", "a.etl", "b.etl", "c.etl", "--max-memory", "96M"];
    let alone = run(here.path(), &files);
    let together = run(here.path(), &[&files[..], &["--jobs", "3"]].concat());
    assert_eq!((together.code, &together.err), (alone.code, &alone.err));
    assert_ne!(alone.code, 2, "{}", alone.err);
}
