//! Helpers for tests of code that reads events: traces as stable text, and random events.
//!
//! * [`snapshot`]: a trace as text that is the same in every run, and a small trace to try it on.
//! * `strategies`, with the feature `proptest`: schemas, descriptors and whole events.

#[cfg(any(test, feature = "proptest"))]
pub(crate) mod choices;
pub mod snapshot;
#[cfg(any(test, feature = "proptest"))]
pub mod strategies;
#[cfg(any(test, feature = "proptest"))]
mod values;
