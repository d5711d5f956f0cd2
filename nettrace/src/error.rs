//! The error type: what is wrong with a stream, where, what was expected and what was found.

use core::fmt;
use std::io;
use std::sync::Arc;

use thiserror::Error as ThisError;

/// Shorthand for results of this crate.
pub type Result<T, E = Error> = core::result::Result<T, E>;

/// A fault in a stream, or an I/O error of its source.
///
/// [`Error::code`] is stable across versions and is what tools print in machine-readable output.
///
/// ```
/// let error = etl_nettrace::Reader::new(&b"text"[..]).unwrap_err();
/// assert_eq!((error.offset, error.code()), (0, "truncated"));
/// ```
#[derive(Clone, Debug, ThisError)]
#[error("at offset {offset:#x}: {kind}")]
pub struct Error {
    /// Offset of the structure or field at fault, counted from the first byte of the stream.
    pub offset: u64,
    /// What was wrong.
    pub kind: ErrorKind,
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
        /// Bytes it needs.
        need: u64,
        /// Bytes there are.
        have: u64,
    },
    /// A field has a value that the format does not allow.
    #[error("{what} is {found:#x}, expected {expected}")]
    Invalid {
        /// The field.
        what: &'static str,
        /// The value found.
        found: u64,
        /// What would have been right.
        expected: &'static str,
    },
    /// An id that the stream has not defined before.
    #[error("{what} {id} is not defined before its use")]
    Undefined {
        /// What the id names.
        what: Definition,
        /// The id.
        id: u64,
    },
    /// Not an EventPipe stream.
    #[error("not an EventPipe stream (.nettrace): {0}")]
    NotNettrace(&'static str),
    /// An EventPipe stream of a version that this crate does not read.
    #[error("EventPipe format version {found} is not supported (4 to 6 are): {remedy}")]
    Version {
        /// The version.
        found: u32,
        /// What to do.
        remedy: &'static str,
    },
    /// A limit of the caller would be exceeded.
    #[error("{what} needs {need} bytes, the limit is {limit}")]
    Limit {
        /// What the memory was needed for.
        what: &'static str,
        /// Bytes that would be needed.
        need: u64,
        /// Bytes allowed.
        limit: u64,
    },
    /// The source failed.
    #[error(transparent)]
    Io(Arc<io::Error>),
}

/// What an undefined id names.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Definition {
    /// The metadata of an event. The event is skipped, because its provider is not known.
    Metadata,
    /// A stack. The event has no stack then.
    Stack,
    /// A thread of version 6. The event has the index of the thread as its thread id then.
    Thread,
    /// A label list of version 6. The event has no labels then.
    LabelList,
}

impl fmt::Display for Definition {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Definition::Metadata => "metadata",
            Definition::Stack => "stack",
            Definition::Thread => "thread",
            Definition::LabelList => "label list",
        })
    }
}

impl Error {
    pub(crate) fn new(offset: u64, kind: ErrorKind) -> Self {
        Error { offset, kind }
    }

    #[cold]
    pub(crate) fn truncated(offset: u64, what: &'static str, need: u64, have: u64) -> Self {
        Error::new(offset, ErrorKind::Truncated { what, need, have })
    }

    #[cold]
    pub(crate) fn invalid(
        offset: u64,
        what: &'static str,
        found: u64,
        expected: &'static str,
    ) -> Self {
        Error::new(
            offset,
            ErrorKind::Invalid {
                what,
                found,
                expected,
            },
        )
    }

    #[cold]
    pub(crate) fn undefined(offset: u64, what: Definition, id: u64) -> Self {
        Error::new(offset, ErrorKind::Undefined { what, id })
    }

    #[cold]
    pub(crate) fn limit(offset: u64, what: &'static str, need: u64, limit: u64) -> Self {
        Error::new(offset, ErrorKind::Limit { what, need, limit })
    }

    #[cold]
    pub(crate) fn io(offset: u64, error: io::Error) -> Self {
        Error::new(offset, ErrorKind::Io(Arc::new(error)))
    }

    /// Whether reading cannot continue, in either [`Mode`](crate::Mode).
    pub(crate) fn is_fatal(&self) -> bool {
        matches!(self.kind, ErrorKind::Io(_) | ErrorKind::Limit { .. })
    }

    /// Whether this is an I/O error, and not a fault of the bytes.
    #[must_use]
    pub fn is_io(&self) -> bool {
        matches!(self.kind, ErrorKind::Io(_))
    }

    /// A name for the kind that does not change between versions.
    #[must_use]
    pub fn code(&self) -> &'static str {
        match self.kind {
            ErrorKind::Truncated { .. } => "truncated",
            ErrorKind::Invalid { .. } => "invalid",
            ErrorKind::Undefined { .. } => "undefined",
            ErrorKind::NotNettrace(_) => "not-nettrace",
            ErrorKind::Version { .. } => "version",
            ErrorKind::Limit { .. } => "limit",
            ErrorKind::Io(_) => "io",
        }
    }
}
