//! Masks, levels, ids, and what is made of them.

use std::ops::RangeInclusive;

use proptest::collection::vec;
use proptest::prelude::*;
use proptest::sample::{Index, select};

use crate::enable::{Enablement, EventKey, IdFilter, Variant};
use crate::model::Identity;
use crate::tables::{Provider, TableEvent};

/// Most ids of a drawn filter; few, so that they are hit as often as missed.
const IDS: RangeInclusive<usize> = 0..=4;

/// Levels: mostly those with a name and their neighbours, now and then any.
pub fn levels() -> impl Strategy<Value = u8> {
    prop_oneof![8 => 0u8..8, 1 => any::<u8>()]
}

/// Masks of 64 bits: few bits, none, all, and the 32 ones that are not all.
pub fn masks() -> impl Strategy<Value = u64> {
    let bits = vec(0u32..64, 1..4);
    prop_oneof![
        6 => bits.prop_map(|bits| bits.into_iter().fold(0, |mask, bit| mask | 1u64 << bit)),
        2 => Just(0u64),
        1 => Just(u64::MAX),
        1 => Just(u64::from(u32::MAX)),
        1 => any::<u64>(),
    ]
}

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
