//! The `etlkit` tool. All of it lives in the library of this package.

use std::alloc::System;
use std::process::ExitCode;

use cap::Cap;

/// Counts the allocated bytes, for `--max-memory`.
#[global_allocator]
static ALLOCATOR: Cap<System> = Cap::new(System, usize::MAX);

fn main() -> ExitCode {
    etlkit::etlkit_main(|| ALLOCATOR.allocated() as u64)
}
