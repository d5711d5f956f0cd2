//! EVENT: manifest, TraceLogging and EventSource events (`EVENT_HEADER`).

use crate::constants::offset::event;
use crate::constants::{EventFlags, EventProperties};
use crate::cursor::Bytes;
use crate::headers::EventDescriptor;
use crate::{Guid, ProcessId, ThreadId, Ticks};

/// Header of an EVENT record (0x50 bytes).
///
/// ```
/// use etl_format::{EventDescriptor, FileHeader, Guid};
/// use etl_format::read::{Options, Order, Trace};
/// use etl_format::write::record::Event;
/// use etl_format::write::Session;
///
/// let mut session = Session::in_memory(FileHeader::new())?;
/// let descriptor = EventDescriptor { id: 7, level: 4, ..EventDescriptor::default() };
/// let provider = Guid::new(1, 2, 3, [4; 8]);
/// let activity = Guid::new(5, 6, 7, [8; 8]);
/// session.write(0, &Event::new(provider, descriptor, 2_000).activity(activity))?;
/// let bytes = session.finish()?;
/// let mut trace = Trace::open(bytes.as_slice(), &Options::default())?;
/// let mut records = trace.records(Order::Time)?;
/// records.next_record()?; // The header event.
/// let header = records.next_record()?.and_then(|record| record.event());
/// assert_eq!(header.map(|header| header.activity), Some(activity));
/// # Ok::<(), etl_format::Error>(())
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct EventHeader {
    /// Flags as stored.
    pub flags: EventFlags,
    /// Properties as stored.
    pub properties: EventProperties,
    /// The thread that wrote the event.
    pub thread_id: ThreadId,
    /// The process that wrote the event.
    pub process_id: ProcessId,
    /// Raw timestamp.
    pub timestamp: Ticks,
    /// GUID of the provider.
    pub provider: Guid,
    /// Id, version, level, keywords and so on.
    pub descriptor: EventDescriptor,
    /// Kernel time in timer ticks, or the low half of the processor time of a private session.
    pub kernel_time: u32,
    /// User time in timer ticks, or the high half of the processor time.
    pub user_time: u32,
    /// The activity of the event; zero if it has none.
    pub activity: Guid,
}

impl EventHeader {
    /// Bytes of the header.
    pub const SIZE: usize = 0x50;

    #[inline]
    pub(crate) fn parse(b: &[u8]) -> Option<Self> {
        let b: &[u8; Self::SIZE] = b.first_chunk()?;
        let b = b.as_slice();
        Some(EventHeader {
            flags: EventFlags(b.u16_at(event::FLAGS)?),
            properties: EventProperties(b.u16_at(event::PROPERTIES)?),
            thread_id: b.u32_at(event::THREAD).map(ThreadId::new)?,
            process_id: b.u32_at(event::PROCESS).map(ProcessId::new)?,
            timestamp: b.i64_at(event::TIMESTAMP).map(Ticks::new)?,
            provider: b.guid_at(event::PROVIDER)?,
            descriptor: descriptor(b)?,
            kernel_time: b.u32_at(event::KERNEL_TIME)?,
            user_time: b.u32_at(event::USER_TIME)?,
            activity: b.guid_at(event::ACTIVITY)?,
        })
    }

    /// Whether the payload has the layout of the provider's manifest: the record is not a string
    /// and has no extended items, which could contain another schema.
    #[inline]
    #[must_use]
    pub fn has_manifest_layout(&self) -> bool {
        !self.flags.has(EventFlags::EXTENDED_INFO) && !self.flags.has(EventFlags::STRING_ONLY)
    }
}

#[inline]
pub(crate) fn descriptor(record: &[u8]) -> Option<EventDescriptor> {
    Some(EventDescriptor {
        id: record.u16_at(event::ID)?,
        version: record.u8_at(event::VERSION)?,
        channel: record.u8_at(event::CHANNEL)?,
        level: record.u8_at(event::LEVEL)?,
        opcode: record.u8_at(event::OPCODE)?,
        task: record.u16_at(event::TASK)?,
        keyword: record.u64_at(event::KEYWORD)?,
    })
}
