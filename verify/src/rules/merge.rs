//! Several sessions as one recording: one machine, one clock, both halves, no gap between them.

use etl_analysis::files::{Session, machine_differences};
use etl_analysis::machine::Process;
use etl_format::Ticks;
use etl_format::constants::FILETIME_PER_SECOND;
use etl_schema::clr::Enumeration;
use etl_schema::providers::CLR_RUNTIME;

use super::commands::{MERGE, MERGE_KERNEL, RECORDING, RUNTIME_CLOCK};
use super::rundown::coverage::{are_unrelated, is_any_missing};
use super::{Check, Rule, plural};
use crate::checks::Facts;
use crate::finding::Severity;

pub(super) const DIFFERENT_CLOCKS: Rule = Rule {
    id: "merge.different-clocks",
    statement: "Files that are checked together have one clock.",
    severity: Severity::Warning,
    source: "merging",
    protocol: &["M1"],
    meaning: "The clocks of the files differ: they were aligned by time of day, which is not \
              exact. Or they have one counter, but the machine's time was set between their \
              starts: they were aligned by the counter, and times of day come from the file that \
              began first.",
    remedy: "Start all sessions of a recording with the same clock:",
    commands: &[RUNTIME_CLOCK],
    check: different_clocks,
};

fn different_clocks(check: &mut Check<'_>) {
    let timeline = check.facts.machine.timeline();
    let set_by = timeline.set_by() as f64 / FILETIME_PER_SECOND as f64;
    if !timeline.is_one_clock() {
        let message = "the clocks of the files differ; their events were ordered by time of day";
        check.report(message.to_owned());
    } else if set_by > 0.0 {
        check.report(format!(
            "the time was set by {set_by:.3} s between the files, or the timestamps of one are \
             wrong; their events were ordered by the counter"
        ));
    }
}

pub(super) const DIFFERENT_MACHINES: Rule = Rule {
    id: "merge.different-machines",
    statement: "Files that are checked together are from one machine and one boot.",
    severity: Severity::Error,
    source: "merging",
    protocol: &["M1"],
    meaning: "Start of the machine, number or speed of processors, or version of Windows differ: \
              process ids and addresses of one file mean nothing in the other.",
    remedy: "Name only files that belong together, or check each one alone:",
    commands: &["etlverify clr1.etl clr2.etl"],
    check: different_machines,
};

fn different_machines(check: &mut Check<'_>) {
    let Some((first, rest)) = check.facts.machine.files().split_first() else {
        return;
    };
    for other in rest {
        let differ = machine_differences(&first.header, &other.header);
        if !differ.is_empty() {
            let message = format!("{} and {}: {}", first.name, other.name, differ.join(", "));
            check.report(message);
        }
    }
}

pub(super) const GAP: Rule = Rule {
    id: "merge.gap",
    statement: "The rundown begins before the runtime session ends.",
    severity: Severity::Error,
    source: "merging",
    protocol: &["M2"],
    meaning: "Between the two, no loads and no compilations were recorded: what was loaded then is \
              listed by the rundown without a time, what was unloaded is unknown. PerfView always \
              stops its session first, and lists what is left right after it: then this is a note.",
    remedy: "Start the rundown session first, wait until it is complete, then stop the runtime \
             session:",
    commands: RECORDING,
    check: gap,
};

fn gap(check: &mut Check<'_>) {
    let facts = check.facts;
    let Some(runtime) = facts.machine.runtime_span() else {
        return;
    };
    let Some(listed) = facts.machine.rundown_span() else {
        return;
    };
    // A start rundown comes while the runtime session runs, and may have a session of its own.
    let brackets = facts.machine.processes().iter().flat_map(Process::brackets);
    let end_rundowns = brackets.filter(|bracket| bracket.kind == Enumeration::End);
    let rundown = end_rundowns
        .filter_map(|bracket| bracket.opened)
        .min()
        .unwrap_or(listed.first);
    let sessions = facts.clr_sessions();
    let declared = facts.admission.stopped(CLR_RUNTIME, facts.machine.clock());
    let recorded = facts.admission.recorded_end(CLR_RUNTIME);
    let mut severity = GAP.severity;
    let end = match declared {
        Some(stopped) => Some(stopped.max(runtime.last)),
        None if sessions.len() < 2 => {
            severity = Severity::Note;
            recorded
        }
        None => runtime_end(&sessions, runtime.last),
    };
    let Some(end) = end else { return };
    if end >= rundown {
        return;
    }
    let clock = facts.machine.clock();
    let end_time = clock.time(end).get();
    let gap = clock.time(rundown).get().saturating_sub(end_time);
    let message = format!(
        "the runtime session ended {:.3} s before the rundown began",
        gap as f64 / FILETIME_PER_SECOND as f64
    );
    check.report(message).at(Some(end)).severity(severity);
}

