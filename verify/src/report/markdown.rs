//! Findings as Markdown, for the summary of a job and comments on a change.

use std::collections::BTreeSet;

use super::Report;
use crate::finding::Finding;
use crate::rules::Rule;

/// The number of findings that are listed of a trace. A summary of GitHub has at most 1 MiB.
const MAX_FINDINGS: usize = 50;

/// The number of traces whose findings are listed.
const MAX_TRACES: usize = 50;

pub(super) fn render(reports: &[Report]) -> String {
    let mut out = String::from("| trace | verdict | findings |\n|---|---|---|\n");
    for report in reports {
        out.push_str(&format!(
            "| {} | {} | {} |\n",
            cell(&report.file),
            report.answer(),
            cell(&summary(report))
        ));
    }
    let with_findings: Vec<_> = reports
        .iter()
        .filter(|report| report.counted().next().is_some())
        .collect();
    for report in with_findings.iter().take(MAX_TRACES) {
        write_findings(&mut out, report);
    }
    if with_findings.len() > MAX_TRACES {
        let left_out = with_findings.len() - MAX_TRACES;
        out.push_str(&format!("\n{left_out} more traces have findings.\n"));
    }
    write_remedies(&mut out, with_findings.iter().take(MAX_TRACES).copied());
    out
}

/// The number of findings by severity, or why the trace was not read.
fn summary(report: &Report) -> String {
    match &report.error {
        Some(error) => error.clone(),
        None if report.counts().is_empty() => "none".to_owned(),
        None => report.counts(),
    }
}

/// The findings of a trace as a table under its name.
fn write_findings(out: &mut String, report: &Report) {
    let findings: Vec<_> = report.counted().collect();
    out.push_str(&format!("\n### {}\n\n", inline(&report.file)));
    out.push_str("| severity | rule | process | finding |\n|---|---|---|---|\n");
    for finding in findings.iter().take(MAX_FINDINGS) {
        out.push_str(&row(report, finding));
    }
    if findings.len() > MAX_FINDINGS {
        let left_out = findings.len() - MAX_FINDINGS;
        out.push_str(&format!("\n{left_out} more findings are in the report.\n"));
    }
}

fn row(report: &Report, finding: &Finding) -> String {
    let process = match finding.pid {
        Some(pid) => format!("{} {pid}", finding.process_name),
        None => String::new(),
    };
    let mut text = finding.message.clone();
    if let Some(location) = finding.location(&report.file) {
        text.push_str(&format!(" ({location})"));
    }
    if let Some(because) = &finding.because {
        text.push_str(&format!(" (undecided: {because})"));
    }
    format!(
        "| {} | `{}` | {} | {} |\n",
        finding.severity.name(),
        finding.rule,
        cell(process.trim_start()),
        cell(&text)
    )
}

/// The remedy of each rule that has findings, folded.
fn write_remedies<'r>(out: &mut String, reports: impl Iterator<Item = &'r Report>) {
    let mut rules = BTreeSet::new();
    for report in reports {
        rules.extend(
            report
                .counted()
                .map(|finding| (finding.rule, report.origin)),
        );
    }
    for (id, origin) in rules {
        if let Some(rule) = Rule::find(id) {
            out.push_str(&format!(
                "\n<details><summary>Remedy for <code>{id}</code></summary>\n\n```text\n{}\n```\n\n</details>\n",
                rule.texts(origin).remedy_lines().trim_end()
            ));
        }
    }
}

/// Text in a cell of a table.
fn cell(text: &str) -> String {
    inline(text).replace('|', "\\|")
}

/// Text on a line: markup means nothing in it.
fn inline(text: &str) -> String {
    let mut out = String::new();
    for c in text.chars() {
        match c {
            '&' => out.push_str("&amp;"),
            '<' => out.push_str("&lt;"),
            '>' => out.push_str("&gt;"),
            '\\' | '`' | '*' | '_' | '[' | ']' | '#' | '@' | '!' | '~' | '$' => {
                out.push('\\');
                out.push(c);
            }
            c if c.is_control() => out.push(' '),
            c => out.push(c),
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::finding::Severity;

    #[test]
    fn render_lists_verdicts_findings_and_remedies() {
        let bad = Report::unreadable("notes|a.etl", "not a trace");
        let mut odd = Report::unreadable("app.etl", "");
        odd.error = None;
        odd.findings = vec![Finding::new(
            "file.damaged",
            Severity::Error,
            "<b> at *4*".into(),
        )];
        odd.judge();
        let text = render(&[bad, odd]);
        assert!(text.contains("| notes\\|a.etl | "), "{text}");
        assert!(text.contains("| not a trace |"), "{text}");
        assert!(
            text.contains("| error | `file.damaged` |  | &lt;b&gt; at \\*4\\* |"),
            "{text}"
        );
        assert_eq!(text.matches("<details>").count(), 1, "{text}");
    }

    #[test]
    fn render_lists_at_most_50_findings_of_a_trace() {
        let mut report = Report::unreadable("app.etl", "");
        report.error = None;
        for _ in 0..60 {
            report
                .findings
                .push(Finding::new("file.gap", Severity::Note, "a note".into()));
        }
        let text = render(&[report]);
        assert_eq!(text.matches("| note | `file.gap` |").count(), MAX_FINDINGS);
        assert!(
            text.contains("10 more findings are in the report"),
            "{text}"
        );
    }
}
