//! Tests of the reader, the writer and the rewriting of traces.
// Tests fail by panicking.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing
)]

mod anybytes;
mod common;
mod compressed;
mod crash;
mod damage;
mod foreign_readers;
mod header;
mod kinds;
mod loss_flags;
mod memory;
mod merge;
mod no_timestamp;
mod order;
mod packing;
mod real_traces;
mod reencode;
mod relogged;
mod repack;
mod stale;
mod truncation;
mod writer;
mod writing;
