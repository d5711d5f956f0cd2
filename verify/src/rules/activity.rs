//! Activities: starts, stops and parents.

use etl_analysis::machine::Counted;

use super::{Check, Rule, plural};
use crate::checks::Balance;
use crate::finding::Severity;

/// Adds a finding for each task with activities that do not start or do not stop.
fn unbalanced(
    check: &mut Check<'_>,
    missing: fn(&Balance) -> Counted,
    what: fn(count: u64) -> String,
) {
    let facts = check.facts;
    for (task, balance) in facts.activities.balances() {
        let counted = missing(&balance);
        if counted.count == 0 {
            continue;
        }
        let message = format!(
            "{} in task {} of {}; {} started and stopped",
            what(counted.count),
            task.number,
            facts.provider_name(task.provider),
            balance.paired
        );
        check
            .report(message)
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
        unbalanced(
            check,
            |balance| balance.unstopped,
            |count| plural(count, "activity did not stop", "activities did not stop"),
        )
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
        unbalanced(
            check,
            |balance| balance.unstarted,
            |count| plural(count, "activity did not start", "activities did not start"),
        )
    },
};

pub(super) const UNKNOWN_PARENT: Rule = Rule {
    id: "activity.unknown-parent",
    statement: "An activity that is named as a parent has events.",
    severity: Severity::Note,
    source: "activities",
    protocol: &["A1"],
    meaning: "The provider of the parent activity was not enabled, or its events are missing.",
    remedy: "Also enable the provider of the parent activity.",
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
        .report(message)
        .at(parents.first)
        .unless_lost(None, None);
}
