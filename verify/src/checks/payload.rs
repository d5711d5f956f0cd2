//! Checks payloads against the layouts of their events.

use std::collections::BTreeMap;

use etl_analysis::machine::Counted;
use etl_format::constants::PointerSize;
use etl_format::read::{EventHeader, Record};
use etl_format::{EventDescriptor, Guid, Ticks};
use etl_schema::Identity;
use etl_schema::decode::Decoder;
use etl_schema::store::SchemaStore;
use etl_schema::tables::{OlderEvent, Registry, TableSet};
use etl_schema::views::clr::ClrProvider;

use super::sizes;
pub(crate) use super::sizes::EventId;

/// The layout of all events with the same provider and descriptor.
#[derive(Clone, Copy, Debug)]
pub(super) struct Layout {
    /// Decodes payloads by the tables; `None` if the tables do not have the event.
    pub decoder: Option<&'static Decoder>,
    /// Whether [`sizes`] checks the payloads.
    pub sized_elsewhere: bool,
    /// Whether it is an event of the CLR with another level or other keywords than in the tables.
    pub wrong_descriptor: bool,
    /// Whether the tables have any version of the event.
    other_version: bool,
}

/// Counts of payloads that do not fit the layouts of their events.
#[derive(Debug, Default)]
pub struct Payloads {
    /// Payloads that end before their last field.
    pub short: BTreeMap<EventId, Counted>,
    /// Payloads with bytes after their last field.
    pub long: BTreeMap<EventId, Counted>,
    /// Payloads with whole records after their last field. They are in `long` as well.
    pub hiding: BTreeMap<EventId, Counted>,
    /// Events whose version is not in the tables, which have other versions of them.
    pub unknown_version: BTreeMap<EventId, Counted>,
    /// Events of the CLR whose level or keywords differ from the tables.
    pub descriptor: BTreeMap<EventId, Counted>,
    store: SchemaStore,
    tables: TableSet,
}

impl Payloads {
    /// Kinds of events that are kept in each list.
    const MAX_KINDS: usize = 1 << 12;

    /// Compares with these tables.
    #[must_use]
    pub fn new(tables: TableSet) -> Self {
        let store = SchemaStore::default()
            .without_windows_tables()
            .with_tables(tables);
        Payloads {
            store,
            tables,
            ..Payloads::default()
        }
    }

    /// Adds the schemas that a record contains.
    #[inline(never)]
    pub fn learn(&mut self, record: &Record<'_>) {
        self.store.learn(record);
    }

    /// Adds an event with its layout.
    pub(super) fn event(
        &mut self,
        record: &Record<'_>,
        header: &EventHeader,
        layout: &Layout,
        timestamp: Ticks,
    ) {
        self.store.learn_event(header, record);
        let provider = header.provider;
        let descriptor = header.descriptor;
        let id = EventId::new(provider, descriptor.id, descriptor.version);
        let decoder;
        let wrong_descriptor;
        if let Some(from_tables) = layout.decoder
            && header.has_manifest_layout()
        {
            let pointers = record.pointer_size().unwrap_or(PointerSize::P8);
            decoder = from_tables.of_payload(record.payload(), pointers);
            wrong_descriptor = layout.wrong_descriptor;
        } else if let Some(from_store) = self.store.decoder(record) {
            decoder = from_store;
            wrong_descriptor = self.is_wrong_descriptor(provider, descriptor, from_store);
        } else {
            if layout.other_version {
                count(&mut self.unknown_version, id, timestamp);
            }
            return;
        }
        if wrong_descriptor {
            count(&mut self.descriptor, id, timestamp);
        }
        if layout.sized_elsewhere && header.has_manifest_layout() {
            return;
        }
        let payload = record.payload();
        let pointers = record.pointer_size().unwrap_or(PointerSize::P8);
        if decoder.fixed_size(pointers) == Some(payload.len()) {
            return;
        }
        let note = decoder.check(payload, pointers);
        if note.is_short() {
            count(&mut self.short, id, timestamp);
        } else if !note.is_exact() {
            self.add_long(record, id, timestamp);
        }
    }

