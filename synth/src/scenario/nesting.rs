//! How deep a script nests, told before it is parsed: the parser of KDL calls itself for every
//! brace and every comment in a comment, and the stack is no place to find out.
//!
//! Whatever the script, what is told here is never less than what the parser sees, even where the
//! script is broken and the parser looks for a place to go on. So a brace that closes counts only
//! where it surely does, and one that opens counts wherever it stands, but for pairs in a text on
//! one line, where they name variables.

/// Where braces or comments stand in each other for more than `most` levels, in bytes of the
/// script.
pub(super) fn too_deep(text: &str, most: usize) -> Option<usize> {
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
            // These stand in each other as well; what ends one is taken for nothing.
            '/' if rest.starts_with("/*") => {
                depth += 1;
                let len = rest.find("*/").map_or(rest.len(), |end| end + 2);
                let inner = rest.get(2..len).unwrap_or_default();
                depth += inner.matches("/*").count() + opened(inner, inner.len());
                if depth <= most && len < rest.len() && !inner.contains("/*") {
                    depth -= 1;
                }
                len
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
        if depth > most {
            return Some(at);
        }
        rest = rest.get(len..).unwrap_or_default();
    }
    None
}

/// The length of a text between quotes on one line, quotes included.
fn quoted(text: &str) -> usize {
    let mut escaped = false;
    for (at, byte) in text.bytes().enumerate().skip(1) {
        match byte {
            // White space may be escaped too, line ends among it.
            _ if escaped => escaped = false,
            b'\\' => escaped = true,
            b'"' | b'\n' => return at + 1,
            _ => {}
        }
    }
    text.len()
}

/// The length of a text up to what ends it, however many lines.
fn long(text: &str, start: usize, end: &str) -> usize {
    let inner = text.get(start..).unwrap_or_default();
    inner.find(end).map_or(text.len(), |at| start + at + end.len())
}

/// Braces that open.
fn opened(text: &str, len: usize) -> usize {
    text.bytes().take(len).filter(|b| *b == b'{').count()
}

/// Braces that open and are not closed within.
fn unpaired(text: &str, len: usize) -> usize {
    text.bytes().take(len).fold(0usize, |open, byte| match byte {
        b'{' => open + 1,
        b'}' => open.saturating_sub(1),
        _ => open,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn braces_and_comments_count() {
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
        ] {
            let reported = (0..).find(|most| too_deep(text, *most).is_none());
            assert_eq!(reported, Some(depth), "{text}");
        }
    }

    #[test]
    fn scenarios_nest_far_less() {
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
