//! Known findings, which users accept so that only new findings fail a check.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::finding::{Finding, Outcome, Severity};
use crate::report::Report;
use crate::{Error, Result};

/// Findings of earlier reports, by trace, rule and process. Messages, times and process ids differ
/// from recording to recording and are not compared. A finding about more than twice as much as
/// before is new: three times the lost events, for example.
///
/// ```
/// use etl_verify::{Baseline, Verifier};
///
/// # let trace = etl_schema::testing::snapshot::example();
/// // `trace` has the bytes of an `.etl` file without its end.
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

/// The parts of a finding that are equal in two recordings of the same problem.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
struct Key {
    /// The name of the trace without its directory; null for every trace.
    file: Option<String>,
    rule: String,
    /// File name of the process, or what it is if its name is unknown; null for findings about the
    /// whole trace.
    process: Option<String>,
}

/// The findings that are accepted for a key.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
struct Entry {
    severity: Severity,
    /// Whether a decided finding is accepted. An undecided one may turn out to be worse.
    decided: bool,
    count: u64,
    /// The largest amount that one of them is about; 0 if it is not known.
    #[serde(default)]
    amount: u64,
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
                let single = Entry::of(finding);
                let entry = entries.entry(Key::of(report, finding)).or_insert(single);
                entry.severity = entry.severity.max(single.severity);
                entry.decided |= single.decided;
                entry.amount = entry.amount.max(single.amount);
                entry.count = entry.count.saturating_add(1);
            }
        }
        Baseline { entries }
    }

    /// The number of findings.
    #[must_use]
    pub fn count(&self) -> u64 {
        self.entries.values().map(|entry| entry.count).sum()
    }

    /// Reads the text that [`Baseline::json`] returned.
    ///
    /// # Errors
    /// If it is not the JSON of a baseline, or has another version.
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

    /// Marks the known findings of a report, and sets its verdicts by the other findings.
    pub fn accept(&self, report: &mut Report) {
        let mut entries = self.entries.clone();
        let mut findings = std::mem::take(&mut report.findings);
        for finding in &mut findings {
            let key = Key::of(report, finding);
            let any_file = Key {
                file: None,
                ..key.clone()
            };
            finding.is_known = [key, any_file]
                .iter()
                .any(|key| match entries.get_mut(key) {
                    Some(entry) => entry.accept(finding),
                    None => false,
                });
        }
        report.findings = findings;
        report.has_baseline = true;
        report.judge();
    }
}

/// How many times as much as before is still the same problem: recordings of one program differ.
const MAX_GROWTH: u64 = 2;

impl Key {
    fn of(report: &Report, finding: &Finding) -> Self {
        let file_name = etl_format::file_name(&report.file);
        let process = finding.pid.map(|_| finding.process_identity.clone());
        Key {
            file: Some(file_name.to_owned()),
            rule: finding.rule.to_owned(),
            process,
        }
    }
}

impl Entry {
    /// An entry with a count of 0. Its severity is the finding's without the user's policy: a known
    /// finding stays known if the policy becomes stricter.
    fn of(finding: &Finding) -> Self {
        Entry {
            severity: finding.own_severity,
            decided: finding.outcome == Outcome::Broken,
            count: 0,
            amount: finding.amount,
        }
    }

    /// Accepts a finding and lowers the count, if the count is not 0 and the finding is not worse
    /// than the known ones. Returns whether it did.
    fn accept(&mut self, finding: &Finding) -> bool {
        let single = Entry::of(finding);
        let is_worse = single.severity > self.severity || single.decided && !self.decided;
        let is_more = self.amount > 0 && single.amount > MAX_GROWTH.saturating_mul(self.amount);
        if is_worse || is_more || self.count == 0 {
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
    fn accept_compares_amounts() {
        let with_amount = |amount| {
            let mut report = report(&[(RULE, Severity::Warning)]);
            report.findings[0].amount = amount;
            report
        };
        let is_known = |known: u64, found: u64| {
            let baseline = Baseline::of(&[with_amount(known)]);
            let mut report = with_amount(found);
            Baseline::parse(&baseline.json())
                .unwrap()
                .accept(&mut report);
            report.findings[0].is_known
        };
        assert!(
            [(10, 10), (10, 20), (10, 1), (0, 90), (10, 0)]
                .iter()
                .all(|&(known, found)| is_known(known, found))
        );
        assert!(
            [(10, 21), (10, 30), (1, 3)]
                .iter()
                .all(|&(known, found)| !is_known(known, found))
        );
    }

    #[test]
    fn accept_tells_processes_without_a_name_apart() {
        let of = |identity: &str| {
            let mut report = report(&[(RULE, Severity::Warning)]);
            report.findings[0].pid = Some(etl_format::ProcessId::new(7));
            identity.clone_into(&mut report.findings[0].process_identity);
            report
        };
        let baseline = Baseline::of(&[of("core Shop.dll")]);
        for (identity, is_known) in [("core Shop.dll", true), ("core Front.dll", false)] {
            let mut report = of(identity);
            baseline.accept(&mut report);
            assert_eq!(report.findings[0].is_known, is_known, "{identity}");
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
