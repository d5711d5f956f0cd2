//! What events a recording has, with an example of each, and which of them report failures.
//!
//! ```no_run
//! use etl_analysis::{Analysis, Recording};
//! use etl_events::contents::Contents;
//! use etl_schema::store::SchemaStore;
//!
//! let bytes = std::fs::read("trace.etl")?;
//! let mut recording = Recording::open([(bytes.as_slice(), "trace.etl")])?;
//! let mut contents = Contents::new(SchemaStore::default());
//! Analysis::new().run(&mut recording, &mut contents)?;
//! for (key, total) in contents.events() {
//!     let kind = contents.kind(key.kind).unwrap();
//!     println!("{} {} {}", total.count, kind.provider, kind.event);
//! }
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

use std::collections::BTreeMap;

use etl_analysis::{EventRef, Joins, Machine, Observer, ProcessIndex};
use etl_format::read::{Header, Identity, Record};
use etl_format::{Guid, Ticks, TimeRange};
use etl_schema::decode::{Fields, Value};
use etl_schema::render::{Renderer, bits, hresult, ntstatus, win32};
use etl_schema::store::SchemaStore;
use etl_schema::{EventSchema, Field, InType, OutType, providers};
use foldhash::{HashMap, HashMapExt};

use crate::event::{message, provider_name};
use crate::header_fields::HeaderFields;

/// Kinds of events that are told apart; a hostile file may contain any number.
const MAX_KINDS: usize = 1 << 14;

/// Sums that are kept: of kinds of events in processes, and of failures.
const MAX_SUMS: usize = 1 << 16;

/// Length of an example in bytes; the rest of it is left out.
const MAX_EXAMPLE: usize = 120;

/// Statuses from here on are warnings and errors, as NTSTATUS and as HRESULT.
const FIRST_FAILURE: u32 = 0x8000_0000;

/// The highest level of events that report errors: 1 is critical, 2 is error.
const LEVEL_ERROR: u8 = 2;

/// A kind of events.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct EventKind {
    /// Its provider: the name, or the GUID.
    pub provider: String,
    /// Its name, or its number in words.
    pub event: String,
    /// The level of the event: 1 critical, 2 error, 3 warning, 4 information, 5 verbose; 0 if it
    /// has none.
    pub level: u8,
    /// The message of the first event, or its fields; empty if they are not known.
    pub example: String,
    has_example: bool,
    has_status: bool,
}

/// The events of one kind in one process.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct EventKey {
    /// The number of the kind, for [`Contents::kind`].
    pub kind: usize,
    /// The process; `None` if it is not known.
    pub process: Option<ProcessIndex>,
}

/// How many events there are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct EventTotal {
    /// The number of events.
    pub count: u64,
    /// The time of the first.
    pub first: Ticks,
    /// The time of the last.
    pub last: Ticks,
}

impl EventTotal {
    fn new(time: Ticks) -> Self {
        EventTotal {
            count: 0,
            first: time,
            last: time,
        }
    }

    fn add(&mut self, time: Ticks) {
        self.count += 1;
        self.first = self.first.min(time);
        self.last = self.last.max(time);
    }

    /// Adds the events of other processes.
    #[must_use]
    pub fn and(self, other: EventTotal) -> Self {
        EventTotal {
            count: self.count.saturating_add(other.count),
            first: self.first.min(other.first),
            last: self.last.max(other.last),
        }
    }
}

/// A failure that events report.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct FailureKey {
    /// The events.
    pub events: EventKey,
    /// The field with the status code; empty if only the level of the event says that it failed.
    pub field: String,
    /// The status code; `None` if only the level says it.
    pub code: Option<u32>,
    /// The name of the code; `None` if it has none.
    pub name: Option<&'static str>,
}

/// How often a failure was reported.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct FailureTotal {
    /// The number of events, and their times.
    pub events: EventTotal,
    /// The message of the first of them, or its fields; empty if they are not known.
    pub example: String,
}

/// The kinds with one identity.
#[derive(Clone, Debug)]
enum Slot {
    One(usize),
    /// Events that describe themselves, by their names.
    Named(HashMap<Box<str>, usize>),
}

/// Counts the events of a recording by kind and process, and the failures that they report.
#[derive(Clone, Debug)]
pub struct Contents {
    range: TimeRange,
    store: SchemaStore,
    kinds: Vec<EventKind>,
    by_identity: HashMap<Identity, Slot>,
    events: HashMap<EventKey, EventTotal>,
    failures: BTreeMap<FailureKey, FailureTotal>,
    scratch: Vec<u8>,
}

impl Contents {
    /// Nothing is counted yet. `store` has the schemas that name events. The schemas of the
    /// recording itself are added.
    #[must_use]
    pub fn new(store: SchemaStore) -> Self {
        Contents {
            range: TimeRange::default(),
            store,
            kinds: Vec::new(),
            by_identity: HashMap::new(),
            events: HashMap::new(),
            failures: BTreeMap::new(),
            scratch: Vec::new(),
        }
    }

