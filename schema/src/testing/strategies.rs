//! Strategies for property tests: random levels, masks, descriptors, schemas and events.
//!
//! Descriptors and events can also be drawn from the tables. With the feature `proptest`.
//!
//! Enablements and masks by keyword name are in `etl_control::strategies`.

use std::ops::Range;
use std::sync::Arc;

use etl_format::EventDescriptor;
use etl_format::constants::PointerSize;
use proptest::collection::vec;
use proptest::prelude::*;
use proptest::sample::select;

use crate::encode::{OwnedValue, encode};
use crate::model::{Count, EventSchema, Identity, SchemaSource};
use crate::tables::{Provider, TableEvent};
use crate::testing::choices::{Choices, schema, values};

/// Choices for the shape of a schema.
const SHAPE: Range<usize> = 0..120;
/// Choices for the values of a payload.
const CONTENT: Range<usize> = 0..300;

/// An event with all that it takes to write it, and to say what must be read back.
#[derive(Clone, Debug)]
pub struct GeneratedEvent {
    /// What the table says of it.
    pub event: TableEvent,
    /// Width of pointers in its payload.
    pub pointers: PointerSize,
    /// Values of its fields in order; fields that count others are [`OwnedValue::Auto`].
    pub values: Vec<OwnedValue>,
    /// Its payload.
    pub payload: Vec<u8>,
}

/// Widths of pointers.
pub fn pointer_sizes() -> impl Strategy<Value = PointerSize> {
    select(vec![PointerSize::P8, PointerSize::P4])
}

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

/// Descriptors of any events.
pub fn descriptors() -> impl Strategy<Value = EventDescriptor> {
    let small = prop_oneof![4 => 0u16..8, 1 => any::<u16>()];
    let bytes = (0u8..4, any::<u8>(), any::<u8>());
    (small, any::<u16>(), levels(), masks(), bytes).prop_map(
        |(id, task, level, keyword, (version, channel, opcode))| EventDescriptor {
            id,
            version,
            channel,
            level,
            opcode,
            task,
            keyword,
        },
    )
}

/// Descriptors of a provider's events, as a table has them; of none, a descriptor of zeros.
pub fn descriptors_of(provider: &Provider) -> impl Strategy<Value = EventDescriptor> + use<> {
    let mut all: Vec<EventDescriptor> = (provider.events.iter().map(|event| &event.schema))
        .filter(|schema| matches!(schema.identity, Identity::Modern { .. }))
        .map(EventSchema::descriptor)
        .collect();
    if all.is_empty() {
        all.push(EventDescriptor::default());
    }
    select(all)
}

/// Schemas of any shape that a payload can be decoded by without guessing: all types, strings of
/// every kind of length, arrays, nested structures, fields that count others.
pub fn schemas() -> impl Strategy<Value = EventSchema> {
    vec(any::<u8>(), SHAPE).prop_map(|shape| schema(&mut Choices::new(&shape)))
}

/// Values for a schema's fields and the payload that they encode to.
pub fn payloads_of(
    schema: Arc<EventSchema>,
    pointers: PointerSize,
) -> impl Strategy<Value = (Vec<OwnedValue>, Vec<u8>)> {
    vec(any::<u8>(), CONTENT).prop_filter_map(
        "values do not go with their fields",
        move |content| {
            let mut values = values(&schema.fields, &mut Choices::new(&content), pointers);
            // A structure of nothing, in an array that only the payload's end bounds, leaves no
            // trace.
            if let (Some(OwnedValue::Array(items)), Some(field)) =
                (values.last_mut(), schema.fields.last())
                && field.count == Count::Rest
            {
                items.retain(|item| *item != OwnedValue::Struct(Vec::new()));
            }
            let payload = encode(&schema, &values, pointers).ok()?;
            Some((values, payload))
        },
    )
}

/// Events of a provider with their payloads; of none, an event of no fields.
pub fn events_of(provider: &Provider) -> impl Strategy<Value = GeneratedEvent> + use<> {
    let mut events = provider.events.clone();
    if events.is_empty() {
        let id = Identity::Modern { id: 0, version: 0 };
        let schema = EventSchema::new(provider.guid, id, SchemaSource::Table);
        events.push(TableEvent::new(schema, ""));
    }
    (select(events), pointer_sizes()).prop_flat_map(|(event, pointers)| {
        let payload = payloads_of(Arc::new(event.schema.clone()), pointers);
        payload.prop_map(move |(values, payload)| GeneratedEvent {
            event: event.clone(),
            pointers,
            values,
            payload,
        })
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::decode::Decoder;
    use crate::tables::Registry;
    use crate::testing::choices::agree;
    use proptest::strategy::ValueTree;
    use proptest::test_runner::TestRunner;

    fn runtime() -> &'static Provider {
        Registry::builtin().find("runtime").unwrap()
    }

    proptest! {
        #[test]
        #[cfg_attr(miri, ignore = "Miri reads the tables for many minutes")]
        fn events_of_draws_payloads_that_decode_to_their_values(event in events_of(runtime())) {
            let decoder = Decoder::new(Arc::new(event.event.schema.clone()));
            let mut fields = decoder.fields(&event.payload, event.pointers);
            let back = OwnedValue::collect(fields.clone());
            prop_assert!(agree(&event.values, &back), "{:?}\n{:?}", event, back);
            fields.by_ref().for_each(drop);
            prop_assert!(fields.note().is_exact());
        }

        #[test]
        fn payloads_of_works_for_any_schema(
            (schema, (values, payload)) in schemas().prop_flat_map(|schema| {
                let schema = Arc::new(schema);
                (Just(schema.clone()), payloads_of(schema, PointerSize::P8))
            }),
        ) {
            let decoder = Decoder::new(schema);
            let back = OwnedValue::collect(decoder.fields(&payload, PointerSize::P8));
            prop_assert!(agree(&values, &back));
        }

        #[test]
        #[cfg_attr(miri, ignore = "Miri reads the tables for many minutes")]
        fn descriptors_of_draws_from_the_table(descriptor in descriptors_of(runtime())) {
            let id = Identity::Modern { id: descriptor.id, version: descriptor.version };
            let event = Registry::builtin().event(runtime().guid, id).unwrap();
            prop_assert_eq!(event.schema.keywords, descriptor.keyword);
            prop_assert_eq!(event.schema.level.value, descriptor.level);
        }
    }

    #[test]
    fn strategies_accept_a_provider_without_events() {
        let nothing = Provider {
            name: String::new(),
            guid: etl_format::Guid::ZERO,
            keywords: vec![],
            events: vec![],
        };
        let mut runner = TestRunner::deterministic();
        assert!(
            events_of(&nothing)
                .new_tree(&mut runner)
                .unwrap()
                .current()
                .payload
                .is_empty()
        );
        assert!(descriptors_of(&nothing).new_tree(&mut runner).is_ok());
        let _ = descriptors().new_tree(&mut runner).unwrap().current();
    }
}
