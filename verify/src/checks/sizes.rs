//! Payloads of the CLR whose size their values decide, against the tables.
//!
//! That takes a walk over the fields, which for most of these events the search for their CLR's instance has just
//! made. So they are looked at where the CLR's events are taken apart, and not with [`Payloads`](super::payload::Payloads).

use std::collections::BTreeMap;

use etl_analysis::ClrSeen;
use etl_analysis::events::clr;
use etl_analysis::machine::Counted;
use etl_format::Guid;
use etl_format::constants::{EventFlags, PointerSize};
use etl_format::read::EventHeader;
use etl_schema::Identity;
use etl_schema::decode::Decoder;
use etl_schema::providers::{CLR_RUNDOWN, CLR_RUNTIME};
use etl_schema::tables::{Registry, TableSet};

use super::payload::EventId;

/// Whether an event is one that is looked at here, `decoder` being what the tables have for it.
pub(super) fn is_one(provider: Guid, id: u16, decoder: &Decoder) -> bool {
    let taken_apart = clr::rundown_of(provider)
        .is_some_and(|rundown| clr::min_size_without_fields(rundown, id).is_none());
    taken_apart && decoder.fixed_size(PointerSize::P8).is_none()
}

/// Whether the payload of an event is laid out as the tables say: what has extended data may bring a schema of its
/// own.
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
    /// Payloads that go on behind their last field.
    pub long: BTreeMap<EventId, Counted>,
    tables: TableSet,
    /// Layouts of the last events, by a hash; `None` for those that are not looked at.
    layouts: Vec<Option<(Key, Option<&'static Decoder>)>>,
}

impl Sizes {
    /// Places for layouts; a power of two.
    const PLACES: usize = 256;

    /// Compares with these tables.
    pub fn new(tables: TableSet) -> Self {
        Sizes { tables, ..Sizes::default() }
    }

    /// Takes in an event of one of the CLR's providers that [`is_plain`].
    #[inline]
    pub fn event(&mut self, head: &ClrSeen<'_>, payload: &[u8]) {
        if head.exact && self.tables == TableSet::Shipped {
            return;
        }
        let key = (head.id, head.version, head.rundown);
        let at = usize::from(key.0) ^ usize::from(key.2) << 7 ^ usize::from(key.1) << 5;
        let at = at & (Self::PLACES - 1);
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
        let decoder = decoder.filter(|decoder| is_one(provider, key.0, decoder));
        self.layouts.resize(Self::PLACES, None);
        if let Some(place) = self.layouts.get_mut(at) {
            *place = Some((key, decoder));
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
        fn what_is_whole_by_the_way_is_so_by_the_tables(
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
            let from = clr::decode_event(rundown, (id, version), &payload, Some(pointers));
            let provider = provider(rundown);
            let tables = Registry::of(TableSet::Shipped);
            if let Some(from) = from.filter(|from| from.whole)
                && let Some(decoder) = tables.decoder(provider, Identity::Modern { id, version })
            {
                prop_assert!(decoder.check(&payload, pointers).is_exact(), "{} {} {:?}", id, version, from);
            }
        }
    }

    #[test]
    fn some_are_whole() {
        let text = [b'm', 0, 0, 0].repeat(3);
        let method: Vec<u8> = [0; 36].into_iter().chain(text).chain([9, 0]).collect();
        let whole =
            |payload: &[u8]| clr::decode_event(false, (143, 1), payload, None).unwrap().whole;
        assert!(whole(&method));
        assert!(!whole(&[&method[..], &[0]].concat()), "one byte too many");
    }
}
