//! Buffers made ready by other threads before their turn comes.
//!
//! What can be done with a buffer alone (decompressing it, finding its records) is done ahead, in the
//! order in which the merge is going to ask for the buffers; the merge itself stays where it is. So the
//! records, and all that is told of them, are those of one thread: a buffer that is asked for
//! before its turn, or that nobody has begun with, is simply made ready on the spot.
//!
//! Two kinds of threads take part: those that do nothing else, for which only compressed buffers are worth
//! it, and a [`Helper`]'s, which has work of its own and makes buffers ready while it would wait.

use core::mem;
use std::collections::VecDeque;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::Scope;

use crate::error::Result;

use super::damage::{Log, Mode};
use super::index::{BufferEntry, Layout};
use super::loaded::{Loaded, Spot};
use super::source::Source;

/// Most buffers that are on their way at once, for each thread.
const WINDOW: usize = 16;

/// Larger buffers are not read ahead, so that a few that claim much do not take much.
const MAX_BYTES: u64 = 4 << 20;

/// A buffer on its way.
#[derive(Debug)]
pub(crate) struct Piece<B> {
    index: usize,
    entry: BufferEntry,
    pub loaded: Loaded<B>,
    /// Its records, in time order where that was asked for.
    pub records: Vec<Spot>,
    /// The faults of this buffer.
    pub log: Log,
    /// Whether its records were not in order, or what ended the reading.
    pub sorted: Result<bool>,
}

/// Decompresses a buffer whose bytes are there and finds its records; whether they were out of order.
/// With `sort` they are then put in order.
pub(crate) fn make_ready<B: AsRef<[u8]>>(
    entry: BufferEntry,
    layout: &Layout,
    loaded: &mut Loaded<B>,
    records: &mut Vec<Spot>,
    log: &mut Log,
    sort: bool,
) -> Result<bool> {
    loaded.set(entry, layout, log)?;
    let ordered = loaded.spots(records, log);
    if !ordered && sort {
        records.sort_by_key(|spot| spot.timestamp);
    }
    Ok(!ordered)
}

/// The buffers that have been read, for whoever has time for them.
#[derive(Debug)]
struct Pieces<B> {
    /// Those that nobody has begun with.
    todo: VecDeque<Piece<B>>,
    done: Vec<Piece<B>>,
    /// Threads that have begun with one.
    busy: usize,
    /// Whether no more come.
    over: bool,
}

/// Where the threads hand each other buffers.
#[derive(Debug)]
struct Desk<B> {
    pieces: Mutex<Pieces<B>>,
    /// There is something to be done, or no more comes.
    come: Condvar,
    /// Something was done.
    done: Condvar,
    layout: Layout,
    /// Whether records are to be put in time order.
    sort: bool,
}

impl<B> Desk<B> {
    fn pieces(&self) -> MutexGuard<'_, Pieces<B>> {
        self.pieces.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Sees to it that nobody waits for a thread that is gone.
struct Busy<'d, B> {
    desk: &'d Desk<B>,
    made: Option<Piece<B>>,
}

impl<B> Drop for Busy<'_, B> {
    fn drop(&mut self) {
        let mut pieces = self.desk.pieces();
        pieces.done.extend(self.made.take());
        pieces.busy = pieces.busy.saturating_sub(1);
        self.desk.done.notify_one();
    }
}

impl<B: AsRef<[u8]>> Desk<B> {
    fn make(&self, piece: &mut Piece<B>) {
        let Piece { entry, loaded, records, log, .. } = &mut *piece;
        piece.sorted = make_ready(*entry, &self.layout, loaded, records, log, self.sort);
    }

    /// Makes the buffer ready that `take` gives; whether there was one.
    fn work_at(&self, take: impl FnOnce(&mut Pieces<B>) -> Option<Piece<B>>) -> bool {
        let mut pieces = self.pieces();
        let Some(mut piece) = take(&mut pieces) else { return false };
        pieces.busy += 1;
        drop(pieces);
        let mut busy = Busy { desk: self, made: None };
        self.make(&mut piece);
        busy.made = Some(piece);
        true
    }

    /// Works until no more come.
    fn work(&self) {
        let next = |pieces: &mut Pieces<B>| pieces.todo.pop_front();
        while self.work_at(next) || self.wait() {}
    }

    /// Waits for something to be done; whether more comes.
    fn wait(&self) -> bool {
        let idle = |pieces: &mut Pieces<B>| pieces.todo.is_empty() && !pieces.over;
        let pieces = self.come.wait_while(self.pieces(), idle);
        !pieces.unwrap_or_else(PoisonError::into_inner).over
    }
}

/// For a thread that takes what a reader gives: makes buffers ready for the reader while there is
/// nothing to take. From [`Ordered::with_helper`](super::Ordered::with_helper).
#[derive(Debug)]
pub struct Helper<B> {
    /// `None` where there is nothing to help with.
    desk: Option<Arc<Desk<B>>>,
}

impl<B: AsRef<[u8]>> Helper<B> {
    /// One that finds nothing to do.
    pub(crate) fn idle() -> Self {
        Helper { desk: None }
    }

