//! Escaping of text for terminals and for JSON.

use std::io::Write;

/// Whether a terminal may act on a character, or can be made to hide other characters by it:
/// control characters, invisible characters, and characters that change the direction of text.
#[must_use]
pub fn is_terminal_unsafe(c: char) -> bool {
    c.is_control()
        || matches!(c,
            '\u{061c}' | '\u{200b}'..='\u{200f}' | '\u{2028}'..='\u{202e}'
            | '\u{2060}'..='\u{2069}' | '\u{feff}' | '\u{fff9}'..='\u{fffb}')
}

/// Writes text on one line. Characters on which a terminal could act are written as `\u{..}`. A
/// backslash is written as it is, except before `u{`, so that text cannot look like such an escape.
pub fn escape_line(out: &mut Vec<u8>, text: &str) {
    // Most text is plain and is written in one piece.
    if text.bytes().all(|b| is_plain(b) || b == b'"') {
        out.extend_from_slice(text.as_bytes());
        return;
    }
    escape_chars(out, text.chars().map(Ok));
}

/// A name of a trace on one line, for text that nobody parses: line feeds, and characters on which
/// a terminal could act, are escaped. Tabs stay.
///
/// ```
/// use etl_schema::render::one_line;
///
/// assert_eq!(one_line("a\nb\u{1b}c"), r"a\nb\u{1b}c");
/// ```
#[must_use]
pub fn one_line(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '\n' => out.push_str("\\n"),
            '\t' => out.push('\t'),
            c if is_terminal_unsafe(c) => out.extend(c.escape_unicode()),
            c => out.push(c),
        }
    }
    out
}

/// As [`escape_line`], for characters and unpaired surrogates.
pub(crate) fn escape_chars(out: &mut Vec<u8>, chars: impl Iterator<Item = Result<char, u16>>) {
    let mut pending = Pending::Nothing;
    for c in chars {
        match (pending, c) {
            (Pending::Backslash, Ok('u')) => {
                pending = Pending::BackslashU;
                continue;
            }
            (Pending::BackslashU, Ok('{')) => out.extend_from_slice(b"\\u{5c}u"),
            _ => out.extend_from_slice(pending.text()),
        }
        pending = Pending::Nothing;
        match c {
            Ok('\\') => pending = Pending::Backslash,
            Ok(c) if is_terminal_unsafe(c) => out.extend(c.escape_unicode().map(|c| c as u8)),
            Ok(c) => out.extend_from_slice(c.encode_utf8(&mut [0; 4]).as_bytes()),
            Err(lone) => drop(write!(out, "\\u{{{lone:x}}}")),
        }
    }
    out.extend_from_slice(pending.text());
}

/// What [`escape_chars`] has read but not written yet: it depends on the next characters.
#[derive(Clone, Copy)]
enum Pending {
    Nothing,
    Backslash,
    BackslashU,
}

impl Pending {
    fn text(self) -> &'static [u8] {
        match self {
            Pending::Nothing => b"",
            Pending::Backslash => b"\\",
            Pending::BackslashU => b"\\u",
        }
    }
}

/// Puts a mark before each quote in the output after `start`.
pub(crate) fn mark_quotes(out: &mut Vec<u8>, start: usize, mark: u8) {
    // Quotes in a text are rare.
    if !out.get(start..).is_some_and(|text| text.contains(&b'"')) {
        return;
    }
    for byte in out.split_off(start) {
        if byte == b'"' {
            out.push(mark);
        }
        out.push(byte);
    }
}

/// Writes a JSON string with its quotes.
pub fn escape_json(out: &mut Vec<u8>, text: &str) {
    out.push(b'"');
    json_text(out, text);
    out.push(b'"');
}

/// Writes a JSON string without its quotes. Nearly all names are plain and are written in one
/// piece.
pub(crate) fn json_text(out: &mut Vec<u8>, text: &str) {
    let mut rest = text;
    if !is_all_plain(rest.as_bytes()) {
        // Plain text between other characters is also written in one piece.
        while let Some((plain, other)) = rest
            .bytes()
            .position(|b| !is_plain(b))
            .and_then(|at| rest.split_at_checked(at))
        {
            out.extend_from_slice(plain.as_bytes());
            let mut chars = other.chars();
            chars.next().into_iter().for_each(|c| json_char(out, c));
            rest = chars.as_str();
        }
    }
    out.extend_from_slice(rest.as_bytes());
}

