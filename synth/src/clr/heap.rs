//! What is on the managed heap, and where: segments, generations, handles.

use etl_format::constants::PointerSize;

use crate::machine::Space;
use crate::rng::Rng;
use crate::time::Nanos;

/// The kind of objects in a segment, with its number in events.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    Small = 0,
    Large = 1,
    Pinned = 3,
}

/// Memory that the collector has reserved: a segment, or since .NET 7 a region.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Segment {
    pub heap: u32,
    pub kind: Kind,
    pub address: u64,
    pub size: u64,
}

impl Segment {
    /// The first address after it.
    fn end(&self) -> u64 {
        self.address + self.size
    }
}

/// A piece of a generation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Range {
    pub generation: u8,
    pub start: u64,
    pub used: u64,
    pub reserved: u64,
}

/// A handle of the program.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Handle {
    pub id: u64,
    pub object: u64,
    pub kind: u32,
}

/// What a pinned object takes.
pub(super) const PINNED_SIZE: u64 = 4096;
/// Bytes of a reservation that the collector uses itself.
const HEADER: u64 = 0x1000;
/// Minimum size of a generation: one free object.
const EMPTY: u64 = 24;

/// What is on the heap.
#[derive(Debug, Default)]
pub(crate) struct Heap {
    /// Bytes in generations 0 to 2 and among the large objects.
    pub sizes: [u64; 4],
    /// Collections so far.
    pub collections: u32,
    /// When the last collection ended.
    pub free_at: Nanos,
    /// Of generation 0 since the last of generation 1, and of 1 since the last of 2.
    pub since: [u32; 2],
    /// Ticks of allocation so far.
    pub ticks: u64,
    /// Allocated since the last collection.
    pub fresh: u64,
    /// Heaps: one, or with the server's collector several.
    pub heaps: u32,
    /// Whether there is a heap of pinned objects (since .NET 5).
    pub pinned_heap: bool,
    pub segments: Vec<Segment>,
    /// Reservations that were given back.
    vacant: Vec<(u64, u64)>,
    /// Where the next object of each heap is allocated: index of the segment, and address.
    cursors: Vec<(usize, u64)>,
    pub handles: Vec<Handle>,
    handles_made: u64,
    /// Unreachable objects with finalizers.
    pub dying: u32,
    /// Whether the thread that collects in the background is there.
    pub background_thread: bool,
    /// Types that were already reported, a bit for each.
    pub emitted_types: u64,
    /// Random numbers for allocations.
    pub rng: Rng,
    /// Bytes allocated in the domain of the program.
    pub domain_bytes: u64,
    /// Bytes allocated there since the last event.
    pub domain_bytes_since: u64,
}

impl Heap {
    pub fn new(heaps: u32, pinned_heap: bool) -> Self {
        Heap {
            heaps: heaps.max(1),
            pinned_heap,
            ..Heap::default()
        }
    }

    /// A heap's part of something that is spread evenly.
    pub fn share(&self, whole: u64, heap: u32) -> u64 {
        let heaps = u64::from(self.heaps.max(1));
        whole / heaps + if heap == 0 { whole % heaps } else { 0 }
    }

    fn reserved_bytes(&self, heap: u32, kind: Kind) -> u64 {
        self.of(heap, kind).map(|s| s.size).sum()
    }

    pub fn of(&self, heap: u32, kind: Kind) -> impl DoubleEndedIterator<Item = &Segment> {
        self.segments
            .iter()
            .filter(move |s| s.heap == heap && s.kind == kind)
    }

    fn needed(&self, heap: u32, kind: Kind) -> u64 {
        let [young, middle, old, large] = self.sizes;
        match kind {
            Kind::Small => self.share(young + middle + old, heap) + 3 * EMPTY,
            Kind::Large => self.share(large, heap) + EMPTY,
            Kind::Pinned => EMPTY,
        }
    }

    /// Reserves what the generations need and returns the new segments. There are none if the
    /// maximum number of segments is reached.
    pub fn grow(&mut self, sizes: Sizes, space: &mut Space) -> Vec<Segment> {
        let mut new = Vec::new();
        let kinds = [Kind::Small, Kind::Large, Kind::Pinned];
        for heap in 0..self.heaps {
            for kind in kinds
                .into_iter()
                .filter(|k| *k != Kind::Pinned || self.pinned_heap)
            {
                let needed = self.needed(heap, kind);
                let mut reserved = self.reserved_bytes(heap, kind);
                while (reserved == 0 || reserved < needed) && self.segments.len() < sizes.most {
                    let reserve = if kind == Kind::Small {
                        sizes.small
                    } else {
                        sizes.large
                    };
                    let at = self.vacant.iter().position(|(_, size)| *size == reserve);
                    let base = match at {
                        Some(at) => self.vacant.swap_remove(at).0,
                        None => space.segment(reserve),
                    };
                    let size = reserve - HEADER;
                    let segment = Segment {
                        heap,
                        kind,
                        address: base + HEADER,
                        size,
                    };
                    self.segments.push(segment);
                    new.push(segment);
                    reserved += size;
                }
            }
        }
        new
    }

