//! The depth of a script, computed before it is parsed: the KDL parser calls itself for each brace
//! and each comment in a comment, so deep scripts would overflow the stack.
//!
//! The result is never less than the depth that the parser sees, even in a broken script that the
//! parser tries to recover from. So a closing brace counts only where it surely closes, and an
//! opening one counts everywhere, except in pairs in text on one line, where they name variables.

/// Byte offset at which braces and comments nest deeper than `max` levels.
pub(super) fn too_deep(text: &str, max: usize) -> Option<usize> {
    let mut depth = 0usize;
    let mut rest = text;
    while let Some(c) = rest.chars().next() {
        let at = text.len() - rest.len();
        let len = match c {
            '"' if rest.starts_with("\"\"\"") => {
                let len = long(rest, 3, "\"\"\"");
                depth += opened(rest, len);
                len
            }
            '"' => {
                let len = quoted(rest);
                depth += unpaired(rest, len);
                len
            }
            '#' => {
                let hashes = rest.bytes().take_while(|b| *b == b'#').count();
                if rest.as_bytes().get(hashes) == Some(&b'"') {
                    let end = format!("\"{}", rest.get(..hashes).unwrap_or_default());
                    let len = long(rest, hashes + 1, &end);
                    depth += opened(rest, len);
                    len
                } else {
                    hashes
                }
            }
            '/' if rest.starts_with("//") => {
                let len = rest.find('\n').unwrap_or(rest.len());
                depth += unpaired(rest, len);
                len
            }
            // Comments nest as well; the end of an inner one is ignored.
            '/' if rest.starts_with("/*") => {
                depth += 1;
                // The `*` of the first mark is not part of an end (`/*/`).
                let after = rest.get(2..).unwrap_or_default();
                let len = after.find("*/").map_or(rest.len(), |end| end + 4);
                let inner = rest.get(2..len).unwrap_or_default();
                depth += inner.matches("/*").count() + opened(inner, inner.len());
                if depth <= max && len < rest.len() && !inner.contains("/*") {
                    depth -= 1;
                }
                // The `/` of an end can also begin another comment (`*/*`).
                if rest.as_bytes().get(len) == Some(&b'*') {
                    len - 1
                } else {
                    len
                }
            }
            '{' => {
                depth += 1;
                1
            }
            '}' => {
                depth = depth.saturating_sub(1);
                1
            }
            c => c.len_utf8(),
        };
        if depth > max {
            return Some(at);
        }
        rest = rest.get(len..).unwrap_or_default();
    }
    None
}

/// The length of quoted text on one line, including the quotes.
fn quoted(text: &str) -> usize {
    let mut escaped = false;
    for (at, byte) in text.bytes().enumerate().skip(1) {
        match byte {
            // White space, including line ends, can be escaped.
            _ if escaped => escaped = false,
            b'\\' => escaped = true,
            b'"' | b'\n' => return at + 1,
            _ => {}
        }
    }
    text.len()
}

/// The length of text up to and including its end mark, on any number of lines.
fn long(text: &str, start: usize, end: &str) -> usize {
    let inner = text.get(start..).unwrap_or_default();
    inner
        .find(end)
        .map_or(text.len(), |at| start + at + end.len())
}

/// Number of opening braces.
fn opened(text: &str, len: usize) -> usize {
    text.bytes().take(len).filter(|b| *b == b'{').count()
}

/// Number of opening braces that are not closed in the text.
fn unpaired(text: &str, len: usize) -> usize {
    text.bytes()
        .take(len)
        .fold(0usize, |open, byte| match byte {
            b'{' => open + 1,
            b'}' => open.saturating_sub(1),
            _ => open,
        })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn too_deep_counts_braces_and_comments() {
        for (text, depth) in [
            ("", 0),
            ("a { b { c } }; d { e }", 2),
            ("a \"{n}\" { b \"{n}{m}\" }", 1),
            ("/* a { */ b { }", 2),
            ("/* one /* two */ */ a { b { c } }", 4),
            ("a \"}\" { b \"}\" { c \"\\\"}\" {", 3),
            ("a #\"}\"# { b ##\"}\"## {", 2),
            ("\"broken\na { b {", 2),
            ("\"\"\"broken\n \"}\" { \"}\" {", 2),
            ("\"\\\n}\" a { \"\\\n}\" b {", 2),
            ("// {n} }}}\na {", 1),
            // The `*` of a comment's beginning does not end it.
            ("/*/*/*/*", 4),
            ("/*/*/*/*/*/*", 6),
            ("/* a *//* b */", 1),
        ] {
            let reported = (0..).find(|max| too_deep(text, *max).is_none());
            assert_eq!(reported, Some(depth), "{text}");
        }
    }

    #[test]
    fn too_deep_accepts_usual_scenarios() {
        let shop = r#"
            repeat 2 as="n" {
                process "Shop{n}.exe" {
                    clr "core" {
                        domain "Shop" { assembly "Shop" { module "Shop.dll" { methods 200 } } }
                    }
                }
            }
        "#;
        assert_eq!(too_deep(shop, 8), None);
    }
}
