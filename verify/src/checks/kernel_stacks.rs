//! Stacks of the kernel whose event is missing.

use etl_analysis::machine::Counted;
use etl_format::Ticks;
use etl_format::constants::hook;
use etl_format::cursor::Bytes;
use etl_format::read::Record;

/// The smallest number of times that are kept; the largest is twice this. The user part of a stack
/// is logged when its thread leaves the kernel, which may be after many other records.
const KEPT: usize = 1 << 15;

/// Last records that are compared first: most stacks follow their event at once.
const RECENT: usize = 4;

/// Offset of EventTimeStamp in the payload of a stack and of the use of a stack's key.
const EVENT_TIME: usize = 0;

/// Whether records with this hook are about stacks: stacks, uses of their keys, and definitions.
#[inline]
pub(super) fn is_about_stacks(hook: u16) -> bool {
    hook >> 8 == hook::STACK >> 8
}

/// The raw timestamp of the event that a kernel stack belongs to; `None` if the record is not a
/// stack of an event.
#[inline]
pub(super) fn event_time(record: &Record<'_>, hook: u16) -> Option<Ticks> {
    match hook {
        hook::STACK | hook::STACK_KEY_KERNEL | hook::STACK_KEY_USER => {
            record.payload().i64_at(EVENT_TIME).map(Ticks::new)
        }
        _ => None,
    }
}

/// Times of the last records, and counts of stacks that belong to none of them.
#[derive(Clone, Debug, Default)]
pub(crate) struct KernelStacks {
    /// Raw timestamps of the last records, in order, and free slots.
    times: Vec<Ticks>,
    /// The number of slots in use.
    used: usize,
    /// The last timestamp.
    last: Ticks,
    /// Whether files with different clocks are read together.
    is_mixed: bool,
    /// Stacks whose event would be among the kept times.
    pub stacks: u64,
    /// Stacks among them without an event.
    pub without_event: Counted,
}

impl KernelStacks {
    /// Adds a record that may have a stack.
    #[inline(always)]
    pub fn add_record(&mut self, timestamp: Ticks) {
        self.is_mixed |= timestamp < self.last;
        self.last = timestamp;
        if self.used == self.times.len() {
            self.make_room();
        }
        if let Some(slot) = self.times.get_mut(self.used) {
            *slot = timestamp;
            self.used += 1;
        }
    }

    #[cold]
    #[inline(never)]
    fn make_room(&mut self) {
        if self.times.len() < 2 * KEPT {
            self.times.resize(self.times.len() + KEPT, Ticks::new(0));
        } else {
            self.times.copy_within(KEPT.., 0);
            self.used = KEPT;
        }
    }

    /// Adds a stack of the event at `event_time`, a raw timestamp.
    #[inline(never)]
    pub fn add_stack(&mut self, record: &Record<'_>, event_time: Ticks, time: Ticks) {
        let times = self.times.get(..self.used).unwrap_or_default();
        let Some(&first) = times.first() else { return };
        // An event before the first kept time may have been forgotten. `StackPairs` counts stacks
        // that come before their event.
        if self.is_mixed || event_time < first || event_time > record.timestamp() {
            return;
        }
        let (_, recent) = times.split_at(times.len().saturating_sub(RECENT));
        let has_event = recent.contains(&event_time) || times.binary_search(&event_time).is_ok();
        self.stacks += 1;
        if !has_event {
            self.without_event.add(time);
        }
    }
}
