//! What is counted while a trace is read.

use std::collections::BTreeMap;
use std::collections::hash_map::Entry;

use etl_format::constants::{ExtendedType, RecordKind};
use etl_format::read::{Header, Identity, Record};
use etl_format::{Guid, Ticks};
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

/// Identities that are counted one by one; a hostile file could hold any number.
const MAX_IDENTITIES: usize = 1 << 16;

/// In place of an index.
const NONE: usize = usize::MAX;

/// First and last timestamp of some records.
pub(super) type TimeSpan = Option<(Ticks, Ticks)>;

/// What is counted while a trace is read.
pub(super) struct Counts {
    /// Records by kind.
    kinds: Vec<u64>,
    events: Vec<Kind>,
    /// Indices of these by identity, and of those of the last records by their headers.
    by_identity: HashMap<Identity, usize>,
    recent: Vec<(HeadKey, usize)>,
    /// How many lists of events there are, at most [`MAX_IDENTITIES`].
    listed: usize,
    store: SchemaStore,
    /// By the file offset of a buffer.
    pub(super) buffers: HashMap<u64, TimeSpan>,
    /// The buffer of the last record, which is not among these yet.
    buffer: (u64, TimeSpan),
    pub(super) span: TimeSpan,
    /// Records of identities beyond [`MAX_IDENTITIES`].
    uncounted: u64,
    /// Records whose extended items do not fit, and the buffer of the first one.
    broken_items: u64,
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
            buffer: (0, None),
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
        if self.buffer.0 != offset {
            self.next_buffer(offset);
        }
        extend(&mut self.buffer.1, record.timestamp());
        self.store.learn(record);
        if !filter.admits_all() && !filter.admits_with(record, context, |_| None) {
            return;
        }
        extend(&mut self.span, record.timestamp());
        if let Some(count) = self.kinds.get_mut(usize::from(record.kind().0)) {
            *count += 1;
        }
        let at = self.index_of(record);
        let Some(kind) = self.events.get_mut(at) else {
            self.uncounted += 1;
            return;
        };
        kind.count += 1;
        extend(&mut kind.span, record.timestamp());
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

    /// Keeps the span of the last buffer, and begins that of another one.
    #[cold]
    fn next_buffer(&mut self, offset: u64) {
        self.end_buffer();
        self.buffer = (offset, self.buffers.remove(&offset).flatten());
    }

    /// Keeps the span of the last buffer.
    pub(super) fn end_buffer(&mut self) {
        let (offset, span) = self.buffer;
        if span.is_some() {
            self.buffers.insert(offset, span);
        }
    }

    /// The index of the events like a record; [`NONE`] where there are too many.
    #[inline]
    fn index_of(&mut self, record: &Record<'_>) -> usize {
        let Some(key) = HeadKey::of(record) else {
            return self.find(record);
        };
        match self.recent.get(key.slot()) {
            Some(&(known, at)) if known == key && at != NONE => at,
            _ => {
                let at = self.find(record);
                if let Some(slot) = self.recent.get_mut(key.slot()) {
                    *slot = (key, at);
                }
                at
            }
        }
    }

