//! Counts of events, with the time of the first.

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
    /// One more.
    pub fn add(&mut self, timestamp: Ticks) {
        self.count += 1;
        self.first.get_or_insert(timestamp);
    }
}
