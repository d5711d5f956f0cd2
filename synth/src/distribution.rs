//! Distributions of random numbers, computed with integers: floating point differs between systems.

use crate::rng::Rng;

/// A distribution of numbers between two bounds or around a mean.
#[non_exhaustive]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Distribution {
    /// Mostly near the lower bound.
    #[default]
    MostlyLow,
    /// All numbers are equally likely.
    Uniform,
    /// Mostly near the middle.
    Normal,
    /// Many small and few large numbers: times between independent events.
    Exponential,
}

impl Distribution {
    /// Names in scenario scripts.
    pub(crate) const WORDS: [(&'static str, Distribution); 4] = [
        ("mostly-low", Distribution::MostlyLow),
        ("uniform", Distribution::Uniform),
        ("normal", Distribution::Normal),
        ("exponential", Distribution::Exponential),
    ];

    /// A number from `low` to `high`, both included.
    pub(crate) fn between(self, low: u64, high: u64, rng: &mut Rng) -> u64 {
        match self {
            Distribution::MostlyLow => rng.mostly_low(low, high),
            Distribution::Uniform => rng.between(low, high),
            Distribution::Normal => middle(low, high, rng),
            Distribution::Exponential => {
                let mean = high.saturating_sub(low) / 6;
                low.saturating_add(exponential(mean, rng)).min(high)
            }
        }
    }

    /// A number with this mean, at least 1.
    pub(crate) fn around(self, mean: u64, rng: &mut Rng) -> u64 {
        let twice = mean.saturating_mul(2);
        let drawn = match self {
            Distribution::MostlyLow => rng.mostly_low(0, mean.saturating_mul(4)),
            Distribution::Uniform => rng.between(0, twice),
            Distribution::Normal => middle(0, twice, rng),
            Distribution::Exponential => exponential(mean, rng),
        };
        drawn.max(1)
    }
}

/// Random numbers from `min` to `max`, both included.
///
/// ```
/// use etl_synth::{Distribution, RandomRange};
///
/// let sizes = RandomRange::new(32, 2048, Distribution::MostlyLow);
/// assert_eq!(sizes.max, 2048);
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct RandomRange {
    /// The smallest number.
    pub min: u32,
    /// The largest number.
    pub max: u32,
    /// The distribution between them.
    pub distribution: Distribution,
}

impl RandomRange {
    /// Numbers from `min` to `max` with this distribution.
    #[must_use]
    pub const fn new(min: u32, max: u32, distribution: Distribution) -> Self {
        RandomRange {
            min,
            max,
            distribution,
        }
    }

    /// Draws a number.
    pub(crate) fn draw(self, rng: &mut Rng) -> u32 {
        self.distribution
            .between(self.min.into(), self.max.into(), rng) as u32
    }
}

/// The mean of four uniform numbers.
fn middle(low: u64, high: u64, rng: &mut Rng) -> u64 {
    let sum: u128 = (0..4).map(|_| u128::from(rng.between(low, high))).sum();
    u64::try_from(sum / 4).unwrap_or(high)
}

/// `mean * -ln(u)` for a uniform `u`; the fraction of the logarithm is interpolated linearly.
fn exponential(mean: u64, rng: &mut Rng) -> u64 {
    let bits = rng.bits() | 1;
    let zeros = bits.leading_zeros();
    // The bits after the first one bit, as a fraction of 2^32.
    let fraction = bits.checked_shl(zeros + 1).unwrap_or(0) >> 32;
    let log2 = (u128::from(zeros + 1) << 32) - u128::from(fraction);
    let drawn = u128::from(mean) * log2 / (1 << 32) * 693_147 / 1_000_000;
    u64::try_from(drawn).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn between_stays_in_bounds_and_around_keeps_the_mean() {
        for (name, distribution) in Distribution::WORDS {
            let mut rng = Rng::new(3, 9);
            let drawn: Vec<u64> = (0..4000)
                .map(|_| distribution.between(100, 900, &mut rng))
                .collect();
            assert!(drawn.iter().all(|n| (100..=900).contains(n)), "{name}");
            let sum: u64 = (0..4000).map(|_| distribution.around(1000, &mut rng)).sum();
            assert!(
                (900..1100).contains(&(sum / 4000)),
                "{name}: {}",
                sum / 4000
            );
        }
    }
}
