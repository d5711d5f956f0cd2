//! The kernel's session: its lists against its starts and ends, and its samples.

pub(super) mod lives;
pub(super) mod samples;
