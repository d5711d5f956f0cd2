//! Events of the CLR without their stack, although stacks are enabled (E9 in docs/protocol.md).
//!
//! Mostly only stacks show that StackKeyword is enabled. A stack is missing if its thread had
//! stacks before (some threads have none yet when the CLR first logs events of them) and its
//! process has stacks later, so that the keyword was not disabled.

use std::collections::BTreeMap;
use std::sync::OnceLock;

use etl_analysis::machine::Counted;
use etl_format::Ticks;
use etl_schema::Identity;
use etl_schema::tables::{Registry, TableEvent};
use etl_schema::views::clr::ClrProvider;

use super::merge;

/// ThreadCreated: the CLR cannot always walk the stack of a new thread.
const THREAD_CREATED: u16 = 85;

/// Ids of the CLR's events are below this.
const MAX_IDS: usize = 512;

/// A kind of event.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Kind {
    /// The provider.
    pub provider: ClrProvider,
    /// Id of the event.
    pub id: u16,
}

impl Kind {
    /// The kind, if a stack follows the event according to the tables.
    #[must_use]
    pub fn with_stack(provider: ClrProvider, id: u16, version: u8) -> Option<Self> {
        static RUNTIME: OnceLock<Vec<u32>> = OnceLock::new();
        static RUNDOWN: OnceLock<Vec<u32>> = OnceLock::new();
        let cell = match provider {
            ClrProvider::Runtime => &RUNTIME,
            ClrProvider::Rundown => &RUNDOWN,
        };
        let versions_by_id = cell.get_or_init(|| versions_with_stack(provider));
        let versions = versions_by_id.get(usize::from(id))?;
        let bit = 1u32.checked_shl(version.into())?;
        if versions & bit == 0 {
            return None;
        }
        Some(Kind { provider, id })
    }

    /// The name of the event.
    #[must_use]
    pub fn name(self) -> String {
        for event in events_of(self.provider) {
            if let Identity::Modern { id, .. } = event.schema.identity
                && id == self.id
            {
                return event.schema.name.to_string();
            }
        }
        format!("event {}", self.id)
    }
}

/// The events of a provider in the tables.
fn events_of(provider: ClrProvider) -> &'static [TableEvent] {
    match Registry::builtin().provider(provider.guid()) {
        Some(table) => &table.events,
        None => &[],
    }
}

/// For each id, the versions of the event that a stack follows, as bits.
fn versions_with_stack(provider: ClrProvider) -> Vec<u32> {
    let mut out = vec![0; MAX_IDS];
    for event in events_of(provider).iter().filter(|event| event.stack) {
        let Identity::Modern { id, version } = event.schema.identity else {
            continue;
        };
        if provider == ClrProvider::Runtime && id == THREAD_CREATED {
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
    /// The kind of the event.
    pub kind: Kind,
    /// The time of the event.
    pub timestamp: Ticks,
    /// Whether stacks came before on its thread.
    pub proven: bool,
}

impl PendingStack {
    fn counted(&self) -> Counted {
        Counted {
            count: 1,
            first: Some(self.timestamp),
        }
    }
}

/// The stacks of a provider's events in a process.
#[derive(Clone, Copy, Debug, Default)]
struct ProcessStacks {
    /// Time of the last stack.
    last: Option<Ticks>,
    /// Whether events without a stack came since the last stack.
    late: bool,
    /// Events without a stack on threads that had none before.
    unproven: Counted,
    /// The unproven events before the first stack of the process.
    before_first: Counted,
}

/// A kind of event in a process.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct ProcessKind {
    /// Index of the process.
    pub process: usize,
    /// The kind of the events.
    pub kind: Kind,
}

/// Counts of events by process and kind.
pub type ByKind = BTreeMap<ProcessKind, Counted>;

/// Events of a provider in a process, without stacks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct EventsWithoutStacks {
    /// Index of the process.
    pub process: usize,
    /// The provider of the events.
    pub provider: ClrProvider,
    /// The number of events, and the time of the first.
    pub counted: Counted,
}

/// Times until which all sessions have stacks enabled.
#[derive(Clone, Copy, Debug, Default)]
pub struct StacksEnabledUntil {
    /// For the runtime provider; `None` if that is not known.
    pub runtime: Option<Ticks>,
    /// For the rundown provider; `None` if that is not known.
    pub rundown: Option<Ticks>,
}

impl StacksEnabledUntil {
    fn of(&self, provider: ClrProvider) -> Option<Ticks> {
        match provider {
            ClrProvider::Runtime => self.runtime,
            ClrProvider::Rundown => self.rundown,
        }
    }
}

/// Events without their stack.
#[derive(Clone, Debug, Default)]
pub struct MissingStacks {
    /// Two for each process: of the runtime and of the rundown provider.
    processes: Vec<ProcessStacks>,
    /// For each provider and id of an event, whether it ever had a stack.
    stacked: [Vec<bool>; 2],
    /// Events before another stack of their process.
    missing: ByKind,
    /// Events since the last stack of their process.
    late: ByKind,
}

