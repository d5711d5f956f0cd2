//! Targets that run `etlkit`: what it prints about a trace, packed inputs, arguments.

use std::ffi::OsString;
use std::io::Write;

use etl_schema::render::is_terminal_unsafe;
use etlkit::{CommandOutput, run_captured};
use flate2::write::GzEncoder;

use super::made::common;
use super::text;

/// The format of a command's output.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Form {
    Text,
    /// One JSON value.
    Json,
    /// One on each line.
    JsonLines,
    Csv,
    Xml,
    Html,
    /// Workflow commands.
    Github,
}

/// Every command that only prints, in every format. The last byte of an input selects one.
const PRINTING: [(&[&str], Form); 17] = [
    (&["info"], Form::Text),
    (&["info", "--format", "json"], Form::Json),
    (&["dump"], Form::Text),
    (&["dump", "--raw", "--file-order"], Form::Text),
    (&["dump", "--format", "jsonl"], Form::JsonLines),
    (
        &["dump", "--format", "jsonl", "--raw", "--no-mmap"],
        Form::JsonLines,
    ),
    (&["dump", "--format", "csv"], Form::Csv),
    (
        &[
            "dump",
            "--format",
            "csv",
            "--columns",
            "time,event,message,MethodName,related_activity",
        ],
        Form::Csv,
    ),
    (&["dump", "--format", "xml"], Form::Xml),
    (
        &[
            "dump",
            "--format",
            "xml",
            "--file-order",
            "--event-tables",
            "documented",
        ],
        Form::Xml,
    ),
    (&["verify", "--no-config"], Form::Text),
    (&["verify", "--no-config", "--format", "json"], Form::Json),
    (&["verify", "--no-config", "--format", "sarif"], Form::Json),
    (&["verify", "--no-config", "--format", "junit"], Form::Xml),
    (
        &["verify", "--no-config", "--format", "github"],
        Form::Github,
    ),
    (&["verify", "--no-config", "--format", "html"], Form::Html),
    (&["verify", "--no-config", "--color", "always"], Form::Text),
];

/// The number of commands that print.
pub(super) const WAYS: usize = PRINTING.len();

/// Prints a trace: no output acts on a terminal, and each is valid in its format.
pub(super) fn printed(data: &[u8]) {
    let Some((way, trace)) = data.split_last() else {
        return;
    };
    let (args, form) = PRINTING[usize::from(way & 0x7f) % WAYS];
    let file = put(trace);
    let threads = ["1", "2"][usize::from(way >> 7)];
    let coloured = args.contains(&"always");
    let output = run(args, &["--threads", threads], &[file.path()]);
    inert(&output.err, false);
    inert(&output.out, coloured);
    let out = std::str::from_utf8(&output.out).expect("UTF-8");
    // A fault ends a document before its end.
    if output.code < 2 {
        well_formed(out, form);
    }
}

/// Unpacks a file: a trace or an error with a reason, within the limit for unpacked bytes.
pub(super) fn unpack(data: &[u8]) {
    let (way, rest) = super::choice(data);
    let packed = match way {
        // The content of a frame whose sizes and checksums are right.
        0xf0 => gzip(rest),
        0xf1 => {
            ruzstd::encoding::compress_to_vec(rest, ruzstd::encoding::CompressionLevel::Fastest)
        }
        0xf2 => archive(rest),
        _ => data.to_vec(),
    };
    let file = put(&packed);
    for reading in [
        &["info", "--format", "json"][..],
        &["dump", "--limit", "9", "--raw"],
    ] {
        let output = run(
            reading,
            &["--threads", "1", "--max-unpacked", "1M"],
            &[file.path()],
        );
        inert(&output.out, false);
        inert(&output.err, false);
        if output.code == 2 {
            assert!(output.err.starts_with(b"error: "), "{}", text(&output.err));
        }
    }
}

/// Arguments: the first byte selects the command, each line is one argument. No command writes a
/// file.
pub(super) fn arguments(data: &[u8]) {
    const COMMANDS: [&[&str]; 8] = [
        &["dump"],
        &["info"],
        &["verify", "--no-config"],
        &["diff"],
        &["spec"],
        &["errata"],
        &["completions"],
        &["verify", "--no-config", "--together"],
    ];
    let (way, rest) = super::choice(data);
    let command = COMMANDS[usize::from(way) % COMMANDS.len()];
    let typed = text(rest);
    // No other files than ours, and not the fuzzer's own standard input.
    if typed.contains(['/', '\\', '\0']) || typed.lines().any(|l| l.ends_with('-')) {
        return;
    }
    let file = put(&common::small().bytes());
    let typed: Vec<&str> = typed.lines().take(20).collect();
    let files = match command[0] {
        "diff" => vec![file.path(), file.path()],
        "spec" | "errata" | "completions" => vec![],
        _ => vec![file.path()],
    };
    let output = run(command, &typed, &files);
    inert(&output.err, false);
    inert(&output.out, typed.iter().any(|t| t.contains("color")));
    assert!(
        output.code != 2 || !output.err.is_empty() || !output.out.is_empty(),
        "a failure states why"
    );
}

