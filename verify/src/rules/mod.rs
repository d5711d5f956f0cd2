//! What the facts mean: each rule looks at them and reports what breaks it.

mod file;
mod rundown;
mod symbols;

use crate::facts::Facts;
use crate::report::Finding;

/// All findings, the gravest first, then in the order of time.
pub(crate) fn judge(facts: &Facts) -> Vec<Finding> {
    let mut findings = Vec::new();
    file::judge(facts, &mut findings);
    rundown::judge(facts, &mut findings);
    symbols::judge(facts, &mut findings);
    findings
        .sort_by(|a, b| (b.severity, &a.timestamp, a.pid).cmp(&(a.severity, &b.timestamp, b.pid)));
    findings
}
