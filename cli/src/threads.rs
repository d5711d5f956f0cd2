//! The `--threads` argument, and work on several files at the same time.

use std::panic::resume_unwind;
use std::sync::atomic::{AtomicUsize, Ordering};

/// More threads do not help: one thread orders the records that the others decompress.
pub(crate) const MAX_USEFUL: usize = 4;

/// The argument of commands that can use several threads.
#[derive(Clone, Debug, Default, clap::Args)]
pub(crate) struct ThreadArgs {
    /// Use N threads; the output does not change [default: one per processor, at most 4]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u16).range(1..=64))]
    threads: Option<u16>,
}

impl ThreadArgs {
    /// The number of threads, the calling one included.
    pub fn count(&self) -> usize {
        self.threads
            .map_or_else(|| processors().min(MAX_USEFUL), usize::from)
    }
}

/// Threads that can run at the same time.
pub(crate) fn processors() -> usize {
    std::thread::available_parallelism().map_or(1, std::num::NonZero::get)
}

/// Calls `f` for every item, for several at the same time. Returns the results in order.
pub(crate) fn map<T: Sync, R: Send>(
    items: &[T],
    at_once: usize,
    f: impl Fn(&T) -> R + Sync,
) -> Vec<R> {
    if at_once <= 1 {
        return items.iter().map(f).collect();
    }
    let next = AtomicUsize::new(0);
    let mut done = std::thread::scope(|scope| {
        let mut workers = Vec::new();
        for _ in 0..at_once {
            workers.push(scope.spawn(|| work(items, &next, &f)));
        }
        let mut done = Vec::new();
        for worker in workers {
            done.extend(worker.join().unwrap_or_else(|panic| resume_unwind(panic)));
        }
        done
    });
    done.sort_by_key(|(index, _)| *index);
    done.into_iter().map(|(_, result)| result).collect()
}

/// Calls `f` for one item after another until all are taken. Returns the results with the indices
/// of the items.
fn work<T, R>(items: &[T], next: &AtomicUsize, f: &impl Fn(&T) -> R) -> Vec<(usize, R)> {
    let mut results = Vec::new();
    loop {
        let index = next.fetch_add(1, Ordering::Relaxed);
        let Some(item) = items.get(index) else {
            return results;
        };
        results.push((index, f(item)));
    }
}
