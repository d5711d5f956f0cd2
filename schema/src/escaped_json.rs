//! JSON of any writer, made safe for terminals while it is written.

use std::io::{self, Write};

use crate::escape::is_terminal_unsafe;

/// The most bytes of a character in UTF-8.
const MAX_CHAR: usize = 4;

/// A writer of JSON that escapes every character on which a terminal could act, as `\u009b`. Such
/// characters only occur in strings, where they mean the same. Line feeds and tabs stay.
///
/// ```
/// use std::io::Write;
///
/// use etl_schema::render::EscapedJson;
///
/// let mut json = EscapedJson::new(Vec::new());
/// json.write_all("{\"name\": \"a\u{202e}b\"}\n".as_bytes())?;
/// assert_eq!(json.into_inner(), b"{\"name\": \"a\\u202eb\"}\n");
/// # Ok::<(), std::io::Error>(())
/// ```
#[derive(Debug)]
pub struct EscapedJson<W> {
    out: W,
    /// The beginning of a character whose rest is not written yet.
    begun: Vec<u8>,
}

impl<W: Write> EscapedJson<W> {
    /// A writer that writes to another one.
    pub fn new(out: W) -> Self {
        EscapedJson {
            out,
            begun: Vec::with_capacity(MAX_CHAR),
        }
    }

    /// The writer behind it.
    pub fn into_inner(self) -> W {
        self.out
    }

    /// Writes text in UTF-8.
    fn write_text(&mut self, text: &str) -> io::Result<()> {
        let mut rest = text;
        while let Some(at) = rest.find(is_unsafe) {
            let (safe, others) = rest.split_at(at);
            self.out.write_all(safe.as_bytes())?;
            let mut chars = others.chars();
            if let Some(c) = chars.next() {
                for unit in c.encode_utf16(&mut [0; 2]) {
                    write!(self.out, "\\u{unit:04x}")?;
                }
            }
            rest = chars.as_str();
        }
        self.out.write_all(rest.as_bytes())
    }

    /// Completes the character that was begun with the first of some bytes. Returns the others.
    fn complete<'b>(&mut self, bytes: &'b [u8]) -> io::Result<&'b [u8]> {
        let mut rest = bytes;
        while !self.begun.is_empty()
            && let Some((&byte, after)) = rest.split_first()
        {
            self.begun.push(byte);
            rest = after;
            let begun = std::mem::take(&mut self.begun);
            match std::str::from_utf8(&begun) {
                Ok(text) => self.write_text(text)?,
                Err(error) if error.error_len().is_none() => self.begun = begun,
                Err(_) => return Err(not_utf8()),
            }
        }
        Ok(rest)
    }
}

impl<W: Write> Write for EscapedJson<W> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let rest = self.complete(bytes)?;
        match std::str::from_utf8(rest) {
            Ok(text) => self.write_text(text)?,
            Err(error) if error.error_len().is_none() => {
                let (text, begun) = rest.split_at(error.valid_up_to());
                self.write_text(std::str::from_utf8(text).unwrap_or_default())?;
                self.begun.extend_from_slice(begun);
            }
            Err(_) => return Err(not_utf8()),
        }
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        self.out.flush()
    }
}

fn not_utf8() -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, "JSON that is not UTF-8")
}

fn is_unsafe(c: char) -> bool {
    is_terminal_unsafe(c) && c != '\n' && c != '\t'
}

/// A text of JSON with every character escaped on which a terminal could act, as [`EscapedJson`]
/// writes it.
#[must_use]
pub fn escaped_json(json: &str) -> String {
    let mut out = EscapedJson::new(Vec::with_capacity(json.len()));
    // Writing to memory does not fail.
    let _ = out.write_text(json);
    String::from_utf8(out.into_inner()).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn strings_keep_their_value_in_pieces_of_any_size(
            text in "[a-z\"\\\\\\x00-\\x1f\\x7f-\\u{a0}\u{202e}\u{feff}\u{1f600}\u{e0001}]{0,20}",
            piece in 1_usize..8,
        ) {
            let json = serde_json::to_string(&text).unwrap();
            let mut out = EscapedJson::new(Vec::new());
            for piece in json.as_bytes().chunks(piece) {
                out.write_all(piece).unwrap();
            }
            let escaped = String::from_utf8(out.into_inner()).unwrap();
            prop_assert_eq!(&escaped, &escaped_json(&json));
            prop_assert!(!escaped.contains(is_unsafe));
            prop_assert_eq!(serde_json::from_str::<String>(&escaped).unwrap(), text);
        }
    }

    #[test]
    fn bytes_that_are_not_text_are_an_error() {
        for bytes in [&b"\xff"[..], b"a\xe2x"] {
            assert!(EscapedJson::new(Vec::new()).write_all(bytes).is_err());
        }
        let mut out = EscapedJson::new(Vec::new());
        out.write_all(b"\xe2").unwrap();
        assert!(out.write_all(b"x").is_err());
    }
}
