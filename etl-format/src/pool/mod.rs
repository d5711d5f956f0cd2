//! A pool of threads: a queue of numbered jobs, and the finished jobs.
//!
//! A caller takes the result of a job by its number, and can run queued jobs while it waits. The
//! reader ([`crate::read`]) and the writers of buffers ([`OrderedPool`]) use this.

mod ordered;

pub(crate) use ordered::{OrderedPool, Work};

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
    queue: VecDeque<(usize, J)>,
    done: Vec<(usize, J)>,
    /// Threads that are running a job.
    busy: usize,
    closed: bool,
}

/// What a thread does while the job it needs is not finished.
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
        let (queue, done) = (VecDeque::new(), Vec::new());
        let state = Mutex::new(State {
            queue,
            done,
            busy: 0,
            closed: false,
        });
        Pool {
            state,
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
        self.lock().queue.push_back((number, job));
        self.queued.notify_one();
    }

    /// Adds a job that needs no further work.
    pub fn push_done(&self, number: usize, job: J) {
        self.lock().done.push((number, job));
    }

    /// Drops the queued jobs and stops the threads.
    pub fn close(&self) {
        let mut state = self.lock();
        state.closed = true;
        state.queue.clear();
        self.queued.notify_all();
    }

    /// Runs queued jobs until the pool is closed: the life of a thread.
    pub fn run_until_closed(&self, mut work: impl FnMut(&mut J)) {
        loop {
            let idle = |state: &mut State<J>| state.queue.is_empty() && !state.closed;
            let state = self.queued.wait_while(self.lock(), idle);
            let mut state = state.unwrap_or_else(PoisonError::into_inner);
            let Some(job) = state.queue.pop_front() else {
                return;
            };
            self.run(state, job, &mut work);
        }
    }

    /// Runs the job that was queued last; `false` if there is none.
    pub fn run_newest(&self, mut work: impl FnMut(&mut J)) -> bool {
        let mut state = self.lock();
        let Some(job) = state.queue.pop_back() else {
            return false;
        };
        self.run(state, job, &mut work);
        true
    }

    fn run(
        &self,
        mut state: MutexGuard<'_, State<J>>,
        (number, mut job): (usize, J),
        work: &mut impl FnMut(&mut J),
    ) {
        state.busy += 1;
        drop(state);
        let mut guard = BusyGuard {
            pool: self,
            finished: None,
        };
        work(&mut job);
        guard.finished = Some((number, job));
    }

    /// Takes a finished job; `wait` decides what happens until it is finished. Returns `None` if it
    /// is not finished and the caller does not wait, if no such job was queued, and if its thread
    /// panicked.
    pub fn take(&self, number: usize, wait: Wait, mut work: impl FnMut(&mut J)) -> Option<J> {
        let mut state = self.lock();
        loop {
            if let Some(at) = state.done.iter().position(|(n, _)| *n == number) {
                return Some(state.done.swap_remove(at).1);
            }
            let next = match wait {
                Wait::No => return None,
                Wait::RunOldest => state.queue.pop_front(),
                Wait::RunSame => {
                    let at = state.queue.iter().position(|(n, _)| *n == number);
                    at.and_then(|at| state.queue.remove(at))
                }
            };
            match next {
                Some((n, mut job)) => {
                    drop(state);
                    work(&mut job);
                    if n == number {
                        return Some(job);
                    }
                    state = self.lock();
                    state.done.push((n, job));
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
    finished: Option<(usize, J)>,
}

impl<J> Drop for BusyGuard<'_, J> {
    fn drop(&mut self) {
        let mut state = self.pool.lock();
        state.done.extend(self.finished.take());
        state.busy = state.busy.saturating_sub(1);
        self.pool.finished.notify_one();
    }
}