    #[inline(never)]
    fn find(&mut self, record: &Record<'_>) -> usize {
        match self.by_identity.entry(record.identity()) {
            Entry::Occupied(e) => *e.get(),
            Entry::Vacant(_) if self.listed >= MAX_IDENTITIES => NONE,
            Entry::Vacant(e) => {
                self.listed += 1;
                self.events.push(Kind::new(record, &self.store));
                *e.insert(self.events.len() - 1)
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

    pub(super) fn problems(&self) -> impl Iterator<Item = Problem> {
        let (broken, uncounted) = (self.broken_items, self.uncounted);
        let items = format!("{broken} records hold extended items that do not fit");
        let identities = format!("{uncounted} records of further identities are not listed");
        [
            (
                broken,
                Problem::new("extended-items-broken", self.first_broken, items),
            ),
            (
                uncounted,
                Problem::new("identities-uncounted", 0, identities),
            ),
        ]
        .into_iter()
        .filter_map(|(count, problem)| (count > 0).then_some(problem))
    }
}

fn extend(span: &mut TimeSpan, timestamp: Ticks) {
    *span = Some(match *span {
        Some((first, last)) => (first.min(timestamp), last.max(timestamp)),
        None => (timestamp, timestamp),
    });
}

/// Records with the same identity.
#[derive(Debug)]
struct Kind {
    identity: Identity,
    provider: Option<String>,
    /// By what the store knows an event that does not describe itself.
    schema: Option<(Guid, etl_schema::Identity)>,
    names: Names,
    /// What the number of the event is called, for those without a name.
    number_name: String,
    count: u64,
    span: TimeSpan,
    /// Counts of events that describe themselves, by name: they share an identity.
    by_name: HashMap<String, u64>,
}

/// What an event and its task are called.
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

    /// Counts the name of a record that describes itself; returns 1 if it is one too many.
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
    use etl_schema::Identity as Of;
    let identity = record.identity();
    let of = match record.header() {
        Header::Event(h) => Of::Modern {
            id: h.descriptor.id,
            version: h.descriptor.version,
        },
        Header::Message(h) => Of::Message { number: h.number },
        _ => Of::Classic {
            opcode: identity.opcode,
            version: identity.version,
        },
    };
    Some((record.provider()?, of))
}

impl Counts {
    /// The name of a provider.
    fn provider_name(&self, identity: &Identity, kind: &Kind) -> Option<String> {
        let name = provider_name(identity.provider, kind.provider.as_deref(), &self.store);
        name.map(str::to_owned)
    }

    /// The providers with the most events first.
    pub(super) fn providers(&self, utc: Option<&dyn Fn(Ticks) -> String>) -> Vec<ProviderCount> {
        let mut spans: BTreeMap<Guid, (ProviderCount, TimeSpan)> = BTreeMap::new();
        for kind in &self.events {
            let identity = &kind.identity;
            let (provider, span) = spans.entry(identity.provider).or_insert_with(|| {
                let provider = ProviderCount {
                    provider_guid: identity.provider.to_string(),
                    provider: None,
                    kinds: 0,
                    count: 0,
                    first_event_time: None,
                    last_event_time: None,
                };
                (provider, None)
            });
            if provider.provider.is_none() {
                provider.provider = self.provider_name(identity, kind);
            }
            provider.count += kind.count;
            provider.kinds += kind.by_name.len().max(1) as u64;
            for timestamp in kind.span.iter().flat_map(|(first, last)| [*first, *last]) {
                extend(span, timestamp);
            }
        }
        let with_times = |(mut provider, span): (ProviderCount, TimeSpan)| {
            if let (Some(utc), Some((first, last))) = (utc, span) {
                provider.first_event_time = Some(utc(first));
                provider.last_event_time = Some(utc(last));
            }
            provider
        };
        let mut out: Vec<_> = spans.into_values().map(with_times).collect();
        // Equals stay in the order of their GUIDs.
        out.sort_by_key(|provider| core::cmp::Reverse(provider.count));
        out
    }

    /// The most frequent first; equals by identity, so that the order is the same every time.
    pub(super) fn events(&self) -> Vec<EventCount> {
        let mut counts = Vec::new();
        for kind in &self.events {
            let identity = &kind.identity;
            // What describes an event may follow it in the trace.
            let learned = kind
                .schema
                .and_then(|(guid, of)| self.store.learned_schema(guid, of));
            let mut names = learned.map_or_else(|| kind.names.clone(), Names::of);
            if names.event.is_empty() {
                names.event.clone_from(&kind.number_name);
            }
            let provider = self.provider_name(identity, kind);
            let mut left = kind.count;
            for (name, count) in &kind.by_name {
                left -= count;
                let names = Names {
                    event: name.clone(),
                    ..Names::default()
                };
                counts.push((identity, *count, names, provider.clone()));
            }
            if left > 0 {
                counts.push((identity, left, names, provider));
            }
        }
        counts.sort_by(|(a, n, names, _), (b, m, others, _)| {
            m.cmp(n)
                .then_with(|| a.cmp(b))
                .then_with(|| names.event.cmp(&others.event))
        });
        counts
            .into_iter()
            .map(|(i, count, names, provider)| EventCount {
                provider_guid: i.provider.to_string(),
                provider,
                event: names.event,
                hook: i.hook,
                id: i.id,
                version: i.version,
                opcode: i.opcode,
                task: i.task,
                task_name: Some(names.task).filter(|name| !name.is_empty()),
                level: i.level,
                keyword: i.keyword,
                keyword_hex: format!("{:#x}", i.keyword),
                count,
            })
            .collect()
    }
}