/// The index of a process's stacks of a provider's events.
fn stacks_index(process: usize, provider: ClrProvider) -> Option<usize> {
    process.checked_mul(2)?.checked_add(provider as usize)
}

impl MissingStacks {
    fn stacks_mut(&mut self, process: usize, provider: ClrProvider) -> Option<&mut ProcessStacks> {
        let index = stacks_index(process, provider)?;
        if self.processes.len() <= index {
            self.processes.resize(index + 1, ProcessStacks::default());
        }
        self.processes.get_mut(index)
    }

    /// Adds a stack, with the event that it belongs to.
    #[inline]
    pub fn stack(
        &mut self,
        process: usize,
        provider: ClrProvider,
        event: Option<PendingStack>,
        timestamp: Ticks,
    ) {
        if let Some(event) = event {
            self.set_stacked(event.kind);
        }
        let Some(stacks) = self.stacks_mut(process, provider) else {
            return;
        };
        if stacks.last.replace(timestamp).is_none() {
            stacks.before_first = stacks.unproven;
        }
        if std::mem::take(&mut stacks.late) {
            self.move_late_to_missing(process, provider);
        }
    }

    fn set_stacked(&mut self, kind: Kind) {
        let Some(ids) = self.stacked.get_mut(kind.provider as usize) else {
            return;
        };
        let id = usize::from(kind.id);
        if ids.len() <= id {
            ids.resize(id + 1, false);
        }
        if let Some(is_stacked) = ids.get_mut(id) {
            *is_stacked = true;
        }
    }

    fn is_stacked(&self, kind: Kind) -> bool {
        let ids = self.stacked.get(kind.provider as usize);
        ids.and_then(|ids| ids.get(usize::from(kind.id))) == Some(&true)
    }

    /// A later stack proves that the stacks of earlier events are missing.
    fn move_late_to_missing(&mut self, process: usize, provider: ClrProvider) {
        let first = ProcessKind {
            process,
            kind: Kind { provider, id: 0 },
        };
        let last = ProcessKind {
            process,
            kind: Kind {
                provider,
                id: u16::MAX,
            },
        };
        let proven: Vec<_> = self.late.extract_if(first..=last, |_, _| true).collect();
        for (key, counted) in proven {
            merge(self.missing.entry(key).or_default(), counted);
        }
    }

    /// Adds an event whose thread logged another event instead of a stack.
    #[cold]
    pub fn without_stack(&mut self, process: usize, event: PendingStack) {
        let kind = event.kind;
        let Some(stacks) = self.stacks_mut(process, kind.provider) else {
            return;
        };
        if !event.proven {
            stacks.unproven.add(event.timestamp);
            return;
        }
        stacks.late = true;
        let late = self.late.entry(ProcessKind { process, kind });
        merge(late.or_default(), event.counted());
    }

    /// The stacks of each process and provider.
    fn stacks(&self) -> impl Iterator<Item = (usize, ClrProvider, &ProcessStacks)> {
        let providers = [ClrProvider::Runtime, ClrProvider::Rundown];
        let pairs = self.processes.chunks(providers.len()).enumerate();
        pairs.flat_map(move |(process, stacks)| {
            let by_provider = providers.into_iter().zip(stacks);
            by_provider.map(move |(provider, stacks)| (process, provider, stacks))
        })
    }

    /// Events before the first stack of their process, by process and provider.
    pub fn before_first(&self) -> Vec<EventsWithoutStacks> {
        let mut out = Vec::new();
        for (process, provider, stacks) in self.stacks() {
            if stacks.before_first.count > 0 {
                out.push(EventsWithoutStacks {
                    process,
                    provider,
                    counted: stacks.before_first,
                });
            }
        }
        out
    }

    /// Events after the last stack of their process, on threads that had stacks, by process and
    /// provider.
    pub fn after_last(&self) -> Vec<EventsWithoutStacks> {
        let mut out: Vec<EventsWithoutStacks> = Vec::new();
        for (key, counted) in &self.late {
            let provider = key.kind.provider;
            match out.last_mut() {
                Some(last) if last.process == key.process && last.provider == provider => {
                    merge(&mut last.counted, *counted);
                }
                _ => out.push(EventsWithoutStacks {
                    process: key.process,
                    provider,
                    counted: *counted,
                }),
            }
        }
        out
    }

    /// Events of processes without any stack, by process and provider.
    pub fn of_processes_without(&self) -> Vec<EventsWithoutStacks> {
        let mut out = Vec::new();
        for (process, provider, stacks) in self.stacks() {
            if stacks.last.is_none() && stacks.unproven.count > 0 {
                out.push(EventsWithoutStacks {
                    process,
                    provider,
                    counted: stacks.unproven,
                });
            }
        }
        out
    }

