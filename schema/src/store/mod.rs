//! Lookup of the schema of a record in all sources: tables, files and the trace itself.
//!
//! Read a trace with one [`SchemaStore`]: pass each record to [`SchemaStore::learn`] first, then
//! [`SchemaStore::fields`] decodes it without allocating. Sources in order of precedence:
//!
//! 1. metadata in the event itself (TraceLogging),
//! 2. `TRACE_EVENT_INFO` records and manifests of PerfTrack that a merge added,
//! 3. manifests that `EventSource`s wrote into the trace,
//! 4. schemas from files ([`SchemaStore::add_schemas`]),
//! 5. the tables of this crate,
//! 6. the tables of the providers that Windows ships
//!    (unless [`SchemaStore::without_windows_tables`]).
//!
//! If the first source does not decode the whole payload but the next one does, the next one is
//! used.
//!
//! The description of an event may follow it in the trace. To have it in time, pass the records to
//! [`SchemasAhead`] first, in a pass ahead.
//!
//! [`StoreLimits`] bound the schemas that are learned from a trace.

mod ahead;
mod learn;

pub use ahead::SchemasAhead;

use crate::decode::{Decoder, Fields};
use crate::model::{EventSchema, Field, Identity, InType, Length, SchemaSource};
use crate::sources::eventsource::{Chunk, Reassembler};
use crate::sources::trace_event_info;
use crate::tables::{Registry, TableSet, windows};
use etl_format::constants::{EventFlags, ExtendedType, PointerSize, offset};
use etl_format::cursor::Bytes;
use etl_format::read::{Header, RawItem, Record};
use etl_format::{EventDescriptor, Guid};
// Keys from a trace are hashed with a seed, so that nobody can choose keys that collide.
use foldhash::{HashMap, HashMapExt, HashSet, HashSetExt};
use learn::{Learned, Pass, SelfDescribing};
use std::sync::Arc;

/// The event by which an `EventSource` logs its manifest.
const MANIFEST_EVENT: u16 = 0xfffe;

/// Bounds of the schemas that are learned from a trace.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct StoreLimits {
    /// Schemas from one kind of source. If there are more, the schemas of TraceLogging are dropped
    /// and learned again; other sources learn no more.
    pub schemas: usize,
    /// Bytes of the metadata from one kind of source; the same happens if there are more.
    pub bytes: usize,
    /// Fields and members of all schemas from one kind of source; the same happens if there are
    /// more. A field needs about 300 bytes of memory, although two bytes of metadata can describe
    /// it.
    pub fields: usize,
}

impl Default for StoreLimits {
    fn default() -> Self {
        StoreLimits {
            schemas: 1 << 16,
            bytes: 32 << 20,
            fields: 1 << 19,
        }
    }
}

/// Decoders by provider and identity.
type Known = HashMap<(Guid, Identity), Arc<Decoder>>;

/// Finds the schema of a record's payload.
///
/// ```
/// use etl_schema::store::SchemaStore;
/// use etl_schema::{Identity, providers};
///
/// let store = SchemaStore::new();
/// let name = store.provider_name(providers::CLR_RUNTIME);
/// assert_eq!(name, Some("Microsoft-Windows-DotNETRuntime"));
/// let start = Identity::Modern { id: 1, version: 2 };
/// let decoder = store.by_identity(providers::CLR_RUNTIME, start).ok_or("a known event")?;
/// assert_eq!(decoder.schema().name, "GCStart_V2");
/// # Ok::<(), &str>(())
/// ```
#[derive(Debug, Clone)]
pub struct SchemaStore {
    limits: StoreLimits,
    pass: Pass,
    tables: &'static Registry,
    /// Whether the tables of Windows' providers are used.
    windows: bool,
    /// Shared by clones: files may describe many thousands of events.
    given: Arc<Known>,
    self_describing: SelfDescribing,
    merged: Learned,
    maps: trace_event_info::Maps,
    /// Events whose fields wait for a map, by its provider and name.
    waiting: HashMap<(Guid, String), Vec<(Guid, Identity)>>,
    event_source: Learned,
    reassembler: Reassembler,
    provider_names: HashMap<Guid, String>,
    /// Providers with a known classic event.
    classic_providers: HashSet<Guid>,
    string_only: Decoder,
    manifest_chunk: Decoder,
}

impl Default for SchemaStore {
    fn default() -> Self {
        SchemaStore::new()
    }
}

