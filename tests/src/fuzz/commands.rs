//! Targets that run the commands of `etlkit` which analyse, export and rewrite traces.

use std::path::Path;

use super::cli::{Form, inert, put, run, well_formed};
use super::text;

/// What a command writes.
#[derive(Clone, Copy, Debug)]
enum Output {
    /// A report on standard output.
    Report(Form),
    /// A file of this form, named by `-o`.
    File(Option<Form>),
    /// A directory of files, named by `-o`.
    Directory,
}

/// A command without its input.
struct Command {
    args: &'static [&'static str],
    output: Output,
}

const fn report(args: &'static [&'static str], form: Form) -> Command {
    Command {
        args,
        output: Output::Report(form),
    }
}

const fn file(args: &'static [&'static str], form: Option<Form>) -> Command {
    Command {
        args,
        output: Output::File(form),
    }
}

const fn directory(args: &'static [&'static str]) -> Command {
    Command {
        args,
        output: Output::Directory,
    }
}

/// Every analysis, every export, and every command that writes a trace. The last byte of an input
/// selects one. `PRINTING` of the target `printed` has the other commands. The last exports are
/// refused unless the program is built with the feature `parquet`, as `fuzz/` builds it.
const COMMANDS: &[Command] = &[
    report(&["analyze", "summary"], Form::Text),
    report(&["analyze", "summary", "--format", "json"], Form::Json),
    report(&["analyze", "cpu"], Form::Text),
    report(&["analyze", "cpu", "--format", "csv"], Form::Csv),
    report(&["analyze", "cpu", "--format", "json"], Form::Json),
    report(&["analyze", "cpu", "--tree"], Form::Text),
    report(&["analyze", "gc"], Form::Text),
    report(&["analyze", "gc", "--format", "csv"], Form::Csv),
    report(&["analyze", "jit"], Form::Text),
    report(&["analyze", "jit", "--format", "csv"], Form::Csv),
    report(&["analyze", "exceptions"], Form::Text),
    report(&["analyze", "exceptions", "--format", "json"], Form::Json),
    report(&["analyze", "contention", "--format", "csv"], Form::Csv),
    report(&["analyze", "threadpool", "--format", "json"], Form::Json),
    report(&["analyze", "loader"], Form::Text),
    report(&["analyze", "loader", "--format", "csv"], Form::Csv),
    report(&["analyze", "io"], Form::Text),
    report(&["analyze", "io", "--format", "json"], Form::Json),
    report(&["analyze", "network", "--format", "csv"], Form::Csv),
    report(&["analyze", "waits"], Form::Text),
    report(&["analyze", "waits", "--format", "csv"], Form::Csv),
    report(&["analyze", "dpc"], Form::Text),
    report(&["analyze", "dpc", "--format", "json"], Form::Json),
    report(&["analyze", "processors"], Form::Text),
    report(&["analyze", "activities"], Form::Text),
    report(&["analyze", "activities", "--format", "csv"], Form::Csv),
    report(&["analyze", "processes"], Form::Text),
    report(&["analyze", "processes", "--format", "csv"], Form::Csv),
    report(&["analyze", "images", "--format", "json"], Form::Json),
    report(&["analyze", "sessions"], Form::Text),
    report(&["symbols", "list"], Form::Text),
    report(&["symbols", "list", "--format", "json"], Form::Json),
    file(&["export", "folded"], Some(Form::Text)),
    file(&["export", "flamegraph"], Some(Form::Html)),
    file(&["export", "speedscope"], Some(Form::Json)),
    file(&["export", "pprof"], None),
    file(&["export", "firefox"], None),
    file(&["export", "perfetto"], None),
    file(&["export", "pcapng"], None),
    file(&["merge", "--salvage"], None),
    file(&["slice", "--from", "0.001"], None),
    file(&["scrub", "--salt", "x"], None),
    file(&["repair"], None),
    file(&["compress"], None),
    file(&["decompress"], None),
    file(&["export", "arrow"], None),
    file(&["export", "arrow", "--table", "samples"], None),
    directory(&["export", "parquet"]),
    directory(&["export", "parquet", "--typed", "--by-provider"]),
];

/// The number of commands.
pub(super) const WAYS: usize = COMMANDS.len();

/// Runs a command on a trace: what it prints acts on no terminal, and is valid in its form.
pub(super) fn commands(data: &[u8]) {
    let Some((way, trace)) = data.split_last() else {
        return;
    };
    let command = &COMMANDS[usize::from(*way) % WAYS];
    let input = put(trace);
    run_one(command, input.path());
}

/// Runs a command on a file.
fn run_one(command: &Command, input: &Path) {
    let directory = tempfile::tempdir().expect("a temporary directory");
    let path = directory.path().join("out");
    let path_text = path.to_str().expect("a path in UTF-8");
    let more: &[&str] = match command.output {
        Output::Report(_) => &[],
        Output::File(_) | Output::Directory => &["-o", path_text],
    };
    let output = run(command.args, more, &[input]);
    inert(&output.err, false);
    if output.code == 2 {
        assert!(
            output.err.starts_with(b"error: ") || text(&output.err).contains("\nerror: "),
            "{:?}: {}",
            command.args,
            text(&output.err)
        );
        // A file is complete, or not there; a data set without tables may be there.
        let is_directory = matches!(command.output, Output::Directory);
        assert!(is_directory || !path.exists(), "{:?}", command.args);
        return;
    }
    match command.output {
        Output::Report(form) => {
            inert(&output.out, false);
            well_formed(&text(&output.out), form);
        }
        Output::File(form) => {
            let written = std::fs::read(&path).expect("the output");
            if let Some(form) = form {
                well_formed(&text(&written), form);
            }
        }
        Output::Directory => assert!(path.is_dir(), "{:?}", command.args),
    }
}

/// Converts an EventPipe stream, and analyses it.
pub(super) fn converted(data: &[u8]) {
    const WAYS: [&Command; 4] = [
        &file(&["convert"], None),
        &report(&["info", "--format", "json"], Form::Json),
        &report(&["analyze", "summary"], Form::Text),
        &file(&["export", "speedscope"], Some(Form::Json)),
    ];
    let (way, stream) = super::choice(data);
    let input = put(stream);
    run_one(WAYS[usize::from(way) % WAYS.len()], input.path());
}
