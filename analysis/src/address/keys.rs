//! Uses of stack keys, until it is defined what a key stands for.

use std::collections::BTreeMap;
use std::collections::btree_map::Entry;

/// Uses of stack keys that are kept; others stay undefined.
const MAX_USES: usize = 1 << 20;

/// How a stack key was used in a process.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct KeyUse {
    pub count: u64,
    pub first: i64,
    pub last: i64,
}

/// Uses of stack keys that are not defined yet.
#[derive(Clone, Debug, Default)]
pub(crate) struct Keys {
    /// By key and process.
    uses: BTreeMap<(u64, usize), KeyUse>,
    /// Uses beyond the limit.
    beyond: u64,
}

impl Keys {
    /// A key is used in a process.
    pub fn used(&mut self, key: u64, process: usize, time: i64) {
        let is_free = self.uses.len() < MAX_USES;
        match self.uses.entry((key, process)) {
            Entry::Occupied(mut known) => {
                let key_use = known.get_mut();
                (key_use.count, key_use.last) = (key_use.count + 1, time);
            }
            Entry::Vacant(new) if is_free => {
                new.insert(KeyUse { count: 1, first: time, last: time });
            }
            Entry::Vacant(_) => self.beyond += 1,
        }
    }

    /// Takes out a use of a key, with the process; `None` where there is no other.
    pub fn take(&mut self, key: u64) -> Option<(usize, KeyUse)> {
        let (&(_, process), _) = self.uses.range((key, 0)..=(key, usize::MAX)).next()?;
        Some((process, self.uses.remove(&(key, process))?))
    }

    /// Stacks whose keys are not defined.
    pub fn undefined(&self) -> u64 {
        self.uses.values().map(|key_use| key_use.count).sum::<u64>() + self.beyond
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn uses_are_kept_by_process_until_the_key_is_defined() {
        let mut keys = Keys::default();
        for (key, process, timestamp) in
            [(1, 5, 10), (1, 4, 11), (1, 5, 12), (1, 3, 13), (2, 5, 14), (1, 4, 15)]
        {
            keys.used(key, process, timestamp);
        }
        assert_eq!(keys.undefined(), 6);
        let uses: Vec<_> = std::iter::from_fn(|| keys.take(1)).collect();
        let key_use = |count, first, last| KeyUse { count, first, last };
        assert_eq!(
            uses,
            [(3, key_use(1, 13, 13)), (4, key_use(2, 11, 15)), (5, key_use(2, 10, 12))]
        );
        assert_eq!((keys.undefined(), keys.take(3)), (1, None));
    }
}
