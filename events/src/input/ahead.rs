//! Reads a file ahead of its reader, on another thread. A slow disk then reads forwards only, and
//! works while the reader works.
//!
//! The thread drops the bytes: they stay in the cache of the system. The reader waits for the
//! thread. Otherwise its own reads would come first and make the disk go back and forth. If the
//! cache seems to have the file already, there is no thread.

use std::fs::File;
use std::io;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

/// The smallest file for which a thread is worth its start.
const MIN_SIZE: u64 = 4 << 20;

/// The largest file for which short reads wait as well: the headers of buffers, which are read when
/// a trace is opened. The cache may drop a larger file before its records are read.
const MAX_WHOLE: u64 = 1 << 30;

/// Reads below this size are short.
const SHORT: usize = 1 << 12;

/// Bytes of one read of the thread.
const PIECE: usize = 1 << 17;

/// The thread is at most this many bytes ahead of the reader.
const WINDOW: u64 = 16 << 20;

/// A read of one byte that takes longer had to wait for the disk.
const CACHED: Duration = Duration::from_micros(20);

/// The number of bytes that are read to find out whether the cache has a file.
const SAMPLES: u64 = 16;

/// The largest number of files that are read ahead at a time: each has a thread.
const MAX_FILES: usize = 8;

/// The number of files that are read ahead now.
static FILES: AtomicUsize = AtomicUsize::new(0);

/// A file that is read ahead of its reader.
#[derive(Debug)]
pub(super) struct Ahead {
    shared: Arc<Shared>,
    /// Reads of fewer bytes do not wait.
    min_len: usize,
    /// Reads that end before this offset do not wait.
    ready: u64,
}

#[derive(Debug, Default)]
struct Shared {
    progress: Mutex<Progress>,
    changed: Condvar,
}

#[derive(Debug, Default)]
struct Progress {
    /// The end of the reader's reads so far.
    asked: u64,
    /// The end of the thread's reads so far.
    done: u64,
    /// Whether the reader has stopped, or the thread.
    ended: bool,
}

impl Shared {
    fn lock(&self) -> MutexGuard<'_, Progress> {
        self.progress.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn wait<'a>(&self, progress: MutexGuard<'a, Progress>) -> MutexGuard<'a, Progress> {
        self.changed
            .wait(progress)
            .unwrap_or_else(PoisonError::into_inner)
    }

    fn end(&self) {
        self.lock().ended = true;
        self.changed.notify_all();
    }

    /// Waits until the reader is near an offset, then returns whether there still is a reader.
    fn wait_for_reader(&self, offset: u64) -> bool {
        let mut progress = self.lock();
        while !progress.ended && offset >= progress.asked.saturating_add(WINDOW) {
            progress = self.wait(progress);
        }
        !progress.ended
    }

    fn advance(&self, done: u64) {
        self.lock().done = done;
        self.changed.notify_all();
    }
}

/// Reports the end of the thread when it is dropped.
struct Worker(Arc<Shared>);

impl Drop for Worker {
    fn drop(&mut self) {
        self.0.end();
        FILES.fetch_sub(1, Ordering::Relaxed);
    }
}

impl Drop for Ahead {
    fn drop(&mut self) {
        self.shared.end();
    }
}

impl Ahead {
    /// Begins to read a file of `size` bytes ahead, if that is of use. The reader reports errors of
    /// the disk.
    pub fn new(file: &File, size: u64) -> Option<Self> {
        if !cfg!(unix) || size < MIN_SIZE {
            return None;
        }
        if is_cached(
            size,
            |offset| is_cached_at(file, offset),
            |offset, space| read_at(file, offset, space),
        ) {
            return None;
        }
        let file = file.try_clone().ok()?;
        Self::start(size, move |offset, space| read_at(&file, offset, space))
    }

    fn start(
        size: u64,
        read: impl Fn(u64, &mut [u8]) -> io::Result<usize> + Send + 'static,
    ) -> Option<Self> {
        if FILES.fetch_add(1, Ordering::Relaxed) >= MAX_FILES {
            FILES.fetch_sub(1, Ordering::Relaxed);
            return None;
        }
        let shared = Arc::new(Shared::default());
        let worker = Worker(Arc::clone(&shared));
        let min_len = if size > MAX_WHOLE { SHORT } else { 0 };
        thread::Builder::new()
            .spawn(move || read_ahead(size, &worker.0, read))
            .ok()?;
        Some(Ahead {
            shared,
            min_len,
            ready: 0,
        })
    }

    /// Waits until the bytes of a read are in the system's cache.
    #[inline]
    pub fn wait_for(&mut self, offset: u64, len: usize) {
        let end = offset.saturating_add(len as u64);
        if end > self.ready && len >= self.min_len {
            self.wait(offset, end);
        }
    }

    #[cold]
    fn wait(&mut self, offset: u64, end: u64) {
        let mut progress = self.shared.lock();
        // A reader that skips many bytes does not wait for them.
        if offset > progress.done.saturating_add(WINDOW) {
            return;
        }
        progress.asked = progress.asked.max(end);
        self.shared.changed.notify_all();
        while !progress.ended && progress.done < end {
            progress = self.shared.wait(progress);
        }
        self.ready = if progress.ended {
            u64::MAX
        } else {
            // The reader reports again before the thread has to wait for it.
            progress.done.min(progress.asked.saturating_add(WINDOW / 2))
        };
    }
}

/// Whether the cache seems to have the file: no sample has to wait for the disk. `ask` asks the
/// system whether it has the byte at an offset; if it does not know, the time of a read decides.
fn is_cached(
    size: u64,
    ask: impl Fn(u64) -> Option<bool>,
    read: impl Fn(u64, &mut [u8]) -> io::Result<usize>,
) -> bool {
    (1..=SAMPLES).all(|sample| {
        let offset = size / (SAMPLES + 1) * sample;
        if let Some(is_cached) = ask(offset) {
            return is_cached;
        }
        let start = Instant::now();
        // The reader will report an error.
        let _ = read(offset, &mut [0]);
        start.elapsed() < CACHED
    })
}

