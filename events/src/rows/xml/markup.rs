//! Elements, attributes, and text in them.

use etl_format::Guid;
use etl_schema::render::{self, decimal};

/// Writes text for an element or an attribute.
pub(super) struct Escaper<'o> {
    out: &'o mut Vec<u8>,
    /// The beginning of text that looks like `_xHHHH_`, not written yet.
    pending: String,
}

impl<'o> Escaper<'o> {
    pub(super) fn new(out: &'o mut Vec<u8>) -> Self {
        Escaper {
            out,
            pending: String::new(),
        }
    }

    pub(super) fn push(&mut self, c: Result<char, u16>) {
        if let Ok(c) = c
            && self.continues_escape(c)
        {
            self.pending.push(c);
            if self.pending.len() == "_xHHHH_".len() {
                self.out.extend(b"_x005F");
                self.out
                    .extend(self.pending.trim_end_matches('_').as_bytes());
                // The last `_` may be the first of another escape.
                self.pending.truncate(1);
            }
            return;
        }
        self.flush();
        match c {
            Ok('_') => self.pending.push('_'),
            Ok('<') => self.out.extend(b"&lt;"),
            Ok('>') => self.out.extend(b"&gt;"),
            Ok('&') => self.out.extend(b"&amp;"),
            Ok('"') => self.out.extend(b"&quot;"),
            Ok(
                c @ ('\0'..='\x08' | '\x0b' | '\x0c' | '\x0e'..='\x1f' | '\u{fffe}' | '\u{ffff}'),
            ) => {
                self.out
                    .extend(format!("_x{:04X}_", u32::from(c)).as_bytes());
            }
            Err(lone) => self.out.extend(format!("_x{lone:04X}_").as_bytes()),
            // Readers change line ends; the others act on a terminal.
            Ok(c) if render::is_terminal_unsafe(c) => {
                self.out
                    .extend(format!("&#x{:X};", u32::from(c)).as_bytes());
            }
            Ok(c) => self.out.extend(c.encode_utf8(&mut [0; 4]).as_bytes()),
        }
    }

    /// Whether the pending text and `c` look like the beginning of `_xHHHH_`.
    fn continues_escape(&self, c: char) -> bool {
        match self.pending.len() {
            0 => false,
            1 => c == 'x',
            2..=5 => c.is_ascii_hexdigit(),
            _ => c == '_',
        }
    }

    pub(super) fn flush(&mut self) {
        self.out.extend(self.pending.as_bytes());
        self.pending.clear();
    }
}

/// Writes text.
pub(super) fn text(out: &mut Vec<u8>, text: &str) {
    let mut escaper = Escaper::new(out);
    text.chars().for_each(|c| escaper.push(Ok(c)));
    escaper.flush();
}

/// Writes an element; `write` writes its content.
pub(super) fn enclosed(out: &mut Vec<u8>, name: &str, write: impl FnOnce(&mut Vec<u8>)) {
    out.push(b'<');
    out.extend(name.as_bytes());
    out.push(b'>');
    write(out);
    out.extend(b"</");
    out.extend(name.as_bytes());
    out.push(b'>');
}

/// Writes an element with text in it, or an empty one.
pub(super) fn element(out: &mut Vec<u8>, name: &str, content: &str) {
    if content.is_empty() {
        out.extend(format!("<{name}/>").as_bytes());
    } else {
        enclosed(out, name, |out| text(out, content));
    }
}

/// Writes an element, if it has content.
pub(super) fn named(out: &mut Vec<u8>, name: &str, content: &str) {
    if !content.is_empty() {
        element(out, name, content);
    }
}

pub(super) fn number(out: &mut Vec<u8>, name: &str, value: u64) {
    enclosed(out, name, |out| decimal(out, value));
}

pub(super) fn attribute(out: &mut Vec<u8>, name: &str, write: impl FnOnce(&mut Vec<u8>)) {
    out.push(b' ');
    out.extend(name.as_bytes());
    out.extend(b"=\"");
    write(out);
    out.push(b'"');
}

pub(super) fn guid(out: &mut Vec<u8>, guid: Guid) {
    out.push(b'{');
    out.extend(guid.to_ascii());
    out.push(b'}');
}

#[cfg(test)]
mod tests {
    use super::*;

    fn escaped(chars: impl IntoIterator<Item = Result<char, u16>>) -> String {
        let mut out = Vec::new();
        let mut escaper = Escaper::new(&mut out);
        chars.into_iter().for_each(|c| escaper.push(c));
        escaper.flush();
        String::from_utf8(out).unwrap()
    }

    #[test]
    fn escaper_names_what_xml_cannot_hold() {
        for (text, expected) in [
            ("a<b>&\"c", "a&lt;b&gt;&amp;&quot;c"),
            ("\0\x1b\u{ffff}", "_x0000__x001B__xFFFF_"),
            ("\t\r\n", "&#x9;&#xD;&#xA;"),
            ("\u{85}\u{202e}", "&#x85;&#x202E;"),
            ("_x001B_", "_x005F_x001B_"),
            ("_x001B_x001b_", "_x005F_x001B_x005F_x001b_"),
            ("__x00", "__x00"),
            ("_x00g0_", "_x00g0_"),
            ("snake_case_", "snake_case_"),
            ("C:\\Windows", "C:\\Windows"),
        ] {
            assert_eq!(escaped(text.chars().map(Ok)), expected, "{text:?}");
        }
        assert_eq!(escaped([Ok('_'), Err(0xd800), Ok('x')]), "__xD800_x");
    }
}
