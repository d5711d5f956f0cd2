//! The memory of the process, for `--max-memory`.

use std::sync::OnceLock;

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

/// A budget of so many bytes, if the memory is counted.
pub(crate) fn budget(bytes: u64) -> Option<Budget> {
    ALLOCATED.get().map(|&used| Budget { bytes, used })
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
    let mut results = threads::map(items, at_once, |item| f(item, at_once));
    for (result, item) in results.iter_mut().zip(items).filter(|_| at_once > 1) {
        if is_file(item) && result.as_ref().is_err_and(Failure::needs_memory) {
            *result = f(item, 1);
        }
    }
    results
}
