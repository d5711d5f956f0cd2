//! Standard output, buffered by us: commands fill one growing buffer and hand it over when it is
//! large, so that printing an event allocates nothing.

use std::borrow::Cow;
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
    out: io::Stdout,
}

impl Output {
    pub fn new() -> Self {
        Output { buffer: Vec::with_capacity(2 * CHUNK), out: io::stdout() }
    }

    /// Writes the buffer out when enough has gathered.
    #[inline]
    pub fn settle(&mut self) -> io::Result<()> {
        if self.buffer.len() >= CHUNK { self.flush() } else { Ok(()) }
    }

    /// Writes the buffer and then this text out.
    pub fn pass(&mut self, text: &[u8]) -> io::Result<()> {
        self.flush()?;
        let mut out = self.out.lock();
        out.write_all(text)?;
        out.flush()
    }

    /// Writes the buffer out.
    pub fn flush(&mut self) -> io::Result<()> {
        let mut out = self.out.lock();
        out.write_all(&self.buffer)?;
        self.buffer.clear();
        out.flush()
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
    let mut out = io::stdout().lock();
    out.write_all(inert(text).as_bytes())?;
    out.flush()
}

/// The same for text that brings its own colours; everything else of it is escaped.
pub(crate) fn print_painted(text: &str) -> io::Result<()> {
    let mut out = io::stdout().lock();
    let mut parts = text.split('\u{1b}');
    out.write_all(inert(parts.next().unwrap_or_default()).as_bytes())?;
    for part in parts {
        let code = part.strip_prefix('[').and_then(|rest| rest.split_once('m'));
        let colour = code.filter(|(code, _)| {
            code.len() <= 4 && code.bytes().all(|b| b.is_ascii_digit() || b == b';')
        });
        out.write_all(if colour.is_some() { b"\x1b" } else { b"\\u001b" })?;
        out.write_all(inert(part).as_bytes())?;
    }
    out.flush()
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
