//! Locations in scripts.

use std::sync::Arc;

use miette::{NamedSource, SourceSpan};

/// A location in a script, for error messages.
#[derive(Clone)]
pub struct ScriptLocation {
    source: Arc<NamedSource<Arc<str>>>,
    span: SourceSpan,
}

impl ScriptLocation {
    pub(crate) fn new(source: Arc<NamedSource<Arc<str>>>, span: SourceSpan) -> Self {
        ScriptLocation { source, span }
    }

    /// Name and text of the script.
    #[must_use]
    pub fn source(&self) -> &NamedSource<Arc<str>> {
        &self.source
    }

    /// Byte range in the script.
    #[must_use]
    pub fn span(&self) -> SourceSpan {
        self.span
    }
}

impl core::fmt::Debug for ScriptLocation {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        write!(f, "{} at {}", self.source.name(), self.span.offset())
    }
}

impl PartialEq for ScriptLocation {
    fn eq(&self, other: &Self) -> bool {
        self.span == other.span && self.source.name() == other.source.name()
    }
}
