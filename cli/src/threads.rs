//! The `--threads` argument.

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
        self.threads.map_or_else(|| processors().min(MAX_USEFUL), usize::from)
    }
}

/// Threads that can run at the same time.
pub(crate) fn processors() -> usize {
    std::thread::available_parallelism().map_or(1, std::num::NonZero::get)
}
