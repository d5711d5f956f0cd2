//! Stacks that were seen a moment ago, and how often since.
//!
//! A program comes to the same place by the same way again and again: some hundreds of stacks make up most traces, of
//! tens of frames each. What all frames of a stack resolved to is kept from the second time on, so that it is only
//! counted as a whole as long as nothing was loaded or unloaded in its process; the counts go to where they belong when
//! another stack takes its place, and at the end of the trace.

use super::recent::Owner;

/// A frame's address as it is stored.
pub(crate) type Frame = [u8; 8];

/// What a frame resolved to, and where it is counted.
pub(crate) type Found = (Owner, Option<usize>);

/// A stack of a process, from one kind of events.
#[derive(Clone, Debug, Default)]
pub(crate) struct Repeat {
    /// Process and origin: see [`Seen::by`](super::recent::Seen::by).
    pub by: u32,
    /// State of the address space; 0 for a place that is free.
    state: u64,
    frames: Vec<Frame>,
    /// What its frames resolved to; empty as long as it was seen only once.
    found: Vec<Found>,
    /// How often it was seen since that is known.
    pub count: u64,
    /// When it was seen last.
    pub last: i64,
}

impl Repeat {
    /// What its frames resolved to.
    pub fn found(&self) -> impl Iterator<Item = Found> + '_ {
        self.found.iter().copied()
    }
}

/// What is known of a stack.
pub(crate) enum Known {
    /// It was counted.
    Counted,
    /// It was seen before: what its frames resolve to is to be told by [`Repeats::learn`].
    Before,
    /// Nothing.
    Nothing,
}

/// The table: one place for each hash.
#[derive(Clone, Debug, Default)]
pub(crate) struct Repeats {
    places: Vec<Repeat>,
    /// What had to give its place away and is not counted yet.
    pub gone: Option<Repeat>,
}

impl Repeats {
    /// A power of two.
    const PLACES: usize = 1 << 11;
    /// Frames of a stack that is kept: with all places taken, these are some megabytes at most.
    pub const MOST: usize = 128;

    /// Where a stack stands.
    fn at(by: u32, frames: &[Frame]) -> usize {
        // Each frame has a factor of its own, so that none has to wait for the one before it.
        const START: u64 = 0x9e37_79b9_7f4a_7c15;
        const STEP: u64 = 0xd1b5_4a32_d192_ed02;
        let (mut sum, mut factor) = (u64::from(by), START);
        for frame in frames {
            factor = factor.wrapping_add(STEP);
            sum = sum.wrapping_add(u64::from_le_bytes(*frame).wrapping_mul(factor));
        }
        ((sum ^ sum >> 32).wrapping_mul(START) >> 40) as usize & (Self::PLACES - 1)
    }

    /// Counts a stack if it is known what it resolves to in this state. What it may take the place of is in
    /// `gone` then.
    #[inline]
    pub fn again(&mut self, by: u32, state: u64, frames: &[Frame], timestamp: i64) -> Known {
        if self.places.is_empty() {
            self.places.resize(Self::PLACES, Repeat::default());
        }
        let Some(place) = self.places.get_mut(Self::at(by, frames)) else { return Known::Nothing };
        if place.by == by && place.state == state && place.frames == frames {
            if place.found.is_empty() {
                return Known::Before;
            }
            (place.count, place.last) = (place.count + 1, timestamp);
            return Known::Counted;
        }
        self.begin(by, state, frames);
        Known::Nothing
    }

    #[cold]
    fn begin(&mut self, by: u32, state: u64, frames: &[Frame]) {
        let Some(place) = self.places.get_mut(Self::at(by, frames)) else { return };
        if place.count > 0 {
            self.gone = Some(std::mem::take(place));
        }
        (place.by, place.state, place.count) = (by, state, 0);
        place.frames.clear();
        place.frames.extend_from_slice(frames);
        place.found.clear();
    }

    /// Notes what the frames of a stack resolve to that was seen before; where that is not known of all of them,
    /// nothing is noted.
    #[cold]
    pub fn learn(&mut self, by: u32, frames: &[Frame], found: impl Iterator<Item = Option<Found>>) {
        let Some(place) = self.places.get_mut(Self::at(by, frames)) else { return };
        place.found.extend(found.map_while(|found| found));
        if place.found.len() != frames.len() {
            place.found.clear();
        }
    }

    /// Takes out all that is to be counted.
    pub fn take(&mut self) -> impl Iterator<Item = Repeat> {
        let Repeats { places, gone } = std::mem::take(self);
        places.into_iter().chain(gone).filter(|repeat| repeat.count > 0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn stack(addresses: &[u64]) -> Vec<Frame> {
        addresses.iter().map(|a| a.to_le_bytes()).collect()
    }

    #[test]
    fn a_stack_is_counted_as_a_whole_from_the_third_time_on() {
        let mut repeats = Repeats::default();
        let frames = stack(&[1, 2]);
        assert!(matches!(repeats.again(7, 1, &frames, 10), Known::Nothing));
        assert!(matches!(repeats.again(7, 1, &frames, 11), Known::Before));
        let found = [Some((Owner::Nobody, Some(3))), None];
        repeats.learn(7, &frames, found.into_iter());
        assert!(matches!(repeats.again(7, 1, &frames, 12), Known::Before), "of one of two");
        let found = [(Owner::Nobody, Some(3)), (Owner::Method, None)];
        repeats.learn(7, &frames, found.into_iter().map(Some));
        assert!(matches!(repeats.again(7, 1, &frames, 13), Known::Counted));
        assert!(matches!(repeats.again(7, 1, &frames, 14), Known::Counted));
        assert!(matches!(repeats.again(8, 1, &frames, 15), Known::Nothing), "another process");
        // Something was loaded.
        assert!(matches!(repeats.again(7, 2, &frames, 16), Known::Nothing));
        let gone = repeats.gone.take().unwrap();
        assert_eq!((gone.by, gone.count, gone.last), (7, 2, 14));
        assert_eq!(gone.found().collect::<Vec<_>>(), found);
        assert_eq!(repeats.take().count(), 0);
    }

    #[test]
    fn the_order_of_frames_matters() {
        let mut repeats = Repeats::default();
        repeats.again(7, 1, &stack(&[1, 2]), 1);
        assert!(matches!(repeats.again(7, 1, &stack(&[2, 1]), 2), Known::Nothing));
        assert!(matches!(repeats.again(7, 1, &stack(&[1, 2, 0]), 3), Known::Nothing));
    }

    #[test]
    fn nothing_is_counted_twice_or_not_at_all() {
        let mut repeats = Repeats::default();
        let (mut counted, mut at_once) = (0, 0);
        for round in 0..20i64 {
            for start in 0..1_500u64 {
                let frames = stack(&[start, start + 1, start + 2]);
                match repeats.again(1, 1 + round as u64 / 7, &frames, round) {
                    Known::Counted => {}
                    Known::Before => {
                        at_once += 1;
                        let found = frames.iter().map(|_| Some((Owner::Method, None)));
                        repeats.learn(1, &frames, found);
                    }
                    Known::Nothing => at_once += 1,
                }
                counted += repeats.gone.take().map_or(0, |gone| gone.count);
            }
        }
        counted += repeats.take().map(|repeat| repeat.count).sum::<u64>();
        assert_eq!(at_once + counted, 30_000);
        assert!(counted > 1_000, "{counted}");
    }
}
