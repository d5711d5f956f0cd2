//! What addresses resolved to a moment ago.
//!
//! Stacks and samples name the same addresses again and again. A table with one place for each hash
//! keeps what the last address there resolved to, and since which state of the address space that
//! holds: what loads or unloads meanwhile makes it void, so that every address is still resolved at
//! its own time.

/// What an address resolved to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Owner {
    /// A managed method that an event names.
    Method,
    /// The image of the kernel whose hits are counted at this place.
    Kernel(u32),
    /// An image of the process or of the kernel; a method may yet be told of.
    Image,
    /// Nothing yet.
    Nobody,
}

/// What the last address at one place of the table resolved to.
#[derive(Clone, Copy, Debug)]
pub(super) struct Recent {
    address: u64,
    /// State of the address space: grows with each change. 0 for a place that is free.
    state: u64,
    /// Index of the process.
    process: u32,
    /// Where the address waits for the end of the trace, if it does.
    waiting: u32,
    pub owner: Owner,
}

/// In place of an index: it does not wait.
const NOWHERE: u32 = u32::MAX;

impl Recent {
    const FREE: Recent =
        Recent { address: 0, state: 0, process: 0, waiting: NOWHERE, owner: Owner::Nobody };

    /// What an address of a process resolved to in this state of its address space.
    pub fn new(process: usize, address: u64, state: u64, owner: Owner) -> Self {
        let process = u32::try_from(process).unwrap_or(u32::MAX);
        Recent { address, state, process, waiting: NOWHERE, owner }
    }

    /// Where the address waits.
    pub fn waiting(&self) -> Option<usize> {
        if self.waiting == NOWHERE { None } else { usize::try_from(self.waiting).ok() }
    }

    /// Notes where it waits.
    pub fn wait_at(&mut self, place: usize) {
        self.waiting = u32::try_from(place).unwrap_or(NOWHERE);
    }
}

/// The table.
#[derive(Clone, Debug)]
pub(super) struct Recents {
    places: Vec<Recent>,
    /// Addresses that were not found since the table has this size.
    missed: usize,
}

impl Default for Recents {
    fn default() -> Self {
        Recents { places: vec![Recent::FREE; Self::LEAST], missed: 0 }
    }
}

impl Recents {
    const LEAST: usize = 1 << 8;
    const MOST: usize = 1 << 16;

    /// What an address of a process resolved to, if the state of the address space is still that one;
    /// else what `resolve` finds.
    #[inline]
    pub fn get(
        &mut self,
        process: usize,
        address: u64,
        state: u64,
        resolve: impl FnOnce() -> Owner,
    ) -> Option<&mut Recent> {
        // Multiplied, the upper half depends on all bits.
        let hash = (address ^ (process as u64) << 48).wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 32;
        let at = hash as usize & (self.places.len() - 1);
        let place = self.places.get_mut(at)?;
        // No process has an index that does not fit; were there one, it would always be resolved anew.
        let same = place.address == address && place.process as usize == process;
        if !(same && place.state == state) {
            let waiting = if same { place.waiting } else { NOWHERE };
            *place = Recent { waiting, ..Recent::new(process, address, state, resolve()) };
            self.missed += 1;
            if self.missed > 4 * self.places.len() && self.places.len() < Self::MOST {
                return self.grow(at);
            }
        }
        self.places.get_mut(at)
    }

    /// Doubles the table; gives the place of what stood at `at`.
    #[cold]
    fn grow(&mut self, at: usize) -> Option<&mut Recent> {
        let kept = self.places.get(at).copied()?;
        let len = self.places.len() * 2;
        self.places.clear();
        self.places.resize(len, Recent::FREE);
        self.missed = 0;
        // It need not be found again: it is only used now.
        let place = self.places.first_mut()?;
        *place = kept;
        Some(place)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_resolved_holds_as_long_as_the_state() {
        let mut recents = Recents::default();
        let mut resolved = 0;
        let mut get = |process, address, state| {
            let owner = Owner::Kernel(resolved);
            recents.get(process, address, state, || {
                resolved += 1;
                owner
            });
            resolved
        };
        assert_eq!(get(0, 0x1000, 1), 1);
        assert_eq!(get(0, 0x1000, 1), 1);
        assert_eq!(get(0, 0x1000, 2), 2);
        assert_eq!(get(1, 0x1000, 2), 3);
        assert_eq!(get(0, 0, 1), 4, "a free place is nobody's");
    }

    #[test]
    fn the_table_grows_with_what_it_misses() {
        let mut recents = Recents::default();
        for round in 0..40u64 {
            for address in 0..4_000u64 {
                let found = recents.get(7, address * 64, 1, || Owner::Image).copied().unwrap();
                assert_eq!((found.address, found.process), (address * 64, 7), "{round}");
            }
        }
        assert!(recents.places.len() > Recents::LEAST && recents.places.len() <= Recents::MOST);
    }
}
