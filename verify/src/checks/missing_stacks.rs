//! Events of the CLR without their stack, although stacks are enabled (E9 in docs/protocol.md).
//!
//! Mostly only stacks show that StackKeyword is enabled. A stack is missing if its thread had
//! stacks before (some threads have none yet when the CLR first logs events of them) and its
//! process has stacks later, so that the keyword was not disabled.

use etl_format::Ticks;
use std::collections::BTreeMap;
use std::sync::OnceLock;

use etl_schema::Identity;
use etl_schema::providers::{CLR_RUNDOWN, CLR_RUNTIME};
use etl_schema::tables::Registry;

use etl_analysis::machine::Counted;

/// ThreadCreated: the CLR cannot always walk the stack of a new thread.
const THREAD_CREATED: u16 = 85;

/// Ids of the CLR's events are below this.
const MAX_IDS: usize = 512;

/// A kind of event.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Kind {
    /// Whether it is the rundown provider's.
    pub rundown: bool,
    /// Id of the event.
    pub id: u16,
}

impl Kind {
    /// The kind, if a stack follows the event according to the tables.
    #[must_use]
    pub fn with_stack(rundown: bool, id: u16, version: u8) -> Option<Self> {
        static VERSIONS: OnceLock<[Vec<u32>; 2]> = OnceLock::new();
        let versions = VERSIONS.get_or_init(|| [CLR_RUNTIME, CLR_RUNDOWN].map(table));
        let versions = versions.get(usize::from(rundown))?.get(usize::from(id))?;
        let bit = 1u32.checked_shl(version.into())?;
        (versions & bit != 0).then_some(Kind { rundown, id })
    }

    /// Its name.
    #[must_use]
    pub fn name(self) -> String {
        let provider = if self.rundown {
            CLR_RUNDOWN
        } else {
            CLR_RUNTIME
        };
        let events = Registry::builtin()
            .provider(provider)
            .map_or(&[][..], |p| &p.events);
        let event = events
            .iter()
            .find(|e| matches!(e.schema.identity, Identity::Modern { id, .. } if id == self.id));
        event.map_or_else(
            || format!("event {}", self.id),
            |e| e.schema.name.to_string(),
        )
    }
}

/// Versions of events that a stack follows, as bits, by id.
fn table(provider: etl_format::Guid) -> Vec<u32> {
    let mut out = vec![0; MAX_IDS];
    let events = Registry::builtin()
        .provider(provider)
        .map_or(&[][..], |p| &p.events);
    for event in events.iter().filter(|e| e.stack) {
        let Identity::Modern { id, version } = event.schema.identity else {
            continue;
        };
        if (provider, id) == (CLR_RUNTIME, THREAD_CREATED) {
            continue;
        }
        if let Some(versions) = out.get_mut(usize::from(id)) {
            *versions |= 1u32.checked_shl(version.into()).unwrap_or(0);
        }
    }
    out
}

/// An event whose stack has not come yet.
#[derive(Clone, Copy, Debug)]
pub struct PendingStack {
    /// Its kind.
    pub kind: Kind,
    /// Its timestamp.
    pub timestamp: Ticks,
    /// Whether stacks came before on its thread.
    pub proven: bool,
}

/// The stacks of a process.
#[derive(Clone, Copy, Debug, Default)]
struct ProcessStacks {
    /// Timestamp of the last one.
    last: Option<Ticks>,
    /// Whether events without one came since.
    late: bool,
    /// Events without one on threads that had none before.
    unproven: Counted,
    /// Those of them before the first stack of the process.
    before_first: Counted,
}

/// Counts of events by process and kind.
pub type ByKind = BTreeMap<(usize, Kind), Counted>;

/// Events without their stack.
#[derive(Clone, Debug, Default)]
pub struct MissingStacks {
    /// By process and provider.
    processes: Vec<ProcessStacks>,
    /// Whether stacks came, by provider and id of their events.
    stacked: [Vec<bool>; 2],
    /// Before another stack of the process.
    missing: ByKind,
    /// Since the last stack of the process.
    late: ByKind,
}

impl MissingStacks {
    fn stacks_of(&mut self, process: usize, rundown: bool) -> Option<&mut ProcessStacks> {
        let at = process.checked_mul(2)?.checked_add(usize::from(rundown))?;
        if self.processes.len() <= at {
            self.processes.resize(at + 1, ProcessStacks::default());
        }
        self.processes.get_mut(at)
    }

