//! Shares in percent.

/// A share in percent, rounded down: only all of it is 100 %.
pub(crate) fn percent(part: u64, whole: u64) -> String {
    let hundredths = u128::from(part) * 10_000 / u128::from(whole.max(1));
    format!("{}.{:02} %", hundredths / 100, hundredths % 100)
}

/// Whether a share is below a minimum in percent. The minimum counts to a millionth: a number such
/// as 2.2 has no exact value in binary. All of nothing is 100 %.
pub(crate) fn is_below(part: u64, whole: u64, minimum: f64) -> bool {
    const MILLION: u32 = 1_000_000;
    let millionths = (minimum * f64::from(MILLION)).round() as u128;
    u128::from(part) * 100 * u128::from(MILLION) < millionths.saturating_mul(whole.into())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn percent_is_100_only_for_all() {
        assert_eq!(percent(3, 3), "100.00 %");
        assert_eq!(percent(999_999, 1_000_000), "99.99 %");
        assert_eq!(percent(u64::MAX - 1, u64::MAX), "99.99 %");
        assert_eq!(percent(0, 0), "0.00 %");
    }

    #[test]
    fn is_below_takes_a_share_that_is_exactly_the_minimum() {
        for (part, whole, minimum) in [
            (29, 100, 29.0),
            (57, 100, 57.0),
            (290, 1_000, 29.0),
            (33, 1_500, 2.2),
            (1, 3, 33.333_333),
            (u64::MAX, u64::MAX, 100.0),
            (0, 100, 0.0),
        ] {
            assert!(!is_below(part, whole, minimum), "{part} of {whole}");
            assert!(
                part == 0 || is_below(part - 1, whole, minimum),
                "{part} of {whole}"
            );
        }
        assert!(!is_below(0, 0, 100.0));
    }
}
