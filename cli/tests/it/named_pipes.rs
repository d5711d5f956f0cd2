//! Named pipes and `/dev/stdin` as inputs of every command, named pipes as outputs.

use std::io::Write;
use std::path::Path;
use std::process::{Child, Command, Output, Stdio};
use std::time::{Duration, Instant};

use crate::common::{directory, names, trace};

/// Every command that reads a trace.
const READERS: &[&[&str]] = &[
    &["info", "t.etl"],
    &["info", "t.etl", "other.etl", "--format", "json"],
    &["dump", "t.etl"],
    &["dump", "t.etl", "--file-order"],
    &["dump", "t.etl", "--no-mmap", "--threads", "2"],
    &["verify", "t.etl"],
    &["verify", "t.etl", "other.etl"],
    &["diff", "t.etl", "other.etl"],
    &["diff", "other.etl", "t.etl"],
    &["merge", "t.etl", "-o", "out.etl"],
    &["merge", "t.etl", "--salvage", "-o", "out.etl"],
    &["slice", "t.etl", "--id", "1", "-o", "out.etl"],
    &[
        "slice",
        "t.etl",
        "--no-keep-state",
        "--compress",
        "-o",
        "out.etl",
    ],
    &["scrub", "t.etl", "--salt", "x", "-o", "out.etl"],
    &["repair", "t.etl", "-o", "out.etl"],
    &["compress", "t.etl", "-o", "out.etl"],
    &["decompress", "t.etl", "-o", "out.etl"],
    &["analyze", "summary", "t.etl"],
    &["analyze", "sessions", "t.etl", "--format", "json"],
];

/// Every command that writes a trace.
const WRITERS: [&[&str]; 6] = [
    &["merge", "t.etl"],
    &["slice", "t.etl"],
    &["scrub", "t.etl", "--salt", "x"],
    &["repair", "t.etl"],
    &["compress", "t.etl"],
    &["decompress", "t.etl"],
];

fn start(here: &Path, args: &[&str]) -> Child {
    Command::new(env!("CARGO_BIN_EXE_etlkit"))
        .current_dir(here)
        .args(args)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap()
}

/// What a command printed, which is killed if it waits for ever.
fn ended(mut child: Child) -> Output {
    let since = Instant::now();
    while child.try_wait().unwrap().is_none() {
        if since.elapsed() > Duration::from_secs(60) {
            child.kill().unwrap();
            panic!("the command waits for ever");
        }
        std::thread::sleep(Duration::from_millis(5));
    }
    child.wait_with_output().unwrap()
}

fn make_pipe(path: &Path) {
    assert!(Command::new("mkfifo").arg(path).status().unwrap().success());
}

/// Exit code, standard output, standard error, and the bytes of the output.
type Result = (Option<i32>, String, String, Option<Vec<u8>>);

fn result(here: &Path, output: &Output) -> Result {
    let text = |bytes: &[u8]| String::from_utf8(bytes.to_vec()).unwrap();
    let file = std::fs::read(here.join("out.etl")).ok();
    (
        output.status.code(),
        text(&output.stdout),
        text(&output.stderr),
        file,
    )
}

#[test]
fn named_pipes_are_read_as_files_are() {
    let bytes = trace();
    for args in READERS {
        let here = directory(&[("t.etl", &bytes), ("other.etl", &bytes)]);
        let expected = result(here.path(), &ended(start(here.path(), args)));
        assert!(expected.0 < Some(2), "{args:?}: {}", expected.2);
        let here = directory(&[("other.etl", &bytes)]);
        let pipe = here.path().join("t.etl");
        make_pipe(&pipe);
        let child = start(here.path(), args);
        let content = bytes.clone();
        // Opening it waits for the command.
        let writer = std::thread::spawn(move || std::fs::write(pipe, content));
        let said = ended(child);
        assert_eq!(result(here.path(), &said), expected, "{args:?}");
        writer.join().unwrap().unwrap();
    }
}

#[test]
fn dev_stdin_is_read_as_a_file_is() {
    let bytes = trace();
    for args in READERS {
        let here = directory(&[("t.etl", &bytes), ("other.etl", &bytes)]);
        let expected = result(here.path(), &ended(start(here.path(), args)));
        let args: Vec<_> = args
            .iter()
            .map(|arg| if *arg == "t.etl" { "/dev/stdin" } else { arg })
            .collect();
        let here = directory(&[("other.etl", &bytes)]);
        let mut child = start(here.path(), &args);
        child.stdin.take().unwrap().write_all(&bytes).unwrap();
        let (code, out, err, file) = result(here.path(), &ended(child));
        let (out, err) = (
            out.replace("/dev/stdin", "t.etl"),
            err.replace("/dev/stdin", "t.etl"),
        );
        assert_eq!(
            (code, err, file),
            (expected.0, expected.2, expected.3),
            "{args:?}"
        );
        // Reports pad the name of the file.
        let words = |text: &str| {
            text.split_whitespace()
                .map(str::to_owned)
                .collect::<Vec<_>>()
        };
        assert_eq!(words(&out), words(&expected.1), "{args:?}");
    }
}

