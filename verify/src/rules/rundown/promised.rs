//! Rundowns that a declared enablement requests, and that are not there.

use std::collections::BTreeMap;

use etl_analysis::machine::{Bracket, Process};
use etl_control::clr::Rundown;
use etl_control::enable::{CombinedEnablement, Enablement};
use etl_format::Ticks;
use etl_schema::clr::Enumeration;
use etl_schema::providers::CLR_RUNDOWN;

use super::by_clr;
use super::lifetime::ended;
use crate::checks::Facts;
use crate::checks::enablement;
use crate::finding::Severity;
use crate::rules::{Check, recorded_start};

/// A declared enablement of the rundown provider.
struct Request<'f> {
    with: &'f Enablement,
    /// When it began, if that is declared as well.
    from: Option<Ticks>,
}

impl Request<'_> {
    /// Whether each CLR that is running enumerates in this way.
    fn has(&self, kind: Enumeration) -> bool {
        Rundown::from(CombinedEnablement::of([self.with])).brackets(kind)
    }

    fn has_both(&self) -> bool {
        Enumeration::ALL.into_iter().all(|kind| self.has(kind))
    }
}

/// The declared enablements, if there is no other and all are for all processes.
fn requests(facts: &Facts) -> Vec<Request<'_>> {
    let admission = &facts.admission;
    if !admission.is_closed(CLR_RUNDOWN) || admission.is_limited(CLR_RUNDOWN) {
        return Vec::new();
    }
    let enablements = admission.enablements(CLR_RUNDOWN);
    enablements
        .map(|(enabled, with)| Request {
            with,
            from: enabled.from,
        })
        .collect()
}

/// Whether the declaration requests a rundown of a process that certainly lived then.
pub(super) fn is_rundown_promised(facts: &Facts, process: &Process) -> bool {
    requests(facts).iter().any(|request| {
        let is_any = Enumeration::ALL.into_iter().any(|kind| request.has(kind));
        is_any && lived_at(facts, process, request.from)
    })
}

/// Whether events show that a process lived at a time; without a time, until the kernel's session
/// ended.
fn lived_at(facts: &Facts, process: &Process, time: Option<Ticks>) -> bool {
    // The kernel's events show the end of every process that they name.
    let kernel = facts.machine.kernel_span();
    let known_until = kernel
        .filter(|_| process.parent_pid().is_some())
        .map(|span| span.last);
    let Some(time) = time else {
        return known_until.is_some() && ended(process).is_none();
    };
    let Some(span) = process.clr_span() else {
        return false;
    };
    // A CLR that ends at once may end before it enumerates.
    let later = time.saturating_add(facts.ticks_per_second());
    if ended(process).is_some_and(|ended| ended <= later) {
        return false;
    }
    span.first < time && (span.last > later || known_until > Some(later))
}

/// Adds a finding for each CLR that lacks a kind of rundown which the declaration requests. CLRs
/// without any rundown are reported by other rules.
pub(super) fn missing_kinds(check: &mut Check<'_>) {
    let facts = check.facts;
    let requests = requests(facts);
    let is_dated = requests.iter().all(|request| request.from.is_some());
    for process in facts.machine.processes() {
        for (instance, brackets) in by_clr(process) {
            let rundowns = ClrRundowns {
                facts,
                process,
                instance,
                brackets,
            };
            if is_dated {
                for request in &requests {
                    rundowns.check_dated(check, request);
                }
            } else if let [request] = &requests[..] {
                rundowns.check_only(check, request);
            }
        }
    }
    if !is_dated && requests.len() > 1 {
        never_there(check, &requests);
    }
}

/// The rundowns of a CLR that has at least one.
struct ClrRundowns<'a> {
    facts: &'a Facts,
    process: &'a Process,
    instance: u16,
    brackets: Vec<&'a Bracket>,
}

/// How long a CLR may take to begin its rundown, in seconds.
const LONG_WAIT: i64 = 5;

impl ClrRundowns<'_> {
    /// Checks what an enablement requested whose time is known.
    fn check_dated(&self, check: &mut Check<'_>, request: &Request<'_>) {
        let Some(from) = request.from else { return };
        if !lived_at(self.facts, self.process, Some(from)) {
            return;
        }
        // Clocks of sessions advance in steps of up to 16 ms.
        let earliest = from.saturating_add(self.facts.ticks_per_10_ms().saturating_mul(-10));
        let latest = from.saturating_add(LONG_WAIT.saturating_mul(self.facts.ticks_per_second()));
        for kind in Enumeration::ALL {
            let mut of_kind = self.brackets.iter().filter(|b| b.kind == kind);
            let is_there = of_kind.any(|b| {
                let time = b.opened.unwrap_or(b.last);
                earliest <= time && time <= latest
            });
            if request.has(kind) && !is_there {
                self.report(check, kind, request, from);
            }
        }
    }

    /// Checks what the only enablement requests: if both kinds, one follows the other.
    fn check_only(&self, check: &mut Check<'_>, request: &Request<'_>) {
        if !request.has_both() {
            return;
        }
        for kind in Enumeration::ALL {
            let mut of_kind = self.brackets.iter().filter(|b| b.kind == kind);
            if of_kind.next().is_some() {
                continue;
            }
            let Some(last) = self.brackets.iter().map(|b| b.last).max() else {
                continue;
            };
            let soon = last.saturating_add(self.facts.ticks_per_second());
            if ended(self.process).is_some_and(|ended| ended <= soon) {
                continue;
            }
            self.report(check, kind, request, last);
        }
    }

    fn report(&self, check: &mut Check<'_>, kind: Enumeration, request: &Request<'_>, time: Ticks) {
        let message = format!(
            "CLR {} has no {} rundown, which the declared enablement {} requests (R1)",
            self.instance,
            kind.name(),
            enablement::words(request.with)
        );
        check
            .report(message)
            .about(self.process, Some(time))
            .severity(Severity::Error)
            .unless_lost(Some(time), None);
    }
}

/// Adds a finding for a kind of rundown that one of several enablements requests, and that no
/// process has. When each of them began is not known.
fn never_there(check: &mut Check<'_>, requests: &[Request<'_>]) {
    let facts = check.facts;
    let mut seen: BTreeMap<Enumeration, u64> = BTreeMap::new();
    for bracket in facts.machine.processes().iter().flat_map(Process::brackets) {
        *seen.entry(bracket.kind).or_default() += 1;
    }
    for kind in Enumeration::ALL {
        let Some(request) = requests.iter().find(|request| request.has(kind)) else {
            continue;
        };
        if seen.contains_key(&kind) {
            continue;
        }
        for process in facts.machine.processes() {
            if process.brackets().is_empty() || !should_have(facts, process, kind) {
                continue;
            }
            let message = format!(
                "the process has no {} rundown, which the declared enablement {} requests (R1)",
                kind.name(),
                enablement::words(request.with)
            );
            check
                .report(message)
                .about(process, None)
                .severity(Severity::Error)
                .unless_lost(None, None);
        }
    }
}

/// Whether a process with a rundown of the other kind should also have one of this kind, whenever
/// it was requested: it was there before the recording, or until its end.
fn should_have(facts: &Facts, process: &Process, kind: Enumeration) -> bool {
    match kind {
        Enumeration::Start => {
            let mut clrs = process.clrs().values();
            process.started().is_none() && clrs.all(|clr| recorded_start(process, clr).is_none())
        }
        Enumeration::End => lived_at(facts, process, None),
    }
}
