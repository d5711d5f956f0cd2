//! Steps: the parts of records that the machine needs.
//!
//! [`Scan`](crate::scan::Scan) finds the step of each record, and the machine is changed by it: on
//! the same thread, or on a second one. The step of most records is a few words, so that little
//! goes from one thread to the other. The other records go as they are.

use etl_format::constants::PointerSize;
use etl_format::read::{Record, RecordBatch};
use etl_format::{ProcessId, ThreadId, Ticks};
use etl_schema::views::clr::ClrProvider;

/// What the machine needs of a record.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Step<'r> {
    /// A few words.
    Words(Words),
    /// An event of the CLR, with its payload.
    ClrEvent(ClrHead, &'r [u8]),
    /// All of it.
    Record(&'r Record<'r>),
}

/// A step that is a few words.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Words {
    /// A sample of what a processor was doing: the instruction pointer, and the thread that was
    /// running.
    Sample { address: u64, tid: ThreadId },
    /// A thread belongs to a process.
    Thread { pid: ProcessId, tid: ThreadId },
    /// An event of the CLR whose fields the machine does not need.
    ClrEvent(PlainClrEvent),
}

/// An event of the CLR whose fields the machine does not need.
#[derive(Clone, Copy, Debug)]
pub(crate) struct PlainClrEvent {
    pub head: ClrHead,
    /// Whether its payload is too short for its event.
    pub is_short: bool,
    /// Whether it is a map from IL to native code.
    pub is_il_map: bool,
}

/// The header of an event of the CLR, as far as the machine needs it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct ClrHead {
    pub pid: ProcessId,
    pub tid: ThreadId,
    /// Whether the process of the thread is known already.
    pub known: bool,
    pub id: u16,
    pub version: u8,
    pub provider: ClrProvider,
    /// Whether pointers have eight bytes.
    pub wide: bool,
}

impl ClrHead {
    /// Width of pointers.
    pub fn pointers(self) -> PointerSize {
        if self.wide {
            PointerSize::P8
        } else {
            PointerSize::P4
        }
    }
}

/// Receives steps with their times. A trait, not a closure: its method can be inlined everywhere,
/// so that no step is put together only to be taken apart.
pub(crate) trait StepSink {
    fn step(self, step: Step<'_>, time: Ticks);
}

/// A step without what it borrows.
#[derive(Clone, Copy, Debug)]
enum OwnedStep {
    Words(Words),
    /// The length of the payload.
    ClrEvent(ClrHead, u32),
    Record,
}

/// Steps for another thread.
#[derive(Debug, Default)]
pub(crate) struct StepBatch {
    steps: Vec<(Ticks, OwnedStep)>,
    /// Payloads, one after the other.
    payloads: Vec<u8>,
    records: RecordBatch,
}

impl StepSink for &mut StepBatch {
    #[inline]
    fn step(self, step: Step<'_>, time: Ticks) {
        let step = match step {
            Step::Words(words) => OwnedStep::Words(words),
            Step::ClrEvent(head, payload) => {
                self.payloads.extend_from_slice(payload);
                // It is a part of a record, whose length has 16 bits.
                OwnedStep::ClrEvent(head, payload.len() as u32)
            }
            Step::Record(record) => {
                self.records.push(record);
                OwnedStep::Record
            }
        };
        self.steps.push((time, step));
    }
}

impl StepBatch {
    /// How much memory the steps take, roughly.
    #[inline]
    pub fn bytes(&self) -> usize {
        size_of::<(Ticks, OwnedStep)>() * self.steps.len()
            + self.payloads.len()
            + self.records.bytes()
    }

    /// Passes all steps to `apply`, with their times. The batch is empty then and keeps its memory.
    #[inline]
    pub fn drain(&mut self, apply: impl FnMut(Step<'_>, Ticks)) {
        self.for_each(apply);
        self.steps.clear();
        self.payloads.clear();
        self.records.clear();
    }

    #[inline]
    fn for_each(&self, mut apply: impl FnMut(Step<'_>, Ticks)) {
        let mut payloads = self.payloads.as_slice();
        let mut records = self.records.records();
        for &(time, step) in &self.steps {
            match step {
                OwnedStep::Words(words) => apply(Step::Words(words), time),
                OwnedStep::ClrEvent(head, len) => {
                    let payload = payloads.get(..len as usize).unwrap_or_default();
                    payloads = payloads.get(len as usize..).unwrap_or_default();
                    apply(Step::ClrEvent(head, payload), time);
                }
                OwnedStep::Record => {
                    if let Some(record) = records.next() {
                        apply(Step::Record(&record), time);
                    }
                }
            }
        }
    }
}
