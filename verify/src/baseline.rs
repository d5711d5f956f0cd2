//! Known findings, which users accept so that only new ones count.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::finding::{Finding, Outcome, Severity};
use crate::report::Report;
use crate::{Error, Result};

/// Findings of earlier reports, by trace, rule and process. Messages, times and process ids differ
/// from recording to recording and are not compared.
///
/// ```
/// use etl_verify::{Baseline, Verifier};
///
/// # let trace = etl_schema::testing::snapshot::example();
/// // `trace` has the bytes of an `.etl` file, of which the end is missing.
/// let trace = &trace[..trace.len() - 100];
/// let report = Verifier::new().verify(trace, "app.etl")?;
/// let accepted = Baseline::of(&[report]);
/// let text = accepted.json();
///
/// // The next time, the same findings do not fail the check.
/// let mut report = Verifier::new().verify(trace, "app.etl")?;
/// assert!(!report.verdict.passes());
/// Baseline::parse(&text)?.accept(&mut report);
/// assert!(report.findings.iter().all(|finding| finding.is_known));
/// assert!(report.verdict.passes());
/// # Ok::<(), etl_verify::Error>(())
/// ```
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Baseline {
    entries: BTreeMap<Key, Entry>,
}

/// What two recordings of the same findings have in common.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
struct Key {
    /// The name of the trace without its directory; null for every trace.
    file: Option<String>,
    rule: String,
    /// File name of the process; null for findings about the whole trace.
    process: Option<String>,
}

/// How much is accepted.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
struct Entry {
    severity: Severity,
    /// Whether a finding may be decided: one that was undecided may turn out to be worse.
    decided: bool,
    count: u64,
}

/// The file of a baseline.
#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct File {
    version: u32,
    findings: Vec<Line>,
}

#[derive(Serialize, Deserialize)]
struct Line {
    #[serde(flatten)]
    key: Key,
    #[serde(flatten)]
    entry: Entry,
}

impl Baseline {
    /// Version of the file.
    const VERSION: u32 = 1;

    /// The findings of reports.
    #[must_use]
    pub fn of(reports: &[Report]) -> Self {
        let mut entries: BTreeMap<Key, Entry> = BTreeMap::new();
        for report in reports {
            for finding in &report.findings {
                let own = Entry::of(finding);
                let entry = entries.entry(Key::of(report, finding)).or_insert(own);
                entry.severity = entry.severity.max(own.severity);
                entry.decided |= own.decided;
                entry.count = entry.count.saturating_add(1);
            }
        }
        Baseline { entries }
    }

    /// How many findings it has.
    #[must_use]
    pub fn count(&self) -> u64 {
        self.entries.values().map(|entry| entry.count).sum()
    }

    /// Reads the text that [`Baseline::json`] returned.
    ///
    /// # Errors
    /// When it is no such text.
    pub fn parse(text: &str) -> Result<Self> {
        let file: File = serde_json::from_str(text).map_err(|e| Error::Baseline(e.to_string()))?;
        if file.version != Self::VERSION {
            let reason = format!("version {}, expected {}", file.version, Self::VERSION);
            return Err(Error::Baseline(reason));
        }
        let entries = file
            .findings
            .into_iter()
            .map(|line| (line.key, line.entry))
            .collect();
        Ok(Baseline { entries })
    }

    /// The baseline as indented JSON that ends in a line feed.
    #[must_use]
    pub fn json(&self) -> String {
        let findings = self.entries.iter().map(|(key, &entry)| Line {
            key: key.clone(),
            entry,
        });
        let file = File {
            version: Self::VERSION,
            findings: findings.collect(),
        };
        // Strings and numbers only: JSON can hold all of it.
        serde_json::to_string_pretty(&file).unwrap_or_default() + "\n"
    }

