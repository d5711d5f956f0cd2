//! Stacks: the events they belong to, and their length.

use std::collections::BTreeMap;

use etl_analysis::machine::Counted;
use etl_format::{Guid, Ticks};
use etl_schema::clr::keyword::STACK;
use etl_schema::providers::{CLR_RUNDOWN, CLR_RUNTIME};

use super::commands::{KERNEL, MERGE_KERNEL, RUNTIME_CLOCK, RUNTIME_STACKS, STOP_KERNEL};
use super::kernel::{is_selection, may_be_ring};
use super::{Check, Rule, plural};
use crate::checks::Facts;
use crate::checks::enablement::EnablementSource;
use crate::checks::missing_stacks::{EventsWithoutStacks, Kind, StacksEnabledUntil};
use crate::finding::Severity;

pub(super) const UNDEFINED_KEY: Rule = Rule {
    id: "stacks.undefined-key",
    statement: "Every key of a kernel stack is defined.",
    severity: Severity::Warning,
    source: "the kernel's stack cache",
    protocol: &[],
    meaning: "Stacks with these keys cannot be shown.",
    remedy: "Stop the kernel session in the regular way, since the definitions are logged last, \
             and merge its file:",
    commands: &[STOP_KERNEL, MERGE_KERNEL],
    check: undefined_key,
};

fn undefined_key(check: &mut Check<'_>) {
    let count = check.facts.machine.undefined_stacks();
    if count == 0 {
        return;
    }
    let message = format!(
        "{} a key that the trace never defines",
        plural(count, "kernel stack has", "kernel stacks have")
    );
    check.report(message).unless_lost(None, None);
}

pub(super) const UNUSED_DEFINITION: Rule = Rule {
    id: "stacks.unused-definition",
    statement: "A kernel stack that is defined belongs to an event.",
    severity: Severity::Warning,
    source: "the kernel's stack cache",
    protocol: &[],
    meaning: "The records that assign stacks to samples and other events are missing: those events \
              have no stack, although the stack is in the trace.",
    remedy: "Use the file that the session wrote, or merge it again:",
    commands: &[MERGE_KERNEL],
    check: unused_definition,
};

fn unused_definition(check: &mut Check<'_>) {
    let facts = check.facts;
    let unused = facts.machine.unused_keys();
    let is_rare = is_rare(unused.count, facts.machine.definitions());
    if is_rare || facts.machine.has_extended_keys() || is_selection(facts) || may_be_ring(facts) {
        return;
    }
    let message = format!(
        "{} defined that no event has",
        plural(unused.count, "stack is", "stacks are")
    );
    check
        .report(message)
        .at(unused.first)
        .unless_lost(None, unused.first);
}

/// Whether a part is so small that it may have a reason that the trace does not show.
fn is_rare(part: u64, whole: u64) -> bool {
    part.saturating_mul(100) <= whole
}

pub(super) const KERNEL_WITHOUT_EVENT: Rule = Rule {
    id: "stacks.kernel-without-event",
    statement: "Each kernel stack has the time of the event that it belongs to.",
    severity: Severity::Warning,
    source: "the kernel's stack walking",
    protocol: &[],
    meaning: "Events are missing, samples for example, and their stacks are there.",
    remedy: "Use the file that the session wrote, or merge it again:",
    commands: &[MERGE_KERNEL],
    check: kernel_without_event,
};

fn kernel_without_event(check: &mut Check<'_>) {
    let stacks = &check.facts.kernel_stacks;
    let without = stacks.without_event;
    if is_rare(without.count, stacks.stacks)
        || is_selection(check.facts)
        || may_be_ring(check.facts)
    {
        return;
    }
    let message = format!(
        "{} to an event that is not in the trace",
        plural(
            without.count,
            "kernel stack belongs",
            "kernel stacks belong"
        )
    );
    check
        .report(message)
        .at(without.first)
        .unless_lost(None, without.first);
}

