//! The verdict: whether a trace is complete.

use std::collections::BTreeMap;

use etl_analysis::ProcessIndex;
use etl_analysis::loss::LossKind;

use super::{LossReport, ProcessReport};
use crate::finding::{Finding, Outcome, Severity};
use crate::rules::{Subject, loss_of, reports_loss};

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
    ///
    /// ```
    /// use etl_verify::Verdict;
    ///
    /// assert!(Verdict::CompleteWithWarnings.passes());
    /// assert!(!Verdict::CannotTell.passes());
    /// ```
    #[must_use]
    pub fn passes(self) -> bool {
        self <= Verdict::CompleteWithWarnings
    }
}

/// The part of a trace that a finding about the whole trace concerns.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Scope {
    subject: Subject,
    loss: Option<LossKind>,
}

impl Scope {
    /// The scope of a rule's findings.
    pub fn of(rule: &str) -> Self {
        Scope {
            subject: Subject::of(rule),
            loss: loss_of(rule),
        }
    }

    /// Whether it may concern a process: the process has what the rule checks, and it lived when
    /// something was lost.
    pub fn may_concern(self, process: &ProcessReport, losses: &LossSpans) -> bool {
        let has_subject = match self.subject {
            Subject::ManagedCode | Subject::Rundowns | Subject::ClrStacks => process.is_managed(),
            Subject::Addresses => process.coverage.filled().next().is_some(),
            Subject::KernelStacks => process.coverage.kernel_stacks.stacks > 0,
            Subject::Files
            | Subject::Enablements
            | Subject::Parts
            | Subject::Kernel
            | Subject::Activities => true,
        };
        has_subject
            && self
                .loss
                .is_none_or(|kind| losses.may_be_in(kind, process.span_us))
    }
}

/// The times of losses, by kind: spans in their order, with a gap between each two.
pub(super) struct LossSpans(BTreeMap<LossKind, Vec<[i64; 2]>>);

impl LossSpans {
    pub fn new(losses: &[LossReport]) -> Self {
        let mut sorted: Vec<_> = losses
            .iter()
            .map(|loss| (loss.what, loss.span_us))
            .collect();
        sorted.sort_unstable();
        let mut joined: BTreeMap<LossKind, Vec<[i64; 2]>> = BTreeMap::new();
        for (kind, span) in sorted {
            let spans = joined.entry(kind).or_default();
            match spans.last_mut() {
                Some(last) if span[0] <= last[1] => last[1] = span[1].max(last[1]),
                _ => spans.push(span),
            }
        }
        LossSpans(joined)
    }

    /// Whether a loss of a kind may have happened within a span. If no loss of the kind has a time,
    /// it may have happened at any time.
    fn may_be_in(&self, kind: LossKind, span: [i64; 2]) -> bool {
        let Some(losses) = self.0.get(&kind) else {
            return true;
        };
        let [from, to] = span;
        let first = losses.partition_point(|[_, end]| *end < from);
        losses.get(first).is_some_and(|[start, _]| *start <= to)
    }
}

/// The verdicts on the processes of a trace.
pub(super) struct ProcessVerdicts<'r> {
    /// The verdict by the findings about a process, for its index.
    by_process: BTreeMap<ProcessIndex, Verdict>,
    /// The verdict by the findings about the whole trace, for each scope.
    by_scope: BTreeMap<Scope, Verdict>,
    losses: &'r LossSpans,
}

