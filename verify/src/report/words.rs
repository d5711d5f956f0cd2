//! Verdicts, shares and times in words, for text and HTML.

use std::collections::BTreeSet;

use etl_analysis::address::Tally;
use etl_format::FileTime;

use super::{EnabledReport, Report, Severity, Verdict};
use crate::checks::enablement::EnablementSource;
use crate::finding::Outcome;
use crate::gates::percent;

/// The answer if a file could not be read.
pub(super) const NOT_CHECKED: &str = "not checked";

impl Report {
    /// The findings of a verdict: `1 error, 2 warnings, 3 known`; empty if there are none.
    pub(super) fn counts(&self) -> String {
        let severities = [
            (Severity::Error, "error", "errors"),
            (Severity::Warning, "warning", "warnings"),
            (Severity::Note, "note", "notes"),
        ];
        let mut parts = Vec::new();
        for (severity, one, many) in severities {
            let decided = self
                .counted()
                .filter(|f| f.severity == severity && f.is_decided());
            match decided.count() {
                0 => {}
                1 => parts.push(format!("1 {one}")),
                count => parts.push(format!("{count} {many}")),
            }
        }
        let undecided = self.counted().filter(|f| !f.is_decided()).count();
        if undecided > 0 {
            parts.push(format!("{undecided} undecided"));
        }
        if self.known() > 0 {
            parts.push(format!("{} known", self.known()));
        }
        parts.join(", ")
    }

    /// The verdict for people, or that there is none.
    pub(super) fn answer(&self) -> &'static str {
        if self.error.is_some() {
            NOT_CHECKED
        } else {
            self.verdict.words()
        }
    }

    /// The verdict as a sentence.
    pub(super) fn sentence(&self) -> &'static str {
        let mut findings = self.findings.iter();
        match self.verdict {
            Verdict::Complete if findings.any(|f| f.is_known && f.severity > Severity::Note) => {
                "What is missing or wrong is known: the baseline accepts it."
            }
            Verdict::Complete => "Everything that was checked is there.",
            Verdict::CompleteWithWarnings => {
                "The trace can be used; the warnings say what is odd or missing in it."
            }
            Verdict::Incomplete => "Something is missing from the trace, or wrong in it.",
            Verdict::CannotTell => {
                "Something was lost or cut off: what is left does not show whether the trace is \
                 complete."
            }
        }
    }

    /// The rules because of which the verdict is "cannot tell", each once: rules about losses, and
    /// rules that lost events might break.
    pub(super) fn open_questions(&self) -> Vec<&'static str> {
        let mut out = Vec::new();
        for (finding, verdict) in self.verdicts() {
            if verdict == Verdict::CannotTell && !out.contains(&finding.rule) {
                out.push(finding.rule);
            }
        }
        out
    }

    /// The number of rules for each outcome: `40 hold, 3 with notes, 2 broken`.
    pub(super) fn outcomes(&self) -> String {
        let serious = self.findings.iter().filter(|f| f.severity > Severity::Note);
        let serious: BTreeSet<_> = serious.map(|f| f.rule).collect();
        let broken = self
            .rules
            .iter()
            .filter(|rule| rule.outcome == Outcome::Broken && serious.contains(rule.rule))
            .count();
        let counts = [
            (self.count(Outcome::Holds), "hold"),
            (
                self.count(Outcome::Broken).saturating_sub(broken),
                "with notes",
            ),
            (broken, "broken"),
            (self.count(Outcome::Undecided), "undecided"),
            (self.count(Outcome::NotApplicable), "not applicable"),
        ];
        let used = counts.into_iter().filter(|(count, _)| *count > 0);
        used.map(|(count, name)| format!("{count} {name}"))
            .collect::<Vec<_>>()
            .join(", ")
    }
}

/// The share of addresses that resolve; `-` if no session recorded what could name any.
pub(super) fn resolved(t: &Tally) -> String {
    if t.recorded() == 0 && t.frames > 0 {
        return "-".to_owned();
    }
    percent(t.resolved(), t.recorded())
}

/// Microseconds as milliseconds or seconds.
pub(super) fn duration(us: i64) -> String {
    if us.unsigned_abs() < 1_000_000 {
        format!("{:.3} ms", us as f64 / 1e3)
    } else {
        format!("{:.3} s", us as f64 / 1e6)
    }
}

/// The time of day, to the millisecond.
pub(super) fn time_of_day(time: FileTime) -> String {
    let text = time.to_string();
    let (_, time) = text.split_once('T').unwrap_or_default();
    let (seconds, fraction) = time.split_once('.').unwrap_or_default();
    let thousandths = fraction.get(..3).unwrap_or_default();
    format!("{seconds}.{thousandths}Z")
}

impl EnabledReport {
    /// How the enablement is known, and its match-all mask.
    pub(super) fn knowledge(&self) -> String {
        let source = match &self.time {
            Some(time) if self.source == EnablementSource::Recorded => {
                format!("recorded at {}", time_of_day(*time))
            }
            _ => self.source.name().to_owned(),
        };
        match &self.match_all {
            Some(all) => format!("{source}, and all of {all}"),
            None => source,
        }
    }
}

/// What `inferred` means.
pub(super) const INFERRED: &str =
    "Inferred: the smallest mask and level that explain the recorded events.";

#[cfg(test)]
mod tests {
    use super::*;
    use crate::finding::Finding;

    #[test]
    fn duration_and_time_of_day_have_milliseconds() {
        assert_eq!(duration(1_202), "1.202 ms");
        assert_eq!(duration(12_581_000), "12.581 s");
        assert_eq!(
            time_of_day(FileTime::new(132_404_548_311_917_366)),
            "00:07:11.191Z"
        );
    }

    #[test]
    fn counts_lists_severities_and_undecided_findings() {
        let finding = |severity, outcome| Finding {
            outcome,
            ..Finding::new("file.damaged", severity, String::new())
        };
        let mut report = Report {
            verdict: Verdict::Complete,
            ..Report::default()
        };
        assert_eq!(report.counts(), "");
        report
            .findings
            .push(finding(Severity::Note, Outcome::Broken));
        assert_eq!(report.counts(), "1 note");
        report.verdict = Verdict::Incomplete;
        report
            .findings
            .push(finding(Severity::Error, Outcome::Broken));
        report
            .findings
            .push(finding(Severity::Error, Outcome::Undecided));
        assert_eq!(report.counts(), "1 error, 1 note, 1 undecided");
    }
}
