//! What the users of an analysis see while it runs.

use etl_format::Guid;
use etl_format::constants::PointerSize;
use etl_format::read::{EventHeader, Record};

use crate::machine::Machine;

/// Sees a recording in time order, with the machine as it is then. Every method does nothing by
/// default.
///
/// Samples and stacks come once they are complete, so later than the events they belong to, and in
/// the order of these events. The machine is ahead of them by then: what it knows of the past, such
/// as the process of a thread, is part of what they bring along.
pub trait Observer {
    /// A record. The machine has taken it in.
    fn record(&mut self, machine: &Machine, record: &Record<'_>, event: &EventRef) {
        let _ = (machine, record, event);
    }

    /// The record that was just shown changed the machine.
    fn change(&mut self, machine: &Machine, change: &Change, event: &EventRef) {
        let _ = (machine, change, event);
    }

    /// A sample of what a processor was doing, with its stack where there is one.
    fn sample(&mut self, machine: &Machine, sample: &Sample<'_>) {
        let _ = (machine, sample);
    }

    /// The stack of an event that is no sample.
    fn stack(&mut self, machine: &Machine, stack: &Stack<'_>) {
        let _ = (machine, stack);
    }

    /// Records came out of order: the recording is read again from its start.
    fn restart(&mut self) {}
}

impl Observer for () {}

/// An event of a recording.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct EventRef {
    /// Which record of the recording, from 0, in time order.
    pub number: u64,
    /// Index of its file.
    pub file: usize,
    /// Time in ticks of the recording's clock.
    pub time: i64,
    /// What kind of event it is.
    pub kind: EventKind,
    /// Index of its process in the machine; for a sample, of the process that was running.
    pub process: Option<usize>,
    /// Its thread; for a sample, the thread that was running.
    pub tid: Option<u32>,
    /// The processor that logged it.
    pub processor: u16,
}

/// What kind of event a record is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[non_exhaustive]
pub enum EventKind {
    /// An event of the kernel.
    Kernel {
        /// Group and type.
        hook: u16,
    },
    /// An event of a manifest, or a TraceLogging event.
    Event {
        /// The provider.
        provider: Guid,
        /// Its id.
        id: u16,
    },
    /// A classic event.
    Classic {
        /// Its class.
        class: Guid,
        /// Its opcode.
        opcode: u8,
    },
    /// Anything else.
    Other,
}

/// A change of the machine.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Change {
    /// A process, by its index in the machine.
    Process(Life, usize),
    /// A thread, by its id.
    Thread(Life, u32),
    /// An image in a process: the indices of both in the machine.
    Image(Life, usize, u64),
}

/// What happened to a process, a thread or an image.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Life {
    /// It began at this time.
    Begun,
    /// It ended at this time.
    Ended,
    /// The start or the end of a session lists it.
    Listed,
}

/// A sample of what a processor was doing.
#[derive(Clone, Copy, Debug)]
#[non_exhaustive]
pub struct Sample<'a> {
    /// The event, with the thread that was running, and its process.
    pub event: EventRef,
    /// The instruction pointer.
    pub address: u64,
    /// The stack; empty where none was recorded.
    pub frames: Frames<'a>,
}

/// The stack of an event.
#[derive(Clone, Copy, Debug)]
#[non_exhaustive]
pub struct Stack<'a> {
    /// The event that it was taken at.
    pub event: EventRef,
    /// Its addresses.
    pub frames: Frames<'a>,
}

/// The addresses of a stack.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Frames<'a> {
    /// In the kernel, innermost first.
    pub kernel: &'a [u64],
    /// In the process, innermost first.
    pub user: &'a [u64],
    /// Whether a part is missing: it is named by a key that is not defined, or did not come before
    /// the limits of what is held were reached.
    pub is_partial: bool,
}

impl<'a> Frames<'a> {
    /// All addresses, innermost first.
    pub fn iter(&self) -> impl DoubleEndedIterator<Item = u64> + use<'a> {
        self.kernel.iter().chain(self.user).copied()
    }

    /// Whether there is none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.kernel.is_empty() && self.user.is_empty()
    }
}

/// Sees every record before the machine takes it in; see
/// [`Analysis::run_split`](crate::Analysis::run_split).
///
/// With several threads this runs on the one that reads, ahead of the machine: so it has no state
/// of the machine at hand. Every method does nothing by default.
pub trait RecordObserver {
    /// An event of a manifest provider.
    #[inline]
    fn event(&mut self, record: &Record<'_>, header: &EventHeader, time: i64) {
        let _ = (record, header, time);
    }

    /// Any other record.
    #[inline]
    fn other(&mut self, record: &Record<'_>, time: i64) {
        let _ = (record, time);
    }

    /// Records came out of order: the traces are read again from their start.
    fn restart(&mut self) {}
}

impl RecordObserver for () {}

/// Sees the events of the CLR with their processes, in time order; see
/// [`Analysis::run_split`](crate::Analysis::run_split). Every method does nothing by default.
pub trait StateObserver {
    /// An event of one of the CLR's two providers.
    #[inline]
    fn clr_event(&mut self, event: &ClrSeen<'_>) {
        let _ = event;
    }

    /// The kernel logged a stack of an event. Both times are ticks of the file's own clock.
    #[inline]
    fn kernel_stack(&mut self, event_time: i64, logged: i64) {
        let _ = (event_time, logged);
    }

    /// A thread began or ended: its id may be another thread's from now on.
    #[inline]
    fn thread_changed(&mut self, tid: u32) {
        let _ = tid;
    }

    /// Records came out of order: the traces are read again from their start.
    fn restart(&mut self) {}
}

impl StateObserver for () {}

/// An event of one of the CLR's two providers, as a [`StateObserver`] sees it.
#[derive(Clone, Copy, Debug)]
pub struct ClrSeen<'a> {
    /// Index of the process; `None` where the payload is too short for its event.
    pub process: Option<usize>,
    /// The thread.
    pub tid: u32,
    /// Whether it is the rundown provider's.
    pub rundown: bool,
    /// Id of the event.
    pub id: u16,
    /// Version of the event.
    pub version: u8,
    /// Ticks of the recording's clock.
    pub time: i64,
    /// The frames that a stack event states and those that it holds; `None` for other events.
    pub stack: Option<(u32, usize)>,
    /// Whether the events of its provider began just before.
    pub begun: bool,
    /// The payload, where it was decoded and no extended data may change its layout.
    pub payload: Option<&'a [u8]>,
    /// Width of pointers.
    pub pointers: PointerSize,
    /// Whether decoding found that the payload ends where the event's fields do.
    pub exact: bool,
}
