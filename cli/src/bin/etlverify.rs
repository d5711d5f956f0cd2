//! The `etlverify` tool: `etlkit verify` under a name of its own.

use std::alloc::System;
use std::process::ExitCode;

use cap::Cap;

/// Counts the allocated bytes, for `--max-memory`.
#[global_allocator]
static ALLOCATOR: Cap<System> = Cap::new(System, usize::MAX);

fn main() -> ExitCode {
    etlkit::etlverify_main(|| ALLOCATOR.allocated() as u64)
}