/// A temporary file of these bytes.
pub(super) fn put(bytes: &[u8]) -> tempfile::NamedTempFile {
    let mut file = tempfile::Builder::new()
        .suffix(".etl")
        .tempfile()
        .expect("a temporary file");
    file.write_all(bytes).expect("the disk is not full");
    file
}

pub(super) fn run(command: &[&str], more: &[&str], files: &[&std::path::Path]) -> CommandOutput {
    let words = ["etlkit"]
        .iter()
        .chain(command)
        .chain(more)
        .map(OsString::from);
    let output = run_captured(words.chain(files.iter().map(|f| f.as_os_str().to_owned())));
    assert!(output.code <= 2, "{}", output.code);
    output
}

/// Checks that output has no character that acts on a terminal or misleads a reader; colours only
/// where they were requested.
pub(super) fn inert(output: &[u8], coloured: bool) {
    let output = text(output);
    let hot =
        |c: char| is_terminal_unsafe(c) && !matches!(c, '\n' | '\t') && !(coloured && c == '\x1b');
    if let Some(line) = output.lines().find(|line| line.contains(hot)) {
        panic!("is_terminal_unsafe: {line:?}");
    }
    for part in output.split('\x1b').skip(1) {
        let code = part
            .strip_prefix('[')
            .and_then(|p| p.split_once('m'))
            .map(|(code, _)| code);
        assert!(
            code.is_some_and(|c| c.bytes().all(|b| b.is_ascii_digit() || b == b';')),
            "{part:?}"
        );
    }
}

pub(super) fn well_formed(out: &str, form: Form) {
    use serde::de::IgnoredAny;
    match form {
        Form::Text => {}
        Form::Json => assert!(
            serde_json::from_str::<IgnoredAny>(out).is_ok(),
            "no JSON: {out}"
        ),
        Form::JsonLines => out.lines().for_each(|line| {
            let done = serde_json::from_str::<IgnoredAny>(line);
            assert!(done.is_ok(), "{done:?}: {line}");
        }),
        Form::Csv => table(out),
        Form::Xml => {
            let options = roxmltree::ParsingOptions {
                nodes_limit: u32::MAX,
                ..Default::default()
            };
            roxmltree::Document::parse_with_options(out, options)
                .unwrap_or_else(|e| panic!("{e}: {out}"));
        }
        Form::Html => {
            assert!(out.starts_with("<!doctype html>") || out.starts_with("<!DOCTYPE html>"));
            assert!(out.trim_end().ends_with("</html>"));
            assert_eq!(
                out.matches("<script").count(),
                out.matches("</script").count()
            );
        }
        Form::Github => out.lines().for_each(|line| {
            assert!(
                ["::error ", "::warning ", "::notice "]
                    .iter()
                    .any(|c| line.starts_with(c))
                    || !line.trim_start().starts_with("::"),
                "{line}"
            );
        }),
    }
}

/// Checks that all rows have the same number of cells, and that no cell is a formula.
fn table(csv: &str) {
    let (mut cell, mut quoted, mut cells, mut expected) = (String::new(), false, 0, None);
    for c in csv.chars() {
        match c {
            '"' => quoted = !quoted,
            ',' | '\n' if !quoted => {
                let formula = cell.trim_start().starts_with(['=', '+', '-', '@']);
                assert!(!formula || cell.parse::<f64>().is_ok(), "{cell:?}");
                cell.clear();
                cells += 1;
                if c == '\n' {
                    assert_eq!(*expected.get_or_insert(cells), cells, "{csv}");
                    cells = 0;
                }
            }
            c => cell.push(c),
        }
    }
    assert!(!quoted && cell.is_empty(), "the last line has no end");
}

pub(super) fn gzip(bytes: &[u8]) -> Vec<u8> {
    let mut out = GzEncoder::new(Vec::new(), flate2::Compression::fast());
    out.write_all(bytes).expect("memory");
    out.finish().expect("memory")
}

pub(super) fn archive(bytes: &[u8]) -> Vec<u8> {
    let mut out = zip::ZipWriter::new(std::io::Cursor::new(Vec::new()));
    out.start_file("a.etl", zip::write::SimpleFileOptions::default())
        .expect("memory");
    out.write_all(bytes).expect("memory");
    out.finish().expect("memory").into_inner()
}
