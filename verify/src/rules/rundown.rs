//! The rundown protocol (rules R1 to R7 of the CLR): brackets, and who has none.

use crate::facts::{Facts, Process};
use crate::report::Finding;

use super::catalogue::{
    RUNDOWN_EXITED, RUNDOWN_MISSING, RUNDOWN_NESTED, RUNDOWN_NO_INIT, RUNDOWN_NONE,
    RUNDOWN_OUTSIDE, RUNDOWN_UNCLOSED,
};

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
        let (rule, message) = match (bracket.opened, bracket.closed) {
            (Some(_), Some(_)) if bracket.nested => (
                &RUNDOWN_NESTED,
                format!(
                    "a second {kind} rundown of CLR {instance} began before the first was complete"
                ),
            ),
            (Some(_), Some(_)) => continue,
            (Some(_), None) => (
                &RUNDOWN_UNCLOSED,
                format!(
                    "the {kind} rundown of CLR {instance} began and was never complete: the rundown \
                     session was stopped too early, or the process ended, or events were lost"
                ),
            ),
            (None, _) => (
                &RUNDOWN_NO_INIT,
                format!(
                    "the {kind} rundown of CLR {instance} is complete but never began: its first events are missing"
                ),
            ),
        };
        let stamp = bracket.opened.or(bracket.closed);
        findings.push(Finding::new(rule, message).of(facts, process, stamp));
    }
    if process.outside > 0 {
        let message = format!(
            "{} enumerated items stand outside every rundown bracket of their CLR",
            process.outside
        );
        findings.push(Finding::new(&RUNDOWN_OUTSIDE, message).of(
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
    let (rule, message) = match (facts.rundown_span, process.ended) {
        (None, _) => (
            &RUNDOWN_NONE,
            "the process ran managed code, and the trace holds no rundown at all: run a session on \
             the CLR rundown provider with EndRundown (mask 0x138) before stopping, and merge it",
        ),
        (Some((first, _)), Some(ended)) if ended < first => (
            &RUNDOWN_EXITED,
            "the process ended before the rundown: only methods whose load was seen are known",
        ),
        (Some(_), _) => (
            &RUNDOWN_MISSING,
            "the process ran managed code while others were run down, and has no rundown itself",
        ),
    };
    findings.push(Finding::new(rule, message.to_owned()).of(facts, process, None));
}
