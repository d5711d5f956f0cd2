//! What the facts mean: each rule looks at them and reports what breaks it.

mod activity;
mod asked;
pub(crate) mod catalogue;
mod file;
mod filter;
mod merge;
mod payload;
mod repairs;
mod rundown;
mod stacks;
mod symbols;

use crate::facts::Facts;
use crate::policy::Policy;
use crate::report::Finding;

/// What the rules and the policy make of the facts.
#[derive(Debug)]
pub(crate) struct Judgement {
    /// All findings as the policy weighs them: the gravest first, then in the order of time.
    pub findings: Vec<Finding>,
    /// Findings that the policy leaves out.
    pub left_out: u64,
}

pub(crate) fn judge(facts: &Facts, policy: &Policy) -> Judgement {
    let mut findings = Vec::new();
    file::judge(facts, &mut findings);
    filter::judge(facts, &mut findings);
    rundown::judge(facts, &mut findings);
    symbols::judge(facts, &mut findings);
    merge::judge(facts, &mut findings);
    stacks::judge(facts, &mut findings);
    activity::judge(facts, &mut findings);
    payload::judge(facts, &mut findings);
    let (mut findings, left_out) = policy.weigh(facts, findings);
    findings.sort_by(|a, b| {
        (b.severity, a.answer, &a.timestamp, a.pid, a.rule).cmp(&(
            a.severity,
            b.answer,
            &b.timestamp,
            b.pid,
            b.rule,
        ))
    });
    Judgement { findings, left_out }
}

/// `1 module is`, `2 modules are`.
fn plural(count: u64, one: &str, many: &str) -> String {
    format!("{count} {}", if count == 1 { one } else { many })
}
