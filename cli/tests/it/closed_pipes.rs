//! Every command that prints, with a full disk or a closed pipe as standard output or standard
//! error: no command panics, failed output is reported, and the exit code of a verdict does not
//! change.
use std::fs::{File, OpenOptions};
use std::path::Path;
use std::process::{Command, Stdio};

use crate::common::{BUFFER, TOOLS, directory, etlkit, trace};

/// Every command that prints, in every format; `t.etl` is intact, `cut.etl` is truncated.
const PRINTING: &[&[&str]] = &[
    &["--help"],
    &["--version"],
    &["info", "t.etl"],
    &["info", "cut.etl", "--format", "json"],
    &["dump", "t.etl"],
    &["dump", "t.etl", "--format", "jsonl"],
    &["dump", "t.etl", "--format", "csv", "--threads", "2"],
    &["dump", "t.etl", "--format", "xml", "--threads", "1"],
    &["dump", "t.etl", "--file-order"],
    &["verify", "t.etl"],
    &["verify", "t.etl", "cut.etl"],
    &["verify", "t.etl", "--format", "json"],
    &["verify", "t.etl", "--format", "sarif"],
    &["verify", "t.etl", "--format", "junit"],
    &["verify", "t.etl", "--format", "html"],
    &["verify", "--rules"],
    &["verify", "--explain", "rundown.unclosed"],
    &["diff", "t.etl", "cut.etl"],
    &["diff", "t.etl", "cut.etl", "--format", "json"],
    &["spec", "providers"],
    &["spec", "tables"],
    &["spec", "mask", "runtime", "0x98"],
    &["spec", "line", "xperf -stop clr", "--format", "json"],
    &["errata"],
    &["completions", "bash"],
    &["man"],
    &["man", "pages"],
    &["synth", "s.kdl", "--check"],
    &["synth", "s.kdl", "--timeline"],
    &["synth", "s.kdl", "-o", "out", "--force"],
    &["corpus", "list", "--corpus", "."],
    &["corpus", "check", "--corpus", "."],
    &["merge", "t.etl", "-o", "m.etl", "--force"],
    &[
        "repair", "cut.etl", "-o", "r.etl", "--force", "--format", "json",
    ],
];

fn here() -> tempfile::TempDir {
    let script = include_bytes!("two.kdl");
    let cut = &trace()[..2 * BUFFER + 0x60];
    let here = directory(&[("t.etl", &trace()), ("cut.etl", cut), ("s.kdl", script)]);
    assert_eq!(
        etlkit(
            here.path(),
            &["corpus", "check", "--update", "--corpus", "."]
        )
        .code,
        0
    );
    here
}

fn full() -> File {
    OpenOptions::new().write(true).open("/dev/full").unwrap()
}

fn run(here: &Path, args: &[&str], out: impl Into<Stdio>, err: impl Into<Stdio>) -> (i32, String) {
    let mut command = Command::new(env!("CARGO_BIN_EXE_etlkit"));
    command
        .current_dir(here)
        .args(args)
        .stdin(Stdio::null())
        .stdout(out)
        .stderr(err);
    let done = command.output().unwrap();
    (
        done.status.code().unwrap_or(-1),
        String::from_utf8(done.stderr).unwrap(),
    )
}

#[test]
fn full_disk_at_stdout_is_reported() {
    let here = here();
    for args in PRINTING {
        let (code, err) = run(here.path(), args, full(), Stdio::piped());
        assert_eq!(code, 2, "{args:?}: {err}");
        assert!(err.contains("No space left"), "{args:?}: {err}");
    }
}

#[test]
fn closed_stdout_is_no_error() {
    let here = here();
    for args in PRINTING {
        let said = etlkit(here.path(), args);
        assert!(said.code < 2, "{args:?}: {}", said.err);
        let (reader, writer) = std::io::pipe().unwrap();
        drop(reader);
        let (code, err) = run(here.path(), args, writer, Stdio::piped());
        // Verdicts are complete before they are printed; other commands stop early.
        let has_verdict = ["verify", "diff"].contains(&args[0]);
        assert_eq!(
            code,
            if has_verdict { said.code } else { 0 },
            "{args:?}: {err}"
        );
        assert!(
            !err.contains("error") && !err.contains("panicked"),
            "{args:?}: {err}"
        );
    }
}

#[test]
fn closed_stderr_is_no_error() {
    let here = here();
    let damaged: [&[&str]; 9] = [
        &["dump", "cut.etl"],
        &["diff", "t.etl", "cut.etl"],
        &["info", "missing.etl"],
        &["verify", "missing.etl", "t.etl"],
        &["verify", "--no-such-option"],
        &["dump", "t.etl", "-p", "unknown"],
        &["synth", "t.etl", "--check"],
        &["slice", "cut.etl", "-o", "x.etl", "--force"],
        &["missing.etl"],
    ];
    for args in PRINTING.iter().copied().chain(damaged) {
        let expected = run(here.path(), args, Stdio::null(), Stdio::piped()).0;
        assert_eq!(
            run(here.path(), args, Stdio::null(), full()).0,
            expected,
            "{args:?}"
        );
        let (reader, writer) = std::io::pipe().unwrap();
        drop(reader);
        assert_eq!(
            run(here.path(), args, Stdio::null(), writer).0,
            expected,
            "{args:?}"
        );
    }
    // Reports of commands whose trace goes to standard output.
    for tool in TOOLS {
        let args = [tool, &["-o", "-"]].concat();
        let expected = run(here.path(), &args, Stdio::null(), Stdio::piped()).0;
        assert_eq!(
            run(here.path(), &args, Stdio::null(), full()).0,
            expected,
            "{args:?}"
        );
    }
}
