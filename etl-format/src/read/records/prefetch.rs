//! Reads buffers ahead, which other threads decode before the merge needs them.
//!
//! Other threads decompress buffers and locate their records, in the order in which the merge will
//! probably need them. The merge itself stays on its thread, so records and reports do not depend
//! on the number of threads. A buffer that is needed earlier, or that no thread has begun with, is
//! decoded by the merging thread.
//!
//! Threads of the reader decode compressed buffers only, since handing over others costs more than
//! decoding them. A [`DecodeHelper`] lets a thread with work of its own decode any buffer while it
//! is idle.

use core::mem;
use std::sync::Arc;
use std::thread::Scope;

use crate::error::Result;
use crate::pool::{Pool, Wait};
use crate::read::damage::{Log, Mode};
use crate::read::index::{BufferEntry, Layout};
use crate::read::loaded::{Loaded, RecordRef};
use crate::read::source::Source;

use super::run::decode;

/// The largest number of buffers under way at once, for each thread.
const MAX_AHEAD: usize = 16;

/// Larger buffers are not read ahead, to bound the memory.
const MAX_BYTES: u64 = 4 << 20;

/// Buffers that are read ahead use at most the memory for buffers divided by this number, without
/// the positions of their records.
const PARTS: u64 = 16;

/// More threads would only wait for the thread that merges.
pub(super) const MAX_THREADS: usize = 63;

/// Traces with fewer buffers are not worth a thread.
pub(super) const MIN_BUFFERS: usize = 16;

/// Bytes of a buffer, stored and decompressed.
fn bytes(entry: &BufferEntry) -> u64 {
    u64::from(entry.stored) + u64::from(entry.fill)
}

/// A buffer that is being decoded.
#[derive(Debug)]
pub(super) struct Job<B> {
    entry: BufferEntry,
    pub loaded: Loaded<B>,
    /// Its records, in time order if the reader sorts.
    pub records: Vec<RecordRef>,
    /// The faults of this buffer.
    pub log: Log,
    /// Whether its records were out of order, or the error that ended the reading.
    pub sorted: Result<bool>,
}

/// The data that all threads use.
#[derive(Debug)]
struct Shared<B> {
    pool: Pool<Job<B>>,
    layout: Arc<Layout>,
    /// Whether records are put in time order.
    sort: bool,
}

impl<B: AsRef<[u8]>> Shared<B> {
    fn decode(&self, job: &mut Job<B>) {
        let Job {
            entry,
            loaded,
            records,
            log,
            sorted,
        } = job;
        *sorted = decode(*entry, &self.layout, loaded, records, log, self.sort);
    }
}

/// Decodes buffers for a reader on a thread that has other work as well.
#[derive(Debug)]
pub(super) struct DecodeHelper<B>(Arc<Shared<B>>);

impl<B: AsRef<[u8]>> DecodeHelper<B> {
    /// Decodes a buffer that the reader will need; `false` if none is waiting.
    pub fn help(&self) -> bool {
        // The newest buffer, because the reader needs the oldest one now.
        self.0.pool.run_newest(|job| self.0.decode(job))
    }
}

/// Memory that can be used again.
#[derive(Debug, Default)]
struct Spare<B> {
    loaded: Loaded<B>,
    records: Vec<RecordRef>,
}

/// Buffers that are read ahead.
#[derive(Debug)]
pub(super) struct Prefetcher<B> {
    shared: Arc<Shared<B>>,
    /// Whether buffers that are not compressed are read ahead as well.
    uncompressed: bool,
    /// The largest number of buffers under way.
    window: usize,
    /// Indices of the entries in the order in which they are probably needed.
    order: Vec<usize>,
    next: usize,
    /// Whether each entry is under way, or has been taken.
    begun: Vec<bool>,
    /// How many buffers are under way.
    under_way: usize,
    /// Bytes of the buffers under way.
    bytes: u64,
    max_bytes: u64,
    /// Memory for filler, which is read only to be checked.
    scratch: B,
    spare: Vec<Spare<B>>,
    mode: Mode,
}

