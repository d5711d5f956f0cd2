//! What the kernel's session must have logged and a trace lacks: the lists of the start, and the
//! images of a process.

use etl_analysis::machine::{Process, UnresolvedCause};
use etl_format::constants::LogFileMode;

use super::may_be_ring;
use crate::checks::Facts;
use crate::rules::Check;

/// Reports that the list of processes at the start of the kernel's session is missing. A session
/// that lists processes at its end lists them at its start too, before any other event: so the
/// first buffers are missing.
pub(super) fn report_missing_start(check: &mut Check<'_>) {
    let facts = check.facts;
    let census = facts.machine.census();
    let has_only_end = census.has_end && !census.has_start;
    if !has_only_end || may_begin_late(facts) {
        return;
    }
    let listed = census.end.map(|span| span.first);
    let message = "the kernel's session lists processes at its end, and its list of the start is not \
                   there: the beginning of the session is missing";
    check
        .report(message.to_owned())
        .at(listed)
        .unless_lost(None, listed);
}

/// Whether the first events may be missing for a known reason: they were overwritten, or they are
/// in an earlier file of the session.
fn may_begin_late(facts: &Facts) -> bool {
    let mut files = facts.machine.files().iter();
    let is_part = files.any(|file| {
        let mode = file.header.mode;
        mode.has(LogFileMode::NEWFILE) || mode.has(LogFileMode::CIRCULAR)
    });
    is_part || may_be_ring(facts)
}

/// Reports processes that ran code outside of the kernel, and no event is about an image of theirs,
/// although the kernel's session lists images.
pub(super) fn report_without_images(check: &mut Check<'_>) {
    let facts = check.facts;
    if may_begin_late(facts) || !lists_images(facts) {
        return;
    }
    for process in facts.machine.processes() {
        // A session may log images for a part of its time only.
        let is_there_throughout = process.listed().at_start && process.ended().is_none();
        let images = process.images();
        let has_images = images.live() > 0 || !images.past().is_empty();
        if !is_there_throughout || has_images || !ran_own_code(process) {
            continue;
        }
        let message = "the process ran code of its own, and no event is about an image of it, \
                       although the kernel's session lists images of other processes";
        check
            .report(message.to_owned())
            .about(process, process.started())
            .unless_lost(None, None);
    }
}

/// Whether the lists at the start contain images: a process that was there before has one that was
/// there before. A session of another provider of loads has none.
fn lists_images(facts: &Facts) -> bool {
    facts.machine.processes().iter().any(|process| {
        let images = process.images();
        let past = images.past().iter().copied();
        let mut all = past.chain(images.alive());
        process.listed().at_start && all.any(|image| image.from.is_none())
    })
}

/// Whether events show that a process ran code outside of the kernel: events of a CLR, or sampled
/// addresses. Processes without any code of their own, such as `Registry`, have no images.
fn ran_own_code(process: &Process) -> bool {
    let causes = UnresolvedCause::ALL.into_iter().zip(process.causes());
    let mut without_image = causes.filter(|(cause, _)| *cause == UnresolvedCause::NoImages);
    process.is_managed() || without_image.any(|(_, count)| count > 0)
}
