//! Payloads against what is known of their events' layouts.

use std::collections::BTreeMap;

use etl_format::Guid;
use etl_format::constants::{EventFlags, PointerSize};
use etl_format::cursor::Bytes;
use etl_format::read::{EventDescriptor, EventHeader, Record};
use etl_schema::Identity;
use etl_schema::decode::Decoder;
use etl_schema::store::SchemaStore;
use etl_schema::tables::{Profile, Registry};

use super::clr;
use super::process::Counted;

/// Provider, id and version of an event.
pub type EventId = (Guid, u16, u8);

/// Payloads that do not fit their events' layouts.
#[derive(Debug, Default)]
pub struct Payloads {
    /// Payloads that end before their last field.
    pub short: BTreeMap<EventId, Counted>,
    /// Payloads that go on behind their last field.
    pub long: BTreeMap<EventId, Counted>,
    /// Versions of events that the tables have other versions of.
    pub unknown_version: BTreeMap<EventId, Counted>,
    /// Events of the CLR whose level and keywords are not those of the tables.
    pub descriptor: BTreeMap<EventId, Counted>,
    /// Payloads that were compared.
    pub checked: u64,
    store: SchemaStore,
    tables: Profile,
    /// What the tables have for the kinds of the last events, by a hash.
    recent: Vec<Option<(EventId, Option<&'static Decoder>)>>,
}

impl Payloads {
    /// Most kinds of events that are told of each.
    const KINDS: usize = 1 << 12;
    /// Kinds of the last events that are remembered; a power of two.
    const RECENT: usize = 256;

    /// Compares with these tables.
    #[must_use]
    pub fn new(tables: Profile) -> Self {
        let store = SchemaStore::default().with_profile(tables);
        Payloads { store, tables, ..Payloads::default() }
    }

    /// Takes from a record what it says about layouts.
    #[inline]
    pub fn learn(&mut self, record: &Record<'_>) {
        self.store.learn(record);
    }

    /// Takes in an event with its payload.
    pub fn event(&mut self, record: &Record<'_>, header: &EventHeader, payload: &[u8], stamp: i64) {
        self.store.learn_event(header, record);
        let (provider, d) = (header.provider, header.descriptor);
        let id = (provider, d.id, d.version);
        // Events with extended data may bring a schema of their own.
        let plain = !header.flags.has(EventFlags::EXTENDED_INFO)
            && !header.flags.has(EventFlags::STRING_ONLY);
        let table = if plain { self.table(id) } else { None };
        let Some(decoder) = table.or_else(|| self.store.decoder(record)) else {
            self.unknown(id, stamp);
            return;
        };
        self.checked += 1;
        let schema = decoder.schema();
        let clr = provider == clr::RUNTIME || provider == clr::RUNDOWN;
        if clr && (schema.level.value, schema.keywords) != (d.level, keyword(d)) && !self.was(id, d)
        {
            count(&mut self.descriptor, id, stamp);
        }
        let pointers = record.pointer_size().unwrap_or(PointerSize::P8);
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
        count(list, id, stamp);
    }

    /// What the tables have for an event.
    #[inline]
    fn table(&mut self, id: EventId) -> Option<&'static Decoder> {
        let (provider, number, version) = id;
        let low = provider.to_bytes().u64_at(0).unwrap_or(0);
        let mixed = low ^ u64::from(number) ^ u64::from(version) << 16;
        let at = mixed.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 32;
        let at = at as usize & (Self::RECENT - 1);
        match self.recent.get(at) {
            Some(Some((known, decoder))) if *known == id => *decoder,
            _ => {
                let key = Identity::Modern { id: number, version };
                let decoder = self.store.from_tables(provider, key);
                if self.recent.is_empty() {
                    self.recent = vec![None; Self::RECENT];
                }
                if let Some(place) = self.recent.get_mut(at) {
                    *place = Some((id, decoder));
                }
                decoder
            }
        }
    }

    fn unknown(&mut self, id: EventId, stamp: i64) {
        let provider = Registry::profile(self.tables).provider(id.0);
        let others = provider.is_some_and(|p| {
            p.events.iter().any(|e| {
                matches!(e.schema.identity, Identity::Modern { id: other, .. } if other == id.1)
            })
        });
        if others {
            count(&mut self.unknown_version, id, stamp);
        }
    }

    /// Whether an older runtime gave the event this level and these keywords.
    fn was(&self, (provider, id, version): EventId, d: EventDescriptor) -> bool {
        let key = Identity::Modern { id, version };
        let event = Registry::profile(self.tables).event(provider, key);
        event.is_some_and(|e| e.older == Some((d.level, keyword(d))))
    }

    /// What is known of names.
    #[must_use]
    pub fn store(&self) -> &SchemaStore {
        &self.store
    }
}

/// The keywords of the provider's own; the upper 16 bits are for channels and the like.
fn keyword(d: EventDescriptor) -> u64 {
    d.keyword & 0x0000_ffff_ffff_ffff
}

fn count(list: &mut BTreeMap<EventId, Counted>, id: EventId, stamp: i64) {
    if list.len() < Payloads::KINDS || list.contains_key(&id) {
        list.entry(id).or_default().add(stamp);
    }
}
