//! What addresses resolved to a moment ago, and how often they were seen since.
//!
//! Stacks and samples name the same addresses again and again. A table with one place for each hash
//! keeps what the last address there resolved to, and since which state of the address space that
//! holds: what loads or unloads there meanwhile makes it void, so that every address is still resolved at
//! its own time. What is seen again is only counted in its place; the counts go to where they belong when
//! the place is taken over, and at the end of the trace.

use crate::machine::Origin;

/// What an address resolved to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Owner {
    /// A managed method that an event names.
    Method,
    /// An image of the kernel, whose hits are counted at a place.
    Kernel,
    /// An image of the process or of the kernel; a method may yet be told of.
    Image,
    /// Nothing yet.
    Nobody,
}

/// An address of a process, as it was seen from one kind of events.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Seen {
    pub address: u64,
    /// Index of the process, and the [`Origin`]: see [`Seen::by`].
    by: u32,
    /// How often it was seen.
    pub count: u32,
    /// When it was seen last.
    pub last: i64,
    /// State of the address there: grows with each change of what it may resolve to. 0 for a place that is free.
    state: u64,
    /// Where it is counted: the place of the kernel's image, or the one where it waits for the end of the trace.
    place: u32,
    pub owner: Owner,
}

/// In place of a place: there is none.
const NOWHERE: u32 = u32::MAX;

impl Seen {
    const FREE: Seen = Seen {
        address: 0,
        by: 0,
        count: 0,
        last: 0,
        state: 0,
        place: NOWHERE,
        owner: Owner::Nobody,
    };

    /// A process and an origin in one word. There are far fewer processes than would fit.
    #[inline]
    pub fn by(process: usize, origin: Origin) -> u32 {
        (process as u32) << 3 | origin as u32
    }

    /// The index of the process that [`Seen::by`] put into a word.
    pub fn process_of(by: u32) -> usize {
        (by >> 3) as usize
    }

    /// The origin that [`Seen::by`] put into a word.
    pub fn origin_of(by: u32) -> Origin {
        Origin::ALL.get((by & 7) as usize).copied().unwrap_or(Origin::Sample)
    }

    /// Index of the process.
    pub fn process(&self) -> usize {
        Self::process_of(self.by)
    }

    /// Where the address came from.
    pub fn origin(&self) -> Origin {
        Self::origin_of(self.by)
    }

    /// Where it is counted, if it is anywhere.
    pub fn place(&self) -> Option<usize> {
        if self.place == NOWHERE { None } else { usize::try_from(self.place).ok() }
    }
}

/// The table.
#[derive(Clone, Debug)]
pub(crate) struct Recents {
    places: Vec<Seen>,
    /// Addresses that were not found since the table has this size.
    missed: usize,
}

impl Default for Recents {
    fn default() -> Self {
        Recents { places: vec![Seen::FREE; Self::LEAST], missed: 0 }
    }
}

impl Recents {
    const LEAST: usize = 1 << 8;
    const MOST: usize = 1 << 16;

    #[inline]
    fn at(&self, by: u32, address: u64) -> usize {
        // Multiplied, the upper half depends on all bits.
        let mixed = (address ^ u64::from(by) << 40).wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 32;
        mixed as usize & (self.places.len() - 1)
    }

    /// Counts an address, if it is known what it resolves to in this state; else it has to be resolved.
    #[inline]
    pub fn again(&mut self, by: u32, address: u64, state: u64, timestamp: i64) -> bool {
        let at = self.at(by, address);
        let Some(seen) = self.places.get_mut(at) else { return false };
        let same = seen.address == address && seen.by == by && seen.state == state;
        // What can be counted no further is put away, and begins anew.
        let Some(count) = seen.count.checked_add(1).filter(|_| same) else { return false };
        (seen.count, seen.last) = (count, timestamp);
        true
    }

    /// Where an address waits for the end of the trace, if that is known from before.
    pub fn waiting(&self, by: u32, address: u64) -> Option<usize> {
        let seen = self.places.get(self.at(by, address))?;
        let same = seen.address == address && seen.by == by && seen.state != 0;
        let waits = matches!(seen.owner, Owner::Image | Owner::Nobody);
        if same && waits { seen.place() } else { None }
    }

