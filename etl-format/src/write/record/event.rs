//! EVENT records: manifest, TraceLogging and EventSource events.

use byteorder::{ByteOrder, LE};

use crate::headers::EventDescriptor;

use super::{Extended, Record};
use crate::constants::offset::event;
use crate::constants::{EventFlags, EventProperties, PointerSize, RecordKind};
use crate::error::Result;
use crate::write::put::{marker, sized};
use crate::{Guid, ProcessId, ThreadId, Ticks};

/// Bytes of `EVENT_HEADER`.
const HEADER_SIZE: usize = 0x50;
/// Offset of the second half of the first word, which has the kind of the record.
const MARKER: usize = 0x02;

/// `EVENT_HEADER`, extended items, and a payload.
///
/// | at | | at | |
/// |---|---|---|---|
/// | 00 | u16 size | 10 | i64 timestamp |
/// | 02 | marker | 18 | provider GUID |
/// | 04 | u16 flags | 28 | descriptor, 16 bytes |
/// | 06 | u16 properties | 38 | u32 kernel time |
/// | 08 | u32 thread | 3c | u32 user time |
/// | 0c | u32 process | 40 | activity GUID |
///
/// ```
/// use etl_format::{EventDescriptor, Guid};
/// use etl_format::write::record::{Event, Record};
///
/// let descriptor = EventDescriptor { id: 7, level: 4, ..EventDescriptor::default() };
/// let event = Event::new(Guid::new(1, 2, 3, [4; 8]), descriptor, 2_000)
///     .process(4, 8)
///     .related_activity(Guid::new(5, 6, 7, [8; 8]))
///     .stack(&[0x7ff6_0000_1000, 0x7ff6_0000_2000])
///     .payload(b"\x2a\0\0\0");
/// let mut bytes = Vec::new();
/// event.encode(&mut bytes)?;
/// assert_eq!(bytes.len(), 0x50 + 24 + 32 + 4, "header, two extended items, payload");
/// # Ok::<(), etl_format::Error>(())
/// ```
#[derive(Clone, Copy, Debug)]
pub struct Event<'a> {
    /// Width of pointers in the payload.
    pointer_size: PointerSize,
    /// Flags. [`EventFlags::EXTENDED_INFO`] is ignored.
    flags: EventFlags,
    /// Properties; 0 in all known traces.
    properties: EventProperties,
    /// Thread.
    thread_id: ThreadId,
    /// Process.
    process_id: ProcessId,
    /// Raw timestamp.
    timestamp: Ticks,
    /// Provider.
    provider: Guid,
    /// Id, version and so on.
    descriptor: EventDescriptor,
    /// Kernel time in timer ticks, or the low half of the processor time of a private session.
    kernel_time: u32,
    /// User time in timer ticks, or the high half of the processor time.
    user_time: u32,
    /// Activity, or zero.
    activity: Guid,
    /// The activity from which the activity of this event was started.
    related_activity: Option<Guid>,
    /// Name and traits of the provider, with their leading size.
    provider_traits: Option<&'a [u8]>,
    /// TraceLogging metadata, with its leading size.
    metadata: Option<&'a [u8]>,
    /// The call stack: 64-bit addresses, innermost first.
    stack: Option<&'a [u64]>,
    /// More extended items, in the order in which they are written.
    extended: &'a [Extended<'a>],
    /// The bytes after the extended items.
    payload: &'a [u8],
}

impl<'a> Event<'a> {
    /// An event of a provider, with a raw timestamp. Pointers have 64 bits, and everything else is
    /// 0 or empty.
    #[must_use]
    pub fn new(provider: Guid, descriptor: EventDescriptor, timestamp: impl Into<Ticks>) -> Self {
        Event {
            pointer_size: PointerSize::P8,
            flags: EventFlags(0),
            properties: EventProperties(0),
            thread_id: ThreadId::default(),
            process_id: ProcessId::default(),
            timestamp: timestamp.into(),
            provider,
            descriptor,
            kernel_time: 0,
            user_time: 0,
            activity: Guid::ZERO,
            related_activity: None,
            provider_traits: None,
            metadata: None,
            stack: None,
            extended: &[],
            payload: &[],
        }
    }

    /// Sets process and thread.
    #[must_use]
    pub fn process(
        mut self,
        process_id: impl Into<ProcessId>,
        thread_id: impl Into<ThreadId>,
    ) -> Self {
        self.process_id = process_id.into();
        self.thread_id = thread_id.into();
        self
    }

    /// Sets the width of pointers in the payload.
    #[must_use]
    pub fn pointer_size(mut self, pointer_size: PointerSize) -> Self {
        self.pointer_size = pointer_size;
        self
    }

    /// Sets the flags. [`EventFlags::EXTENDED_INFO`] is ignored: it is written if there are
    /// extended items.
    #[must_use]
    pub fn flags(mut self, flags: EventFlags) -> Self {
        self.flags = flags;
        self
    }

    /// Sets the properties, which are 0 in all known traces.
    #[must_use]
    pub fn properties(mut self, properties: EventProperties) -> Self {
        self.properties = properties;
        self
    }

