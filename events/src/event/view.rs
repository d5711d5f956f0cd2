//! One event: a record with its names, its schema and its decoded fields.

use std::sync::Arc;

use etl_format::constants::RecordKind;
use etl_format::read::{ExtendedItem, Record};
use etl_format::{FileTime, Guid, ProcessId, ThreadId, Ticks};
use etl_schema::decode::{Decoder, Fields, Value};
use etl_schema::{DeserializeError, EventSchema, SchemaSource, Text, providers};
use serde::Deserialize;
use serde::de::Error as _;

use super::head::Head;
use super::message::message;
use super::origin::Origin;
use super::seconds::Seconds;
use crate::context::{Context, EventNames};
use crate::header_fields::HeaderFields;

/// An event of a trace. It borrows the record, its schema and the names of the trace, and
/// allocates nothing; [`Event::to_owned`] makes an event that can be kept.
///
/// [`Events`](crate::Events) returns the events of opened traces. An
/// [`EventDecoder`](crate::EventDecoder) makes events of the records of any reader.
///
/// `Display` writes the line of `etlkit dump`, `Serialize` what its JSON lines contain.
///
/// ```
/// # use etl_events::testing::trace;
/// let mut trace = etl_events::from_bytes(trace())?;
/// let mut events = trace.events().provider("Microsoft-Windows-DotNETRuntime");
/// let event = events.next()?.ok_or("no event")?;
/// assert_eq!(event.time().to_string(), "2022-06-18T04:26:40.0010000Z");
/// assert_eq!(event.name(), "GCStart_V1");
/// assert_eq!(event.get("Count").and_then(|count| count.as_u64()), Some(7));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Debug)]
pub struct Event<'a> {
    pub(crate) record: Record<'a>,
    pub(crate) origin: &'a Origin<'a>,
    pub(crate) head: &'a Head,
    /// The same head, for events that are kept.
    pub(crate) shared_head: &'a Arc<Head>,
    pub(crate) decoder: Option<&'a Decoder>,
    /// The fields, if the schema describes the payload.
    pub(crate) fields: Option<Fields<'a>>,
    /// The name of the provider in the record or in the trace.
    pub(crate) learned_provider: Option<&'a str>,
    pub(crate) pid: Option<ProcessId>,
    pub(crate) tid: Option<ThreadId>,
    /// The readable text of a payload that is not decoded.
    pub(crate) payload_text: &'a str,
    /// The names of the process and the thread of an event that was kept.
    pub(crate) kept_names: Option<&'a OwnerNames>,
}

/// The names of the process and the thread of an event.
#[derive(Clone, Debug, Default)]
pub(crate) struct OwnerNames {
    pub process: String,
    pub thread: String,
}

impl<'a> Event<'a> {
    /// The time. Its `Display` is ISO 8601 in UTC, and it converts to
    /// [`SystemTime`](std::time::SystemTime).
    ///
    /// ```
    /// # let mut trace = etl_events::from_bytes(etl_events::testing::trace())?;
    /// # let mut events = trace.events().event("GCStart*");
    /// # let event = events.next()?.ok_or("no event")?;
    /// assert_eq!(event.time().to_string(), "2022-06-18T04:26:40.0010000Z");
    /// let time = event.time().to_system_time().ok_or("out of range")?;
    /// let since_1970 = time.duration_since(std::time::UNIX_EPOCH)?;
    /// assert_eq!(since_1970.as_millis(), 1_655_526_400_001);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    #[must_use]
    #[inline]
    pub fn time(&self) -> FileTime {
        self.origin.clock.time(self.record.timestamp())
    }

    /// The time as the trace stores it, in ticks of its clock.
    ///
    /// ```
    /// # let mut trace = etl_events::from_bytes(etl_events::testing::trace())?;
    /// # let mut events = trace.events().event("GCStart*");
    /// # let event = events.next()?.ok_or("no event")?;
    /// assert_eq!(event.ticks().get(), 11_000);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    #[must_use]
    #[inline]
    pub fn ticks(&self) -> Ticks {
        self.record.timestamp()
    }

    /// The seconds since the start of the trace.
    #[inline]
    pub(crate) fn seconds(&self) -> Seconds {
        Seconds::between(self.origin.start, self.time())
    }

