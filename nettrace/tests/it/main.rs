//! Tests of the reader: on streams that a small writer makes, on damaged ones, and on recorded ones
//! against an independent reader.
// Tests fail by panicking.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing
)]

#[path = "../../examples/common/write.rs"]
mod write;

mod damage;
mod judge;
mod losses;
mod objects;
mod order;
mod refusals;
mod text;
mod version_6;