impl<B> Drop for Prefetcher<B> {
    fn drop(&mut self) {
        self.shared.pool.close();
    }
}

impl<B: AsRef<[u8]> + Default + Send> Prefetcher<B> {
    pub fn new(order: Vec<usize>, layout: &Arc<Layout>, mode: Mode, sort: bool) -> Self {
        let shared = Shared {
            pool: Pool::default(),
            layout: Arc::clone(layout),
            sort,
        };
        Prefetcher {
            shared: Arc::new(shared),
            uncompressed: false,
            window: 0,
            begun: vec![false; order.iter().max().map_or(0, |max| max + 1)],
            order,
            next: 0,
            under_way: 0,
            bytes: 0,
            max_bytes: layout.limits.held / PARTS,
            scratch: B::default(),
            spare: Vec::new(),
            mode,
        }
    }

    /// Starts threads, which end when this is dropped.
    pub fn start<'scope>(&mut self, scope: &'scope Scope<'scope, '_>, threads: usize)
    where
        B: 'scope,
    {
        let threads = threads.min(MAX_THREADS);
        for _ in 0..threads {
            let shared = Arc::clone(&self.shared);
            scope.spawn(move || shared.pool.run_until_closed(|job| shared.decode(job)));
        }
        self.window += MAX_AHEAD * threads;
    }

    /// Returns a helper for another thread, which also decodes buffers that are not compressed.
    pub fn helper(&mut self) -> DecodeHelper<B> {
        self.window += MAX_AHEAD;
        self.uncompressed = true;
        DecodeHelper(Arc::clone(&self.shared))
    }
}

impl<B: AsRef<[u8]> + Default> Prefetcher<B> {
    /// The buffer with this index, decoded, if it is under way. It is taken once.
    pub fn take<S: Source<Block = B>>(
        &mut self,
        index: usize,
        entries: &[BufferEntry],
        source: &mut S,
    ) -> Option<Job<B>> {
        let was_begun = match self.begun.get_mut(index) {
            Some(begun) => mem::replace(begun, true),
            None => false,
        };
        // Several at a time: a thread that sleeps is woken once for all of them.
        if self.under_way <= self.window / 2 {
            self.fill(entries, source);
        }
        if !was_begun {
            return None;
        }
        self.under_way = self.under_way.saturating_sub(1);
        let bytes = entries.get(index).map_or(0, bytes);
        self.bytes = self.bytes.saturating_sub(bytes);
        // `None` only if a thread panicked; then the buffer is read again.
        self.shared
            .pool
            .take(index, Wait::RunSame, |job| self.shared.decode(job))
    }

    /// Takes back the memory of a buffer.
    pub fn recycle(&mut self, loaded: Loaded<B>, records: Vec<RecordRef>) {
        if self.spare.len() <= self.under_way {
            self.spare.push(Spare { loaded, records });
        }
    }

    /// Reads buffers ahead as far as the window allows.
    fn fill<S: Source<Block = B>>(&mut self, entries: &[BufferEntry], source: &mut S) {
        while self.under_way < self.window && self.bytes < self.max_bytes {
            let Some(&index) = self.order.get(self.next) else {
                return;
            };
            self.next += 1;
            let Some(&entry) = entries.get(index) else {
                continue;
            };
            let Some(begun) = self.begun.get_mut(index) else {
                continue;
            };
            let is_large = bytes(&entry) > MAX_BYTES;
            if *begun || is_large || !(entry.compressed || self.uncompressed) {
                continue;
            }
            let Spare {
                mut loaded,
                records,
            } = self.spare.pop().unwrap_or_default();
            // After an error, the merge reads the buffer again and reports it.
            if loaded.read(source, &entry, &mut self.scratch).is_err() {
                continue;
            }
            let job = Job {
                entry,
                loaded,
                records,
                log: Log::new(self.mode),
                sorted: Ok(false),
            };
            self.shared.pool.push(index, job);
            *begun = true;
            self.under_way += 1;
            self.bytes += bytes(&entry);
        }
    }
}
