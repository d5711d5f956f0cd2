//! One record as a borrowed view: its header decoded on demand, its payload a slice.

use core::ops::Range;

use crate::constants::{self, EventFlags, PointerSize, RecordKind, offset};
use crate::cursor::Bytes;
use crate::headers::EventDescriptor;
use crate::{Guid, ProcessId, ThreadId, Ticks};

use super::extended::ExtendedItems;
use super::kinds::{
    EventHeader, FullHeader, Header, InstanceHeader, MessageHeader, PerfInfoHeader, SystemHeader,
};
use super::resync::{ChainEnd, Search};
use super::walk::Found;

/// The position of a record in a trace.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct RecordLocation {
    /// File offset of its buffer.
    pub buffer_offset: u64,
    /// Sequence number of its buffer.
    pub sequence_number: i64,
    /// Processor of its buffer.
    pub processor: u16,
    /// Offset from the start of the (decompressed) buffer.
    pub in_buffer: u32,
}

/// A record of a trace, borrowed from the buffer that holds it.
///
/// It is cheap to copy, and decodes its header on demand.
///
/// ```
/// use etl_format::{EventDescriptor, FileHeader, Guid, ProcessId, Ticks};
/// use etl_format::read::{Options, Order, Trace};
/// use etl_format::write::record::Event;
/// use etl_format::write::Session;
///
/// let mut session = Session::in_memory(FileHeader::new())?;
/// let descriptor = EventDescriptor { id: 7, level: 4, ..EventDescriptor::default() };
/// let provider = Guid::new(1, 2, 3, [4; 8]);
/// session.write(0, &Event::new(provider, descriptor, 2_000).process(4, 8).payload(b"text"))?;
/// let bytes = session.finish()?;
/// let mut trace = Trace::open(bytes.as_slice(), &Options::default())?;
/// let mut records = trace.records(Order::Time)?;
/// records.next_record()?; // The header event.
/// if let Some(record) = records.next_record()? {
///     assert_eq!(record.provider(), Some(provider));
///     assert_eq!(record.process_id(), Some(ProcessId::new(4)));
///     assert_eq!(record.timestamp(), Ticks::new(2_000));
///     assert_eq!((record.identity().id, record.payload()), (7, &b"text"[..]));
/// }
/// # Ok::<(), etl_format::Error>(())
/// ```
#[derive(Clone, Copy, Debug)]
pub struct Record<'a> {
    bytes: &'a [u8],
    info: RecordInfo,
}

/// The properties of a record that are not in its bytes. A program that keeps the bytes needs them
/// to make the record again ([`Record::with_info`]).
#[derive(Clone, Copy, Debug)]
pub struct RecordInfo {
    pub(super) kind: RecordKind,
    pub(super) has_own_timestamp: bool,
    pub(super) is_stale: bool,
    pub(super) timestamp: i64,
    pub(super) location: RecordLocation,
}

/// The key by which records are counted as the same kind of event.
///
/// Fields that a record's kind does not have are 0; `hook` is `None` outside the kernel's format.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Identity {
    /// Provider, class, or the GUID of the kernel group; zero if the record has none.
    pub provider: Guid,
    /// Group and type of a kernel event.
    pub hook: Option<u16>,
    /// Event id, or the number of a WPP message.
    pub id: u16,
    /// Version of the payload.
    pub version: u16,
    /// Opcode, or the type of a kernel or classic event.
    pub opcode: u8,
    /// Task of an EVENT record.
    pub task: u16,
    /// Level of an EVENT record or a classic event.
    pub level: u8,
    /// Keywords of an EVENT record, one bit each.
    pub keyword: u64,
}

impl<'a> Record<'a> {
    /// The record that was `found` in `data`.
    #[inline(always)]
    pub(crate) fn new(
        data: &'a [u8],
        found: Found,
        timestamp: i64,
        location: RecordLocation,
    ) -> Self {
        let offset = found.offset as usize;
        let info = RecordInfo {
            kind: found.kind,
            has_own_timestamp: found.timestamp.is_some(),
            is_stale: false,
            timestamp,
            location,
        };
        Record {
            bytes: data
                .get(offset..offset + found.len as usize)
                .unwrap_or_default(),
            info,
        }
    }

    /// The same record with or without the mark of [`Record::is_stale`].
    #[inline(always)]
    pub(crate) fn with_stale(self, is_stale: bool) -> Self {
        Record {
            info: RecordInfo {
                is_stale,
                ..self.info
            },
            ..self
        }
    }

    /// The properties of the record that are not in its bytes.
    #[must_use]
    #[inline]
    pub fn info(&self) -> RecordInfo {
        self.info
    }

    /// A record from its bytes and its [`Record::info`]. With the bytes of another record, the
    /// methods return arbitrary values, but do not panic.
    #[must_use]
    #[inline]
    pub fn with_info(bytes: &'a [u8], info: RecordInfo) -> Self {
        Record { bytes, info }
    }

