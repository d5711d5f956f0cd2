//! Stacks of the kernel whose event is missing.

use etl_analysis::machine::Counted;
use etl_format::Ticks;
use etl_format::constants::hook;
use etl_format::cursor::Bytes;
use etl_format::read::Record;

/// Times of records that are kept at least, and twice as many at most. The user part of a stack
/// comes when its thread leaves the kernel, which may be after many other records.
const KEPT: usize = 1 << 15;

/// Records among which the event of a stack is looked for first.
const RECENT: usize = 4;

/// Times of records, and stacks that belong to none of them.
#[derive(Clone, Debug, Default)]
pub(crate) struct Walked {
    /// Raw timestamps of the last records, in order, and free places.
    times: Vec<Ticks>,
    /// How many of the places are taken.
    taken: usize,
    /// The last timestamp.
    last: Ticks,
    /// Whether files with different clocks are read together.
    is_mixed: bool,
    /// Stacks whose event would have come while times were kept.
    pub stacks: u64,
    /// Those of them without an event.
    pub without_event: Counted,
}

impl Walked {
    /// Adds a record that may have a stack.
    #[inline(always)]
    pub fn add(&mut self, timestamp: Ticks) {
        self.is_mixed |= timestamp < self.last;
        self.last = timestamp;
        if self.taken == self.times.len() {
            self.make_place();
        }
        if let Some(place) = self.times.get_mut(self.taken) {
            *place = timestamp;
            self.taken += 1;
        }
    }

    #[cold]
    #[inline(never)]
    fn make_place(&mut self) {
        if self.times.len() < 2 * KEPT {
            self.times.resize(self.times.len() + KEPT, Ticks::new(0));
        } else {
            self.times.copy_within(KEPT.., 0);
            self.taken = KEPT;
        }
    }

    /// Whether a hook is that of a stack, and not of an event.
    #[inline]
    pub fn is_stack(hook: u16) -> bool {
        hook >> 8 == hook::STACK >> 8
    }

    /// Adds a stack, or a definition of one.
    #[inline(never)]
    pub fn stack(&mut self, record: &Record<'_>, hook: u16, time: Ticks) {
        if !matches!(
            hook,
            hook::STACK | hook::STACK_KEY_KERNEL | hook::STACK_KEY_USER
        ) {
            return;
        }
        let times = self.times.get(..self.taken).unwrap_or_default();
        let (Some(at), Some(&first)) = (record.payload().i64_at(0), times.first()) else {
            return;
        };
        let at = Ticks::new(at);
        // What is before the first record, or was forgotten, is not known. A stack that comes
        // before its event is another matter.
        if self.is_mixed || at < first || at > record.timestamp() {
            return;
        }
        // Most of them follow their event at once.
        let (_, recent) = times.split_at(times.len().saturating_sub(RECENT));
        let is_missing = !recent.contains(&at) && times.binary_search(&at).is_err();
        self.stacks += 1;
        if is_missing {
            self.without_event.add(time);
        }
    }
}