#[test]
fn named_pipe_receives_the_output() {
    for args in WRITERS {
        let here = directory(&[("t.etl", &trace())]);
        let whole = ended(start(here.path(), &[args, &["-o", "out.etl"]].concat()));
        let pipe = here.path().join("pipe");
        make_pipe(&pipe);
        let reader = std::thread::spawn({
            let pipe = pipe.clone();
            move || std::fs::read(pipe).unwrap()
        });
        let said = ended(start(here.path(), &[args, &["-o", "pipe"]].concat()));
        assert_eq!(said.status.code(), whole.status.code(), "{args:?}");
        let out = std::fs::read(here.path().join("out.etl")).unwrap();
        assert!(reader.join().unwrap() == out, "{args:?}");
    }
}

#[test]
fn named_pipe_without_reader_is_refused() {
    for args in WRITERS {
        let here = directory(&[("t.etl", &trace())]);
        make_pipe(&here.path().join("pipe"));
        let said = ended(start(here.path(), &[args, &["-o", "pipe"]].concat()));
        let err = String::from_utf8(said.stderr).unwrap();
        assert_eq!(said.status.code(), Some(2), "{args:?}: {err}");
        assert!(
            err.contains("error: pipe: no program reads from this pipe"),
            "{args:?}: {err}"
        );
        assert_eq!(names(here.path()), ["pipe", "t.etl"], "{args:?}");
    }
}

/// A pipe that has no trace and no end is refused after its first MiB.
#[test]
#[cfg(target_os = "linux")]
fn endless_pipe_is_refused() {
    for args in [
        &["info", "-"][..],
        &["verify", "-"],
        &["dump", "-", "--limit", "1"],
        &["repair", "-", "-o", "out.etl"],
    ] {
        let here = directory(&[]);
        let child = Command::new(env!("CARGO_BIN_EXE_etlkit"))
            .current_dir(here.path())
            .args(args)
            .stdin(std::fs::File::open("/dev/zero").unwrap())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        let said = ended(child);
        let err = String::from_utf8(said.stderr).unwrap();
        assert_eq!(said.status.code(), Some(2), "{args:?}: {err}");
        assert!(err.contains("contain no trace"), "{args:?}: {err}");
        assert!(names(here.path()).is_empty(), "{args:?}");
    }
}

/// A pipe that is printed while it is read ends when no record has come for a long time.
#[test]
#[cfg(target_os = "linux")]
fn endless_pipe_ends_a_dump_in_file_order() {
    for beginning in [Vec::new(), trace()] {
        let here = directory(&[("t.etl", &beginning)]);
        let script = "cat t.etl /dev/zero | \"$0\" dump - --file-order";
        let child = Command::new("sh")
            .current_dir(here.path())
            .args(["-c", script, env!("CARGO_BIN_EXE_etlkit")])
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        let said = ended(child);
        let err = String::from_utf8(said.stderr).unwrap();
        assert_eq!(said.status.code(), Some(2), "{err}");
        assert!(err.contains("no record is in 64 MiB of the pipe"), "{err}");
        let out = String::from_utf8(said.stdout).unwrap();
        assert_eq!(out.is_empty(), beginning.is_empty(), "{out}");
    }
}

/// A trace of a data set is read twice: for its hash, and for its rows.
#[test]
#[cfg(all(target_os = "linux", feature = "parquet"))]
fn parquet_refuses_pipes_with_a_reason() {
    for input in ["pipe.etl", "/dev/stdin", "-"] {
        let here = directory(&[("t.etl", &trace())]);
        make_pipe(&here.path().join("pipe.etl"));
        let args = ["export", "parquet", "t.etl", input, "-o", "set"];
        let mut child = start(here.path(), &args);
        // It may end before it reads anything.
        let _ = child.stdin.take().unwrap().write_all(&trace());
        let said = ended(child);
        let err = String::from_utf8(said.stderr).unwrap();
        assert_eq!(said.status.code(), Some(2), "{input}: {err}");
        assert!(
            err.contains("is a pipe, and a trace of a data set is read twice"),
            "{input}: {err}"
        );
        assert!(err.contains("write it to a file first"), "{input}: {err}");
        assert_eq!(names(here.path()), ["pipe.etl", "t.etl"], "{input}");
    }
}

/// Opening a named pipe would wait for a program that may never come.
#[test]
fn named_pipe_in_a_directory_is_left_out_with_a_note() {
    let here = directory(&[("d/t.etl", &trace())]);
    make_pipe(&here.path().join("d/pipe.etl"));
    for command in ["info", "verify", "dump"] {
        let said = ended(start(here.path(), &[command, "d"]));
        let err = String::from_utf8(said.stderr).unwrap();
        assert!(said.status.code() < Some(2), "{command}: {err}");
        assert!(
            err.contains("note: d/pipe.etl: is a named pipe and is left out"),
            "{command}: {err}"
        );
    }
}
