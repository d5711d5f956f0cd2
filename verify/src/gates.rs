//! Minimum shares of addresses that a user requires.

/// Minimum shares in percent; `None` requires nothing. A trace without addresses reaches any share.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
#[non_exhaustive]
pub struct Gates {
    /// Of all addresses those that resolve.
    pub coverage: Option<f64>,
    /// The same in each process.
    pub process_coverage: Option<f64>,
    /// Of the sampled addresses those that resolve: this weighs addresses by the time spent there.
    pub sample_coverage: Option<f64>,
    /// Of the addresses in managed code those whose method has a name.
    pub named_methods: Option<f64>,
    /// Of the addresses in images those whose image has a PDB identity.
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

    /// These gates; where they require nothing, the gates of `other`.
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
