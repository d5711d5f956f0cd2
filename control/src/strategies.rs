//! Strategies for property tests: masks by keyword name, id filters, enablements, event keys.
//!
//! With the feature `proptest`.
//!
//! Values collide often: masks have few bits out of those that matter, ids and levels are close to
//! each other, so that a filter under test passes some events and drops others. Whole events with
//! payloads are in `etl_schema::testing::strategies`.
//!
//! A filter of your own, compared with the rule:
//!
//! ```
//! use etl_control::enable::{Enablement, EventKey};
//! use etl_control::strategies::{enablements_of, event_keys_of};
//! use etl_schema::tables::Registry;
//! use proptest::test_runner::TestRunner;
//!
//! // This filter ignores that events without keyword always pass.
//! fn mine(session: &Enablement, event: &EventKey) -> bool {
//!     event.level <= session.level && event.keyword & session.any != 0
//! }
//!
//! let runtime = Registry::builtin().find("runtime").unwrap();
//! let both = (enablements_of(runtime), event_keys_of(runtime));
//! let found = TestRunner::deterministic().run(&both, |(session, event)| {
//!     proptest::prop_assert_eq!(mine(&session, &event), session.admits(&event));
//!     Ok(())
//! });
//! assert!(found.is_err(), "proptest finds an event for which they differ");
//! ```

use std::ops::RangeInclusive;

use proptest::collection::vec;
use proptest::prelude::*;
use proptest::sample::{Index, select};

use etl_schema::Identity;
use etl_schema::tables::{Provider, TableEvent};
use etl_schema::testing::strategies::{levels, masks};

use crate::enable::{Enablement, EventKey, IdFilter, Variant};

/// Most ids of a drawn filter; few, so that they are hit as often as missed.
const IDS: RangeInclusive<usize> = 0..=4;

/// A mask with the names that it was made of.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NamedMask {
    /// Names of keywords.
    pub names: Vec<String>,
    /// Their bits.
    pub mask: u64,
}

/// Masks of a provider's keywords, by name. None of them is the mask 0, which enables all.
pub fn named_masks(provider: &Provider) -> impl Strategy<Value = NamedMask> + use<> {
    let keywords = provider.keywords.clone();
    vec(any::<Index>(), 0..4).prop_map(move |indices| {
        let mut drawn = NamedMask { names: Vec::new(), mask: 0 };
        for index in indices {
            let at = if keywords.is_empty() { None } else { Some(index.index(keywords.len())) };
            if let Some((bit, name)) = at.and_then(|at| keywords.get(at))
                && !drawn.names.contains(name)
            {
                drawn.mask |= bit;
                drawn.names.push(name.clone());
            }
        }
        drawn
    })
}

/// Filters by id, of any ids.
pub fn id_filters() -> impl Strategy<Value = IdFilter> {
    filters_of(prop_oneof![4 => 0u16..8, 1 => any::<u16>()].boxed())
}

fn filters_of(ids: BoxedStrategy<u16>) -> impl Strategy<Value = IdFilter> {
    prop_oneof![
        3 => Just(IdFilter::Any),
        1 => vec(ids.clone(), IDS).prop_map(IdFilter::In),
        1 => vec(ids, IDS).prop_map(IdFilter::Out),
    ]
}

/// What the enable rule looks at of any event.
pub fn event_keys() -> impl Strategy<Value = EventKey> {
    let ids = prop_oneof![4 => 0u16..8, 1 => any::<u16>()];
    (ids, levels(), masks()).prop_map(|(id, level, keyword)| EventKey { id, level, keyword })
}

/// What the enable rule looks at of a provider's events; of none, that of an event of zeros.
pub fn event_keys_of(provider: &Provider) -> impl Strategy<Value = EventKey> + use<> {
    let mut keys: Vec<EventKey> = provider.events.iter().map(key).collect();
    keys.dedup();
    if keys.is_empty() {
        keys.push(EventKey::default());
    }
    select(keys)
}

fn key(event: &TableEvent) -> EventKey {
    let schema = &event.schema;
    EventKey { id: id(event), level: schema.level.value, keyword: schema.keywords }
}

fn id(event: &TableEvent) -> u16 {
    match event.schema.identity {
        Identity::Modern { id, .. } => id,
        Identity::Classic { opcode, .. } => opcode.into(),
        Identity::Message { number } => number,
        Identity::SelfDescribing => 0,
    }
}

/// Any enablement by the current wording of the rule.
pub fn enablements() -> impl Strategy<Value = Enablement> {
    with(masks().boxed(), masks().boxed(), id_filters().boxed())
}

/// Enablements of a provider: masks of its keywords, filters by its ids.
pub fn enablements_of(provider: &Provider) -> impl Strategy<Value = Enablement> + use<> {
    let named = named_masks(provider).prop_map(|named| named.mask).boxed();
    let all = prop_oneof![3 => Just(0u64), 1 => named.clone()];
    let ids = event_keys_of(provider).prop_map(|key| key.id);
    with(named, all.boxed(), filters_of(ids.boxed()).boxed())
}

fn with(
    any: BoxedStrategy<u64>,
    all: BoxedStrategy<u64>,
    ids: BoxedStrategy<IdFilter>,
) -> impl Strategy<Value = Enablement> {
    let ignores = proptest::bool::weighted(0.2);
    (levels(), any, all, ignores, ids).prop_map(|(level, any, all, ignore_keyword_0, ids)| {
        Enablement { level, any, all, ignore_keyword_0, ids, variant: Variant::Current }
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use etl_schema::tables::Registry;
    use proptest::strategy::ValueTree;
    use proptest::test_runner::TestRunner;

    fn runtime() -> &'static Provider {
        Registry::builtin().find("runtime").unwrap()
    }

    proptest! {
        #[test]
        #[cfg_attr(miri, ignore = "Miri reads the tables for many minutes")]
        fn named_masks_returns_the_bits_of_its_names(named in named_masks(runtime())) {
            let of = |name: &String| runtime().keyword(name).unwrap();
            prop_assert_eq!(named.names.iter().map(of).fold(0, |a, b| a | b), named.mask);
        }
    }

    /// Of what is drawn, a good part is admitted and a good part is not.
    #[test]
    #[cfg_attr(miri, ignore = "Miri reads the tables for many minutes")]
    fn enablements_admit_a_good_part_of_event_keys() {
        fn admitted(
            sessions: impl Strategy<Value = Enablement>,
            events: impl Strategy<Value = EventKey>,
        ) -> usize {
            let mut runner = TestRunner::deterministic();
            let drawn = (sessions, events);
            let draw = |_| {
                let (session, event) = drawn.new_tree(&mut runner).unwrap().current();
                session.admits(&event)
            };
            (0..1000).map(draw).filter(|admitted| *admitted).count()
        }
        let any = admitted(enablements(), event_keys());
        let clr = admitted(enablements_of(runtime()), event_keys_of(runtime()));
        assert!((50..950).contains(&any) && (50..950).contains(&clr), "{any} {clr}");
    }

    #[test]
    fn named_masks_accepts_a_provider_without_keywords() {
        let (name, guid) = (String::new(), etl_format::Guid::ZERO);
        let empty = Provider { name, guid, keywords: vec![], events: vec![] };
        let mut runner = TestRunner::deterministic();
        assert_eq!(named_masks(&empty).new_tree(&mut runner).unwrap().current().mask, 0);
    }
}
