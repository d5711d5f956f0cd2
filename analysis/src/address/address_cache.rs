//! What addresses resolved to, and how often they came since.
//!
//! Stacks and samples name the same addresses again and again. The cache keeps what an address
//! resolved to, with the state of the address space for which that is true: each load or unload
//! there changes the state, so that every address is resolved at its own time. An address that
//! comes again is only counted in its slot; counts go to their owners when the slot is needed for
//! another address, and at the end of the recording.

use super::cache::DirectMapped;
use super::origin::Origin;
use crate::keys::ProcessIndex;
use etl_format::Ticks;

/// What an address resolved to.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Owner {
    /// A managed method that an event names.
    Method,
    /// An image of the kernel, whose hits are counted at an index.
    Kernel,
    /// An image of the process or of the kernel; a method may follow.
    Image,
    /// Nothing yet.
    #[default]
    Unresolved,
}

/// A process, and the kind of event that addresses come from, in one word.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct ProcessOrigin(u32);

impl ProcessOrigin {
    /// There are far fewer processes than fit into 29 bits.
    #[inline]
    pub fn new(process: ProcessIndex, origin: Origin) -> Self {
        ProcessOrigin((process.get() as u32) << 3 | origin as u32)
    }

    /// The process.
    pub fn process(self) -> ProcessIndex {
        ProcessIndex::new((self.0 >> 3) as usize)
    }

    /// Where the addresses come from.
    pub fn origin(self) -> Origin {
        Origin::ALL
            .get((self.0 & 7) as usize)
            .copied()
            .unwrap_or(Origin::Sample)
    }

    /// For hashes.
    #[inline]
    pub fn bits(self) -> u64 {
        self.0.into()
    }
}

/// What an address resolved to, and where it is counted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Resolved {
    pub owner: Owner,
    /// The index of the kernel's image, or of the pending address.
    pub index: Option<usize>,
}

/// Means that there is no index.
const NO_INDEX: u32 = u32::MAX;

/// An address of a process, from one kind of events.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct CachedAddress {
    pub address: u64,
    pub by: ProcessOrigin,
    /// How often it came.
    pub count: u32,
    /// When it came last.
    pub last: Ticks,
    /// State of the address there: grows with each change of what it may resolve to. 0 for a free
    /// slot.
    state: u64,
    /// Where it is counted: the index of the kernel's image, or of the pending address.
    index: u32,
    pub owner: Owner,
}

impl CachedAddress {
    /// Where it is counted, if anywhere.
    fn index(&self) -> Option<usize> {
        if self.index == NO_INDEX {
            None
        } else {
            usize::try_from(self.index).ok()
        }
    }

    /// What it resolved to.
    pub fn resolved(&self) -> Resolved {
        Resolved {
            owner: self.owner,
            index: self.index(),
        }
    }
}

/// The cache.
#[derive(Clone, Debug)]
pub(crate) struct AddressCache {
    slots: DirectMapped<CachedAddress>,
    /// Addresses that were not found since the cache has this size.
    misses: usize,
}

impl Default for AddressCache {
    fn default() -> Self {
        AddressCache {
            slots: DirectMapped::new(Self::MIN_SLOTS),
            misses: 0,
        }
    }
}

impl AddressCache {
    const MIN_SLOTS: usize = 1 << 8;
    const MAX_SLOTS: usize = 1 << 16;

    #[inline]
    fn hash(by: ProcessOrigin, address: u64) -> usize {
        // The upper half of a product depends on all bits.
        ((address ^ by.bits() << 40).wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 32) as usize
    }

    #[inline]
    fn get(&self, by: ProcessOrigin, address: u64) -> Option<&CachedAddress> {
        let cached = self.slots.slot(Self::hash(by, address))?;
        (cached.address == address && cached.by == by && cached.state != 0).then_some(cached)
    }

    /// Counts an address, if it is known what it resolves to in this state; else it has to be
    /// resolved.
    #[inline]
    pub fn count(&mut self, by: ProcessOrigin, address: u64, state: u64, time: Ticks) -> bool {
        let Some(cached) = self.slots.slot_mut(Self::hash(by, address)) else {
            return false;
        };
        let same = cached.address == address && cached.by == by && cached.state == state;
        // A full count is moved on, and starts again.
        let Some(count) = cached.count.checked_add(1).filter(|_| same) else {
            return false;
        };
        cached.count = count;
        cached.last = time;
        true
    }

    /// What an address resolved to that has just come.
    pub fn resolved(&self, by: ProcessOrigin, address: u64) -> Option<Resolved> {
        self.get(by, address).map(CachedAddress::resolved)
    }

