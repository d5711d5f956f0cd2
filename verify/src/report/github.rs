//! Findings as workflow commands of GitHub Actions.

use super::{Report, Severity};
use crate::finding::Finding;

/// The number of annotations of one kind that GitHub shows for a step.
const MAX_OF_A_KIND: usize = 10;

/// The annotations of all reports: at most as many of each kind as GitHub shows.
pub(super) fn render(reports: &[Report]) -> String {
    let mut annotations = Annotations::default();
    for report in reports {
        annotations.add(report);
    }
    let mut out = String::new();
    write_kind(&mut out, "error", &annotations.errors);
    write_kind(&mut out, "warning", &annotations.warnings);
    write_kind(&mut out, "notice", &annotations.notices);
    out
}

/// The annotations without their kind, by kind.
#[derive(Default)]
struct Annotations {
    errors: Vec<String>,
    warnings: Vec<String>,
    notices: Vec<String>,
}

impl Annotations {
    fn add(&mut self, report: &Report) {
        if let Some(error) = &report.error {
            self.errors.push(annotation(report, "not checked", error));
        }
        let findings: Vec<_> = report.counted().collect();
        let has_error = report.error.is_some()
            || findings
                .iter()
                .any(|finding| finding.severity == Severity::Error);
        // A loss fails the run, though its finding is a warning.
        if !report.verdict.passes() && !has_error {
            let mut reason = report.sentence().to_owned();
            let open = report.open_questions();
            if !open.is_empty() {
                reason.push_str(&format!(" Open: {}.", open.join(", ")));
            }
            self.errors
                .push(annotation(report, report.answer(), &reason));
        }
        for finding in findings {
            let annotation = annotation(report, finding.rule, &text(report, finding));
            match finding.severity {
                Severity::Error => self.errors.push(annotation),
                Severity::Warning => self.warnings.push(annotation),
                Severity::Note => self.notices.push(annotation),
            }
        }
    }
}

/// Writes the annotations of a kind. If there are too many, the last one says how many more.
fn write_kind(out: &mut String, kind: &str, annotations: &[String]) {
    let shown = if annotations.len() > MAX_OF_A_KIND {
        MAX_OF_A_KIND - 1
    } else {
        annotations.len()
    };
    for annotation in annotations.iter().take(shown) {
        out.push_str(&format!("::{kind} {annotation}\n"));
    }
    if annotations.len() > shown {
        let left_out = annotations.len() - shown;
        out.push_str(&format!(
            "::{kind} title=etlverify::{left_out} more of this kind are in the report\n"
        ));
    }
}

/// The properties and the text of a workflow command.
fn annotation(report: &Report, title: &str, text: &str) -> String {
    format!(
        "file={},title={}::{}",
        property(&report.file),
        property(title),
        data(text)
    )
}

/// A finding with its process, its location and why it is undecided. Its remedy is left out: an
/// annotation has room for a sentence.
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
    text.push_str(&format!("; remedy: etlverify --explain {}", finding.rule));
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

    #[test]
    fn render_writes_at_most_ten_annotations_of_a_kind() {
        let mut report = Report::unreadable("app.etl", "");
        report.error = None;
        for index in 0..12 {
            let message = format!("finding {index}");
            report
                .findings
                .push(Finding::new("file.gap", Severity::Warning, message));
        }
        let text = render(&[report]);
        let warnings = text.lines().filter(|line| line.starts_with("::warning "));
        assert_eq!(warnings.count(), MAX_OF_A_KIND, "{text}");
        assert!(
            text.ends_with("::3 more of this kind are in the report\n"),
            "{text}"
        );
    }
}
