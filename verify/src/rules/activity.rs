//! Activities: starts, stops and parents.

use crate::facts::{Counted, Facts};
use crate::report::Finding;

use super::catalogue::{ACTIVITY_PARENT, ACTIVITY_UNSTARTED, ACTIVITY_UNSTOPPED, Rule};
use super::plural;

pub(super) fn judge(facts: &Facts, findings: &mut Vec<Finding>) {
    for ((provider, task), balance) in facts.activities.balances() {
        let name = facts.provider_name(provider);
        let mut tell = |rule: &Rule, counted: Counted, one: &str, many: &str| {
            if counted.count > 0 {
                let what = plural(counted.count, one, many);
                let message =
                    format!("{what} in task {task} of {name}; {} did both", balance.paired);
                let finding = Finding::new(rule, message).at(facts, counted.first);
                findings.push(finding.unless_lost(facts, None, None));
            }
        };
        let (stopped, started) = (balance.unstopped, balance.unstarted);
        tell(&ACTIVITY_UNSTOPPED, stopped, "activity did not stop", "activities did not stop");
        tell(&ACTIVITY_UNSTARTED, started, "activity did not start", "activities did not start");
    }
    let parents = facts.activities.unknown_parents();
    if parents.count > 0 {
        let message = format!(
            "{} named as the parent of another and without an event",
            plural(parents.count, "activity is", "activities are")
        );
        let finding = Finding::new(&ACTIVITY_PARENT, message).at(facts, parents.first);
        findings.push(finding.unless_lost(facts, None, None));
    }
}