    /// Adds an event of the kernel or of a class, which has no manifest.
    ///
    /// Only layouts of its own version are compared: later versions have further fields.
    #[inline(never)]
    pub(super) fn classic(&mut self, record: &Record<'_>, timestamp: Ticks) -> Fit {
        let Some(decoder) = self.store.decoder(record) else {
            return Fit::Always;
        };
        let identity = record.identity();
        let own = Identity::Classic {
            opcode: identity.opcode,
            version: identity.version,
        };
        let schema = decoder.schema();
        if schema.identity != own || schema.fields.is_empty() {
            return Fit::Always;
        }
        let payload = record.payload();
        let pointers = decoder.pointers_of(record);
        if decoder.fixed_size(pointers) == Some(payload.len()) {
            return Fit::Always;
        }
        let note = decoder.check(payload, pointers);
        // A short payload says little: some old versions of Windows leave out the last fields.
        if note.trailing.len() >= MIN_SURPLUS {
            let id = EventId::of_class(schema.provider, identity.opcode, identity.version);
            self.add_long(record, id, timestamp);
        }
        Fit::ThisRecord
    }

    /// Adds a payload with bytes after its last field.
    fn add_long(&mut self, record: &Record<'_>, id: EventId, timestamp: Ticks) {
        count(&mut self.long, id, timestamp);
        if record.hides_records() {
            count(&mut self.hiding, id, timestamp);
        }
    }

    /// Whether payloads are compared with the tables of the shipped runtimes.
    pub(super) fn is_as_shipped(&self) -> bool {
        self.tables == TableSet::Shipped
    }

    /// The layout of an event, which all events of its kind have.
    pub(super) fn layout(&self, provider: Guid, descriptor: EventDescriptor) -> Layout {
        let mut layout = Layout {
            decoder: self.store.from_tables(provider, identity(descriptor)),
            sized_elsewhere: false,
            wrong_descriptor: false,
            other_version: self.has_any_version(provider, descriptor.id),
        };
        if let Some(decoder) = layout.decoder {
            layout.sized_elsewhere = sizes::is_checked_here(provider, descriptor.id, decoder);
            layout.wrong_descriptor = self.is_wrong_descriptor(provider, descriptor, decoder);
        }
        layout
    }

    /// Whether an event is an event of the CLR with an opcode, a level or keywords that neither its
    /// schema nor an older runtime has.
    fn is_wrong_descriptor(
        &self,
        provider: Guid,
        descriptor: EventDescriptor,
        decoder: &Decoder,
    ) -> bool {
        if ClrProvider::from_guid(provider).is_none() {
            return false;
        }
        let schema = decoder.schema();
        let is_as_in_schema =
            schema.level.value == descriptor.level && schema.keywords == keywords(descriptor);
        let has_level = is_as_in_schema || self.is_of_older_runtime(provider, descriptor);
        !has_level || schema.opcode.value != descriptor.opcode
    }

    /// Whether the tables have any version of an event.
    fn has_any_version(&self, provider: Guid, id: u16) -> bool {
        let Some(provider) = Registry::of(self.tables).provider(provider) else {
            return false;
        };
        provider.events.iter().any(|event| {
            matches!(event.schema.identity, Identity::Modern { id: other, .. } if other == id)
        })
    }

    /// Whether an older runtime has this level and these keywords for the event.
    fn is_of_older_runtime(&self, provider: Guid, descriptor: EventDescriptor) -> bool {
        let event = Registry::of(self.tables).event(provider, identity(descriptor));
        let older = OlderEvent {
            level: descriptor.level,
            keywords: keywords(descriptor),
        };
        event.is_some_and(|event| event.older == Some(older))
    }

    /// Adds the payloads that [`sizes`] checked.
    pub(super) fn add(&mut self, mut sizes: sizes::Sizes) {
        self.short.append(&mut sizes.short);
        self.long.append(&mut sizes.long);
    }

    /// The schemas.
    #[must_use]
    pub fn store(&self) -> &SchemaStore {
        &self.store
    }
}

/// Which records a comparison with a layout is valid for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Fit {
    /// All records of the kind and size: they fit, or their layout is not known.
    Always,
    /// This one.
    ThisRecord,
}

/// Bytes after the last field of an event without a manifest from which on it is too long. Fewer
/// bytes bring the record to a multiple of 8.
const MIN_SURPLUS: usize = 8;

/// What identifies the event in the tables of its provider.
fn identity(descriptor: EventDescriptor) -> Identity {
    Identity::Modern {
        id: descriptor.id,
        version: descriptor.version,
    }
}

/// The provider's own keywords. The upper 16 bits are Windows' own, which name channels.
fn keywords(descriptor: EventDescriptor) -> u64 {
    descriptor.keyword & 0x0000_ffff_ffff_ffff
}

fn count(list: &mut BTreeMap<EventId, Counted>, id: EventId, timestamp: Ticks) {
    if list.len() < Payloads::MAX_KINDS || list.contains_key(&id) {
        list.entry(id).or_default().add(timestamp);
    }
}
