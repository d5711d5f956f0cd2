//! An event for comparison: its identity, and everything else as named parts.

use std::borrow::Cow;
use std::collections::{BTreeMap, VecDeque};
use std::fmt::Write as _;
use std::hash::{DefaultHasher, Hash, Hasher};

use etl_events::Event as Decoded;
use etl_format::constants::ExtendedType;
use etl_format::read::{ExtendedItem, Header, RawItem, Record};
use etl_format::{FileTime, Guid, ProcessId, ThreadId};
use etl_schema::Identity;
use etl_schema::render::Renderer;

use super::change::Change;
use super::identity::{EventIdentity, ProviderIdentity};
use super::ignore::Ignore;

/// The identity that two versions of an event have in common.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(super) struct Key {
    pub provider: Guid,
    pub hook: Option<u16>,
    pub id: u16,
    pub opcode: u8,
    /// The name of a TraceLogging event: the ids of such events are all 0.
    pub name: Option<Cow<'static, str>>,
}

impl Key {
    pub fn of(event: &Decoded<'_>) -> Self {
        let record = event.record();
        let identity = record.identity();
        let mut name = None;
        if record.is_event()
            && identity.id == 0
            && let Some(schema) = event.schema()
            && schema.identity == Identity::SelfDescribing
        {
            name = Some(schema.name.clone());
        }
        Key {
            provider: identity.provider,
            hook: identity.hook,
            id: identity.id,
            opcode: identity.opcode,
            name,
        }
    }

    /// The identity for reports.
    pub fn identity(&self, name: Option<String>) -> EventIdentity {
        EventIdentity {
            name,
            hook: self.hook,
            id: self.id,
            opcode: self.opcode,
        }
    }
}

/// A record with the context that is needed to compare it.
pub(super) struct Current<'a> {
    pub event: Decoded<'a>,
    /// Whether raw timestamps of both traces are comparable.
    pub same_clock: bool,
    pub ignore: &'a Ignore,
}

impl Current<'_> {
    /// Whether both records are the same event. Records with the same bytes are not decoded.
    pub fn is_same(&self, other: &Current<'_>) -> bool {
        let a = self.event.record();
        let b = other.event.record();
        let has_same_bytes = a.kind() == b.kind()
            && a.bytes() == b.bytes()
            && a.processor() == b.processor()
            && a.timestamp() == b.timestamp()
            && self.same_clock;
        has_same_bytes || self.to_event().is_same(&other.to_event())
    }

    /// The event, independent of the reader.
    pub fn to_event(&self) -> Event {
        Event::new(self)
    }
}

/// A named part of an event, as text.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Part {
    /// Name of a property, as the JSON lines of `etlkit dump` have it (`time`, `pid`, `stack` ...),
    /// or of a payload field.
    pub name: Cow<'static, str>,
    /// Its value; payload fields as JSON.
    pub value: String,
}

/// An event of one of the traces.
#[derive(Clone, Debug)]
pub struct Event {
    key: Key,
    provider: ProviderIdentity,
    identity: EventIdentity,
    time: FileTime,
    /// The time in the unit of the comparison.
    compared_time: i64,
    pid: Option<ProcessId>,
    tid: Option<ThreadId>,
    parts: Vec<Part>,
    /// Index of the payload's first part.
    first_payload_part: usize,
    bytes: Vec<u8>,
    /// Whether payloads have to be the same bytes.
    exact: bool,
    hash: u64,
}

impl Event {
    pub(super) fn new(current: &Current<'_>) -> Self {
        let Current {
            event: decoded,
            same_clock,
            ignore,
        } = current;
        let record = decoded.record();
        let time = decoded.time();
        let mut compared_time = 0;
        let mut parts = Parts(Vec::with_capacity(16));
        if !ignore.time && *same_clock {
            compared_time = record.timestamp().get();
            parts.add("time", format!("{time} ({compared_time})"));
        } else if !ignore.time {
            compared_time = time.get();
            parts.add("time", time);
        }
        let mut pid = None;
        let mut tid = None;
        if !ignore.ids {
            pid = record.process_id();
            tid = record.thread_id();
            parts.add_optional("pid", pid);
            parts.add_optional("tid", tid);
        }
        if !ignore.processor {
            parts.add("cpu", record.processor());
        }
        parts.add("kind", record.kind());
        parts.add_header(record, ignore);
        parts.add_extended_items(record, ignore);
        let first_payload_part = parts.0.len();
        parts.add_payload(decoded, ignore);
        let key = Key::of(decoded);
        let mut event = Event {
            provider: ProviderIdentity {
                guid: key.provider,
                name: decoded.provider_name().map(str::to_owned),
            },
            identity: key.identity(schema_name(decoded)),
            key,
            time,
            compared_time,
            pid,
            tid,
            parts: parts.0,
            first_payload_part,
            bytes: record.payload().to_vec(),
            exact: !ignore.looks_into_payloads(),
            hash: 0,
        };
        event.hash = if event.exact {
            hash(&(&event.key, &event.parts, &event.bytes))
        } else {
            hash(&(&event.key, &event.parts))
        };
        event
    }

