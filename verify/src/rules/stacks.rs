//! Stacks: the events they belong to, and their length.

use etl_format::Ticks;
use std::collections::BTreeMap;

use etl_schema::clr::keyword::STACK;
use etl_schema::providers::{CLR_RUNDOWN, CLR_RUNTIME};

use super::commands::{KERNEL, MERGE_KERNEL, RUNTIME_CLOCK, RUNTIME_STACKS, STOP_KERNEL};
use super::kernel::{is_selection, may_be_ring};
use super::{Check, Rule, plural};
use crate::checks::enablement::EnablementSource;
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
    check.find(message).unless_lost(None, None);
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
        .find(message)
        .at(unused.first)
        .unless_lost(None, unused.first);
}

/// Whether something is so rare among others that it may have a reason that the trace does not
/// show.
fn is_rare(count: u64, of: u64) -> bool {
    count.saturating_mul(100) <= of
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
    let walked = &check.facts.walked;
    let (lost, all) = (walked.without_event, walked.stacks);
    if is_rare(lost.count, all) || is_selection(check.facts) || may_be_ring(check.facts) {
        return;
    }
    let message = format!(
        "{} to an event that is not in the trace",
        plural(lost.count, "kernel stack belongs", "kernel stacks belong")
    );
    check
        .find(message)
        .at(lost.first)
        .unless_lost(None, lost.first);
}

pub(super) const KERNEL_MISSING: Rule = Rule {
    id: "stacks.kernel-missing",
    statement: "Where the kernel's session walks the stacks of samples, it does so as long as it \
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
    let have = |samples, which| {
        let samples = plural(samples, "sample", "samples");
        format!("{samples} {which} have no stack, and nearly all others have one")
    };
    if let Some(run) = facts.sampled_stacks.missing() {
        let found = check.find(have(run.samples, "in a row".to_owned()));
        found
            .at(Some(run.from))
            .unless_lost(Some(run.from), Some(run.to));
    }
    if let Some((processor, samples)) = facts.sampled_stacks.missing_on() {
        let message = have(samples, format!("of processor {processor}"));
        check.find(message).unless_lost(None, None);
    }
}

pub(super) const WITHOUT_EVENT: Rule = Rule {
    id: "stacks.without-event",
    statement: "Each stack of the CLR follows the event that it belongs to, on the same thread.",
    severity: Severity::Warning,
    source: "what the CLR logs",
    protocol: &["E9"],
    meaning: "Stacks have no event before them: the event was lost, or has the wrong thread id. A \
              session that enables only StackKeyword, beside another session, records such stacks, \
              too.",
    remedy: "Enable the keywords of the events whose stacks you need, and use more buffers:",
    commands: &[RUNTIME_STACKS],
    check: without_event,
};

fn without_event(check: &mut Check<'_>) {
    let facts = check.facts;
    let (unpaired, strayed) = (facts.stacks.unpaired, facts.stacks.strayed);
    let count = unpaired.count + strayed.count;
    if count == 0 {
        return;
    }
    let message = format!(
        "{} no event before them on the same thread",
        plural(count, "stack of the CLR has", "stacks of the CLR have")
    );
    let first = unpaired.first.into_iter().chain(strayed.first).min();
    check.find(message).at(first).unless_lost(None, first);
}

pub(super) const MISSING: Rule = Rule {
    id: "stacks.missing",
    statement: "Where stacks are enabled, a stack on the same thread follows each event of the CLR \
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
    // Until the provider's last event, if the user states that every session enabled stacks.
    let all = [
        (CLR_RUNTIME, facts.machine.runtime_span()),
        (CLR_RUNDOWN, facts.machine.rundown_span()),
    ]
    .map(|(guid, span)| {
        let mut of = facts.admission.of(guid).peekable();
        of.peek()?;
        let asks = of.all(|(e, with)| {
            e.knowledge == EnablementSource::Declared && !e.limited && with.any & STACK != 0
        });
        span.filter(|_| asks).map(|span| span.last)
    });
    // A stack comes microseconds after its event.
    let soon = i64::try_from(facts.machine.clock().frequency / 100).unwrap_or(i64::MAX);
    let mut by_process: BTreeMap<usize, Vec<_>> = BTreeMap::new();
    for ((process, kind), counted) in facts.stacks.missing(soon, all) {
        by_process.entry(process).or_default().push((kind, counted));
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
            .find(message)
            .of(process, first)
            .unless_lost(first, None);
    }
    all_missing(check);
}

/// Events from which on a process without any stack is no accident: the CLR cannot walk the stack
/// of every thread.
const MIN_EVENTS: u64 = 10;

/// The same for events before the first stack of a process, and after the last one.
const MIN_IN_ROW: u64 = 100;

/// Processes without any stack, or without one at their beginning or end, although a session is
/// known to have enabled them.
fn all_missing(check: &mut Check<'_>) {
    let facts = check.facts;
    let enabled = [CLR_RUNTIME, CLR_RUNDOWN].map(|guid| {
        let stacks = facts
            .admission
            .of(guid)
            .filter(|(e, with)| !e.limited && (with.any == 0 || with.any & STACK != 0));
        stacks.map(|(e, _)| e.at.unwrap_or(Ticks::MIN)).min()
    });
    let without = facts.stacks.without_any().map(|of| (of, "", MIN_EVENTS));
    let at_ends = facts
        .stacks
        .at_ends()
        .map(|of| (of, " in a row", MIN_IN_ROW));
    for ((index, rundown, counted), in_row, least) in without.chain(at_ends) {
        let Some(process) = facts.machine.processes().get(index) else {
            continue;
        };
        let since = enabled.get(usize::from(rundown)).copied().flatten();
        let is_enabled = since.is_some_and(|since| counted.first.is_some_and(|at| since <= at));
        if !is_enabled || counted.count < least {
            continue;
        }
        let message = format!(
            "none of {}{in_row} of the process has a stack, although StackKeyword (0x40000000) was \
             enabled",
            plural(counted.count, "event", "events"),
        );
        let found = check
            .find(message)
            .of(process, counted.first)
            .severity(Severity::Warning);
        found.unless_lost(counted.first, None);
    }
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
    let (short, long) = (facts.stacks.truncated, facts.stacks.overlong);
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
    check.find(message).at(first);
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
    check.find(message).at(early.first);
}