    /// Frees segments that the generations no longer need, and returns them.
    pub fn shrink(&mut self) -> Vec<Segment> {
        let mut gone = Vec::new();
        for heap in 0..self.heaps {
            for kind in [Kind::Small, Kind::Large] {
                let needed = self.needed(heap, kind);
                loop {
                    let last = self.of(heap, kind).next_back().copied();
                    let Some(last) = last.filter(|_| self.of(heap, kind).count() > 1) else {
                        break;
                    };
                    if self.reserved_bytes(heap, kind) - last.size < needed {
                        break;
                    }
                    self.segments.retain(|s| *s != last);
                    self.vacant
                        .push((last.address - HEADER, last.size + HEADER));
                    gone.push(last);
                }
            }
        }
        gone
    }

    /// The address ranges of the generations of a heap, in the order of the events: pinned objects,
    /// large objects, then 2, 1 and 0.
    pub fn ranges(&self, heap: u32) -> Vec<Range> {
        let [young, middle, old, large] = self.sizes.map(|size| self.share(size, heap));
        let mut out = Vec::new();
        if self.pinned_heap {
            self.place_generations(heap, Kind::Pinned, &[(4, EMPTY)], &mut out);
        }
        self.place_generations(heap, Kind::Large, &[(3, large)], &mut out);
        let small = [(2, old), (1, middle), (0, young)];
        self.place_generations(heap, Kind::Small, &small, &mut out);
        out
    }

    /// Places generations, given with their sizes, one after the other in the segments of a kind.
    fn place_generations(
        &self,
        heap: u32,
        kind: Kind,
        generations: &[(u8, u64)],
        out: &mut Vec<Range>,
    ) {
        let segments: Vec<&Segment> = self.of(heap, kind).collect();
        place_in(&segments, generations, out);
    }

    /// The next objects are allocated after the existing ones.
    pub fn settle(&mut self) {
        self.cursors.clear();
        for heap in 0..self.heaps {
            let end = self.ranges(heap).last().map_or(0, |r| r.start + r.used);
            let segment = self
                .segments
                .iter()
                .rposition(|s| s.address <= end && end <= s.end());
            let at = segment.unwrap_or(0);
            self.cursors.push((at, end));
        }
    }

    /// The address of what was allocated: a new object, or the end of the large objects.
    pub fn place(&mut self, heap: u32, size: u64, large: bool) -> u64 {
        if !large {
            return self.object(heap, size);
        }
        let used = self.share(self.sizes[3], heap);
        self.of(heap, Kind::Large)
            .next_back()
            .map_or(0, |s| s.address + used % s.size)
    }

    /// The address of a new object.
    pub fn object(&mut self, heap: u32, size: u64) -> u64 {
        let Some((at, cursor)) = self.cursors.get_mut(heap as usize) else {
            return 0;
        };
        let end = cursor.saturating_add(size);
        if self
            .segments
            .get(*at)
            .is_none_or(|segment| segment.end() < end)
        {
            let mut later = self.segments.iter().enumerate().skip(*at + 1);
            // An object that fits nowhere gets the first address of the last segment.
            if let Some((next, segment)) =
                later.find(|(_, s)| s.heap == heap && s.kind == Kind::Small)
            {
                *at = next;
                *cursor = segment.address;
            } else if let Some(segment) = self.segments.get(*at) {
                *cursor = segment.address;
            }
        }
        let address = *cursor;
        *cursor = cursor.saturating_add(size.next_multiple_of(8));
        address
    }

    /// Creates a handle of a new object.
    pub fn hold(&mut self, kind: u32, base: u64) -> Handle {
        let object = self.object(0, PINNED_SIZE);
        let id = base + self.handles_made * 8;
        self.handles_made += 1;
        let handle = Handle { id, object, kind };
        self.handles.push(handle);
        handle
    }

    /// Handles that pin objects.
    pub fn pinned(&self) -> impl Iterator<Item = &Handle> {
        self.handles.iter().filter(|h| h.kind == 3)
    }

