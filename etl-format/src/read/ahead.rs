//! Buffers made ready on other threads before their turn comes.
//!
//! What can be done with a buffer alone (decompressing it, finding its records) is done ahead, in the
//! order in which the merge is going to ask for the buffers; the merge itself stays where it is. So the
//! records, and all that is told of them, are those of one thread: a buffer that is asked for
//! before its turn is simply made ready on the spot. So is one that is not compressed, since handing
//! it over would take longer.

use core::mem;
use std::sync::mpsc::{self, Receiver, Sender};
use std::thread::Scope;

use crate::error::Result;

use super::damage::{Log, Mode};
use super::index::{BufferEntry, Layout};
use super::loaded::{Loaded, Spot};
use super::source::Source;

/// Most buffers that are on their way at once, for each thread.
const WINDOW: usize = 16;

/// Larger buffers are not read ahead, so that a few that claim much do not take much.
const MOST: u64 = 4 << 20;

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
        records.sort_by_key(|spot| spot.stamp);
    }
    Ok(!ordered)
}

/// The buffers on their way, and the threads that work on them.
#[derive(Debug)]
pub(crate) struct Ahead<B> {
    threads: Vec<Sender<Piece<B>>>,
    /// The thread that gets the next buffer.
    turn: usize,
    ready: Receiver<Piece<B>>,
    /// Indices of the entries in the order in which they are likely to be asked for.
    order: Vec<usize>,
    next: usize,
    /// Which of them are on their way, or have been asked for.
    begun: Vec<bool>,
    /// How many are on their way.
    under_way: usize,
    /// Those that came before their turn.
    early: Vec<Piece<B>>,
    /// Memory to be used again.
    spare: Vec<(Loaded<B>, Vec<Spot>)>,
    mode: Mode,
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
        let (give, ready) = mpsc::channel();
        let mut senders = Vec::with_capacity(threads);
        for _ in 0..threads {
            let (send, take) = mpsc::channel::<Piece<B>>();
            let (give, layout) = (give.clone(), layout.clone());
            scope.spawn(move || {
                for mut piece in take {
                    let Piece { entry, loaded, records, log, .. } = &mut piece;
                    piece.sorted = make_ready(*entry, &layout, loaded, records, log, sort);
                    if give.send(piece).is_err() {
                        return;
                    }
                }
            });
            senders.push(send);
        }
        let begun = vec![false; order.len()];
        let (early, spare) = (Vec::new(), Vec::new());
        let (turn, next, under_way) = (0, 0, 0);
        Ahead { threads: senders, turn, ready, order, next, begun, under_way, early, spare, mode }
    }
}

impl<B: AsRef<[u8]> + Default> Ahead<B> {
    /// The buffer with this index, if it is on its way; waits for it. It will not be asked for again.
    pub fn take<S: Source<Block = B>>(
        &mut self,
        index: usize,
        entries: &[BufferEntry],
        source: &mut S,
    ) -> Option<Piece<B>> {
        let known = self.begun.get_mut(index).map(|begun| mem::replace(begun, true));
        // Several at a time: a thread that sleeps is woken once for all of them.
        if self.under_way <= WINDOW * self.threads.len() / 2 {
            self.fill(entries, source);
        }
        if known != Some(true) {
            return None;
        }
        loop {
            if let Some(at) = self.early.iter().position(|piece| piece.index == index) {
                self.under_way = self.under_way.saturating_sub(1);
                return Some(self.early.swap_remove(at));
            }
            // A thread is only gone when the program is ending; then the buffer is read again.
            self.early.push(self.ready.recv().ok()?);
        }
    }

    /// Gives memory back that a buffer has been read into.
    pub fn give_back(&mut self, memory: (Loaded<B>, Vec<Spot>)) {
        if self.spare.len() < WINDOW * self.threads.len() {
            self.spare.push(memory);
        }
    }

    /// Sets buffers on their way as far as the window allows.
    fn fill<S: Source<Block = B>>(&mut self, entries: &[BufferEntry], source: &mut S) {
        while self.under_way < WINDOW * self.threads.len() {
            let Some(&index) = self.order.get(self.next) else { return };
            self.next += 1;
            let (Some(begun), Some(&entry)) = (self.begun.get_mut(index), entries.get(index))
            else {
                continue;
            };
            let large = u64::from(entry.stored) + u64::from(entry.fill) > MOST;
            if *begun || large || !entry.compressed {
                continue;
            }
            let (mut loaded, records) = self.spare.pop().unwrap_or_default();
            // What the medium refuses now is asked for again, and told of, in its turn.
            if source.read(entry.offset, entry.stored as usize, &mut loaded.raw).is_err() {
                continue;
            }
            let log = Log::new(self.mode);
            let piece = Piece { index, entry, loaded, records, log, sorted: Ok(false) };
            self.turn = (self.turn + 1) % self.threads.len().max(1);
            let Some(thread) = self.threads.get(self.turn) else { return };
            if thread.send(piece).is_ok() {
                *begun = true;
                self.under_way += 1;
            }
        }
    }
}
