//! Where a script says something.

use std::sync::Arc;

use miette::{NamedSource, SourceSpan};

/// A place in a script, for whoever tells of a mistake.
#[derive(Clone)]
pub struct Place {
    /// The script.
    pub source: Arc<NamedSource<Arc<str>>>,
    /// The bytes.
    pub at: SourceSpan,
}

impl core::fmt::Debug for Place {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        write!(f, "{} at {}", self.source.name(), self.at.offset())
    }
}

impl PartialEq for Place {
    fn eq(&self, other: &Self) -> bool {
        self.at == other.at && self.source.name() == other.source.name()
    }
}
