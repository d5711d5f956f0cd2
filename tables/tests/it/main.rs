//! Tables compared with other results for the same traces, and the page that documents them.
// Tests fail by panicking.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing
)]

mod columns;
mod common;
mod events;
mod machine;
mod page;
mod reader;
mod typed;
