//! How many threads work on a trace: the argument of the commands that other threads can help.

/// Beyond these nothing gets any faster: one thread puts in order what the others make ready.
const USEFUL: usize = 4;

/// The argument of the commands that other threads can help.
#[derive(Clone, Debug, Default, clap::Args)]
pub(crate) struct ThreadArgs {
    /// Use this many threads; the output is the same. Without it, as many as there are processors, and
    /// four at most
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u16).range(1..=64))]
    threads: Option<u16>,
}

impl ThreadArgs {
    /// How many threads to use, the first one included.
    pub fn count(&self) -> usize {
        let all = || std::thread::available_parallelism().map_or(1, std::num::NonZero::get);
        self.threads.map_or_else(|| all().min(USEFUL), usize::from)
    }
}
