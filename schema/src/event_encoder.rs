//! Events from field values: the record of a provider's event.

use etl_format::Ticks;
use etl_format::constants::PointerSize;
use etl_format::write::record::Event;

use crate::Error;
use crate::encode::{EncodeError, EncodeProblem, OwnedValue, encode_into};
use crate::model::{EventSchema, Identity};
use crate::sources::tracelogging::{self, ProviderTraits};

/// Channel of TraceLogging events.
const TRACE_LOGGING_CHANNEL: u8 = 11;

/// Encodes events of one schema from field values, given by name.
///
/// The descriptor of the event comes from the schema. If the schema is of a TraceLogging event, the
/// event also has its metadata and the name of its provider as extended items. The memory is reused
/// for each event.
///
/// ```
/// use etl_format::read::{ExtendedItem, Options, Order, Trace};
/// use etl_format::FileHeader;
/// use etl_format::write::Session;
/// use etl_schema::{EventEncoder, EventSchema, Field, InType};
///
/// let fields = vec![Field::new("Count", InType::UInt32), Field::new("Name", InType::Utf16)];
/// let schema = EventSchema::tracelogging("Shop", "Sold", fields);
/// let mut encoder = EventEncoder::new(&schema)?;
/// let mut session = Session::in_memory(FileHeader::new())?;
/// for count in 1..=3u32 {
///     let event = encoder.event(2_000, [("Count", count.into()), ("Name", "tea".into())])?;
///     session.write(0, &event.process(4, 8))?;
/// }
/// let bytes = session.finish()?;
///
/// let mut trace = Trace::open(bytes.as_slice(), &Options::default())?;
/// let mut records = trace.records(Order::Time)?;
/// records.next_record()?; // The header event.
/// let record = records.next_record()?.ok_or("an event")?;
/// assert!(record.extended().any(|item| matches!(item, ExtendedItem::EventSchema(_))));
/// assert_eq!(record.payload(), b"\x01\0\0\0t\0e\0a\0\0\0");
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Debug)]
pub struct EventEncoder<'s> {
    schema: &'s EventSchema,
    pointer_size: PointerSize,
    provider_traits: Vec<u8>,
    metadata: Vec<u8>,
    values: Vec<OwnedValue>,
    payload: Vec<u8>,
}

impl<'s> EventEncoder<'s> {
    /// An encoder of events with this schema and 64-bit pointers.
    ///
    /// # Errors
    /// [`Error`] if the schema is of a TraceLogging event and TraceLogging metadata cannot describe
    /// one of its fields, for example an array that another field counts.
    pub fn new(schema: &'s EventSchema) -> Result<Self, Error> {
        let mut provider_traits = Vec::new();
        let mut metadata = Vec::new();
        if schema.identity == Identity::SelfDescribing {
            metadata = tracelogging::build(schema)?;
            let name = schema.provider_name.as_ref().into();
            provider_traits = ProviderTraits {
                name,
                ..ProviderTraits::default()
            }
            .build();
        }
        Ok(EventEncoder {
            schema,
            pointer_size: PointerSize::P8,
            provider_traits,
            metadata,
            values: Vec::new(),
            payload: Vec::new(),
        })
    }

    /// Sets the width of pointers in the payload.
    #[must_use]
    pub fn pointer_size(mut self, pointer_size: PointerSize) -> Self {
        self.pointer_size = pointer_size;
        self
    }

    /// Encodes the fields to a payload. A field that is not given is [`OwnedValue::Auto`]: the
    /// right value of a counting field, else zero or empty. If a field is given twice, the last
    /// value is used.
    ///
    /// # Errors
    /// If the schema has no field with a given name, or a value does not fit its field.
    pub fn payload<'n>(
        &mut self,
        fields: impl IntoIterator<Item = (&'n str, OwnedValue)>,
    ) -> Result<&[u8], EncodeError> {
        self.values.clear();
        self.values
            .resize(self.schema.fields.len(), OwnedValue::Auto);
        for (name, value) in fields {
            let index = self.schema.field_index(name);
            let Some(place) = index.and_then(|index| self.values.get_mut(index)) else {
                let problem = EncodeProblem::NoSuchField;
                return Err(EncodeError {
                    field: name.to_owned(),
                    problem,
                });
            };
            *place = value;
        }
        self.payload.clear();
        encode_into(
            &self.schema.fields,
            &self.values,
            self.pointer_size,
            &mut self.payload,
        )?;
        Ok(&self.payload)
    }

    /// Encodes an event with a raw timestamp and the given fields. Process, thread, activity and
    /// stack are set by the methods of [`Event`].
    ///
    /// The record is of the kind EVENT. For a classic event or a WPP message, use
    /// [`EventEncoder::payload`] with the record of its kind.
    ///
    /// # Errors
    /// As [`EventEncoder::payload`].
    pub fn event<'n>(
        &mut self,
        timestamp: impl Into<Ticks>,
        fields: impl IntoIterator<Item = (&'n str, OwnedValue)>,
    ) -> Result<Event<'_>, EncodeError> {
        self.payload(fields)?;
        let mut descriptor = self.schema.descriptor();
        let is_tracelogging = self.schema.identity == Identity::SelfDescribing;
        if is_tracelogging {
            descriptor.channel = TRACE_LOGGING_CHANNEL;
        }
        let mut event = Event::new(self.schema.provider, descriptor, timestamp)
            .pointer_size(self.pointer_size)
            .payload(&self.payload);
        if is_tracelogging {
            event = event
                .provider_traits(&self.provider_traits)
                .metadata(&self.metadata);
        }
        Ok(event)
    }
}
