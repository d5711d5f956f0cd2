//! The memory of the process, for `--max-memory`.

use std::sync::OnceLock;
use std::sync::atomic::{AtomicU64, Ordering};

use etl_format::read::Budget;

use crate::error::Failure;
use crate::threads;

/// Returns the allocated bytes: a tool has an allocator that counts them.
static ALLOCATED: OnceLock<fn() -> u64> = OnceLock::new();

/// Sets the function that returns the allocated bytes.
pub(crate) fn count_with(allocated: fn() -> u64) {
    // It is set once, at the start of a tool.
    let _ = ALLOCATED.set(allocated);
}

/// Bytes that were allocated before the traces that are read now: the results of earlier ones, for
/// example. They belong to no trace.
static BEFORE: AtomicU64 = AtomicU64::new(0);

/// Bytes of the definitions that the user named: manifests and TMF files. They belong to no trace,
/// and have a budget of their own.
static DEFINITIONS: AtomicU64 = AtomicU64::new(0);

/// The allocated bytes; 0 if they are not counted.
pub(crate) fn allocated() -> u64 {
    match ALLOCATED.get() {
        Some(allocated) => allocated(),
        None => 0,
    }
}

/// The allocated bytes without the definitions.
fn without_definitions() -> u64 {
    allocated().saturating_sub(DEFINITIONS.load(Ordering::Relaxed))
}

/// Sets the bytes of the definitions, which no trace is charged with.
pub(crate) fn set_definitions(bytes: u64) {
    DEFINITIONS.store(bytes, Ordering::Relaxed);
}

/// The bytes that were allocated for the traces that are read now.
fn used() -> u64 {
    without_definitions().saturating_sub(BEFORE.load(Ordering::Relaxed))
}

/// The most bytes of earlier results that belong to no trace: a process may take so many bytes in
/// addition to a budget. Further ones are in the budget of the next trace.
const MAX_BEFORE: u64 = 32 << 20;

/// Begins to count for traces that are read from now on.
fn begin() {
    BEFORE.store(without_definitions().min(MAX_BEFORE), Ordering::Relaxed);
}

/// A budget of so many bytes, if the memory is counted.
pub(crate) fn budget(bytes: u64) -> Option<Budget> {
    ALLOCATED.get().map(|_| Budget { bytes, used })
}

/// Calls `f` for every item, for several at the same time. If the memory was not enough for an item
/// and others, calls `f` again for it alone, so that the results do not depend on `at_once`.
/// `is_file` is whether an item can be read again. Returns the results in order.
pub(crate) fn map<T: Sync, R: Send>(
    items: &[T],
    at_once: usize,
    is_file: impl Fn(&T) -> bool,
    f: impl Fn(&T, usize) -> Result<R, Failure> + Sync,
) -> Vec<Result<R, Failure>> {
    if at_once <= 1 {
        let mut results = Vec::new();
        for item in items {
            begin();
            results.push(f(item, at_once));
        }
        return results;
    }
    begin();
    let mut results = threads::map(items, at_once, |item| f(item, at_once));
    for (result, item) in results.iter_mut().zip(items) {
        if is_file(item) && result.as_ref().is_err_and(Failure::needs_memory) {
            begin();
            *result = f(item, 1);
        }
    }
    results
}
