//! Checks the size of the CLR's payloads of variable size.
//!
//! The check has to read all fields, as decoding has just done for most of these events. So it uses
//! the result of decoding, unlike [`Payloads`](super::payload::Payloads).

use std::collections::BTreeMap;

use etl_analysis::ClrEvent;
use etl_analysis::machine::Counted;
use etl_format::Guid;
use etl_format::constants::PointerSize;
use etl_schema::Identity;
use etl_schema::decode::Decoder;
use etl_schema::tables::{Registry, TableSet};
use etl_schema::views::clr::{self, ClrProvider};

use super::provider_of;

/// What identifies the layout of an event.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct EventId {
    /// The provider.
    pub provider: Guid,
    /// Id of the event.
    pub id: u16,
    /// Version of the event.
    pub version: u8,
    /// Whether the id is the type of an event without a manifest.
    pub is_classic: bool,
}

impl EventId {
    pub fn new(provider: Guid, id: u16, version: u8) -> Self {
        EventId {
            provider,
            id,
            version,
            is_classic: false,
        }
    }

    /// An event of a class, which has no manifest.
    pub fn of_class(class: Guid, event_type: u8, version: u16) -> Self {
        EventId {
            provider: class,
            id: event_type.into(),
            version: u8::try_from(version).unwrap_or(u8::MAX),
            is_classic: true,
        }
    }
}

/// Whether an event with this decoder of the tables is checked here.
pub(super) fn is_checked_here(provider: Guid, id: u16, decoder: &Decoder) -> bool {
    let Some(clr_provider) = ClrProvider::from_guid(provider) else {
        return false;
    };
    clr::plain_event(clr_provider, id).is_none() && decoder.fixed_size(PointerSize::P8).is_none()
}

/// Payloads that do not fit their events' layouts.
#[derive(Clone, Debug, Default)]
pub(super) struct Sizes {
    /// Payloads that end before their last field.
    pub short: BTreeMap<EventId, Counted>,
    /// Payloads with bytes after their last field.
    pub long: BTreeMap<EventId, Counted>,
    tables: TableSet,
}

impl Sizes {
    /// Compares with these tables.
    pub fn new(tables: TableSet) -> Self {
        Sizes {
            tables,
            ..Sizes::default()
        }
    }

    /// Adds an event of one of the CLR's providers that has the layout of its manifest.
    #[inline]
    pub fn event(&mut self, event: &ClrEvent<'_>, payload: &[u8]) {
        if !event.exact || self.tables != TableSet::Shipped {
            self.check(event, payload);
        }
    }

    #[inline(never)]
    fn check(&mut self, event: &ClrEvent<'_>, payload: &[u8]) {
        let provider = provider_of(event).guid();
        let identity = Identity::Modern {
            id: event.id,
            version: event.version,
        };
        let decoder = Registry::of(self.tables).decoder(provider, identity);
        let Some(decoder) = decoder.filter(|d| is_checked_here(provider, event.id, d)) else {
            return;
        };
        let note = decoder.check(payload, event.pointers);
        if !note.is_exact() {
            let list = if note.is_short() {
                &mut self.short
            } else {
                &mut self.long
            };
            let id = EventId::new(provider, event.id, event.version);
            list.entry(id).or_default().add(event.time);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use clr::ClrProvider::{Rundown, Runtime};
    use proptest::prelude::*;

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(2_000))]
        #[test]
        fn decode_event_detects_whole_payloads_as_the_tables_do(
            kind in prop::sample::select(vec![
                (Runtime, 82), (Runtime, 139), (Runtime, 140), (Runtime, 143), (Runtime, 144),
                (Runtime, 190), (Rundown, 0), (Rundown, 143), (Rundown, 144), (Rundown, 149),
                (Rundown, 150),
            ]),
            version in 0u8..4,
            fixed in proptest::collection::vec(0u8..2, 0..64),
            texts in proptest::collection::vec(proptest::collection::vec(1u8..3, 0..6), 0..4),
            count in 0u16..4,
            tail in 0usize..12,
            narrow: bool,
        ) {
            let (clr_provider, id) = kind;
            let mut payload = fixed;
            if matches!(id, 82 | 0) {
                payload.resize(4, 0);
                payload.extend(u32::from(count).to_le_bytes());
                payload.resize(8 + usize::from(count) * 8, 7);
            } else if matches!(id, 149 | 150 | 190) {
                payload.resize(17, 0);
                payload.extend(count.to_le_bytes());
                payload.resize(19 + usize::from(count) * 8, 7);
            } else {
                payload.resize(36, 0);
                for text in texts {
                    payload.extend(text.into_iter().flat_map(|unit| [unit, 0]).chain([0, 0]));
                }
            }
            payload.resize(payload.len() + tail, 1);
            let pointers = if narrow { PointerSize::P4 } else { PointerSize::P8 };
            let from = clr::decode_event(clr_provider, id, version, &payload, pointers);
            let provider = clr_provider.guid();
            let tables = Registry::of(TableSet::Shipped);
            if let Some(from) = from.filter(|from| from.exact)
                && let Some(decoder) = tables.decoder(provider, Identity::Modern { id, version })
            {
                prop_assert!(decoder.check(&payload, pointers).is_exact(), "{} {} {:?}", id, version, from);
            }
        }
    }

    #[test]
    fn decode_event_detects_a_whole_payload() {
        let text = [b'm', 0, 0, 0].repeat(3);
        let method: Vec<u8> = [0; 36].into_iter().chain(text).chain([9, 0]).collect();
        let whole = |payload: &[u8]| {
            clr::decode_event(Runtime, 143, 1, payload, PointerSize::P8)
                .unwrap()
                .exact
        };
        assert!(whole(&method));
        assert!(!whole(&[&method[..], &[0]].concat()), "one byte too many");
    }
}
