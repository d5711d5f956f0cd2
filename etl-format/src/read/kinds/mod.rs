//! Decoders of record headers, one file per layout.

mod event;
mod full;
mod message;
mod perfinfo;
mod system;

pub use event::EventHeader;
pub(crate) use event::descriptor;
pub use full::{FullHeader, InstanceHeader};
pub use message::MessageHeader;
pub use perfinfo::PerfInfoHeader;
pub(crate) use perfinfo::payload_offset as perfinfo_payload_offset;
pub use system::SystemHeader;

/// The decoded header of a record.
///
/// ```
/// use etl_format::constants::hook;
/// use etl_format::read::{Header, Options, Order, Trace};
/// use etl_format::write::record::PerfInfo;
/// use etl_format::FileHeader;
/// use etl_format::write::Session;
///
/// let mut session = Session::in_memory(FileHeader::new())?;
/// session.write(0, &PerfInfo::new(hook::SAMPLE, 2_000).counters(&[100, 200]))?;
/// let bytes = session.finish()?;
/// let mut trace = Trace::open(bytes.as_slice(), &Options::default())?;
/// let mut records = trace.records(Order::Time)?;
/// let mut sums = Vec::new();
/// while let Some(record) = records.next_record()? {
///     if let Header::PerfInfo(header) = record.header() {
///         sums.push(header.counters().sum::<u64>());
///     }
/// }
/// assert_eq!(sums, [300]);
/// # Ok::<(), etl_format::Error>(())
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Header<'a> {
    /// SYSTEM and COMPACT records.
    System(SystemHeader),
    /// PERFINFO records.
    PerfInfo(PerfInfoHeader<'a>),
    /// FULL records.
    Full(FullHeader),
    /// INSTANCE records.
    Instance(InstanceHeader),
    /// WPP messages.
    Message(MessageHeader),
    /// EVENT records.
    Event(EventHeader),
    /// TIMED, ERROR, WNODE and unknown kinds, of which only the size is known.
    Opaque,
}
