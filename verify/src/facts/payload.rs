//! Payloads against what is known of their events' layouts.

use std::collections::BTreeMap;

use etl_format::Guid;
use etl_format::constants::PointerSize;
use etl_format::read::{EventDescriptor, Record};
use etl_schema::store::SchemaStore;
use etl_schema::tables::Registry;

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
}

impl Payloads {
    /// Most kinds of events that are told of each.
    const KINDS: usize = 1 << 12;

    /// Takes from a record what it says about layouts.
    #[inline]
    pub fn learn(&mut self, record: &Record<'_>) {
        self.store.learn(record);
    }

    /// Takes in an event.
    pub fn event(&mut self, record: &Record<'_>, provider: Guid, d: EventDescriptor, stamp: i64) {
        self.store.learn(record);
        let id = (provider, d.id, d.version);
        let Some(decoder) = self.store.decoder(record) else {
            self.unknown(id, stamp);
            return;
        };
        self.checked += 1;
        let schema = decoder.schema();
        let clr = provider == clr::RUNTIME || provider == clr::RUNDOWN;
        if clr && (schema.level.value, schema.keywords) != (d.level, keyword(d)) && !was(id, d) {
            count(&mut self.descriptor, id, stamp);
        }
        let pointers = record.pointer_size().unwrap_or(PointerSize::P8);
        let note = decoder.check(record.payload(), pointers);
        let list = if note.is_short() {
            &mut self.short
        } else if note.is_exact() {
            return;
        } else {
            &mut self.long
        };
        count(list, id, stamp);
    }

    fn unknown(&mut self, id: EventId, stamp: i64) {
        let provider = Registry::builtin().provider(id.0);
        let others = provider.is_some_and(|p| {
            p.events.iter().any(|e| {
                matches!(e.schema.identity, etl_schema::Identity::Modern { id: other, .. } if other == id.1)
            })
        });
        if others {
            count(&mut self.unknown_version, id, stamp);
        }
    }

    /// What is known of names.
    #[must_use]
    pub fn store(&self) -> &SchemaStore {
        &self.store
    }
}

/// Whether an older runtime gave the event this level and these keywords.
fn was((provider, id, version): EventId, d: EventDescriptor) -> bool {
    let key = etl_schema::Identity::Modern { id, version };
    let event = Registry::builtin().event(provider, key);
    event.is_some_and(|e| e.older == Some((d.level, keyword(d))))
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
