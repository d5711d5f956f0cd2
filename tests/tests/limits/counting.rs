//! An allocator that counts what a thread allocates.

use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;

thread_local! {
    static NOW: Cell<isize> = const { Cell::new(0) };
    static PEAK: Cell<isize> = const { Cell::new(0) };
    static ALLOCATIONS: Cell<usize> = const { Cell::new(0) };
}

struct Counting;

fn count(change: isize) {
    if change > 0 {
        let _ = ALLOCATIONS.try_with(|number| number.set(number.get() + 1));
    }
    // Thread-local values do not exist while a thread ends.
    let _ = NOW.try_with(|now| {
        now.set(now.get() + change);
        let _ = PEAK.try_with(|peak| peak.set(peak.get().max(now.get())));
    });
}

// SAFETY: every call goes to the system's allocator; counting allocates nothing.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        count(layout.size() as isize);
        // SAFETY: the caller keeps the contract of `GlobalAlloc`.
        unsafe { System.alloc(layout) }
    }

    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        count(layout.size() as isize);
        // SAFETY: the caller keeps the contract of `GlobalAlloc`.
        unsafe { System.alloc_zeroed(layout) }
    }

    unsafe fn dealloc(&self, at: *mut u8, layout: Layout) {
        count(-(layout.size() as isize));
        // SAFETY: the caller keeps the contract of `GlobalAlloc`.
        unsafe { System.dealloc(at, layout) }
    }

    unsafe fn realloc(&self, at: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        count(size as isize - layout.size() as isize);
        // SAFETY: the caller keeps the contract of `GlobalAlloc`.
        unsafe { System.realloc(at, layout, size) }
    }
}

#[global_allocator]
static ALLOCATOR: Counting = Counting;

/// Runs `f` and returns the peak of bytes that this thread allocated.
pub fn peak<T>(f: impl FnOnce() -> T) -> (T, usize) {
    let (done, peak, _) = peak_and_held(f);
    (done, peak)
}

/// Runs `f` and returns the peak of bytes that this thread allocated, and those still allocated.
pub fn peak_and_held<T>(f: impl FnOnce() -> T) -> (T, usize, usize) {
    let before = NOW.get();
    PEAK.set(before);
    let done = f();
    let beyond = |now: isize| usize::try_from(now - before).unwrap_or(0);
    (done, beyond(PEAK.get()), beyond(NOW.get()))
}

/// Runs `f` and returns how often this thread allocated memory, or more of it.
pub fn allocations<T>(f: impl FnOnce() -> T) -> (T, usize) {
    let before = ALLOCATIONS.get();
    let done = f();
    (done, ALLOCATIONS.get() - before)
}

#[test]
fn allocations_are_counted() {
    assert_eq!(allocations(|| vec![0u8; 9].len()), (9, 1));
    assert_eq!(allocations(|| ()), ((), 0));
}

#[test]
fn peak_counts_allocated_bytes() {
    let (len, most) = peak(|| vec![0u8; 100_000].len());
    assert_eq!(len, 100_000);
    assert!((100_000..110_000).contains(&most), "{most}");
    assert!(peak(|| ()).1 < 100);
}
