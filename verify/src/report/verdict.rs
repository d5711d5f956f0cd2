//! The verdict: whether a trace is complete.

use crate::finding::{Finding, Outcome, Severity};
use crate::rules::reports_loss;

etl_schema::named! {
    /// The answer to the question whether the trace is complete, from the best to the worst.
    #[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
    #[derive(Default)]
    #[non_exhaustive]
    Verdict {
        /// Everything that was checked is there.
        Complete "complete",
        /// The trace serves its purpose, but there are warnings.
        CompleteWithWarnings "complete_with_warnings",
        /// Something was lost or cut off; what is left does not show whether the trace is complete.
        #[default]
        CannotTell "cannot_tell",
        /// Something is missing or wrong; see the errors among the findings.
        Incomplete "incomplete",
    }
}

impl Verdict {
    /// The verdict of these findings: the worst verdict of any of them.
    pub(super) fn of<'f>(findings: impl IntoIterator<Item = &'f Finding>) -> Self {
        findings.into_iter().map(Verdict::of_one).max().unwrap_or(Verdict::Complete)
    }

    /// The verdict that a finding alone leads to. An undecided warning is at most a warning, while
    /// an undecided error may be one. A loss leaves the questions of all other rules open.
    pub(super) fn of_one(finding: &Finding) -> Self {
        match (finding.severity, finding.outcome) {
            (Severity::Note, _) => Verdict::Complete,
            (Severity::Error, Outcome::Undecided) => Verdict::CannotTell,
            (Severity::Error, _) => Verdict::Incomplete,
            (Severity::Warning, Outcome::Broken) if reports_loss(finding.rule) => {
                Verdict::CannotTell
            }
            (Severity::Warning, _) => Verdict::CompleteWithWarnings,
        }
    }

    /// The verdict for people.
    #[must_use]
    pub fn words(self) -> &'static str {
        match self {
            Verdict::Complete => "complete",
            Verdict::CompleteWithWarnings => "complete with warnings",
            Verdict::CannotTell => "cannot tell",
            Verdict::Incomplete => "incomplete",
        }
    }

    /// Whether a check of the trace passes.
    #[must_use]
    pub fn passes(self) -> bool {
        self <= Verdict::CompleteWithWarnings
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn of_is_decided_by_severity_outcome_and_loss() {
        let finding = |rule, severity, outcome| Finding {
            outcome,
            ..Finding::new(rule, severity, String::new())
        };
        let (other, loss) = ("rundown.missing", "file.events-lost");
        let (broken, open) = (Outcome::Broken, Outcome::Undecided);
        for (rule, severity, outcome, verdict) in [
            (other, Severity::Note, broken, Verdict::Complete),
            (other, Severity::Note, open, Verdict::Complete),
            (loss, Severity::Note, broken, Verdict::Complete),
            (other, Severity::Warning, broken, Verdict::CompleteWithWarnings),
            (other, Severity::Warning, open, Verdict::CompleteWithWarnings),
            (loss, Severity::Warning, broken, Verdict::CannotTell),
            (other, Severity::Error, open, Verdict::CannotTell),
            (other, Severity::Error, broken, Verdict::Incomplete),
            (loss, Severity::Error, broken, Verdict::Incomplete),
        ] {
            let one = finding(rule, severity, outcome);
            assert_eq!(Verdict::of_one(&one), verdict, "{rule} {severity:?} {outcome:?}");
            let note = finding(other, Severity::Note, broken);
            assert_eq!(Verdict::of([&note, &one]), verdict);
        }
        assert_eq!(Verdict::of([]), Verdict::Complete);
    }

    #[test]
    fn passes_only_without_errors_and_losses() {
        let passing: Vec<_> = Verdict::ALL.into_iter().filter(|v| v.passes()).collect();
        assert_eq!(passing, [Verdict::Complete, Verdict::CompleteWithWarnings]);
    }
}
