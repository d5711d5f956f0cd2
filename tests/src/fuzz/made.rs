//! The tests' own builders of traces, byte by byte, and their ways of reading.
#[path = "../../../etl-format/tests/common/mod.rs"]
pub mod common;