    /// Sets the CPU times in timer ticks. In a private session they are the low and the high half
    /// of the processor time.
    #[must_use]
    pub fn cpu_times(mut self, kernel_time: u32, user_time: u32) -> Self {
        self.kernel_time = kernel_time;
        self.user_time = user_time;
        self
    }

    /// Sets the activity.
    #[must_use]
    pub fn activity(mut self, activity: Guid) -> Self {
        self.activity = activity;
        self
    }

    /// Sets the activity from which the activity of this event was started.
    #[must_use]
    pub fn related_activity(mut self, activity: Guid) -> Self {
        self.related_activity = Some(activity);
        self
    }

    /// Sets the name and the traits of a TraceLogging provider, which start with their size.
    #[must_use]
    pub fn provider_traits(mut self, traits: &'a [u8]) -> Self {
        self.provider_traits = Some(traits);
        self
    }

    /// Sets the TraceLogging metadata, which starts with its size.
    #[must_use]
    pub fn metadata(mut self, metadata: &'a [u8]) -> Self {
        self.metadata = Some(metadata);
        self
    }

    /// Sets the call stack: 64-bit addresses, innermost first. For a stack of 32-bit addresses or
    /// one half of a stack, see [`Event::extended`].
    #[must_use]
    pub fn stack(mut self, addresses: &'a [u64]) -> Self {
        self.stack = Some(addresses);
        self
    }

    /// Sets more extended items. They are written after the items that the other methods set: the
    /// related activity, the provider's traits, the metadata and the stack, in this order.
    #[must_use]
    pub fn extended(mut self, items: &'a [Extended<'a>]) -> Self {
        self.extended = items;
        self
    }

    /// Sets the bytes after the extended items.
    #[must_use]
    pub fn payload(mut self, payload: &'a [u8]) -> Self {
        self.payload = payload;
        self
    }

    /// All extended items, in the order in which they are written.
    fn items(&self) -> impl Iterator<Item = Extended<'a>> {
        let related_activity = self.related_activity.map(Extended::RelatedActivity);
        let provider_traits = self.provider_traits.map(Extended::ProviderTraits);
        let metadata = self.metadata.map(Extended::Schema);
        let stack = self.stack.map(|addresses| Extended::Stack64 {
            match_id: 0,
            addresses,
        });
        let single = [related_activity, provider_traits, metadata, stack];
        single
            .into_iter()
            .flatten()
            .chain(self.extended.iter().copied())
    }

    /// Whether there are extended items.
    fn has_items(&self) -> bool {
        self.related_activity.is_some()
            || self.provider_traits.is_some()
            || self.metadata.is_some()
            || self.stack.is_some()
            || !self.extended.is_empty()
    }

    /// Appends the extended items; each says whether another one follows.
    fn encode_items(&self, out: &mut Vec<u8>) -> Result<()> {
        let mut items = self.items().peekable();
        while let Some(item) = items.next() {
            item.encode(items.peek().is_some(), out)?;
        }
        Ok(())
    }
}

impl Record for Event<'_> {
    fn encode(&self, out: &mut Vec<u8>) -> Result<()> {
        let has_items = self.has_items();
        let mut flags = self.flags.0 & !EventFlags::EXTENDED_INFO.0;
        if has_items {
            flags |= EventFlags::EXTENDED_INFO.0;
        }
        let kind = self
            .pointer_size
            .choose(RecordKind::EVENT32, RecordKind::EVENT64);
        let descriptor = &self.descriptor;
        // One append: a separate append for each field would check the capacity each time.
        let mut header = [0; HEADER_SIZE];
        header[MARKER..event::FLAGS].copy_from_slice(&marker(kind));
        LE::write_u16(&mut header[event::FLAGS..], flags);
        LE::write_u16(&mut header[event::PROPERTIES..], self.properties.0);
        LE::write_u32(&mut header[event::THREAD..], self.thread_id.get());
        LE::write_u32(&mut header[event::PROCESS..], self.process_id.get());
        LE::write_i64(&mut header[event::TIMESTAMP..], self.timestamp.get());
        header[event::PROVIDER..event::ID].copy_from_slice(&self.provider.to_bytes());
        LE::write_u16(&mut header[event::ID..], descriptor.id);
        header[event::VERSION] = descriptor.version;
        header[event::CHANNEL] = descriptor.channel;
        header[event::LEVEL] = descriptor.level;
        header[event::OPCODE] = descriptor.opcode;
        LE::write_u16(&mut header[event::TASK..], descriptor.task);
        LE::write_u64(&mut header[event::KEYWORD..], descriptor.keyword);
        LE::write_u32(&mut header[event::KERNEL_TIME..], self.kernel_time);
        LE::write_u32(&mut header[event::USER_TIME..], self.user_time);
        header[event::ACTIVITY..].copy_from_slice(&self.activity.to_bytes());
        sized(out, 0, |out| {
            out.extend_from_slice(&header);
            // Most events have none.
            if has_items {
                self.encode_items(out)?;
            }
            out.extend_from_slice(self.payload);
            Ok(())
        })
    }

    fn timestamp(&self) -> Option<Ticks> {
        Some(self.timestamp)
    }
}
