//! The tables and the decoder on real traces, and against what others know of the events.
// Tests fail by panicking.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing
)]

mod baseline_fields;
mod classic_payloads;
mod clr_tables;
mod described;
mod kernel_tables;
mod payload_fit;
