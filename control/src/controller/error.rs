//! Errors in command lines, and in the files and flags that they name.

use std::fmt;
use std::ops::Range;

/// An error in a command line, or in a name that it uses.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// A command line that cannot be parsed.
    #[error(transparent)]
    Line(#[from] LineError),
    /// A file of providers that cannot be parsed.
    #[error("line {line}: {error}")]
    ProviderFile {
        /// The number of the line, from 1.
        line: usize,
        /// The error in it.
        error: LineError,
    },
    /// A keyword that the provider does not have, or whose provider is unknown.
    #[error("the provider has no keyword {0:?}")]
    UnknownKeyword(String),
    /// A flag that the kernel does not have.
    #[error("the kernel has no flag {0:?}")]
    UnknownKernelFlag(String),
}

/// What a line contains at the position of an error.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Found {
    /// The end of the line.
    End,
    /// Some other text.
    Text(String),
    /// An option that requires a second option.
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
    /// The position of the error, in bytes of the line. It is empty if something is missing at the
    /// end.
    pub span: Range<usize>,
    /// What was expected at this position.
    pub expected: String,
    /// What was found at this position.
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
