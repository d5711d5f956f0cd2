//! Buffers packed on other threads, and given back in the order in which they came.
//!
//! Packing is the dearest thing that is done to a buffer, and needs nothing but the buffer. So buffers
//! wait in a queue from which the other threads take them; the thread that brings them goes on, and
//! takes one itself whenever it has nothing else to do. What is written is what one thread
//! writes, in the same order.

use core::fmt;
use std::collections::{BTreeMap, VecDeque};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::{self, JoinHandle};

use crate::constants::BUFFER_HEADER_SIZE;
use crate::error::Result;

use super::pack::Packer;
use super::put::unwritable;

/// Most buffers that are under way at once, for each thread.
const WINDOW: usize = 8;

/// Most bytes that those take, for each thread, unless a single buffer is larger.
const MOST: usize = 4 << 20;

/// The first buffers are packed on the spot: few are not worth a thread.
const WORTH_IT: u64 = 4;

/// A buffer, and what became of it.
#[derive(Debug)]
pub(super) struct Packed<T> {
    /// Room for the header, then the records as they came.
    pub plain: Vec<u8>,
    /// Room for the header, then the records packed.
    pub packed: Vec<u8>,
    /// What was given along with it.
    pub with: T,
}

/// A buffer under way.
#[derive(Debug)]
struct Job {
    number: u64,
    plain: Vec<u8>,
    packed: Vec<u8>,
}

impl Job {
    fn pack(&mut self, packer: &mut (impl Packer + ?Sized)) {
        self.packed.clear();
        self.packed.resize(BUFFER_HEADER_SIZE, 0);
        packer.pack(self.plain.get(BUFFER_HEADER_SIZE..).unwrap_or_default(), &mut self.packed);
    }
}

/// What the threads share.
#[derive(Debug, Default)]
struct Shared {
    state: Mutex<State>,
    /// Something is in the queue, or it is over.
    work: Condvar,
    /// A buffer is done, or a thread is gone.
    done: Condvar,
}

#[derive(Debug, Default)]
struct State {
    queue: VecDeque<Job>,
    done: BTreeMap<u64, Job>,
    ended: bool,
    /// A thread has ended with a buffer in its hands.
    gone: bool,
}

impl Shared {
    fn lock(&self) -> MutexGuard<'_, State> {
        // Nothing is left halfway while it is locked.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Packs what is in the queue until it is over.
    fn work(&self, packer: &mut dyn Packer) {
        let _told = Told(self);
        let mut state = self.lock();
        loop {
            if state.ended {
                return;
            }
            let Some(mut job) = state.queue.pop_front() else {
                state = self.work.wait(state).unwrap_or_else(PoisonError::into_inner);
                continue;
            };
            drop(state);
            job.pack(packer);
            state = self.lock();
            state.done.insert(job.number, job);
            self.done.notify_one();
        }
    }
}

/// Tells of a packer that panicked, for whose buffer one would wait for ever.
struct Told<'a>(&'a Shared);

impl Drop for Told<'_> {
    fn drop(&mut self) {
        if thread::panicking() {
            self.0.lock().gone = true;
            self.0.done.notify_one();
        }
    }
}

/// The buffers under way, and the threads that work on them.
pub(super) struct Packing<P, T> {
    packer: P,
    shared: Arc<Shared>,
    threads: Vec<JoinHandle<()>>,
    /// Packers that no thread has been started for.
    others: Vec<Box<dyn Packer + Send>>,
    /// What was given along with the buffers under way, and their lengths; the oldest first.
    waiting: VecDeque<(T, usize)>,
    /// Number of the oldest, and of the one that comes next.
    oldest: u64,
    next: u64,
    /// Bytes of those under way.
    bytes: usize,
    spare: Vec<Vec<u8>>,
}

impl<P: Packer, T> fmt::Debug for Packing<P, T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Packing")
            .field("format", &self.packer.format())
            .field("threads", &self.threads.len())
            .field("waiting", &self.waiting.len())
            .finish_non_exhaustive()
    }
}

impl<P: Packer, T> Packing<P, T> {
    pub fn new(packer: P) -> Self {
        let others = packer.others();
        Packing {
            packer,
            shared: Arc::default(),
            threads: Vec::new(),
            others,
            waiting: VecDeque::new(),
            oldest: 0,
            next: 0,
            bytes: 0,
            spare: Vec::new(),
        }
    }

    pub fn packer(&self) -> &P {
        &self.packer
    }

    /// Memory for a buffer: empty, and used before where there is some.
    pub fn memory(&mut self) -> Vec<u8> {
        let mut memory = self.spare.pop().unwrap_or_default();
        memory.clear();
        memory
    }

    /// Gives memory back.
    pub fn give_back(&mut self, memory: Vec<u8>) {
        if self.spare.len() <= 2 * self.window() {
            self.spare.push(memory);
        }
    }

    /// Sets a buffer on its way, which begins with room for its header.
    pub fn push(&mut self, plain: Vec<u8>, with: T) {
        let packed = self.memory();
        let mut job = Job { number: self.next, plain, packed };
        self.next += 1;
        self.bytes = self.bytes.saturating_add(job.plain.len());
        self.waiting.push_back((with, job.plain.len()));
        if self.next > WORTH_IT {
            self.start();
        }
        if self.threads.is_empty() {
            job.pack(&mut self.packer);
            self.shared.lock().done.insert(job.number, job);
        } else {
            self.shared.lock().queue.push_back(job);
            self.shared.work.notify_one();
        }
    }

