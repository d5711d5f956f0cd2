//! The kernel's lists of processes, threads and images against their starts and ends.

use etl_analysis::machine::Process;

use super::is_selection;
use crate::checks::Facts;
use crate::finding::Severity;
use crate::rules::commands::{MERGE_KERNEL, STOP_KERNEL};
use crate::rules::{Check, Rule, plural};

pub(in crate::rules) const NO_START: Rule = Rule {
    id: "kernel.no-start",
    statement: "What ends while the kernel's session runs was there when it started, or started in \
                it.",
    severity: Severity::Warning,
    source: "the kernel's lists at the start of a session, and its starts and ends",
    protocol: &[],
    meaning: "Starts of processes or threads, loads of images, or the lists of what there was at the \
              start are missing: addresses and events are assigned to nothing, or to another process.",
    remedy: "Use the file that the session wrote, or merge it again:",
    commands: &[MERGE_KERNEL],
    check: no_start,
};

/// Of so many unloads one may be of an image whose load no event shows: some are mapped in other
/// ways.
const UNLOADS: u64 = 10;

fn no_start(check: &mut Check<'_>) {
    let census = check.facts.machine.census();
    // The system's own process is listed first: without it the beginning is missing.
    if !census.has_start || is_selection(check.facts) {
        return;
    }
    let images = census.unstarted_images;
    let few = images.count.saturating_mul(UNLOADS) < census.unloads;
    let kinds = [
        (census.unstarted_processes, "process", "processes"),
        (census.unstarted_threads, "thread", "threads"),
        (
            if few { Default::default() } else { images },
            "image",
            "images",
        ),
    ];
    for (counted, one, many) in kinds {
        if counted.count == 0 {
            continue;
        }
        let (ends, end) = if one == "image" {
            ("is unloaded", "are unloaded")
        } else {
            ("ends", "end")
        };
        let verb = if counted.count == 1 { ends } else { end };
        let message = format!(
            "{} {verb} that neither started in the session nor was there at its start",
            plural(counted.count, one, many)
        );
        check
            .find(message)
            .at(counted.first)
            .unless_lost(None, counted.first);
    }
}

pub(in crate::rules) const NOT_LISTED: Rule = Rule {
    id: "kernel.not-listed",
    statement: "A process that runs has a start or is in a list of the kernel's session, and it has \
                an end or is in the list at the end.",
    severity: Severity::Warning,
    source: "the kernel's lists at the start and the end of a session, and its starts and ends",
    protocol: &[],
    meaning: "Names and images of a process are unknown, or it is not known when it ended.",
    remedy: "Stop the kernel session in the regular way, since the lists of the end are logged last, \
             and merge its file:",
    commands: &[STOP_KERNEL, MERGE_KERNEL],
    check: not_listed,
};

fn not_listed(check: &mut Check<'_>) {
    let facts = check.facts;
    let census = facts.machine.census();
    if is_selection(facts) {
        return;
    }
    let end_list = census.end.filter(|_| census.has_end).map(|span| span.first);
    for process in facts
        .machine
        .processes()
        .iter()
        .filter(|p| ![0, u32::MAX].contains(&p.pid().get()))
    {
        if is_unknown(facts, process) {
            let message = "the process was sampled, and no event and no list of the kernel's session \
                           is about it";
            check
                .find(message.to_owned())
                .of(process, None)
                .unless_lost(None, None);
        }
        let Some(end_list) = end_list else { continue };
        let listed = process.listed();
        let since = process.started().or(census
            .start
            .filter(|_| listed.at_start)
            .map(|span| span.last));
        let is_gone = since.is_some_and(|since| since < end_list)
            && process.ended().is_none()
            && !listed.at_end;
        if is_gone {
            let message =
                "the process has no end, and is not in the list at the end of the session";
            check
                .find(message.to_owned())
                .of(process, process.started())
                .unless_lost(since, None);
        }
    }
}

/// Whether a process was sampled that the kernel's session should know and does not.
fn is_unknown(facts: &Facts, process: &Process) -> bool {
    let census = facts.machine.census();
    let is_whole = census.has_start || census.has_end;
    // Of a session that logs processes and lists other things, the lists of processes are missing.
    let lacks_list = census.processes > 0 && census.start.is_some() && census.end.is_some();
    let samples = process
        .tallies()
        .get(etl_analysis::address::Origin::Sample as usize)
        .map_or(0, |t| t.stacks);
    !process.is_listed() && samples > 0 && (is_whole || lacks_list)
}

pub(in crate::rules) const OUTSIDE_LIFE: Rule = Rule {
    id: "kernel.outside-life",
    statement: "Events of a process come between its start and its end.",
    severity: Severity::Warning,
    source: "the kernel's starts and ends",
    protocol: &[],
    meaning: "The start or the end of a process has a wrong time, or events of another process with \
              the same id are counted as its own.",
    remedy: "Use the file that the session wrote.",
    commands: &[],
    check: outside_life,
};

fn outside_life(check: &mut Check<'_>) {
    let facts = check.facts;
    if !facts.machine.timeline().is_one_clock() {
        return;
    }
    // The clocks of processors differ by less.
    let skew = i64::try_from(facts.machine.clock().frequency / 100).unwrap_or(i64::MAX);
    for process in facts.machine.processes() {
        let spans = [process.clr_span(), process.listed().threads];
        let spans = || spans.iter().copied().flatten();
        let (first, last) = (
            spans().map(|s| s.first).min(),
            spans().map(|s| s.last).max(),
        );
        let (Some(first), Some(last)) = (first, last) else {
            continue;
        };
        if process
            .started()
            .is_some_and(|started| first < started.saturating_add(-skew))
        {
            let message = "events of the process come before its start";
            check
                .find(message.to_owned())
                .of(process, Some(first))
                .unless_lost(None, Some(first));
        }
        if let Some(ended) = process.ended().filter(|e| last > e.saturating_add(skew)) {
            let message = "events of the process come after its end";
            check
                .find(message.to_owned())
                .of(process, Some(last))
                .unless_lost(Some(ended), None);
        }
    }
}
