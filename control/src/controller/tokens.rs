//! Splitting of lines into words, and quoting, as the command prompt and the C runtime do.

use std::ops::Range;

use super::error::{Found, LineError};

/// Characters that a word processor may have put for a typed hyphen: hyphens, dashes, a minus sign.
pub(super) const DASHES: [char; 8] = [
    '-', '\u{2010}', '\u{2011}', '\u{2012}', '\u{2013}', '\u{2014}', '\u{2015}', '\u{2212}',
];

/// A word of the line.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Word {
    /// The text that the tool receives.
    pub text: String,
    /// Its position in the line with its quotes, in bytes.
    pub span: Range<usize>,
    /// Whether any part of it was in quotes.
    pub quoted: bool,
}

/// The size of the longest line that is parsed, in bytes. The command prompt accepts 8191
/// characters.
pub const MAX_LINE: usize = 1 << 16;

/// Splits a line into words at white space that is not in quotes. `\"` and, within quotes, `""` are
/// a quotation mark. Backslashes only escape a quotation mark. The character after `^` has no
/// meaning of its own.
pub(super) fn split(line: &str) -> Result<Vec<Word>, LineError> {
    if line.len() > MAX_LINE {
        return Err(LineError::new(
            MAX_LINE..line.len(),
            "a line of 64 KiB at most",
            Found::More,
        ));
    }
    let mut words = Vec::new();
    let mut chars = line.char_indices().peekable();
    while let Some(&(start, c)) = chars.peek() {
        if c.is_whitespace() {
            chars.next();
            continue;
        }
        let mut word = Word {
            text: String::new(),
            span: start..line.len(),
            quoted: false,
        };
        // The offset of a quotation mark that is not closed yet.
        let mut open = None;
        let mut backslashes = 0usize;
        while let Some(&(at, c)) = chars.peek() {
            if c.is_whitespace() && open.is_none() {
                word.span.end = at;
                break;
            }
            chars.next();
            if c == '\\' {
                backslashes = backslashes.saturating_add(1);
                continue;
            }
            if c == '"' {
                word.text.extend(std::iter::repeat_n('\\', backslashes / 2));
                let escaped = backslashes % 2 == 1;
                backslashes = 0;
                if escaped {
                    word.text.push('"');
                    continue;
                }
                word.quoted = true;
                if open.is_some() && chars.peek().is_some_and(|&(_, c)| c == '"') {
                    chars.next();
                    word.text.push('"');
                } else {
                    open = if open.is_some() { None } else { Some(at) };
                }
                continue;
            }
            word.text
                .extend(std::iter::repeat_n('\\', std::mem::take(&mut backslashes)));
            match c {
                '^' if open.is_none() => {
                    if let Some((_, next)) = chars.next() {
                        word.text.push(next);
                    }
                }
                '&' | '|' | '<' | '>' if open.is_none() => {
                    let end = at.saturating_add(1);
                    let error = LineError::new(at..end, "one command", Found::Text(c.to_string()));
                    return Err(error.hint(
                        "the command prompt ends the command here; give one command at a time, \
                         and put what belongs to a name in quotation marks",
                    ));
                }
                c => word.text.push(c),
            }
        }
        word.text.extend(std::iter::repeat_n('\\', backslashes));
        if let Some(at) = open {
            let what = "a quotation mark that closes this one";
            return Err(LineError::new(at..line.len(), what, Found::End));
        }
        words.push(word);
    }
    Ok(words)
}

/// Whether a character means nothing to the command prompt, so that it needs no quotes.
pub(super) fn is_plain(c: char) -> bool {
    !c.is_whitespace() && !"\"&|<>^".contains(c)
}

/// Quotes a word, if it has to be, so that a tool reads it unchanged.
pub(super) fn quote(word: &str) -> String {
    // At the front, a parenthesis would begin a remark or a list, and a dash a switch.
    let is_special_first = match word.chars().next() {
        Some(first) => first == '(' || DASHES.contains(&first),
        None => true,
    };
    if !is_special_first && word.chars().all(is_plain) {
        return word.to_owned();
    }
    let mut out = String::with_capacity(word.len().saturating_add(2));
    out.push('"');
    let mut backslashes = 0usize;
    for c in word.chars() {
        match c {
            '\\' => backslashes = backslashes.saturating_add(1),
            '"' => {
                // Each backslash before the mark is doubled, and one is added for the mark itself.
                out.extend(std::iter::repeat_n('\\', backslashes.saturating_add(1)));
                backslashes = 0;
            }
            _ => backslashes = 0,
        }
        out.push(c);
    }
    out.extend(std::iter::repeat_n('\\', backslashes));
    out.push('"');
    out
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn texts(line: &str) -> Vec<String> {
        split(line).unwrap().into_iter().map(|w| w.text).collect()
    }

    #[test]
    fn split_handles_quotes_carets_and_backslashes() {
        for (line, words) in [
            ("a  b\tc", &["a", "b", "c"][..]),
            (r#"-f "C:\my traces\a.etl""#, &["-f", r"C:\my traces\a.etl"]),
            (r#""a\\" b"#, &[r"a\", "b"]),
            (r#""a\"b" c\\d"#, &["a\"b", r"c\\d"]),
            (r#""a""b" x"#, &["a\"b", "x"]),
            (r#"ab"c d"ef"#, &["abc def"]),
            ("a^&b ^\"", &["a&b", "\""]),
            (r#""a&b|c""#, &["a&b|c"]),
            (r#""""#, &[""]),
        ] {
            assert_eq!(texts(line), words, "{line}");
        }
    }

    #[test]
    fn split_rejects_what_the_command_prompt_interprets() {
        for (line, span) in [("a & b", 2..3), ("x >nul", 2..3), ("a \"b", 2..4)] {
            assert_eq!(split(line).unwrap_err().span, span, "{line}");
        }
        assert!(split(&"x ".repeat(MAX_LINE)).is_err());
    }

    proptest! {
        #[test]
        fn split_undoes_quote(words in proptest::collection::vec(any::<String>(), 0..5)) {
            let line = words.iter().map(|w| quote(w)).collect::<Vec<_>>().join(" ");
            prop_assert_eq!(texts(&line), words);
        }

        #[test]
        fn split_returns_spans_within_the_line(line in any::<String>()) {
            match split(&line) {
                Ok(words) => for word in words {
                    prop_assert!(line.get(word.span.clone()).is_some_and(|s| !s.is_empty()));
                },
                Err(error) => prop_assert!(line.get(error.span).is_some()),
            }
        }
    }
}
