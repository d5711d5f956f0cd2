//! The read half: bytes to buffers to records to time order.
//!
//! ```
//! use etl_format::read::{Options, Trace};
//!
//! # fn main() -> etl_format::Result<()> {
//! # let file: &[u8] = &[];
//! # if file.is_empty() { return Ok(()); }
//! let mut trace = Trace::open(file, &Options::default())?;
//! let clock = trace.clock();
//! let mut records = trace.ordered()?;
//! while let Some(record) = records.next_record()? {
//!     println!("{} {}", clock.filetime(record.timestamp()), record.kind());
//! }
//! # Ok(())
//! # }
//! ```
//!
//! * [`Trace`] finds the buffers of a slice or a seekable file and reads records in time order
//!   ([`Trace::ordered`]) or file order ([`Trace::file_order`]).
//! * [`FileOrder`] alone needs no more than a pipe ([`PipeSource`]). For time order a pipe is taken
//!   in whole first ([`Spooled`]).
//! * [`Mode`] decides what happens at a fault: stop with an error, or go on and keep a map of the
//!   damage.
//! * A [`Record`] is a view; nothing is allocated per record.

mod ahead;
mod batch;
mod buffer;
mod damage;
mod extended;
mod file_order;
mod header;
mod header_group;
mod index;
mod kinds;
mod limits;
mod loaded;
mod opening;
mod ordered;
mod record;
mod repair;
mod scan;
mod source;
mod stored;
mod tally;
mod trace;
mod walk;

pub use ahead::Helper;
pub use batch::Batch;
pub use buffer::BufferHeader;
pub use damage::{Damage, Mode, Note};
pub use extended::{ExtendedItem, ExtendedItems, StackTrace};
pub use file_order::FileOrder;
pub use header::{Dialect, FileHeader, TimeZone};
pub use header_group::{GroupMasks, HeaderGroupEvent};
pub use index::BufferEntry;
pub use kinds::{
    EventDescriptor, EventHeader, FullHeader, Header, InstanceHeader, MessageHeader,
    PerfInfoHeader, SystemHeader,
};
pub use limits::Limits;
pub use ordered::{OrderCheck, OrderReport, Ordered};
pub use record::{Identity, Record, RecordLocation};
pub use source::{FileSource, PipeSource, Reused, Source, Spooled};
pub(crate) use stored::Stored;
pub use trace::{Options, Trace};
pub(crate) use walk::timestamp_place;
