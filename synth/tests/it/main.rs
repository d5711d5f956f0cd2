//! Simulations against their scripts, their truth, real traces and documents.
// Tests fail by panicking.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing
)]

mod buffers;
mod built_in;
mod code_lives;
mod collections;
mod common;
mod course;
mod definitions;
mod families;
mod files;
mod io;
mod kernel;
mod kernel_io;
mod language;
mod masks;
mod real_runtimes;
mod sessions;
#[expect(dead_code, reason = "the tests in `tests/` need more of it")]
mod simulated;
mod truth;
mod truth_page;
mod windows_events;
