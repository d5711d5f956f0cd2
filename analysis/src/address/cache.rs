//! A cache with one slot for each hash: what comes last has the slot.

/// Slots by the lowest bits of a hash.
#[derive(Clone, Debug)]
pub(crate) struct DirectMapped<T> {
    slots: Vec<T>,
}

impl<T: Clone + Default> DirectMapped<T> {
    /// Empty slots, a power of two of them.
    pub fn new(slots: usize) -> Self {
        debug_assert!(slots.is_power_of_two());
        DirectMapped {
            slots: vec![T::default(); slots],
        }
    }

    /// How many slots there are.
    pub fn len(&self) -> usize {
        self.slots.len()
    }

    /// The slot of a hash.
    #[inline]
    pub fn slot(&self, hash: usize) -> Option<&T> {
        self.slots.get(hash & self.slots.len().wrapping_sub(1))
    }

    /// The slot of a hash, to be changed.
    #[inline]
    pub fn slot_mut(&mut self, hash: usize) -> Option<&mut T> {
        let mask = self.slots.len().wrapping_sub(1);
        self.slots.get_mut(hash & mask)
    }

    /// Takes out everything, and has so many slots from now on.
    pub fn take(&mut self, slots: usize) -> Vec<T> {
        std::mem::replace(self, DirectMapped::new(slots)).slots
    }

    /// Empties all slots.
    pub fn clear(&mut self) {
        self.slots.fill(T::default());
    }
}

impl<K: Copy + Eq + Into<u32>, V: Copy> DirectMapped<Option<(K, V)>> {
    /// The value of an id of a process or a thread; they are multiples of four.
    #[inline]
    pub fn get(&self, id: K) -> Option<V> {
        let &(known, value) = self.slot(id.into() as usize >> 2)?.as_ref()?;
        (known == id).then_some(value)
    }

    /// Keeps the value of an id.
    #[inline]
    pub fn insert(&mut self, id: K, value: V) {
        if let Some(slot) = self.slot_mut(id.into() as usize >> 2) {
            *slot = Some((id, value));
        }
    }

    /// Forgets an id, and what else had its slot.
    pub fn remove(&mut self, id: K) {
        if let Some(slot) = self.slot_mut(id.into() as usize >> 2) {
            *slot = None;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn insert_evicts_what_has_the_same_slot() {
        let mut cache = DirectMapped::new(4);
        cache.insert(8u32, 'a');
        cache.insert(12, 'b');
        assert_eq!(
            (cache.get(8), cache.get(12), cache.get(4)),
            (Some('a'), Some('b'), None)
        );
        cache.insert(8 + 16, 'c');
        assert_eq!((cache.get(8), cache.get(24)), (None, Some('c')));
        cache.remove(12);
        assert_eq!(cache.get(12), None);
        cache.clear();
        assert_eq!(cache.get(24), None);
    }
}
