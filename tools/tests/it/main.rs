//! Tests of the operations on small traces that the writer makes, and on real ones.
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
mod foreign_readers;
mod scrub;
mod scrub_real;
mod slice;
mod slice_real;
