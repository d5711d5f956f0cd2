//! What is counted while a trace is read.

use core::cmp::{Ordering, Reverse};
use std::collections::BTreeMap;
use std::collections::hash_map::Entry;

use etl_format::constants::{ExtendedType, RecordKind};
use etl_format::read::{Header, Identity, Record};
use etl_format::{Clock, Guid, Ticks};
use etl_schema::store::SchemaStore;
use etl_schema::{EventSchema, providers};
use foldhash::{HashMap, HashMapExt};

use super::{EventCount, ProviderCount};
use crate::context::Context;
use crate::event::provider_name;
use crate::filter::Filter;
use crate::head_key::HeadKey;
use crate::header_fields::HeaderFields;
use crate::problem::Problem;

/// The number of identities that are counted: a hostile file may contain any number.
const MAX_IDENTITIES: usize = 1 << 16;

/// The index of no events.
const NONE: usize = usize::MAX;

/// First and last timestamp of some records.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct TimeSpan {
    pub first: Ticks,
    pub last: Ticks,
}

impl TimeSpan {
    /// Extends a span by a timestamp.
    #[inline]
    fn extend(span: &mut Option<TimeSpan>, timestamp: Ticks) {
        *span = Some(match *span {
            Some(span) => TimeSpan {
                first: span.first.min(timestamp),
                last: span.last.max(timestamp),
            },
            None => TimeSpan {
                first: timestamp,
                last: timestamp,
            },
        });
    }
}

/// A buffer whose records are read now.
#[derive(Clone, Copy, Debug, Default)]
struct Buffer {
    /// File offset.
    offset: u64,
    span: Option<TimeSpan>,
}

/// What is counted while a trace is read.
pub(super) struct Counts {
    /// Records by kind.
    kinds: Vec<u64>,
    events: Vec<Kind>,
    /// Indices in `events`.
    by_identity: HashMap<Identity, usize>,
    /// Indices in `events` of the last records, by their headers.
    recent: Vec<(HeadKey, usize)>,
    /// The number of identities and of names of events that describe themselves, at most
    /// [`MAX_IDENTITIES`].
    listed: usize,
    store: SchemaStore,
    /// The times of the records in buffers, by the file offset of the buffer.
    pub(super) buffers: HashMap<u64, TimeSpan>,
    /// The buffer of the last record, which is not in `buffers` yet.
    buffer: Buffer,
    pub(super) span: Option<TimeSpan>,
    /// Records of identities beyond [`MAX_IDENTITIES`].
    uncounted: u64,
    /// Records whose extended items do not fit.
    broken_items: u64,
    /// The file offset of the buffer of the first such record.
    first_broken: u64,
}

impl Counts {
    /// Counts of nothing yet. `store` names the events.
    pub(super) fn new(store: SchemaStore) -> Self {
        Counts {
            kinds: vec![0; 1 << u8::BITS],
            events: Vec::new(),
            by_identity: HashMap::new(),
            recent: vec![(HeadKey::default(), NONE); HeadKey::SLOTS],
            listed: 0,
            store,
            buffers: HashMap::new(),
            buffer: Buffer::default(),
            span: None,
            uncounted: 0,
            broken_items: 0,
            first_broken: 0,
        }
    }

    #[inline]
    pub(super) fn add(
        &mut self,
        record: &Record<'_>,
        filter: &Filter,
        context: Option<&Context<'_>>,
    ) {
        let offset = record.location().buffer_offset;
        if self.buffer.offset != offset {
            self.next_buffer(offset);
        }
        TimeSpan::extend(&mut self.buffer.span, record.timestamp());
        self.store.learn(record);
        if !filter.admits_all() && !filter.admits_with(record, context, |_| None) {
            return;
        }
        TimeSpan::extend(&mut self.span, record.timestamp());
        if let Some(count) = self.kinds.get_mut(usize::from(record.kind().0)) {
            *count += 1;
        }
        let index = self.index_of(record);
        let Some(kind) = self.events.get_mut(index) else {
            self.uncounted += 1;
            return;
        };
        kind.count += 1;
        TimeSpan::extend(&mut kind.span, record.timestamp());
        let mut items = record.extended();
        if items.next_raw().is_some() {
            self.uncounted += kind.add_named(record, &self.store, &mut self.listed);
            while items.next_raw().is_some() {}
        }
        if items.is_broken() {
            if self.broken_items == 0 {
                self.first_broken = offset;
            }
            self.broken_items += 1;
        }
    }

    /// Keeps the span of the last buffer, and begins or continues another buffer.
    #[cold]
    fn next_buffer(&mut self, offset: u64) {
        self.end_buffer();
        self.buffer = Buffer {
            offset,
            span: self.buffers.remove(&offset),
        };
    }

