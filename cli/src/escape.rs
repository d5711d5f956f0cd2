//! Escaping of what a terminal, a spreadsheet or a JSON reader could act on.

use std::borrow::Cow;

use etl_schema::render::is_terminal_unsafe;
pub(crate) use etl_schema::render::{escape_json as json, escape_line as line};

/// How an escaped character is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Style {
    /// `\u{1b}`, for text.
    Text,
    /// `\u001b`, for JSON, where such characters occur inside strings only.
    Json,
}

/// The text with every character escaped that a terminal could act on. Line feeds and tabs stay.
pub(crate) fn escape_controls(text: &str, style: Style) -> Cow<'_, str> {
    let is_unsafe = |c: char| is_terminal_unsafe(c) && c != '\n' && c != '\t';
    if !text.contains(is_unsafe) {
        return Cow::Borrowed(text);
    }
    let mut out = String::with_capacity(text.len() + 16);
    for c in text.chars() {
        match style {
            _ if !is_unsafe(c) => out.push(c),
            Style::Text => out.extend(c.escape_unicode()),
            Style::Json => {
                for unit in c.encode_utf16(&mut [0; 2]) {
                    out.push_str(&format!("\\u{unit:04x}"));
                }
            }
        }
    }
    Cow::Owned(out)
}

/// As [`escape_controls`] for text, but ANSI colour sequences stay.
pub(crate) fn escape_all_but_colors(text: &str) -> String {
    let mut parts = text.split('\u{1b}');
    let mut out = escape_controls(parts.next().unwrap_or_default(), Style::Text).into_owned();
    for part in parts {
        let code = part.strip_prefix('[').and_then(|rest| rest.split_once('m'));
        let is_color = code.is_some_and(|(code, _)| {
            code.len() <= 4 && code.bytes().all(|b| b.is_ascii_digit() || b == b';')
        });
        out.push_str(if is_color { "\u{1b}" } else { "\\u{1b}" });
        out.push_str(&escape_controls(part, Style::Text));
    }
    out
}

/// A name from a trace or a command line on one line: its line feeds are escaped as well.
pub(crate) fn one_line(text: &str) -> String {
    escape_controls(text, Style::Text).replace('\n', "\\n")
}

/// Displays text with every character escaped that could act on a terminal.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Printable<T>(pub T);

impl<T: AsRef<str>> std::fmt::Display for Printable<T> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&escape_controls(self.0.as_ref(), Style::Text))
    }
}

/// Writes a CSV field. One that a spreadsheet would take for a formula gets an apostrophe first;
/// quotes stand where the field needs them. What could act on a terminal, and a backslash where it
/// would look like such an escape, is written as `\u{..}`.
pub(crate) fn csv(out: &mut Vec<u8>, text: &str) {
    if !csv_ascii(out, text) {
        csv_chars(out, text.chars().map(Ok));
    }
}

/// As [`csv`], of what most fields are: printable ASCII that is no formula, and nothing that would have to be
/// escaped but quotes. Writes nothing and says so for anything else.
fn csv_ascii(out: &mut Vec<u8>, text: &str) -> bool {
    let bytes = text.as_bytes();
    let (Some(first), Some(last)) = (bytes.first(), bytes.last()) else { return true };
    let printable = bytes.iter().all(|b| matches!(b, b' '..=b'~') && *b != b'\\');
    if !printable || matches!(first, b' ' | b'=' | b'+' | b'-' | b'@') {
        return false;
    }
    if *last != b' ' && !bytes.iter().any(|b| matches!(b, b',' | b'"')) {
        out.extend_from_slice(bytes);
        return true;
    }
    out.push(b'"');
    for (index, piece) in text.split('"').enumerate() {
        if index > 0 {
            out.extend_from_slice(b"\"\"");
        }
        out.extend_from_slice(piece.as_bytes());
    }
    out.push(b'"');
    true
}

/// As [`csv`], of characters and unpaired surrogates.
pub(crate) fn csv_chars(out: &mut Vec<u8>, text: impl Iterator<Item = Result<char, u16>> + Clone) {
    let formula = is_formula(text.clone());
    let special =
        |c| matches!(c, Ok(c) if c == ',' || c == '"' || c == ' ' || is_terminal_unsafe(c));
    let quoted = formula || text.clone().any(|c| special(c) && c != Ok(' ')) || {
        // Spaces at an end are lost on some readers, but for quotes.
        let mut ends = text.clone();
        special(ends.next().unwrap_or(Err(0))) || special(ends.last().unwrap_or(Err(0)))
    };
    if quoted {
        out.push(b'"');
    }
    if formula {
        out.push(b'\'');
    }
    let mut text = text.peekable();
    while let Some(c) = text.next() {
        match c {
            Ok('"') => out.extend(b"\"\""),
            Ok('\\') if text.peek() == Some(&Ok('u')) => out.extend(b"\\u{5c}"),
            Ok(c) if is_terminal_unsafe(c) => out.extend(c.escape_unicode().map(|c| c as u8)),
            Ok(c) => out.extend(c.encode_utf8(&mut [0; 4]).as_bytes()),
            Err(lone) => out.extend(format!("\\u{{{lone:x}}}").as_bytes()),
        }
    }
    if quoted {
        out.push(b'"');
    }
}

