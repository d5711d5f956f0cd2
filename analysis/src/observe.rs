//! What the users of an analysis are shown while it runs.

use etl_format::constants::PointerSize;
use etl_format::read::{EventHeader, Record};

/// Is shown every record, before the machine takes it in.
///
/// With several threads this runs on the one that reads, ahead of the machine: so it has no state of
/// the machine at hand. Every method does nothing by default.
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

/// Is shown what happens in the machine, in time order. Every method does nothing by default.
pub trait Observer {
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

impl Observer for () {}

/// An event of one of the CLR's two providers, as an [`Observer`] sees it.
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