    /// The whole record: header, extended items and payload, without alignment padding.
    #[must_use]
    #[inline]
    pub fn bytes(&self) -> &'a [u8] {
        self.bytes
    }

    /// The kind, which determines the layout of the header.
    #[must_use]
    #[inline]
    pub fn kind(&self) -> RecordKind {
        self.info.kind
    }

    /// The raw timestamp. A record without its own timestamp has the timestamp of the previous
    /// record in its buffer.
    #[must_use]
    #[inline]
    pub fn timestamp(&self) -> Ticks {
        Ticks::new(self.info.timestamp)
    }

    /// The bytes of the record with its size.
    #[must_use]
    pub fn size_range(&self) -> Range<usize> {
        let offset = super::walk::size_offset(self.kind());
        offset..offset + 2
    }

    /// The bytes of the record with its own timestamp.
    #[must_use]
    pub fn timestamp_range(&self) -> Option<Range<usize>> {
        let offset = super::walk::timestamp_offset(self.kind(), self.bytes)?;
        Some(offset..offset + 8)
    }

    /// Whether the timestamp is the record's own.
    #[must_use]
    #[inline]
    pub fn has_own_timestamp(&self) -> bool {
        self.info.has_own_timestamp
    }

    /// Whether a merge left the record in the memory of the first buffer: it is after the end that
    /// the buffer states (`SavedOffset`), and another buffer contains it again, byte for byte.
    ///
    /// Readers of a [`super::Trace`] mark such records; a reader of a stream cannot look ahead, and
    /// marks none.
    #[must_use]
    #[inline]
    pub fn is_stale(&self) -> bool {
        self.info.is_stale
    }

    /// The position of the record in the trace.
    #[must_use]
    #[inline]
    pub fn location(&self) -> RecordLocation {
        self.info.location
    }

    /// The processor on which the record was written.
    #[must_use]
    #[inline]
    pub fn processor(&self) -> u16 {
        self.info.location.processor
    }

    /// Width of pointers in the payload, if the record states it.
    #[must_use]
    pub fn pointer_size(&self) -> Option<PointerSize> {
        match self.kind() {
            RecordKind::MESSAGE => MessageHeader::parse(self.bytes)?.pointer_size(),
            kind => kind.pointer_size(),
        }
    }

    /// The decoded header.
    #[must_use]
    pub fn header(&self) -> Header<'a> {
        let b = self.bytes;
        let header = match self.kind() {
            RecordKind::SYSTEM32 | RecordKind::SYSTEM64 => {
                SystemHeader::parse(b).map(Header::System)
            }
            RecordKind::COMPACT32 | RecordKind::COMPACT64 => {
                SystemHeader::parse_compact(b).map(Header::System)
            }
            RecordKind::PERFINFO32 | RecordKind::PERFINFO64 => {
                PerfInfoHeader::parse(b).map(Header::PerfInfo)
            }
            RecordKind::FULL32 | RecordKind::FULL64 => FullHeader::parse(b).map(Header::Full),
            RecordKind::INSTANCE32 | RecordKind::INSTANCE64 => {
                InstanceHeader::parse(b).map(Header::Instance)
            }
            RecordKind::MESSAGE => MessageHeader::parse(b).map(Header::Message),
            RecordKind::EVENT32 | RecordKind::EVENT64 => EventHeader::parse(b).map(Header::Event),
            _ => None,
        };
        // A record is never shorter than the header of its kind.
        header.unwrap_or(Header::Opaque)
    }

    /// The header of an EVENT record; `None` for other kinds.
    #[must_use]
    #[inline]
    pub fn event(&self) -> Option<EventHeader> {
        if self.is_event() {
            EventHeader::parse(self.bytes)
        } else {
            None
        }
    }

    /// Whether this is an EVENT record.
    #[must_use]
    #[inline]
    pub fn is_event(&self) -> bool {
        matches!(self.kind(), RecordKind::EVENT32 | RecordKind::EVENT64)
    }

    /// Whether this is a record in the kernel's own format, with a hook.
    #[must_use]
    #[inline]
    pub fn is_kernel(&self) -> bool {
        self.kind().is_kernel()
    }

    /// The hook of a kernel event: group in the high byte, type in the low one.
    #[must_use]
    #[inline]
    pub fn hook(&self) -> Option<u16> {
        if self.is_kernel() {
            self.bytes.u16_at(offset::kernel::HOOK)
        } else {
            None
        }
    }

    /// The event descriptor of an EVENT record.
    #[must_use]
    #[inline]
    pub fn descriptor(&self) -> Option<EventDescriptor> {
        if self.is_event() {
            super::kinds::descriptor(self.bytes)
        } else {
            None
        }
    }

    /// Provider of an EVENT record, class of a classic event, GUID of a WPP message, or the GUID
    /// under which the classic presentation shows a kernel group.
    #[must_use]
    pub fn provider(&self) -> Option<Guid> {
        match self.kind() {
            RecordKind::EVENT32
            | RecordKind::EVENT64
            | RecordKind::FULL32
            | RecordKind::FULL64
            | RecordKind::INSTANCE32
            | RecordKind::INSTANCE64 => self.bytes.guid_at(offset::event::PROVIDER),
            RecordKind::MESSAGE => MessageHeader::parse(self.bytes)?.guid,
            _ => constants::hook_class(self.hook()?),
        }
    }

    /// The thread id in the header, if the header has one. In some classic events it is
    /// [`ThreadId::UNKNOWN`].
    #[must_use]
    #[inline]
    pub fn thread_id(&self) -> Option<ThreadId> {
        match self.kind() {
            RecordKind::MESSAGE => MessageHeader::parse(self.bytes)?.thread_id,
            _ => self.id_at(offset::event::THREAD).map(ThreadId::new),
        }
    }

    /// The process id in the header, if the header has one. In some classic events it is
    /// [`ProcessId::UNKNOWN`].
    #[must_use]
    #[inline]
    pub fn process_id(&self) -> Option<ProcessId> {
        match self.kind() {
            RecordKind::MESSAGE => MessageHeader::parse(self.bytes)?.process_id,
            _ => self.id_at(offset::event::PROCESS).map(ProcessId::new),
        }
    }

    /// The thread id in the header, if it is known.
    #[must_use]
    #[inline]
    pub fn known_thread_id(&self) -> Option<ThreadId> {
        self.thread_id().filter(|id| id.is_known())
    }

    /// The process id in the header, if it is known.
    #[must_use]
    #[inline]
    pub fn known_process_id(&self) -> Option<ProcessId> {
        self.process_id().filter(|id| id.is_known())
    }

    /// The id at this offset in the header of a kind that has ids.
    #[inline]
    fn id_at(&self, offset: usize) -> Option<u32> {
        if super::walk::has_thread(self.kind()) {
            self.bytes.u32_at(offset)
        } else {
            None
        }
    }

    /// The extended data items; empty unless this is an EVENT record whose flags announce items.
    #[must_use]
    #[inline]
    pub fn extended(&self) -> ExtendedItems<'a> {
        let flags = self.bytes.u16_at(offset::event::FLAGS).unwrap_or(0);
        let has_items = self.is_event() && EventFlags(flags).has(EventFlags::EXTENDED_INFO);
        ExtendedItems::new(self.bytes, EventHeader::SIZE, has_items)
    }

    /// Whether the bytes after the header contain records with times near its own, one after the
    /// other up to its end. Then its size is probably wrong, and hides them: no reader can know
    /// that if the size leads to the next record. A program can log such bytes, so this is a reason
    /// to report the record, not to read what it contains.
    ///
    /// Takes time in proportion to the size of the record.
    #[must_use]
    pub fn hides_records(&self) -> bool {
        let search = Search {
            data: self.bytes,
            fill: self.bytes.len(),
            tail: self.bytes.len(),
        };
        let record = 0..self.bytes.len();
        let hidden = search.hidden(record, self.timestamp().get(), ChainEnd::AtEnd);
        hidden.is_some()
    }

    /// The bytes after the header and the extended items.
    ///
    /// If the chain of extended items is broken, the payload begins after the last valid item.
    #[must_use]
    #[inline]
    pub fn payload(&self) -> &'a [u8] {
        let start = match self.kind() {
            RecordKind::EVENT32 | RecordKind::EVENT64 => {
                let mut items = self.extended();
                while items.next_raw().is_some() {}
                items.position()
            }
            RecordKind::PERFINFO32 | RecordKind::PERFINFO64 => {
                let version_word = self.bytes.u16_at(offset::kernel::VERSION).unwrap_or(0);
                super::kinds::perfinfo_payload_offset(version_word)
            }
            RecordKind::MESSAGE => match MessageHeader::parse(self.bytes) {
                Some(header) => header.payload_offset(),
                None => MessageHeader::SIZE,
            },
            kind => super::walk::header_len(kind),
        };
        self.bytes.get(start..).unwrap_or_default()
    }

    /// The key by which the record is counted.
    #[must_use]
    pub fn identity(&self) -> Identity {
        let mut identity = Identity {
            provider: self.provider().unwrap_or(Guid::ZERO),
            ..Identity::default()
        };
        match self.header() {
            Header::System(header) => {
                identity.hook = Some(header.hook);
                identity.opcode = header.hook as u8;
                identity.version = header.version & 0xff;
            }
            Header::PerfInfo(header) => {
                identity.hook = Some(header.hook);
                identity.opcode = header.hook as u8;
                identity.version = header.version().into();
            }
            Header::Full(full) | Header::Instance(InstanceHeader { full, .. }) => {
                identity.opcode = full.opcode;
                identity.level = full.level;
                identity.version = full.version;
            }
            Header::Message(header) => identity.id = header.number,
            Header::Event(EventHeader { descriptor, .. }) => {
                identity.id = descriptor.id;
                identity.version = descriptor.version.into();
                identity.opcode = descriptor.opcode;
                identity.task = descriptor.task;
                identity.level = descriptor.level;
                identity.keyword = descriptor.keyword;
            }
            Header::Opaque => {}
        }
        identity
    }
}