    /// The provider.
    #[must_use]
    pub fn provider(&self) -> &ProviderIdentity {
        &self.provider
    }

    /// The event of the provider.
    #[must_use]
    pub fn identity(&self) -> &EventIdentity {
        &self.identity
    }

    /// The time in UTC.
    #[must_use]
    pub fn time(&self) -> FileTime {
        self.time
    }

    /// The parts of the event that are compared, without its identity: first its properties, then
    /// its payload.
    #[must_use]
    pub fn parts(&self) -> &[Part] {
        &self.parts
    }

    /// The parts of the payload: its fields, or its bytes if no schema is known.
    #[must_use]
    pub fn payload(&self) -> &[Part] {
        self.parts
            .get(self.first_payload_part..)
            .unwrap_or_default()
    }

    /// The property of this name, such as `pid`.
    #[must_use]
    pub fn property(&self, name: &str) -> Option<&str> {
        let mut properties = self.parts.iter().take(self.first_payload_part);
        let part = properties.find(|part| part.name == name)?;
        Some(&part.value)
    }

    /// The time in the unit of the comparison; 0 when times are ignored.
    pub(super) fn compared_time(&self) -> i64 {
        self.compared_time
    }

    /// Equal for events that are the same.
    pub(super) fn hash(&self) -> u64 {
        self.hash
    }

    pub(super) fn is_same(&self, other: &Event) -> bool {
        self.hash == other.hash
            && self.key == other.key
            && self.parts == other.parts
            && (!self.exact || self.bytes == other.bytes)
    }

    /// Equal for events that could be versions of each other; a lower level is stricter.
    pub(super) fn pairing(&self, level: usize) -> u64 {
        match level {
            0 => hash(&(&self.key, self.compared_time, self.pid, self.tid)),
            1 => hash(&(&self.key, self.compared_time)),
            2 => hash(&(&self.key, self.payload())),
            _ => hash(&self.key),
        }
    }

    /// The parts that differ; if there are none, the payload as bytes.
    pub(super) fn changes(&self, after: &Event) -> Vec<Change> {
        // Parts of one name (items of a kind, fields that share a name) are compared in order.
        let mut values = BTreeMap::<&str, PartValues<'_>>::new();
        let mut names = Vec::new();
        for part in &self.parts {
            let values = values.entry(&part.name).or_default();
            values.before.push_back(&part.value);
            names.push(&part.name);
        }
        for part in &after.parts {
            let values = values.entry(&part.name).or_default();
            values.after.push_back(&part.value);
            names.push(&part.name);
        }
        let mut changes = Vec::new();
        for name in names {
            let Some(values) = values.get_mut(&**name) else {
                continue;
            };
            let before = values.before.pop_front();
            let after = values.after.pop_front();
            if before != after {
                changes.push(Change {
                    name: name.to_string(),
                    before: before.map(str::to_owned),
                    after: after.map(str::to_owned),
                });
            }
        }
        if changes.is_empty() {
            changes.push(Change {
                name: "payload".to_owned(),
                before: Some(hex(&self.bytes)),
                after: Some(hex(&after.bytes)),
            });
        }
        changes
    }
}

/// The values of the parts with one name that are not compared yet.
#[derive(Default)]
struct PartValues<'e> {
    before: VecDeque<&'e str>,
    after: VecDeque<&'e str>,
}

fn hash(value: &impl Hash) -> u64 {
    let mut hasher = DefaultHasher::new();
    value.hash(&mut hasher);
    hasher.finish()
}

fn hex(bytes: &[u8]) -> String {
    let mut out = String::with_capacity(2 * bytes.len());
    for byte in bytes {
        // Writing to a string does not fail.
        let _ = write!(out, "{byte:02x}");
    }
    out
}

/// The name of an event in its schema.
pub(super) fn schema_name(event: &Decoded<'_>) -> Option<String> {
    let name = &event.schema()?.name;
    if name.is_empty() {
        None
    } else {
        Some(name.to_string())
    }
}

struct Parts(Vec<Part>);

