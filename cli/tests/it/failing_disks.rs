//! Failing disks and kills for every command that writes files: existing files stay, or are
//! replaced by complete ones.
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::Duration;

use crate::common::{CommandOutput, TOOLS, directory, etlkit, large, names, trace};

/// A scenario with two traces.
const SCENARIO: &str = include_str!("two.kdl");

/// Runs `etlkit` with a limit for the size of files: a write beyond it is short, and the next one
/// fails.
pub fn limited(here: &Path, blocks: u32, args: &[&str]) -> CommandOutput {
    let script = format!("trap '' XFSZ; ulimit -f {blocks}; exec \"$0\" \"$@\"");
    let mut command = Command::new("sh");
    command
        .current_dir(here)
        .args(["-c", &script, env!("CARGO_BIN_EXE_etlkit")])
        .args(args);
    command.stdin(Stdio::null()).output().unwrap().into()
}

#[test]
fn failed_write_keeps_the_old_output() {
    let here = directory(&[("t.etl", &large()), ("out.etl", b"what was there")]);
    for tool in TOOLS {
        for blocks in [0, 1, 9, 100] {
            for out in ["out.etl", "new.etl", "-"] {
                let said = limited(
                    here.path(),
                    blocks,
                    &[tool, &["-o", out, "--force"]].concat(),
                );
                let what = format!("{tool:?} to {out}, {blocks} blocks");
                assert_eq!((said.code, said.out.as_str()), (2, ""), "{what}");
                assert!(said.err.contains("File too large"), "{what}: {}", said.err);
            }
        }
        assert_eq!(
            std::fs::read(here.path().join("out.etl")).unwrap(),
            b"what was there"
        );
        assert_eq!(
            names(here.path()),
            ["out.etl", "t.etl"],
            "{tool:?} leaves something"
        );
    }
}

/// Large unpacked input goes to a temporary file.
#[test]
fn full_disk_while_unpacking_is_reported() {
    let mut packer = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
    let megabyte = vec![0; 1 << 20];
    for _ in 0..66 {
        std::io::Write::write_all(&mut packer, &megabyte).unwrap();
    }
    let here = directory(&[("t.etl.gz", &packer.finish().unwrap())]);
    let said = limited(here.path(), 1_000, &["info", "t.etl.gz"]);
    assert_eq!((said.code, said.out.as_str()), (2, ""));
    assert!(said.err.contains("File too large"), "{}", said.err);
}

/// Every use of the directory for temporary files: what fails is that directory, not the file that
/// a command reads or writes.
#[test]
fn missing_directory_for_temporary_files_is_named() {
    let here = directory(&[("t.etl", &large())]);
    // A trace that does not fit into the memory for pipes.
    let mut piped = large();
    piped.resize(17 << 20, 0);
    let run = |args: &[&str], input: &[u8]| -> CommandOutput {
        let mut command = Command::new(env!("CARGO_BIN_EXE_etlkit"));
        command
            .current_dir(here.path())
            .args(args)
            .env("TMPDIR", "/nonexistent");
        command
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped());
        let mut child = command.spawn().unwrap();
        let _ = std::io::Write::write_all(&mut child.stdin.take().unwrap(), input);
        child.wait_with_output().unwrap().into()
    };
    for args in [
        &["slice", "t.etl", "--pid", "100", "-o", "-"][..],
        &["merge", "t.etl", "-o", "-"],
        &["export", "perfetto", "t.etl", "-o", "pf"],
        &["info", "-"],
    ] {
        let input: &[u8] = if args.contains(&"info") { &piped } else { &[] };
        let said = run(args, input);
        assert_eq!(
            (said.code, said.out.as_str()),
            (2, ""),
            "{args:?}: {}",
            said.err
        );
        assert!(
            said.err.contains("a temporary file in /nonexistent"),
            "{args:?}: {}",
            said.err
        );
        assert!(
            said.err
                .contains("hint: set the environment variable TMPDIR"),
            "{}",
            said.err
        );
        assert!(!said.err.contains(".tmp"), "{args:?}: {}", said.err);
    }
}

#[test]
fn synth_on_failing_disk_keeps_old_files() {
    let here = directory(&[]);
    std::fs::create_dir(here.path().join("corpus")).unwrap();
    std::fs::write(here.path().join("corpus/two.kdl"), SCENARIO).unwrap();
    for args in [
        &["synth", "corpus/two.kdl", "-o", "out"][..],
        &["corpus", "build", "-o", "out"],
    ] {
        let made = etlkit(here.path(), args);
        assert_eq!(made.code, 0, "{}", made.err);
        let to = if args[0] == "synth" { "out" } else { "out/two" };
        let out = here.path().join(to);
        let files = names(&out);
        assert!(
            files.contains(&"truth.jsonl".to_owned()) && files.len() > 2,
            "{files:?}"
        );
        for name in &files {
            std::fs::write(out.join(name), b"what was there").unwrap();
        }
        for blocks in [0, 1, 9] {
            let said = limited(here.path(), blocks, &[args, &["--force"]].concat());
            assert_eq!((said.code, said.out.as_str()), (2, ""), "{args:?} {blocks}");
            let named = said.err.starts_with(&format!("error: {to}/"));
            assert!(
                named && said.err.contains(": File too large"),
                "{args:?}: {}",
                said.err
            );
            assert_eq!(names(&out), files, "{args:?} {blocks}");
            for name in &files {
                assert_eq!(std::fs::read(out.join(name)).unwrap(), b"what was there");
            }
        }
        std::fs::remove_dir_all(here.path().join("out")).unwrap();
    }
}

