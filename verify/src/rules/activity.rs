//! Activities: starts, stops and parents.

use etl_analysis::machine::Counted;

use super::{Check, Rule, plural};
use crate::checks::Balance;
use crate::finding::Severity;

/// A finding for each task in which activities lack an end.
fn unbalanced(check: &mut Check<'_>, missing: fn(&Balance) -> Counted, what: [&str; 2]) {
    let facts = check.facts;
    for ((provider, task), balance) in facts.activities.balances() {
        let counted = missing(&balance);
        if counted.count == 0 {
            continue;
        }
        let message = format!(
            "{} in task {task} of {}; {} started and stopped",
            plural(counted.count, what[0], what[1]),
            facts.provider_name(provider),
            balance.paired
        );
        check
            .find(message)
            .at(counted.first)
            .unless_lost(None, None);
    }
}

pub(super) const NO_STOP: Rule = Rule {
    id: "activity.no-stop",
    statement: "An activity that starts stops, in tasks whose activities do both.",
    severity: Severity::Note,
    source: "activities",
    protocol: &["A1"],
    meaning: "Activities were still running when the recording ended, or their stop events are \
              missing.",
    remedy: "Nothing if they were still running.",
    commands: &[],
    check: |check| {
        let what = ["activity did not stop", "activities did not stop"];
        unbalanced(check, |balance| balance.unstopped, what)
    },
};

pub(super) const NO_START: Rule = Rule {
    id: "activity.no-start",
    statement: "An activity that stops has started, in tasks whose activities do both.",
    severity: Severity::Note,
    source: "activities",
    protocol: &["A1"],
    meaning: "Activities were already running when the recording began, or their start events are \
              missing.",
    remedy: "Nothing if they were already running.",
    commands: &[],
    check: |check| {
        let what = ["activity did not start", "activities did not start"];
        unbalanced(check, |balance| balance.unstarted, what)
    },
};

pub(super) const UNKNOWN_PARENT: Rule = Rule {
    id: "activity.unknown-parent",
    statement: "An activity that another one names as its parent has events.",
    severity: Severity::Note,
    source: "activities",
    protocol: &["A1"],
    meaning: "The provider of the parent activity was not enabled, or its events are missing.",
    remedy: "Enable the provider of the outer activity, too.",
    commands: &[],
    check: unknown_parent,
};

fn unknown_parent(check: &mut Check<'_>) {
    let facts = check.facts;
    let parents = facts.activities.unknown_parents();
    if parents.count == 0 {
        return;
    }
    let message = format!(
        "{} named as the parent of another and without an event",
        plural(parents.count, "activity is", "activities are")
    );
    check
        .find(message)
        .at(parents.first)
        .unless_lost(None, None);
}
