//! Standard output, buffered by us: commands fill one growing buffer and hand it over when it is
//! large, so that printing an event allocates nothing.

use std::borrow::Cow;
use std::cell::RefCell;
use std::fmt;
use std::io::{self, Write};

use clap::ValueEnum;
use etl_schema::render::acts;
pub(crate) use etl_schema::render::{decimal, hex_bytes as hex, hexadecimal, signed};

/// Bytes gathered before they are written.
const CHUNK: usize = 1 << 16;

/// A buffer on its way to standard output.
#[derive(Debug)]
pub(crate) struct Output {
    /// What is to be written next.
    pub buffer: Vec<u8>,
}

impl Output {
    pub fn new() -> Self {
        Output { buffer: Vec::with_capacity(2 * CHUNK) }
    }

    /// Writes the buffer out when enough has gathered.
    #[inline]
    pub fn settle(&mut self) -> io::Result<()> {
        if self.buffer.len() >= CHUNK { self.flush() } else { Ok(()) }
    }

    /// Writes the buffer and then this text out.
    pub fn pass(&mut self, text: &[u8]) -> io::Result<()> {
        self.flush()?;
        put(text)
    }

    /// Writes the buffer out.
    pub fn flush(&mut self) -> io::Result<()> {
        put(&self.buffer)?;
        self.buffer.clear();
        Ok(())
    }
}

/// How a command prints what it found or did, where it is one report.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub(crate) enum ReportFormat {
    /// For people
    #[default]
    Text,
    /// For programs
    Json,
}

/// What a command would have printed.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Caught {
    pub out: Vec<u8>,
    pub err: Vec<u8>,
}

thread_local! {
    /// Takes what this thread prints, while there is one.
    static CAUGHT: RefCell<Option<Caught>> = const { RefCell::new(None) };
}

/// Runs `f`; what this thread prints meanwhile is returned and goes nowhere else.
pub(crate) fn catch<T>(f: impl FnOnce() -> T) -> (T, Caught) {
    CAUGHT.set(Some(Caught::default()));
    let done = f();
    (done, CAUGHT.take().unwrap_or_default())
}

/// Whether what this thread prints is taken.
pub(crate) fn is_caught() -> bool {
    CAUGHT.with_borrow(Option::is_some)
}

/// Writes to standard output.
fn put(bytes: &[u8]) -> io::Result<()> {
    CAUGHT.with_borrow_mut(|caught| match caught {
        Some(caught) => caught.out.write_all(bytes),
        None => {
            let mut out = io::stdout().lock();
            out.write_all(bytes)?;
            out.flush()
        }
    })
}

/// Says something beside the output, on standard error. Where nobody can hear it the work goes on: unlike
/// `eprint!` this does not panic.
pub(crate) fn say_aside(text: fmt::Arguments<'_>) {
    CAUGHT.with_borrow_mut(|caught| {
        let _ = match caught {
            Some(caught) => caught.err.write_fmt(text),
            None => io::stderr().lock().write_fmt(text),
        };
    });
}

/// A report as JSON, for people to read as well.
pub(crate) fn json(report: &impl serde::Serialize) -> String {
    // Strings, numbers and lists only: JSON can hold all of it.
    let mut text = serde_json::to_string_pretty(report).unwrap_or_default();
    text.push('\n');
    text
}

/// Prints text and flushes it. What a terminal could act on goes out as `\u` and four digits: in JSON, where serializers
/// leave it as it is; other formats have escaped it themselves by then.
pub(crate) fn print(text: &str) -> io::Result<()> {
    put(inert(text).as_bytes())
}

/// What became of printing a verdict: it stands, and is the exit code, though the reader left before its end.
pub(crate) fn unless_unread(printed: io::Result<()>) -> io::Result<()> {
    match printed {
        Err(e) if e.kind() == io::ErrorKind::BrokenPipe => Ok(()),
        printed => printed,
    }
}

/// As [`print()`], for text that brings its own colours; everything else of it is escaped.
pub(crate) fn print_painted(text: &str) -> io::Result<()> {
    let mut out = Vec::with_capacity(text.len());
    let mut parts = text.split('\u{1b}');
    out.extend(inert(parts.next().unwrap_or_default()).as_bytes());
    for part in parts {
        let code = part.strip_prefix('[').and_then(|rest| rest.split_once('m'));
        let colour = code.filter(|(code, _)| {
            code.len() <= 4 && code.bytes().all(|b| b.is_ascii_digit() || b == b';')
        });
        out.extend(if colour.is_some() { &b"\x1b"[..] } else { b"\\u001b" });
        out.extend(inert(part).as_bytes());
    }
    put(&out)
}

/// The text with what a terminal could act on escaped as JSON does; lines and tabs stay.
pub(crate) fn inert(text: &str) -> Cow<'_, str> {
    let hot = |c: char| acts(c) && c != '\n' && c != '\t';
    if !text.contains(hot) {
        return Cow::Borrowed(text);
    }
    let mut out = String::with_capacity(text.len() + 16);
    for c in text.chars() {
        if hot(c) {
            for unit in c.encode_utf16(&mut [0; 2]) {
                out.push_str(&format!("\\u{unit:04x}"));
            }
        } else {
            out.push(c);
        }
    }
    Cow::Owned(out)
}

/// A number of bytes for people: `4.7 MiB`.
pub(crate) fn size(bytes: u64) -> String {
    const UNITS: [&str; 4] = ["KiB", "MiB", "GiB", "TiB"];
    let mut value = bytes as f64;
    let mut unit = "bytes";
    for next in UNITS {
        if value < 1024.0 {
            break;
        }
        (value, unit) = (value / 1024.0, next);
    }
    if unit == "bytes" { format!("{bytes} bytes") } else { format!("{value:.1} {unit}") }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_have_their_unit() {
        assert_eq!(size(1023), "1023 bytes");
        assert_eq!(size(4_879_401), "4.7 MiB");
    }
}