#[test]
fn lock_and_man_pages_are_replaced_atomically() {
    let here = directory(&[
        ("two.kdl", SCENARIO.as_bytes()),
        ("corpus.lock", b"what was there\n"),
    ]);
    let said = limited(
        here.path(),
        0,
        &["corpus", "check", "--update", "--corpus", "."],
    );
    assert_eq!(said.code, 2, "{}", said.err);
    assert_eq!(
        std::fs::read(here.path().join("corpus.lock")).unwrap(),
        b"what was there\n"
    );
    assert_eq!(names(here.path()), ["corpus.lock", "two.kdl"]);
    assert_eq!(
        etlkit(
            here.path(),
            &["corpus", "check", "--update", "--corpus", "."]
        )
        .code,
        0
    );
    assert_eq!(
        etlkit(here.path(), &["corpus", "check", "--corpus", "."]).code,
        0
    );

    assert_eq!(etlkit(here.path(), &["man", "man1"]).code, 0);
    let pages = names(&here.path().join("man1"));
    std::fs::write(here.path().join("man1").join(&pages[0]), b"what was there").unwrap();
    let said = limited(here.path(), 0, &["man", "man1"]);
    assert_eq!(said.code, 2);
    assert_eq!(names(&here.path().join("man1")), pages);
    let first = std::fs::read(here.path().join("man1").join(&pages[0])).unwrap();
    assert_eq!(first, b"what was there");
}

/// If the truth exists, the traces that it describes exist and match.
#[test]
fn killed_synth_leaves_complete_files() {
    let here = directory(&[("two.kdl", SCENARIO.as_bytes())]);
    let run = |out: &str, seed: &str| {
        let mut command = Command::new(env!("CARGO_BIN_EXE_etlkit"));
        command
            .current_dir(here.path())
            .stdout(Stdio::null())
            .stderr(Stdio::null());
        command.args(["synth", "two.kdl", "--force", "-o", out, "--seed", seed]);
        command
    };
    let read = |out: &str| -> Vec<(String, Vec<u8>)> {
        let out = here.path().join(out);
        let files = names(&out)
            .into_iter()
            .filter(|name| !name.starts_with(".etlkit-"));
        files
            .map(|name| (name.clone(), std::fs::read(out.join(name)).unwrap()))
            .collect()
    };
    assert!(run("one", "1").status().unwrap().success());
    assert!(run("two", "2").status().unwrap().success());
    let (one, two) = (read("one"), read("two"));
    assert_ne!(one, two);
    let (mut killed, mut wait) = (0, Duration::ZERO);
    for round in 0..24 {
        assert!(run("out", "1").status().unwrap().success());
        let mut child = run("out", "2").spawn().unwrap();
        std::thread::sleep(wait);
        child.kill().unwrap();
        let done = child.wait().unwrap().code().is_some();
        let out = read("out");
        for file in &out {
            assert!(
                one.contains(file) || two.contains(file),
                "{} is not whole",
                file.0
            );
        }
        if out.iter().any(|(name, _)| name == "truth.jsonl") {
            assert!(
                out == one || out == two,
                "a truth of other traces, after {wait:?}"
            );
        }
        killed += u32::from(!done);
        wait = if done {
            wait / 2
        } else {
            wait + Duration::from_millis(1 + round % 3)
        };
    }
    assert!(killed > 3, "it was always done before");
}

/// An old truth describes other traces.
#[test]
fn synth_removes_truth_before_replacing_traces() {
    let here = directory(&[("two.kdl", SCENARIO.as_bytes()), ("t.etl", &trace())]);
    let truth = here.path().join("out/truth.jsonl");
    assert_eq!(
        etlkit(here.path(), &["synth", "two.kdl", "-o", "out"]).code,
        0
    );
    assert!(truth.exists());
    // Without --force no file is changed.
    let said = etlkit(
        here.path(),
        &["synth", "two.kdl", "-o", "out", "--no-truth", "--seed", "2"],
    );
    assert_eq!(said.code, 2);
    assert!(truth.exists());
    let again = [
        "synth",
        "two.kdl",
        "-o",
        "out",
        "--no-truth",
        "--seed",
        "2",
        "--force",
    ];
    assert_eq!(etlkit(here.path(), &again).code, 0);
    assert!(!truth.exists());
}
