//! Errors of command lines and of what they name.

use std::fmt;
use std::ops::Range;

/// What cannot be read or looked up.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// A command line.
    #[error(transparent)]
    Line(#[from] LineError),
    /// A file that lists providers.
    #[error("line {line}: {error}")]
    ProviderFile {
        /// The line, from 1.
        line: usize,
        /// What is wrong with it.
        error: LineError,
    },
    /// A keyword that the provider does not have, or whose provider is unknown.
    #[error("the provider has no keyword {0:?}")]
    UnknownKeyword(String),
    /// A flag that the kernel does not have.
    #[error("the kernel has no flag {0:?}")]
    UnknownKernelFlag(String),
}

/// What stands where something else was expected.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Found {
    /// The end of the line.
    End,
    /// This text.
    Text(String),
    /// More than there may be.
    More,
}

/// A line that is not a command of the tool.
///
/// ```
/// use etl_control::controller::CommandLine;
///
/// let line = "xperf -strat clr";
/// let error = line.parse::<CommandLine>().unwrap_err();
/// assert_eq!(&line[error.span], "-strat");
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LineError {
    /// Where, in bytes of the line; empty at its end when something is missing.
    pub span: Range<usize>,
    /// What was expected there.
    pub expected: String,
    /// The text at that place.
    pub found: Found,
    /// What to write instead, if there is a proposal.
    pub hint: Option<String>,
}

impl LineError {
    pub(super) fn new(span: Range<usize>, expected: impl Into<String>, found: Found) -> Self {
        LineError {
            span,
            expected: expected.into(),
            found,
            hint: None,
        }
    }

    pub(super) fn hint(mut self, hint: impl Into<String>) -> Self {
        self.hint = Some(hint.into());
        self
    }
}

impl fmt::Display for LineError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "byte {}: expected {}", self.span.start, self.expected)?;
        match &self.found {
            Found::End => f.write_str(", but the line ends"),
            Found::Text(text) => write!(f, ", found {text:?}"),
            Found::More => Ok(()),
        }
    }
}

impl std::error::Error for LineError {}
