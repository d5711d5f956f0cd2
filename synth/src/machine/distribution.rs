//! How things are spread, in integers: floating point differs between systems.

use super::Dice;

/// How numbers between two bounds, or around a mean, are spread.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Distribution {
    /// Mostly near the lower bound.
    #[default]
    MostlyLow,
    /// Each as often as any other.
    Uniform,
    /// Mostly near the middle.
    Normal,
    /// Few large ones, many small ones: the times between things that do not know each other.
    Exponential,
}

impl Distribution {
    /// The words of scripts.
    pub const WORDS: [(&'static str, Distribution); 4] = [
        ("mostly-low", Distribution::MostlyLow),
        ("uniform", Distribution::Uniform),
        ("normal", Distribution::Normal),
        ("exponential", Distribution::Exponential),
    ];

    /// A number from `low` to `high`, both included.
    pub fn between(self, low: u64, high: u64, dice: &mut Dice) -> u64 {
        match self {
            Distribution::MostlyLow => dice.mostly_low(low, high),
            Distribution::Uniform => dice.between(low, high),
            Distribution::Normal => middle(low, high, dice),
            Distribution::Exponential => {
                let mean = high.saturating_sub(low) / 6;
                low.saturating_add(exponential(mean, dice)).min(high)
            }
        }
    }

    /// A number with this mean, at least 1.
    pub fn around(self, mean: u64, dice: &mut Dice) -> u64 {
        let twice = mean.saturating_mul(2);
        let drawn = match self {
            Distribution::MostlyLow => dice.mostly_low(0, mean.saturating_mul(4)),
            Distribution::Uniform => dice.between(0, twice),
            Distribution::Normal => middle(0, twice, dice),
            Distribution::Exponential => exponential(mean, dice),
        };
        drawn.max(1)
    }
}

/// The mean of four even ones.
fn middle(low: u64, high: u64, dice: &mut Dice) -> u64 {
    let sum: u128 = (0..4).map(|_| u128::from(dice.between(low, high))).sum();
    u64::try_from(sum / 4).unwrap_or(high)
}

/// `mean * -ln(u)` for an even `u`, with the fraction of the logarithm taken as a straight line.
fn exponential(mean: u64, dice: &mut Dice) -> u64 {
    let bits = dice.bits() | 1;
    let zeros = bits.leading_zeros();
    // What stands behind the first one, as a fraction of 2^32.
    let fraction = bits.checked_shl(zeros + 1).unwrap_or(0) >> 32;
    let log2 = (u128::from(zeros + 1) << 32) - u128::from(fraction);
    let drawn = u128::from(mean) * log2 / (1 << 32) * 693_147 / 1_000_000;
    u64::try_from(drawn).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn means_and_bounds_are_kept() {
        for (name, distribution) in Distribution::WORDS {
            let mut dice = Dice::new(3, 9);
            let drawn: Vec<u64> =
                (0..4000).map(|_| distribution.between(100, 900, &mut dice)).collect();
            assert!(drawn.iter().all(|n| (100..=900).contains(n)), "{name}");
            let sum: u64 = (0..4000).map(|_| distribution.around(1000, &mut dice)).sum();
            assert!((900..1100).contains(&(sum / 4000)), "{name}: {}", sum / 4000);
        }
    }
}
