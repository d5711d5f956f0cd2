//! Crafted bytes that lie about every size there is: what they cost in memory, counted by the allocator,
//! and in work, counted by what comes out. `SECURITY.md` names the limits that are shown here.

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
