//! What addresses resolve to.

use etl_analysis::address::{Origin, Tallies, Tally};
use etl_analysis::machine::{Process, UnresolvedCause};
use etl_format::Ticks;

use crate::checks::Facts;
use crate::finding::Severity;
use crate::rules::commands::{RECORDING, RECORDING_WITH_KERNEL, RUNTIME_CLOCK};
use crate::rules::kernel::may_be_ring;
use crate::rules::{Check, Rule, plural};
use crate::share::{is_below, percent};

/// Unresolved addresses up to this share of a process's are usual: stubs of the runtime, pages of
/// the hardware abstraction layer, code that a rasterizer or a script engine generates.
const USUAL_SHARE: f64 = 0.02;
/// Above this share the trace is not usable for the process.
const SEVERE_SHARE: f64 = 0.05;
/// The share of fewer addresses proves nothing, unless they are most of the process's.
const FEW: u64 = 10;

/// The severity of so many unresolved addresses of a process.
fn severity(unresolved: u64, addresses: u64) -> Severity {
    let share = unresolved as f64 / addresses.max(1) as f64;
    let few = unresolved < FEW && share <= 0.5;
    match share {
        _ if few => Severity::Note,
        s if s > SEVERE_SHARE => Severity::Error,
        s if s > USUAL_SHARE => Severity::Warning,
        _ => Severity::Note,
    }
}

/// The unresolved addresses of a process.
struct Unresolved {
    count: u64,
    /// All addresses of the process.
    addresses: u64,
    /// Those in code or in images of another time.
    wrong_time: u64,
    first: Option<Ticks>,
    /// The end of the span in which events could have resolved them: they come at the time of the
    /// addresses or, in a rundown, later; or they came before.
    until: Option<Ticks>,
}

impl Unresolved {
    fn of(facts: &Facts, process: &Process) -> Self {
        let causes = UnresolvedCause::ALL.into_iter().zip(process.causes());
        let wrong_time = causes
            .filter(|(cause, _)| {
                matches!(
                    cause,
                    UnresolvedCause::MethodAtOtherTime | UnresolvedCause::ImageAtOtherTime
                )
            })
            .map(|(_, count)| count)
            .sum();
        let last = process.unresolved_span().map(|span| span.last);
        Unresolved {
            count: process.tallies().iter().map(|t| t.unresolved).sum(),
            addresses: process.tallies().iter().map(|t| t.frames).sum(),
            wrong_time,
            first: process.unresolved_span().map(|span| span.first),
            until: facts.machine.rundown_span().map(|span| span.last).max(last),
        }
    }
}

pub(in crate::rules) const UNRESOLVED: Rule = Rule {
    id: "symbols.unresolved",
    statement: "Every address is in a managed method or in an image.",
    severity: Severity::Warning,
    source: "symbol resolution",
    protocol: &["S1", "S7"],
    meaning: "These addresses belong to nothing that the trace knows: stubs that the runtime \
              generates, code that was freed, or methods without events. Up to 2 % of a process's \
              addresses are usual in a complete trace and only a note, and so are fewer than ten \
              where most resolve. Above 5 % the trace is not usable for the process, which is an \
              error. What idle processors run does not count.",
    remedy: "Fix the rundown findings first, if there are any. A few unresolved addresses are \
             normal: stubs have no events. If there are many in all processes, record image events \
             of the kernel (LOADER), loads of the runtime and a rundown:",
    commands: RECORDING_WITH_KERNEL,
    check: unresolved,
};

