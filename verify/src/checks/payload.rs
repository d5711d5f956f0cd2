//! Checks payloads against the layouts of their events.

use std::collections::BTreeMap;

use etl_analysis::machine::Counted;
use etl_format::constants::PointerSize;
use etl_format::read::{EventHeader, Record};
use etl_format::{EventDescriptor, Guid, Ticks};
use etl_schema::Identity;
use etl_schema::decode::Decoder;
use etl_schema::providers::{CLR_RUNDOWN, CLR_RUNTIME};
use etl_schema::store::SchemaStore;
use etl_schema::tables::{OlderEvent, Registry, TableSet};

use super::sizes;
pub(crate) use super::sizes::EventId;

/// What the provider and the descriptor of an event decide about its payloads.
#[derive(Clone, Copy, Debug)]
pub(super) struct Layout {
    /// Its layout in the tables.
    pub decoder: Option<&'static Decoder>,
    /// Whether [`sizes`] checks its payloads.
    pub sized_elsewhere: bool,
    /// Whether it is one of the CLR's with another level or other keywords than in the tables.
    pub wrong_descriptor: bool,
    /// Whether the tables have only other versions of it.
    other_version: bool,
}

/// Payloads that do not fit their events' layouts.
#[derive(Debug, Default)]
pub struct Payloads {
    /// Payloads that end before their last field.
    pub short: BTreeMap<EventId, Counted>,
    /// Payloads with bytes after their last field.
    pub long: BTreeMap<EventId, Counted>,
    /// Events whose version is not in the tables, which have other versions of them.
    pub unknown_version: BTreeMap<EventId, Counted>,
    /// Events of the CLR whose level and keywords are not those of the tables.
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

    /// Adds the schemas that a record holds.
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
        let (provider, d) = (header.provider, header.descriptor);
        let id = (provider, d.id, d.version);
        let (decoder, wrong_descriptor) =
            match layout.decoder.filter(|_| header.has_manifest_layout()) {
                Some(decoder) => (decoder, layout.wrong_descriptor),
                None => match self.store.decoder(record) {
                    Some(decoder) => (decoder, self.is_wrong_descriptor(provider, d, decoder)),
                    None => {
                        if layout.other_version {
                            count(&mut self.unknown_version, id, timestamp);
                        }
                        return;
                    }
                },
            };
        if wrong_descriptor {
            count(&mut self.descriptor, id, timestamp);
        }
        if layout.sized_elsewhere && header.has_manifest_layout() {
            return;
        }
        let (payload, pointers) = (
            record.payload(),
            record.pointer_size().unwrap_or(PointerSize::P8),
        );
        if decoder.fixed_size(pointers) == Some(payload.len()) {
            return;
        }
        let note = decoder.check(payload, pointers);
        let list = if note.is_short() {
            &mut self.short
        } else if note.is_exact() {
            return;
        } else {
            &mut self.long
        };
        count(list, id, timestamp);
    }

    /// Whether payloads are compared with those of the shipped runtimes.
    pub(super) fn is_as_shipped(&self) -> bool {
        self.tables == TableSet::Shipped
    }

    /// The layout of an event, to be kept for other events of its kind.
    pub(super) fn layout(&self, provider: Guid, d: EventDescriptor) -> Layout {
        let decoder = self.table(provider, d);
        Layout {
            decoder,
            sized_elsewhere: decoder
                .is_some_and(|decoder| sizes::is_checked_here(provider, d.id, decoder)),
            wrong_descriptor: decoder
                .is_some_and(|decoder| self.is_wrong_descriptor(provider, d, decoder)),
            other_version: self.has_other_version(provider, d),
        }
    }

    /// The layout of an event in the tables.
    fn table(&self, provider: Guid, d: EventDescriptor) -> Option<&'static Decoder> {
        self.store.from_tables(
            provider,
            Identity::Modern {
                id: d.id,
                version: d.version,
            },
        )
    }

    /// Whether an event is one of the CLR's with an opcode, a level or keywords that neither its
    /// schema nor an older runtime has.
    fn is_wrong_descriptor(&self, provider: Guid, d: EventDescriptor, decoder: &Decoder) -> bool {
        let clr = provider == CLR_RUNTIME || provider == CLR_RUNDOWN;
        let schema = decoder.schema();
        let has_level = (schema.level.value, schema.keywords) == (d.level, keyword(d))
            || self.is_of_older_runtime(provider, d);
        clr && (!has_level || schema.opcode.value != d.opcode)
    }

    /// Whether the tables have any version of an event.
    fn has_other_version(&self, provider: Guid, d: EventDescriptor) -> bool {
        let provider = Registry::of(self.tables).provider(provider);
        provider.is_some_and(|p| {
            p.events.iter().any(|e| {
                matches!(e.schema.identity, Identity::Modern { id: other, .. } if other == d.id)
            })
        })
    }

    /// Whether an older runtime has this level and these keywords for the event.
    fn is_of_older_runtime(&self, provider: Guid, d: EventDescriptor) -> bool {
        let key = Identity::Modern {
            id: d.id,
            version: d.version,
        };
        let event = Registry::of(self.tables).event(provider, key);
        event.is_some_and(|e| {
            e.older
                == Some(OlderEvent {
                    level: d.level,
                    keywords: keyword(d),
                })
        })
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

/// The provider's own keywords; the upper 16 bits are Windows' (channels).
fn keyword(d: EventDescriptor) -> u64 {
    d.keyword & 0x0000_ffff_ffff_ffff
}

fn count(list: &mut BTreeMap<EventId, Counted>, id: EventId, timestamp: Ticks) {
    if list.len() < Payloads::MAX_KINDS || list.contains_key(&id) {
        list.entry(id).or_default().add(timestamp);
    }
}
