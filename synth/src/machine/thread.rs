//! Threads.

use crate::rng::{Rng, Source};
use crate::time::Nanos;

/// A thread: operations one after the other, each with its duration.
#[derive(Debug)]
pub(crate) struct Thread {
    pub tid: u32,
    pub process: usize,
    pub processor: u16,
    /// Base of its user stack; the stack goes down from here.
    pub stack: u64,
    pub kernel_stack: u64,
    pub teb: u64,
    pub start_address: u64,
    /// Whether it has a task in the queue.
    pub busy: bool,
    pub started: bool,
    pub ended: bool,
    /// Whether it waits for a disk or for the network.
    pub blocked: bool,
    /// Whether its next operation has waited for what other threads do.
    pub waited: bool,
    /// How long it has computed.
    pub used: Nanos,
    /// When it left its processor last.
    pub left: Nanos,
    /// Activities that were started and not stopped, the current one last.
    pub activities: Vec<etl_format::Guid>,
    /// Random numbers for its work.
    pub rng: Rng,
    source: Source,
}

impl Thread {
    pub fn new(
        tid: u32,
        process: usize,
        processor: u16,
        stack: u64,
        teb: u64,
        source: Source,
    ) -> Self {
        Thread {
            tid,
            process,
            processor,
            stack,
            kernel_stack: 0xffff_f800_0100_0000 + u64::from(tid) * 0x8000,
            teb,
            start_address: 0,
            busy: false,
            started: false,
            ended: false,
            blocked: false,
            waited: false,
            used: 0,
            left: 0,
            activities: Vec::new(),
            rng: source.rng(),
            source,
        }
    }

    /// Random numbers for its stack at a time. A stack depends only on the thread and the time,
    /// not on the stacks that were taken before.
    pub fn stack_rng(&self, at: Nanos) -> Rng {
        self.source.named("stack").numbered(at).rng()
    }

    /// User time in timer ticks (15.625 ms), as in event headers.
    pub fn user_time(&self) -> u32 {
        u32::try_from(self.used / 15_625_000).unwrap_or(u32::MAX)
    }
}
