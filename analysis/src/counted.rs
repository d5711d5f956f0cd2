//! Events that are counted, and the times of the first and the last of them.

use etl_format::Ticks;

/// Events of one kind that were counted, and when the first of them was.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counted {
    /// How many.
    pub count: u64,
    /// Timestamp of the first.
    pub first: Option<Ticks>,
}

impl Counted {
    /// Counts an event.
    pub fn add(&mut self, timestamp: Ticks) {
        self.count += 1;
        self.first.get_or_insert(timestamp);
    }
}

/// The times of the first and the last of some events. Both times belong to the span.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Span {
    /// Time of the first event.
    pub first: Ticks,
    /// Time of the last event.
    pub last: Ticks,
}

impl Span {
    /// From a first to a last time.
    #[must_use]
    pub const fn new(first: Ticks, last: Ticks) -> Self {
        Span { first, last }
    }

    /// The span of one event.
    #[must_use]
    pub const fn at(time: Ticks) -> Self {
        Span::new(time, time)
    }
}

/// Adds an event to the span of some events.
#[inline]
pub(crate) fn widen(span: &mut Option<Span>, time: Ticks) {
    match span {
        Some(span) => {
            span.first = time.min(span.first);
            span.last = time.max(span.last);
        }
        None => *span = Some(Span::at(time)),
    }
}