fn unresolved(check: &mut Check<'_>) {
    for process in check.facts.machine.processes() {
        let own = Unresolved::of(check.facts, process);
        // `symbols.wrong-time` reports the others.
        if own.count <= own.wrong_time {
            continue;
        }
        let causes = UnresolvedCause::ALL
            .into_iter()
            .zip(process.causes())
            .filter(|(_, count)| *count > 0);
        let causes: Vec<_> = causes
            .map(|(why, count)| format!("{}: {count}", why.message()))
            .collect();
        // Threads that no event names any more count here, and what they ran cannot be known.
        let is_of_ring = process.pid() == 0 && may_be_ring(check.facts);
        let message = format!(
            "{} of {} addresses ({:.2} %) are in no managed method and no image ({}){}",
            own.count,
            own.addresses,
            own.count as f64 / own.addresses.max(1) as f64 * 100.0,
            causes.join(", "),
            if is_of_ring {
                ", or of threads whose events were overwritten"
            } else {
                ""
            },
        );
        let found = check
            .find(message)
            .of(process, own.first)
            .unless_lost(None, own.until);
        let severity = severity(own.count, own.addresses);
        found.severity(if is_of_ring { Severity::Note } else { severity });
    }
}

pub(in crate::rules) const WRONG_TIME: Rule = Rule {
    id: "symbols.wrong-time",
    statement: "Code and images exist at the times of the addresses in them.",
    severity: Severity::Note,
    source: "symbol resolution",
    protocol: &["S1", "S7"],
    meaning: "Addresses are in code or images that the trace knows, but of another time: they ran \
              before the load event or after the unload event. If nothing else is unresolved, \
              their share sets the severity as in symbols.unresolved.",
    remedy: "Nothing for a few. Many mean that the clocks of merged files differ: start all \
             sessions with the same clock:",
    commands: &[RUNTIME_CLOCK],
    check: wrong_time,
};

fn wrong_time(check: &mut Check<'_>) {
    for process in check.facts.machine.processes() {
        let own = Unresolved::of(check.facts, process);
        if own.wrong_time == 0 {
            continue;
        }
        let message = format!(
            "{} in code or in an image that was there at another time",
            plural(own.wrong_time, "address is", "addresses are")
        );
        let found = check
            .find(message)
            .of(process, own.first)
            .unless_lost(None, own.until);
        if own.count == own.wrong_time {
            found.severity(severity(own.count, own.addresses));
        }
    }
}

pub(in crate::rules) const UNNAMED: Rule = Rule {
    id: "symbols.unnamed",
    statement: "Every address in managed code is in a method that has a name, or whose module's \
                PDB is known.",
    severity: Severity::Warning,
    source: "symbol resolution",
    protocol: &["S3", "E4"],
    meaning: "The session's level was below 5: events identify methods by token only, and nothing \
              in the trace leads from there to a name.",
    remedy: "Enable both providers at level 5 (verbose):",
    commands: RECORDING,
    check: unnamed,
};

fn unnamed(check: &mut Check<'_>) {
    for process in check.facts.machine.processes() {
        let unnamed: u64 = process
            .tallies()
            .iter()
            .map(|t| t.managed - t.named.min(t.managed))
            .sum();
        let without_pdb: usize = process
            .clrs()
            .values()
            .map(|clr| {
                let no_pdb = |id: &&u64| {
                    clr.module_facts()
                        .get(id)
                        .is_none_or(|m| m.il_pdb.is_none() && !m.is_dynamic())
                };
                clr.unnamed_modules().iter().filter(no_pdb).count()
            })
            .sum();
        let message = format!(
            "{} in methods without a name; {without_pdb} of their modules have no PDB identity",
            plural(unnamed, "address is", "addresses are")
        );
        if unnamed > 0 && without_pdb > 0 {
            check.find(message).of(process, None);
        }
    }
}

pub(in crate::rules) const UNNAMED_PRECOMPILED: Rule = Rule {
    id: "symbols.unnamed-precompiled",
    statement: "Every address in a native image of managed code is in a method that a rundown \
                lists, or the image's PDB is known.",
    severity: Severity::Warning,
    source: "symbol resolution",
    protocol: &["S5"],
    meaning: "Precompiled methods have no names: the rundown does not list them, and no PDB to \
              look them up is identified. The PDB of ready-to-run code's IL has no native addresses. \
              Where a rundown lists precompiled methods, what is left are stubs between them, which \
              is only a note.",
    remedy: "Create NGEN PDBs while merging on the recorded machine (PerfView does it), or enable \
             NGenKeyword (0x20) in the rundown session:",
    commands: RECORDING,
    check: unnamed_precompiled,
};

