//! Crafted bytes with false sizes: measures the memory that reading them takes. SECURITY.md lists
//! the limits.

mod counting;
mod files;
mod index;
mod schemas;
mod scripts;
mod verdicts;

#[path = "../../../etl-format/tests/it/common/mod.rs"]
mod common;

/// 1 MiB.
const MIB: usize = 1 << 20;
