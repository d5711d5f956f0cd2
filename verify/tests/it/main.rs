//! Verification of real traces, and the pages that describe it.
// Tests fail by panicking.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing
)]

mod docs;
mod real;
mod real_verdicts;
mod stream_verdicts;