fn unnamed_precompiled(check: &mut Check<'_>) {
    for process in check.facts.machine.processes() {
        let unidentified = process.precompiled_unidentified();
        let message = format!(
            "{unidentified} of {} addresses in precompiled code are in no listed method and in no \
             image with a known PDB",
            process.precompiled()
        );
        if unidentified == 0 {
            continue;
        }
        let lists = process
            .signs()
            .iter()
            .any(|count| count.sign.is_listed_precompiled());
        let found = check.find(message).of(process, None);
        if lists && unidentified * USUAL_PARTS <= process.precompiled() {
            found.severity(Severity::Note);
        }
    }
}

/// One of so many addresses in precompiled code is in a stub.
const USUAL_PARTS: u64 = 10;

pub(in crate::rules) const COVERAGE: Rule = Rule {
    id: "symbols.coverage",
    statement: "The shares of addresses that resolve, have a name, or have an image identity are \
                at least those that the user requires.",
    severity: Severity::Error,
    source: "--min-coverage and the other --min options, or etlverify.toml",
    protocol: &["S8"],
    meaning: "The trace misses a minimum that was set for it.",
    remedy: "The other findings show the reasons. A recording like this one has everything that \
             resolves addresses:",
    commands: RECORDING_WITH_KERNEL,
    check: coverage,
};

fn coverage(check: &mut Check<'_>) {
    let Check { facts, gates, .. } = *check;
    let sum = |tallies: Tallies| {
        let mut sum = Tally::default();
        tallies.into_iter().for_each(|tally| sum += tally);
        sum
    };
    let tallies = facts.machine.tallies();
    let all = sum(tallies);
    let sampled = tallies
        .get(Origin::Sample as usize)
        .copied()
        .unwrap_or_default();
    let resolved = |t: Tally| (t.frames.saturating_sub(t.unresolved), t.frames);
    let mut require = |minimum: Option<f64>, (part, whole): (u64, u64), what: &str, process| {
        let Some(minimum) = minimum else { return };
        if is_below(part, whole, minimum) {
            let share = percent(part, whole);
            let found = check.find(format!(
                "{part} of {whole} {what} ({share}); the minimum is {minimum} %"
            ));
            if let Some(process) = process {
                found.of(process, None);
            }
        }
    };
    require(gates.coverage, resolved(all), "addresses resolve", None);
    require(
        gates.sample_coverage,
        resolved(sampled),
        "samples resolve",
        None,
    );
    let named = (all.named, all.managed);
    require(
        gates.named_methods,
        named,
        "addresses in managed code have a method name",
        None,
    );
    let identified = (all.identified, all.image);
    require(
        gates.pdb_identity,
        identified,
        "addresses in images have a PDB identity",
        None,
    );
    for process in facts.machine.processes() {
        let own = resolved(sum(process.tallies()));
        let what = "addresses of the process resolve";
        require(gates.process_coverage, own, what, Some(process));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn severity_follows_the_share_of_unresolved_addresses() {
        let all = |cases: &[(u64, u64)], expected| {
            for &(unresolved, addresses) in cases {
                let found = severity(unresolved, addresses);
                assert_eq!(found, expected, "{unresolved} of {addresses}");
            }
        };
        // PerfView's own trace, and a few addresses of a process that was rarely sampled.
        all(
            &[(26, 1_733), (328, 25_592), (20, 1_000), (9, 20), (1, 3)],
            Severity::Note,
        );
        all(&[(21, 1_000), (50, 1_000), (10, 250)], Severity::Warning);
        all(
            &[(51, 1_000), (10, 20), (9, 17), (1, 1), (u64::MAX, u64::MAX)],
            Severity::Error,
        );
    }
}
