//! Why unpacking stops before the end.

use std::fmt;

use super::size::size;

/// Up to this unpacked size, any factor is allowed: preallocated traces are mostly zeros.
pub(super) const ALWAYS_ALLOWED: u64 = 256 << 20;

/// The largest factor of a larger unpacked size.
pub(super) const MAX_FACTOR: u64 = 250;

/// Why packed input is not read to its end.
#[derive(Debug)]
pub(super) enum Stop {
    /// It is larger than this size.
    Size(u64),
    /// It grows by more than the factor.
    Factor,
    /// It is not valid data of its format.
    Broken {
        format: &'static str,
        at: u64,
        why: String,
    },
}

impl fmt::Display for Stop {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Stop::Size(limit) => write!(f, "unpacks to more than {}", size(*limit)),
            Stop::Factor => {
                let free = size(ALWAYS_ALLOWED);
                write!(
                    f,
                    "unpacks to more than {free} and more than {MAX_FACTOR} times its size"
                )
            }
            Stop::Broken { format, at, why } => {
                write!(
                    f,
                    "the {format} is damaged or truncated after {at} unpacked bytes: {why}"
                )
            }
        }
    }
}

impl std::error::Error for Stop {}
