//! An event for comparison: its identity, and everything else as named parts.

use std::borrow::Cow;
use std::collections::{BTreeMap, VecDeque};
use std::fmt::Write as _;
use std::hash::{DefaultHasher, Hash, Hasher};

use etl_events::Event as Decoded;
use etl_format::constants::ExtendedType;
use etl_format::read::{ExtendedItem, Header, RawItem, Record};
use etl_format::{Guid, ProcessId, ThreadId, Ticks};
use etl_schema::Identity;
use etl_schema::render::Renderer;

use super::change::Change;
use super::identity::{EventIdentity, ProviderIdentity};
use super::ignore::Ignore;

/// The identity that two versions of an event share.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(super) struct Key {
    pub provider: Guid,
    pub hook: Option<u16>,
    pub id: u16,
    pub opcode: u8,
    /// Of TraceLogging events, whose ids are all 0.
    pub name: Option<Cow<'static, str>>,
}

impl Key {
    pub fn of(event: &Decoded<'_>) -> Self {
        let record = event.record();
        let identity = record.identity();
        let schema = match event.schema() {
            Some(schema) if record.is_event() && identity.id == 0 => {
                Some(schema).filter(|schema| schema.identity == Identity::SelfDescribing)
            }
            _ => None,
        };
        Key {
            provider: identity.provider,
            hook: identity.hook,
            id: identity.id,
            opcode: identity.opcode,
            name: schema.map(|s| s.name.clone()),
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
    /// Whether both records are the same event: without decoding where they are the same bytes.
    pub fn is_same(&self, other: &Current<'_>) -> bool {
        let a = self.event.record();
        let b = other.event.record();
        let bytes = a.kind() == b.kind()
            && a.bytes() == b.bytes()
            && a.processor() == b.processor()
            && a.timestamp() == b.timestamp()
            && self.same_clock;
        bytes || self.to_event().is_same(&other.to_event())
    }

    /// The event, independent of the reader.
    pub fn to_event(&self) -> Event {
        Event::new(self)
    }
}

/// A named part of an event, as text.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Part {
    /// Name of a property (`time`, `process`, `stack` ...) or of a payload field.
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
    /// 100 ns since 1601, UTC.
    filetime: i64,
    /// The time in the unit of the comparison.
    compared_time: i64,
    process: Option<u32>,
    thread: Option<u32>,
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
        let filetime = decoded.time().get();
        let compared_time = if *same_clock {
            record.timestamp()
        } else {
            Ticks::new(filetime)
        };
        let mut parts = Parts(Vec::with_capacity(16));
        if !ignore.time {
            let time = decoded.time().to_string();
            parts.add(
                "time",
                if *same_clock {
                    format!("{time} ({compared_time})")
                } else {
                    time
                },
            );
        }
        let (process, thread) = (record.process_id(), record.thread_id());
        if !ignore.ids {
            parts.some("process", process);
            parts.some("thread", thread);
        }
        if !ignore.processor {
            parts.add("processor", record.processor());
        }
        parts.add("kind", record.kind());
        parts.header(record, current);
        parts.extended(record, current);
        let first_payload_part = parts.0.len();
        parts.payload(current);
        let exact = !ignore.looks_into_payloads();
        let bytes = record.payload().to_vec();
        let key = Key::of(decoded);
        let mut event = Event {
            provider: ProviderIdentity {
                guid: key.provider,
                name: decoded.provider_name().map(str::to_owned),
            },
            identity: key.identity(schema_name(decoded)),
            key,
            filetime,
            compared_time: if ignore.time { 0 } else { compared_time.get() },
            process: process.filter(|_| !ignore.ids).map(ProcessId::get),
            thread: thread.filter(|_| !ignore.ids).map(ThreadId::get),
            parts: parts.0,
            first_payload_part,
            bytes,
            exact,
            hash: 0,
        };
        event.hash = hash(&(&event.key, &event.parts, exact.then_some(&event.bytes)));
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

    /// The time in units of 100 ns since 1601, UTC.
    #[must_use]
    pub fn filetime(&self) -> i64 {
        self.filetime
    }

    /// Everything that is compared besides the identity, properties of the event first.
    #[must_use]
    pub fn parts(&self) -> &[Part] {
        &self.parts
    }

    /// The payload among the parts: its fields, or its bytes where no schema is known.
    #[must_use]
    pub fn payload(&self) -> &[Part] {
        self.parts
            .get(self.first_payload_part..)
            .unwrap_or_default()
    }

    /// The property of this name, such as `process`.
    #[must_use]
    pub fn property(&self, name: &str) -> Option<&str> {
        let properties = self
            .parts
            .get(..self.first_payload_part)
            .unwrap_or_default();
        properties
            .iter()
            .find(|part| part.name == name)
            .map(|part| part.value.as_str())
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
        let payload = self.payload();
        match level {
            0 => hash(&(&self.key, self.compared_time, self.process, self.thread)),
            1 => hash(&(&self.key, self.compared_time)),
            2 => hash(&(&self.key, payload)),
            _ => hash(&self.key),
        }
    }

    /// The parts that differ; where none does, the payload as bytes.
    pub(super) fn changes(&self, after: &Event) -> Vec<Change> {
        // Parts of one name (items of a kind, fields that share a name) are compared in order.
        let mut values = BTreeMap::<_, [VecDeque<&str>; 2]>::new();
        let mut names = Vec::new();
        for (side, event) in [self, after].into_iter().enumerate() {
            for part in &event.parts {
                if let Some(of_side) = values.entry(&part.name).or_default().get_mut(side) {
                    of_side.push_back(&part.value);
                }
                names.push(&part.name);
            }
        }
        let mut changes = Vec::new();
        for name in names {
            let Some([old, new]) = values.get_mut(name) else {
                continue;
            };
            let (before, after) = (old.pop_front(), new.pop_front());
            if before != after {
                let owned = |value: Option<&str>| value.map(str::to_owned);
                let (before, after) = (owned(before), owned(after));
                changes.push(Change {
                    name: name.to_string(),
                    before,
                    after,
                });
            }
        }
        if changes.is_empty() {
            let bytes = |event: &Event| Some(hex(&event.bytes));
            let (before, after) = (bytes(self), bytes(after));
            changes.push(Change {
                name: "payload".to_owned(),
                before,
                after,
            });
        }
        changes
    }
}

fn hash(value: &impl Hash) -> u64 {
    let mut hasher = DefaultHasher::new();
    value.hash(&mut hasher);
    hasher.finish()
}

fn hex(bytes: &[u8]) -> String {
    bytes
        .iter()
        .fold(String::with_capacity(2 * bytes.len()), |mut out, byte| {
            let _ = write!(out, "{byte:02x}");
            out
        })
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

    fn some(&mut self, name: &'static str, value: Option<impl ToString>) {
        if let Some(value) = value {
            self.add(name, value);
        }
    }

    /// The fields of the header other than identity, time, process and thread.
    fn header(&mut self, record: &Record<'_>, current: &Current<'_>) {
        let ignore = current.ignore;
        let times = |parts: &mut Parts, kernel: u32, user: u32| {
            if !ignore.time {
                parts.add("kernel_time", kernel);
                parts.add("user_time", user);
            }
        };
        match record.header() {
            Header::System(h) => {
                self.add("version", h.version);
                times(self, h.kernel_time.unwrap_or(0), h.user_time.unwrap_or(0));
            }
            Header::PerfInfo(h) => {
                self.add("version", h.version());
                self.some("pebs_index", h.pebs_index);
                let counters: Vec<String> = h.counters().map(|c| c.to_string()).collect();
                if !counters.is_empty() {
                    self.add("counters", counters.join(" "));
                }
            }
            Header::Full(h) => {
                self.add("version", h.version);
                self.add("level", h.level);
                times(self, h.kernel_time, h.user_time);
            }
            Header::Instance(h) => {
                self.add("version", h.full.version);
                self.add("level", h.full.level);
                self.add("instance", h.instance_id);
                self.add("parent_instance", h.parent_instance_id);
                self.add("parent_class", h.parent_class);
                times(self, h.full.kernel_time, h.full.user_time);
            }
            Header::Message(h) => {
                self.add("flags", format!("{:#x}", h.flags.0));
                self.some("sequence", h.sequence);
                self.some("component", h.component_id);
            }
            Header::Event(h) => {
                let d = h.descriptor;
                self.add("version", d.version);
                self.add("channel", d.channel);
                self.add("level", d.level);
                self.add("task", d.task);
                self.add("keyword", format!("{:#x}", d.keyword));
                self.add("flags", format!("{:#x} {:#x}", h.flags.0, h.properties.0));
                if !ignore.activity {
                    self.add("activity", h.activity);
                }
                times(self, h.kernel_time, h.user_time);
            }
            _ => self.add("header", hex(record.bytes())),
        }
    }

    fn extended(&mut self, record: &Record<'_>, current: &Current<'_>) {
        let ignore = current.ignore;
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

    fn payload(&mut self, current: &Current<'_>) {
        let Current { event, ignore, .. } = current;
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
