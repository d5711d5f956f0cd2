//! When the loads of compiled methods are recorded: a rundown need not list those.

use etl_analysis::machine::{Clr, MethodSign, Process};
use etl_format::Ticks;
use etl_schema::views::clr::Change;

use crate::checks::Facts;
use crate::checks::enablement::{EnablementSource, Known};

/// Whether the loads of compiled methods are recorded over a span of time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Loads {
    /// They are.
    Whole,
    /// Only since this timestamp.
    Later(Ticks),
    /// They are at first, but not from the first of these timestamps to the second.
    Interrupted(Ticks, Ticks),
    /// They are not recorded at all.
    Never,
    /// Nothing decides it.
    Unknown,
}

/// When the loads of compiled methods were logged, as far as enablements and events show it.
#[derive(Clone, Debug)]
pub(super) struct JitLoads {
    /// When they were enabled.
    known: Known,
    /// The first such load of any process.
    pub seen: Option<Ticks>,
    /// Ticks of a second.
    pub second: i64,
    /// The timestamp of the last record.
    last: Ticks,
}

impl JitLoads {
    pub fn of(facts: &Facts) -> Self {
        JitLoads {
            known: facts.runtime_on.jit.known.clone(),
            seen: facts
                .machine
                .processes()
                .iter()
                .filter_map(first_load)
                .min(),
            second: i64::try_from(facts.machine.clock().frequency).unwrap_or(i64::MAX),
            last: facts.machine.span().map_or(Ticks::MAX, |span| span.last),
        }
    }

    /// Whether loads are recorded from a timestamp until another.
    pub fn over(&self, from: Ticks, until: Ticks) -> Loads {
        let soon = from.saturating_add(self.soon());
        let until = until.max(soon);
        let Known {
            times,
            knowledge,
            has_limited,
            ..
        } = &self.known;
        match (knowledge, times.first_gap(soon, until)) {
            (Some(_), None) => Loads::Whole,
            (Some(EnablementSource::Declared), Some((begin, end))) if !has_limited => {
                match (begin > soon, end < until) {
                    (true, _) => Loads::Interrupted(begin, end),
                    (false, true) => Loads::Later(end),
                    (false, false) => Loads::Never,
                }
            }
            _ if self.seen.is_some_and(|at| at <= soon) => Loads::Whole,
            _ => Loads::Unknown,
        }
    }

    /// Whether the loads of a process's compiled methods are recorded since its CLRs started, until
    /// a timestamp.
    pub fn since_start(&self, process: &Process, until: Ticks) -> Loads {
        let starts: Option<Vec<Ticks>> = process.clrs().values().map(Clr::started).collect();
        let Some(start) = starts.and_then(|starts| starts.into_iter().min()) else {
            return Loads::Never;
        };
        if !process.is_recorded_from_start() {
            return Loads::Never;
        }
        match self.over(start, until) {
            // A CLR loads methods as soon as it has started.
            Loads::Unknown => match first_method(process) {
                Some(first) if first.saturating_since(start) <= self.second => Loads::Whole,
                _ => Loads::Unknown,
            },
            known => known,
        }
    }

    /// Until when a process that has no end needs its loads: the last record, or just before, when
    /// providers may have been disabled in order to stop.
    pub fn last(&self) -> Ticks {
        self.last.saturating_add(-self.soon())
    }

    /// Ticks between requests that are made together: they take effect one after the other.
    fn soon(&self) -> i64 {
        self.second / 100
    }
}

/// The first load of code that was compiled at run time.
fn first_load(process: &Process) -> Option<Ticks> {
    first(process, MethodSign::is_jit_load)
}

/// The first load of a method, compiled at run time or before.
pub(super) fn first_method(process: &Process) -> Option<Ticks> {
    first(process, |sign| sign.change == Change::Load)
}

fn first(process: &Process, is_wanted: impl Fn(MethodSign) -> bool) -> Option<Ticks> {
    let loads = process.signs().iter();
    let loads = loads.filter(|count| is_wanted(count.sign));
    loads.filter_map(|count| count.counted.first).min()
}

/// Modules of a CLR with code that was compiled before it ran, if no event names any such method.
pub(super) fn unnamed_precompiled(process: &Process, clr: &Clr) -> usize {
    if process
        .signs()
        .iter()
        .any(|count| count.sign.is_precompiled())
    {
        return 0;
    }
    clr.module_facts()
        .values()
        .filter(|module| module.is_precompiled())
        .count()
}