    /// Adds a stack, with the event that it belongs to.
    #[inline]
    pub fn stack(
        &mut self,
        process: usize,
        rundown: bool,
        of: Option<PendingStack>,
        timestamp: Ticks,
    ) {
        if let Some(PendingStack { kind, .. }) = of
            && let Some(stacked) = self.stacked.get_mut(usize::from(kind.rundown))
        {
            let id = usize::from(kind.id);
            if stacked.len() <= id {
                stacked.resize(id + 1, false);
            }
            if let Some(stacked) = stacked.get_mut(id) {
                *stacked = true;
            }
        }
        let Some(stacks) = self.stacks_of(process, rundown) else {
            return;
        };
        if stacks.last.replace(timestamp).is_none() {
            stacks.before_first = stacks.unproven;
        }
        if std::mem::take(&mut stacks.late) {
            let whole = |id| (process, Kind { rundown, id });
            let proven: Vec<_> = self
                .late
                .range(whole(0)..=whole(u16::MAX))
                .map(|(k, c)| (*k, *c))
                .collect();
            for (kind, counted) in proven {
                self.late.remove(&kind);
                add(&mut self.missing, kind, counted);
            }
        }
    }

    /// Adds an event whose thread logged another event instead of a stack.
    #[cold]
    pub fn without_stack(&mut self, process: usize, of: PendingStack) {
        if let Some(stacks) = self.stacks_of(process, of.kind.rundown) {
            if !of.proven {
                stacks.unproven.add(of.timestamp);
                return;
            }
            stacks.late = true;
            let counted = Counted {
                count: 1,
                first: Some(of.timestamp),
            };
            add(&mut self.late, (process, of.kind), counted);
        }
    }

    /// Events before the first stack of their process, by process and provider.
    pub fn before_first(&self) -> impl Iterator<Item = (usize, bool, Counted)> + '_ {
        let all = self.processes.iter().enumerate();
        let before = all.filter(|(_, stacks)| stacks.before_first.count > 0);
        before.map(|(at, stacks)| (at / 2, at % 2 == 1, stacks.before_first))
    }

    /// Events after the last stack of their process, on threads that had stacks, by process and
    /// provider.
    pub fn after_last(&self) -> BTreeMap<(usize, bool), Counted> {
        let mut out: BTreeMap<(usize, bool), Counted> = BTreeMap::new();
        for ((process, kind), counted) in &self.late {
            let sum = out.entry((*process, kind.rundown)).or_default();
            sum.count += counted.count;
            sum.first = sum.first.into_iter().chain(counted.first).min();
        }
        out
    }

    /// Events of processes without any stack, by process and provider.
    pub fn of_processes_without(&self) -> impl Iterator<Item = (usize, bool, Counted)> + '_ {
        let all = self.processes.iter().enumerate();
        let without = all.filter(|(_, s)| s.last.is_none() && s.unproven.count > 0);
        without.map(|(at, stacks)| (at / 2, at % 2 == 1, stacks.unproven))
    }

    /// Events without a stack, by process and kind: those before another stack of their process,
    /// and those after the last one if `all` has the end of their provider's events, because stacks
    /// were enabled all the time. `waiting` are the last events of threads; a stack comes within
    /// `soon` ticks.
    #[must_use]
    pub fn found(
        &self,
        waiting: impl Iterator<Item = (usize, PendingStack)>,
        soon: i64,
        all: [Option<Ticks>; 2],
    ) -> ByKind {
        let end = |rundown: bool| all.get(usize::from(rundown)).copied().flatten();
        let mut out = self.missing.clone();
        for (key, counted) in &self.late {
            if end(key.1.rundown).is_some() {
                add(&mut out, *key, *counted);
            }
        }
        for (process, of) in waiting.filter(|(_, of)| of.proven) {
            let at = process * 2 + usize::from(of.kind.rundown);
            let last = self.processes.get(at).and_then(|stacks| stacks.last);
            let last = last.into_iter().chain(end(of.kind.rundown)).max();
            if last.is_some_and(|last| of.timestamp.saturating_add(soon) < last) {
                add(
                    &mut out,
                    (process, of.kind),
                    Counted {
                        count: 1,
                        first: Some(of.timestamp),
                    },
                );
            }
        }
        // Some runtimes have no stack for a kind, unlike the tables.
        let mut sums: BTreeMap<Kind, u64> = BTreeMap::new();
        for ((_, kind), counted) in &out {
            *sums.entry(*kind).or_default() += counted.count;
        }
        out.retain(|(_, kind), _| {
            let stacked = self.stacked.get(usize::from(kind.rundown));
            let stacked = stacked.and_then(|ids| ids.get(usize::from(kind.id))) == Some(&true);
            stacked || sums.get(kind) == Some(&1)
        });
        out
    }
}