impl<'r> ProcessVerdicts<'r> {
    pub fn new<'f>(findings: impl IntoIterator<Item = &'f Finding>, losses: &'r LossSpans) -> Self {
        let mut by_process = BTreeMap::new();
        let mut by_scope = BTreeMap::new();
        for finding in findings {
            let verdict = match finding.process {
                Some(index) => by_process.entry(index).or_insert(Verdict::Complete),
                None => by_scope
                    .entry(Scope::of(finding.rule))
                    .or_insert(Verdict::Complete),
            };
            *verdict = Verdict::of_one(finding).max(*verdict);
        }
        ProcessVerdicts {
            by_process,
            by_scope,
            losses,
        }
    }

    /// The verdict on a process. Events that are missing from the whole trace may be missing from
    /// this process or from others.
    pub fn of(&self, process: &ProcessReport) -> Verdict {
        let mut verdict = match self.by_process.get(&process.index) {
            Some(verdict) => *verdict,
            None => Verdict::Complete,
        };
        for (scope, of_scope) in &self.by_scope {
            if scope.may_concern(process, self.losses) {
                verdict = verdict.max((*of_scope).min(Verdict::CannotTell));
            }
        }
        verdict
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn of_one_is_decided_by_severity_outcome_and_loss() {
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
            (
                other,
                Severity::Warning,
                broken,
                Verdict::CompleteWithWarnings,
            ),
            (
                other,
                Severity::Warning,
                open,
                Verdict::CompleteWithWarnings,
            ),
            (loss, Severity::Warning, broken, Verdict::CannotTell),
            (other, Severity::Error, open, Verdict::CannotTell),
            (other, Severity::Error, broken, Verdict::Incomplete),
            (loss, Severity::Error, broken, Verdict::Incomplete),
        ] {
            let one = finding(rule, severity, outcome);
            assert_eq!(
                Verdict::of_one(&one),
                verdict,
                "{rule} {severity:?} {outcome:?}"
            );
        }
    }

    #[test]
    fn of_process_is_own_findings_and_what_concerns_it() {
        let finding = |rule, severity, process| Finding {
            process,
            ..Finding::new(rule, severity, String::new())
        };
        let of = |findings: &[Finding], index| {
            let process = ProcessReport {
                index: ProcessIndex::new(index),
                ..ProcessReport::default()
            };
            ProcessVerdicts::new(findings, &LossSpans::new(&[])).of(&process)
        };
        let own = [finding(
            "rundown.missing",
            Severity::Error,
            Some(ProcessIndex::new(1)),
        )];
        assert_eq!(
            [of(&own, 0), of(&own, 1)],
            [Verdict::Complete, Verdict::Incomplete]
        );
        let damaged = [finding("file.damaged", Severity::Error, None)];
        assert_eq!(of(&damaged, 0), Verdict::CannotTell);
        let managed = [finding("stacks.without-event", Severity::Warning, None)];
        assert_eq!(of(&managed, 0), Verdict::Complete);
    }

    #[test]
    fn of_process_counts_losses_while_it_lived() {
        let finding = Finding::new("file.events-lost", Severity::Warning, String::new());
        let loss = |span_us| LossReport {
            what: LossKind::EventsLost,
            message: String::new(),
            processor: None,
            from: None,
            to: None,
            span_us,
            file: String::new(),
        };
        let of = |losses: &[LossReport], span_us| {
            let process = ProcessReport {
                span_us,
                ..ProcessReport::default()
            };
            ProcessVerdicts::new([&finding], &LossSpans::new(losses)).of(&process)
        };
        let early = [loss([0, 10])];
        assert_eq!(of(&early, [11, 90]), Verdict::Complete);
        assert_eq!(of(&early, [10, 90]), Verdict::CannotTell);
        assert_eq!(
            of(&[loss([0, 10]), loss([80, 99])], [11, 90]),
            Verdict::CannotTell
        );
        assert_eq!(of(&[loss([80, 99])], [11, 79]), Verdict::Complete);
        assert_eq!(of(&[], [11, 79]), Verdict::CannotTell, "at an unknown time");
    }

    #[test]
    fn passes_only_without_errors_and_losses() {
        let passing: Vec<_> = Verdict::ALL.into_iter().filter(|v| v.passes()).collect();
        assert_eq!(passing, [Verdict::Complete, Verdict::CompleteWithWarnings]);
    }
}