    /// Makes one buffer ready that the reader is going to need, some microseconds of work; `false` where there is
    /// none to be had at the moment.
    pub fn help(&self) -> bool {
        // The last one: the reader is at the first.
        self.desk.as_ref().is_some_and(|desk| desk.work_at(|pieces| pieces.todo.pop_back()))
    }
}

/// The buffers on their way.
#[derive(Debug)]
pub(crate) struct Ahead<B> {
    desk: Arc<Desk<B>>,
    /// Whether a thread has been told to come.
    threads: bool,
    /// Whether those that are not compressed are set on their way, too.
    plain: bool,
    /// Most that are on their way.
    window: usize,
    /// Indices of the entries in the order in which they are likely to be asked for.
    order: Vec<usize>,
    next: usize,
    /// Which of them are on their way, or have been asked for.
    begun: Vec<bool>,
    /// How many are on their way.
    under_way: usize,
    /// Memory to be used again.
    spare: Vec<(Loaded<B>, Vec<Spot>)>,
    mode: Mode,
}

impl<B> Drop for Ahead<B> {
    fn drop(&mut self) {
        let mut pieces = self.desk.pieces();
        pieces.over = true;
        pieces.todo.clear();
        self.desk.come.notify_all();
    }
}

impl<B: AsRef<[u8]> + Default + Send> Ahead<B> {
    /// Starts `threads` threads, which put records in time order if they are to `sort`. They end when
    /// this is dropped.
    pub fn start<'scope>(
        scope: &'scope Scope<'scope, '_>,
        threads: usize,
        order: Vec<usize>,
        layout: &Layout,
        mode: Mode,
        sort: bool,
    ) -> Self
    where
        B: 'scope,
    {
        let pieces = Pieces { todo: VecDeque::new(), done: Vec::new(), busy: 0, over: false };
        let desk = Arc::new(Desk {
            pieces: Mutex::new(pieces),
            come: Condvar::new(),
            done: Condvar::new(),
            layout: layout.clone(),
            sort,
        });
        for _ in 0..threads {
            let desk = Arc::clone(&desk);
            scope.spawn(move || desk.work());
        }
        Ahead {
            desk,
            threads: threads > 0,
            plain: false,
            window: WINDOW * threads,
            begun: vec![false; order.len()],
            order,
            next: 0,
            under_way: 0,
            spare: Vec::new(),
            mode,
        }
    }

    /// Lets another thread take part; with `plain`, in what is not compressed as well.
    pub fn helper(&mut self, plain: bool) -> Helper<B> {
        self.window += WINDOW;
        self.plain |= plain;
        Helper { desk: Some(Arc::clone(&self.desk)) }
    }
}

impl<B: AsRef<[u8]> + Default> Ahead<B> {
    /// The buffer with this index, if it is on its way; makes it ready or waits for it. It will not be asked
    /// for again.
    pub fn take<S: Source<Block = B>>(
        &mut self,
        index: usize,
        entries: &[BufferEntry],
        source: &mut S,
    ) -> Option<Piece<B>> {
        let known = self.begun.get_mut(index).map(|begun| mem::replace(begun, true));
        // Several at a time: a thread that sleeps is woken once for all of them.
        if self.under_way <= self.window / 2 {
            self.fill(entries, source);
        }
        if known != Some(true) {
            return None;
        }
        self.under_way = self.under_way.saturating_sub(1);
        let mut pieces = self.desk.pieces();
        loop {
            if let Some(at) = pieces.done.iter().position(|piece| piece.index == index) {
                return Some(pieces.done.swap_remove(at));
            }
            if let Some(at) = pieces.todo.iter().position(|piece| piece.index == index) {
                let mut piece = pieces.todo.remove(at)?;
                drop(pieces);
                self.desk.make(&mut piece);
                return Some(piece);
            }
            // A thread is only gone when the program is ending; then the buffer is read again.
            if pieces.busy == 0 {
                return None;
            }
            pieces = self.desk.done.wait(pieces).unwrap_or_else(PoisonError::into_inner);
        }
    }

    /// Gives memory back that a buffer has been read into.
    pub fn give_back(&mut self, memory: (Loaded<B>, Vec<Spot>)) {
        if self.spare.len() < self.window {
            self.spare.push(memory);
        }
    }

    /// Sets buffers on their way as far as the window allows.
    fn fill<S: Source<Block = B>>(&mut self, entries: &[BufferEntry], source: &mut S) {
        while self.under_way < self.window {
            let Some(&index) = self.order.get(self.next) else { return };
            self.next += 1;
            let (Some(begun), Some(&entry)) = (self.begun.get_mut(index), entries.get(index))
            else {
                continue;
            };
            let large = u64::from(entry.stored) + u64::from(entry.fill) > MAX_BYTES;
            if *begun || large || !(entry.compressed || self.plain) {
                continue;
            }
            let (mut loaded, records) = self.spare.pop().unwrap_or_default();
            // What the medium refuses now is asked for again, and told of, in its turn.
            if source.read(entry.offset, entry.stored as usize, &mut loaded.raw).is_err() {
                continue;
            }
            let log = Log::new(self.mode);
            let piece = Piece { index, entry, loaded, records, log, sorted: Ok(false) };
            self.desk.pieces().todo.push_back(piece);
            if self.threads {
                self.desk.come.notify_one();
            }
            *begun = true;
            self.under_way += 1;
        }
    }
}
