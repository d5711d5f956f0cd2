//! The kernel's session: its lists against its starts and ends, and its samples.

pub(super) mod lives;
pub(super) mod samples;

use crate::facts::Facts;

/// Whether a program left out events as it saw fit: what is missing then tells nothing.
pub(super) fn is_selection(facts: &Facts) -> bool {
    facts.files().iter().any(|file| file.is_selection())
}
