//! A sorted map of addresses with long leaves: for millions of ranges.
//!
//! Keys are kept in sorted runs of up to [`MAX_KEYS`], in order. A tree of the keys has nodes of
//! at most eleven: more levels, each in another part of the memory, and more unused capacity. Keys
//! that come in order fill their runs.

/// Keys of a run.
const MAX_KEYS: usize = 128;

/// Capacity that a full run gets in addition, in keys.
const GROWTH: usize = MAX_KEYS / 8;

/// A sorted run.
#[derive(Clone, Debug)]
struct Run<V> {
    keys: Vec<u64>,
    values: Vec<V>,
}

/// A map from addresses, in their order.
#[derive(Clone, Debug)]
pub(super) struct Chunks<V> {
    /// For each run the bound between its keys and the keys of the run before. Its keys are not
    /// below.
    bounds: Vec<u64>,
    /// Each has keys.
    #[expect(clippy::vec_box, reason = "a run in between moves all after it")]
    runs: Vec<Box<Run<V>>>,
    len: usize,
}

impl<V> Default for Chunks<V> {
    fn default() -> Self {
        Chunks {
            bounds: Vec::new(),
            runs: Vec::new(),
            len: 0,
        }
    }
}

impl<V: Copy> Chunks<V> {
    /// How many there are.
    pub fn len(&self) -> usize {
        self.len
    }

    /// The number of the run that a key belongs to; `None` below all others.
    #[inline]
    fn run_of(&self, key: u64) -> Option<usize> {
        self.bounds
            .partition_point(|&bound| bound <= key)
            .checked_sub(1)
    }

    /// The value of a key.
    pub fn get_mut(&mut self, key: u64) -> Option<&mut V> {
        let run = self.run_of(key)?;
        let run = self.runs.get_mut(run)?;
        let at = run.keys.binary_search(&key).ok()?;
        run.values.get_mut(at)
    }

    /// The last one whose key is not above `key`.
    #[inline]
    pub fn at_or_before(&self, key: u64) -> Option<(u64, V)> {
        let own = self.run_of(key)?;
        let run = self.runs.get(own)?;
        match run.keys.partition_point(|&k| k <= key).checked_sub(1) {
            Some(at) => Some((*run.keys.get(at)?, *run.values.get(at)?)),
            // What begins the run has gone; the one before is not empty.
            None => {
                let run = self.runs.get(own.checked_sub(1)?)?;
                Some((*run.keys.last()?, *run.values.last()?))
            }
        }
    }

    /// As [`Chunks::at_or_before`], for changing the value.
    #[inline]
    pub fn at_or_before_mut(&mut self, key: u64) -> Option<(u64, &mut V)> {
        let mut own = self.run_of(key)?;
        let mut after = self.runs.get(own)?.keys.partition_point(|&k| k <= key);
        if after == 0 {
            own = own.checked_sub(1)?;
            after = self.runs.get(own)?.keys.len();
        }
        let run = self.runs.get_mut(own)?;
        let at = after.checked_sub(1)?;
        Some((*run.keys.get(at)?, run.values.get_mut(at)?))
    }

    /// The first key that is not below `key`.
    pub fn at_or_after(&self, key: u64) -> Option<u64> {
        let own = self.run_of(key);
        let run = own.and_then(|own| self.runs.get(own));
        let found = run.and_then(|run| run.keys.get(run.keys.partition_point(|&k| k < key)));
        let next = own.map_or(0, |own| own + 1);
        if let Some(found) = found {
            return Some(*found);
        }
        self.runs.get(next)?.keys.first().copied()
    }

    /// Adds a key, or changes its value; returns the value that it had.
    pub fn insert(&mut self, key: u64, value: V) -> Option<V> {
        // What is below all others is the first run's.
        let own = self.run_of(key).unwrap_or_else(|| {
            if let Some(first) = self.bounds.first_mut() {
                *first = key;
            }
            0
        });
        let Some(run) = self.runs.get_mut(own) else {
            self.len = 1;
            self.put(
                0,
                Run {
                    keys: vec![key],
                    values: vec![value],
                },
            );
            return None;
        };
        let at = match run.keys.binary_search(&key) {
            Ok(at) => return run.values.get_mut(at).map(|v| std::mem::replace(v, value)),
            Err(at) => at,
        };
        self.len += 1;
        if run.keys.len() < MAX_KEYS {
            run.put(at, key, value);
            return None;
        }
        // After all others of its run: that stays full.
        let upper = if at == run.keys.len() {
            Run {
                keys: vec![key],
                values: vec![value],
            }
        } else {
            run.put(at, key, value);
            run.split()
        };
        self.put(own + 1, upper);
        None
    }