impl Parts {
    fn add(&mut self, name: impl Into<Cow<'static, str>>, value: impl ToString) {
        self.0.push(Part {
            name: name.into(),
            value: value.to_string(),
        });
    }

    fn add_optional(&mut self, name: &'static str, value: Option<impl ToString>) {
        if let Some(value) = value {
            self.add(name, value);
        }
    }

    /// Adds the processor time of the thread in the kernel and in user mode.
    fn add_times(&mut self, ignore: &Ignore, kernel: u32, user: u32) {
        if !ignore.time {
            self.add("kernel_time", kernel);
            self.add("user_time", user);
        }
    }

    /// Adds the fields of the header other than identity, time, process and thread.
    fn add_header(&mut self, record: &Record<'_>, ignore: &Ignore) {
        match record.header() {
            Header::System(header) => {
                self.add("version", header.version);
                let kernel = header.kernel_time.unwrap_or(0);
                let user = header.user_time.unwrap_or(0);
                self.add_times(ignore, kernel, user);
            }
            Header::PerfInfo(header) => {
                self.add("version", header.version());
                self.add_optional("pebs_index", header.pebs_index);
                let counters: Vec<String> = header.counters().map(|c| c.to_string()).collect();
                if !counters.is_empty() {
                    self.add("counters", counters.join(" "));
                }
            }
            Header::Full(header) => {
                self.add("version", header.version);
                self.add("level", header.level);
                self.add_times(ignore, header.kernel_time, header.user_time);
            }
            Header::Instance(header) => {
                self.add("version", header.full.version);
                self.add("level", header.full.level);
                self.add("instance_id", header.instance_id);
                self.add("parent_instance_id", header.parent_instance_id);
                self.add("parent_class", header.parent_class);
                self.add_times(ignore, header.full.kernel_time, header.full.user_time);
            }
            Header::Message(header) => {
                self.add("flags", format!("{:#x}", header.flags.0));
                self.add_optional("sequence", header.sequence);
                self.add_optional("component", header.component_id);
            }
            Header::Event(header) => {
                let descriptor = header.descriptor;
                self.add("version", descriptor.version);
                self.add("channel", descriptor.channel);
                self.add("level", descriptor.level);
                self.add("task", descriptor.task);
                self.add("keyword", format!("{:#x}", descriptor.keyword));
                let properties = header.properties.0;
                self.add("flags", format!("{:#x} {properties:#x}", header.flags.0));
                if !ignore.activity {
                    self.add("activity", header.activity);
                }
                self.add_times(ignore, header.kernel_time, header.user_time);
            }
            _ => self.add("header", hex(record.bytes())),
        }
    }

    fn add_extended_items(&mut self, record: &Record<'_>, ignore: &Ignore) {
        let mut items = record.extended();
        let mut typed = record.extended();
        while let Some(RawItem { kind, data }) = items.next_raw() {
            match typed.next() {
                Some(ExtendedItem::Stack(stack)) => {
                    if !ignore.addresses {
                        let frames: Vec<_> = stack.addresses().map(|a| format!("{a:#x}")).collect();
                        self.add("stack", frames.join(" "));
                    }
                }
                Some(ExtendedItem::StackKey { .. }) if ignore.addresses => {}
                Some(ExtendedItem::RelatedActivity(_)) if ignore.activity => {}
                Some(ExtendedItem::RelatedActivity(guid)) => self.add("related_activity", guid),
                Some(ExtendedItem::ProcessStartKey(_)) if ignore.ids => {}
                // The event's name and fields show the schema as well.
                Some(ExtendedItem::EventSchema(_)) if kind == ExtendedType::EVENT_SCHEMA_TL => {
                    self.add("schema", hex(data));
                }
                _ => self.add(format!("extended {kind}"), hex(data)),
            }
        }
    }

    fn add_payload(&mut self, event: &Decoded<'_>, ignore: &Ignore) {
        let Some(mut fields) = event.fields() else {
            // A schema without fields describes no byte of the payload.
            let has_schema = event.schema().is_some();
            let name = if has_schema {
                "payload after the fields"
            } else {
                "payload"
            };
            self.add(name, hex(event.payload()));
            return;
        };
        for (field, value) in &mut fields {
            if !ignore.field(field) {
                let mut text = Vec::new();
                Renderer::new().json_value(&mut text, field, value);
                self.add(field.name.clone(), String::from_utf8_lossy(&text));
            }
        }
        let trailing = fields.note().trailing;
        if !trailing.is_empty() {
            self.add("payload after the fields", hex(trailing));
        }
    }
}
