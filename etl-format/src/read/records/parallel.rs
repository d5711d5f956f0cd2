//! Reading with several threads.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc;
use std::thread::Scope;

use crate::error::{Error, ErrorKind, Result};
use crate::read::record::Record;
use crate::read::source::Source;

use super::Records;
use super::prefetch::{DecodeHelper, MIN_BUFFERS, Prefetcher};

/// Batches in the queue between the two threads of [`Records::pipeline`]: enough to even out
/// differences in the work per record.
const MAX_BATCHES: usize = 48;

/// Ends the other threads, also when the work with the reader panics.
struct StopThreadsGuard<'a, S: Source>(&'a mut Records<S>);

impl<S: Source> Drop for StopThreadsGuard<'_, S> {
    fn drop(&mut self) {
        self.0.stop_threads();
    }
}

impl<S: Source> Records<S> {
    /// Sets the number of threads that decompress buffers for [`Records::for_each`], the caller's
    /// own included; 0 counts as 1. The default is that of the options.
    #[must_use]
    pub fn with_threads(mut self, threads: usize) -> Self {
        self.threads = threads;
        self
    }

    /// Calls `f` for every remaining record, while other threads decompress buffers ahead.
    ///
    /// # Errors
    /// As [`Records::next_record`], and what `f` returns.
    pub fn for_each<E: From<Error>>(
        &mut self,
        mut f: impl FnMut(Record<'_>) -> Result<(), E>,
    ) -> Result<(), E> {
        self.parallel(|records| {
            while let Some(record) = records.next_record()? {
                f(record)?;
            }
            Ok(())
        })
    }

    /// Calls `work` with this reader, while other threads decompress buffers ahead of it: for loops
    /// that [`Records::for_each`] does not express.
    ///
    /// With one thread, or few compressed buffers, no thread is started: handing over a buffer that
    /// is not compressed costs more than decoding it. Each thread holds up to 16 buffers more than
    /// [`Records::report`] counts. Records, damage and report are the same for any number of
    /// threads.
    pub fn parallel<T>(&mut self, work: impl FnOnce(&mut Self) -> T) -> T {
        let others = self.threads.saturating_sub(1);
        if others == 0 || self.prefetcher.is_some() || !self.gains_by_threads() {
            return work(self);
        }
        std::thread::scope(|scope| {
            self.start_threads(scope, others);
            let guard = StopThreadsGuard(self);
            work(&mut *guard.0)
        })
    }

    /// Reads all remaining records on this thread and processes them in batches on a second one.
    ///
    /// `collect` adds what it needs of a record to the batch and returns whether the batch is full.
    /// `process` receives the batches in order, and empties each so that it can be used again.
    /// While no batch is waiting, the second thread decodes buffers for the reader. Threads beyond
    /// the two decompress.
    ///
    /// # Errors
    /// As [`Records::next_record`]; what was read before the error is processed, unless there is no
    /// memory for it.
    pub fn pipeline<T: Default + Send>(
        &mut self,
        mut collect: impl FnMut(&Record<'_>, &mut T) -> bool,
        mut process: impl FnMut(&mut T) + Send,
    ) -> Result<()> {
        let (send, batches) = mpsc::sync_channel::<T>(MAX_BATCHES);
        let (give_back, spare) = mpsc::channel::<T>();
        let is_over_budget = AtomicBool::new(false);
        let is_over_budget = &is_over_budget;
        std::thread::scope(|scope| {
            let others = self.threads.saturating_sub(2);
            let helper = self.start_helper(scope, others);
            let guard = StopThreadsGuard(self);
            scope.spawn(move || {
                while let Some(mut batch) = next_batch(&batches, helper.as_ref()) {
                    if !is_over_budget.load(Ordering::Relaxed) {
                        process(&mut batch);
                    }
                    // The reader does not take back the last ones.
                    give_back.send(batch).ok();
                }
            });
            // Dropping it at the end of reading ends the other thread.
            let send = send;
            let mut batch = T::default();
            let mut read = || {
                while let Some(record) = guard.0.next_record()? {
                    if collect(&record, &mut batch) {
                        let next = spare.try_recv().unwrap_or_default();
                        // Fails only after the other thread has panicked; then the scope panics
                        // too.
                        send.send(std::mem::replace(&mut batch, next)).ok();
                    }
                }
                Ok(())
            };
            let end = read();
            // What waits in the queue may take as much memory as the budget has.
            let has_memory = |e: &Error| !matches!(e.kind, ErrorKind::Budget { .. });
            is_over_budget.store(
                !end.as_ref().err().is_none_or(has_memory),
                Ordering::Relaxed,
            );
            send.send(batch).ok();
            end
        })
    }

    /// Whether there are enough compressed buffers to be worth a thread.
    pub(crate) fn gains_by_threads(&self) -> bool {
        let compressed = self
            .schedule
            .entries()
            .iter()
            .filter(|entry| entry.compressed);
        compressed.count() >= MIN_BUFFERS
    }

    /// Starts other threads. They end at [`Records::stop_threads`], which has to come before the
    /// end of the scope.
    pub(crate) fn start_threads<'scope>(&mut self, scope: &'scope Scope<'scope, '_>, others: usize)
    where
        S::Block: 'scope,
    {
        self.prefetcher().start(scope, others);
    }

    /// Starts other threads if they are worth it, and returns a helper for the second thread unless
    /// the trace is too small.
    fn start_helper<'scope>(
        &mut self,
        scope: &'scope Scope<'scope, '_>,
        others: usize,
    ) -> Option<DecodeHelper<S::Block>>
    where
        S::Block: 'scope,
    {
        if self.schedule.entries().len() < MIN_BUFFERS {
            return None;
        }
        let others = if self.gains_by_threads() { others } else { 0 };
        let prefetcher = self.prefetcher();
        prefetcher.start(scope, others);
        Some(prefetcher.helper())
    }

    fn prefetcher(&mut self) -> &mut Prefetcher<S::Block> {
        let (order, sorts) = (self.schedule.likely_order(), self.schedule.sorts());
        self.prefetcher
            .insert(Prefetcher::new(order, &self.layout, self.mode, sorts))
    }

    /// Ends the other threads.
    pub(crate) fn stop_threads(&mut self) {
        self.prefetcher = None;
    }
}

/// The next batch, or `None` at the end; decodes buffers for the reader in the meantime.
fn next_batch<T, B: AsRef<[u8]>>(
    batches: &mpsc::Receiver<T>,
    helper: Option<&DecodeHelper<B>>,
) -> Option<T> {
    loop {
        match batches.try_recv() {
            Ok(batch) => return Some(batch),
            Err(mpsc::TryRecvError::Disconnected) => return None,
            Err(mpsc::TryRecvError::Empty) if helper.is_some_and(DecodeHelper::help) => {}
            Err(mpsc::TryRecvError::Empty) => return batches.recv().ok(),
        }
    }
}