impl SchemaStore {
    /// With all tables: of the CLR, the kernel, and Windows' providers. The tables of Windows'
    /// providers are unpacked one by one, when a trace contains events of a provider.
    #[must_use]
    pub fn new() -> Self {
        let limits = StoreLimits::default();
        let mut text = EventSchema::new(Guid::ZERO, Identity::SelfDescribing, SchemaSource::Table);
        text.fields = vec![Field::new("Message", InType::Utf16).with_length(Length::NulTerminated)];
        SchemaStore {
            limits,
            pass: Pass::Only,
            tables: Registry::builtin(),
            windows: true,
            given: Arc::default(),
            self_describing: SelfDescribing::default(),
            merged: Learned::default(),
            maps: trace_event_info::Maps::default(),
            waiting: HashMap::new(),
            event_source: Learned::default(),
            reassembler: Reassembler::new(limits.bytes),
            provider_names: HashMap::new(),
            classic_providers: HashSet::new(),
            string_only: Decoder::new(Arc::new(text)),
            manifest_chunk: Decoder::new(Arc::new(Chunk::schema())),
        }
    }

    /// With other limits. Call it before anything is learned.
    ///
    /// ```
    /// use etl_schema::store::{SchemaStore, StoreLimits};
    ///
    /// let limits = StoreLimits { schemas: 100, ..StoreLimits::default() };
    /// let store = SchemaStore::new().with_limits(limits);
    /// assert_eq!(store.learned().count(), 0);
    /// ```
    #[must_use]
    pub fn with_limits(self, limits: StoreLimits) -> Self {
        SchemaStore {
            limits,
            reassembler: Reassembler::new(limits.bytes),
            ..self
        }
    }

    /// With the CLR's tables of this set. [`SchemaStore::new`] uses the tables of the shipped
    /// runtimes.
    #[must_use]
    pub fn with_tables(mut self, profile: TableSet) -> Self {
        self.tables = Registry::of(profile);
        self
    }

    /// Without the tables of the providers that Windows ships. They describe the events of certain
    /// builds of Windows, so that a payload of another build can differ from them without an error.
    ///
    /// ```
    /// use etl_schema::{providers, store::SchemaStore};
    ///
    /// let provider = providers::find("Microsoft-Windows-DNS-Client").ok_or("a known provider")?;
    /// assert!(SchemaStore::new().provider_name(provider).is_some());
    /// assert!(SchemaStore::new().without_windows_tables().provider_name(provider).is_none());
    /// # Ok::<(), &str>(())
    /// ```
    #[must_use]
    pub fn without_windows_tables(self) -> Self {
        SchemaStore {
            windows: false,
            ..self
        }
    }

    /// Adds schemas from a file (a manifest, TMF text). Later ones replace earlier ones.
    pub fn add_schemas(&mut self, schemas: impl IntoIterator<Item = EventSchema>) {
        for mut schema in schemas {
            schema.complete_name();
            self.name_provider(schema.provider, &schema.provider_name);
            let key = (schema.provider, schema.identity);
            self.note_classic(schema.provider, schema.identity);
            let decoder = Arc::new(Decoder::new(Arc::new(schema)));
            Arc::make_mut(&mut self.given).insert(key, decoder);
        }
    }

    /// All added and learned schemas, in no particular order. Schemas of tables are not among them.
    pub fn learned(&self) -> impl Iterator<Item = &Arc<EventSchema>> {
        let self_describing = self.self_describing.by_metadata.values();
        let self_describing = self_describing.flat_map(HashMap::values).flatten();
        let merged = self.merged.decoders.values();
        let event_source = self.event_source.decoders.values();
        let decoders = self.given.values().chain(merged).chain(event_source);
        decoders
            .chain(self_describing)
            .map(|decoder| decoder.schema())
    }

    /// The name of a provider, if a schema or the tables have it.
    #[must_use]
    pub fn provider_name(&self, provider: Guid) -> Option<&str> {
        if let Some(name) = self.provider_names.get(&provider) {
            return Some(name);
        }
        if let Some(table) = self.tables.provider(provider) {
            return Some(&table.name);
        }
        if !self.windows {
            return None;
        }
        etl_providers::find(provider.to_bytes()).map(|provider| provider.name())
    }

    /// The providers with this name in the schemas of the store; case does not matter.
    pub fn providers_named(&self, name: &str) -> impl Iterator<Item = Guid> {
        let named = self
            .provider_names
            .iter()
            .filter(|(_, n)| n.eq_ignore_ascii_case(name));
        let mut guids: Vec<_> = named.map(|(guid, _)| *guid).collect();
        guids.sort_unstable();
        guids.into_iter()
    }

