//! Reads traces: buffers, records, time order.
//!
//! ```
//! use etl_format::read::{Options, Order, Trace};
//!
//! # use etl_format::FileHeader;
//! # use etl_format::write::Session;
//! # let bytes = Session::in_memory(FileHeader::new())?.finish()?;
//! let mut trace = Trace::open(bytes.as_slice(), &Options::default())?;
//! let mut records = trace.records(Order::Time)?;
//! while let Some(record) = records.next_record()? {
//!     println!("{} {}", record.timestamp(), record.kind());
//! }
//! assert_eq!(records.count(), 1, "the header event");
//! # Ok::<(), etl_format::Error>(())
//! ```
//!
//! * [`Trace`] finds the buffers of a slice or a seekable file; [`Trace::records`] reads their
//!   records in time order or in the order of the file.
//! * [`Records::stream`] reads a pipe ([`PipeSource`]) in the order of the file. For time order a
//!   pipe is stored first ([`Spooled`]).
//! * [`Buffers`] reads whole buffers.
//! * [`Mode`] decides what happens at a fault: stop with an error, or continue and report the
//!   damage.
//! * A [`Record`] is a view; nothing is allocated for each record.

mod batch;
mod buffer;
mod buffers;
mod damage;
mod extended;
mod header;
mod index;
mod kinds;
mod limits;
mod loaded;
mod opening;
mod options;
mod parts;
mod record;
mod records;
mod repair;
mod resync;
mod scan;
mod sequence;
mod source;
mod stale;
mod tally;
mod trace;
mod walk;

pub use batch::RecordBatch;
pub use buffers::Buffers;
pub(crate) use buffers::Stored;
pub use damage::{Damage, Mode, Note, Weight};
pub use extended::{ExtendedItem, ExtendedItems, RawItem, StackTrace};
pub use index::BufferEntry;
pub use kinds::{
    EventHeader, FullHeader, Header, InstanceHeader, MessageHeader, PerfInfoHeader, SystemHeader,
};
pub use limits::{Budget, Limits};
pub use options::{Options, Order, OrderCheck};
pub use parts::{Part, PartGap};
pub use record::{Identity, Record, RecordInfo, RecordLocation};
pub use records::{OrderReport, Records};
pub use source::{FileSource, PipeSource, Reused, Source, Spooled};
pub use trace::Trace;
pub(crate) use walk::timestamp_offset;
