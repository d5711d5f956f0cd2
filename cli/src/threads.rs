//! The `--threads` argument, and work on several files at the same time.

use std::panic::resume_unwind;
use std::sync::atomic::{AtomicUsize, Ordering};

/// More threads are of no use: one thread orders what the others decompress.
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
    let work = || {
        let next = || {
            items
                .iter()
                .enumerate()
                .nth(next.fetch_add(1, Ordering::Relaxed))
        };
        std::iter::from_fn(next)
            .map(|(at, item)| (at, f(item)))
            .collect::<Vec<_>>()
    };
    let mut done: Vec<_> = std::thread::scope(|scope| {
        let workers: Vec<_> = (0..at_once).map(|_| scope.spawn(work)).collect();
        let done = workers
            .into_iter()
            .flat_map(|worker| worker.join().unwrap_or_else(|panic| resume_unwind(panic)));
        done.collect()
    });
    done.sort_by_key(|(at, _)| *at);
    done.into_iter().map(|(_, result)| result).collect()
}
