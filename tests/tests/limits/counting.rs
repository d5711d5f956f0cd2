//! An allocator that counts the bytes that a thread holds.

use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;

thread_local! {
    static NOW: Cell<isize> = const { Cell::new(0) };
    static PEAK: Cell<isize> = const { Cell::new(0) };
}

struct Counting;

fn count(change: isize) {
    // Nothing is counted while a thread ends.
    let _ = NOW.try_with(|now| {
        now.set(now.get() + change);
        let _ = PEAK.try_with(|peak| peak.set(peak.get().max(now.get())));
    });
}

// SAFETY: everything is handed on to the system's allocator; counting allocates nothing.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        count(layout.size() as isize);
        // SAFETY: as the caller promises.
        unsafe { System.alloc(layout) }
    }

    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        count(layout.size() as isize);
        // SAFETY: as the caller promises.
        unsafe { System.alloc_zeroed(layout) }
    }

    unsafe fn dealloc(&self, at: *mut u8, layout: Layout) {
        count(-(layout.size() as isize));
        // SAFETY: as the caller promises.
        unsafe { System.dealloc(at, layout) }
    }

    unsafe fn realloc(&self, at: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        count(size as isize - layout.size() as isize);
        // SAFETY: as the caller promises.
        unsafe { System.realloc(at, layout, size) }
    }
}

#[global_allocator]
static ALLOCATOR: Counting = Counting;

/// The most bytes that this thread had allocated at once while `f` ran, beyond what it had before.
pub fn peak<T>(f: impl FnOnce() -> T) -> (T, usize) {
    let (done, peak, _) = peak_and_held(f);
    (done, peak)
}

/// The same, and the bytes that are still allocated afterwards.
pub fn peak_and_held<T>(f: impl FnOnce() -> T) -> (T, usize, usize) {
    let before = NOW.get();
    PEAK.set(before);
    let done = f();
    let beyond = |now: isize| usize::try_from(now - before).unwrap_or(0);
    (done, beyond(PEAK.get()), beyond(NOW.get()))
}

#[test]
fn what_is_allocated_is_counted() {
    let (len, most) = peak(|| vec![0u8; 100_000].len());
    assert_eq!(len, 100_000);
    assert!((100_000..110_000).contains(&most), "{most}");
    assert!(peak(|| ()).1 < 100);
}