/// Whether a spreadsheet would calculate with a field: it begins, perhaps behind space, with what
/// begins a formula, in whatever width, and is not just a number.
fn is_formula(text: impl Iterator<Item = Result<char, u16>> + Clone) -> bool {
    let begins = |c| matches!(c, '=' | '+' | '-' | '@' | '＝' | '＋' | '－' | '＠');
    let mut number = text.clone().peekable();
    number.next_if(|c| matches!(c, Ok('-' | '+')));
    let digits = |c| matches!(c, Ok(c) if char::is_ascii_digit(&c) || c == '.');
    if number.peek().is_some() && number.all(digits) {
        return false;
    }
    let mut text = text;
    let space = |c: &Result<char, u16>| c.is_ok_and(|c| c.is_whitespace() || is_terminal_unsafe(c));
    text.find(|c| !space(c)).is_some_and(|c| c.is_ok_and(begins))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn with(f: fn(&mut Vec<u8>, &str), text: &str) -> String {
        let mut out = Vec::new();
        f(&mut out, text);
        String::from_utf8(out).unwrap()
    }

    #[test]
    fn a_terminal_is_never_acted_on() {
        let hostile = "a\x1b]0;pwned\x07\u{9b}31m\u{202e}b\r\u{7f}";
        for text in [
            escape_controls(hostile, Style::Text).into_owned(),
            escape_controls(hostile, Style::Json).into_owned(),
            escape_all_but_colors(hostile),
            with(csv, hostile),
        ] {
            assert!(!text.chars().any(is_terminal_unsafe), "{text:?}");
        }
        assert_eq!(escape_controls("a\x1b\tb\n", Style::Text), "a\\u{1b}\tb\n");
        assert_eq!(escape_controls("a\x1b\tb\n", Style::Json), "a\\u001b\tb\n");
        assert_eq!(
            escape_all_but_colors("\x1b[31mred\x1b[0m\x1b]0;x"),
            "\x1b[31mred\x1b[0m\\u{1b}]0;x"
        );
    }

    #[test]
    fn spreadsheets_see_no_formula() {
        for (text, field) in [
            ("=1+1", "\"'=1+1\""),
            ("@SUM(A1)", "\"'@SUM(A1)\""),
            ("-1.5", "-1.5"),
            ("-", "\"'-\""),
            ("-cmd|x", "\"'-cmd|x\""),
            (" =1", "\"' =1\""),
            ("\u{a0}\u{3000}+1x", "\"'\u{a0}\u{3000}+1x\""),
            ("\t@x", "\"'\\u{9}@x\""),
            ("\u{feff}=x", "\"'\\u{feff}=x\""),
            ("＝1+1", "\"'＝1+1\""),
            ("＋1", "\"'＋1\""),
            ("－1", "\"'－1\""),
            ("＠x", "\"'＠x\""),
            ("a=1", "a=1"),
            ("a,\"b\"", "\"a,\"\"b\"\"\""),
            ("plain text", "plain text"),
            ("space ", "\"space \""),
            ("", ""),
        ] {
            assert_eq!(with(csv, text), field, "{text:?}");
        }
    }

    proptest! {
        #[test]
        fn the_short_way_writes_what_the_long_one_writes(
            text in prop_oneof!["[ -~]{0,12}", "[-=+@ ,\"a1.]{0,6}", ".{0,6}"],
        ) {
            let mut long = Vec::new();
            csv_chars(&mut long, text.chars().map(Ok));
            prop_assert_eq!(with(csv, &text).into_bytes(), long);
        }
    }

    /// What `\u{..}` in a field stands for, put back by the rule of the documentation.
    fn unescaped(field: &str) -> String {
        let mut out = String::new();
        let mut rest = field;
        while let Some((before, after)) = rest.split_once("\\u{") {
            let (digits, after) = after.split_once('}').unwrap();
            out.push_str(before);
            out.push(char::from_u32(u32::from_str_radix(digits, 16).unwrap()).unwrap());
            rest = after;
        }
        out + rest
    }

    #[test]
    fn escapes_of_a_field_come_back() {
        for text in ["C:\\users\\u", "\\u{1b}", "\x1b\\u{5c}u", "\\\\u{x", "a\u{202e}b", "\\"] {
            assert_eq!(unescaped(with(csv, text).trim_matches('"')), text, "{text:?}");
        }
        let mut out = Vec::new();
        csv_chars(&mut out, [Ok('a'), Err(0xd800)].into_iter());
        assert_eq!(out, b"a\\u{d800}");
    }
}
