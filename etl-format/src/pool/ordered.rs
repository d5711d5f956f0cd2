//! A pool that returns results in the order in which the jobs were added.
//!
//! Buffers are independent of each other, and compressing or decompressing them takes most of the
//! time, so they are jobs of a pool. The thread that adds jobs also runs jobs while it has nothing
//! else to do. The results are the same for any number of threads.

use core::fmt;
use std::collections::VecDeque;
use std::sync::Arc;
use std::thread::{self, JoinHandle};

use crate::error::{Error, ErrorKind, Result};

use super::{Pool, Wait};

/// The largest number of jobs under way at once, for each thread.
const MAX_JOBS: usize = 8;

/// The largest number of bytes of all jobs under way, for each thread, unless one job is larger.
const MAX_BYTES: usize = 4 << 20;

/// The thread that adds jobs runs the first ones itself, because few jobs are not worth a thread.
const MIN_JOBS: usize = 4;

/// The work on a job.
pub(crate) trait Work: Send + 'static {
    /// Everything that the work needs, and its result.
    type Job: Send + 'static;

    fn work(&mut self, job: &mut Self::Job);
}

/// Jobs under way, and the threads that run them. Each job has data of the caller, which are
/// returned with its result.
pub(crate) struct OrderedPool<W: Work, T> {
    worker: W,
    pool: Arc<Pool<W::Job>>,
    threads: Vec<JoinHandle<()>>,
    /// Workers of threads that have not been started.
    for_threads: Vec<W>,
    /// The jobs under way, the oldest first.
    waiting: VecDeque<Waiting<T>>,
    /// Number of the oldest job under way.
    oldest: usize,
    /// Number of the job that is added next.
    next: usize,
    /// Bytes of the jobs under way.
    bytes: usize,
}

struct Waiting<T> {
    bytes: usize,
    /// Data of the caller.
    with: T,
}

/// Which jobs to take from a pool.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Take {
    /// Finished jobs. Waits only if the pool has no room for another job.
    Finished,
    /// All jobs. Waits for each.
    All,
}

/// A job that has been run.
pub(crate) struct Completed<J, T> {
    pub job: J,
    /// Data of the caller.
    pub with: T,
}

impl<W: Work, T> fmt::Debug for OrderedPool<W, T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("OrderedPool")
            .field("threads", &self.threads.len())
            .field("waiting", &self.waiting.len())
            .finish_non_exhaustive()
    }
}

impl<W: Work, T> OrderedPool<W, T> {
    /// `worker` works on the caller's thread, each of `for_threads` on a thread of its own.
    pub fn new(worker: W, for_threads: Vec<W>) -> Self {
        OrderedPool {
            worker,
            pool: Arc::default(),
            threads: Vec::new(),
            for_threads,
            waiting: VecDeque::new(),
            oldest: 0,
            next: 0,
            bytes: 0,
        }
    }

    pub fn worker(&self) -> &W {
        &self.worker
    }

    /// Adds a job of `bytes` bytes.
    pub fn push(&mut self, mut job: W::Job, bytes: usize, with: T) {
        let number = self.next;
        self.next += 1;
        self.bytes = self.bytes.saturating_add(bytes);
        self.waiting.push_back(Waiting { bytes, with });
        if self.next > MIN_JOBS {
            self.start_threads();
        }
        if self.threads.is_empty() {
            self.worker.work(&mut job);
            self.pool.push_finished(number, job);
        } else {
            self.pool.push(number, job);
        }
    }

    /// Whether the caller has to wait for the oldest job before it adds another.
    fn is_full(&self) -> bool {
        self.waiting.len() >= self.max_jobs()
            || self.bytes > MAX_BYTES.saturating_mul(self.threads.len() + 1)
    }

    /// The largest number of jobs under way at once.
    pub fn max_jobs(&self) -> usize {
        MAX_JOBS * (self.threads.len() + 1)
    }

