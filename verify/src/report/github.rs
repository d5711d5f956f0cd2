//! Findings as workflow commands of GitHub Actions.

use super::{Report, Severity};
use crate::finding::Finding;
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
        out.push_str(&format!(
            "::{command} file={},title={}::{}\n",
            property(&report.file),
            property(f.rule),
            data(&text(report, f))
        ));
    }
    // A loss fails the run, though its finding is a warning.
    let has_error =
        report.error.is_some() || report.counted().any(|f| f.severity == Severity::Error);
    if !report.verdict.passes() && !has_error {
        let mut reason = report.sentence().to_owned();
        let open = report.open_questions();
        if !open.is_empty() {
            reason.push_str(&format!(" Open: {}.", open.join(", ")));
        }
        out.push_str(&format!(
            "::error file={},title={}::{}\n",
            property(&report.file),
            property(report.answer()),
            data(&reason)
        ));
    }
    out
}

/// A finding with its process, its location, why it is undecided, and its remedy.
fn text(report: &Report, finding: &Finding) -> String {
    let mut text = String::new();
    if let Some(pid) = finding.pid {
        text.push_str(&format!("process {pid}: "));
    }
    text.push_str(&finding.message);
    if let Some(location) = finding.location(&report.file) {
        text.push_str(&format!(" ({location})"));
    }
    if let Some(because) = &finding.because {
        text.push_str(&format!(" (undecided: {because})"));
    }
    if let Some(rule) = Rule::find(finding.rule) {
        text.push_str(&format!("\n{}", report.texts(rule).remedy_lines()));
    }
    text
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
