//! Text from a trace, made harmless: nothing in it may act on a terminal, a spreadsheet or a
//! JSON reader.

use std::fmt::{self, Write};

use etl_schema::render::acts;
pub(crate) use etl_schema::render::{escape_json as json, escape_line as line};

/// Displays text with every character escaped that could act on a terminal.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Printable<T>(pub T);

impl<T: AsRef<str>> fmt::Display for Printable<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for c in self.0.as_ref().chars() {
            match c {
                '\n' => f.write_char('\n')?,
                c if acts(c) => write!(f, "{}", c.escape_unicode())?,
                c => f.write_char(c)?,
            }
        }
        Ok(())
    }
}

/// Writes a CSV field. One that a spreadsheet would take for a formula gets an apostrophe first;
/// quotes stand where the field needs them.
pub(crate) fn csv(out: &mut Vec<u8>, text: &str) {
    let number = text.strip_prefix(['-', '+']).unwrap_or(text);
    let plain = !number.is_empty() && number.bytes().all(|b| b.is_ascii_digit() || b == b'.');
    let formula = !plain && text.starts_with(['=', '+', '-', '@', '\t', '\r', '\n']);
    let quoted = formula || text.contains([',', '"']) || text.chars().any(acts);
    if !quoted {
        out.extend(text.as_bytes());
        return;
    }
    out.push(b'"');
    if formula {
        out.push(b'\'');
    }
    for c in text.chars() {
        match c {
            '"' => out.extend(b"\"\""),
            c if acts(c) => out.extend(c.escape_unicode().map(|c| c as u8)),
            c => out.extend(c.encode_utf8(&mut [0; 4]).as_bytes()),
        }
    }
    out.push(b'"');
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
    fn a_terminal_is_never_acted_on() {
        let hostile = "a\x1b]0;pwned\x07\u{9b}31m\u{202e}b\r\u{7f}";
        for text in [Printable(hostile).to_string(), with(csv, hostile)] {
            assert!(!text.chars().any(acts), "{text:?}");
        }
    }

    #[test]
    fn spreadsheets_see_no_formula() {
        assert_eq!(with(csv, "=1+1"), "\"'=1+1\"");
        assert_eq!(with(csv, "@SUM(A1)"), "\"'@SUM(A1)\"");
        assert_eq!(with(csv, "-1.5"), "-1.5");
        assert_eq!(with(csv, "-cmd|x"), "\"'-cmd|x\"");
        assert_eq!(with(csv, "a,\"b\""), "\"a,\"\"b\"\"\"");
        assert_eq!(with(csv, "plain text"), "plain text");
    }
}
