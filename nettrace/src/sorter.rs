//! Puts events in time order.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use crate::held::HeldEvent;
use crate::time::Ticks;

/// Holds events until no earlier one can follow.
#[derive(Debug, Default)]
pub(crate) struct Sorter {
    heap: BinaryHeap<Reverse<Entry>>,
    /// Events added so far, so that equal times stay in the order of the stream.
    added: u64,
    /// No later event is earlier than this.
    barrier: Option<Ticks>,
    /// Whether all held events are returned before the next one is added.
    is_draining: bool,
}

#[derive(Debug)]
struct Entry {
    timestamp: Ticks,
    number: u64,
    event: HeldEvent,
}

impl Ord for Entry {
    fn cmp(&self, other: &Self) -> std::cmp::Ordering {
        let by_time = self.timestamp.cmp(&other.timestamp);
        by_time.then(self.number.cmp(&other.number))
    }
}

impl PartialOrd for Entry {
    fn partial_cmp(&self, other: &Self) -> Option<std::cmp::Ordering> {
        Some(self.cmp(other))
    }
}

impl PartialEq for Entry {
    fn eq(&self, other: &Self) -> bool {
        self.cmp(other).is_eq()
    }
}

impl Eq for Entry {}

impl Sorter {
    pub fn push(&mut self, event: HeldEvent) {
        let timestamp = event.header.timestamp;
        if event.header.is_barrier {
            self.barrier = self.barrier.max(Some(timestamp));
        }
        self.heap.push(Reverse(Entry {
            timestamp,
            number: self.added,
            event,
        }));
        self.added += 1;
    }

    /// The earliest event, if none that is earlier can follow, or if memory is `short`.
    pub fn pop_due(&mut self, memory: Memory) -> Option<HeldEvent> {
        let Some(Reverse(earliest)) = self.heap.peek() else {
            self.is_draining = false;
            return None;
        };
        let is_before_barrier = self.barrier >= Some(earliest.timestamp);
        if !self.is_draining && !is_before_barrier && memory == Memory::Sufficient {
            return None;
        }
        let Reverse(entry) = self.heap.pop()?;
        Some(entry.event)
    }

    /// Returns all held events before the next one is added: at a sequence point and at the end.
    pub fn drain(&mut self) {
        self.is_draining = true;
        self.barrier = None;
    }

    pub fn is_empty(&self) -> bool {
        self.heap.is_empty()
    }

    /// Bytes of memory that the events take, without their payloads.
    pub fn size_in_memory(&self) -> usize {
        self.heap.len() * size_of::<Entry>()
    }
}

/// Whether the memory for sorting is sufficient.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Memory {
    Sufficient,
    Short,
}
