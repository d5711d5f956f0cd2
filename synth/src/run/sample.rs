//! The profiler: it samples every processor at each interval, idle ones too, one processor after
//! the other: their timers do not fire at the same time.

use crate::clr::thread_stack;
use crate::error::Result;
use crate::etw::Origin;
use crate::kernel;
use crate::model::KernelEvent;
use crate::time::{MICROSECOND, Nanos};

use super::process::KERNEL;
use super::schedule::PRIORITY;
use super::{Simulator, Task};

/// Where an idle processor waits, in the kernel.
const IDLE: u64 = KERNEL + 0x15_f552;

/// The flags of a sample have the priority of the thread above their three lowest bits; the flags
/// of idle processors are 0x80 (as in the samples of net.4.5.2.x64.etl).
const FLAGS: u8 = PRIORITY.cast_unsigned() << 3;
const IDLE_FLAGS: u8 = 0x80;

/// Where a driver runs deferred procedure calls and interrupt service routines.
const DPC: u64 = KERNEL + 0x42_1a30;
const ISR: u64 = KERNEL + 0x42_0c58;

/// The flags of samples that find an idle processor in one of these.
const DPC_FLAGS: u8 = IDLE_FLAGS | 1;
const ISR_FLAGS: u8 = IDLE_FLAGS | 2;

/// Of so many interrupts, the last one is in a service routine.
const PER_ISR: u64 = 4;

/// What an idle processor executes.
struct IdleCode {
    address: u64,
    flags: u8,
}

/// The sample of a processor comes this long after the one of the processor before it.
const STAGGER: Nanos = 10 * MICROSECOND;

/// When a processor is sampled, after the first one.
fn offset(processor: usize, interval: Nanos) -> Nanos {
    (processor as Nanos)
        .saturating_mul(STAGGER)
        .checked_rem(interval)
        .unwrap_or(0)
}

impl Simulator<'_> {
    /// A new round: the first processor is sampled now, and the others after it.
    pub(super) fn sample(&mut self, session: usize) -> Result<()> {
        // After a change of the flags the next round has another time.
        let Some(found) = self.etw.sessions.get_mut(session) else {
            return Ok(());
        };
        if !found.is_running() || found.next_sample != Some(self.now) {
            return Ok(());
        }
        let interval = found.sample_interval;
        let next = self.now.saturating_add(interval);
        found.next_sample = Some(next);
        for processor in 1..self.machine.processors.len() {
            let at = self.now.saturating_add(offset(processor, interval));
            self.plan(at, Task::SampleOn(session, processor));
        }
        self.plan(next, Task::Sample(session));
        self.take_sample(session, 0)
    }

    /// A processor other than the first one is sampled, if its round still counts.
    pub(super) fn sample_on(&mut self, session: usize, processor: usize) -> Result<()> {
        let Some(found) = self.etw.sessions.get(session) else {
            return Ok(());
        };
        let interval = found.sample_interval;
        let round = self.now.saturating_sub(offset(processor, interval));
        if !found.is_running() || found.next_sample != Some(round.saturating_add(interval)) {
            return Ok(());
        }
        self.take_sample(session, processor)
    }

    /// What the next sample of an idle processor finds. Interrupts are as far apart as possible.
    fn next_idle_code(&mut self) -> IdleCode {
        let percent = u64::from(self.scenario.machine.interrupts);
        let before = self.idle_samples.saturating_mul(percent) / 100;
        self.idle_samples += 1;
        let interrupts = self.idle_samples.saturating_mul(percent) / 100;
        if interrupts == before {
            return IdleCode {
                address: IDLE,
                flags: IDLE_FLAGS,
            };
        }
        if interrupts.is_multiple_of(PER_ISR) {
            return IdleCode {
                address: ISR,
                flags: ISR_FLAGS,
            };
        }
        IdleCode {
            address: DPC,
            flags: DPC_FLAGS,
        }
    }

    fn take_sample(&mut self, session: usize, processor: usize) -> Result<()> {
        // An operation is not interrupted: the sample waits for its end.
        let at = self.now.max(self.machine.horizon(processor));
        self.settle(processor, at)?;
        let current = self
            .machine
            .processors
            .get(processor)
            .and_then(|p| p.current());
        let Some(thread) = current else {
            let origin = self.origin_on(processor, None, at);
            let IdleCode { address, flags } = self.next_idle_code();
            let address = kernel::address(origin.pointer_size, address);
            self.etw.log_sample(session, address, flags, &origin)?;
            self.machine.advance(processor, at);
            return Ok(());
        };
        let Some(found) = self.machine.threads.get(thread) else {
            return Ok(());
        };
        let process = self.machine.processes.get(found.process);
        let Some(process) = process.filter(|p| p.is_alive()) else {
            return Ok(());
        };
        let mut rng = found.stack_rng(at);
        let frames = thread_stack(&self.clrs, process, at, &mut rng).frames;
        let origin = self.origin(thread, at);
        let origin = Origin {
            processor: u16::try_from(processor).unwrap_or(0),
            ..origin
        };
        if let Some(&address) = frames.first() {
            self.etw.log_sample(session, address, FLAGS, &origin)?;
            self.etw
                .log_stack_in(session, KernelEvent::Sample, &frames, &origin)?;
        }
        self.machine.advance(processor, at);
        Ok(())
    }
}