    /// Counts the events of a part of the time.
    #[must_use]
    pub fn within(self, range: TimeRange) -> Self {
        Contents { range, ..self }
    }

    /// The kind with a number.
    #[must_use]
    pub fn kind(&self, number: usize) -> Option<&EventKind> {
        self.kinds.get(number)
    }

    /// The events by kind and process, in any order.
    pub fn events(&self) -> impl Iterator<Item = (&EventKey, &EventTotal)> {
        self.events.iter()
    }

    /// The failures by their kind, process, field and code.
    pub fn failures(&self) -> impl Iterator<Item = (&FailureKey, &FailureTotal)> {
        self.failures.iter()
    }

    /// The number of the kind of a record; `None` if there are too many kinds.
    fn number(&mut self, record: &Record<'_>) -> Option<usize> {
        let identity = record.identity();
        let name = match self.by_identity.get(&identity) {
            Some(Slot::One(number)) => return Some(*number),
            Some(Slot::Named(numbers)) => {
                let schema = self.store.decoder(record)?.schema();
                if let Some(number) = numbers.get(&*schema.name) {
                    return Some(*number);
                }
                Some(schema.name.to_string())
            }
            None => self.own_name(record),
        };
        if self.kinds.len() >= MAX_KINDS {
            return None;
        }
        let number = self.kinds.len();
        let kind = self.new_kind(record);
        self.kinds.push(kind);
        match name {
            Some(name) => {
                let slot = self.by_identity.entry(identity);
                let slot = slot.or_insert_with(|| Slot::Named(HashMap::new()));
                if let Slot::Named(numbers) = slot {
                    numbers.insert(name.into(), number);
                }
            }
            None => {
                self.by_identity.insert(identity, Slot::One(number));
            }
        }
        Some(number)
    }

    /// The name of an event that describes itself.
    fn own_name(&self, record: &Record<'_>) -> Option<String> {
        let schema = self.store.decoder(record)?.schema();
        match schema.identity {
            etl_schema::Identity::SelfDescribing => Some(schema.name.to_string()),
            _ => None,
        }
    }

    fn new_kind(&self, record: &Record<'_>) -> EventKind {
        let schema = self.store.decoder(record).map(|decoder| decoder.schema());
        let mut number = String::new();
        let head = HeaderFields::of(record);
        let event = head.event_name(schema.map(|schema| &**schema), record, &mut number);
        let guid = record.provider().unwrap_or(Guid::ZERO);
        let in_record = providers::name_in_traits(record);
        let in_schema = schema.map(|schema| &*schema.provider_name);
        let provider = match provider_name(guid, in_record, &self.store) {
            Some(name) => name.to_owned(),
            None => match in_schema {
                Some(name) if !name.is_empty() => name.to_owned(),
                _ => format!("{{{guid}}}"),
            },
        };
        EventKind {
            provider,
            event: event.to_owned(),
            level: record.identity().level,
            example: String::new(),
            has_example: false,
            has_status: schema.is_some_and(|schema| has_status(schema)),
        }
    }

    /// Describes a record: its message, or its fields.
    fn describe(&mut self, machine: &Machine, record: &Record<'_>) -> String {
        let Some(fields) = self.store.fields(record) else {
            return String::new();
        };
        let schema = fields.schema();
        let time = machine.clock().time(record.timestamp());
        if let Some(text) = message(&mut self.scratch, record, schema, &fields, time) {
            return shortened(text);
        }
        self.scratch.clear();
        let mut fields = fields;
        Renderer::new().text_fields(&mut self.scratch, &mut fields);
        shortened(String::from_utf8_lossy(&self.scratch).trim())
    }

    /// Adds the failures that an event reports.
    fn add_failures(&mut self, machine: &Machine, record: &Record<'_>, key: EventKey) {
        let Some(kind) = self.kinds.get(key.kind) else {
            return;
        };
        let is_error = (1..=LEVEL_ERROR).contains(&kind.level);
        let mut failures = Vec::new();
        if kind.has_status
            && let Some(fields) = self.store.fields(record)
        {
            failures = failures_of(fields, key, is_error);
        }
        if failures.is_empty() && is_error && matches!(record.header(), Header::Event(_)) {
            failures.push(FailureKey {
                events: key,
                field: String::new(),
                code: None,
                name: None,
            });
        }
        for failure in failures {
            self.add_failure(machine, record, failure);
        }
    }

    fn add_failure(&mut self, machine: &Machine, record: &Record<'_>, key: FailureKey) {
        let time = record.timestamp();
        if let Some(total) = self.failures.get_mut(&key) {
            total.events.add(time);
        } else if self.failures.len() < MAX_SUMS {
            let example = self.describe(machine, record);
            let mut events = EventTotal::new(time);
            events.add(time);
            self.failures.insert(key, FailureTotal { events, example });
        }
    }
}

