//! The error type: what is wrong with a trace, where, what was expected and what was found.

use core::fmt;
use std::sync::Arc;

use thiserror::Error as ThisError;

use crate::refusal::Refusal;

/// Shorthand for results of this crate.
pub type Result<T, E = Error> = core::result::Result<T, E>;

/// A fault in a trace, or an I/O error of its source or output.
///
/// A fault in the bytes has a file offset, counted from the first byte of the trace. Tools print
/// [`Error::code`] in machine-readable output: it does not change between versions.
///
/// ```
/// use etl_format::read::{Options, Trace};
///
/// let error = Trace::open(&b"text"[..], &Options::default()).unwrap_err();
/// assert_eq!((error.offset, error.code()), (0, "truncated"));
/// ```
#[derive(Clone, Debug, ThisError)]
pub struct Error {
    /// Index of the trace, if an operation reads several traces.
    pub input: Option<usize>,
    /// File offset of the structure or field at fault. For [`ErrorKind::Truncated`] it is the first
    /// byte of the incomplete structure.
    pub offset: u64,
    /// What was wrong.
    pub kind: ErrorKind,
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(input) = self.input {
            write!(f, "input {}: ", input + 1)?;
        }
        match self.kind {
            ErrorKind::NoInput
            | ErrorKind::Memory { .. }
            | ErrorKind::OutOfOrder
            | ErrorKind::Refused(_) => {
                write!(f, "{}", self.kind)
            }
            _ => write!(f, "at offset {:#x}: {}", self.offset, self.kind),
        }
    }
}

/// The kinds of [`Error`].
#[derive(Clone, Debug, ThisError)]
#[non_exhaustive]
pub enum ErrorKind {
    /// Fewer bytes than the structure needs.
    #[error("{what}: needs {need} bytes, has {have}")]
    Truncated {
        /// The structure that was being read.
        what: &'static str,
        /// Bytes that it needs.
        need: u64,
        /// Bytes that exist.
        have: u64,
    },
    /// A field has a value that the format does not allow.
    #[error("{what} is {found:#x}, expected {expected}")]
    Invalid {
        /// The field.
        what: &'static str,
        /// The value found.
        found: u64,
        /// The values that are allowed.
        expected: &'static str,
    },
    /// The bytes are not an event trace log, or an event trace log of an unsupported kind.
    #[error("not a readable event trace log: {0}")]
    NotEtl(&'static str),
    /// A compressed buffer does not decompress to its declared size.
    #[error("{format} data is damaged after {produced} of {declared} bytes")]
    Compression {
        /// Name of the compression format.
        format: &'static str,
        /// Bytes produced before the fault.
        produced: u64,
        /// Bytes the buffer header declares.
        declared: u64,
    },
    /// A limit that the caller set would be exceeded.
    #[error("{what} needs {need} bytes, the limit is {limit}")]
    Limit {
        /// What the memory was needed for.
        what: &'static str,
        /// Bytes that would be needed.
        need: u64,
        /// Bytes allowed.
        limit: u64,
    },
    /// Reading the trace takes more memory than the caller allows.
    #[error("the memory budget of {bytes} bytes is exceeded while the trace is read")]
    Budget {
        /// Bytes allowed for the whole process.
        bytes: u64,
    },
    /// The caller requested something that the format cannot express.
    #[error("cannot be written: {0}")]
    Unwritable(&'static str),
    /// There is no trace to merge.
    #[error("no trace was given")]
    NoInput,
    /// Reading all traces of a merge at once would take more memory than is allowed.
    #[error(
        "reading {inputs} traces at once takes {needed} bytes of memory, and {max} are allowed"
    )]
    Memory {
        /// Number of traces.
        inputs: usize,
        /// Bytes that their open buffers take together.
        needed: u64,
        /// Bytes allowed.
        max: u64,
    },
    /// Looking ahead ([`Merger::look_ahead`](crate::rewrite::merge::Merger::look_ahead)) was not
    /// enough for time order.
    #[error("its records are further out of order than the reader looks ahead")]
    OutOfOrder,
    /// Traces that do not belong together were not merged.
    #[error(transparent)]
    Refused(Box<Refusal>),
    /// The source or the output failed.
    #[error(transparent)]
    Io(Arc<std::io::Error>),
}

impl Error {
    /// A fault at a file offset.
    #[must_use]
    pub fn new(offset: u64, kind: ErrorKind) -> Self {
        Error {
            input: None,
            offset,
            kind,
        }
    }

    /// Shorthand for [`ErrorKind::Truncated`].
    #[must_use]
    pub fn truncated(offset: u64, what: &'static str, need: u64, have: u64) -> Self {
        Error::new(offset, ErrorKind::Truncated { what, need, have })
    }

    /// Shorthand for [`ErrorKind::Invalid`].
    #[must_use]
    pub fn invalid(offset: u64, what: &'static str, found: u64, expected: &'static str) -> Self {
        Error::new(
            offset,
            ErrorKind::Invalid {
                what,
                found,
                expected,
            },
        )
    }

    /// The same error in the trace with this index.
    #[must_use]
    pub fn in_input(self, input: usize) -> Self {
        Error {
            input: Some(input),
            ..self
        }
    }

    /// Whether this is an I/O error, and not a fault of the bytes.
    #[must_use]
    pub fn is_io(&self) -> bool {
        matches!(self.kind, ErrorKind::Io(_))
    }

    /// A name of the kind of error, which does not change between versions.
    #[must_use]
    pub fn code(&self) -> &'static str {
        match self.kind {
            ErrorKind::Truncated { .. } => "truncated",
            ErrorKind::Invalid { .. } => "invalid",
            ErrorKind::NotEtl(_) => "not-etl",
            ErrorKind::Compression { .. } => "compression",
            ErrorKind::Limit { .. } => "limit",
            ErrorKind::Budget { .. } => "budget",
            ErrorKind::Unwritable(_) => "unwritable",
            ErrorKind::NoInput => "no-input",
            ErrorKind::Memory { .. } => "memory",
            ErrorKind::OutOfOrder => "out-of-order",
            ErrorKind::Refused(_) => "refused",
            ErrorKind::Io(_) => "io",
        }
    }
}

impl From<Refusal> for Error {
    fn from(refusal: Refusal) -> Self {
        Error::new(0, ErrorKind::Refused(Box::new(refusal)))
    }
}

impl From<std::io::Error> for ErrorKind {
    fn from(e: std::io::Error) -> Self {
        ErrorKind::Io(Arc::new(e))
    }
}

impl From<std::io::Error> for Error {
    fn from(e: std::io::Error) -> Self {
        Error::new(0, e.into())
    }
}
