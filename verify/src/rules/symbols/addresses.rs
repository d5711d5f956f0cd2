//! The shares of addresses that resolve, have a name, or have a PDB identity.

use etl_analysis::address::{Origin, Tallies, Tally};
use etl_analysis::machine::{Clr, Process, UnresolvedCause};
use etl_format::Ticks;

use crate::checks::Facts;
use crate::finding::{Found, Severity};
use crate::gates::{is_below, percent};
use crate::rules::commands::{RECORDING, RECORDING_WITH_KERNEL, RUNTIME_CLOCK};
use crate::rules::kernel::may_be_ring;
use crate::rules::{Check, Rule, plural};

/// Up to this share of unresolved addresses is usual in a process: stubs of the runtime, pages of
/// the hardware abstraction layer, code that a rasterizer or a script engine generates.
const USUAL_SHARE: f64 = 0.02;
/// Above this share the trace is not usable for the process.
const SEVERE_SHARE: f64 = 0.05;
/// The share of fewer addresses proves nothing, unless they are most addresses of the process.
const FEW: u64 = 10;

/// The same shares for a stream of EventPipe, which has no images: each stack may have one address
/// in the runtime, the stub through which native code calls managed code (1.5 to 5 % of the
/// addresses of .NET Core 3.1 to 10).
const STREAM_SHARES: Shares = Shares {
    usual: 0.05,
    severe: 0.1,
};

/// Shares of unresolved addresses.
#[derive(Clone, Copy)]
struct Shares {
    usual: f64,
    severe: f64,
}

impl Shares {
    /// The shares for a trace.
    fn of(facts: &Facts) -> Self {
        if facts.is_event_pipe() {
            STREAM_SHARES
        } else {
            Shares {
                usual: USUAL_SHARE,
                severe: SEVERE_SHARE,
            }
        }
    }

    /// The severity of so many unresolved addresses of a process.
    fn severity(self, unresolved: u64, addresses: u64) -> Severity {
        let share = unresolved as f64 / addresses.max(1) as f64;
        let few = unresolved < FEW && share <= 0.5;
        match share {
            _ if few => Severity::Note,
            s if s > self.severe => Severity::Error,
            s if s > self.usual => Severity::Warning,
            _ => Severity::Note,
        }
    }
}

/// The unresolved addresses of a process.
struct Unresolved {
    count: u64,
    /// The number of all addresses of the process, without native ones that no session could name.
    addresses: u64,
    /// Whether native code was not recorded, because the kernel had no session.
    lacks_native: bool,
    /// Addresses in code or in images of another time.
    wrong_time: u64,
    first: Option<Ticks>,
    /// The last time at which an event could have resolved them: at the last address, or in a later
    /// rundown.
    until: Option<Ticks>,
    shares: Shares,
}

impl Unresolved {
    fn of(facts: &Facts, process: &Process) -> Self {
        let mut wrong_time = 0;
        for (cause, count) in UnresolvedCause::ALL.into_iter().zip(process.causes()) {
            if matches!(
                cause,
                UnresolvedCause::MethodAtOtherTime | UnresolvedCause::ImageAtOtherTime
            ) {
                wrong_time += count;
            }
        }
        let last = process.unresolved_span().map(|span| span.last);
        let all = sum(process.tallies());
        Unresolved {
            count: all.unresolved,
            addresses: all.recorded(),
            lacks_native: all.not_recorded > 0,
            wrong_time,
            first: process.unresolved_span().map(|span| span.first),
            until: facts.machine.rundown_span().map(|span| span.last).max(last),
            shares: Shares::of(facts),
        }
    }

