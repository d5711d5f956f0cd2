//! Learning of schemas from records.

use std::sync::Arc;

use etl_format::Guid;
use etl_format::constants::{EventFlags, ExtendedType, RecordKind};
use etl_format::read::{EventHeader, Header, RawItem, Record};
// Keys of the trace are hashed with a seed.
use foldhash::HashMap;

use super::{Known, MANIFEST_EVENT, SchemaStore, StoreLimits};
use crate::decode::Decoder;
use crate::model::{EventSchema, Field, FieldKind, Identity};
use crate::providers::{EVENT_METADATA, PERFTRACK_METADATA};
use crate::sources::eventsource::Chunk;
use crate::sources::trace_event_info::{self, ProviderMap};
use crate::sources::tracelogging::{self, ProviderTraits};
use crate::sources::{manifest, perftrack};

/// Opcodes of the events of [`EVENT_METADATA`]: `TRACE_EVENT_INFO` and maps.
const EVENT_INFO: u8 = 32;
const MAP_INFO: u8 = 33;

/// Schemas learned from one kind of source, and their share of its limits.
#[derive(Debug, Clone, Default)]
pub(super) struct Learned {
    pub decoders: Known,
    pub bytes: usize,
    fields: usize,
}

impl Learned {
    /// Adds or replaces a schema; `false` when the limits are reached.
    fn insert(&mut self, schema: EventSchema, limits: &StoreLimits) -> bool {
        let key = (schema.provider, schema.identity);
        let before = self.decoders.get(&key).map(|d| weight(&d.schema().fields));
        let fields = self.fields.saturating_sub(before.unwrap_or(0));
        let fields = fields.saturating_add(weight(&schema.fields));
        let is_full = before.is_none() && self.decoders.len() >= limits.schemas;
        if is_full || fields > limits.fields {
            return false;
        }
        self.fields = fields;
        self.decoders
            .insert(key, Arc::new(Decoder::new(Arc::new(schema))));
        true
    }
}

/// Which pass over the records of a trace the store learns from.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) enum Pass {
    /// The only one: the description of an event is used for the records after it.
    #[default]
    Only,
    /// One ahead: see [`SchemasAhead`](super::SchemasAhead).
    Ahead,
    /// The one after it.
    Again,
}

/// Decoders by metadata.
pub(super) type ByMetadata = HashMap<Box<[u8]>, Option<Arc<Decoder>>>;

/// Decoders of self-describing events, by their metadata.
#[derive(Debug, Clone, Default)]
pub(super) struct SelfDescribing {
    /// `None` for metadata that cannot be read, so that they are not tried again.
    pub by_metadata: HashMap<Guid, ByMetadata>,
    schemas: usize,
    bytes: usize,
    fields: usize,
}

/// Maps of one event that may follow it in the trace.
const LATE_MAPS: usize = 64;

/// Fields and members.
fn weight(fields: &[Field]) -> usize {
    let mut count = fields.len();
    for field in fields {
        if let FieldKind::Struct(members) = &field.kind {
            count = count.saturating_add(weight(members));
        }
    }
    count
}

/// Adds the names of the maps of fields that are still missing, up to [`LATE_MAPS`].
fn missing_maps(fields: &[Field], out: &mut Vec<String>) {
    for field in fields {
        match (&field.kind, &field.map) {
            _ if out.len() >= LATE_MAPS => return,
            (FieldKind::Struct(members), _) => missing_maps(members, out),
            (FieldKind::Value(_), Some(map))
                if map.entries().is_empty() && !out.iter().any(|name| name == map.name()) =>
            {
                out.push(map.name().to_owned());
            }
            _ => {}
        }
    }
}

/// Whether an event carries its schema, or the name of its provider.
#[inline]
fn describes_itself(record: &Record<'_>) -> bool {
    let mut items = record.extended();
    core::iter::from_fn(|| items.next_raw()).any(|RawItem { kind, .. }| {
        kind == ExtendedType::EVENT_SCHEMA_TL || kind == ExtendedType::PROV_TRAITS
    })
}