pub(super) const KERNEL_MISSING: Rule = Rule {
    id: "stacks.kernel-missing",
    statement: "If the kernel's session walks the stacks of samples, it does so as long as it \
                samples, on each processor.",
    severity: Severity::Warning,
    source: "the kernel's samples and its stack walking",
    protocol: &[],
    meaning: "Samples have no stack for some time, although nearly all others have one: what \
              called the code that ran then is not known.",
    remedy: "Use the file that the session wrote, or record again with more buffers:",
    commands: &[KERNEL],
    check: kernel_missing,
};

fn kernel_missing(check: &mut Check<'_>) {
    let facts = check.facts;
    if is_selection(facts) || may_be_ring(facts) {
        return;
    }
    if let Some(run) = facts.sampled_stacks.missing() {
        let message = format!(
            "{} in a row have no stack, and nearly all others have one",
            plural(run.samples, "sample", "samples")
        );
        check
            .report(message)
            .at(Some(run.from))
            .unless_lost(Some(run.from), Some(run.to));
    }
    if let Some(without) = facts.sampled_stacks.processor_without() {
        let message = format!(
            "{} of processor {} have no stack, and nearly all others have one",
            plural(without.samples, "sample", "samples"),
            without.processor
        );
        check.report(message).unless_lost(None, None);
    }
}

pub(super) const WITHOUT_EVENT: Rule = Rule {
    id: "stacks.without-event",
    statement: "Each stack of the CLR follows the event that it belongs to, on the same thread.",
    severity: Severity::Warning,
    source: "what the CLR logs",
    protocol: &["E9"],
    meaning: "Stacks have no event before them: the event was lost, or has the wrong thread id. A \
              session that enables only StackKeyword while another session runs also records such \
              stacks.",
    remedy: "Enable the keywords of the events whose stacks you need, and use more buffers:",
    commands: &[RUNTIME_STACKS],
    check: without_event,
};

fn without_event(check: &mut Check<'_>) {
    let facts = check.facts;
    let unpaired = facts.stacks.unpaired;
    let strayed = facts.stacks.strayed;
    let count = unpaired.count + strayed.count;
    if count == 0 {
        return;
    }
    let message = format!(
        "{} no event before them on the same thread",
        plural(count, "stack of the CLR has", "stacks of the CLR have")
    );
    let first = unpaired.first.into_iter().chain(strayed.first).min();
    check.report(message).at(first).unless_lost(None, first);
}

pub(super) const MISSING: Rule = Rule {
    id: "stacks.missing",
    statement: "If stacks are enabled, a stack on the same thread follows each event of the CLR \
                that has one.",
    severity: Severity::Note,
    source: "what the CLR logs",
    protocol: &["E9"],
    meaning: "Stacks of these events are missing, although their threads have earlier stacks and \
              their process has later ones: they were lost, or another session recorded the events \
              without the stacks.",
    remedy: "Use more buffers:",
    commands: &[RUNTIME_STACKS],
    check: missing,
};

fn missing(check: &mut Check<'_>) {
    let facts = check.facts;
    let enabled_until = stacks_enabled_until(facts);
    // A stack comes microseconds after its event.
    let missing = facts.stacks.missing(facts.ticks_per_10_ms(), enabled_until);
    let mut by_process: BTreeMap<usize, Vec<(Kind, Counted)>> = BTreeMap::new();
    for (key, counted) in missing {
        let kinds = by_process.entry(key.process).or_default();
        kinds.push((key.kind, counted));
    }
    for (index, kinds) in by_process {
        let Some(process) = facts.machine.processes().get(index) else {
            continue;
        };
        let first = kinds.iter().filter_map(|(_, counted)| counted.first).min();
        let count = kinds.iter().map(|(_, counted)| counted.count).sum();
        let kinds: Vec<_> = kinds
            .iter()
            .map(|(kind, counted)| format!("{} {}", counted.count, kind.name()))
            .collect();
        let message = format!(
            "{} no stack, although other events of the same thread and process have one: {}",
            plural(count, "event has", "events have"),
            kinds.join(", ")
        );
        check
            .report(message)
            .about(process, first)
            .unless_lost(first, None);
    }
    for events in facts.stacks.without_any() {
        if events.counted.count >= MIN_EVENTS {
            none_has_a_stack(check, &events, "");
        }
    }
    for events in facts.stacks.at_ends() {
        if events.counted.count >= MIN_IN_ROW {
            none_has_a_stack(check, &events, " in a row");
        }
    }
}

