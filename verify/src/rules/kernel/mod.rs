//! The kernel's session: its lists against its starts and ends, and its samples.

pub(super) mod lives;
mod missing;
pub(super) mod samples;

use etl_format::constants::LogFileMode;

use crate::checks::Facts;

/// Whether a program wrote a selection of events: then missing events mean nothing.
pub(super) fn is_selection(facts: &Facts) -> bool {
    facts.machine.files().iter().any(|file| file.is_selection())
}

/// Whether the oldest events may have been overwritten without a note in the file: events of a ring
/// in memory, or of a circular file that was merged. Such a trace has lost the lists of the start.
pub(super) fn may_be_ring(facts: &Facts) -> bool {
    !facts.machine.census().has_start
        && facts.machine.files().iter().any(|file| {
            let mode = file.header.mode;
            mode.has(LogFileMode::BUFFERING) || mode.has(LogFileMode::RELOG)
        })
}
