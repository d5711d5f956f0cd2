//! Changes traces as bytes, without the code that the tests judge.
//!
//! An [`Image`] is a trace as plain buffers and the places of their records; [`change()`] applies
//! one row of `tests/cases/mutations.txt` to it. Nothing here uses etl-format, etl-schema or
//! etl-synth: a fact that they have wrong must not be wrong here for the same reason.

mod change;
mod image;
mod number;
mod which;
mod xpress;

pub use change::change;
pub use image::{Buffer, Image, Name, Record};
pub use which::Which;