    /// Keeps the span of the last buffer.
    pub(super) fn end_buffer(&mut self) {
        if let Some(span) = self.buffer.span {
            self.buffers.insert(self.buffer.offset, span);
        }
    }

    /// The index of the events like a record; [`NONE`] if there are too many.
    #[inline]
    fn index_of(&mut self, record: &Record<'_>) -> usize {
        let Some(key) = HeadKey::of(record) else {
            return self.find(record);
        };
        match self.recent.get(key.slot()) {
            Some(&(recent, index)) if recent == key && index != NONE => index,
            _ => {
                let index = self.find(record);
                if let Some(slot) = self.recent.get_mut(key.slot()) {
                    *slot = (key, index);
                }
                index
            }
        }
    }

    #[inline(never)]
    fn find(&mut self, record: &Record<'_>) -> usize {
        match self.by_identity.entry(record.identity()) {
            Entry::Occupied(entry) => *entry.get(),
            Entry::Vacant(_) if self.listed >= MAX_IDENTITIES => NONE,
            Entry::Vacant(entry) => {
                self.listed += 1;
                self.events.push(Kind::new(record, &self.store));
                *entry.insert(self.events.len() - 1)
            }
        }
    }

    /// Records by kind.
    pub(super) fn kinds(&self) -> impl Iterator<Item = (RecordKind, u64)> {
        let counts = self.kinds.iter().zip(0..=u8::MAX);
        counts
            .filter(|(count, _)| **count > 0)
            .map(|(count, kind)| (RecordKind(kind), *count))
    }

    pub(super) fn problems(&self) -> Vec<Problem> {
        let mut problems = Vec::new();
        let broken = self.broken_items;
        if broken > 0 {
            let message = format!("{broken} records hold extended items that do not fit");
            let code = "extended-items-broken";
            problems.push(Problem::new(code, self.first_broken, message));
        }
        let uncounted = self.uncounted;
        if uncounted > 0 {
            let message = format!("{uncounted} records of further identities are not listed");
            problems.push(Problem::new("identities-uncounted", 0, message));
        }
        problems
    }
}

/// Records with the same identity.
#[derive(Debug)]
struct Kind {
    identity: Identity,
    provider: Option<String>,
    /// The identity of its schema in the store, if it does not describe itself.
    schema: Option<(Guid, etl_schema::Identity)>,
    names: Names,
    /// The number of the event in words, if it has no name.
    number_name: String,
    count: u64,
    span: Option<TimeSpan>,
    /// Counts of events that describe themselves, by name: they share an identity.
    by_name: HashMap<String, u64>,
}

/// The names of an event and its task.
#[derive(Clone, Debug, Default)]
struct Names {
    event: String,
    task: String,
}

impl Names {
    fn of(schema: &EventSchema) -> Self {
        Names {
            event: schema.name.to_string(),
            task: schema.task.name.to_string(),
        }
    }
}

impl Kind {
    fn new(record: &Record<'_>, store: &SchemaStore) -> Self {
        let mut number_name = String::new();
        HeaderFields::of(record).event_name(None, record, &mut number_name);
        let names = store
            .decoder(record)
            .map(|decoder| Names::of(decoder.schema()));
        Kind {
            identity: record.identity(),
            provider: providers::name_in_traits(record).map(str::to_owned),
            schema: schema_identity(record),
            names: names.unwrap_or_default(),
            number_name,
            count: 0,
            span: None,
            by_name: HashMap::new(),
        }
    }

    /// Counts the name of a record that describes itself. Returns the number of records that are
    /// not counted because there are too many names: 0 or 1.
    fn add_named(&mut self, record: &Record<'_>, store: &SchemaStore, listed: &mut usize) -> u64 {
        if !has_own_schema(record) {
            return 0;
        }
        let Some(decoder) = store.decoder(record) else {
            return 0;
        };
        let name = match &*decoder.schema().name {
            "" => &self.number_name,
            name => name,
        };
        if let Some(count) = self.by_name.get_mut(name) {
            *count += 1;
        } else if *listed < MAX_IDENTITIES {
            *listed += 1;
            self.by_name.insert(name.to_owned(), 1);
        } else {
            return 1;
        }
        0
    }
}

/// Whether an event carries its own schema (TraceLogging).
fn has_own_schema(record: &Record<'_>) -> bool {
    let mut items = record.extended();
    core::iter::from_fn(|| items.next_raw()).any(|item| item.kind == ExtendedType::EVENT_SCHEMA_TL)
}

/// The identity by which a schema of the trace or of a file describes an event.
fn schema_identity(record: &Record<'_>) -> Option<(Guid, etl_schema::Identity)> {
    let identity = record.identity();
    let schema = match record.header() {
        Header::Event(header) => etl_schema::Identity::Modern {
            id: header.descriptor.id,
            version: header.descriptor.version,
        },
        Header::Message(header) => etl_schema::Identity::Message {
            number: header.number,
        },
        _ => etl_schema::Identity::Classic {
            opcode: identity.opcode,
            version: identity.version,
        },
    };
    Some((record.provider()?, schema))
}

