//! What the machine shows while it reads records: its changes, and the events of the CLR.

use etl_format::constants::PointerSize;
use etl_format::{ThreadId, Ticks};

use crate::keys::ProcessIndex;
use crate::steps::ClrHead;

/// A change of the machine.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Change {
    /// A process began, ended, or was listed.
    Process {
        /// What happened to it.
        life: Life,
        /// The process.
        process: ProcessIndex,
    },
    /// A thread began, ended, or was listed.
    Thread {
        /// What happened to it.
        life: Life,
        /// Its id.
        tid: ThreadId,
    },
    /// An image was loaded, unloaded, or listed.
    Image {
        /// What happened to it.
        life: Life,
        /// The process that has it.
        process: ProcessIndex,
        /// Its index in [`Machine::images`](crate::Machine::images).
        image: u64,
    },
    /// Code of a method came or went.
    Code {
        /// The process.
        process: ProcessIndex,
        /// First address.
        start: u64,
        /// Bytes.
        size: u32,
    },
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

/// Sees the events of the CLR with their processes, in time order; see
/// [`Analysis::run_split`](crate::Analysis::run_split). Every method does nothing by default.
pub trait StateObserver {
    /// An event of one of the CLR's two providers.
    #[inline]
    fn clr_event(&mut self, event: &ClrEvent<'_>) {
        let _ = event;
    }

    /// The kernel logged a stack of an event. Both times are ticks of the file's own clock.
    #[inline]
    fn kernel_stack(&mut self, event_time: Ticks, logged: Ticks) {
        let _ = (event_time, logged);
    }

    /// A thread began or ended: its id may be another thread's from now on.
    #[inline]
    fn thread_changed(&mut self, tid: ThreadId) {
        let _ = tid;
    }

    /// Records came out of order: the traces are read again from their start.
    fn restart(&mut self) {}
}

impl StateObserver for () {}

/// An event of one of the CLR's two providers, as a [`StateObserver`] sees it.
#[derive(Clone, Copy, Debug)]
pub struct ClrEvent<'a> {
    /// The process; `None` if the payload is too short for its event.
    pub process: Option<ProcessIndex>,
    /// The thread.
    pub tid: ThreadId,
    /// Whether it is an event of the rundown provider.
    pub rundown: bool,
    /// Id of the event.
    pub id: u16,
    /// Version of the event.
    pub version: u8,
    /// Ticks of the recording's clock.
    pub time: Ticks,
    /// How many frames a stack event states, and how many it has; `None` for other events.
    pub stack: Option<(u32, usize)>,
    /// Whether the events of its provider began just before.
    pub begun: bool,
    /// The payload, if it was decoded and no extended data may change its layout.
    pub payload: Option<&'a [u8]>,
    /// Width of pointers.
    pub pointers: PointerSize,
    /// Whether the payload ends with the last field of the event.
    pub exact: bool,
}

impl ClrEvent<'_> {
    /// An event with what its header states; nothing else is known yet.
    #[inline]
    pub(crate) fn new(head: ClrHead, time: Ticks) -> Self {
        let ClrHead {
            tid,
            provider,
            id,
            version,
            ..
        } = head;
        ClrEvent {
            process: None,
            tid,
            rundown: provider.is_rundown(),
            id,
            version,
            time,
            stack: None,
            begun: false,
            payload: None,
            pointers: head.pointers(),
            exact: false,
        }
    }
}
