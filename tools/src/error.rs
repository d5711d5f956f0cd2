//! The error of the crate.

use std::fmt;

/// Shorthand for results of this crate.
pub type Result<T, E = Error> = std::result::Result<T, E>;

/// Reading a trace failed, or writing the new one.
#[derive(Debug, thiserror::Error)]
#[error("{side}: {source}")]
pub struct Error {
    side: Side,
    source: etl_format::Error,
}

/// The trace that an [`Error`] is about.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Side {
    /// The only trace that is read, or the first of two.
    Input,
    /// The second of two traces that are compared.
    SecondInput,
    /// The trace that is written.
    Output,
}

impl fmt::Display for Side {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Side::Input => "input",
            Side::SecondInput => "second input",
            Side::Output => "output",
        })
    }
}

impl Error {
    pub(crate) fn second_input(source: etl_format::Error) -> Self {
        Error {
            side: Side::SecondInput,
            source,
        }
    }

    pub(crate) fn output(source: etl_format::Error) -> Self {
        Error {
            side: Side::Output,
            source,
        }
    }

    /// The trace at fault.
    #[must_use]
    pub fn side(&self) -> Side {
        self.side
    }

    /// The fault, with its offset in that trace.
    #[must_use]
    pub fn format_error(&self) -> &etl_format::Error {
        &self.source
    }
}

impl From<etl_format::Error> for Error {
    /// An error of reading the (first) input.
    fn from(source: etl_format::Error) -> Self {
        Error {
            side: Side::Input,
            source,
        }
    }
}