    /// Keeps what an address resolved to that came once. Returns what had its slot.
    pub fn insert(
        &mut self,
        by: ProcessOrigin,
        address: u64,
        state: u64,
        time: Ticks,
        resolved: Resolved,
    ) -> Option<CachedAddress> {
        let Resolved { owner, index } = resolved;
        let index = index
            .and_then(|index| u32::try_from(index).ok())
            .unwrap_or(NO_INDEX);
        let cached = CachedAddress {
            address,
            by,
            count: 1,
            last: time,
            state,
            index,
            owner,
        };
        self.misses += 1;
        let slot = self.slots.slot_mut(Self::hash(by, address))?;
        let before = std::mem::replace(slot, cached);
        (before.state != 0).then_some(before)
    }

    /// Whether so many addresses were not found that the cache should be larger.
    pub fn is_small(&self) -> bool {
        self.misses > 4 * self.slots.len() && self.slots.len() < Self::MAX_SLOTS
    }

    /// Takes everything out, and doubles the slots.
    pub fn grow(&mut self) -> impl Iterator<Item = CachedAddress> + use<> {
        self.misses = 0;
        let all = self.slots.take(self.slots.len() * 2);
        all.into_iter().filter(|cached| cached.state != 0)
    }

    /// Takes everything out.
    pub fn take(&mut self) -> impl Iterator<Item = CachedAddress> + use<> {
        let all = self.slots.take(Self::MIN_SLOTS);
        all.into_iter().filter(|cached| cached.state != 0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn resolved(owner: Owner, index: Option<usize>) -> Resolved {
        Resolved { owner, index }
    }

    #[test]
    fn cached_owner_holds_for_one_state() {
        let mut cache = AddressCache::default();
        let by = ProcessOrigin::new(ProcessIndex::new(3), Origin::Exception);
        assert!(!cache.count(by, 0x1000, 1, Ticks::new(10)));
        assert_eq!(
            cache.insert(
                by,
                0x1000,
                1,
                Ticks::new(10),
                resolved(Owner::Unresolved, Some(7))
            ),
            None
        );
        assert!(cache.count(by, 0x1000, 1, Ticks::new(11)));
        assert!(cache.count(by, 0x1000, 1, Ticks::new(12)));
        assert!(
            !cache.count(by, 0x1000, 2, Ticks::new(13)),
            "something was loaded there"
        );
        let evicted = cache
            .insert(by, 0x1000, 2, Ticks::new(13), resolved(Owner::Method, None))
            .unwrap();
        assert_eq!(
            (evicted.count, evicted.last, evicted.index()),
            (3, Ticks::new(12), Some(7))
        );
        assert_eq!(
            (evicted.by.process(), evicted.by.origin()),
            (ProcessIndex::new(3), Origin::Exception)
        );
        assert!(!cache.count(
            ProcessOrigin::new(ProcessIndex::new(4), Origin::Exception),
            0x1000,
            2,
            Ticks::new(14)
        ));
        assert!(!cache.count(
            ProcessOrigin::new(ProcessIndex::new(3), Origin::Sample),
            0x1000,
            2,
            Ticks::new(14)
        ));
        assert!(
            !cache.count(
                ProcessOrigin::new(ProcessIndex::new(0), Origin::ClrStack),
                0,
                1,
                Ticks::new(14)
            ),
            "a free slot"
        );
        let left: Vec<_> = cache
            .take()
            .map(|cached| (cached.count, cached.owner))
            .collect();
        assert_eq!(left, [(1, Owner::Method)]);
    }

    #[test]
    fn counts_survive_eviction_and_growth() {
        let mut cache = AddressCache::default();
        let mut counted = 0u64;
        let by = ProcessOrigin::new(ProcessIndex::new(7), Origin::Sample);
        for _ in 0..40u64 {
            for address in 0..4_000u64 {
                if cache.count(by, address * 64, 1, Ticks::new(1)) {
                    continue;
                }
                if cache.is_small() {
                    counted += cache
                        .grow()
                        .map(|cached| u64::from(cached.count))
                        .sum::<u64>();
                }
                let before = cache.insert(
                    by,
                    address * 64,
                    1,
                    Ticks::new(1),
                    resolved(Owner::Image, None),
                );
                counted += before.map_or(0, |cached| u64::from(cached.count));
            }
        }
        let slots = cache.slots.len();
        assert!(slots > AddressCache::MIN_SLOTS && slots <= AddressCache::MAX_SLOTS);
        counted += cache
            .take()
            .map(|cached| u64::from(cached.count))
            .sum::<u64>();
        assert_eq!(counted, 160_000);
    }
}
