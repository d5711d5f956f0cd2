//! Crafted bytes with false sizes: counts the memory that they cost, and what is returned for them.
//! `SECURITY.md` names the limits.

mod counting;
mod files;
mod index;
mod schemas;
mod scripts;
mod verdicts;

#[path = "../../../etl-format/tests/common/mod.rs"]
mod common;

/// 1 MiB.
const MIB: usize = 1 << 20;
