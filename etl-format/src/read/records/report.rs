//! Statistics of reading in time order.

/// What the reader had to do for time order.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct OrderReport {
    /// Buffers whose records had to be sorted.
    pub sorted_buffers: u64,
    /// Buffers that begin before an earlier one of the same processor ends.
    pub overlaps: u64,
    /// Records returned after a later one; always 0 with
    /// [`OrderCheck::Scan`](crate::read::OrderCheck).
    pub late: u64,
    /// The largest number of bytes held at once: buffers, and 16 bytes for each of their records.
    pub held: u64,
}

impl OrderReport {
    /// Whether every processor's records were in time order, so that they only had to be merged.
    #[must_use]
    pub fn was_in_order(&self) -> bool {
        *self
            == OrderReport {
                held: self.held,
                ..OrderReport::default()
            }
    }
}