/// Whether a byte of text needs no escape in JSON or on a terminal: printable ASCII without `"`
/// and `\`.
#[inline]
pub(crate) const fn is_plain(b: u8) -> bool {
    matches!(b, b' '..=b'~') && b != b'"' && b != b'\\'
}

/// Whether all bytes are plain. Eight are compared at a time, since most of the output are names.
fn is_all_plain(bytes: &[u8]) -> bool {
    let (words, rest) = bytes.as_chunks::<8>();
    let mut last = [b' '; 8];
    last.iter_mut().zip(rest).for_each(|(to, from)| *to = *from);
    words
        .iter()
        .chain([&last])
        .all(|word| are_plain(u64::from_le_bytes(*word)))
}

/// Whether each of the eight bytes of a word is plain.
#[inline]
pub(crate) const fn are_plain(word: u64) -> bool {
    const ONES: u64 = u64::from_le_bytes([1; 8]);
    const TOPS: u64 = u64::from_le_bytes([0x80; 8]);
    // The top bits of the bytes that are less than a number below 0x80. A borrow can only reach
    // bytes above such a byte.
    const fn less(word: u64, than: u8) -> u64 {
        word.wrapping_sub(ONES * than as u64) & !word
    }
    const fn equal(word: u64, to: u8) -> u64 {
        less(word ^ (ONES * to as u64), 1)
    }
    let others = word | less(word, b' ') | equal(word, b'"') | equal(word, b'\\');
    (others | equal(word, 0x7f)) & TOPS == 0
}

/// Writes a character of a JSON string. Characters on which a terminal could act are also escaped,
/// although JSON does not require it.
pub(crate) fn json_char(out: &mut Vec<u8>, c: char) {
    match c {
        '"' => out.extend(b"\\\""),
        '\\' => out.extend(b"\\\\"),
        '\n' => out.extend(b"\\n"),
        '\r' => out.extend(b"\\r"),
        '\t' => out.extend(b"\\t"),
        c if is_terminal_unsafe(c) => {
            for unit in c.encode_utf16(&mut [0; 2]) {
                let _ = write!(out, "\\u{unit:04x}");
            }
        }
        c => out.extend_from_slice(c.encode_utf8(&mut [0; 4]).as_bytes()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn with(f: fn(&mut Vec<u8>, &str), text: &str) -> String {
        let mut out = Vec::new();
        f(&mut out, text);
        String::from_utf8(out).unwrap()
    }

    #[test]
    fn escape_line_and_escape_json_leave_nothing_unsafe() {
        let hostile = "a\x1b]0;pwned\x07\u{9b}31m\u{202e}b\r\u{7f}";
        for text in [with(escape_line, hostile), with(escape_json, hostile)] {
            assert!(!text.chars().any(is_terminal_unsafe), "{text:?}");
        }
    }

    #[test]
    fn is_all_plain_compares_each_byte_at_every_offset() {
        for byte in 0..=u8::MAX {
            for len in 0..20 {
                for at in 0..len {
                    let mut bytes = vec![b'x'; len];
                    bytes[at] = byte;
                    assert_eq!(
                        is_all_plain(&bytes),
                        is_plain(byte),
                        "{byte:#x} at {at} of {len}"
                    );
                }
            }
        }
        assert!(is_all_plain(b"") && !is_all_plain(b"\x1f !!!!!!!") && !is_all_plain(b"!!\"!!!!!"));
    }

    #[test]
    fn escape_json_is_undone_by_a_parser() {
        let mixed = "a=1;\nb=\"x\";\né\\ä end";
        for text in [
            "plain",
            "\"\\\n\r\t\0\x1b",
            "\u{202e}\u{feff}\u{1f600}é",
            mixed,
        ] {
            let back: String = serde_json::from_str(&with(escape_json, text)).unwrap();
            assert_eq!(back, text);
        }
    }
}
