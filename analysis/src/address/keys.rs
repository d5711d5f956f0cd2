//! Uses of stack keys that are not defined yet.

use etl_format::Ticks;
use std::collections::BTreeMap;
use std::collections::btree_map;
use std::collections::hash_map;

use foldhash::{HashMap, HashSet};

use crate::counted::Counted;
use crate::keys::ProcessIndex;

/// Uses of stack keys that are kept; others stay undefined.
const MAX_USES: usize = 1 << 20;

/// How a stack key was used in a process.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct KeyUse {
    pub count: u64,
    pub first: Ticks,
    pub last: Ticks,
}

impl KeyUse {
    fn once(timestamp: Ticks) -> Self {
        KeyUse {
            count: 1,
            first: timestamp,
            last: timestamp,
        }
    }

    fn again(&mut self, timestamp: Ticks) {
        self.count += 1;
        self.last = timestamp;
    }
}

/// Uses of stack keys that are not defined yet.
#[derive(Clone, Debug, Default)]
pub(crate) struct Keys {
    /// By key: the process that used it first. Most keys are used by one process.
    first: HashMap<u64, (ProcessIndex, KeyUse)>,
    /// By key and process: the others.
    others: BTreeMap<(u64, ProcessIndex), KeyUse>,
    /// Uses beyond the limit.
    beyond: u64,
    /// Keys that were used.
    ever: HashSet<u64>,
    /// Keys that were defined when no use of them was known, and when that was.
    unused: HashMap<u64, Ticks>,
}

impl Keys {
    /// A key is defined, and no use of it is known.
    pub fn unused(&mut self, key: u64, timestamp: Ticks) {
        if self.unused.len() < MAX_USES {
            self.unused.entry(key).or_insert(timestamp);
        }
    }

    /// Counts the keys that were defined and never used, with the time of the first definition.
    /// 0 if not all uses were kept.
    pub fn never_used(&self) -> Counted {
        let mut never_used = Counted::default();
        if self.beyond > 0 || self.ever.len() >= MAX_USES {
            return never_used;
        }
        for (key, &timestamp) in &self.unused {
            if !self.ever.contains(key) {
                never_used.count += 1;
                let first = never_used.first.unwrap_or(timestamp);
                never_used.first = Some(first.min(timestamp));
            }
        }
        never_used
    }

    /// A key is used in a process.
    pub fn used(&mut self, key: u64, process: ProcessIndex, timestamp: Ticks) {
        let is_free = self.first.len() + self.others.len() < MAX_USES;
        match self.first.entry(key) {
            hash_map::Entry::Occupied(mut first) => {
                let (first_process, key_use) = first.get_mut();
                if *first_process == process {
                    key_use.again(timestamp);
                    return;
                }
            }
            hash_map::Entry::Vacant(new) => {
                if self.ever.len() < MAX_USES {
                    self.ever.insert(key);
                }
                if is_free {
                    new.insert((process, KeyUse::once(timestamp)));
                } else {
                    self.beyond += 1;
                }
                return;
            }
        }
        match self.others.entry((key, process)) {
            btree_map::Entry::Occupied(mut other) => other.get_mut().again(timestamp),
            btree_map::Entry::Vacant(new) if is_free => {
                new.insert(KeyUse::once(timestamp));
            }
            btree_map::Entry::Vacant(_) => self.beyond += 1,
        }
    }

    /// Takes out a use of a key, with its process; `None` if there is no other.
    pub fn take(&mut self, key: u64) -> Option<(ProcessIndex, KeyUse)> {
        if let Some(first) = self.first.remove(&key) {
            return Some(first);
        }
        let first = (key, ProcessIndex::new(0));
        let last = (key, ProcessIndex::new(usize::MAX));
        let (&(_, process), _) = self.others.range(first..=last).next()?;
        Some((process, self.others.remove(&(key, process))?))
    }

    /// Stacks whose keys are not defined.
    pub fn undefined(&self) -> u64 {
        let first: u64 = self.first.values().map(|(_, key_use)| key_use.count).sum();
        let others: u64 = self.others.values().map(|key_use| key_use.count).sum();
        first + others + self.beyond
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_key_that_is_used_later_is_not_unused() {
        let mut keys = Keys::default();
        keys.unused(1, Ticks::new(20));
        keys.unused(2, Ticks::new(10));
        keys.unused(3, Ticks::new(5));
        keys.used(3, ProcessIndex::new(0), Ticks::new(30));
        let never_used = keys.never_used();
        assert_eq!(never_used.count, 2);
        assert_eq!(never_used.first, Some(Ticks::new(10)));
    }

    #[test]
    fn uses_are_kept_by_process_until_the_key_is_defined() {
        let mut keys = Keys::default();
        for (key, process, timestamp) in [
            (1, 5, 10),
            (1, 4, 11),
            (1, 5, 12),
            (1, 3, 13),
            (2, 5, 14),
            (1, 4, 15),
        ] {
            keys.used(key, ProcessIndex::new(process), Ticks::new(timestamp));
        }
        assert_eq!(keys.undefined(), 6);
        let uses: Vec<_> = std::iter::from_fn(|| keys.take(1)).collect();
        let key_use = |count, first, last| KeyUse { count, first, last };
        assert_eq!(
            uses,
            [
                (
                    ProcessIndex::new(5),
                    key_use(2, Ticks::new(10), Ticks::new(12))
                ),
                (
                    ProcessIndex::new(3),
                    key_use(1, Ticks::new(13), Ticks::new(13))
                ),
                (
                    ProcessIndex::new(4),
                    key_use(2, Ticks::new(11), Ticks::new(15))
                )
            ]
        );
        assert_eq!((keys.undefined(), keys.take(3)), (1, None));
    }
}
