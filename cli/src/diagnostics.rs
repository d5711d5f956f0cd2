//! Warnings about damage of a trace.

use etl_format::read::Damage;

/// Warns on standard error of each region that could not be read.
pub(crate) fn warn(name: &str, damage: &[Damage]) {
    for d in damage {
        stderr_line!("warning: {name}: {} (to {:#x})", d.error, d.range.end);
    }
}
