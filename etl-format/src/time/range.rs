//! Ranges of time.

use std::fmt;

use super::Ticks;

/// A range of time, `[from, to)`: `from` belongs to it, `to` does not. An end that is `None` is
/// open, so the default contains every time.
///
/// The times are raw timestamps of one clock, or of type [`FileTime`](crate::FileTime).
///
/// ```
/// use etl_format::{Ticks, TimeRange};
///
/// let second_half = TimeRange::new(Some(Ticks::new(500)), Some(Ticks::new(1_000)));
/// assert!(second_half.contains(500));
/// assert!(!second_half.contains(1_000));
/// assert!(second_half.intersects(TimeRange::new(None, Some(Ticks::new(501)))));
/// assert!(!second_half.intersects(TimeRange::new(Some(Ticks::new(1_000)), None)));
/// assert_eq!(second_half.to_string(), "[500, 1000)");
///
/// let everything: TimeRange = TimeRange::default();
/// assert!(everything.contains(i64::MIN) && everything.is_everything());
/// assert_eq!(everything.to_string(), "[.., ..)");
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct TimeRange<T = Ticks> {
    /// The first time of the range; `None` if it has no beginning.
    pub from: Option<T>,
    /// The first time after the range; `None` if it has no end.
    pub to: Option<T>,
}

impl<T> Default for TimeRange<T> {
    fn default() -> Self {
        TimeRange {
            from: None,
            to: None,
        }
    }
}

impl<T: Copy + Ord> TimeRange<T> {
    /// The times from `from` to before `to`. A range that ends before it begins is empty.
    #[must_use]
    pub fn new(from: Option<T>, to: Option<T>) -> Self {
        TimeRange { from, to }
    }

    /// Whether a time is in the range.
    #[inline]
    pub fn contains(self, time: impl Into<T>) -> bool {
        let time = time.into();
        self.from.is_none_or(|from| from <= time) && self.to.is_none_or(|to| time < to)
    }

    /// Whether the ranges have a time in common.
    ///
    /// ```
    /// use etl_format::{Ticks, TimeRange};
    ///
    /// let empty = TimeRange::new(Some(Ticks::new(5)), Some(Ticks::new(5)));
    /// assert!(!empty.intersects(TimeRange::default()));
    /// ```
    #[must_use]
    pub fn intersects(self, other: TimeRange<T>) -> bool {
        !self.intersection(other).is_empty()
    }

    /// The times that are in both ranges.
    #[must_use]
    pub fn intersection(self, other: TimeRange<T>) -> TimeRange<T> {
        let to = match (self.to, other.to) {
            (Some(first), Some(second)) => Some(first.min(second)),
            (first, second) => first.or(second),
        };
        // `None` is less than any time.
        TimeRange {
            from: self.from.max(other.from),
            to,
        }
    }

    /// Whether it contains no time, as it does not begin before its end.
    #[must_use]
    pub fn is_empty(self) -> bool {
        if let (Some(from), Some(to)) = (self.from, self.to) {
            from >= to
        } else {
            false
        }
    }

    /// Whether it contains every time.
    #[must_use]
    pub fn is_everything(self) -> bool {
        self.from.is_none() && self.to.is_none()
    }
}

impl<T: fmt::Display> fmt::Display for TimeRange<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.from {
            Some(from) => write!(f, "[{from}, ")?,
            None => f.write_str("[.., ")?,
        }
        match &self.to {
            Some(to) => write!(f, "{to})"),
            None => f.write_str("..)"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn any_range() -> impl Strategy<Value = TimeRange> {
        let time = || proptest::option::of((0i64..6).prop_map(Ticks::new));
        (time(), time()).prop_map(|(from, to)| TimeRange::new(from, to))
    }

    proptest! {
        #[test]
        fn intersection_contains_the_times_of_both(a in any_range(), b in any_range()) {
            let both = a.intersection(b);
            for time in -1..8 {
                prop_assert_eq!(both.contains(time), a.contains(time) && b.contains(time));
            }
            let is_shared = (-1..8).any(|time| both.contains(time));
            prop_assert_eq!(a.intersects(b), is_shared);
            prop_assert_eq!(both.is_empty(), !is_shared);
        }
    }
}