impl SchemaStore {
    /// Learns the schemas that a record contains. Cheap for records without schemas.
    #[inline]
    pub fn learn(&mut self, record: &Record<'_>) {
        // Nearly all records have no schemas.
        if !self.may_learn(record) {
            return;
        }
        match record.header() {
            Header::Event(header) => self.learn_event(&header, record),
            Header::Full(header) if header.class == EVENT_METADATA => {
                self.learn_merged(header.opcode, record);
            }
            Header::Full(header)
                if header.class == PERFTRACK_METADATA
                    && perftrack::OPCODES.contains(&header.opcode) =>
            {
                self.learn_manifest(record);
            }
            _ => {}
        }
    }

    /// Whether [`SchemaStore::learn`] may learn something from a record. Other records need not be
    /// passed to it: stores that learn from the same remaining records, in order, know the same.
    #[must_use]
    #[inline]
    pub fn may_learn(&self, record: &Record<'_>) -> bool {
        if let Some(descriptor) = record.descriptor() {
            return descriptor.id == MANIFEST_EVENT || describes_itself(record);
        }
        let classic = matches!(record.kind(), RecordKind::FULL32 | RecordKind::FULL64);
        classic && matches!(record.provider(), Some(EVENT_METADATA | PERFTRACK_METADATA))
    }

    /// As [`SchemaStore::learn`], for an EVENT record whose header has been read already.
    #[inline]
    pub fn learn_event(&mut self, header: &EventHeader, record: &Record<'_>) {
        if header.descriptor.id == MANIFEST_EVENT {
            self.learn_event_source(header.provider, header.process_id.get(), record.payload());
        }
        if header.flags.has(EventFlags::EXTENDED_INFO) {
            self.learn_metadata(header.provider, record);
        }
    }

    pub(super) fn note_classic(&mut self, provider: Guid, identity: Identity) {
        if matches!(identity, Identity::Classic { .. }) {
            self.classic_providers.insert(provider);
        }
    }

    pub(super) fn name_provider(&mut self, provider: Guid, name: &str) {
        if !name.is_empty()
            && self.provider_names.len() < self.limits.schemas
            && !self.provider_names.contains_key(&provider)
        {
            self.provider_names.insert(provider, name.to_owned());
        }
    }

    fn learn_metadata(&mut self, provider: Guid, record: &Record<'_>) {
        let mut items = record.extended();
        let mut metadata = None;
        let mut traits = None;
        while let Some(RawItem { kind, data }) = items.next_raw() {
            match kind {
                ExtendedType::EVENT_SCHEMA_TL => metadata = Some(data),
                ExtendedType::PROV_TRAITS => traits = Some(data),
                _ => {}
            }
        }
        if let Some(data) = traits
            && !self.provider_names.contains_key(&provider)
            && let Some(traits) = ProviderTraits::parse(data)
        {
            self.name_provider(provider, &traits.name);
        }
        // An event contains its metadata, so there is no need to learn it in a pass ahead.
        let Some(metadata) = metadata.filter(|_| self.pass != Pass::Ahead) else {
            return;
        };
        let learned = &mut self.self_describing;
        if learned
            .by_metadata
            .get(&provider)
            .is_some_and(|m| m.contains_key(metadata))
        {
            return;
        }
        let parsed = tracelogging::parse(provider, metadata).ok();
        let fields = parsed.as_ref().map_or(0, |schema| weight(&schema.fields));
        if learned.schemas >= self.limits.schemas
            || learned.bytes.saturating_add(metadata.len()) > self.limits.bytes
            || learned.fields.saturating_add(fields) > self.limits.fields
        {
            *learned = SelfDescribing::default();
        }
        learned.schemas += 1;
        learned.bytes = learned.bytes.saturating_add(metadata.len());
        learned.fields = learned.fields.saturating_add(fields);
        let decoder = parsed.map(|mut schema| {
            if let Some(name) = self.provider_names.get(&provider) {
                schema.provider_name = name.clone().into();
            }
            Arc::new(Decoder::new(Arc::new(schema)))
        });
        learned
            .by_metadata
            .entry(provider)
            .or_default()
            .insert(metadata.into(), decoder);
    }

