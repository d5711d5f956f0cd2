//! Stacks that came before, and how often they came since.
//!
//! Some hundreds of stacks, of tens of frames each, make up most recordings. What all frames of a
//! stack resolved to is kept from its second time on; from then on it is only counted as a whole,
//! as long as nothing is loaded or unloaded in its process. Counts go to the owners of the frames
//! when the slot is needed for another stack, and at the end of the recording.

use super::address_cache::{ProcessOrigin, Resolved};
use super::cache::DirectMapped;
use etl_format::Ticks;

/// A frame's address as it is stored.
pub(crate) type Frame = [u8; 8];

/// A stack of a process, from one kind of events.
#[derive(Clone, Debug, Default)]
pub(crate) struct CachedStack {
    pub by: ProcessOrigin,
    /// State of the address space; 0 for a free slot.
    state: u64,
    frames: Vec<Frame>,
    /// What its frames resolved to; empty if it came only once.
    resolved: Vec<Resolved>,
    /// How often it came since that is known.
    pub count: u64,
    /// When it came last.
    pub last: Ticks,
}

impl CachedStack {
    /// What its frames resolved to.
    pub fn resolved(&self) -> impl Iterator<Item = Resolved> + '_ {
        self.resolved.iter().copied()
    }
}

/// What the cache has of a stack.
pub(crate) enum Lookup {
    /// It was counted.
    Counted,
    /// It came before: [`StackCache::learn`] is to be called with what its frames resolve to.
    Known,
    /// Nothing.
    New,
}

/// The cache.
#[derive(Clone, Debug)]
pub(crate) struct StackCache {
    slots: DirectMapped<CachedStack>,
    /// What lost its slot and is not counted yet.
    pub evicted: Option<CachedStack>,
}

impl Default for StackCache {
    fn default() -> Self {
        StackCache {
            slots: DirectMapped::new(Self::SLOTS),
            evicted: None,
        }
    }
}

impl StackCache {
    const SLOTS: usize = 1 << 11;
    /// Frames of a stack that is kept: with all slots taken, these are some megabytes at most.
    pub const MAX_FRAMES: usize = 128;

    fn hash(by: ProcessOrigin, frames: &[Frame]) -> usize {
        // Each frame has a factor of its own, so that none waits for the one before it.
        const START: u64 = 0x9e37_79b9_7f4a_7c15;
        const STEP: u64 = 0xd1b5_4a32_d192_ed02;
        let mut sum = by.bits();
        let mut factor = START;
        for frame in frames {
            factor = factor.wrapping_add(STEP);
            sum = sum.wrapping_add(u64::from_le_bytes(*frame).wrapping_mul(factor));
        }
        ((sum ^ sum >> 32).wrapping_mul(START) >> 40) as usize
    }

    /// Counts a stack if it is known what it resolves to in this state. Otherwise it takes a slot;
    /// what had it and was counted is in `evicted`.
    #[inline]
    pub fn count(
        &mut self,
        by: ProcessOrigin,
        state: u64,
        frames: &[Frame],
        time: Ticks,
    ) -> Lookup {
        let Some(slot) = self.slots.slot_mut(Self::hash(by, frames)) else {
            return Lookup::New;
        };
        if slot.by == by && slot.state == state && slot.frames == frames {
            if slot.resolved.is_empty() {
                return Lookup::Known;
            }
            slot.count += 1;
            slot.last = time;
            return Lookup::Counted;
        }
        if slot.count > 0 {
            self.evicted = Some(std::mem::take(slot));
        }
        slot.by = by;
        slot.state = state;
        slot.count = 0;
        slot.frames.clear();
        slot.frames.extend_from_slice(frames);
        slot.resolved.clear();
        Lookup::New
    }

    /// Keeps what the frames of a known stack resolve to, if that is known of all of them.
    #[cold]
    pub fn learn(
        &mut self,
        by: ProcessOrigin,
        frames: &[Frame],
        resolved: impl Iterator<Item = Option<Resolved>>,
    ) {
        let Some(slot) = self.slots.slot_mut(Self::hash(by, frames)) else {
            return;
        };
        slot.resolved
            .extend(resolved.map_while(|resolved| resolved));
        if slot.resolved.len() != frames.len() {
            slot.resolved.clear();
        }
    }