    /// Collects generations up to this one: survivors move one generation up. Returns the promoted
    /// bytes by generation.
    pub fn clean(&mut self, generation: u8) -> [u64; 4] {
        let [young, middle, old, large] = self.sizes;
        let [since0, since1] = self.since;
        let mut promoted = [surviving(young, 12), 0, 0, 0];
        let mut sizes = [0, middle + surviving(young, 12), old, large];
        self.since = [since0 + 1, since1];
        if generation >= 1 {
            let up = surviving(middle, 30);
            promoted = [surviving(young, 12), up, 0, 0];
            sizes = [0, surviving(young, 12), old + up, large];
            self.since = [0, since1 + 1];
        }
        if generation >= 2 {
            let [.., old, _] = sizes;
            let keep = surviving(old, 70);
            let keep_large = surviving(large, 50);
            promoted = [
                surviving(young, 12),
                surviving(middle, 30),
                keep,
                keep_large,
            ];
            sizes = [0, surviving(young, 12), keep, keep_large];
            self.since = [0, 0];
        }
        self.sizes = sizes;
        promoted
    }
}

/// Sizes of reservations.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Sizes {
    small: u64,
    large: u64,
    most: usize,
}

impl Sizes {
    /// Segments of the desktop and of older Cores, regions since .NET 7.
    pub fn new(regions: bool, pointers: PointerSize) -> Self {
        match (pointers, regions) {
            (PointerSize::P4, _) => Sizes {
                small: 16 << 20,
                large: 16 << 20,
                most: 48,
            },
            (PointerSize::P8, true) => Sizes {
                small: 4 << 20,
                large: 32 << 20,
                most: 65_536,
            },
            (PointerSize::P8, false) => Sizes {
                small: 256 << 20,
                large: 128 << 20,
                most: 16_384,
            },
        }
    }
}

impl Sizes {
    /// Bytes of a reservation for small objects.
    pub fn small(&self) -> u64 {
        self.small
    }

    /// Bytes of a reservation for large objects.
    pub fn large(&self) -> u64 {
        self.large
    }
}

/// Places generations one after the other in segments.
fn place_in(segments: &[&Segment], parts: &[(u8, u64)], out: &mut Vec<Range>) {
    let mut at = 0;
    let mut used = 0;
    for (number, (generation, size)) in parts.iter().enumerate() {
        let youngest = number + 1 == parts.len();
        let mut left = (*size).max(EMPTY).next_multiple_of(8);
        while left > 0 {
            let Some(segment) = segments.get(at) else {
                break;
            };
            let free = segment.size - used;
            if free == 0 {
                at += 1;
                used = 0;
                continue;
            }
            let here = left.min(free);
            let start = segment.address + used;
            let reserved = if youngest && here == left { free } else { here };
            out.push(Range {
                generation: *generation,
                start,
                used: here,
                reserved,
            });
            used += here;
            left -= here;
        }
    }
}

/// The bytes of objects that survive a collection, if this percentage of them does.
fn surviving(size: u64, percent: u64) -> u64 {
    size / 100 * percent
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn generations_lie_in_their_segments_and_touch_nowhere() {
        let mut space = Space::new(PointerSize::P8, 8);
        let sizes = Sizes::new(true, PointerSize::P8);
        let mut heap = Heap::new(2, true);
        for round in 0..40u64 {
            heap.sizes = [
                round * 3_000_000 % 20_000_000,
                round * 100_001,
                round * 700_003,
                5_000,
            ];
            heap.grow(sizes, &mut space);
            if round % 3 == 0 {
                heap.sizes[2] /= 2;
                heap.shrink();
            }
            heap.settle();
            for number in 0..2 {
                let ranges = heap.ranges(number);
                for (n, range) in ranges.iter().enumerate() {
                    let from = range.start;
                    let to = range.start + range.reserved;
                    let inside = |s: &&Segment| s.address <= from && to <= s.address + s.size;
                    assert!(
                        heap.segments.iter().filter(inside).count() == 1,
                        "{range:?}"
                    );
                    let apart = |other: &Range| {
                        other.start >= from + range.used || other.start + other.used <= from
                    };
                    assert!(
                        ranges.iter().skip(n + 1).all(apart),
                        "{range:?} in {ranges:?}"
                    );
                }
                let old: u64 = ranges
                    .iter()
                    .filter(|r| r.generation == 2)
                    .map(|r| r.used)
                    .sum();
                assert_eq!(
                    old,
                    heap.share(heap.sizes[2], number)
                        .max(24)
                        .next_multiple_of(8)
                );
            }
        }
    }
}
