//! Kinds of events of collections, and those that are missing altogether.

use etl_format::Ticks;
use etl_schema::clr::collection::{
    END, FINALIZED, FINALIZING, HEAP_STATS, RESTARTED, RESTARTING, START, SUSPEND, SUSPENDED,
};

/// Kinds of events that every collection logs, and never an event.
pub(crate) struct AbsentKinds {
    /// Time of the first event of any kind.
    pub first: Ticks,
    /// The names of the kinds without an event.
    pub names: Vec<&'static str>,
}

/// A kind of event of collections.
pub(super) struct Kind {
    pub id: u16,
    name: &'static str,
    /// The kinds that never come without it.
    proofs: &'static [u16],
}

/// Kinds of events of collections. A session that gets one gets all of them: they have the same
/// keyword and level. A process is also suspended for other reasons than collections, and not every
/// collection leaves something to finalize.
pub(super) const KINDS: [Kind; 9] = [
    Kind {
        id: START,
        name: "GCStart",
        proofs: &[END, HEAP_STATS],
    },
    Kind {
        id: END,
        name: "GCEnd",
        proofs: &[START, HEAP_STATS],
    },
    Kind {
        id: HEAP_STATS,
        name: "GCHeapStats",
        proofs: &[START, END],
    },
    Kind {
        id: SUSPEND,
        name: "GCSuspendEEBegin",
        proofs: &[START, END, SUSPENDED, RESTARTING, RESTARTED],
    },
    Kind {
        id: SUSPENDED,
        name: "GCSuspendEEEnd",
        proofs: &[START, END, SUSPEND, RESTARTING, RESTARTED],
    },
    Kind {
        id: RESTARTING,
        name: "GCRestartEEBegin",
        proofs: &[START, END, SUSPEND, SUSPENDED, RESTARTED],
    },
    Kind {
        id: RESTARTED,
        name: "GCRestartEEEnd",
        proofs: &[START, END, SUSPEND, SUSPENDED, RESTARTING],
    },
    Kind {
        id: FINALIZING,
        name: "GCFinalizersBegin",
        proofs: &[FINALIZED],
    },
    Kind {
        id: FINALIZED,
        name: "GCFinalizersEnd",
        proofs: &[FINALIZING],
    },
];

/// After this number of events of a kind, a kind that always comes with it is missing.
const MIN_PROOFS: u64 = 10;

/// The index of an event in [`KINDS`].
pub(super) fn kind_index(id: u16) -> Option<usize> {
    KINDS.iter().position(|kind| kind.id == id)
}

/// The number of events of each kind of a CLR.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct KindCounts {
    /// In the order of [`KINDS`].
    counts: [u64; KINDS.len()],
    /// Time of the first event of any of the kinds.
    first: Option<Ticks>,
}

impl KindCounts {
    /// Counts an event, if it is of a kind.
    pub fn add(&mut self, id: u16, timestamp: Ticks) {
        if let Some(index) = kind_index(id)
            && let Some(count) = self.counts.get_mut(index)
        {
            *count += 1;
            self.first.get_or_insert(timestamp);
        }
    }

    /// The number of events with an id.
    pub fn of(&self, id: u16) -> u64 {
        let count = kind_index(id).and_then(|index| self.counts.get(index));
        count.copied().unwrap_or(0)
    }

    /// The kinds without any event, although there are many events of kinds that never come without
    /// them.
    pub fn absent(&self) -> Option<AbsentKinds> {
        let mut names = Vec::new();
        for kind in KINDS {
            let mut proofs = kind.proofs.iter();
            let is_proven = proofs.any(|proof| self.of(*proof) >= MIN_PROOFS);
            if is_proven && self.of(kind.id) == 0 {
                names.push(kind.name);
            }
        }
        if names.is_empty() {
            return None;
        }
        let first = self.first?;
        Some(AbsentKinds { first, names })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn absent_is_a_kind_that_comes_with_others() {
        let of = |ids: &[u16], times: u64| {
            let mut counts = KindCounts::default();
            for _ in 0..times {
                ids.iter().for_each(|id| counts.add(*id, Ticks::new(7)));
            }
            counts.absent().map(|absent| absent.names)
        };
        let all: Vec<u16> = KINDS.iter().map(|kind| kind.id).collect();
        assert_eq!(of(&all, 10), None);
        for kind in KINDS {
            let others: Vec<u16> = all.iter().copied().filter(|id| *id != kind.id).collect();
            assert_eq!(of(&others, 10), Some(vec![kind.name]));
            assert_eq!(of(&others, 9), None, "too few to decide");
        }
        // Without collections, threads are suspended for something else.
        assert_eq!(of(&[SUSPEND, SUSPENDED, RESTARTING, RESTARTED], 10), None);
        assert_eq!(
            of(&[START, END, HEAP_STATS], 10).map(|names| names.len()),
            Some(4)
        );
    }
}