    /// Takes out everything that was counted.
    pub fn take(&mut self) -> impl Iterator<Item = CachedStack> + use<> {
        let evicted = self.evicted.take();
        let stacks = self.slots.take(Self::SLOTS).into_iter().chain(evicted);
        stacks.filter(|stack| stack.count > 0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::address::Owner;
    use crate::keys::ProcessIndex;

    fn stack(addresses: &[u64]) -> Vec<Frame> {
        addresses.iter().map(|a| a.to_le_bytes()).collect()
    }

    const METHOD: Resolved = Resolved {
        owner: Owner::Method,
        index: None,
    };

    fn by(index: usize) -> ProcessOrigin {
        ProcessOrigin::new(ProcessIndex::new(index), crate::address::Origin::Sample)
    }

    #[test]
    fn stack_is_counted_as_a_whole_from_the_third_time_on() {
        let mut cache = StackCache::default();
        let frames = stack(&[1, 2]);
        assert!(matches!(
            cache.count(by(7), 1, &frames, Ticks::new(10)),
            Lookup::New
        ));
        assert!(matches!(
            cache.count(by(7), 1, &frames, Ticks::new(11)),
            Lookup::Known
        ));
        let unresolved = Resolved {
            owner: Owner::Unresolved,
            index: Some(3),
        };
        let resolved = [Some(unresolved), None];
        cache.learn(by(7), &frames, resolved.into_iter());
        assert!(
            matches!(
                cache.count(by(7), 1, &frames, Ticks::new(12)),
                Lookup::Known
            ),
            "one of two frames"
        );
        let resolved = [unresolved, METHOD];
        cache.learn(by(7), &frames, resolved.into_iter().map(Some));
        assert!(matches!(
            cache.count(by(7), 1, &frames, Ticks::new(13)),
            Lookup::Counted
        ));
        assert!(matches!(
            cache.count(by(7), 1, &frames, Ticks::new(14)),
            Lookup::Counted
        ));
        assert!(
            matches!(cache.count(by(8), 1, &frames, Ticks::new(15)), Lookup::New),
            "another process"
        );
        // Something was loaded.
        assert!(matches!(
            cache.count(by(7), 2, &frames, Ticks::new(16)),
            Lookup::New
        ));
        let evicted = cache.evicted.take().unwrap();
        assert_eq!(
            (evicted.by, evicted.count, evicted.last),
            (by(7), 2, Ticks::new(14))
        );
        assert_eq!(evicted.resolved().collect::<Vec<_>>(), resolved);
        assert_eq!(cache.take().count(), 0);
    }

    #[test]
    fn order_of_frames_matters() {
        let mut cache = StackCache::default();
        cache.count(by(7), 1, &stack(&[1, 2]), Ticks::new(1));
        assert!(matches!(
            cache.count(by(7), 1, &stack(&[2, 1]), Ticks::new(2)),
            Lookup::New
        ));
        assert!(matches!(
            cache.count(by(7), 1, &stack(&[1, 2, 0]), Ticks::new(3)),
            Lookup::New
        ));
    }

    #[test]
    fn counts_survive_eviction() {
        let mut cache = StackCache::default();
        let (mut counted, mut at_once) = (0, 0);
        for round in 0..20i64 {
            for start in 0..1_500u64 {
                let frames = stack(&[start, start + 1, start + 2]);
                match cache.count(by(1), 1 + round as u64 / 7, &frames, Ticks::new(round)) {
                    Lookup::Counted => {}
                    Lookup::Known => {
                        at_once += 1;
                        let resolved = frames.iter().map(|_| Some(METHOD));
                        cache.learn(by(1), &frames, resolved);
                    }
                    Lookup::New => at_once += 1,
                }
                counted += cache.evicted.take().map_or(0, |evicted| evicted.count);
            }
        }
        counted += cache.take().map(|stack| stack.count).sum::<u64>();
        assert_eq!(at_once + counted, 30_000);
        assert!(counted > 1_000, "{counted}");
    }
}
