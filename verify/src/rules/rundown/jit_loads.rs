//! When the loads of compiled methods are recorded, so that a rundown need not list them.

use etl_analysis::machine::{Clr, MethodSign, Process};
use etl_format::Ticks;
use etl_schema::views::clr::Change;

use crate::checks::Facts;
use crate::checks::enablement::{EnablementSource, Known, is_core};
use crate::checks::times::TimeSpan;

/// Whether the loads of compiled methods are recorded over a span of time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Loads {
    /// They are recorded.
    Whole,
    /// They are recorded since this time.
    Later(Ticks),
    /// They are recorded, but not in this time.
    Interrupted(TimeSpan),
    /// They are not recorded at all.
    Never,
    /// The trace does not show it.
    Unknown,
}

/// When the loads of compiled methods were logged, as far as enablements and events show it.
#[derive(Clone, Debug)]
pub(super) struct JitLoads {
    /// When they were enabled for .NET Framework.
    framework: Known,
    /// When they were enabled for .NET Core.
    core: Known,
    /// Time of the first such load of any process.
    pub seen: Option<Ticks>,
    /// Ticks in a second.
    pub second: i64,
    /// Ticks between requests that are made together: they take effect one after the other.
    delay: i64,
    /// Time of the last record.
    last: Ticks,
}

impl JitLoads {
    pub fn of(facts: &Facts) -> Self {
        let processes = facts.machine.processes().iter();
        let seen = processes
            .filter_map(|process| first_load(process, MethodSign::is_jit_load))
            .min();
        JitLoads {
            framework: facts.runtime_on.jit_of_product(false).known.clone(),
            core: facts.runtime_on.jit_of_product(true).known.clone(),
            seen,
            second: facts.ticks_per_second(),
            delay: facts.ticks_per_10_ms(),
            last: facts.machine.span().map_or(Ticks::MAX, |span| span.last),
        }
    }

    /// Whether the loads of a process are recorded from `from` to `until`.
    pub fn over(&self, process: &Process, from: Ticks, until: Ticks) -> Loads {
        let from = from.saturating_add(self.delay);
        let until = until.max(from);
        let known = if is_core(process) {
            &self.core
        } else {
            &self.framework
        };
        let gap = known.times.first_gap(from, until);
        if known.source.is_some() && gap.is_none() {
            return Loads::Whole;
        }
        if let Some(gap) = gap
            && known.source == Some(EnablementSource::Declared)
            && !known.has_limited
        {
            return if gap.from > from {
                Loads::Interrupted(gap)
            } else if gap.to < until {
                Loads::Later(gap.to)
            } else {
                Loads::Never
            };
        }
        match self.seen {
            Some(seen) if seen <= from => Loads::Whole,
            _ => Loads::Unknown,
        }
    }

    /// Whether the loads of a process's compiled methods are recorded from the start of its CLRs to
    /// `until`.
    pub fn since_start(&self, process: &Process, until: Ticks) -> Loads {
        let starts: Option<Vec<Ticks>> = process.clrs().values().map(Clr::started).collect();
        let Some(start) = starts.and_then(|starts| starts.into_iter().min()) else {
            return Loads::Never;
        };
        if !process.is_recorded_from_start() {
            return Loads::Never;
        }
        match self.over(process, start, until) {
            // A CLR loads methods as soon as it has started.
            Loads::Unknown => match first_method(process) {
                Some(first) if first.saturating_since(start) <= self.second => Loads::Whole,
                _ => Loads::Unknown,
            },
            decided => decided,
        }
    }

    /// The time until which a process without an end needs its loads: just before the last record,
    /// since providers may be disabled before the session stops.
    pub fn last(&self) -> Ticks {
        self.last.saturating_add(-self.delay)
    }
}

/// The first load of a method, compiled at run time or before.
pub(super) fn first_method(process: &Process) -> Option<Ticks> {
    first_load(process, |sign| sign.change == Change::Load)
}

/// The first method event that is a load for which `is_wanted` is true.
fn first_load(process: &Process, is_wanted: fn(MethodSign) -> bool) -> Option<Ticks> {
    let loads = process.signs().iter().filter(|count| is_wanted(count.sign));
    loads.filter_map(|count| count.counted.first).min()
}

/// The number of modules of a CLR with precompiled code, if no event names any precompiled method.
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
