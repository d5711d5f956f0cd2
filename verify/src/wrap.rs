//! Wraps text at the width of a terminal, and escapes characters that a terminal would obey.

/// Columns of a terminal.
const WIDTH: usize = 80;

/// Wraps text before the edge of a terminal. The first line is indented by `first` columns, the
/// others by `rest`.
pub(crate) fn wrap(first: usize, rest: usize, text: &str) -> String {
    wrap_at(WIDTH, first, rest, text)
}

/// Wraps text before column `width`.
pub(crate) fn wrap_at(width: usize, first: usize, rest: usize, text: &str) -> String {
    let text = printable(text.trim());
    let mut out = " ".repeat(first);
    let mut column = first;
    let mut is_first_word = true;
    for word in text.split_inclusive(' ') {
        let length = word.trim_end().chars().count();
        if column + length >= width && length > 0 && !is_first_word {
            out.truncate(out.trim_end().len());
            out.push('\n');
            out.extend(std::iter::repeat_n(' ', rest));
            column = rest;
        }
        out.push_str(word);
        column += word.chars().count();
        is_first_word = false;
    }
    out.truncate(out.trim_end().len());
    out
}

/// Escapes control characters and marks of text direction: names come from the trace and must not
/// act on a terminal.
pub(crate) fn printable(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for c in text.chars() {
        if c.is_control() || is_text_direction(c) {
            out.extend(c.escape_unicode());
        } else {
            out.push(c);
        }
    }
    out
}

/// Whether a character sets the direction of text: it could show a file name backwards.
fn is_text_direction(c: char) -> bool {
    matches!(c, '\u{200e}'..='\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn wrap_ends_lines_before_the_edge() {
        let out = wrap(2, 6, &format!("{} {}", "word ".repeat(40), "x".repeat(90)));
        let lines: Vec<&str> = out.lines().collect();
        assert!(lines.len() > 3, "{out}");
        assert!(
            lines
                .iter()
                .all(|l| l.len() < WIDTH || l.trim().len() == 90),
            "{out}"
        );
        assert!(
            lines[0].starts_with("  word") && lines[1].starts_with("      word"),
            "{out}"
        );
        assert_eq!(
            out.split_whitespace().count(),
            41,
            "all words are there: {out}"
        );
        assert_eq!(wrap(2, 6, "a    b"), "  a    b", "columns stay");
    }
}
