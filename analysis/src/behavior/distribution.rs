//! Sums and percentiles of durations.

/// Durations: how many, how long together, and how they are distributed.
///
/// ```
/// use etl_analysis::behavior::Distribution;
///
/// let durations = Distribution::new([10, 40, 30, 20]);
/// assert_eq!(durations.total(), 100);
/// assert_eq!(durations.percentile(50), Some(20));
/// assert_eq!(Distribution::default().max(), None);
/// ```
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Distribution {
    sorted: Vec<u64>,
    total: u64,
}

impl Distribution {
    /// The distribution of some values.
    #[must_use]
    pub fn new(values: impl IntoIterator<Item = u64>) -> Self {
        let mut sorted: Vec<u64> = values.into_iter().collect();
        sorted.sort_unstable();
        let total = sorted
            .iter()
            .fold(0, |sum: u64, value| sum.saturating_add(*value));
        Distribution { sorted, total }
    }

    /// How many values there are.
    #[must_use]
    pub fn count(&self) -> u64 {
        self.sorted.len() as u64
    }

    /// Their sum.
    #[must_use]
    pub fn total(&self) -> u64 {
        self.total
    }

    /// The mean of the values; `None` if there are no values.
    #[must_use]
    pub fn mean(&self) -> Option<u64> {
        self.total.checked_div(self.count())
    }

    /// The largest value.
    #[must_use]
    pub fn max(&self) -> Option<u64> {
        self.sorted.last().copied()
    }

    /// The smallest value that at least so many percent of all values do not exceed.
    #[must_use]
    pub fn percentile(&self, percent: u8) -> Option<u64> {
        let rank = (self.sorted.len() * usize::from(percent.min(100))).div_ceil(100);
        self.sorted.get(rank.saturating_sub(1)).copied()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn percentiles_are_values_of_the_distribution() {
        let ten = Distribution::new((1..=10).rev());
        assert_eq!(
            [50, 90, 95, 100].map(|p| ten.percentile(p).unwrap()),
            [5, 9, 10, 10]
        );
        assert_eq!(
            (ten.count(), ten.total(), ten.mean(), ten.max()),
            (10, 55, Some(5), Some(10))
        );
        assert_eq!(ten.percentile(0), Some(1));
        let none = Distribution::new([]);
        assert_eq!(
            (none.mean(), none.max(), none.percentile(50)),
            (None, None, None)
        );
    }
}