/// The events of a provider, and when they occur.
struct ProviderEvents {
    counts: ProviderCount,
    span: Option<TimeSpan>,
}

impl ProviderEvents {
    fn new(provider: Guid) -> Self {
        ProviderEvents {
            counts: ProviderCount {
                provider_guid: provider.to_string(),
                provider: None,
                kinds: 0,
                count: 0,
                first_event_time: None,
                last_event_time: None,
            },
            span: None,
        }
    }

    /// The counts with the times of the first and the last event.
    fn finish(self, clock: Option<&Clock>) -> ProviderCount {
        let mut counts = self.counts;
        if let Some(clock) = clock
            && let Some(span) = self.span
        {
            counts.first_event_time = Some(clock.time(span.first).to_string());
            counts.last_event_time = Some(clock.time(span.last).to_string());
        }
        counts
    }
}

/// The count of an event, with its names.
struct CountedEvent<'k> {
    identity: &'k Identity,
    provider: Option<String>,
    names: Names,
    count: u64,
}

impl CountedEvent<'_> {
    /// The most frequent first; equals by identity, so that the order is the same every time.
    fn order(&self, other: &Self) -> Ordering {
        let by_count = other.count.cmp(&self.count);
        by_count
            .then_with(|| self.identity.cmp(other.identity))
            .then_with(|| self.names.event.cmp(&other.names.event))
    }

    fn into_count(self) -> EventCount {
        let identity = self.identity;
        let task = self.names.task;
        EventCount {
            provider_guid: identity.provider.to_string(),
            provider: self.provider,
            event: self.names.event,
            hook: identity.hook,
            id: identity.id,
            version: identity.version,
            opcode: identity.opcode,
            task: identity.task,
            task_name: if task.is_empty() { None } else { Some(task) },
            level: identity.level,
            keyword: identity.keyword,
            keyword_hex: format!("{:#x}", identity.keyword),
            count: self.count,
        }
    }
}

impl Counts {
    /// The name of a provider.
    fn provider_name(&self, identity: &Identity, kind: &Kind) -> Option<String> {
        let name = provider_name(identity.provider, kind.provider.as_deref(), &self.store);
        name.map(str::to_owned)
    }

    /// The providers, the one with the most events first. Without a clock they have no times.
    pub(super) fn providers(&self, clock: Option<&Clock>) -> Vec<ProviderCount> {
        let mut providers: BTreeMap<Guid, ProviderEvents> = BTreeMap::new();
        for kind in &self.events {
            let identity = &kind.identity;
            let events = providers
                .entry(identity.provider)
                .or_insert_with(|| ProviderEvents::new(identity.provider));
            if events.counts.provider.is_none() {
                events.counts.provider = self.provider_name(identity, kind);
            }
            events.counts.count += kind.count;
            events.counts.kinds += kind.by_name.len().max(1) as u64;
            if let Some(span) = kind.span {
                TimeSpan::extend(&mut events.span, span.first);
                TimeSpan::extend(&mut events.span, span.last);
            }
        }
        let mut out = Vec::new();
        for events in providers.into_values() {
            out.push(events.finish(clock));
        }
        // Equals stay in the order of their GUIDs.
        out.sort_by_key(|provider| Reverse(provider.count));
        out
    }

    /// The events, the most frequent first.
    pub(super) fn events(&self) -> Vec<EventCount> {
        let mut events = Vec::new();
        for kind in &self.events {
            let provider = self.provider_name(&kind.identity, kind);
            let mut unnamed = kind.count;
            for (name, count) in &kind.by_name {
                unnamed -= count;
                events.push(CountedEvent {
                    identity: &kind.identity,
                    provider: provider.clone(),
                    names: Names {
                        event: name.clone(),
                        ..Names::default()
                    },
                    count: *count,
                });
            }
            if unnamed > 0 {
                events.push(CountedEvent {
                    identity: &kind.identity,
                    provider,
                    names: self.names(kind),
                    count: unnamed,
                });
            }
        }
        events.sort_by(CountedEvent::order);
        events.into_iter().map(CountedEvent::into_count).collect()
    }

    /// The names of an event that does not describe itself. Its description may follow it in the
    /// trace.
    fn names(&self, kind: &Kind) -> Names {
        let mut names = kind.names.clone();
        if let Some((provider, identity)) = kind.schema
            && let Some(schema) = self.store.learned_schema(provider, identity)
        {
            names = Names::of(schema);
        }
        if names.event.is_empty() {
            names.event.clone_from(&kind.number_name);
        }
        names
    }
}
