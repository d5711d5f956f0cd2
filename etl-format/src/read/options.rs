//! How a trace is read: faults, order, limits, threads.

use super::damage::Mode;
use super::limits::Limits;

/// The order in which records are read.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Order {
    /// By timestamp, over all processors.
    #[default]
    Time,
    /// The order of the file: buffer after buffer.
    File,
}

/// How far a reader looks ahead for [`Order::Time`].
///
/// ```
/// use etl_format::read::{Options, Order, OrderCheck, Trace};
/// # use etl_format::FileHeader;
/// # use etl_format::write::Session;
/// # let bytes = Session::in_memory(FileHeader::new())?.finish()?;
///
/// let options = Options { order_check: OrderCheck::Scan, ..Options::default() };
/// let mut trace = Trace::open(bytes.as_slice(), &options)?;
/// let mut records = trace.records(Order::Time)?;
/// while records.next_record()?.is_some() {}
/// assert_eq!(records.report().late, 0);
/// # Ok::<(), etl_format::Error>(())
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum OrderCheck {
    /// Open one buffer of each processor ahead of the one that is read. This takes one pass. The
    /// order is exact unless a record is displaced by more than a whole buffer of its processor;
    /// such records are counted in [`super::OrderReport::late`].
    #[default]
    Lookahead,
    /// Scan every record before the first one is returned: exact on any input, with one buffer of
    /// each processor in memory. This costs a second pass, with decompression.
    Scan,
    /// Use the first record of each buffer only, with one buffer of each processor in memory: exact
    /// if buffers begin with their earliest record, as in all known real traces.
    FirstRecord,
}

/// How a trace is read.
///
/// ```
/// use etl_format::read::{Mode, Options, OrderCheck, Trace};
///
/// // A trace of unknown origin: damage is skipped, and the order is exact on any input.
/// let options = Options { order_check: OrderCheck::Scan, threads: 4, ..Options::salvage() };
/// assert_eq!(options.mode, Mode::Salvage);
/// assert!(Trace::open(&b"not a trace"[..], &options).is_err());
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Options {
    /// What happens at a fault.
    pub mode: Mode,
    /// How far the reader looks ahead for time order.
    pub order_check: OrderCheck,
    /// Bounds on memory.
    pub limits: Limits,
    /// Threads that decompress buffers, the caller's thread included; 0 means 1.
    /// [`OrderCheck::Scan`] and [`super::Records::for_each`] use them. The records do not depend on
    /// the number.
    pub threads: usize,
}

impl Options {
    /// [`Mode::Salvage`] with everything else at its default.
    #[must_use]
    pub fn salvage() -> Self {
        Options {
            mode: Mode::Salvage,
            ..Options::default()
        }
    }
}
