//! Several sessions as one recording: one machine, one clock, both halves, no gap between them.

use etl_format::constants::FILETIME_PER_SECOND;

use crate::facts::{Facts, Span};
use crate::report::Finding;

use super::catalogue::{
    MERGE_CLOCK, MERGE_IMAGE_IDS, MERGE_MACHINE, MERGE_ONE_SIDED, MERGE_PROCESSES, MERGE_SEAM,
};

/// How far boot times of one boot may stand apart: the clock is adjusted now and then.
const BOOT_SKEW: u64 = 60 * FILETIME_PER_SECOND.unsigned_abs();

pub(super) fn judge(facts: &Facts, findings: &mut Vec<Finding>) {
    if facts.files.len() > 1 {
        machines(facts, findings);
        seam(facts, findings);
    }
    let joined = facts.files.len() > 1 || facts.files.iter().any(|f| f.is_merged());
    if joined {
        halves(facts, findings);
    }
    image_ids(facts, joined, findings);
}

fn machines(facts: &Facts, findings: &mut Vec<Finding>) {
    if !facts.timeline().is_one_clock() {
        let message = "the clocks of the files differ; their events were ordered by time of day";
        findings.push(Finding::new(&MERGE_CLOCK, message.to_owned()));
    }
    let Some((first, rest)) = facts.files.split_first() else { return };
    for other in rest {
        let (a, b) = (&first.header, &other.header);
        let mut differ = Vec::new();
        // Zero is what a tool writes that does not know.
        let known = |x: u64, y: u64| x != 0 && y != 0 && x != y;
        if known(a.build.into(), b.build.into()) {
            differ.push(format!("build {} and {}", a.build, b.build));
        }
        if known(a.processors.into(), b.processors.into()) {
            differ.push(format!("{} and {} processors", a.processors, b.processors));
        }
        if known(a.boot_time.unsigned_abs(), b.boot_time.unsigned_abs())
            && a.boot_time.abs_diff(b.boot_time) > BOOT_SKEW
        {
            let time = etl_format::clock::iso_utc;
            differ.push(format!("booted {} and {}", time(a.boot_time), time(b.boot_time)));
        }
        if !differ.is_empty() {
            let message = format!("{} and {}: {}", first.name, other.name, differ.join(", "));
            findings.push(Finding::new(&MERGE_MACHINE, message));
        }
    }
}

/// A file of the runtime session that was closed before the one of the rundown began.
fn seam(facts: &Facts, findings: &mut Vec<Finding>) {
    let (Some((_, last)), Some((rundown, _))) = (facts.runtime_span, facts.rundown_span) else {
        return;
    };
    // Which session is the runtime's: the one that was closed last before the rundown began, if none was
    // still open then.
    let sessions = facts.files.iter().flat_map(|f| &f.sessions);
    let recording = |s: &&crate::facts::source::Session| s.from <= last;
    let ends: Option<Vec<i64>> = sessions.filter(recording).map(|s| s.to).collect();
    let Some(end) = ends.and_then(|ends| ends.into_iter().max()) else { return };
    if end < rundown {
        let gap = facts.clock.filetime(rundown).saturating_sub(facts.clock.filetime(end));
        let message = format!(
            "the runtime session ended {:.3} s before the rundown began",
            gap as f64 / FILETIME_PER_SECOND as f64
        );
        findings.push(Finding::new(&MERGE_SEAM, message).at(facts, Some(end)));
    }
}

/// Both the runtime's events and a rundown, of the same processes.
fn halves(facts: &Facts, findings: &mut Vec<Finding>) {
    let only = |has: Span, lacks: Span| has.is_some() && lacks.is_none();
    let (runtime, rundown) = (facts.runtime_span, facts.rundown_span);
    let message = if only(runtime, rundown) {
        "the runtime's events are there, and no rundown"
    } else if only(rundown, runtime) {
        "a rundown is there, and no event of the runtime"
    } else {
        if runtime.is_some() {
            common(facts, findings);
        }
        return;
    };
    let finding = Finding::new(&MERGE_ONE_SIDED, message.to_owned());
    findings.push(finding.unless_lost(facts, None, None));
}

/// Whether the files judged together, or merged, have no process in common that could have both the
/// runtime's events and a rundown.
pub(super) fn are_strangers(facts: &Facts) -> bool {
    let joined = facts.files.len() > 1 || facts.files.iter().any(|f| f.is_merged());
    if !joined || facts.runtime_span.is_none() || facts.rundown_span.is_none() {
        return false;
    }
    let both = facts.processes.iter().any(|p| p.last_runtime.is_some() && !p.brackets.is_empty());
    // Processes that ended before the rundown have none, whatever the files are.
    let waiting = facts.processes.iter().any(|p| p.last_runtime.is_some() && p.ended.is_none());
    !both && waiting
}

fn common(facts: &Facts, findings: &mut Vec<Finding>) {
    if are_strangers(facts) {
        let message = "no process has both events of the runtime and a rundown";
        let finding = Finding::new(&MERGE_PROCESSES, message.to_owned());
        findings.push(finding.unless_lost(facts, None, None));
    }
}

fn image_ids(facts: &Facts, joined: bool, findings: &mut Vec<Finding>) {
    let hit = facts.images.list.iter().filter(|i| i.hits.iter().any(|&n| n > 0)).count();
    if hit == 0 || facts.images.identities > 0 {
        return;
    }
    let what = if joined { "the merge added no identities" } else { "the trace was not merged" };
    let message = format!("addresses lie in {hit} images, and {what} of images");
    findings.push(Finding::new(&MERGE_IMAGE_IDS, message));
}
