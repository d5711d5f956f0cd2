//! Raw timestamps.

use std::fmt;

/// A raw timestamp: ticks of the clock of a trace or of a recording.
///
/// Timestamps of different clocks cannot be compared. [`Clock::time`](crate::Clock::time) converts
/// a timestamp to calendar time.
///
/// ```
/// use etl_format::Ticks;
///
/// let first = Ticks::new(1_000);
/// let second = first.saturating_add(500);
/// assert!(first < second);
/// assert_eq!(second.saturating_since(first), 500);
/// assert_eq!(second.to_string(), "1500");
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[cfg_attr(
    feature = "serde",
    derive(serde::Serialize, serde::Deserialize),
    serde(transparent)
)]
pub struct Ticks(i64);

impl Ticks {
    /// The earliest timestamp.
    pub const MIN: Ticks = Ticks(i64::MIN);
    /// The latest timestamp.
    pub const MAX: Ticks = Ticks(i64::MAX);

    /// A timestamp as records store it.
    #[must_use]
    pub const fn new(ticks: i64) -> Self {
        Ticks(ticks)
    }

    /// The timestamp as records store it.
    #[must_use]
    pub const fn get(self) -> i64 {
        self.0
    }

    /// A later timestamp (an earlier one if `ticks` is negative), within 64 bits.
    #[must_use]
    pub const fn saturating_add(self, ticks: i64) -> Self {
        Ticks(self.0.saturating_add(ticks))
    }

    /// A later timestamp (an earlier one if `ticks` is negative); `None` if it does not fit into 64
    /// bits.
    #[must_use]
    pub const fn checked_add(self, ticks: i64) -> Option<Self> {
        match self.0.checked_add(ticks) {
            Some(ticks) => Some(Ticks(ticks)),
            None => None,
        }
    }

    /// Ticks from an earlier timestamp to this one, within 64 bits; negative if `earlier` is later.
    #[must_use]
    pub const fn saturating_since(self, earlier: Ticks) -> i64 {
        self.0.saturating_sub(earlier.0)
    }
}

impl From<i64> for Ticks {
    fn from(ticks: i64) -> Self {
        Ticks(ticks)
    }
}

impl PartialEq<i64> for Ticks {
    fn eq(&self, ticks: &i64) -> bool {
        self.0 == *ticks
    }
}

impl fmt::Display for Ticks {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}