    /// Takes the oldest job under way; `None` if there is none to take. While it waits, this thread
    /// runs jobs.
    ///
    /// # Errors
    /// If a thread has panicked.
    pub fn pop(&mut self, take: Take) -> Result<Option<Completed<W::Job, T>>> {
        if self.waiting.is_empty() {
            return Ok(None);
        }
        let wait = if take == Take::All || self.is_full() {
            Wait::RunOldest
        } else {
            Wait::No
        };
        let worker = &mut self.worker;
        let Some(job) = self.pool.take(self.oldest, wait, |job| worker.work(job)) else {
            return if wait == Wait::No {
                Ok(None)
            } else {
                Err(panicked())
            };
        };
        self.oldest += 1;
        let Some(Waiting { bytes, with }) = self.waiting.pop_front() else {
            return Ok(None);
        };
        self.bytes = self.bytes.saturating_sub(bytes);
        Ok(Some(Completed { job, with }))
    }

    /// Starts the other threads. If the system cannot start any, the caller's thread runs all jobs.
    fn start_threads(&mut self) {
        for mut worker in self.for_threads.drain(..) {
            let pool = Arc::clone(&self.pool);
            let thread =
                thread::Builder::new().spawn(move || pool.run_until_closed(|job| worker.work(job)));
            self.threads.extend(thread);
        }
    }
}

fn panicked() -> Error {
    Error::new(
        0,
        ErrorKind::Unwritable("a thread that works on buffers has panicked"),
    )
}

impl<W: Work, T> Drop for OrderedPool<W, T> {
    fn drop(&mut self) {
        self.pool.close();
        for thread in self.threads.drain(..) {
            // `pop` reported a panic, or the result is not needed.
            let _ = thread.join();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Doubles a number; panics at 13.
    struct Doubles;

    impl Work for Doubles {
        type Job = u64;

        fn work(&mut self, job: &mut u64) {
            assert_ne!(*job, 13, "the worker's own fault");
            thread::sleep(std::time::Duration::from_micros((*job * 7) % 300));
            *job *= 2;
        }
    }

    fn pool<T>(threads: usize) -> OrderedPool<Doubles, T> {
        OrderedPool::new(Doubles, (0..threads).map(|_| Doubles).collect())
    }

    #[test]
    fn pop_returns_jobs_in_order_and_bounds_their_number() {
        let jobs = if cfg!(miri) { 40 } else { 400 };
        for threads in [0, 1, 2, 4] {
            let mut pool = pool(threads);
            let mut numbers = Vec::new();
            let mut max_waiting = 0;
            for number in 0..jobs {
                pool.push(14 + number % 200, 1, number);
                max_waiting = max_waiting.max(pool.waiting.len());
                while let Some(completed) = pool.pop(Take::Finished).unwrap() {
                    assert_eq!(completed.job, 2 * (14 + completed.with % 200));
                    numbers.push(completed.with);
                }
            }
            while let Some(completed) = pool.pop(Take::All).unwrap() {
                numbers.push(completed.with);
            }
            assert!(numbers.into_iter().eq(0..jobs));
            assert!(
                max_waiting <= MAX_JOBS * (threads + 1),
                "{max_waiting} with {threads} more threads"
            );
            assert_eq!(pool.threads.len(), threads);
        }
    }

    #[test]
    fn pop_waits_if_many_bytes_are_under_way() {
        let mut pool = pool(1);
        for number in 0..20 {
            pool.push(number % 5, 3 << 20, ());
            while pool.pop(Take::Finished).unwrap().is_some() {}
            assert!(pool.bytes <= 2 * MAX_BYTES);
        }
    }

    #[test]
    fn pop_reports_a_worker_that_panics() {
        let mut pool = pool(1);
        for _ in 0..=MIN_JOBS {
            pool.push(1, 1, ());
        }
        while pool.pop(Take::All).unwrap().is_some() {}
        // Only the other thread may take the job that panics.
        pool.push(13, 1, ());
        while !pool.threads[0].is_finished() {
            thread::yield_now();
        }
        assert!(pool.pop(Take::All).is_err());
    }

    #[test]
    fn drop_stops_the_threads() {
        let mut pool = pool(3);
        for _ in 0..20 {
            pool.push(200, 1, ());
        }
        let shared = Arc::downgrade(&pool.pool);
        drop(pool);
        assert!(shared.upgrade().is_none());
    }
}
