//! Findings as workflow commands of GitHub Actions.

use super::{Report, Severity};
use crate::rules::Rule;

pub(super) fn render(report: &Report) -> String {
    let mut out = String::new();
    if let Some(error) = &report.error {
        let file = property(&report.file);
        out.push_str(&format!(
            "::error file={file},title=not checked::{}\n",
            data(error)
        ));
    }
    for f in report.counted() {
        let command = match f.severity {
            Severity::Error => "error",
            Severity::Warning => "warning",
            Severity::Note => "notice",
        };
        let about = f
            .pid
            .map_or(String::new(), |pid| format!("process {pid}: "));
        let location = f
            .location(&report.file)
            .map_or(String::new(), |l| format!(" ({l})"));
        let because = f
            .because
            .as_deref()
            .map_or(String::new(), |b| format!(" (undecided: {b})"));
        let remedy =
            Rule::find(f.rule).map_or(String::new(), |rule| format!("\n{}", rule.remedy_lines()));
        out.push_str(&format!(
            "::{command} file={},title={}::{}\n",
            property(&report.file),
            property(f.rule),
            data(&format!("{about}{}{location}{because}{remedy}", f.message))
        ));
    }
    // A loss fails the run, though its finding is a warning.
    let says_why =
        report.error.is_some() || report.counted().any(|f| f.severity == Severity::Error);
    if !report.verdict.passes() && !says_why {
        let open = report.open_questions().join(", ");
        let open = if open.is_empty() {
            open
        } else {
            format!(" Open: {open}.")
        };
        out.push_str(&format!(
            "::error file={},title={}::{}\n",
            property(&report.file),
            property(report.answer()),
            data(&format!("{}{open}", report.sentence()))
        ));
    }
    out
}

/// The text of a command; line breaks would end it.
fn data(text: &str) -> String {
    text.replace('%', "%25")
        .replace('\r', "%0D")
        .replace('\n', "%0A")
}

/// A property of a command; commas and colons would end it.
fn property(text: &str) -> String {
    data(text).replace(':', "%3A").replace(',', "%2C")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn data_and_property_escape_what_ends_a_command() {
        assert_eq!(data("a\n::error::b\r100%"), "a%0A::error::b%0D100%25");
        assert_eq!(property("C:\\a,b"), "C%3A\\a%2Cb");
    }
}
