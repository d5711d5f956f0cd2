//! What a verifier has to find in the traces of a scenario, in the words of its script.

use super::ScriptLocation;

etl_schema::named! {
    /// The verdict that a verifier has to reach.
    #[non_exhaustive]
    ExpectedVerdict {
        /// Everything is there.
        Complete "complete",
        /// The trace serves its purpose, but there are warnings.
        CompleteWithWarnings "complete_with_warnings",
        /// Something was lost; what is left does not show whether the trace is complete.
        CannotTell "cannot_tell",
        /// Something is missing or wrong.
        Incomplete "incomplete",
        /// The file cannot be read.
        Unreadable "unreadable",
    }
}

impl ExpectedVerdict {
    /// The exit code of a verifier with this verdict.
    #[must_use]
    pub fn exit_code(self) -> u8 {
        match self {
            ExpectedVerdict::Complete | ExpectedVerdict::CompleteWithWarnings => 0,
            ExpectedVerdict::CannotTell | ExpectedVerdict::Incomplete => 1,
            ExpectedVerdict::Unreadable => 2,
        }
    }
}

/// What a verifier has to find in some traces of a scenario. It applies to the seed and the
/// parameters of the script.
#[derive(Clone, Debug, PartialEq)]
pub struct Expectation {
    /// The traces; empty for all that no other expectation names.
    pub files: Vec<String>,
    /// The verdict.
    pub verdict: ExpectedVerdict,
    /// The rules that have findings, notes included.
    pub rules: Vec<String>,
    /// The node of the script.
    pub location: Option<ScriptLocation>,
}

impl Expectation {
    /// The expectation that a trace is complete and nothing is found in it.
    #[must_use]
    pub fn new(verdict: ExpectedVerdict) -> Self {
        Expectation {
            files: Vec::new(),
            verdict,
            rules: Vec::new(),
            location: None,
        }
    }
}