    /// The decoder of the tables for a provider's event; `None` if a schema was added for it.
    ///
    /// The result for an event stays the same until schemas are added.
    #[must_use]
    pub fn from_tables(&self, provider: Guid, identity: Identity) -> Option<&'static Decoder> {
        if self.given.contains_key(&(provider, identity)) {
            return None;
        }
        self.tables.decoder(provider, identity)
    }

    /// The fields of all described versions and layouts of the events of a provider that have a
    /// name: as schemas of files describe them, then as the tables do, by identity. What the trace
    /// itself describes is left out, so the result is the same for all traces.
    ///
    /// ```
    /// use etl_schema::providers::kernel_class;
    /// use etl_schema::store::SchemaStore;
    ///
    /// let store = SchemaStore::new();
    /// let layouts = store.layouts(kernel_class::IMAGE, "Load");
    /// assert!(layouts.len() > 2, "versions with further fields");
    /// ```
    #[must_use]
    pub fn layouts(&self, provider: Guid, name: &str) -> Vec<&[Field]> {
        let mut given: Vec<&EventSchema> = Vec::new();
        for ((of, _), decoder) in self.given.iter() {
            let schema = decoder.schema();
            if *of == provider && &*schema.name == name {
                given.push(schema);
            }
        }
        given.sort_unstable_by_key(|schema| schema.identity);
        let mut layouts: Vec<&[Field]> = Vec::new();
        layouts.extend(given.iter().map(|schema| schema.fields.as_slice()));
        for registry in [self.tables, Registry::classic()] {
            let Some(table) = registry.provider(provider) else {
                continue;
            };
            for event in &table.events {
                if &*event.schema.name == name {
                    layouts.push(&event.schema.fields);
                    layouts.extend(event.other_layouts.iter().map(Vec::as_slice));
                }
            }
        }
        if self.windows {
            layouts.extend(windows::layouts(provider, name));
        }
        layouts
    }

    fn registry(&self, identity: Identity) -> &'static Registry {
        match identity {
            Identity::Classic { .. } => Registry::classic(),
            _ => self.tables,
        }
    }

    /// The decoder of a record's payload. Metadata of TraceLogging events has to be learned before.
    #[must_use]
    pub fn decoder(&self, record: &Record<'_>) -> Option<&Decoder> {
        let decoder = self.first_decoder(record)?;
        let pointers = record.pointer_size().unwrap_or(PointerSize::P8);
        Some(decoder.of_payload(record.payload(), pointers))
    }

    /// The decoder of a record; the payload may have another layout of the same version.
    fn first_decoder(&self, record: &Record<'_>) -> Option<&Decoder> {
        if record.is_event() {
            return self.event(record);
        }
        match record.header() {
            Header::Message(header) => {
                let number = Identity::Message {
                    number: header.number,
                };
                self.by_identity(header.guid?, number)
            }
            Header::Full(_) | Header::Instance(_) | Header::System(_) | Header::PerfInfo(_) => {
                let id = record.identity();
                let provider = record.provider()?;
                match self.classic(record, provider, id.opcode, id.version) {
                    None if self.windows => windows::class_event(provider, id.opcode, id.version),
                    decoder => decoder,
                }
            }
            _ => None,
        }
    }

    fn event(&self, record: &Record<'_>) -> Option<&Decoder> {
        let provider = record.provider()?;
        let mut items = record.extended();
        while let Some(RawItem { kind, data }) = items.next_raw() {
            if kind == ExtendedType::EVENT_SCHEMA_TL {
                let by_metadata = self.self_describing.by_metadata.get(&provider)?;
                return by_metadata.get(data)?.as_deref();
            }
        }
        let flags = EventFlags(record.bytes().u16_at(offset::event::FLAGS)?);
        if flags.has(EventFlags::STRING_ONLY) {
            return Some(&self.string_only);
        }
        self.modern(record, provider, record.descriptor()?)
    }

    /// A manifest-based or EventSource event.
    fn modern(&self, record: &Record<'_>, provider: Guid, d: EventDescriptor) -> Option<&Decoder> {
        let identity = Identity::Modern {
            id: d.id,
            version: d.version,
        };
        let payload = record.payload();
        if d.id == MANIFEST_EVENT && Chunk::parse(payload).is_some() {
            return Some(&self.manifest_chunk);
        }
        let pointers = record.pointer_size().unwrap_or(PointerSize::P8);
        let Some(first) = self.by_identity(provider, identity) else {
            return self.windows_decoder(provider, d, payload, pointers);
        };
        if first.check(payload, pointers).is_exact() {
            return Some(first);
        }
        let sources = [
            self.learned_decoder(provider, identity),
            self.given_decoder(provider, identity),
            self.table_decoder(provider, identity),
        ];
        for decoder in sources.into_iter().flatten().skip(1) {
            if decoder.check(payload, pointers).is_exact() {
                return Some(decoder);
            }
        }
        if let Some(decoder) = self.windows_decoder(provider, d, payload, pointers)
            && decoder.check(payload, pointers).is_exact()
        {
            return Some(decoder);
        }
        Some(first)
    }

    /// The decoder in the tables of Windows' providers, if they are used.
    fn windows_decoder(
        &self,
        provider: Guid,
        d: EventDescriptor,
        payload: &[u8],
        pointers: PointerSize,
    ) -> Option<&'static Decoder> {
        if !self.windows {
            return None;
        }
        windows::decoder(provider, d.id, d.version, payload, pointers)
    }

    /// The decoder of a classic event: of its own version, or of the nearest older version if that
    /// fits the payload.
    ///
    /// Most newer versions have further fields at the end, but not all. If no layout is known to
    /// fit, the decoder has no fields.
    fn classic(
        &self,
        record: &Record<'_>,
        provider: Guid,
        opcode: u8,
        version: u16,
    ) -> Option<&Decoder> {
        // Most records of a kernel trace have no schema; without this check each of their older
        // versions would be looked up in vain.
        if !Registry::classic().has(provider)
            && (self.classic_providers.is_empty() || !self.classic_providers.contains(&provider))
        {
            return None;
        }
        let identity = Identity::Classic { opcode, version };
        if let Some(decoder) = self.by_identity(provider, identity) {
            return Some(decoder);
        }
        let mut older = (0..version.min(16)).rev().filter_map(|version| {
            let identity = Identity::Classic { opcode, version };
            Some((self.by_identity(provider, identity)?, identity))
        });
        let (nearest, identity) = older.next()?;
        let pointers = record.pointer_size().unwrap_or(PointerSize::P8);
        let note = nearest.check(record.payload(), pointers);
        if note.is_exact() {
            return Some(nearest);
        }
        // If the last two known versions differ in fields at the end only, so may the next ones.
        if !note.is_short()
            && let Some((previous, _)) = older.next()
            && nearest
                .schema()
                .fields
                .starts_with(&previous.schema().fields)
        {
            return Some(nearest);
        }
        Registry::classic().without_fields(provider, identity)
    }

    /// The decoder for a provider's event, from any source except TraceLogging metadata and the
    /// tables of Windows' providers. It need not fit every payload.
    #[must_use]
    pub fn by_identity(&self, provider: Guid, identity: Identity) -> Option<&Decoder> {
        if let Some(decoder) = self.learned_decoder(provider, identity) {
            return Some(decoder);
        }
        if let Some(decoder) = self.given_decoder(provider, identity) {
            return Some(decoder);
        }
        self.table_decoder(provider, identity)
    }

    /// The schema that the trace or a file has for a provider's event.
    #[must_use]
    pub fn learned_schema(&self, provider: Guid, identity: Identity) -> Option<&EventSchema> {
        let learned = self.learned_decoder(provider, identity);
        let decoder = learned.or_else(|| self.given_decoder(provider, identity))?;
        Some(decoder.schema())
    }

    fn learned_decoder(&self, provider: Guid, identity: Identity) -> Option<&Decoder> {
        for decoders in [&self.merged.decoders, &self.event_source.decoders] {
            // An empty map is not worth a hash of the key.
            if !decoders.is_empty()
                && let Some(decoder) = decoders.get(&(provider, identity))
            {
                return Some(decoder);
            }
        }
        None
    }

    fn given_decoder(&self, provider: Guid, identity: Identity) -> Option<&Decoder> {
        if self.given.is_empty() {
            return None;
        }
        self.given
            .get(&(provider, identity))
            .map(|decoder| &**decoder)
    }

    fn table_decoder(&self, provider: Guid, identity: Identity) -> Option<&Decoder> {
        self.registry(identity).decoder(provider, identity)
    }

    /// The fields of a record's payload, decoded with the pointer size of
    /// [`Decoder::pointers_of`]. `None` if no source describes the record.
    ///
    /// ```
    /// use etl_format::read::{Options, Order, Trace};
    /// use etl_schema::store::SchemaStore;
    /// # let bytes = etl_schema::testing::snapshot::example();
    ///
    /// let mut trace = Trace::open(bytes.as_slice(), &Options::default())?;
    /// let mut store = SchemaStore::new();
    /// let mut names = Vec::new();
    /// let mut records = trace.records(Order::Time)?;
    /// while let Some(record) = records.next_record()? {
    ///     store.learn(&record);
    ///     if let Some(fields) = store.fields(&record) {
    ///         names.push(fields.schema().name.to_string());
    ///     }
    /// }
    /// assert!(names.contains(&"AppDomainLoad_V1".to_owned()));
    /// # Ok::<(), etl_format::Error>(())
    /// ```
    #[must_use]
    pub fn fields<'a>(&'a self, record: &Record<'a>) -> Option<Fields<'a>> {
        let decoder = self.decoder(record)?;
        let pointers = decoder.pointers_of(record);
        Some(decoder.fields(record.payload(), pointers))
    }
}