fn add(to: &mut ByKind, kind: (usize, Kind), counted: Counted) {
    let sum = to.entry(kind).or_default();
    sum.count += counted.count;
    sum.first = sum.first.into_iter().chain(counted.first).min();
}

#[cfg(test)]
mod tests {
    use super::*;

    fn waits(id: u16, timestamp: Ticks) -> PendingStack {
        PendingStack {
            kind: Kind { rundown: false, id },
            timestamp,
            proven: true,
        }
    }

    #[test]
    fn with_stack_follows_the_tables() {
        assert!(Kind::with_stack(false, 145, 1).is_some(), "a jit");
        assert!(Kind::with_stack(false, 143, 1).is_none(), "a load");
        assert!(Kind::with_stack(false, 85, 0).is_none(), "a thread");
        assert!(
            Kind::with_stack(false, 145, 200).is_none() && Kind::with_stack(true, 999, 0).is_none()
        );
        let kind = Kind {
            rundown: false,
            id: 145,
        };
        assert_eq!(kind.name(), "MethodJittingStarted");
    }

    #[test]
    fn found_counts_events_before_another_stack() {
        let mut missing = MissingStacks::default();
        missing.stack(0, false, Some(waits(145, Ticks::new(10))), Ticks::new(11));
        missing.without_stack(0, waits(145, Ticks::new(20)));
        missing.without_stack(1, waits(145, Ticks::new(21)));
        let count = |missing: &MissingStacks, all| {
            missing
                .found(std::iter::empty(), 5, [all, None])
                .values()
                .map(|c| c.count)
                .sum::<u64>()
        };
        assert_eq!(
            (count(&missing, None), count(&missing, Some(Ticks::new(30)))),
            (0, 2)
        );
        missing.stack(0, false, Some(waits(145, Ticks::new(30))), Ticks::new(31));
        assert_eq!(
            (count(&missing, None), count(&missing, Some(Ticks::new(30)))),
            (1, 2)
        );
        // The stack of a thread's last event may still come.
        let last = |timestamp| {
            missing
                .found(std::iter::once((0, waits(145, timestamp))), 5, [None; 2])
                .len()
        };
        let sum = |timestamp| {
            missing
                .found(std::iter::once((0, waits(145, timestamp))), 5, [None; 2])
                .values()
                .map(|c| c.count)
                .sum::<u64>()
        };
        assert_eq!(
            (
                last(Ticks::new(25)),
                sum(Ticks::new(25)),
                sum(Ticks::new(28))
            ),
            (1, 2, 1)
        );
    }

    #[test]
    fn of_processes_without_counts_until_the_first_stack() {
        let mut missing = MissingStacks::default();
        let unproven = |timestamp| PendingStack {
            proven: false,
            ..waits(145, timestamp)
        };
        missing.without_stack(0, unproven(Ticks::new(10)));
        missing.without_stack(0, unproven(Ticks::new(20)));
        missing.without_stack(1, unproven(Ticks::new(30)));
        let without = |missing: &MissingStacks| -> Vec<_> {
            let all = missing.of_processes_without();
            all.map(|(process, _, counted)| (process, counted.count, counted.first.map(Ticks::get)))
                .collect()
        };
        assert_eq!(without(&missing), [(0, 2, Some(10)), (1, 1, Some(30))]);
        missing.stack(1, false, None, Ticks::new(40));
        assert_eq!(without(&missing), [(0, 2, Some(10))]);
    }

    #[test]
    fn found_ignores_kinds_that_never_have_a_stack() {
        let mut missing = MissingStacks::default();
        missing.without_stack(0, waits(80, Ticks::new(20)));
        missing.stack(0, false, None, Ticks::new(31));
        let found = |missing: &MissingStacks| missing.found(std::iter::empty(), 5, [None; 2]).len();
        assert_eq!(found(&missing), 1);
        missing.without_stack(0, waits(80, Ticks::new(40)));
        missing.stack(0, false, None, Ticks::new(51));
        assert_eq!(found(&missing), 0);
    }
}
