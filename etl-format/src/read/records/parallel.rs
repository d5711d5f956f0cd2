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
    /// thread included; 0 means 1. The default is the number in the options.
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

    /// Calls `work` with this reader, while other threads decompress buffers ahead of it. This
    /// allows loops that [`Records::for_each`] does not.
    ///
    /// With one thread, or few compressed buffers, no thread is started: sending a buffer to
    /// another thread costs more than decoding a buffer that is not compressed. Each thread has up
    /// to 16 buffers in memory that [`Records::report`] does not count. Records, damage and report
    /// are the same for any number of threads.
    pub fn parallel<T>(&mut self, work: impl FnOnce(&mut Self) -> T) -> T {
        let others = self.threads.saturating_sub(1);
        if others == 0 || self.prefetcher.is_some() || !self.is_worth_threads() {
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
    /// `collect` adds a record to the batch and returns whether the batch is full. `process`
    /// receives the batches in order, and empties each so that it can be used again. While no batch
    /// is waiting, the second thread decodes buffers for the reader. Additional threads decompress.
    ///
    /// # Errors
    /// As [`Records::next_record`]. Records before the error are processed, unless the memory
    /// budget is exceeded.
    pub fn pipeline<T: Default + Send>(
        &mut self,
        collect: impl FnMut(&Record<'_>, &mut T) -> bool,
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
                    // The reader does not use the last batches again.
                    give_back.send(batch).ok();
                }
            });
            // Moved here, so that it is dropped at the end of reading, which ends the other thread.
            let send = send;
            let mut last = T::default();
            let end = guard.0.read_batches(collect, &mut last, &spare, &send);
            // The batches in the queue may need as much memory as the budget has.
            if let Err(error) = &end
                && matches!(error.kind, ErrorKind::Budget { .. })
            {
                is_over_budget.store(true, Ordering::Relaxed);
            }
            send.send(last).ok();
            end
        })
    }

    /// Reads all records into batches. The last batch is not sent.
    fn read_batches<T: Default>(
        &mut self,
        mut collect: impl FnMut(&Record<'_>, &mut T) -> bool,
        batch: &mut T,
        spare: &mpsc::Receiver<T>,
        send: &mpsc::SyncSender<T>,
    ) -> Result<()> {
        while let Some(record) = self.next_record()? {
            if collect(&record, batch) {
                let next = spare.try_recv().unwrap_or_default();
                // Fails only after the other thread has panicked; then the scope panics as well.
                send.send(std::mem::replace(batch, next)).ok();
            }
        }
        Ok(())
    }

    /// Whether there are enough compressed buffers to be worth a thread.
    pub(crate) fn is_worth_threads(&self) -> bool {
        let entries = self.schedule.entries().iter();
        entries.filter(|entry| entry.compressed).count() >= MIN_BUFFERS
    }

    /// Starts other threads. They end at [`Records::stop_threads`], which must come before the end
    /// of the scope.
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
        let others = if self.is_worth_threads() { others } else { 0 };
        let prefetcher = self.prefetcher();
        prefetcher.start(scope, others);
        Some(prefetcher.helper())
    }

    fn prefetcher(&mut self) -> &mut Prefetcher<S::Block> {
        let order = self.schedule.likely_order();
        let sorts = self.schedule.sorts();
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