/// When the runtime's session ended: it is among the sessions that began before the last runtime
/// event, so at the end of the last of these. `None` if the end of one is not known.
fn runtime_end(sessions: &[&Session], last_event: Ticks) -> Option<Ticks> {
    let mut end = None;
    for session in sessions {
        if session.from <= last_event {
            end = end.max(Some(session.to?));
        }
    }
    end
}

pub(super) const ONE_SIDED: Rule = Rule {
    id: "merge.one-sided",
    statement: "Files that are merged or checked together hold events of the runtime and a \
                rundown.",
    severity: Severity::Warning,
    source: "merging",
    protocol: &["M1", "M2"],
    meaning: "One of the two files is missing from the merge, or its session recorded nothing.",
    remedy: "Merge again with all files:",
    commands: &[MERGE],
    check: one_sided,
};

fn one_sided(check: &mut Check<'_>) {
    let facts = check.facts;
    let message = match (facts.machine.runtime_span(), facts.has_rundown()) {
        (Some(_), false) => "there are events of the CLR runtime, but no rundown",
        (None, true) => "there is a rundown, but no event of the CLR runtime",
        _ => return,
    };
    let is_needless = facts
        .machine
        .processes()
        .iter()
        .all(|process| !process.is_managed() || facts.has_nothing_to_name(process));
    if !facts.is_joined() || resolves_everything(facts) || is_needless {
        return;
    }
    check.report(message.to_owned()).unless_lost(None, None);
}

/// Whether the trace has addresses and all of them resolve.
fn resolves_everything(facts: &Facts) -> bool {
    let tallies = facts.machine.tallies();
    tallies.iter().any(|tally| tally.frames > 0) && tallies.iter().all(|t| t.unresolved == 0)
}

pub(super) const NO_COMMON_PROCESS: Rule = Rule {
    id: "merge.no-common-process",
    statement: "The rundown lists processes of the runtime session.",
    severity: Severity::Error,
    source: "merging",
    protocol: &["M2"],
    meaning: "No process has both runtime events and a rundown: the files are of different \
              recordings, or the processes logged nothing.",
    remedy: "Check that the files belong together:",
    commands: &["etlkit info clr1.etl clr2.etl"],
    check: no_common_process,
};

fn no_common_process(check: &mut Check<'_>) {
    let facts = check.facts;
    if !are_unrelated(facts) {
        return;
    }
    // Processes whose loads were all recorded need no rundown.
    let severity = if is_any_missing(check) {
        NO_COMMON_PROCESS.severity
    } else {
        Severity::Warning
    };
    let message = "no process has both events of the runtime and a rundown";
    let is_certain = is_any_missing(check);
    let found = check
        .report(message.to_owned())
        .severity(severity)
        .unless_lost(None, None);
    if !is_certain {
        found.undecided("the processes of the runtime session may have ended before the rundown");
    }
}

pub(super) const NO_IMAGE_IDS: Rule = Rule {
    id: "merge.no-image-ids",
    statement: "A trace with native addresses holds the identities of its images.",
    severity: Severity::Note,
    source: "what a merge adds",
    protocol: &["M1", "S7"],
    meaning: "The trace was not merged on its machine: native frames can be assigned to images, \
              but their symbols cannot be found on another machine.",
    remedy: "Merge on the recorded machine (PerfView also does it):",
    commands: &[MERGE_KERNEL],
    check: no_image_ids,
};

fn no_image_ids(check: &mut Check<'_>) {
    let facts = check.facts;
    let images = facts.machine.images();
    let with_addresses = images
        .list()
        .iter()
        .filter(|image| image.hits.iter().any(|&hits| hits > 0))
        .count();
    if with_addresses == 0 || images.identities() > 0 {
        return;
    }
    let is_merged = facts.machine.files().iter().any(|file| file.is_merged());
    let why = if is_merged {
        "the merge added no identities"
    } else {
        "the trace was not merged"
    };
    let message = format!(
        "addresses are in {} without an identity: {why}",
        plural(with_addresses as u64, "image", "images")
    );
    check.report(message);
}
