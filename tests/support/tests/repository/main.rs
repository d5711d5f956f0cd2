//! Rules about the repository itself: which crate and which module may use which, the fields of
//! packages, the links between pages, the width of lines, and the names of tests.
// Tests fail by panicking.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing
)]

mod commands;
mod layers;
mod links;
mod modules;
mod packages;
mod source;
mod test_names;
mod width;
mod workspace;
