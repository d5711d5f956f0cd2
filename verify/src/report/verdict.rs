//! The verdict: whether a trace is complete.

use std::collections::BTreeMap;

use super::ProcessReport;
use crate::finding::{Finding, Outcome, Severity};
use crate::rules::{Subject, reports_loss};

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

/// The verdicts on the processes of a trace.
pub(super) struct ProcessVerdicts {
    /// By the findings about a process, by its index.
    own: BTreeMap<usize, Verdict>,
    /// By the findings about the whole trace, by what their rules look at.
    whole: BTreeMap<Subject, Verdict>,
}

impl ProcessVerdicts {
    pub fn new<'f>(findings: impl IntoIterator<Item = &'f Finding>) -> Self {
        let (mut own, mut whole) = (BTreeMap::new(), BTreeMap::new());
        let worsen = |known: &mut Verdict, finding| *known = Verdict::of_one(finding).max(*known);
        for finding in findings {
            match finding.process {
                Some(index) => worsen(own.entry(index).or_insert(Verdict::Complete), finding),
                None => {
                    let subject = Subject::of(finding.rule);
                    worsen(whole.entry(subject).or_insert(Verdict::Complete), finding);
                }
            }
        }
        ProcessVerdicts { own, whole }
    }

    /// The verdict on a process. What is missing from the whole trace may be missing from this
    /// process or from others.
    pub fn of(&self, process: &ProcessReport) -> Verdict {
        let whole = self.whole.iter().filter(|(subject, _)| may_concern(**subject, process));
        let whole = whole.map(|(_, verdict)| (*verdict).min(Verdict::CannotTell));
        whole.chain(self.own.get(&process.index).copied()).max().unwrap_or(Verdict::Complete)
    }
}

/// Whether a process may have a part in what a rule looks at.
fn may_concern(subject: Subject, process: &ProcessReport) -> bool {
    match subject {
        Subject::ManagedCode | Subject::Rundowns | Subject::ClrStacks => process.is_managed(),
        Subject::Addresses => process.coverage.filled().next().is_some(),
        Subject::KernelStacks => process.coverage.kernel_stacks.stacks > 0,
        Subject::Files | Subject::Enablements | Subject::Parts | Subject::Activities => true,
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
    fn of_process_is_own_findings_and_what_concerns_it() {
        let finding = |rule, severity, process| Finding {
            process,
            ..Finding::new(rule, severity, String::new())
        };
        let of = |findings: &[Finding], index| {
            ProcessVerdicts::new(findings).of(&ProcessReport { index, ..ProcessReport::default() })
        };
        let own = [finding("rundown.missing", Severity::Error, Some(1))];
        assert_eq!([of(&own, 0), of(&own, 1)], [Verdict::Complete, Verdict::Incomplete]);
        let damaged = [finding("file.damaged", Severity::Error, None)];
        assert_eq!(of(&damaged, 0), Verdict::CannotTell);
        let managed = [finding("stacks.without-event", Severity::Warning, None)];
        assert_eq!(of(&managed, 0), Verdict::Complete);
    }

    #[test]
    fn passes_only_without_errors_and_losses() {
        let passing: Vec<_> = Verdict::ALL.into_iter().filter(|v| v.passes()).collect();
        assert_eq!(passing, [Verdict::Complete, Verdict::CompleteWithWarnings]);
    }
}
