//! Text from a trace, made harmless.

use std::io::Write;

/// Whether a terminal may act on a character, or hide others behind it: control characters, and
/// those that change the direction of the text around them.
fn acts(c: char) -> bool {
    c.is_control()
        || matches!(c,
            '\u{061c}' | '\u{200b}'..='\u{200f}' | '\u{2028}'..='\u{202e}'
            | '\u{2060}'..='\u{2069}' | '\u{feff}' | '\u{fff9}'..='\u{fffb}')
}

/// Writes text on one line, with what a terminal could act on (and `\`) as `\u{..}`.
pub fn escape_line(out: &mut Vec<u8>, text: &str) {
    for c in text.chars() {
        if acts(c) || c == '\\' {
            out.extend(c.escape_unicode().map(|c| c as u8));
        } else {
            out.extend_from_slice(c.encode_utf8(&mut [0; 4]).as_bytes());
        }
    }
}

/// Writes a JSON string with its quotes.
pub fn escape_json(out: &mut Vec<u8>, text: &str) {
    out.push(b'"');
    text.chars().for_each(|c| json_char(out, c));
    out.push(b'"');
}

/// Writes a character of a JSON string. Beyond what JSON asks for, what a terminal could act on is
/// escaped too.
pub(super) fn json_char(out: &mut Vec<u8>, c: char) {
    match c {
        '"' => out.extend(b"\\\""),
        '\\' => out.extend(b"\\\\"),
        '\n' => out.extend(b"\\n"),
        '\r' => out.extend(b"\\r"),
        '\t' => out.extend(b"\\t"),
        c if acts(c) => {
            for unit in c.encode_utf16(&mut [0; 2]) {
                let _ = write!(out, "\\u{unit:04x}");
            }
        }
        c => out.extend_from_slice(c.encode_utf8(&mut [0; 4]).as_bytes()),
    }
}
