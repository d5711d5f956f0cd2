//! Stacks: whose they are, and whether they are whole.

use crate::facts::Facts;
use crate::report::Finding;

use super::catalogue::{STACKS_EARLY, STACKS_TRUNCATED, STACKS_UNDEFINED_KEY, STACKS_UNPAIRED};
use super::plural;

pub(super) fn judge(facts: &Facts, findings: &mut Vec<Finding>) {
    let undefined = facts.undefined_stacks();
    if undefined > 0 {
        let message = format!(
            "{} told by a key that the trace never defines",
            plural(undefined, "kernel stack is", "kernel stacks are")
        );
        let finding = Finding::new(&STACKS_UNDEFINED_KEY, message);
        findings.push(finding.unless_lost(facts, None, None));
    }
    let stacks = &facts.stacks;
    let (unpaired, strayed) = (stacks.unpaired, stacks.strayed);
    if unpaired.count + strayed.count > 0 {
        let message = format!(
            "{} of the CLR without an event before it on its thread",
            plural(unpaired.count + strayed.count, "stack stands", "stacks stand")
        );
        let first = unpaired.first.into_iter().chain(strayed.first).min();
        let finding = Finding::new(&STACKS_UNPAIRED, message).at(facts, first);
        findings.push(finding.unless_lost(facts, None, first));
    }
    let (short, long) = (stacks.truncated, stacks.overlong);
    if short.count + long.count > 0 {
        let message = format!(
            "{} fewer addresses than stated, {} more",
            plural(short.count, "stack of the CLR holds", "stacks of the CLR hold"),
            plural(long.count, "holds", "hold")
        );
        let first = short.first.into_iter().chain(long.first).min();
        findings.push(Finding::new(&STACKS_TRUNCATED, message).at(facts, first));
    }
    if stacks.early.count > 0 {
        let message = format!(
            "{} of an event that comes later",
            plural(stacks.early.count, "kernel stack is", "kernel stacks are")
        );
        findings.push(Finding::new(&STACKS_EARLY, message).at(facts, stacks.early.first));
    }
}
