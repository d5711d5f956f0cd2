//! A pool of threads: a queue of numbered jobs, and the finished jobs.
//!
//! A caller takes the result of a job by its number, and can run queued jobs while it waits. The
//! reader ([`crate::read`]) and the writers of buffers ([`OrderedPool`]) use this.

mod ordered;

pub(crate) use ordered::{Completed, OrderedPool, Take, Work};

use std::collections::VecDeque;
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};

/// Jobs by number, shared by the threads that run them.
#[derive(Debug)]
pub(crate) struct Pool<J> {
    state: Mutex<State<J>>,
    /// A job was queued, or the pool was closed.
    queued: Condvar,
    /// A thread has finished a job, or ended in the middle of one.
    finished: Condvar,
}

#[derive(Debug)]
struct State<J> {
    queue: VecDeque<Numbered<J>>,
    finished: Vec<Numbered<J>>,
    /// Threads that are running a job.
    busy: usize,
    is_closed: bool,
}

#[derive(Debug)]
struct Numbered<J> {
    number: usize,
    job: J,
}

/// What a thread does while the job that it needs is not finished.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Wait {
    /// Return without the job.
    No,
    /// Run queued jobs, the oldest first.
    RunOldest,
    /// Run the job itself, if no thread has begun with it.
    RunSame,
}

impl<J> Default for Pool<J> {
    fn default() -> Self {
        let state = State {
            queue: VecDeque::new(),
            finished: Vec::new(),
            busy: 0,
            is_closed: false,
        };
        Pool {
            state: Mutex::new(state),
            queued: Condvar::new(),
            finished: Condvar::new(),
        }
    }
}

impl<J> Pool<J> {
    fn lock(&self) -> MutexGuard<'_, State<J>> {
        // The state is consistent whenever the lock is free, even after a panic.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Queues a job.
    pub fn push(&self, number: usize, job: J) {
        self.lock().queue.push_back(Numbered { number, job });
        self.queued.notify_one();
    }

    /// Adds a finished job.
    pub fn push_finished(&self, number: usize, job: J) {
        self.lock().finished.push(Numbered { number, job });
    }

    /// Drops the queued jobs and stops the threads.
    pub fn close(&self) {
        let mut state = self.lock();
        state.is_closed = true;
        state.queue.clear();
        self.queued.notify_all();
    }

    /// Runs queued jobs until the pool is closed, on a thread of the pool.
    pub fn run_until_closed(&self, mut work: impl FnMut(&mut J)) {
        loop {
            let waiting = self.queued.wait_while(self.lock(), |state| {
                state.queue.is_empty() && !state.is_closed
            });
            let mut state = waiting.unwrap_or_else(PoisonError::into_inner);
            let Some(next) = state.queue.pop_front() else {
                return;
            };
            self.run(state, next, &mut work);
        }
    }

    /// Runs the job that was queued last; `false` if no job is queued.
    pub fn run_newest(&self, mut work: impl FnMut(&mut J)) -> bool {
        let mut state = self.lock();
        let Some(newest) = state.queue.pop_back() else {
            return false;
        };
        self.run(state, newest, &mut work);
        true
    }

    fn run(
        &self,
        mut state: MutexGuard<'_, State<J>>,
        mut next: Numbered<J>,
        work: &mut impl FnMut(&mut J),
    ) {
        state.busy += 1;
        drop(state);
        let mut guard = BusyGuard {
            pool: self,
            finished: None,
        };
        work(&mut next.job);
        guard.finished = Some(next);
    }

    /// Takes a finished job; `wait` decides what happens until it is finished. Returns `None` if it
    /// is not finished and the caller does not wait, if no such job was queued, and if its thread
    /// panicked.
    pub fn take(&self, number: usize, wait: Wait, mut work: impl FnMut(&mut J)) -> Option<J> {
        let mut state = self.lock();
        loop {
            let index = state.finished.iter().position(|job| job.number == number);
            if let Some(index) = index {
                return Some(state.finished.swap_remove(index).job);
            }
            let next = match wait {
                Wait::No => return None,
                Wait::RunOldest => state.queue.pop_front(),
                Wait::RunSame => {
                    let index = state.queue.iter().position(|job| job.number == number);
                    index.and_then(|index| state.queue.remove(index))
                }
            };
            match next {
                Some(mut next) => {
                    drop(state);
                    work(&mut next.job);
                    if next.number == number {
                        return Some(next.job);
                    }
                    state = self.lock();
                    state.finished.push(next);
                }
                None if state.busy == 0 => return None,
                None => {
                    state = self
                        .finished
                        .wait(state)
                        .unwrap_or_else(PoisonError::into_inner);
                }
            }
        }
    }
}

/// Stores a finished job and marks its thread as idle, also when the job panicked.
struct BusyGuard<'p, J> {
    pool: &'p Pool<J>,
    finished: Option<Numbered<J>>,
}

impl<J> Drop for BusyGuard<'_, J> {
    fn drop(&mut self) {
        let mut state = self.pool.lock();
        state.finished.extend(self.finished.take());
        state.busy = state.busy.saturating_sub(1);
        self.pool.finished.notify_one();
    }
}
