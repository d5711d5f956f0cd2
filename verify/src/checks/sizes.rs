//! Checks the size of the CLR's payloads of variable size.
//!
//! That takes a walk over the fields, which decoding has just made for most of these events. So
//! they are checked where the CLR's events are decoded, and not with
//! [`Payloads`](super::payload::Payloads).

use std::collections::BTreeMap;

use etl_analysis::ClrSeen;
use etl_analysis::machine::Counted;
use etl_format::Guid;
use etl_format::constants::{EventFlags, PointerSize};
use etl_format::read::EventHeader;
use etl_schema::Identity;
use etl_schema::decode::Decoder;
use etl_schema::providers::{CLR_RUNDOWN, CLR_RUNTIME};
use etl_schema::tables::{Registry, TableSet};
use etl_schema::views::clr;

/// Provider, id and version of an event.
pub(crate) type EventId = (Guid, u16, u8);

/// Whether an event with this decoder of the tables is checked here.
pub(super) fn is_checked_here(provider: Guid, id: u16, decoder: &Decoder) -> bool {
    let is_decoded = clr::rundown_of(provider)
        .is_some_and(|rundown| clr::min_size_without_fields(rundown, id).is_none());
    is_decoded && decoder.fixed_size(PointerSize::P8).is_none()
}

/// Whether the layout of a payload is that of the tables: extended data may hold another schema.
pub(super) fn is_plain(header: &EventHeader) -> bool {
    !header.flags.has(EventFlags::EXTENDED_INFO) && !header.flags.has(EventFlags::STRING_ONLY)
}

/// One of the CLR's two providers.
fn provider(rundown: bool) -> Guid {
    if rundown { CLR_RUNDOWN } else { CLR_RUNTIME }
}

/// Id, version, and whether it is the rundown provider's.
type Key = (u16, u8, bool);

/// Payloads that do not fit their events' layouts.
#[derive(Clone, Debug, Default)]
pub(super) struct Sizes {
    /// Payloads that end before their last field.
    pub short: BTreeMap<EventId, Counted>,
    /// Payloads with bytes after their last field.
    pub long: BTreeMap<EventId, Counted>,
    tables: TableSet,
    /// Layouts of recent events, by hash; `None` for events that are not checked here.
    layouts: Vec<Option<(Key, Option<&'static Decoder>)>>,
}

impl Sizes {
    /// Entries of the cache; a power of two.
    const ENTRIES: usize = 256;

    /// Compares with these tables.
    pub fn new(tables: TableSet) -> Self {
        Sizes { tables, ..Sizes::default() }
    }

    /// Adds an event of one of the CLR's providers that [`is_plain`].
    #[inline]
    pub fn event(&mut self, head: &ClrSeen<'_>, payload: &[u8]) {
        if head.exact && self.tables == TableSet::Shipped {
            return;
        }
        let key = (head.id, head.version, head.rundown);
        let at = usize::from(key.0) ^ usize::from(key.2) << 7 ^ usize::from(key.1) << 5;
        let at = at & (Self::ENTRIES - 1);
        let decoder = match self.layouts.get(at) {
            Some(Some((known, decoder))) if *known == key => *decoder,
            _ => self.layout(at, key),
        };
        let Some(decoder) = decoder else { return };
        let note = decoder.check(payload, head.pointers);
        if !note.is_exact() {
            let list = if note.is_short() { &mut self.short } else { &mut self.long };
            list.entry((provider(key.2), key.0, key.1)).or_default().add(head.time);
        }
    }

    #[cold]
    fn layout(&mut self, at: usize, key: Key) -> Option<&'static Decoder> {
        let identity = Identity::Modern { id: key.0, version: key.1 };
        let provider = provider(key.2);
        let decoder = Registry::of(self.tables).decoder(provider, identity);
        let decoder = decoder.filter(|decoder| is_checked_here(provider, key.0, decoder));
        self.layouts.resize(Self::ENTRIES, None);
        if let Some(entry) = self.layouts.get_mut(at) {
            *entry = Some((key, decoder));
        }
        decoder
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(2_000))]
        #[test]
        fn decode_event_detects_whole_payloads_as_the_tables_do(
            kind in prop::sample::select(vec![
                (false, 82), (false, 139), (false, 140), (false, 143), (false, 144), (false, 190),
                (true, 0), (true, 143), (true, 144), (true, 149), (true, 150),
            ]),
            version in 0u8..4,
            fixed in proptest::collection::vec(0u8..2, 0..64),
            texts in proptest::collection::vec(proptest::collection::vec(1u8..3, 0..6), 0..4),
            count in 0u16..4,
            tail in 0usize..12,
            narrow: bool,
        ) {
            let (rundown, id) = kind;
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
            let from = clr::decode_event(rundown, (id, version), &payload, pointers);
            let provider = provider(rundown);
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
            clr::decode_event(false, (143, 1), payload, PointerSize::P8).unwrap().exact
        };
        assert!(whole(&method));
        assert!(!whole(&[&method[..], &[0]].concat()), "one byte too many");
    }
}
