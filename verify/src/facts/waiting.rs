//! Addresses that wait for the end of the trace.

use foldhash::HashMap;

use super::process::{Origin, Pending, Sight};

/// Addresses that no named method was known to cover when they were seen.
#[derive(Clone, Debug, Default)]
pub struct Waiting {
    places: HashMap<u64, usize>,
    list: Vec<(u64, Pending)>,
}

impl Waiting {
    /// The place of an address.
    pub fn place(&mut self, address: u64, sight: Sight) -> usize {
        *self.places.entry(address).or_insert_with(|| {
            let Sight { first, last, .. } = sight;
            let none = [0; Origin::COUNT];
            self.list.push((address, Pending { in_image: none, nowhere: none, first, last }));
            self.list.len() - 1
        })
    }

    /// The address at a place was seen.
    #[inline]
    pub fn see(&mut self, place: usize, origin: Origin, sight: Sight) {
        let Some((_, pending)) = self.list.get_mut(place) else { return };
        pending.first = pending.first.min(sight.first);
        pending.last = pending.last.max(sight.last);
        let counts = if sight.in_image { &mut pending.in_image } else { &mut pending.nowhere };
        if let Some(n) = counts.get_mut(origin as usize) {
            *n += sight.count;
        }
    }

    /// How many addresses wait.
    #[must_use]
    pub fn len(&self) -> usize {
        self.list.len()
    }

    /// Whether none waits.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.list.is_empty()
    }

    /// All of them, in the order in which they were first seen.
    #[must_use]
    pub fn take(self) -> Vec<(u64, Pending)> {
        self.list
    }
}
