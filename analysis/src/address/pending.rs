//! Addresses that wait for the end of the trace.

use foldhash::HashMap;

use crate::machine::{Origin, Pending, Sight};

/// Most addresses that a trace's processes keep apart. Real traces name some tens of thousands.
pub(crate) const MOST: usize = 1 << 20;

/// Addresses that no named method was known to cover when they were seen.
#[derive(Clone, Debug, Default)]
pub struct Waiting {
    places: HashMap<u64, usize>,
    list: Vec<(u64, Pending)>,
    /// How often others were seen when there was room for no more, in an image and outside of all, by
    /// origin: they are not decided any more.
    pub beyond: [[u64; Origin::COUNT]; 2],
}

impl Waiting {
    /// The place of an address. `room` is for how many more there is room in all processes; `None`
    /// when there is none.
    pub fn place(&mut self, address: u64, sight: Sight, room: &mut usize) -> Option<usize> {
        if let Some(&place) = self.places.get(&address) {
            return Some(place);
        }
        *room = room.checked_sub(1)?;
        let Sight { first, last, .. } = sight;
        let none = [0; Origin::COUNT];
        self.list.push((address, Pending { in_image: none, nowhere: none, first, last }));
        self.places.insert(address, self.list.len() - 1);
        Some(self.list.len() - 1)
    }

    /// An address was seen for which there is no room.
    pub fn see_beyond(&mut self, origin: Origin, sight: Sight) {
        let [in_image, nowhere] = &mut self.beyond;
        let counts = if sight.in_image { in_image } else { nowhere };
        if let Some(n) = counts.get_mut(origin as usize) {
            *n += sight.count;
        }
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn there_is_room_for_so_many() {
        let mut waiting = Waiting::default();
        let sight = Sight { count: 3, first: 1, last: 2, in_image: false };
        let mut room = 2;
        let first = waiting.place(0x10, sight, &mut room);
        assert!(first.is_some() && waiting.place(0x20, sight, &mut room).is_some());
        assert_eq!(waiting.place(0x30, sight, &mut room), None);
        assert_eq!(waiting.place(0x10, sight, &mut room), first, "what is known stays");
        waiting.see_beyond(Origin::Sample, sight);
        assert_eq!(waiting.beyond[1][Origin::Sample as usize], 3);
        assert_eq!((waiting.len(), room), (2, 0));
    }
}
