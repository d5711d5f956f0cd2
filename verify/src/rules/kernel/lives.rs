//! The kernel's lists of processes, threads and images against their starts and ends.

use etl_analysis::address::Origin;
use etl_analysis::machine::{Counted, Process};

use super::{is_selection, missing};
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

/// One of so many unloads may be of an image without a load event: some images are mapped in other
/// ways.
const UNLOADS: u64 = 10;

fn no_start(check: &mut Check<'_>) {
    let census = check.facts.machine.census();
    // The system's own process is listed first: without it the beginning is missing.
    if !census.has_start || is_selection(check.facts) {
        return;
    }
    let mut images = census.unstarted_images;
    if images.count.saturating_mul(UNLOADS) < census.unloads {
        images = Counted::default();
    }
    let kinds = [
        (census.unstarted_processes, "process ends", "processes end"),
        (census.unstarted_threads, "thread ends", "threads end"),
        (images, "image is unloaded", "images are unloaded"),
    ];
    for (counted, one, many) in kinds {
        if counted.count == 0 {
            continue;
        }
        let message = format!(
            "{} that neither started in the session nor was there at its start",
            plural(counted.count, one, many)
        );
        check
            .report(message)
            .at(counted.first)
            .unless_lost(None, counted.first);
    }
}

pub(in crate::rules) const NOT_LISTED: Rule = Rule {
    id: "kernel.not-listed",
    statement: "A process that runs has a start or is in a list of the kernel's session, it has an \
                end or is in the list at the end, and its images are listed. A session that stops \
                logging processes lists what there is.",
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
    if let Some(stated) = facts.sampling.logs_processes()
        && census.processes == 0
    {
        let message = "the kernel's session logs processes, and no event is about a process: its \
                       lists at the start and the end are missing";
        check
            .report(message.to_owned())
            .at(Some(stated))
            .unless_lost(None, None);
    }
    missing::report_missing_start(check);
    missing::report_without_images(check);
    if let Some(ended) = facts.sampling.processes_ended()
        && census.has_start
        && census.end.is_none()
    {
        let message = "the kernel's session stopped logging processes, and its lists of processes, \
                       threads and images at the end are missing";
        let found = check.report(message.to_owned()).at(Some(ended));
        found.unless_lost(None, None);
    }
    let end_list = match census.end {
        Some(span) if census.has_end => Some(span.first),
        _ => None,
    };
    for process in facts.machine.processes() {
        // The idle process, and events without a process.
        if [0, u32::MAX].contains(&process.pid().get()) {
            continue;
        }
        if is_unknown(facts, process) {
            let message = "the process was sampled, and no event and no list of the kernel's session \
                           is about it";
            check
                .report(message.to_owned())
                .about(process, None)
                .unless_lost(None, None);
        }
        let Some(end_list) = end_list else { continue };
        let listed = process.listed();
        let since = match (process.started(), census.start) {
            (Some(started), _) => Some(started),
            (None, Some(span)) if listed.at_start => Some(span.last),
            _ => None,
        };
        let ran_before = since.is_some_and(|since| since < end_list);
        if ran_before && process.ended().is_none() && !listed.at_end {
            let message =
                "the process has no end, and is not in the list at the end of the session";
            check
                .report(message.to_owned())
                .about(process, process.started())
                .unless_lost(since, None);
        }
    }
}

/// Whether a process was sampled and is not in the lists of the kernel's session, which should list
/// it.
fn is_unknown(facts: &Facts, process: &Process) -> bool {
    let census = facts.machine.census();
    let has_list = census.has_start || census.has_end;
    // If a session logs processes and has lists, but not of processes, these lists are missing.
    let lacks_list = census.processes > 0 && census.start.is_some() && census.end.is_some();
    let tallies = process.tallies();
    let samples = tallies.get(Origin::Sample as usize);
    let is_sampled = samples.is_some_and(|tally| tally.stacks > 0);
    is_sampled && !process.is_listed() && (has_list || lacks_list)
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
    let skew = facts.ticks_per_10_ms();
    for process in facts.machine.processes() {
        let spans = [process.clr_span(), process.listed().threads];
        let spans = spans.iter().flatten();
        let Some(first) = spans.clone().map(|span| span.first).min() else {
            continue;
        };
        let Some(last) = spans.map(|span| span.last).max() else {
            continue;
        };
        if let Some(started) = process.started()
            && first < started.saturating_add(-skew)
        {
            let message = "events of the process come before its start";
            check
                .report(message.to_owned())
                .about(process, Some(first))
                .unless_lost(None, Some(first));
        }
        if let Some(ended) = process.ended()
            && last > ended.saturating_add(skew)
        {
            let message = "events of the process come after its end";
            check
                .report(message.to_owned())
                .about(process, Some(last))
                .unless_lost(Some(ended), None);
        }
    }
}