    /// Events whose stack is missing, by process and kind: events before another stack of their
    /// process, and later events as long as stacks are certainly enabled. `pending` has the last
    /// event of each thread, with the index of its process; a stack comes within `delay` ticks.
    #[must_use]
    pub fn missing(
        &self,
        pending: impl Iterator<Item = (usize, PendingStack)>,
        delay: i64,
        enabled_until: StacksEnabledUntil,
    ) -> ByKind {
        let mut out = self.missing.clone();
        for (key, counted) in &self.late {
            if enabled_until.of(key.kind.provider).is_some() {
                merge(out.entry(*key).or_default(), *counted);
            }
        }
        for (process, event) in pending.filter(|(_, event)| event.proven) {
            let kind = event.kind;
            let index = stacks_index(process, kind.provider);
            let stacks = index.and_then(|index| self.processes.get(index));
            let last_stack = stacks.and_then(|stacks| stacks.last);
            // `None` is less than any time.
            let last = last_stack.max(enabled_until.of(kind.provider));
            if last > Some(event.timestamp.saturating_add(delay)) {
                let sum = out.entry(ProcessKind { process, kind }).or_default();
                merge(sum, event.counted());
            }
        }
        self.remove_kinds_without_stacks(&mut out);
        out
    }

    /// Removes kinds that never had a stack: some runtimes log none for a kind, unlike the tables.
    /// A single event proves nothing about its kind.
    fn remove_kinds_without_stacks(&self, missing: &mut ByKind) {
        let mut sums: BTreeMap<Kind, u64> = BTreeMap::new();
        for (key, counted) in &*missing {
            *sums.entry(key.kind).or_default() += counted.count;
        }
        missing.retain(|key, _| self.is_stacked(key.kind) || sums.get(&key.kind) == Some(&1));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use ClrProvider::{Rundown, Runtime};

    fn waits(id: u16, timestamp: Ticks) -> PendingStack {
        PendingStack {
            kind: Kind {
                provider: Runtime,
                id,
            },
            timestamp,
            proven: true,
        }
    }

    #[test]
    fn with_stack_follows_the_tables() {
        assert!(Kind::with_stack(Runtime, 145, 1).is_some(), "a jit");
        assert!(Kind::with_stack(Runtime, 143, 1).is_none(), "a load");
        assert!(Kind::with_stack(Runtime, 85, 0).is_none(), "a thread");
        assert!(Kind::with_stack(Runtime, 145, 200).is_none());
        assert!(Kind::with_stack(Rundown, 999, 0).is_none());
        let kind = Kind {
            provider: Runtime,
            id: 145,
        };
        assert_eq!(kind.name(), "MethodJittingStarted");
    }

    #[test]
    fn missing_counts_events_before_another_stack() {
        let mut missing = MissingStacks::default();
        missing.stack(0, Runtime, Some(waits(145, Ticks::new(10))), Ticks::new(11));
        missing.without_stack(0, waits(145, Ticks::new(20)));
        missing.without_stack(1, waits(145, Ticks::new(21)));
        let count = |missing: &MissingStacks, runtime| {
            let enabled_until = StacksEnabledUntil {
                runtime,
                rundown: None,
            };
            missing
                .missing(std::iter::empty(), 5, enabled_until)
                .values()
                .map(|c| c.count)
                .sum::<u64>()
        };
        assert_eq!(
            (count(&missing, None), count(&missing, Some(Ticks::new(30)))),
            (0, 2)
        );
        missing.stack(0, Runtime, Some(waits(145, Ticks::new(30))), Ticks::new(31));
        assert_eq!(
            (count(&missing, None), count(&missing, Some(Ticks::new(30)))),
            (1, 2)
        );
        // The stack of a thread's last event may still come.
        let unknown = StacksEnabledUntil::default();
        let last = |timestamp| {
            missing
                .missing(std::iter::once((0, waits(145, timestamp))), 5, unknown)
                .len()
        };
        let sum = |timestamp| {
            missing
                .missing(std::iter::once((0, waits(145, timestamp))), 5, unknown)
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
            let all = missing.of_processes_without().into_iter();
            all.map(|events| {
                let Counted { count, first } = events.counted;
                (events.process, count, first.map(Ticks::get))
            })
            .collect()
        };
        assert_eq!(without(&missing), [(0, 2, Some(10)), (1, 1, Some(30))]);
        missing.stack(1, Runtime, None, Ticks::new(40));
        assert_eq!(without(&missing), [(0, 2, Some(10))]);
    }

    #[test]
    fn missing_ignores_kinds_that_never_have_a_stack() {
        let mut missing = MissingStacks::default();
        let count = |missing: &MissingStacks| {
            let unknown = StacksEnabledUntil::default();
            missing.missing(std::iter::empty(), 5, unknown).len()
        };
        missing.without_stack(0, waits(80, Ticks::new(20)));
        missing.stack(0, Runtime, None, Ticks::new(31));
        assert_eq!(count(&missing), 1);
        missing.without_stack(0, waits(80, Ticks::new(40)));
        missing.stack(0, Runtime, None, Ticks::new(51));
        assert_eq!(count(&missing), 0);
    }
}
