//! Events of the CLR whose stack did not come although stacks are asked for (rule E9).
//!
//! Events do not say that StackKeyword is on; stacks do. An event without its stack is one too few where
//! stacks came before on its thread (some threads have none yet when the CLR begins to tell of them),
//! and where they still come later in its process, so that the keyword was not turned off.

use std::collections::BTreeMap;
use std::sync::OnceLock;

use etl_schema::Identity;
use etl_schema::providers::{CLR_RUNDOWN, CLR_RUNTIME};
use etl_schema::tables::Registry;

use etl_analysis::machine::Counted;

/// ThreadCreated: its thread is not always one yet whose stack the CLR can take.
const THREAD_CREATED: u16 = 85;

/// Ids of the CLR's providers are below.
const IDS: usize = 512;

/// Which kind of event: the provider, and its id.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Kind {
    /// Whether it is the rundown provider's.
    pub rundown: bool,
    /// Id of the event.
    pub id: u16,
}

impl Kind {
    /// The kind, if the tables say that a stack follows the event where StackKeyword is on.
    #[must_use]
    pub fn with_stack(rundown: bool, id: u16, version: u8) -> Option<Self> {
        static VERSIONS: OnceLock<[Vec<u32>; 2]> = OnceLock::new();
        let versions = VERSIONS.get_or_init(|| [CLR_RUNTIME, CLR_RUNDOWN].map(table));
        let versions = versions.get(usize::from(rundown))?.get(usize::from(id))?;
        let bit = 1u32.checked_shl(version.into())?;
        (versions & bit != 0).then_some(Kind { rundown, id })
    }

    /// What people call it.
    #[must_use]
    pub fn name(self) -> String {
        let provider = if self.rundown { CLR_RUNDOWN } else { CLR_RUNTIME };
        let events = Registry::builtin().provider(provider).map_or(&[][..], |p| &p.events);
        let event = events
            .iter()
            .find(|e| matches!(e.schema.identity, Identity::Modern { id, .. } if id == self.id));
        event.map_or_else(|| format!("event {}", self.id), |e| e.schema.name.to_string())
    }
}

/// Versions of events that a stack follows, as bits, by id.
fn table(provider: etl_format::Guid) -> Vec<u32> {
    let mut out = vec![0; IDS];
    let events = Registry::builtin().provider(provider).map_or(&[][..], |p| &p.events);
    for event in events.iter().filter(|e| e.stack) {
        let Identity::Modern { id, version } = event.schema.identity else { continue };
        if (provider, id) == (CLR_RUNTIME, THREAD_CREATED) {
            continue;
        }
        if let Some(versions) = out.get_mut(usize::from(id)) {
            *versions |= 1u32.checked_shl(version.into()).unwrap_or(0);
        }
    }
    out
}

/// An event that waits for its stack.
#[derive(Clone, Copy, Debug)]
pub struct Waits {
    /// Of which kind it is.
    pub kind: Kind,
    /// Its timestamp.
    pub timestamp: i64,
    /// Whether stacks came before on its thread.
    pub proven: bool,
}

/// What is known of the stacks of a process.
#[derive(Clone, Copy, Debug, Default)]
struct Asked {
    /// Timestamp of the last one.
    last: Option<i64>,
    /// Whether events without one came since.
    late: bool,
}

/// Counts of events by process and kind.
pub type ByKind = BTreeMap<(usize, Kind), Counted>;

/// Events whose stack did not come.
#[derive(Clone, Debug, Default)]
pub struct Bare {
    /// By process and provider.
    asked: Vec<Asked>,
    /// Whether stacks came, by provider and id of their events.
    stacked: [Vec<bool>; 2],
    /// Before another stack of the process.
    missing: ByKind,
    /// Since the last stack of the process.
    late: ByKind,
}

impl Bare {
    fn asked(&mut self, process: usize, rundown: bool) -> Option<&mut Asked> {
        let at = process.checked_mul(2)?.checked_add(usize::from(rundown))?;
        if self.asked.len() <= at {
            self.asked.resize(at + 1, Asked::default());
        }
        self.asked.get_mut(at)
    }

