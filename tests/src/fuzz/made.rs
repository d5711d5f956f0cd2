//! Builders of traces, byte by byte, and readers for tests: those of etl-format's tests.
#[path = "../../../etl-format/tests/it/common/mod.rs"]
pub mod common;
