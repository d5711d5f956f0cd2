//! The address space of a process, and its code heap.

use std::collections::BTreeMap;

use etl_format::constants::PointerSize;

use crate::time::Nanos;

/// The address space of a process: regions that grow upwards, one for each kind of thing.
#[derive(Clone, Debug)]
pub(crate) struct Space {
    image: u64,
    heap: u64,
    stack: u64,
    teb: u64,
    region: u64,
    segment: u64,
}

/// Images, and other reservations of memory, begin at multiples of this.
const GRANULARITY: u64 = 0x1_0000;

impl Space {
    /// An empty space. Processes differ a little in where things begin, as they do under address
    /// space layout randomisation.
    pub fn new(pointer_size: PointerSize, pid: u32) -> Self {
        let shift = u64::from(pid % 61) * GRANULARITY;
        match pointer_size {
            PointerSize::P8 => Space {
                image: 0x7ffa_1000_0000 + shift,
                heap: 0x01c7_2000_0000 + shift,
                stack: 0x00c4_5000_0000 + shift,
                teb: 0x00c4_4000_0000,
                region: 0x7ff9_8000_0000 + shift,
                segment: 0x0221_0000_0000 + shift,
            },
            PointerSize::P4 => Space {
                image: 0x6800_0000 + shift,
                heap: 0x0200_0000 + shift,
                stack: 0x0010_0000,
                teb: 0x7e00_0000,
                region: 0x0a00_0000 + shift,
                segment: 0x2000_0000 + shift,
            },
        }
    }

    /// An address for an image.
    pub fn image(&mut self, size: u64) -> u64 {
        let base = self.image;
        self.image += size.max(1).next_multiple_of(GRANULARITY);
        base
    }

    /// An address for a region of the runtime: code heaps, loader heaps.
    pub fn region(&mut self, size: u64) -> u64 {
        let base = self.region;
        self.region += size.max(1).next_multiple_of(GRANULARITY);
        base
    }

    /// An address for a segment of the collector.
    pub fn segment(&mut self, size: u64) -> u64 {
        let base = self.segment;
        self.segment = base.saturating_add(size.max(1).next_multiple_of(GRANULARITY));
        base
    }

    /// An address on a heap.
    pub fn heap(&mut self, size: u64) -> u64 {
        let base = self.heap;
        self.heap += size.max(1).next_multiple_of(16);
        base
    }

    /// The base of the stack of a new thread, and its environment block.
    pub fn thread_memory(&mut self) -> (u64, u64) {
        self.stack += 0x10_0000;
        self.teb += 0x2000;
        (self.stack, self.teb)
    }
}

/// A heap of code: freed blocks are used again, lowest address first.
#[derive(Clone, Debug, Default)]
pub(crate) struct CodeHeap {
    next: u64,
    end: u64,
    /// Free blocks: address to size, and the time from which they are free.
    free: BTreeMap<u64, (u64, Nanos)>,
}

/// Bytes that a code heap reserves at a time.
const CODE_REGION: u64 = 0x20_0000;

impl CodeHeap {
    /// A block of code; methods are aligned to 16 bytes, with a header before each.
    pub fn allocate(&mut self, size: u32, now: Nanos, space: &mut Space) -> u64 {
        let need = (u64::from(size) + 16).next_multiple_of(16);
        let mut blocks = self.free.iter();
        let block = blocks.find(|(_, (free, since))| *free >= need && *since <= now);
        if let Some((&at, &(free, since))) = block {
            self.free.remove(&at);
            if free > need {
                self.free.insert(at + need, (free - need, since));
            }
            return at;
        }
        if self.next + need > self.end {
            let region = CODE_REGION.max(need);
            self.next = space.region(region);
            self.end = self.next + region;
        }
        let at = self.next;
        self.next += need;
        at
    }

    /// Frees a block, from a time on.
    pub fn release(&mut self, at: u64, size: u32, since: Nanos) {
        self.free
            .insert(at, ((u64::from(size) + 16).next_multiple_of(16), since));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn allocate_reuses_freed_blocks_without_overlap() {
        let mut space = Space::new(PointerSize::P8, 4);
        let mut heap = CodeHeap::default();
        let first = heap.allocate(100, 0, &mut space);
        let second = heap.allocate(100, 0, &mut space);
        assert!(second >= first + 100);
        heap.release(first, 100, 5);
        assert_ne!(
            heap.allocate(40, 4, &mut space),
            first,
            "not before it is free"
        );
        let third = heap.allocate(40, 5, &mut space);
        let fourth = heap.allocate(30, 5, &mut space);
        assert_eq!(third, first);
        assert!(fourth >= third + 40 && fourth + 30 <= first + 128);
        let large = heap.allocate(0x40_0000, 5, &mut space);
        assert!(large > second + 100);
    }
}
