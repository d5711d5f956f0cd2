//! Tests of the operations on small traces that the writer makes.

mod common;
mod damaged;
mod diff;
mod scrub;
mod slice;
