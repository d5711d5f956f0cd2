//! The rundown protocol (rules R1 to R7 of the CLR): brackets, and who has none.

use crate::facts::{Facts, Process};
use crate::report::{Finding, Severity};

pub(super) fn judge(facts: &Facts, findings: &mut Vec<Finding>) {
    for process in &facts.processes {
        brackets(facts, process, findings);
        if process.is_managed() {
            coverage(facts, process, findings);
        }
    }
}

fn brackets(facts: &Facts, process: &Process, findings: &mut Vec<Finding>) {
    for bracket in &process.brackets {
        let kind = bracket.kind.name();
        let instance = bracket.instance;
        let (rule, severity, message) = match (bracket.opened, bracket.closed) {
            (Some(_), Some(_)) if bracket.nested => (
                "rundown.nested",
                Severity::Warning,
                format!(
                    "a second {kind} rundown of CLR {instance} began before the first was complete"
                ),
            ),
            (Some(_), Some(_)) => continue,
            (Some(_), None) => (
                "rundown.unclosed",
                Severity::Error,
                format!(
                    "the {kind} rundown of CLR {instance} began and was never complete: the rundown \
                     session was stopped too early, or the process ended, or events were lost"
                ),
            ),
            (None, _) => (
                "rundown.no-init",
                Severity::Warning,
                format!(
                    "the {kind} rundown of CLR {instance} is complete but never began: its first events are missing"
                ),
            ),
        };
        let stamp = bracket.opened.or(bracket.closed);
        findings.push(Finding::new(rule, severity, message).of(facts, process, stamp));
    }
    if process.outside > 0 {
        let message = format!(
            "{} enumerated items stand outside every rundown bracket of their CLR",
            process.outside
        );
        findings.push(Finding::new("rundown.outside", Severity::Warning, message).of(
            facts,
            process,
            process.first_outside,
        ));
    }
}

fn coverage(facts: &Facts, process: &Process, findings: &mut Vec<Finding>) {
    if !process.brackets.is_empty() || process.methods.enumerated > 0 {
        return;
    }
    let (rule, severity, message) = match (facts.rundown_span, process.ended) {
        (None, _) => (
            "rundown.none",
            Severity::Error,
            "the process ran managed code, and the trace holds no rundown at all: run a session on \
             the CLR rundown provider with EndRundown (mask 0x138) before stopping, and merge it",
        ),
        (Some((first, _)), Some(ended)) if ended < first => (
            "rundown.exited",
            Severity::Note,
            "the process ended before the rundown: only methods whose load was seen are known",
        ),
        (Some(_), _) => (
            "rundown.missing",
            Severity::Error,
            "the process ran managed code while others were run down, and has no rundown itself",
        ),
    };
    findings.push(Finding::new(rule, severity, message.to_owned()).of(facts, process, None));
}