    fn put(&mut self, at: usize, run: Run<V>) {
        if let Some(&first) = run.keys.first() {
            debug_assert!(at == 0 || self.bounds.get(at - 1).is_some_and(|&bound| bound < first));
            self.bounds.insert(at, first);
            self.runs.insert(at, Box::new(run));
        }
    }

    /// Takes a key out.
    pub fn remove(&mut self, key: u64) -> Option<V> {
        let own = self.run_of(key)?;
        let run = self.runs.get_mut(own)?;
        let at = run.keys.binary_search(&key).ok()?;
        run.keys.remove(at);
        let value = run.values.remove(at);
        self.len -= 1;
        if run.keys.is_empty() {
            self.runs.remove(own);
            self.bounds.remove(own);
        }
        Some(value)
    }

    /// All of them, in order.
    pub fn iter(&self) -> impl Iterator<Item = (u64, &V)> {
        self.runs
            .iter()
            .flat_map(|run| run.keys.iter().copied().zip(&run.values))
    }
}

impl<V: Copy> Run<V> {
    fn put(&mut self, at: usize, key: u64, value: V) {
        if self.keys.len() == self.keys.capacity() {
            self.keys.reserve_exact(GROWTH);
            self.values.reserve_exact(GROWTH);
        }
        self.keys.insert(at, key);
        self.values.insert(at, value);
    }

    /// Takes the upper half out.
    fn split(&mut self) -> Run<V> {
        let half = self.keys.len() / 2;
        let upper = Run {
            keys: self.keys.split_off(half),
            values: self.values.split_off(half),
        };
        self.keys.shrink_to(half + GROWTH);
        self.values.shrink_to(half + GROWTH);
        upper
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeMap;

    use proptest::prelude::*;

    #[derive(Clone, Debug)]
    enum Step {
        Insert(u64, u32),
        Remove(u64),
        Rising(u64),
    }

    fn steps() -> impl Strategy<Value = Vec<Step>> {
        let step = prop_oneof![
            4 => (0u64..2_000, any::<u32>()).prop_map(|(k, v)| Step::Insert(k, v)),
            2 => (0u64..2_000).prop_map(Step::Remove),
            1 => (0u64..100_000).prop_map(Step::Rising),
        ];
        proptest::collection::vec(step, 0..400)
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(64))]
        #[test]
        fn chunks_are_a_sorted_map(steps in steps()) {
            let (mut chunks, mut map) = (Chunks::default(), BTreeMap::new());
            for step in steps {
                match step {
                    Step::Insert(key, value) => {
                        prop_assert_eq!(chunks.insert(key, value), map.insert(key, value));
                    }
                    Step::Remove(key) => prop_assert_eq!(chunks.remove(key), map.remove(&key)),
                    Step::Rising(from) => {
                        for key in from..from + 300 {
                            prop_assert_eq!(chunks.insert(key, 7), map.insert(key, 7));
                        }
                    }
                }
                prop_assert_eq!(chunks.len(), map.len());
            }
            for key in (0..2_100).chain([50_000, u64::MAX]) {
                let before = map.range(..=key).next_back().map(|(&k, &v)| (k, v));
                prop_assert_eq!(chunks.at_or_before(key), before);
                prop_assert_eq!(chunks.at_or_before_mut(key).map(|(k, &mut v)| (k, v)), before);
                let after = map.range(key..).next().map(|(&k, _)| k);
                prop_assert_eq!(chunks.at_or_after(key), after);
                prop_assert_eq!(chunks.get_mut(key).copied(), map.get(&key).copied());
            }
            let all: Vec<_> = chunks.iter().map(|(k, &v)| (k, v)).collect();
            prop_assert_eq!(all, map.into_iter().collect::<Vec<_>>());
        }
    }

    #[test]
    fn keys_in_order_fill_their_runs() {
        let mut chunks = Chunks::default();
        for key in 0..100_000u64 {
            chunks.insert(key, key);
        }
        let capacity: usize = chunks.runs.iter().map(|r| r.keys.capacity()).sum();
        assert!(capacity < 115_000, "{capacity}");
    }
}
