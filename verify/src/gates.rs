//! Shares of addresses in percent, and the minimum shares that a user requires.

/// Minimum shares in percent; `None` requires nothing. A trace without addresses reaches any share.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
#[non_exhaustive]
pub struct Gates {
    /// Share of all addresses that resolve.
    pub coverage: Option<f64>,
    /// Share of each process's addresses that resolve.
    pub process_coverage: Option<f64>,
    /// Share of sampled addresses that resolve: this weighs addresses by the time spent there.
    pub sample_coverage: Option<f64>,
    /// Share of the addresses in managed code whose method has a name.
    pub named_methods: Option<f64>,
    /// Share of the addresses in images whose image has a PDB identity.
    pub pdb_identity: Option<f64>,
}

impl Gates {
    /// The gates with their keys in the configuration file.
    pub(crate) fn by_key(&self) -> [(&'static str, Option<f64>); 5] {
        [
            ("min-coverage", self.coverage),
            ("min-process-coverage", self.process_coverage),
            ("min-sample-coverage", self.sample_coverage),
            ("min-named-methods", self.named_methods),
            ("min-pdb-identity", self.pdb_identity),
        ]
    }

    /// Adds the gates of `other` that these gates do not set.
    ///
    /// ```
    /// use etl_verify::Gates;
    ///
    /// let mut strict = Gates::default();
    /// strict.coverage = Some(99.9);
    /// let mut file = Gates::default();
    /// file.coverage = Some(95.0);
    /// file.named_methods = Some(100.0);
    /// let gates = strict.or(file);
    /// assert_eq!((gates.coverage, gates.named_methods), (Some(99.9), Some(100.0)));
    /// ```
    #[must_use]
    pub fn or(self, other: Gates) -> Gates {
        Gates {
            coverage: self.coverage.or(other.coverage),
            process_coverage: self.process_coverage.or(other.process_coverage),
            sample_coverage: self.sample_coverage.or(other.sample_coverage),
            named_methods: self.named_methods.or(other.named_methods),
            pdb_identity: self.pdb_identity.or(other.pdb_identity),
        }
    }
}

/// A share in percent, rounded down: 100 % means all.
pub(crate) fn percent(part: u64, whole: u64) -> String {
    let hundredths = u128::from(part) * 10_000 / u128::from(whole.max(1));
    format!("{}.{:02} %", hundredths / 100, hundredths % 100)
}

/// Whether a share is below a minimum in percent. The minimum is rounded to a millionth, because a
/// number such as 2.2 has no exact value in binary. A share of nothing is 100 %.
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
    fn is_below_accepts_a_share_that_is_exactly_the_minimum() {
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
