//! Durations of many operations in little memory.

use std::collections::BTreeMap;
use std::ops::AddAssign;

/// Bits of a value that its bucket keeps: the rest makes less than 1/32 of it.
const BITS: u32 = 5;

/// Counts of values by size: percentiles are at most 1/32 above the real value.
///
/// ```
/// use etl_analysis::behavior::Histogram;
///
/// let mut durations = Histogram::default();
/// for duration in [10, 20, 30] {
///     durations.add(duration);
/// }
/// assert_eq!(durations.count(), 3);
/// assert_eq!(durations.mean(), Some(20));
/// assert_eq!(durations.max(), Some(30));
/// ```
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Histogram {
    buckets: BTreeMap<u16, u64>,
    count: u64,
    total: u64,
    max: u64,
}

impl Histogram {
    /// Adds a value.
    pub fn add(&mut self, value: u64) {
        *self.buckets.entry(bucket(value)).or_default() += 1;
        self.count += 1;
        self.total = self.total.saturating_add(value);
        self.max = self.max.max(value);
    }

    /// How many values there are.
    #[must_use]
    pub fn count(&self) -> u64 {
        self.count
    }

    /// Their sum.
    #[must_use]
    pub fn total(&self) -> u64 {
        self.total
    }

    /// The mean of the values; `None` if there are no values.
    #[must_use]
    pub fn mean(&self) -> Option<u64> {
        self.total.checked_div(self.count)
    }

    /// The largest value; `None` if there are no values.
    #[must_use]
    pub fn max(&self) -> Option<u64> {
        (self.count > 0).then_some(self.max)
    }

    /// A value that at least so many percent of all values do not exceed.
    #[must_use]
    pub fn percentile(&self, percent: u8) -> Option<u64> {
        let rank = (self.count * u64::from(percent.min(100)))
            .div_ceil(100)
            .max(1);
        let mut below = 0;
        for (&bucket, count) in &self.buckets {
            below += count;
            if below >= rank {
                return Some(end(bucket).min(self.max));
            }
        }
        None
    }
}

impl AddAssign<&Histogram> for Histogram {
    fn add_assign(&mut self, other: &Histogram) {
        for (&bucket, count) in &other.buckets {
            *self.buckets.entry(bucket).or_default() += count;
        }
        self.count += other.count;
        self.total = self.total.saturating_add(other.total);
        self.max = self.max.max(other.max);
    }
}

/// The bucket of a value: its highest bits and their place.
fn bucket(value: u64) -> u16 {
    let shift = (u64::BITS - value.leading_zeros()).saturating_sub(BITS + 1);
    // The highest bits have at most six places, the shift at most six.
    ((shift << (BITS + 1)) + (value >> shift) as u32) as u16
}

/// The largest value of a bucket.
fn end(bucket: u16) -> u64 {
    let shift = bucket >> (BITS + 1);
    let high = u64::from(bucket) & ((1 << (BITS + 1)) - 1);
    (high + 1)
        .checked_shl(shift.into())
        .map_or(u64::MAX, |end| end.wrapping_sub(1))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn percentiles_are_close_to_those_of_the_values() {
        let mut histogram = Histogram::default();
        let values: Vec<u64> = (0..1000).map(|n| n * n * 7).collect();
        values.iter().for_each(|&value| histogram.add(value));
        for percent in 1..=100 {
            let real = values[values.len() * usize::from(percent) / 100 - 1];
            let found = histogram.percentile(percent).unwrap();
            assert!(
                real <= found && found <= real + real / 32 + 1,
                "{percent}: {real} {found}"
            );
        }
        assert_eq!(histogram.max(), Some(999 * 999 * 7));
        assert_eq!(Histogram::default().percentile(50), None);
    }

    #[test]
    fn every_value_is_in_its_bucket() {
        for value in [0, 1, 63, 64, 65, 127, 128, 1 << 40, u64::MAX - 1, u64::MAX] {
            assert!(end(bucket(value)) >= value, "{value}");
            assert!(value == 0 || end(bucket(value) - 1) < value || bucket(value) % 64 == 32);
        }
    }
}
