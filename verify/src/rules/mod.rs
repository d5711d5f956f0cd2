//! What the facts mean: each rule looks at them and reports what breaks it.

pub(crate) mod catalogue;
mod file;
mod rundown;
mod symbols;

use crate::facts::Facts;
use crate::policy::Policy;
use crate::report::Finding;

/// All findings as a policy weighs them, the gravest first, then in the order of time; and how many
/// the policy leaves out.
pub(crate) fn judge(facts: &Facts, policy: &Policy) -> (Vec<Finding>, u64) {
    let mut findings = Vec::new();
    file::judge(facts, &mut findings);
    rundown::judge(facts, &mut findings);
    symbols::judge(facts, &mut findings);
    let (mut findings, left_out) = policy.weigh(facts, findings);
    findings
        .sort_by(|a, b| (b.severity, &a.timestamp, a.pid).cmp(&(a.severity, &b.timestamp, b.pid)));
    (findings, left_out)
}
