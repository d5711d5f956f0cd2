//! What is done to traces whole: comparing two, and cutting or scrubbing one.
//!
//! * [`diff`]: what differs between two traces, event by event, in bounded memory.
#![forbid(unsafe_code)]
#![warn(clippy::indexing_slicing, clippy::unreachable)]

pub mod diff;
