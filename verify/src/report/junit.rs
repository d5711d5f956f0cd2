//! Findings as JUnit XML, which build servers show as test results.

use std::fmt::{self, Write};

use askama::Template;
use etl_format::FileTime;

use super::{Report, Severity, Verdict};
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

/// A rule, and the findings that fail it.
struct Case<'a> {
    rule: &'static Rule,
    /// What to do about them.
    remedy: String,
    /// Findings with which the trace does not pass.
    failures: Vec<&'a Finding>,
    /// Why it was not decided, if it does not fail.
    skipped: Option<String>,
}

impl<'a> Case<'a> {
    fn new(report: &Report, rule: &'static Rule, verdicts: &[(&'a Finding, Verdict)]) -> Self {
        let mut findings = Vec::new();
        let mut failures = Vec::new();
        for &(finding, verdict) in verdicts {
            if finding.rule == rule.id {
                findings.push(finding);
                if !verdict.passes() {
                    failures.push(finding);
                }
            }
        }
        let skipped = if !failures.is_empty() {
            None
        } else if findings.is_empty() {
            not_applicable(report, rule)
        } else {
            undecided(&findings)
        };
        Case {
            rule,
            remedy: report.texts(rule).remedy_lines(),
            failures,
            skipped,
        }
    }

    /// The name of the highest severity.
    fn severity(&self) -> &'static str {
        self.failures
            .iter()
            .map(|f| f.severity)
            .max()
            .map_or("", Severity::name)
    }
}

/// Why findings are undecided, if all are.
fn undecided(findings: &[&Finding]) -> Option<String> {
    if findings.iter().any(|finding| finding.is_decided()) {
        return None;
    }
    let because = findings.iter().find_map(|f| f.because.as_deref())?;
    Some(format!("undecided: {because}"))
}

/// Why a rule is not applicable.
fn not_applicable(report: &Report, rule: &Rule) -> Option<String> {
    let outcome = report
        .rules
        .iter()
        .find(|outcome| outcome.rule == rule.id)?;
    if outcome.outcome != Outcome::NotApplicable {
        return None;
    }
    let because = outcome.because.as_deref().unwrap_or_default();
    Some(format!("not applicable: {because}"))
}

/// A case for each rule; none if the file could not be read.
fn cases(report: &Report) -> Vec<Case<'_>> {
    let rules = if report.error.is_none() { RULES } else { &[] };
    let verdicts: Vec<_> = report.verdicts().collect();
    rules
        .iter()
        .map(|rule| Case::new(report, rule, &verdicts))
        .collect()
}

/// The start of the trace, to the second. The schema requires a time even if none is known.
fn timestamp(report: &Report) -> String {
    let start = report
        .start_time
        .unwrap_or(FileTime::UNIX_EPOCH)
        .to_string();
    match start.split_once('.') {
        Some((second, _)) => second.to_owned(),
        None => start,
    }
}

/// The number of test cases: rules and processes, or the attempt to read the file.
fn tests(report: &Report, cases: &[Case<'_>]) -> usize {
    cases.len() + report.judged().len() + report.error.iter().count()
}

/// The number of test cases that fail: rules, and processes.
fn failures(report: &Report, cases: &[Case<'_>]) -> usize {
    let rules = cases.iter().filter(|case| !case.failures.is_empty());
    let judged = report.judged();
    let processes = judged.iter().filter(|process| !process.verdict.passes());
    rules.count() + processes.count()
}

fn skipped(cases: &[Case<'_>]) -> usize {
    cases.iter().filter(|case| case.skipped.is_some()).count()
}

/// Findings that do not fail a test, and are not only notes.
fn warnings(report: &Report) -> impl Iterator<Item = &Finding> {
    let passing = report.verdicts().filter(|(_, verdict)| verdict.passes());
    passing
        .map(|(finding, _)| finding)
        .filter(|f| f.severity > Severity::Note)
}

fn file(report: &Report) -> Xml<'_> {
    Xml(if report.file.is_empty() {
        "trace"
    } else {
        &report.file
    })
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
        assert_eq!(
            Xml("a<b>&\"\x1b\0").to_string(),
            "a&lt;b&gt;&amp;&quot;\u{fffd}\u{fffd}"
        );
    }
}
