//! Escaping of characters that a terminal could act on.

use std::borrow::Cow;

use etl_schema::render::is_terminal_unsafe;
pub(crate) use etl_schema::render::one_line;

/// How an escaped character is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Style {
    /// `\u{1b}`, for text.
    Text,
    /// `\u001b`, for JSON: such characters only occur inside strings.
    Json,
}

/// The text with every character escaped that a terminal could act on. Line feeds and tabs stay.
pub(crate) fn escape_controls(text: &str, style: Style) -> Cow<'_, str> {
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

fn is_unsafe(c: char) -> bool {
    is_terminal_unsafe(c) && c != '\n' && c != '\t'
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_terminal_is_never_acted_on() {
        let hostile = "a\x1b]0;pwned\x07\u{9b}31m\u{202e}b\r\u{7f}";
        for text in [
            escape_controls(hostile, Style::Text).into_owned(),
            escape_controls(hostile, Style::Json).into_owned(),
            escape_all_but_colors(hostile),
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
}