    fn severity(&self) -> Severity {
        self.shares.severity(self.count, self.addresses)
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
              error. Addresses that idle processors run are not counted, and neither is native code \
              in a recording without the kernel: it is not recorded, and no reason for a verdict.",
    remedy: "Fix the rundown findings first, if there are any. A few unresolved addresses are \
             normal: stubs have no events. If there are many in all processes, record image events \
             of the kernel (LOADER), loads of the runtime and a rundown:",
    commands: RECORDING_WITH_KERNEL,
    check: unresolved,
};

fn unresolved(check: &mut Check<'_>) {
    for process in check.facts.machine.processes() {
        let unresolved = Unresolved::of(check.facts, process);
        // `symbols.wrong-time` reports the others.
        if unresolved.count <= unresolved.wrong_time {
            continue;
        }
        let mut causes = Vec::new();
        for (cause, count) in UnresolvedCause::ALL.into_iter().zip(process.causes()) {
            if cause == UnresolvedCause::NoImages && unresolved.lacks_native {
                continue;
            }
            if count > 0 {
                causes.push(format!("{}: {count}", cause.message()));
            }
        }
        let mut severity = unresolved.severity();
        let mut remark = "";
        // Threads whose events were overwritten are counted for the idle process.
        if process.pid() == 0 && may_be_ring(check.facts) {
            severity = Severity::Note;
            remark = ", or of threads whose events were overwritten";
        }
        let message = format!(
            "{} of {} addresses ({:.2} %) are in no managed method and no image ({}){remark}",
            unresolved.count,
            unresolved.addresses,
            unresolved.count as f64 / unresolved.addresses.max(1) as f64 * 100.0,
            causes.join(", "),
        );
        check
            .report(message)
            .about(process, unresolved.first)
            .amount(unresolved.count)
            .unless_lost(None, unresolved.until)
            .severity(severity);
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
        let unresolved = Unresolved::of(check.facts, process);
        if unresolved.wrong_time == 0 {
            continue;
        }
        let message = format!(
            "{} in code or in an image that was there at another time",
            plural(unresolved.wrong_time, "address is", "addresses are")
        );
        let found = check
            .report(message)
            .about(process, unresolved.first)
            .amount(unresolved.wrong_time)
            .unless_lost(None, unresolved.until);
        if unresolved.count == unresolved.wrong_time {
            found.severity(unresolved.severity());
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
        let clrs = process.clrs().values();
        let without_pdb: usize = clrs.map(unnamed_modules_without_pdb).sum();
        if unnamed == 0 || without_pdb == 0 {
            continue;
        }
        let message = format!(
            "{} in methods without a name; {without_pdb} of their modules have no PDB identity",
            plural(unnamed, "address is", "addresses are")
        );
        check.report(message).about(process, None).amount(unnamed);
    }
}

/// The number of modules with addresses in unnamed methods and without a PDB identity.
fn unnamed_modules_without_pdb(clr: &Clr) -> usize {
    let mut count = 0;
    for id in clr.unnamed_modules() {
        let lacks_pdb = match clr.module_facts().get(id) {
            Some(module) => module.il_pdb.is_none() && !module.is_dynamic(),
            None => true,
        };
        count += usize::from(lacks_pdb);
    }
    count
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
              If a rundown lists precompiled methods, the other addresses are in stubs between \
              them, which is only a note.",
    remedy: "Create NGEN PDBs while merging on the recorded machine (PerfView does it), or enable \
             NGenKeyword (0x20) in the rundown session:",
    commands: RECORDING,
    check: unnamed_precompiled,
};

fn unnamed_precompiled(check: &mut Check<'_>) {
    for process in check.facts.machine.processes() {
        let unidentified = process.precompiled_unidentified();
        if unidentified == 0 {
            continue;
        }
        let message = format!(
            "{unidentified} of {} addresses in precompiled code are in no listed method and in no \
             image with a known PDB",
            process.precompiled()
        );
        let found = check.report(message).about(process, None);
        let found = found.amount(unidentified);
        let mut signs = process.signs().iter();
        let lists_precompiled = signs.any(|count| count.sign.is_listed_precompiled());
        if lists_precompiled && unidentified * STUB_PART <= process.precompiled() {
            found.severity(Severity::Note);
        }
    }
}

/// One of so many addresses in precompiled code may be in a stub.
const STUB_PART: u64 = 10;

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

/// A share of addresses.
#[derive(Clone, Copy)]
struct Share {
    part: u64,
    whole: u64,
}

impl Share {
    /// The share of addresses that resolve.
    fn resolved(tally: Tally) -> Self {
        Share {
            part: tally.resolved(),
            whole: tally.recorded(),
        }
    }
}

fn coverage(check: &mut Check<'_>) {
    let gates = check.gates;
    let tallies = check.facts.machine.tallies();
    let all = sum(tallies);
    let sampled = tallies
        .get(Origin::Sample as usize)
        .copied()
        .unwrap_or_default();
    let resolved = Share::resolved(all);
    require(check, gates.coverage, resolved, "addresses resolve");
    let sampled = Share::resolved(sampled);
    require(check, gates.sample_coverage, sampled, "samples resolve");
    let named = Share {
        part: all.named,
        whole: all.managed,
    };
    let what = "addresses in managed code have a method name";
    require(check, gates.named_methods, named, what);
    let identified = Share {
        part: all.identified,
        whole: all.image,
    };
    let what = "addresses in images have a PDB identity";
    require(check, gates.pdb_identity, identified, what);
    for process in check.facts.machine.processes() {
        let resolved = Share::resolved(sum(process.tallies()));
        let what = "addresses of the process resolve";
        if let Some(found) = require(check, gates.process_coverage, resolved, what) {
            found.about(process, None);
        }
    }
}

fn sum(tallies: Tallies) -> Tally {
    let mut sum = Tally::default();
    for tally in tallies {
        sum += tally;
    }
    sum
}

/// Adds a finding if a share is below a minimum in percent.
fn require<'c>(
    check: &'c mut Check<'_>,
    minimum: Option<f64>,
    share: Share,
    what: &str,
) -> Option<Found<'c>> {
    let minimum = minimum?;
    let Share { part, whole } = share;
    if !is_below(part, whole, minimum) {
        return None;
    }
    let percent = percent(part, whole);
    Some(check.report(format!(
        "{part} of {whole} {what} ({percent}); the minimum is {minimum} %"
    )))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn severity_follows_the_share_of_unresolved_addresses() {
        let all = |cases: &[(u64, u64)], expected| {
            for &(unresolved, addresses) in cases {
                let shares = Shares {
                    usual: USUAL_SHARE,
                    severe: SEVERE_SHARE,
                };
                let found = shares.severity(unresolved, addresses);
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
