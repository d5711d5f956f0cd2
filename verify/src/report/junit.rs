//! Findings as JUnit XML, which build servers show as test results.

use std::fmt::{self, Write};

use askama::Template;

use super::{Report, Severity};
use crate::finding::{Finding, Outcome};
use crate::rules::{RULES, Rule};

#[derive(Template)]
#[template(path = "junit.xml", escape = "none")]
struct Document<'a> {
    reports: &'a [Report],
}

pub(super) fn render(reports: &[Report]) -> String {
    Document { reports }.render().unwrap_or_default()
}

/// A rule, and the findings that fail it or leave it undecided.
struct Case<'a> {
    rule: &'static Rule,
    findings: Vec<&'a Finding>,
    outcome: Outcome,
    /// Why it was not decided.
    skipped: Option<String>,
}

impl<'a> Case<'a> {
    /// A rule fails with a finding above a note; without any finding of its own, it may be open.
    fn new(report: &'a Report, rule: &'static Rule) -> Self {
        let own = report.counted().filter(|f| f.rule == rule.id);
        let (mut decided, mut open): (Vec<_>, Vec<_>) = own.partition(|f| f.is_decided());
        let noted = !decided.is_empty();
        decided.retain(|f| f.severity > Severity::Note);
        open.truncate(usize::from(!noted));
        let (outcome, findings) = match (decided.is_empty(), open.is_empty()) {
            (false, _) => (Outcome::Broken, decided),
            (true, false) => (Outcome::Undecided, open),
            (true, true) => (Outcome::Holds, Vec::new()),
        };
        let own = report.rules.iter().find(|own| own.rule == rule.id);
        let not_applicable = own.filter(|own| own.outcome == Outcome::NotApplicable);
        let (outcome, skipped) = match (not_applicable, outcome) {
            (Some(own), _) => (Outcome::NotApplicable, own.because.clone()),
            (None, Outcome::Undecided) => {
                (outcome, findings.iter().find_map(|f| f.because.clone()))
            }
            (None, _) => (outcome, None),
        };
        let words = outcome.words();
        let skipped = skipped.map(|because| format!("{words}: {because}"));
        Case { rule, findings, outcome, skipped }
    }

    fn severity(&self) -> &'static str {
        self.findings.iter().map(|f| f.severity).max().map_or("", Severity::name)
    }
}

/// A case for each rule; none if the file could not be read.
fn cases(report: &Report) -> Vec<Case<'_>> {
    let rules = if report.error.is_none() { RULES } else { &[] };
    rules.iter().map(|rule| Case::new(report, rule)).collect()
}

/// The start of the trace, to the second. The schema requires a time even where none is known.
fn timestamp(report: &Report) -> &str {
    let start = report.start_time.split('.').next().unwrap_or_default();
    if start.is_empty() { "1970-01-01T00:00:00" } else { start }
}

/// The number of test cases: rules and processes, or the attempt to read the file.
fn tests(report: &Report, cases: &[Case<'_>]) -> usize {
    cases.len() + report.processes.len() + report.error.iter().count()
}

/// The number of test cases that fail: rules, and processes.
fn failures(report: &Report, cases: &[Case<'_>]) -> usize {
    let rules = cases.iter().filter(|case| case.outcome == Outcome::Broken).count();
    rules + report.processes.iter().filter(|p| !p.verdict.passes()).count()
}

fn skipped(cases: &[Case<'_>]) -> usize {
    cases.iter().filter(|case| case.skipped.is_some()).count()
}

fn file(report: &Report) -> Xml<'_> {
    Xml(if report.file.is_empty() { "trace" } else { &report.file })
}

/// Text in XML: markup is escaped, characters that XML cannot hold are replaced.
#[derive(Clone, Copy)]
struct Xml<'a>(&'a str);

impl fmt::Display for Xml<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for c in self.0.chars() {
            match c {
                '<' => f.write_str("&lt;")?,
                '>' => f.write_str("&gt;")?,
                '&' => f.write_str("&amp;")?,
                '"' => f.write_str("&quot;")?,
                '\t' | '\n' => f.write_char(c)?,
                c if c.is_control() || matches!(c, '\u{fffe}' | '\u{ffff}') => {
                    f.write_char(char::REPLACEMENT_CHARACTER)?;
                }
                c => f.write_char(c)?,
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn xml_escapes_markup_and_control_characters() {
        assert_eq!(Xml("a<b>&\"\x1b\0").to_string(), "a&lt;b&gt;&amp;&quot;\u{fffd}\u{fffd}");
    }
}
