//! What a caller chooses.

/// How a stream is read.
///
/// ```
/// use etl_nettrace::{Mode, Options, Order, Reader};
/// # mod write { include!(concat!(env!("CARGO_MANIFEST_DIR"), "/examples/common/write.rs")); }
/// # let sample = write::sample();
///
/// let strict = Options { mode: Mode::Strict, order: Order::Time, ..Options::default() };
/// let mut reader = Reader::with_options(&sample[..sample.len() - 1], &strict)?;
/// while let Ok(Some(event)) = reader.next_event() {
///     assert_eq!(event.provider(), "Contoso-Web");
/// }
/// assert_eq!(reader.next_event().unwrap_err().code(), "truncated");
/// # Ok::<(), etl_nettrace::Error>(())
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Options {
    /// The order of the events.
    pub order: Order,
    /// What a reader does at a fault.
    pub mode: Mode,
    /// Bounds on its memory.
    pub limits: Limits,
}

/// The order of the events of a reader.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Order {
    /// As they are in the stream. The events of one thread are in time order, except for samples.
    #[default]
    File,
    /// By time, between each two sequence points; events of the same time as they are in the
    /// stream. A writer puts no event after a sequence point that is earlier, so this is the order
    /// of the whole stream.
    ///
    /// Events are held until an [`Event::is_barrier`](crate::Event::is_barrier) or a sequence
    /// point, or until they take [`Limits::sorting`] bytes. Then the earliest are returned first.
    /// [`Reader::late_events`](crate::Reader::late_events) counts the events that are returned
    /// after a later one.
    Time,
}

/// What a reader does at a fault.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Mode {
    /// Skip what is damaged, and keep a list of it ([`Reader::damage`](crate::Reader::damage)). A
    /// stream that is cut ends there, without an error.
    #[default]
    Salvage,
    /// Return the first fault as an error. All events before it in the stream have been returned
    /// then, if the order is [`Order::File`].
    Strict,
}

/// Bounds on the memory of a reader.
///
/// ```
/// use etl_nettrace::{Limits, Options, Reader};
/// # mod write { include!(concat!(env!("CARGO_MANIFEST_DIR"), "/examples/common/write.rs")); }
/// # let sample = write::sample();
///
/// let limits = Limits { block: 16, ..Limits::default() };
/// let options = Options { limits, ..Options::default() };
/// let mut reader = Reader::with_options(sample.as_slice(), &options)?;
/// assert_eq!(reader.next_event().unwrap_err().code(), "limit");
/// # Ok::<(), etl_nettrace::Error>(())
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// The largest block, in bytes. A block that states more is an error. The runtimes write
    /// 100 KiB; version 6 allows 16 MiB.
    pub block: u64,
    /// Memory for metadata, stacks, threads and labels, in bytes. More is an error.
    pub tables: u64,
    /// Memory for the events that [`Order::Time`] holds, with their blocks, in bytes. If they take
    /// more, events are returned before they are known to be the earliest.
    pub sorting: u64,
}

impl Default for Limits {
    /// 64 MiB a block, 256 MiB for tables, 256 MiB for sorting.
    fn default() -> Self {
        Limits {
            block: 64 << 20,
            tables: 256 << 20,
            sorting: 256 << 20,
        }
    }
}
