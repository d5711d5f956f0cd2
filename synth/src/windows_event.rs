//! Raises events of providers that Windows ships, with values by the names of their fields.

use etl_format::Guid;
use etl_schema::EventSchema;
use etl_schema::encode::OwnedValue;

use crate::counts;
use crate::error::Result;
use crate::etw::{Etw, Event, Origin};

/// A value by the name of its field.
pub(crate) type NamedValue<'a> = (&'a str, OwnedValue);

/// Raises an event if a session asks for it. Lengths and counts are filled in; other fields without
/// a value are zero or empty. Values of fields that the event does not have are ignored.
pub(crate) fn raise(
    etw: &mut Etw<'_>,
    origin: &Origin,
    provider: Guid,
    schema: &EventSchema,
    more_keywords: u64,
    given: &[NamedValue<'_>],
) -> Result<()> {
    let provider = etw.provider(provider, false);
    let mut descriptor = schema.descriptor();
    descriptor.keyword |= more_keywords;
    let enablement = etw.seen(provider, origin.pid);
    if !enablement.raises(descriptor.level, descriptor.keyword) {
        return Ok(());
    }
    let mut values = Vec::with_capacity(schema.fields.len());
    for field in &schema.fields {
        let given = given.iter().find(|(name, _)| *name == field.name);
        values.push(given.map_or(OwnedValue::Auto, |(_, value)| value.clone()));
    }
    counts::fill(&schema.fields, &mut values);
    let event = Event {
        descriptor,
        ..Event::new(schema, &values)
    };
    etw.raise(provider, origin, &event)
}
