//! Stacks of the kernel whose event is missing.

use etl_analysis::machine::Counted;
use etl_format::constants::hook;
use etl_format::cursor::Bytes;
use etl_format::read::Record;

/// Times of records that are kept at least, and twice as many at most. The user part of a stack
/// comes when its thread leaves the kernel, which may be after many other records.
const KEPT: usize = 1 << 15;

/// Times of records, and stacks that belong to none of them.
#[derive(Clone, Debug, Default)]
pub(crate) struct Walked {
    /// Raw timestamps of the last records, in order.
    times: Vec<i64>,
    /// Whether files with different clocks are read together.
    is_mixed: bool,
    /// Stacks whose event would have come while times were kept.
    pub stacks: u64,
    /// Those of them without an event.
    pub without_event: Counted,
}

impl Walked {
    /// Adds a record that may have a stack.
    #[inline]
    pub fn add(&mut self, timestamp: i64) {
        match self.times.last() {
            Some(&last) if last == timestamp => return,
            Some(&last) if last > timestamp => self.is_mixed = true,
            _ => {}
        }
        if self.times.len() >= 2 * KEPT {
            self.forget();
        }
        self.times.push(timestamp);
    }

    #[cold]
    fn forget(&mut self) {
        self.times.drain(..KEPT);
    }

    /// Whether a hook is that of a stack, and not of an event.
    #[inline]
    pub fn is_stack(hook: u16) -> bool {
        hook >> 8 == hook::STACK >> 8
    }

    /// Adds a stack, or a definition of one.
    #[inline(never)]
    pub fn stack(&mut self, record: &Record<'_>, hook: u16, time: i64) {
        if !matches!(hook, hook::STACK | hook::STACK_KEY_KERNEL | hook::STACK_KEY_USER) {
            return;
        }
        let (Some(at), Some(&first)) = (record.payload().i64_at(0), self.times.first()) else {
            return;
        };
        // What is before the first record, or was forgotten, is not known. A stack that comes
        // before its event is another matter.
        if self.is_mixed || at < first || at > record.timestamp() {
            return;
        }
        self.stacks += 1;
        if self.times.binary_search(&at).is_err() {
            self.without_event.add(time);
        }
    }
}