/// The time of each provider's last event, if the user states that every session enabled stacks.
fn stacks_enabled_until(facts: &Facts) -> StacksEnabledUntil {
    let mut until = StacksEnabledUntil::default();
    if let Some(runtime) = facts.machine.runtime_span()
        && declares_stacks(facts, CLR_RUNTIME)
    {
        until.runtime = Some(runtime.last);
    }
    if let Some(rundown) = facts.machine.rundown_span()
        && declares_stacks(facts, CLR_RUNDOWN)
    {
        until.rundown = Some(rundown.last);
    }
    until
}

/// Whether the user states that all sessions enabled a provider with stacks.
fn declares_stacks(facts: &Facts, provider: Guid) -> bool {
    facts.admission.source(provider) == Some(EnablementSource::Declared)
        && facts
            .admission
            .enablements(provider)
            .all(|(enabled, with)| !enabled.is_limited && with.any & STACK != 0)
}

/// Fewer events without a stack may be an accident: the CLR cannot walk the stack of every thread.
const MIN_EVENTS: u64 = 10;

/// The same for events before the first stack of a process, and after the last one.
const MIN_IN_ROW: u64 = 100;

/// Adds a finding for events of a process without any stack, if a session is known to have enabled
/// stacks.
fn none_has_a_stack(check: &mut Check<'_>, events: &EventsWithoutStacks, in_row: &str) {
    let facts = check.facts;
    let counted = events.counted;
    let Some(process) = facts.machine.processes().get(events.process) else {
        return;
    };
    let with_stacks = facts
        .admission
        .enablements(events.provider.guid())
        .filter(|(enabled, with)| !enabled.is_limited && (with.any == 0 || with.any & STACK != 0));
    let since = with_stacks.map(|(enabled, _)| enabled.from.unwrap_or(Ticks::MIN));
    let (Some(since), Some(first)) = (since.min(), counted.first) else {
        return;
    };
    if since > first {
        return;
    }
    let message = format!(
        "none of {}{in_row} of the process has a stack, although StackKeyword (0x40000000) was \
         enabled",
        plural(counted.count, "event", "events"),
    );
    let found = check
        .report(message)
        .about(process, counted.first)
        .severity(Severity::Warning);
    found.unless_lost(counted.first, None);
}

pub(super) const FRAME_COUNT: Rule = Rule {
    id: "stacks.frame-count",
    statement: "A stack of the CLR holds as many addresses as it states.",
    severity: Severity::Warning,
    source: "what the CLR logs",
    protocol: &["E9"],
    meaning: "Addresses are missing from the stacks, or bytes were added to them.",
    remedy: "Use the file that the session wrote.",
    commands: &[],
    check: frame_count,
};

fn frame_count(check: &mut Check<'_>) {
    let facts = check.facts;
    let short = facts.stacks.truncated;
    let long = facts.stacks.overlong;
    if short.count + long.count == 0 {
        return;
    }
    let message = format!(
        "{} fewer addresses than stated, {} more",
        plural(
            short.count,
            "stack of the CLR holds",
            "stacks of the CLR hold"
        ),
        plural(long.count, "holds", "hold")
    );
    let first = short.first.into_iter().chain(long.first).min();
    check.report(message).at(first);
}

pub(super) const BEFORE_EVENT: Rule = Rule {
    id: "stacks.before-event",
    statement: "A kernel stack comes after the event that it belongs to.",
    severity: Severity::Warning,
    source: "the kernel's stack walking",
    protocol: &[],
    meaning: "Stacks cannot be assigned to their events: the clocks of merged files differ.",
    remedy: "Start all sessions of a recording with the same clock:",
    commands: &[RUNTIME_CLOCK],
    check: before_event,
};

fn before_event(check: &mut Check<'_>) {
    let early = check.facts.stacks.early;
    if early.count == 0 {
        return;
    }
    let message = format!(
        "{} to an event that comes later",
        plural(early.count, "kernel stack belongs", "kernel stacks belong")
    );
    check.report(message).at(early.first);
}
