//! Pieces of work done on other threads, and given back in the order in which they came.
//!
//! Compressing is the dearest thing that is done to a buffer on its way out, decompressing the dearest on its way in,
//! and either needs nothing but the buffer. So pieces wait in a queue from which the other threads take them; the
//! thread that brings them goes on, and takes one itself whenever it has nothing else to do. What comes of it is
//! what one thread makes, in the same order.

use core::fmt;
use std::collections::{BTreeMap, VecDeque};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::{self, JoinHandle};

use crate::error::Result;

use super::put::unwritable;

/// Most pieces that are under way at once, for each thread.
const WINDOW: usize = 8;

/// Most bytes that those take, for each thread, unless a single piece is larger.
const MAX_BYTES: usize = 4 << 20;

/// The first pieces are worked on on the spot: few are not worth a thread.
const WORTH_IT: u64 = 4;

/// What is done to a piece.
pub(crate) trait Work {
    /// Everything that is needed for it, and what becomes of it.
    type Piece: Send + 'static;

    fn work(&mut self, piece: &mut Self::Piece);
}

/// What the threads share.
#[derive(Debug)]
struct Shared<J> {
    state: Mutex<State<J>>,
    /// Something is in the queue, or it is over.
    work: Condvar,
    /// A piece is done, or a thread is gone.
    done: Condvar,
}

#[derive(Debug)]
struct State<J> {
    /// By number, as all pieces.
    queue: VecDeque<(u64, J)>,
    done: BTreeMap<u64, J>,
    ended: bool,
    /// A thread has ended with a piece in its hands.
    gone: bool,
}

impl<J> Default for Shared<J> {
    fn default() -> Self {
        let (queue, done) = (VecDeque::new(), BTreeMap::new());
        let state = Mutex::new(State { queue, done, ended: false, gone: false });
        Shared { state, work: Condvar::new(), done: Condvar::new() }
    }
}

impl<J> Shared<J> {
    fn lock(&self) -> MutexGuard<'_, State<J>> {
        // Nothing is left halfway while it is locked.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Works on what is in the queue until it is over.
    fn work(&self, worker: &mut impl Work<Piece = J>) {
        let _told = Told(self);
        let mut state = self.lock();
        loop {
            if state.ended {
                return;
            }
            let Some((number, mut piece)) = state.queue.pop_front() else {
                state = self.work.wait(state).unwrap_or_else(PoisonError::into_inner);
                continue;
            };
            drop(state);
            worker.work(&mut piece);
            state = self.lock();
            state.done.insert(number, piece);
            self.done.notify_one();
        }
    }
}

/// Tells of a worker that panicked, for whose piece one would wait for ever.
struct Told<'a, J>(&'a Shared<J>);

impl<J> Drop for Told<'_, J> {
    fn drop(&mut self) {
        if thread::panicking() {
            self.0.lock().gone = true;
            self.0.done.notify_one();
        }
    }
}

/// The pieces under way, and the threads that work on them: `W` here, an `O` on each of the others.
pub(crate) struct Crew<W: Work, O, T> {
    worker: W,
    shared: Arc<Shared<W::Piece>>,
    threads: Vec<JoinHandle<()>>,
    /// Workers that no thread has been started for.
    others: Vec<O>,
    /// What was given along with the pieces under way, and how many bytes they take; the oldest first.
    waiting: VecDeque<(T, usize)>,
    /// Number of the oldest, and of the one that comes next.
    oldest: u64,
    next: u64,
    /// Bytes of those under way.
    bytes: usize,
}

impl<W: Work, O, T> fmt::Debug for Crew<W, O, T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Crew")
            .field("threads", &self.threads.len())
            .field("waiting", &self.waiting.len())
            .finish_non_exhaustive()
    }
}

