//! Escaping of what a terminal could act on.

use etl_schema::render::is_terminal_unsafe;

/// A name from a trace on one line: line feeds, and characters that a terminal could act on, are
/// escaped.
pub(crate) fn one_line(text: &str) -> String {
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