    /// The stack of an event, or of none.
    #[inline]
    pub fn stack(&mut self, process: usize, rundown: bool, of: Option<Waits>, timestamp: i64) {
        if let Some(Waits { kind, .. }) = of
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
        let Some(asked) = self.asked(process, rundown) else { return };
        asked.last = Some(timestamp);
        if std::mem::take(&mut asked.late) {
            let whole = |id| (process, Kind { rundown, id });
            let proven: Vec<_> =
                self.late.range(whole(0)..=whole(u16::MAX)).map(|(k, c)| (*k, *c)).collect();
            for (kind, counted) in proven {
                self.late.remove(&kind);
                add(&mut self.missing, kind, counted);
            }
        }
    }

    /// An event whose thread went on without a stack.
    #[cold]
    pub fn none(&mut self, process: usize, of: Waits) {
        if !of.proven {
            return;
        }
        if let Some(asked) = self.asked(process, of.kind.rundown) {
            asked.late = true;
            let counted = Counted { count: 1, first: Some(of.timestamp) };
            add(&mut self.late, (process, of.kind), counted);
        }
    }

    /// Events without a stack, by process and kind: those before another stack of their process, and,
    /// where `all` says of a provider that it was asked for stacks all the time, those behind the last.
    /// `waiting` are the last events of threads; a stack comes within `soon` ticks, if it comes before
    /// the `end` of its provider's events.
    #[must_use]
    pub fn found(
        &self,
        waiting: impl Iterator<Item = (usize, Waits)>,
        soon: i64,
        all: [Option<i64>; 2],
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
            let last = self.asked.get(at).and_then(|asked| asked.last);
            let last = last.into_iter().chain(end(of.kind.rundown)).max();
            if last.is_some_and(|last| of.timestamp.saturating_add(soon) < last) {
                add(&mut out, (process, of.kind), Counted { count: 1, first: Some(of.timestamp) });
            }
        }
        // A kind that is never seen with a stack has none in this runtime, whatever the tables say.
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

    fn waits(id: u16, timestamp: i64) -> Waits {
        Waits { kind: Kind { rundown: false, id }, timestamp, proven: true }
    }

    #[test]
    fn the_tables_say_which_events_have_a_stack() {
        assert!(Kind::with_stack(false, 145, 1).is_some(), "a jit");
        assert!(Kind::with_stack(false, 143, 1).is_none(), "a load");
        assert!(Kind::with_stack(false, 85, 0).is_none(), "a thread");
        assert!(
            Kind::with_stack(false, 145, 200).is_none() && Kind::with_stack(true, 999, 0).is_none()
        );
        let kind = Kind { rundown: false, id: 145 };
        assert_eq!(kind.name(), "MethodJittingStarted");
    }

    #[test]
    fn what_has_no_stack_is_missing_once_another_one_proves_it() {
        let mut bare = Bare::default();
        bare.stack(0, false, Some(waits(145, 10)), 11);
        bare.none(0, waits(145, 20));
        bare.none(1, waits(145, 21));
        let count = |bare: &Bare, all| {
            bare.found(std::iter::empty(), 5, [all, None]).values().map(|c| c.count).sum::<u64>()
        };
        assert_eq!((count(&bare, None), count(&bare, Some(30))), (0, 2));
        bare.stack(0, false, Some(waits(145, 30)), 31);
        assert_eq!((count(&bare, None), count(&bare, Some(30))), (1, 2));
        // The last event of a thread has its time.
        let last =
            |timestamp| bare.found(std::iter::once((0, waits(145, timestamp))), 5, [None; 2]).len();
        let sum = |timestamp| {
            bare.found(std::iter::once((0, waits(145, timestamp))), 5, [None; 2])
                .values()
                .map(|c| c.count)
                .sum::<u64>()
        };
        assert_eq!((last(25), sum(25), sum(28)), (1, 2, 1));
    }

    #[test]
    fn a_kind_that_never_has_a_stack_needs_none() {
        let mut bare = Bare::default();
        bare.none(0, waits(80, 20));
        bare.stack(0, false, None, 31);
        let found = |bare: &Bare| bare.found(std::iter::empty(), 5, [None; 2]).len();
        assert_eq!(found(&bare), 1);
        bare.none(0, waits(80, 40));
        bare.stack(0, false, None, 51);
        assert_eq!(found(&bare), 0);
    }
}