impl Observer for Contents {
    const JOINS: Joins = Joins::Nothing;

    fn record(&mut self, machine: &Machine, record: &Record<'_>, event: &EventRef) {
        self.store.learn(record);
        if !self.range.contains(event.time) {
            return;
        }
        let Some(number) = self.number(record) else {
            return;
        };
        let key = EventKey {
            kind: number,
            process: event.process,
        };
        if let Some(total) = self.events.get_mut(&key) {
            total.add(event.time);
        } else if self.events.len() < MAX_SUMS {
            let mut total = EventTotal::new(event.time);
            total.add(event.time);
            self.events.insert(key, total);
        }
        let Some(kind) = self.kinds.get(number) else {
            return;
        };
        if !kind.has_example {
            let example = self.describe(machine, record);
            if let Some(kind) = self.kinds.get_mut(number) {
                kind.has_example = true;
                kind.example = example;
            }
        }
        self.add_failures(machine, record, key);
    }

    fn restart(&mut self) {
        // What the recording says of schemas stays the same.
        self.kinds.clear();
        self.by_identity.clear();
        self.events.clear();
        self.failures.clear();
    }
}

/// A text on one line, without what is too long for an example.
fn shortened(text: &str) -> String {
    let text = text.split_whitespace().collect::<Vec<_>>().join(" ");
    let mut end = text.len().min(MAX_EXAMPLE);
    while !text.is_char_boundary(end) {
        end -= 1;
    }
    let mut short = text.get(..end).unwrap_or_default().to_owned();
    if end < text.len() {
        short.push('…');
    }
    short
}

/// Whether a schema has fields with status codes.
fn has_status(schema: &EventSchema) -> bool {
    schema
        .fields
        .iter()
        .any(|field| status_kind(field).is_some())
}

/// What kind of status codes a field has.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum StatusKind {
    NtStatus,
    HResult,
    Win32,
    /// The name of the field says that it has an error code, and nothing says of which kind.
    Any,
    /// The name of the field says that it has a status, and nothing says of which kind.
    Unknown,
}

/// What kind of status codes a field has, by its type or by its name.
fn status_kind(field: &Field) -> Option<StatusKind> {
    match field.out {
        OutType::NtStatus => return Some(StatusKind::NtStatus),
        OutType::HResult => return Some(StatusKind::HResult),
        OutType::Win32Error => return Some(StatusKind::Win32),
        _ => {}
    }
    let is_word = matches!(
        field.in_type(),
        Some(InType::Int32 | InType::UInt32 | InType::HexInt32)
    );
    if !is_word || field.map.is_some() {
        return None;
    }
    let name = field.name.to_ascii_lowercase();
    let is_code = ["win32error", "lasterror", "errorcode"]
        .iter()
        .any(|end| name.ends_with(end));
    if is_code {
        return Some(StatusKind::Any);
    }
    let is_status = ["status", "hresult", "result", "error"]
        .iter()
        .any(|end| name.ends_with(end));
    if is_status || name == "hr" {
        return Some(StatusKind::Unknown);
    }
    None
}

/// The name of a code, if it is a failure of this kind.
fn failure_name(kind: StatusKind, code: u32, is_error: bool) -> Option<Option<&'static str>> {
    match kind {
        StatusKind::Any if code != 0 && code < FIRST_FAILURE => Some(win32(code)),
        // A program has codes of its own: they are failures if the event says so.
        StatusKind::Unknown if is_error && code != 0 && code < FIRST_FAILURE => Some(None),
        StatusKind::Win32 if code != 0 => Some(win32(code)),
        StatusKind::NtStatus if code >= FIRST_FAILURE => Some(ntstatus(code)),
        StatusKind::HResult if code >= FIRST_FAILURE => Some(hresult(code)),
        // Numbers without a name may be anything.
        StatusKind::Unknown | StatusKind::Any if code >= FIRST_FAILURE => {
            hresult(code).or_else(|| ntstatus(code)).map(Some)
        }
        _ => None,
    }
}

/// The failures in the fields of an event.
fn failures_of(fields: Fields<'_>, events: EventKey, is_error: bool) -> Vec<FailureKey> {
    let mut failures = Vec::new();
    for (field, value) in fields {
        if let Some(kind) = status_kind(field)
            && let Some(code) = code_of(field, value)
            && let Some(name) = failure_name(kind, code, is_error)
        {
            failures.push(FailureKey {
                events,
                field: field.name.to_string(),
                code: Some(code),
                name,
            });
        }
    }
    failures
}

/// The status code in a field.
fn code_of(field: &Field, value: Value<'_>) -> Option<u32> {
    u32::try_from(bits(field, value)?).ok()
}
