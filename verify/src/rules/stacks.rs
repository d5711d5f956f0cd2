//! Stacks: whose they are, and whether they are whole.

use std::collections::BTreeMap;

use etl_schema::clr::keyword::STACK;
use etl_schema::providers::{CLR_RUNDOWN, CLR_RUNTIME};

use crate::facts::Facts;
use crate::facts::enable::Knowledge;
use crate::report::Finding;

use super::catalogue::{
    STACKS_EARLY, STACKS_MISSING, STACKS_TRUNCATED, STACKS_UNDEFINED_KEY, STACKS_UNPAIRED,
};
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
    missing(facts, findings);
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

/// Events without their stack.
fn missing(facts: &Facts, findings: &mut Vec<Finding>) {
    // Until the end of the provider's events, if the user told that every session asked for stacks.
    let all = [(CLR_RUNTIME, facts.runtime_span), (CLR_RUNDOWN, facts.rundown_span)].map(
        |(guid, span)| {
            let mut of = facts.admission.of(guid).peekable();
            of.peek()?;
            let asks = of.all(|(e, with)| {
                e.knowledge == Knowledge::Told && !e.limited && with.any & STACK != 0
            });
            span.filter(|_| asks).map(|(_, last)| last)
        },
    );
    // A stack comes microseconds after its event.
    let soon = i64::try_from(facts.clock.frequency / 100).unwrap_or(i64::MAX);
    let mut by_process: BTreeMap<usize, Vec<_>> = BTreeMap::new();
    for ((process, kind), counted) in facts.stacks.bare(soon, all) {
        by_process.entry(process).or_default().push((kind, counted));
    }
    for (index, kinds) in by_process {
        let Some(process) = facts.processes.get(index) else { continue };
        let first = kinds.iter().filter_map(|(_, counted)| counted.first).min();
        let count = kinds.iter().map(|(_, counted)| counted.count).sum();
        let named: Vec<_> = kinds
            .iter()
            .map(|(kind, counted)| format!("{} {}", counted.count, kind.name()))
            .collect();
        let message = format!(
            "{} not followed by a stack, though stacks of the same thread and process are there: {}",
            plural(count, "event is", "events are"),
            named.join(", ")
        );
        let finding = Finding::new(&STACKS_MISSING, message).of(facts, process, first);
        findings.push(finding.unless_lost(facts, first, None));
    }
}
