//! Addresses that belong to nothing, and methods that belong to no module.

use crate::facts::Facts;
use crate::report::{Finding, Severity};

use super::catalogue::{
    STACKS_UNDEFINED_KEY, SYMBOLS_MODULE_UNKNOWN, SYMBOLS_OVERLAP, SYMBOLS_UNRESOLVED,
};

/// Above this share of unresolved addresses in a process the trace is not usable for it.
const GRAVE_SHARE: f64 = 0.05;

pub(super) fn judge(facts: &Facts, findings: &mut Vec<Finding>) {
    for process in &facts.processes {
        let frames: u64 = process.tallies.iter().map(|t| t.frames).sum();
        let unresolved: u64 = process.tallies.iter().map(|t| t.unresolved).sum();
        if unresolved > 0 {
            let share = unresolved as f64 / frames.max(1) as f64;
            let message = format!(
                "{unresolved} of {frames} addresses ({:.2} %) lie in no managed method and no image",
                share * 100.0
            );
            let mut finding = Finding::new(&SYMBOLS_UNRESOLVED, message).of(facts, process, None);
            if share > GRAVE_SHARE {
                finding.severity = Severity::Error;
            }
            findings.push(finding);
        }
        let unknown = process.unknown_modules();
        if unknown > 0 {
            let message = format!(
                "{unknown} modules are named by methods and never told of: methods without a module \
                 name (Loader keyword missing, or their events lost)"
            );
            findings.push(Finding::new(&SYMBOLS_MODULE_UNKNOWN, message).of(facts, process, None));
        }
        if process.code.overlaps > 0 {
            let message = format!(
                "{} times a method's code was told of where another's still was",
                process.code.overlaps
            );
            findings.push(Finding::new(&SYMBOLS_OVERLAP, message).of(facts, process, None));
        }
    }
    let undefined = facts.undefined_stacks();
    if undefined > 0 {
        findings.push(Finding::new(
            &STACKS_UNDEFINED_KEY,
            format!("{undefined} kernel stacks are told by a key that the trace never defines"),
        ));
    }
}
