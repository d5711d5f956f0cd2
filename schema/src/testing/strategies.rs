//! Strategies for property tests: random levels, masks, descriptors, schemas and events.
//!
//! Descriptors and events can also be drawn from the tables. With the feature `proptest`.
//!
//! Enablements and masks by keyword name are in `etl_control::strategies`.

use std::fmt;
use std::ops::Range;
use std::sync::Arc;

use etl_format::EventDescriptor;
use etl_format::constants::PointerSize;
use proptest::collection::vec;
use proptest::prelude::*;
use proptest::sample::select;

use crate::encode::{OwnedValue, encode};
use crate::model::{Count, EventSchema, Field, Identity, InType, Length, SchemaSource};
use crate::tables::{Provider, TableEvent};
use crate::testing::choices::{Choices, schema};
use crate::testing::values::values_of;

/// Choices for the shape of a schema.
const SHAPE: Range<usize> = 0..120;
/// An event with all that it takes to write it, and to say what must be read back. A failing case
/// prints the names of its fields with their values, and the payload in hexadecimal.
#[derive(Clone)]
pub struct GeneratedEvent {
    /// What the table says of it.
    pub event: TableEvent,
    /// Width of pointers in its payload.
    pub pointers: PointerSize,
    /// Values of its fields in order; fields that count others are [`OwnedValue::Auto`].
    pub values: Vec<OwnedValue>,
    /// Its payload.
    pub payload: Vec<u8>,
    /// Whether the payload ends without the terminator of its last text, as some providers write.
    pub is_unterminated: bool,
}

impl fmt::Debug for GeneratedEvent {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let schema = &self.event.schema;
        let bits = 8 * InType::Pointer.width(self.pointers);
        writeln!(f, "{} with {bits}-bit pointers:", schema.name)?;
        for (field, value) in schema.fields.iter().zip(&self.values) {
            writeln!(f, "  {} = {}", field.name, Printed(value))?;
        }
        if self.is_unterminated {
            writeln!(f, "  without the terminator of the last field")?;
        }
        write!(f, "payload:{}", Hex(&self.payload))
    }
}

/// A value in print: text as text, then its units in hexadecimal.
struct Printed<'v>(&'v OwnedValue);

impl fmt::Display for Printed<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0 {
            OwnedValue::Auto => f.write_str("(counts another field)"),
            OwnedValue::UInt(number) | OwnedValue::FileTime(number) => {
                write!(f, "{number} ({number:#x})")
            }
            OwnedValue::Pointer(address) => write!(f, "{address:#x}"),
            OwnedValue::Int(number) => write!(f, "{number}"),
            OwnedValue::Utf16(units) => {
                write!(f, "{:?} (UTF-16:", String::from_utf16_lossy(units))?;
                for unit in units {
                    write!(f, " {unit:04x}")?;
                }
                f.write_str(")")
            }
            OwnedValue::Ansi(bytes) | OwnedValue::Utf8(bytes) => {
                write!(f, "{:?} ({})", String::from_utf8_lossy(bytes), Hex(bytes))
            }
            OwnedValue::Binary(bytes) | OwnedValue::Sid(bytes) => write!(f, "{}", Hex(bytes)),
            OwnedValue::Array(values) => {
                f.write_str("[")?;
                write_list(f, values)?;
                f.write_str("]")
            }
            OwnedValue::Struct(values) => {
                f.write_str("{")?;
                write_list(f, values)?;
                f.write_str("}")
            }
            other => write!(f, "{other:?}"),
        }
    }
}

fn write_list(f: &mut fmt::Formatter<'_>, values: &[OwnedValue]) -> fmt::Result {
    for (index, value) in values.iter().enumerate() {
        let separator = if index == 0 { "" } else { ", " };
        write!(f, "{separator}{}", Printed(value))?;
    }
    Ok(())
}

/// Bytes in hexadecimal.
struct Hex<'b>(&'b [u8]);

impl fmt::Display for Hex<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for byte in self.0 {
            write!(f, " {byte:02x}")?;
        }
        Ok(())
    }
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

/// Schemas of any shape with values for their fields.
#[cfg(test)]
pub(crate) fn schemas_with_values(
    pointers: PointerSize,
) -> impl Strategy<Value = (EventSchema, Vec<OwnedValue>)> {
    schemas().prop_flat_map(move |schema| {
        let values = values_of(&schema.fields, pointers);
        (Just(schema), values)
    })
}

