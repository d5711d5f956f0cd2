//! The memory of the package, for `max_memory`.

use std::alloc::System;

use cap::Cap;
use etl_format::read::{Budget, Limits};

/// Counts the allocated bytes.
#[global_allocator]
static ALLOCATOR: Cap<System> = Cap::new(System, usize::MAX);

/// The bounds for reading with so much memory. Without a number, the tables and indexes of a trace
/// are not bounded.
pub fn limits(max_memory: Option<u64>) -> Limits {
    let limits = Limits::default();
    let Some(bytes) = max_memory else {
        return limits;
    };
    let held = (bytes / Budget::PARTS).min(limits.held);
    Limits {
        held,
        budget: Some(Budget {
            bytes,
            used: allocated,
        }),
        ..limits
    }
}

fn allocated() -> u64 {
    ALLOCATOR.allocated() as u64
}