/// Whether the cache has the byte at an offset; `None` if the system or the file system does not
/// say.
#[cfg(target_os = "linux")]
fn is_cached_at(file: &File, offset: u64) -> Option<bool> {
    use rustix::io::{Errno, ReadWriteFlags, preadv2};
    let mut byte = [0];
    let mut space = [io::IoSliceMut::new(&mut byte)];
    match preadv2(file, &mut space, offset, ReadWriteFlags::NOWAIT) {
        Ok(_) => Some(true),
        Err(Errno::AGAIN) => Some(false),
        Err(_) => None,
    }
}

#[cfg(not(target_os = "linux"))]
fn is_cached_at(_: &File, _: u64) -> Option<bool> {
    None
}

/// Reads a file to its end, or until its reader stops. `read` returns the number of bytes that it
/// has read.
fn read_ahead(size: u64, shared: &Shared, read: impl Fn(u64, &mut [u8]) -> io::Result<usize>) {
    let mut space = [0; PIECE];
    let mut offset = 0;
    while offset < size && shared.wait_for_reader(offset) {
        match read(offset, &mut space) {
            Ok(0) => return,
            Ok(len) => offset += len as u64,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(_) => return,
        }
        shared.advance(offset);
    }
}

/// Reads at an offset; the position of the file stays.
#[cfg(unix)]
fn read_at(file: &File, offset: u64, space: &mut [u8]) -> io::Result<usize> {
    std::os::unix::fs::FileExt::read_at(file, space, offset)
}

#[cfg(not(unix))]
fn read_at(_: &File, _: u64, _: &mut [u8]) -> io::Result<usize> {
    Err(io::ErrorKind::Unsupported.into())
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::atomic::AtomicU64;

    const SIZE: u64 = 100 << 20;

    /// A file that is read ahead, and the end of what was read of it.
    fn file(size: u64) -> (Ahead, Arc<AtomicU64>) {
        let end = Arc::new(AtomicU64::new(0));
        let read = Arc::clone(&end);
        let ahead = Ahead::start(size, move |at, space| {
            let got = (size - at).min(space.len() as u64);
            read.fetch_max(at + got, Ordering::SeqCst);
            Ok(got as usize)
        });
        (ahead.unwrap(), end)
    }

    #[test]
    fn thread_is_ahead_of_its_reader_but_not_far() {
        let (mut ahead, read) = file(SIZE);
        for at in (0..SIZE).step_by(1 << 20) {
            ahead.wait_for(at, 1 << 18);
            let read = read.load(Ordering::SeqCst);
            assert!(read >= at + (1 << 18), "{read} at {at}");
            assert!(
                read <= at + (1 << 18) + WINDOW + PIECE as u64,
                "{read} at {at}"
            );
        }
        // What ends after the file needs no more than the file.
        ahead.wait_for(SIZE - 10, 1 << 20);
        assert_eq!(read.load(Ordering::SeqCst), SIZE);
    }

    #[test]
    fn headers_of_a_very_large_file_are_not_waited_for() {
        let (mut ahead, read) = file(MAX_WHOLE + 1);
        for at in (0..MAX_WHOLE).step_by(64 << 20) {
            ahead.wait_for(at, 0x48);
        }
        assert!(read.load(Ordering::SeqCst) <= WINDOW + PIECE as u64);
        ahead.wait_for(64 << 20, 1 << 18);
        // It is far from where the thread is: the reader gets it by itself.
        assert!(read.load(Ordering::SeqCst) <= WINDOW + PIECE as u64);
        for at in (0..64 << 20).step_by(1 << 20) {
            ahead.wait_for(at, 1 << 18);
            assert!(read.load(Ordering::SeqCst) >= at + (1 << 18));
        }
    }

    #[test]
    fn thread_ends_with_its_reader() {
        let (ahead, _) = file(SIZE);
        let shared = Arc::downgrade(&ahead.shared);
        drop(ahead);
        let start = Instant::now();
        while shared.strong_count() > 0 {
            assert!(start.elapsed() < Duration::from_secs(60));
            thread::yield_now();
        }
    }

    #[test]
    fn reader_does_not_wait_for_what_it_skips() {
        let (mut ahead, read) = file(SIZE);
        ahead.wait_for(SIZE - 1, 1);
        assert!(read.load(Ordering::SeqCst) <= WINDOW + PIECE as u64);
        ahead.wait_for(0, 1);
    }

    #[test]
    fn reader_does_not_wait_after_an_error() {
        let mut ahead = Ahead::start(SIZE, |at, space| match at {
            0 => Ok(space.len()),
            _ => Err(io::ErrorKind::Other.into()),
        })
        .unwrap();
        ahead.wait_for(0, 10);
        ahead.wait_for(2 * PIECE as u64, 10);
    }

    #[test]
    fn a_file_is_not_cached_if_a_sample_takes_long() {
        for slow in [0, SIZE / 2, SIZE - (8 << 20)] {
            let read = |at, _: &mut [u8]| {
                if at > slow {
                    thread::sleep(2 * CACHED);
                }
                Ok(1)
            };
            assert!(!is_cached(SIZE, |_| None, read));
            assert!(is_cached(SIZE, |_| Some(true), read));
            assert!(!is_cached(SIZE, |at| Some(at <= slow), read));
        }
        // A machine that is very busy needs several attempts.
        assert!((0..100).any(|_| is_cached(SIZE, |_| None, |_, _| Ok(1))));
    }
}