    /// Marks the known findings of a report. They no longer count for its verdicts.
    pub fn accept(&self, report: &mut Report) {
        let mut left = self.entries.clone();
        let mut findings = std::mem::take(&mut report.findings);
        for finding in &mut findings {
            let key = Key::of(report, finding);
            let any_file = Key {
                file: None,
                ..key.clone()
            };
            finding.is_known = [key, any_file].iter().any(|key| match left.get_mut(key) {
                Some(entry) => entry.takes(finding),
                None => false,
            });
        }
        report.findings = findings;
        report.has_baseline = true;
        report.judge();
    }
}

impl Key {
    fn of(report: &Report, finding: &Finding) -> Self {
        let path = etl_format::file_name(&report.file);
        let process = finding.pid.map(|_| finding.process_name.clone());
        Key {
            file: Some(path.to_owned()),
            rule: finding.rule.to_owned(),
            process,
        }
    }
}

impl Entry {
    /// An entry that takes nothing yet, as severe as a finding is without the user's policy: what
    /// is known stays known when the policy becomes stricter.
    fn of(finding: &Finding) -> Self {
        let decided = finding.outcome == Outcome::Broken;
        Entry {
            severity: finding.own_severity,
            decided,
            count: 0,
        }
    }

    /// Takes a finding if it is not worse than those that are known, and not one more.
    fn takes(&mut self, finding: &Finding) -> bool {
        let own = Entry::of(finding);
        let is_worse = own.severity > self.severity || own.decided && !self.decided;
        if is_worse || self.count == 0 {
            return false;
        }
        self.count -= 1;
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::report::Verdict;

    fn report(findings: &[(&'static str, Severity)]) -> Report {
        let findings = findings.iter().map(|&(rule, severity)| {
            Finding::new(rule, severity, format!("{rule} at another time"))
        });
        let mut report = Report::unreadable("traces/app.etl", "");
        (report.error, report.findings) = (None, findings.collect());
        report.judge();
        report
    }

    const RULE: &str = "rundown.missing";

    #[test]
    fn accept_counts_only_new_and_worse_findings() {
        let known = Baseline::of(&[report(&[(RULE, Severity::Warning), (RULE, Severity::Note)])]);
        let known = Baseline::parse(&known.json()).unwrap();
        for (findings, new, verdict) in [
            (&[(RULE, Severity::Warning); 2][..], 0, Verdict::Complete),
            (
                &[(RULE, Severity::Warning); 3],
                1,
                Verdict::CompleteWithWarnings,
            ),
            (&[(RULE, Severity::Error)], 1, Verdict::Incomplete),
            (&[("file.damaged", Severity::Error)], 1, Verdict::Incomplete),
            (&[], 0, Verdict::Complete),
        ] {
            let mut report = report(findings);
            known.accept(&mut report);
            let count = report.findings.iter().filter(|f| !f.is_known).count();
            assert_eq!((count, report.verdict), (new, verdict), "{findings:?}");
        }
    }

    #[test]
    fn accept_compares_the_name_of_the_trace() {
        let text = Baseline::of(&[report(&[(RULE, Severity::Error)])]).json();
        let mut other = report(&[(RULE, Severity::Error)]);
        other.file = "other.etl".to_owned();
        Baseline::parse(&text).unwrap().accept(&mut other);
        assert_eq!(other.verdict, Verdict::Incomplete);
        let any = text.replace("\"app.etl\"", "null");
        Baseline::parse(&any).unwrap().accept(&mut other);
        assert_eq!(other.verdict, Verdict::Complete);
    }

    #[test]
    fn parse_reports_what_is_wrong() {
        for (text, part) in [
            ("no json", "line 1"),
            (
                "{\"version\": 2, \"findings\": []}",
                "version 2, expected 1",
            ),
            ("{\"version\": 1}", "findings"),
            ("{\"version\": 1, \"findings\": [], \"x\": 1}", "x"),
        ] {
            let error = Baseline::parse(text).unwrap_err().to_string();
            assert!(error.contains(part), "{text}: {error}");
        }
    }
}
