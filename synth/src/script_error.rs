//! Errors of a script, with their location.

use core::fmt::Write as _;
use std::sync::Arc;

use miette::{NamedSource, SourceSpan};
use unicode_width::UnicodeWidthStr as _;

use crate::model::ScriptLocation;

/// Bytes of a line that are shown before the marked text, and from it on. A line can have 512 KiB,
/// and a script 1,000 errors.
const MAX_SHOWN: usize = 160;

/// Bytes of a message.
const MAX_TEXT: usize = 2048;

/// What is shown instead of the rest of a line.
const CUT: &str = "...";

/// An error in a script: what is wrong, where, and what is expected. [`miette`] renders it with its
/// location.
#[derive(Clone, Debug, thiserror::Error, miette::Diagnostic)]
#[error("{message}")]
#[diagnostic()]
pub struct ScriptError {
    message: String,
    label: String,
    #[help]
    help: Option<String>,
    #[label("{label}")]
    span: SourceSpan,
    #[source_code]
    source_code: NamedSource<Arc<str>>,
}

impl ScriptError {
    pub(crate) fn new(
        location: &ScriptLocation,
        message: String,
        label: String,
        help: Option<String>,
    ) -> Self {
        let span = location.span();
        let source_code = location.source().clone();
        ScriptError {
            message: shortened(message),
            label: shortened(label),
            help: help.map(shortened),
            span,
            source_code,
        }
    }

    /// What is wrong.
    #[must_use]
    pub fn message(&self) -> &str {
        &self.message
    }

    /// What is at the location.
    #[must_use]
    pub fn label(&self) -> &str {
        &self.label
    }

    /// What is expected.
    #[must_use]
    pub fn hint(&self) -> Option<&str> {
        self.help.as_deref()
    }

    /// The location: a byte range of the script.
    #[must_use]
    pub fn span(&self) -> SourceSpan {
        self.span
    }

    /// The error as text: the message, the line of the script with the range marked, and the help.
    ///
    /// ```text
    /// error: a process has no treads
    ///  --> bad.kdl:2:19
    ///   |
    /// 2 | process "a.exe" { treads 4 }
    ///   |                   ^^^^^^ unknown
    ///   = help: what it can have: image, clr, at, every
    /// ```
    #[must_use]
    pub fn report(&self) -> String {
        let text: &str = self.source_code.inner();
        let start = floor_char_boundary(text, self.span.offset());
        let end = floor_char_boundary(text, self.span.offset().saturating_add(self.span.len()));
        let (before, rest) = text.split_at(start);
        let line_start = before.rfind('\n').map_or(0, |at| at + 1);
        let number = before.matches('\n').count() + 1;
        let line_end = rest.find('\n').map_or(text.len(), |at| start + at);
        let shown_start = shown_from(text, line_start, start);
        let shown_end = floor_char_boundary(text, (start + MAX_SHOWN).min(line_end));
        let line = text
            .get(shown_start..shown_end)
            .unwrap_or_default()
            .trim_end_matches('\r');
        let before_line = if shown_start > line_start { CUT } else { "" };
        let after_line = if shown_end < line_end { CUT } else { "" };
        let prefix = text.get(shown_start..start).unwrap_or_default();
        let marked = text.get(start..end.min(shown_end)).unwrap_or_default();

        let margin = " ".repeat(number.to_string().len());
        // Tabs are kept, so that marks are below the marked text.
        let indent: String = prefix
            .split_inclusive('\t')
            .map(|part| match part.strip_suffix('\t') {
                Some(part) => " ".repeat(part.width()) + "\t",
                None => " ".repeat(part.width()),
            })
            .collect();
        let marks = "^".repeat(marked.trim_end().width().max(1));
        let column_text = text.get(line_start..start).unwrap_or_default();
        let column = column_text.chars().count() + 1;
        let cut = " ".repeat(before_line.len());
        let name = self.source_code.name();
        let mut out = format!(
            "error: {}\n{margin}--> {name}:{number}:{column}\n{margin} |\n{number} | \
             {before_line}{line}{after_line}\n{margin} | {cut}{indent}{}\n",
            self.message,
            format!("{marks} {}", self.label).trim_end()
        );
        if let Some(help) = &self.help {
            // Writing to a String does not fail.
            let _ = writeln!(out, "{margin} = help: {help}");
        }
        out
    }
}

/// The errors in a script; there is at least one.
#[derive(Clone, Debug, thiserror::Error)]
#[error("{} error(s) in the script; the first: {}", .0.len(), .0.first().map_or("", |e| e.message()))]
pub struct ScriptErrors(Vec<ScriptError>);

impl ScriptErrors {
    pub(crate) fn new(errors: Vec<ScriptError>) -> Self {
        ScriptErrors(errors)
    }

    /// The errors, in the order in which they were found.
    #[must_use]
    pub fn as_slice(&self) -> &[ScriptError] {
        &self.0
    }
}

/// A text that may quote a long name of the script.
fn shortened(mut text: String) -> String {
    if text.len() > MAX_TEXT {
        text.truncate(floor_char_boundary(&text, MAX_TEXT));
        text.push_str(CUT);
    }
    text
}

/// Where the shown part of a line begins: near the marked text if that is far from the start.
fn shown_from(text: &str, line_start: usize, marked: usize) -> usize {
    if marked - line_start <= MAX_SHOWN {
        line_start
    } else {
        floor_char_boundary(text, marked - MAX_SHOWN / 2)
    }
}

/// The next character boundary at or before an offset.
fn floor_char_boundary(text: &str, offset: usize) -> usize {
    let offset = offset.min(text.len());
    (0..=offset)
        .rev()
        .find(|at| text.is_char_boundary(*at))
        .unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn report(text: &str, offset: usize, len: usize) -> String {
        let error = ScriptError {
            message: "no".to_owned(),
            label: "here".to_owned(),
            help: None,
            span: (offset, len).into(),
            source_code: NamedSource::new("a.kdl", Arc::from(text)),
        };
        error.report()
    }

    #[test]
    fn report_marks_the_range_in_its_line() {
        let expected = "error: no\n --> a.kdl:2:4\n  |\n2 | \tb cd e\n  | \t  ^^ here\n";
        assert_eq!(report("a\n\tb cd e\nf", 5, 2), expected);
        // Wide characters take two columns.
        let expected = "error: no\n --> a.kdl:1:3\n  |\n1 | 世 x\n  |    ^ here\n";
        assert_eq!(report("世 x", 4, 1), expected);
    }

    #[test]
    fn report_shows_a_part_of_a_long_line() {
        let text = format!("{}bad;{}", "a;".repeat(200_000), "b;".repeat(50_000));
        let shown = report(&text, 400_000, 3);
        assert!(shown.len() < 800, "{}", shown.len());
        let lines: Vec<&str> = shown.lines().collect();
        assert_eq!(lines[1], " --> a.kdl:1:400001");
        assert!(lines[3].starts_with("1 | ...a;a;") && lines[3].ends_with("b;..."));
        let marked = lines[4].find('^').unwrap();
        assert_eq!(&lines[3][marked..marked + 4], "bad;");
        // A range as long as the script, and wide characters at the cut.
        let text = "\u{4e16}".repeat(100_000);
        assert!(report(&text, 0, text.len()).len() < 800);
        assert!(report(&text, 150_000, 3).len() < 1_000);
    }

    #[test]
    fn report_accepts_any_range() {
        for offset in 0..9 {
            for len in 0..9 {
                assert!(report("a世\n\r\n", offset, len).starts_with("error: no\n"));
            }
        }
        assert!(report("", 0, 0).contains("1 | \n  | ^ here\n"));
    }
}
