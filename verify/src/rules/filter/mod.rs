//! Filtering: events that no enablement explains, and loads that were not recorded.

pub(super) mod missing_loads;
pub(super) mod not_enabled;
pub(super) mod silent_process;