    /// The name of the file, if several files are read together.
    #[must_use]
    pub fn file(&self) -> Option<&'a str> {
        self.origin.file.as_deref()
    }

    /// The name of the provider. A provider without a known name has its GUID as text, a kernel
    /// event the name of its group; "" if the record has neither.
    ///
    /// ```
    /// # let mut trace = etl_events::from_bytes(etl_events::testing::trace())?;
    /// # let mut events = trace.events().event("GCStart*");
    /// # let event = events.next()?.ok_or("no event")?;
    /// assert_eq!(event.provider(), "Microsoft-Windows-DotNETRuntime");
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    #[must_use]
    #[inline]
    pub fn provider(&self) -> &'a str {
        self.provider_name().unwrap_or(&self.head.provider_text)
    }

    /// The name of the provider, if it is known: from the tables of providers, else from the record
    /// (TraceLogging), else from the trace.
    #[must_use]
    #[inline]
    pub fn provider_name(&self) -> Option<&'a str> {
        self.head.provider_name.or(self.learned_provider)
    }

    /// The GUID of the provider. Classic events have the GUID of their class, and kernel events the
    /// GUID of their group.
    ///
    /// ```
    /// # let mut trace = etl_events::from_bytes(etl_events::testing::trace())?;
    /// # let mut events = trace.events().event("GCStart*");
    /// # let event = events.next()?.ok_or("no event")?;
    /// let guid = event.provider_guid().ok_or("no provider")?;
    /// assert_eq!(guid.to_string(), "e13c0d23-ccbc-4e12-931b-d9cc2eee27e4");
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    #[must_use]
    pub fn provider_guid(&self) -> Option<Guid> {
        self.head.provider
    }

    /// The name of the event. An event without a name has its number in words: `EventID(160)`.
    ///
    /// ```
    /// # let mut trace = etl_events::from_bytes(etl_events::testing::trace())?;
    /// # let mut events = trace.events().event("GCStart*");
    /// # let event = events.next()?.ok_or("no event")?;
    /// assert_eq!(event.name(), "GCStart_V1");
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    #[must_use]
    #[inline]
    pub fn name(&self) -> &'a str {
        &self.head.event_name
    }

    /// The numbers in the header, for all kinds of records.
    ///
    /// ```
    /// # let mut trace = etl_events::from_bytes(etl_events::testing::trace())?;
    /// # let mut events = trace.events().event("GCStart*");
    /// # let event = events.next()?.ok_or("no event")?;
    /// let header = event.header();
    /// assert_eq!((header.id, header.version, header.hook), (Some(1), Some(1), None));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    #[must_use]
    pub fn header(&self) -> HeaderFields {
        self.head.header
    }

    /// The id, or the number of a WPP message.
    #[must_use]
    pub fn id(&self) -> Option<u16> {
        self.head.header.id
    }

    /// The version of the payload.
    #[must_use]
    pub fn version(&self) -> Option<u16> {
        self.head.header.version
    }

    /// The level: 1 is critical, 5 is verbose.
    #[must_use]
    pub fn level(&self) -> Option<u8> {
        self.head.header.level
    }

    /// The provider's own name for the level; `None` for the names that every provider has.
    #[must_use]
    pub fn level_name(&self) -> Option<&'a str> {
        not_empty(&self.head.level_name)
    }

    /// The keywords as bits.
    #[must_use]
    pub fn keyword(&self) -> Option<u64> {
        self.head.header.keyword
    }

    /// The names of the keywords.
    ///
    /// ```
    /// # let mut trace = etl_events::from_bytes(etl_events::testing::trace())?;
    /// # let mut events = trace.events().event("GCStart*");
    /// # let event = events.next()?.ok_or("no event")?;
    /// assert_eq!(event.keyword(), Some(1));
    /// assert_eq!(event.keyword_names(), ["GCKeyword"]);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    #[must_use]
    pub fn keyword_names(&self) -> &'a [Text] {
        self.head.keyword_names()
    }

    /// The opcode, or the type of a kernel or classic event.
    #[must_use]
    pub fn opcode(&self) -> Option<u8> {
        self.head.header.opcode
    }

    /// The provider's own name for the opcode; `None` for the names that every provider has.
    #[must_use]
    pub fn opcode_name(&self) -> Option<&'a str> {
        not_empty(&self.head.opcode_name)
    }

    /// The task.
    #[must_use]
    pub fn task(&self) -> Option<u16> {
        self.head.header.task
    }

    /// The provider's own name for the task.
    ///
    /// ```
    /// # let mut trace = etl_events::from_bytes(etl_events::testing::trace())?;
    /// # let mut events = trace.events().event("GCStart*");
    /// # let event = events.next()?.ok_or("no event")?;
    /// assert_eq!((event.task(), event.task_name()), (Some(1), Some("GarbageCollection")));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    #[must_use]
    pub fn task_name(&self) -> Option<&'a str> {
        not_empty(&self.head.task_name)
    }

    /// The channel.
    #[must_use]
    pub fn channel(&self) -> Option<u8> {
        self.head.header.channel
    }

    /// The name of the channel, that is of the event log for which the event is meant, if the
    /// source of its schema has it: `Microsoft-Windows-Kernel-File/Analytic`.
    #[must_use]
    pub fn channel_name(&self) -> Option<&'a str> {
        not_empty(&self.head.channel_name)
    }

    /// The kind of the record: its header format.
    ///
    /// ```
    /// # let mut trace = etl_events::from_bytes(etl_events::testing::trace())?;
    /// # let mut events = trace.events().event("GCStart*");
    /// # let event = events.next()?.ok_or("no event")?;
    /// assert_eq!(event.kind().to_string(), "EVENT64");
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    #[must_use]
    pub fn kind(&self) -> RecordKind {
        self.record.kind()
    }

    /// The processor on which the event was logged.
    #[must_use]
    pub fn cpu(&self) -> u16 {
        self.record.processor()
    }

    /// The id of the process. With the names of the trace, samples and stacks have the process that
    /// ran. `None` if it is unknown.
    ///
    /// ```
    /// # let mut trace = etl_events::from_bytes(etl_events::testing::trace())?;
    /// # let mut events = trace.events().event("GCStart*");
    /// # let event = events.next()?.ok_or("no event")?;
    /// assert_eq!(event.pid(), Some(etl_format::ProcessId::new(100)));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    #[must_use]
    #[inline]
    pub fn pid(&self) -> Option<ProcessId> {
        self.pid
    }

    /// The id of the thread. Samples and stacks have the thread that ran, as in [`Event::pid`].
    #[must_use]
    #[inline]
    pub fn tid(&self) -> Option<ThreadId> {
        self.tid
    }

    /// The file name of the program of the process, if the trace contains it and was read for
    /// names.
    ///
    /// ```
    /// # let mut trace = etl_events::from_bytes(etl_events::testing::trace())?;
    /// # let mut events = trace.events().event("GCStart*");
    /// # let event = events.next()?.ok_or("no event")?;
    /// assert_eq!(event.process(), Some("app.exe"));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    #[must_use]
    #[inline]
    pub fn process(&self) -> Option<&'a str> {
        if let Some(names) = self.kept_names {
            return not_empty(&names.process);
        }
        let context = self.context()?;
        not_empty(context.process_name(self.pid?, self.record.timestamp()))
    }

    /// The name of the thread, if the trace contains it and was read for names.
    #[must_use]
    #[inline]
    pub fn thread(&self) -> Option<&'a str> {
        if let Some(names) = self.kept_names {
            return not_empty(&names.thread);
        }
        let context = self.context()?;
        not_empty(context.thread_name(self.pid, self.tid?, self.record.timestamp()))
    }

    /// The activity; `None` for an id of zeros.
    #[must_use]
    #[inline]
    pub fn activity(&self) -> Option<Guid> {
        HeaderFields::activity(&self.record)
    }

    /// The related activity: the activity that started this one.
    #[must_use]
    pub fn related_activity(&self) -> Option<Guid> {
        self.record.extended().find_map(|item| match item {
            ExtendedItem::RelatedActivity(id) => Some(id),
            _ => None,
        })
    }

    /// The value of a field: `Count`, or `Heaps[0].Size` for a member of an element. `None` if the
    /// event has no such field, or its payload ends before it.
    ///
    /// ```
    /// # let mut trace = etl_events::from_bytes(etl_events::testing::trace())?;
    /// # let mut events = trace.events().event("GCStart*");
    /// # let event = events.next()?.ok_or("no event")?;
    /// assert_eq!(event.get("Depth").and_then(|depth| depth.as_u64()), Some(1));
    /// assert!(event.get("Missing").is_none());
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    #[must_use]
    pub fn get(&self, path: &str) -> Option<Value<'a>> {
        self.fields.as_ref()?.get(path)
    }

    /// The fields with their values, in the order of the payload. `None` if no schema describes the
    /// payload.
    ///
    /// ```
    /// # let mut trace = etl_events::from_bytes(etl_events::testing::trace())?;
    /// # let mut events = trace.events().event("GCStart*");
    /// # let event = events.next()?.ok_or("no event")?;
    /// let fields = event.fields().ok_or("no schema")?;
    /// let names: Vec<&str> = fields.map(|(field, _)| &*field.name).collect();
    /// assert_eq!(names, ["Count", "Depth", "Reason", "Type", "ClrInstanceID"]);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    #[must_use]
    pub fn fields(&self) -> Option<Fields<'a>> {
        self.fields.clone()
    }

    /// The fields as a type that implements [`Deserialize`].
    ///
    /// # Errors
    /// If no schema describes the payload, or a field does not fit the type; the error names it.
    ///
    /// ```
    /// # let mut trace = etl_events::from_bytes(etl_events::testing::trace())?;
    /// # let mut events = trace.events().event("GCStart*");
    /// # let event = events.next()?.ok_or("no event")?;
    /// #[derive(serde::Deserialize)]
    /// #[serde(rename_all = "PascalCase")]
    /// struct GcStart {
    ///     count: u32,
    ///     depth: u32,
    /// }
    /// let start: GcStart = event.deserialize()?;
    /// assert_eq!((start.count, start.depth), (7, 1));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn deserialize<T: Deserialize<'a>>(&self) -> Result<T, DeserializeError> {
        match &self.fields {
            Some(fields) => fields.deserialize(),
            None => Err(DeserializeError::custom("no schema describes the payload")),
        }
    }

    /// The message with the fields in place, as plain text. `None` if the schema has none.
    #[must_use]
    pub fn message(&self) -> Option<String> {
        let mut scratch = Vec::new();
        self.write_message(&mut scratch).map(str::to_owned)
    }

    /// The message as in [`Event::message`], in memory of the caller: `scratch` is cleared first.
    pub fn write_message<'s>(&self, scratch: &'s mut Vec<u8>) -> Option<&'s str> {
        message(
            scratch,
            &self.record,
            self.schema()?,
            self.fields.as_ref()?,
            self.time(),
        )
    }

    /// The addresses of the stack that the record carries, innermost first; none if it has no
    /// stack.
    ///
    /// ```
    /// # let mut trace = etl_events::from_bytes(etl_events::testing::trace())?;
    /// # let mut events = trace.events().event("GCStart*");
    /// # let event = events.next()?.ok_or("no event")?;
    /// assert_eq!(event.stack().collect::<Vec<_>>(), [0x7ff8_0000_1000, 0x7ff8_0000_2000]);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn stack(&self) -> impl Iterator<Item = u64> + use<'a> {
        let stacks = self.record.extended().filter_map(|item| match item {
            ExtendedItem::Stack(stack) => Some(stack.addresses()),
            _ => None,
        });
        stacks.flatten()
    }

    /// The bytes of the payload.
    ///
    /// ```
    /// # let mut trace = etl_events::from_bytes(etl_events::testing::trace())?;
    /// # let mut events = trace.events().event("GCStart*");
    /// # let event = events.next()?.ok_or("no event")?;
    /// assert_eq!(event.payload()[..4], 7u32.to_le_bytes());
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    #[must_use]
    #[inline]
    pub fn payload(&self) -> &'a [u8] {
        self.record.payload()
    }

    /// Readable text in a payload that no schema describes; "" for others.
    #[must_use]
    pub fn payload_text(&self) -> &'a str {
        self.payload_text
    }

    /// The source of the schema that describes the event.
    ///
    /// ```
    /// # let mut trace = etl_events::from_bytes(etl_events::testing::trace())?;
    /// # let mut events = trace.events().event("GCStart*");
    /// # let event = events.next()?.ok_or("no event")?;
    /// assert_eq!(event.source().map(|source| source.name()), Some("built-in table"));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    #[must_use]
    pub fn source(&self) -> Option<SchemaSource> {
        Some(self.schema()?.source)
    }

    /// The schema that describes the event.
    #[must_use]
    #[inline]
    pub fn schema(&self) -> Option<&'a Arc<EventSchema>> {
        Some(self.decoder?.schema())
    }

    /// The record of the event.
    #[must_use]
    #[inline]
    pub fn record(&self) -> &Record<'a> {
        &self.record
    }

    #[inline]
    fn context(&self) -> Option<&'a Context<'a>> {
        self.origin.context.as_ref()
    }

    /// The names of the trace for the values of the event, for a
    /// [`Renderer`](etl_schema::render::Renderer). `None` if the trace was not read for names.
    #[must_use]
    pub fn names(&self) -> Option<EventNames<'a>> {
        let names = self.context()?.names(self.pid, self.record.timestamp());
        // The record that a merge adds about volumes explains the devices in other paths.
        Some(names.raw_paths(self.head.provider == Some(providers::SYSTEM_CONFIG_EX)))
    }
}

fn not_empty(text: &str) -> Option<&str> {
    if text.is_empty() { None } else { Some(text) }
}