    fn learn_event_source(&mut self, provider: Guid, process: u32, payload: &[u8]) {
        let Some(chunk) = Chunk::parse(payload) else {
            return;
        };
        let Some(text) = self.reassembler.add(provider, process, chunk) else {
            return;
        };
        // Events of a manifest that cannot be read stay without a schema.
        let Ok(schemas) = manifest::parse_lenient(&text) else {
            return;
        };
        for mut schema in schemas {
            // The GUID in the records is the right one, even if the manifest states another.
            schema.provider = provider;
            schema.complete_name();
            let name = schema.provider_name.clone();
            let key = (provider, schema.identity);
            if self.pass == Pass::Ahead && self.event_source.decoders.contains_key(&key) {
                continue;
            }
            // Two versions of a source can alternate; each replaces the other.
            if !self.event_source.insert(schema, &self.limits) {
                return;
            }
            self.name_provider(provider, &name);
        }
    }

    /// Names an event as the tables do, if they have it, so that its name does not depend on the
    /// source of its schema.
    fn name_as_tables_do(&self, schema: &mut EventSchema) {
        let event = self
            .registry(schema.identity)
            .event(schema.provider, schema.identity);
        if let Some(event) = event {
            schema.name = event.schema.name.clone();
        }
    }

    /// The manifest in an event of PerfTrack. Descriptions of single events are preferred.
    fn learn_manifest(&mut self, record: &Record<'_>) {
        let payload = record.payload();
        let bytes = self.merged.bytes.saturating_add(payload.len());
        if self.pass == Pass::Again || bytes > self.limits.bytes {
            return;
        }
        self.merged.bytes = bytes;
        for mut schema in perftrack::parse(payload) {
            self.name_as_tables_do(&mut schema);
            self.name_provider(schema.provider, &schema.provider_name);
            let key = (schema.provider, schema.identity);
            if !self.merged.decoders.contains_key(&key) && !self.merged.insert(schema, &self.limits)
            {
                return;
            }
        }
    }

    fn learn_merged(&mut self, opcode: u8, record: &Record<'_>) {
        // The first description of an event is used, and the pass ahead has learned all of them.
        if self.pass == Pass::Again {
            return;
        }
        let payload = record.payload();
        let merged = &mut self.merged;
        if merged.decoders.len() >= self.limits.schemas
            || merged.bytes.saturating_add(payload.len()) > self.limits.bytes
        {
            return;
        }
        merged.bytes += payload.len();
        match opcode {
            EVENT_INFO => {
                let Ok(mut info) = trace_event_info::parse(payload, &self.maps) else {
                    return;
                };
                self.name_as_tables_do(&mut info);
                self.name_provider(info.provider, &info.provider_name);
                let key = (info.provider, info.identity);
                self.note_classic(info.provider, info.identity);
                let mut missing = Vec::new();
                missing_maps(&info.fields, &mut missing);
                if self.merged.decoders.contains_key(&key)
                    || !self.merged.insert(info, &self.limits)
                {
                    return;
                }
                for name in missing {
                    self.waiting.entry((key.0, name)).or_default().push(key);
                }
            }
            MAP_INFO => {
                let Some(ProviderMap { provider, map }) = self.maps.add(payload) else {
                    return;
                };
                // Maps come after the events that use them.
                let waiting = self.waiting.remove(&(provider, map.name().to_owned()));
                for key in waiting.into_iter().flatten() {
                    let Some(decoder) = self.merged.decoders.get_mut(&key) else {
                        continue;
                    };
                    let mut schema = EventSchema::clone(decoder.schema());
                    trace_event_info::attach(&mut schema, &map);
                    *decoder = Arc::new(Decoder::new(Arc::new(schema)));
                }
            }
            _ => {}
        }
    }
}
