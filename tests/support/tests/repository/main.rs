//! Rules about the repository itself: which crate and which module may use which, the list of
//! modules, and the width of lines.
// Tests fail by panicking.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::indexing_slicing)]

mod architecture;
mod commands;
mod layers;
mod modules;
mod source;
mod width;
mod workspace;
