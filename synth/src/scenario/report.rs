//! A script's error as text, with the line that it is about.

use core::fmt::Write as _;

use unicode_width::UnicodeWidthStr;

use super::Mistake;

impl Mistake {
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
        let start = floor_char_boundary(text, self.at.offset());
        let end = floor_char_boundary(text, self.at.offset().saturating_add(self.at.len()));
        let (before, rest) = text.split_at(start);
        let line_start = before.rfind('\n').map_or(0, |at| at + 1);
        let number = before.matches('\n').count() + 1;
        let line_end = rest.find('\n').map_or(text.len(), |at| start + at);
        let line = text.get(line_start..line_end).unwrap_or_default().trim_end_matches('\r');
        let prefix = text.get(line_start..start).unwrap_or_default();
        let marked = text.get(start..end.min(line_end)).unwrap_or_default();

        let margin = " ".repeat(number.to_string().len());
        // Tabs stay, so that marks stand below what they mark.
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

/// The next character boundary at or before an offset.
fn floor_char_boundary(text: &str, offset: usize) -> usize {
    let offset = offset.min(text.len());
    (0..=offset).rev().find(|at| text.is_char_boundary(*at)).unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use miette::NamedSource;

    use super::*;

    fn report(text: &str, offset: usize, len: usize) -> String {
        let mistake = Mistake {
            message: "no".to_owned(),
            label: "here".to_owned(),
            help: None,
            at: (offset, len).into(),
            source_code: NamedSource::new("a.kdl", Arc::from(text)),
        };
        mistake.report()
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
