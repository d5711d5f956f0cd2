//! Windows event trace logs (`.etl`) as bytes, buffers, records and time order, on any OS.
//!
//! This crate knows the container and no provider: what an event *means* is the business of
//! `etl-schema`. See [`constants`] for every tag of the format.
#![forbid(unsafe_code)]
#![warn(clippy::indexing_slicing, clippy::unreachable)]

pub mod clock;
pub mod compress;
pub mod constants;
pub mod cursor;
pub mod error;
pub mod guid;
pub mod read;
pub mod write;

pub use clock::Clock;
pub use error::{Error, ErrorKind, Result};
pub use guid::Guid;