    /// What an address resolved to that has just been seen, and where it is counted, if another one did not take its
    /// place since.
    pub fn found(&self, by: u32, address: u64) -> Option<(Owner, Option<usize>)> {
        let seen = self.places.get(self.at(by, address))?;
        let same = seen.address == address && seen.by == by && seen.state != 0;
        same.then(|| (seen.owner, seen.place()))
    }

    /// Notes what an address resolved to, seen once; gives what stood in its place.
    pub fn note(
        &mut self,
        (by, address): (u32, u64),
        state: u64,
        timestamp: i64,
        (owner, place): (Owner, Option<usize>),
    ) -> Option<Seen> {
        let place = place.and_then(|place| u32::try_from(place).ok()).unwrap_or(NOWHERE);
        let at = self.at(by, address);
        let seen = Seen { address, by, count: 1, last: timestamp, state, place, owner };
        self.missed += 1;
        let before = std::mem::replace(self.places.get_mut(at)?, seen);
        (before.state != 0).then_some(before)
    }

    /// Whether so many addresses were not found that the table should have more places.
    pub fn is_small(&self) -> bool {
        self.missed > 4 * self.places.len() && self.places.len() < Self::MOST
    }

    /// Takes all out, and has twice as many places.
    pub fn grow(&mut self) -> Vec<Seen> {
        self.missed = 0;
        let places = vec![Seen::FREE; self.places.len() * 2];
        let all = std::mem::replace(&mut self.places, places);
        all.into_iter().filter(|seen| seen.state != 0).collect()
    }

    /// Takes all out.
    pub fn take(&mut self) -> impl Iterator<Item = Seen> {
        let all = std::mem::take(self).places;
        all.into_iter().filter(|seen| seen.state != 0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_resolved_holds_as_long_as_the_state() {
        let mut recents = Recents::default();
        let by = Seen::by(3, Origin::Exception);
        assert!(!recents.again(by, 0x1000, 1, 10));
        assert_eq!(recents.note((by, 0x1000), 1, 10, (Owner::Nobody, Some(7))), None);
        assert!(recents.again(by, 0x1000, 1, 11));
        assert!(recents.again(by, 0x1000, 1, 12));
        assert!(!recents.again(by, 0x1000, 2, 13), "something was loaded there");
        assert_eq!(recents.waiting(by, 0x1000), Some(7));
        let seen = recents.note((by, 0x1000), 2, 13, (Owner::Method, None)).unwrap();
        assert_eq!((seen.count, seen.last, seen.place()), (3, 12, Some(7)));
        assert_eq!((seen.process(), seen.origin()), (3, Origin::Exception));
        assert_eq!(recents.waiting(by, 0x1000), None, "a method's address does not wait");
        assert!(!recents.again(Seen::by(4, Origin::Exception), 0x1000, 2, 14));
        assert!(!recents.again(Seen::by(3, Origin::Sample), 0x1000, 2, 14));
        assert!(
            !recents.again(Seen::by(0, Origin::ClrStack), 0, 1, 14),
            "a free place is nobody's"
        );
        let left: Vec<_> = recents.take().map(|seen| (seen.count, seen.owner)).collect();
        assert_eq!(left, [(1, Owner::Method)]);
    }

    #[test]
    fn nothing_is_counted_twice_or_not_at_all() {
        let mut recents = Recents::default();
        let mut counted = 0u64;
        let by = Seen::by(7, Origin::Sample);
        for _ in 0..40u64 {
            for address in 0..4_000u64 {
                if recents.again(by, address * 64, 1, 1) {
                    continue;
                }
                if recents.is_small() {
                    counted += recents.grow().iter().map(|seen| u64::from(seen.count)).sum::<u64>();
                }
                let before = recents.note((by, address * 64), 1, 1, (Owner::Image, None));
                counted += before.map_or(0, |seen| u64::from(seen.count));
            }
        }
        assert!(recents.places.len() > Recents::LEAST && recents.places.len() <= Recents::MOST);
        counted += recents.take().map(|seen| u64::from(seen.count)).sum::<u64>();
        assert_eq!(counted, 160_000);
    }
}