/// Values for a schema's fields and the payload that they encode to. Numbers shrink to the bound
/// of a failure, and fields that do not matter to zero. Text has characters above U+00FF, pairs of
/// surrogates and single ones, and zeros that do not end it.
///
/// ```
/// use etl_schema::tables::Registry;
/// use etl_schema::testing::strategies::payloads_of;
/// use etl_format::constants::PointerSize;
/// use proptest::test_runner::TestRunner;
///
/// let runtime = Registry::builtin().find("runtime").ok_or("it is described")?;
/// let start = runtime.events.iter().find(|event| event.schema.name == "GCStart_V2");
/// let schema = start.ok_or("it is described")?.schema.clone();
/// let payloads = payloads_of(schema.into(), PointerSize::P8);
/// let all_have_the_size = TestRunner::deterministic().run(&payloads, |(_, payload)| {
///     proptest::prop_assert_eq!(payload.len(), 26);
///     Ok(())
/// });
/// assert!(all_have_the_size.is_ok());
/// # Ok::<(), &str>(())
/// ```
pub fn payloads_of(
    schema: Arc<EventSchema>,
    pointers: PointerSize,
) -> impl Strategy<Value = (Vec<OwnedValue>, Vec<u8>)> {
    values_of(&schema.fields, pointers).prop_filter_map(
        "values do not go with their fields",
        move |mut values| {
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
    select(events).prop_flat_map(|event| events_like(&event))
}

/// Events of one kind with their payloads.
///
/// ```
/// use etl_schema::tables::Registry;
/// use etl_schema::testing::strategies::events_like;
/// use proptest::test_runner::TestRunner;
///
/// let runtime = Registry::builtin().find("runtime").ok_or("it is described")?;
/// let mut events = runtime.events.iter();
/// let start = events.find(|event| event.schema.name == "GCStart_V2").ok_or("it is described")?;
/// let result = TestRunner::deterministic().run(&events_like(start), |event| {
///     let count = event.values[0].as_u64();
///     proptest::prop_assert!(count <= Some(1000), "a decoder with a bug above 1000");
///     Ok(())
/// });
/// let text = result.unwrap_err().to_string();
/// assert!(text.contains("Count = 1001 (0x3e9)"), "{text}");
/// assert!(text.contains("Reason = 0"), "{text}");
/// # Ok::<(), &str>(())
/// ```
pub fn events_like(event: &TableEvent) -> impl Strategy<Value = GeneratedEvent> + use<> {
    let schema = Arc::new(event.schema.clone());
    let event = event.clone();
    let ends_with_text = schema.fields.last().is_some_and(is_terminated_text);
    let wide = payloads_of(Arc::clone(&schema), PointerSize::P8);
    let narrow = payloads_of(schema, PointerSize::P4);
    let payloads = prop_oneof![
        wide.prop_map(|payload| (PointerSize::P8, payload)),
        narrow.prop_map(|payload| (PointerSize::P4, payload)),
    ];
    let unterminated = proptest::bool::weighted(0.125);
    (payloads, unterminated).prop_map(move |((pointers, (values, mut payload)), unterminated)| {
        // Without terminator, a payload has no empty text at its end but one field less.
        let has_text = !matches!(values.last(), Some(OwnedValue::Utf16(units)) if units.is_empty());
        let is_unterminated = unterminated && ends_with_text && has_text;
        if is_unterminated {
            let text_end = payload.len().saturating_sub(UTF16_NUL);
            payload.truncate(text_end);
        }
        GeneratedEvent {
            event: event.clone(),
            pointers,
            values,
            payload,
            is_unterminated,
        }
    })
}

/// Bytes of the terminator of UTF-16 text.
const UTF16_NUL: usize = 2;

/// Whether a field is UTF-16 text that ends with a terminator.
fn is_terminated_text(field: &Field) -> bool {
    field.in_type() == Some(InType::Utf16)
        && field.length == Length::NulTerminated
        && field.count == Count::One
}

#[cfg(test)]
mod planted_faults;

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
            prop_assert!(event.is_unterminated || fields.note().is_exact());
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
