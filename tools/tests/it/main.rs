//! Tests of the operations on small traces that the writer makes.
// Tests fail by panicking.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing
)]

mod common;
mod damaged;
mod diff;
mod scrub;
mod slice;
