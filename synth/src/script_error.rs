//! Errors of a script, with their location.

use core::fmt::Write as _;
use std::sync::Arc;

use miette::{NamedSource, SourceSpan};
use unicode_width::UnicodeWidthStr as _;

use crate::model::ScriptLocation;

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
            message,
            label,
            help,
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
        let line = text
            .get(line_start..line_end)
            .unwrap_or_default()
            .trim_end_matches('\r');
        let prefix = text.get(line_start..start).unwrap_or_default();
        let marked = text.get(start..end.min(line_end)).unwrap_or_default();

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
        let column = prefix.chars().count() + 1;
        let name = self.source_code.name();
        let mut out = format!(
            "error: {}\n{margin}--> {name}:{number}:{column}\n{margin} |\n{number} | {line}\n\
             {margin} | {indent}{}\n",
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
    fn report_accepts_any_range() {
        for offset in 0..9 {
            for len in 0..9 {
                assert!(report("a世\n\r\n", offset, len).starts_with("error: no\n"));
            }
        }
        assert!(report("", 0, 0).contains("1 | \n  | ^ here\n"));
    }
}