impl<W: Work, O: Work<Piece = W::Piece> + Send + 'static, T> Crew<W, O, T> {
    pub fn new(worker: W, others: Vec<O>) -> Self {
        Crew {
            worker,
            shared: Arc::default(),
            threads: Vec::new(),
            others,
            waiting: VecDeque::new(),
            oldest: 0,
            next: 0,
            bytes: 0,
        }
    }

    pub fn worker(&self) -> &W {
        &self.worker
    }

    /// Sets a piece on its way that takes so many bytes.
    pub fn push(&mut self, mut piece: W::Piece, bytes: usize, with: T) {
        let number = self.next;
        self.next += 1;
        self.bytes = self.bytes.saturating_add(bytes);
        self.waiting.push_back((with, bytes));
        if self.next > WORTH_IT {
            self.start();
        }
        if self.threads.is_empty() {
            self.worker.work(&mut piece);
            self.shared.lock().done.insert(number, piece);
        } else {
            self.shared.lock().queue.push_back((number, piece));
            self.shared.work.notify_one();
        }
    }

    /// Whether so much is under way that the oldest has to be waited for.
    pub fn is_full(&self) -> bool {
        self.waiting.len() >= self.window()
            || self.bytes > MAX_BYTES.saturating_mul(self.threads.len() + 1)
    }

    /// Most pieces that are under way at once.
    pub fn window(&self) -> usize {
        WINDOW * (self.threads.len() + 1)
    }

    /// The oldest piece under way, if it is done. To `wait` for it is to work as well; then there is
    /// none only when none is under way.
    ///
    /// # Errors
    /// When a worker on another thread has panicked.
    pub fn pop(&mut self, wait: bool) -> Result<Option<(W::Piece, T)>> {
        if self.waiting.is_empty() {
            return Ok(None);
        }
        let mut state = self.shared.lock();
        let piece = loop {
            if let Some(piece) = state.done.remove(&self.oldest) {
                break piece;
            }
            if !wait {
                return Ok(None);
            }
            if let Some((number, mut piece)) = state.queue.pop_front() {
                drop(state);
                self.worker.work(&mut piece);
                state = self.shared.lock();
                state.done.insert(number, piece);
            } else if state.gone {
                return Err(unwritable("a thread that works on buffers has panicked"));
            } else {
                state = self.shared.done.wait(state).unwrap_or_else(PoisonError::into_inner);
            }
        };
        drop(state);
        self.oldest += 1;
        let Some((with, bytes)) = self.waiting.pop_front() else { return Ok(None) };
        self.bytes = self.bytes.saturating_sub(bytes);
        Ok(Some((piece, with)))
    }

    /// Starts the other threads, if there are to be any. Where the system has none to give, everything
    /// is done here.
    fn start(&mut self) {
        for mut other in self.others.drain(..) {
            let shared = Arc::clone(&self.shared);
            let thread = thread::Builder::new().spawn(move || shared.work(&mut other));
            self.threads.extend(thread);
        }
    }
}

impl<W: Work, O, T> Drop for Crew<W, O, T> {
    fn drop(&mut self) {
        self.shared.lock().ended = true;
        self.shared.work.notify_all();
        for thread in self.threads.drain(..) {
            // Its panic has been told, or nobody waits for its piece.
            let _ = thread.join();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Turns a number into its double; of 13 it makes nothing.
    struct Doubles;

    impl Work for Doubles {
        type Piece = u64;

        fn work(&mut self, piece: &mut u64) {
            assert_ne!(*piece, 13, "the worker's own fault");
            thread::sleep(std::time::Duration::from_micros((*piece * 7) % 300));
            *piece *= 2;
        }
    }

    fn crew<T>(others: usize) -> Crew<Doubles, Doubles, T> {
        Crew::new(Doubles, (0..others).map(|_| Doubles).collect())
    }

    #[test]
    fn pieces_come_back_in_their_order_and_few_are_under_way() {
        let pieces = if cfg!(miri) { 40 } else { 400 };
        for others in [0, 1, 2, 4] {
            let mut crew = crew(others);
            let mut seen = Vec::new();
            let mut most = 0;
            for number in 0..pieces {
                crew.push(14 + number % 200, 1, number);
                most = most.max(crew.waiting.len());
                while let Some((piece, with)) = crew.pop(crew.is_full()).unwrap() {
                    assert_eq!(piece, 2 * (14 + with % 200));
                    seen.push(with);
                }
            }
            while let Some((_, with)) = crew.pop(true).unwrap() {
                seen.push(with);
            }
            assert!(seen.into_iter().eq(0..pieces));
            assert!(most <= WINDOW * (others + 1), "{most} with {others} others");
            assert_eq!(crew.threads.len(), others);
        }
    }

    #[test]
    fn large_pieces_are_few() {
        let mut crew = crew(1);
        for number in 0..20 {
            crew.push(number % 5, 3 << 20, ());
            while crew.pop(crew.is_full()).unwrap().is_some() {}
            assert!(crew.bytes <= 2 * MAX_BYTES);
        }
    }

    #[test]
    fn a_worker_that_panics_is_told_and_not_waited_for() {
        let mut crew = crew(1);
        for _ in 0..WORTH_IT {
            crew.push(1, 1, ());
        }
        // Now there is a thread; only that one is to take the bad one.
        crew.push(1, 1, ());
        while crew.pop(true).unwrap().is_some() {}
        crew.push(13, 1, ());
        while !crew.shared.lock().gone {
            thread::yield_now();
        }
        assert!(crew.pop(true).is_err());
    }

    #[test]
    fn threads_end_with_what_started_them() {
        let mut crew = crew(3);
        for _ in 0..20 {
            crew.push(200, 1, ());
        }
        let shared = Arc::downgrade(&crew.shared);
        drop(crew);
        assert!(shared.upgrade().is_none());
    }
}