    /// Whether so much is under way that the oldest has to be waited for.
    pub fn is_full(&self) -> bool {
        self.waiting.len() >= self.window()
            || self.bytes > MOST.saturating_mul(self.threads.len() + 1)
    }

    fn window(&self) -> usize {
        WINDOW * (self.threads.len() + 1)
    }

    /// The oldest buffer under way, if it is done. To `wait` for it is to work as well; then there is
    /// none only when none is under way.
    ///
    /// # Errors
    /// When a packer on another thread has panicked.
    pub fn pop(&mut self, wait: bool) -> Result<Option<Packed<T>>> {
        if self.waiting.is_empty() {
            return Ok(None);
        }
        let mut state = self.shared.lock();
        let Job { plain, packed, .. } = loop {
            if let Some(job) = state.done.remove(&self.oldest) {
                break job;
            }
            if !wait {
                return Ok(None);
            }
            if let Some(mut job) = state.queue.pop_front() {
                drop(state);
                job.pack(&mut self.packer);
                state = self.shared.lock();
                state.done.insert(job.number, job);
            } else if state.gone {
                return Err(unwritable("a thread that compresses buffers has panicked"));
            } else {
                state = self.shared.done.wait(state).unwrap_or_else(PoisonError::into_inner);
            }
        };
        drop(state);
        self.oldest += 1;
        let Some((with, len)) = self.waiting.pop_front() else { return Ok(None) };
        self.bytes = self.bytes.saturating_sub(len);
        Ok(Some(Packed { plain, packed, with }))
    }

    /// Starts the other threads, if there are to be any. Where the system has none to give, the buffers
    /// are packed without.
    fn start(&mut self) {
        for mut packer in self.others.drain(..) {
            let shared = Arc::clone(&self.shared);
            let thread = thread::Builder::new().spawn(move || shared.work(&mut *packer));
            self.threads.extend(thread);
        }
    }
}

impl<P, T> Drop for Packing<P, T> {
    fn drop(&mut self) {
        self.shared.lock().ended = true;
        self.shared.work.notify_all();
        for thread in self.threads.drain(..) {
            // Its panic has been told, or nobody waits for its buffer.
            let _ = thread.join();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::constants::CompressionFormat;

    /// Packs a buffer into its length; one of 13 records is one too many.
    struct Lengths(usize);

    impl Packer for Lengths {
        fn format(&self) -> CompressionFormat {
            CompressionFormat::XPRESS
        }

        fn pack(&mut self, input: &[u8], out: &mut Vec<u8>) {
            assert_ne!(input.len(), 13, "the packer's own fault");
            thread::sleep(std::time::Duration::from_micros((input.len() as u64 * 7) % 300));
            out.push(input.len() as u8);
        }

        fn others(&self) -> Vec<Box<dyn Packer + Send>> {
            (0..self.0).map(|_| Box::new(Lengths(0)) as Box<dyn Packer + Send>).collect()
        }
    }

    fn buffer(records: usize) -> Vec<u8> {
        vec![0; BUFFER_HEADER_SIZE + records]
    }

    #[test]
    fn buffers_come_back_in_their_order_and_few_are_under_way() {
        for others in [0, 1, 2, 4] {
            let mut packing = Packing::new(Lengths(others));
            let mut seen = Vec::new();
            let mut most = 0;
            for number in 0..400_usize {
                packing.push(buffer(14 + number % 200), number);
                most = most.max(packing.waiting.len());
                while let Some(done) = packing.pop(packing.is_full()).unwrap() {
                    assert_eq!(done.packed[BUFFER_HEADER_SIZE..], [(14 + done.with % 200) as u8]);
                    assert_eq!(done.plain.len(), BUFFER_HEADER_SIZE + 14 + done.with % 200);
                    seen.push(done.with);
                    packing.give_back(done.plain);
                    packing.give_back(done.packed);
                }
            }
            while let Some(done) = packing.pop(true).unwrap() {
                seen.push(done.with);
            }
            assert!(seen.into_iter().eq(0..400));
            assert!(most <= WINDOW * (others + 1), "{most} with {others} others");
            assert_eq!(packing.threads.len(), others);
        }
    }

    #[test]
    fn large_buffers_are_few() {
        let mut packing = Packing::new(Lengths(1));
        for number in 0..20 {
            packing.push(buffer(3 << 20), number);
            while packing.pop(packing.is_full()).unwrap().is_some() {}
            assert!(packing.bytes <= 2 * MOST);
        }
    }

    #[test]
    fn a_packer_that_panics_is_told_and_not_waited_for() {
        let mut packing = Packing::new(Lengths(1));
        for _ in 0..WORTH_IT {
            packing.push(buffer(1), ());
        }
        // Now there is a thread; only that one is to take the bad one.
        packing.push(buffer(1), ());
        while packing.pop(true).unwrap().is_some() {}
        packing.push(buffer(13), ());
        while !packing.shared.lock().gone {
            thread::yield_now();
        }
        assert!(packing.pop(true).is_err());
    }

    #[test]
    fn threads_end_with_what_started_them() {
        let mut packing = Packing::new(Lengths(3));
        for _ in 0..20 {
            packing.push(buffer(200), ());
        }
        let shared = Arc::downgrade(&packing.shared);
        drop(packing);
        assert!(shared.upgrade().is_none());
    }
}
