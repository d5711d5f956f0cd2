//! The kernel's session: its lists against its starts and ends, and its samples.

pub(super) mod lives;
pub(super) mod samples;

use etl_format::constants::LogFileMode;

use crate::checks::Facts;

/// Whether a program left out events as it saw fit: what is missing then means nothing.
pub(super) fn is_selection(facts: &Facts) -> bool {
    facts.machine.files().iter().any(|file| file.is_selection())
}

/// Whether the oldest events may have been overwritten without a note in the file: those of a ring
/// in memory, and of a circular file that was merged. Such a trace has lost the lists of the start.
pub(super) fn may_be_ring(facts: &Facts) -> bool {
    let is_silent =
        |mode: LogFileMode| mode.has(LogFileMode::BUFFERING) || mode.has(LogFileMode::RELOG);
    !facts.machine.census().has_start
        && facts
            .machine
            .files()
            .iter()
            .any(|file| is_silent(file.header.mode))
}
