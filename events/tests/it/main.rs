//! Tests of rows, filters and schemas on small traces that the writer makes, and of the events of a
//! real one.
// Tests fail by panicking.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing
)]

#[expect(dead_code, reason = "the tests of etl-tools need more of it")]
#[path = "../../../tools/tests/it/common.rs"]
mod common;
mod event_log;
mod eventpipe;
mod filter;
mod rows;
mod schemas;
