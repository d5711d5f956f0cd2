//! Standard output and standard error.
//!
//! Everything that is printed through this module is escaped first ([`crate::escape`]).

use std::cell::RefCell;
use std::fmt;
use std::io::{self, Write};

use clap::ValueEnum;

pub(crate) use etl_events::input::size;
use etl_schema::render::EscapedJson;

use crate::escape::{Style, escape_all_but_colors, escape_controls, one_line};

/// Bytes that are collected before they are written.
const CHUNK: usize = 1 << 16;

/// A buffer for standard output, so that printing an event allocates nothing. Its content must be
/// escaped already.
#[derive(Debug)]
pub(crate) struct Output {
    /// The bytes that are written next.
    pub buffer: Vec<u8>,
}

impl Output {
    pub fn new() -> Self {
        // It grows when it is used: a merge has a printer for each of hundreds of traces.
        Output { buffer: Vec::new() }
    }

    /// Writes the buffer out if it is large enough.
    #[inline]
    pub fn flush_if_large(&mut self) -> io::Result<()> {
        if self.buffer.len() >= CHUNK {
            self.flush()
        } else {
            Ok(())
        }
    }

    /// Writes the buffer out, then `text`.
    pub fn write_after(&mut self, text: &[u8]) -> io::Result<()> {
        self.flush()?;
        write_stdout(text)
    }

    /// Writes the buffer out.
    pub fn flush(&mut self) -> io::Result<()> {
        write_stdout(&self.buffer)?;
        self.buffer.clear();
        Ok(())
    }
}

/// The format of a report.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub(crate) enum ReportFormat {
    /// Text for people
    #[default]
    Text,
    /// JSON for programs
    Json,
}

/// The exit code and the output of a run.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct CommandOutput {
    /// The exit code.
    pub code: u8,
    /// Standard output.
    pub out: Vec<u8>,
    /// Standard error.
    pub err: Vec<u8>,
}

thread_local! {
    /// The output of this thread, while it is captured.
    static CAPTURED: RefCell<Option<CommandOutput>> = const { RefCell::new(None) };
}

/// Runs `f`, which returns an exit code, and returns the output of this thread instead of printing
/// it.
pub(crate) fn capture(f: impl FnOnce() -> u8) -> CommandOutput {
    CAPTURED.set(Some(CommandOutput::default()));
    let code = f();
    CommandOutput {
        code,
        ..CAPTURED.take().unwrap_or_default()
    }
}

/// Whether this thread's output is captured.
pub(crate) fn is_captured() -> bool {
    CAPTURED.with_borrow(Option::is_some)
}

fn write_stdout(bytes: &[u8]) -> io::Result<()> {
    CAPTURED.with_borrow_mut(|captured| match captured {
        Some(captured) => captured.out.write_all(bytes),
        None => {
            let mut out = io::stdout().lock();
            out.write_all(bytes)?;
            out.flush()
        }
    })
}

/// Prints to standard error. A closed standard error is ignored, where `eprint!` would panic.
pub(crate) fn write_stderr(text: fmt::Arguments<'_>) {
    let text = text.to_string();
    let text = escape_controls(&text, Style::Text);
    CAPTURED.with_borrow_mut(|captured| {
        let _ = match captured {
            Some(captured) => captured.err.write_all(text.as_bytes()),
            None => io::stderr().lock().write_all(text.as_bytes()),
        };
    });
}

/// Prints a line to standard error. Names in it, of files for example, may have line breaks.
pub(crate) fn write_stderr_line(line: fmt::Arguments<'_>) {
    write_stderr(format_args!("{}\n", one_line(&line.to_string())));
}

/// A report as indented JSON, escaped.
pub(crate) fn json(report: &(impl serde::Serialize + ?Sized)) -> String {
    // A report has only strings, numbers and lists, so this does not fail.
    let text = serde_json::to_string_pretty(report).unwrap_or_default();
    escape_controls(&text, Style::Json).into_owned() + "\n"
}

/// Prints a report as [`json`] does, piece by piece: it may be large.
pub(crate) fn print_json(report: &(impl serde::Serialize + ?Sized)) -> io::Result<()> {
    print_pieces(|out| {
        serde_json::to_writer_pretty(EscapedJson::new(&mut *out), report)?;
        out.write_all(b"\n")
    })
}

/// Collects text; writing to a String does not fail.
pub(crate) fn text(write: impl FnOnce(&mut String) -> fmt::Result) -> String {
    let mut out = String::new();
    let _ = write(&mut out);
    out
}

/// Prints text and flushes it.
pub(crate) fn print(text: &str) -> io::Result<()> {
    write_stdout(escape_controls(text, Style::Text).as_bytes())
}

/// Prints what a function writes, piece by piece: too much for memory. It is escaped already.
pub(crate) fn print_pieces(write: impl FnOnce(&mut Pieces) -> io::Result<()>) -> io::Result<()> {
    let mut pieces = Pieces(Output::new());
    write(&mut pieces)?;
    pieces.0.flush()
}

/// Text that is printed piece by piece.
pub(crate) struct Pieces(Output);

impl Write for Pieces {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.buffer.extend_from_slice(bytes);
        self.0.flush_if_large()?;
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        self.0.flush()
    }
}

/// As [`print()`], for text that contains colours.
pub(crate) fn print_colored(text: &str) -> io::Result<()> {
    write_stdout(escape_all_but_colors(text).as_bytes())
}

/// Ignores that the reader closed the pipe early: the verdict remains the exit code.
pub(crate) fn ignore_broken_pipe(printed: io::Result<()>) -> io::Result<()> {
    match printed {
        Err(e) if e.kind() == io::ErrorKind::BrokenPipe => Ok(()),
        printed => printed,
    }
}
