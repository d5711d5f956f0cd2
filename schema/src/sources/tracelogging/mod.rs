//! TraceLogging: events that carry their schema, in both directions.
//!
//! An event brings two extended items. `EVENT_SCHEMA_TL` holds its name and its fields ([`parse`],
//! [`build()`]), `PROV_TRAITS` the provider's name and group ([`ProviderTraits`]). Fields nest and
//! repeat. Both directions are checked against each other by a property, and the parser against
//! real traces.

use crate::Error;
use crate::decode::ansi_text;
use crate::model::{
    Count, EventSchema, Field, Identity, InType, Length, Named, SchemaSource, Text,
};
use crate::sources::provider_guid;
use etl_format::Guid;
use etl_format::cursor::Cursor;

mod build;
mod codes;
mod traits;

pub use build::build;
pub use traits::ProviderTraits;

/// Deepest nesting of structs; deeper ones make the metadata unusable.
const MAX_DEPTH: usize = 12;

/// Flag in an in-type or out-type byte: another byte follows.
const MORE: u8 = 0x80;
/// Constant count, variable count, or both: custom.
const COUNTED: u8 = 0x60;
const CONSTANT: u8 = 0x20;
const VARIABLE: u8 = 0x40;
const CUSTOM: u8 = 0x60;

impl EventSchema {
    /// A schema of a TraceLogging event: the names of provider and event, and the fields. The GUID
    /// of the provider follows from its name ([`provider_guid`]),
    /// and the level is 5 (verbose), as for events whose code states none.
    #[must_use]
    pub fn tracelogging(
        provider_name: impl Into<Text>,
        name: impl Into<Text>,
        fields: Vec<Field>,
    ) -> Self {
        let provider_name = provider_name.into();
        let provider = provider_guid(&provider_name);
        EventSchema {
            provider_name,
            name: name.into(),
            level: Named::new(5, ""),
            fields,
            ..EventSchema::new(
                provider,
                Identity::SelfDescribing,
                SchemaSource::TraceLogging,
            )
        }
    }
}

/// The schema in an `EVENT_SCHEMA_TL` item (its data, without the item's header), and the provider
/// that its record names.
///
/// A field of an unknown type is the rest of the payload as bytes. The fields after it are left
/// out, because their offsets are unknown.
///
/// ```
/// use etl_format::Guid;
/// use etl_schema::sources::tracelogging;
/// use etl_schema::{EventSchema, Field, Identity, InType, SchemaSource};
///
/// let source = SchemaSource::TraceLogging;
/// let mut schema = EventSchema::new(Guid::ZERO, Identity::SelfDescribing, source);
/// schema.name = "Started".into();
/// schema.fields = vec![Field::new("Count", InType::UInt32)];
/// let metadata = tracelogging::build(&schema)?;
/// assert_eq!(tracelogging::parse(Guid::ZERO, &metadata)?, schema);
/// # Ok::<(), etl_schema::Error>(())
/// ```
///
/// # Errors
/// If the metadata is cut or contradicts itself.
pub fn parse(provider: Guid, metadata: &[u8]) -> Result<EventSchema, Error> {
    let mut c = Cursor::new(metadata);
    let size = c.u16().ok_or_else(|| truncated(&c, "its size"))?;
    // Bytes after the stated size do not belong to the metadata.
    let metadata = metadata.get(..usize::from(size)).unwrap_or(metadata);
    let mut c = Cursor::new(metadata);
    c.take(2).ok_or_else(|| truncated(&c, "its size"))?;
    let mut schema = EventSchema::new(
        provider,
        Identity::SelfDescribing,
        SchemaSource::TraceLogging,
    );
    schema.tags = tags(&mut c).ok_or_else(|| truncated(&c, "the event's tags"))?;
    schema.name = text(c.ansiz().ok_or_else(|| truncated(&c, "the event's name"))?);
    let mut is_known = true;
    while !c.is_empty() && is_known {
        schema.fields.push(parse_field(&mut c, 0, &mut is_known)?);
    }
    Ok(schema)
}

fn truncated(c: &Cursor<'_>, what: &'static str) -> Error {
    Error::ShortMetadata {
        at: c.position() + c.rest().len(),
        what,
    }
}

fn text(bytes: &[u8]) -> Text {
    ansi_text(bytes).into_owned().into()
}

/// Up to 28 bits, seven to a byte, the highest first; missing bytes are zero.
fn tags(c: &mut Cursor<'_>) -> Option<u32> {
    let mut tags = 0u32;
    let mut shift = 21u32;
    loop {
        let byte = c.u8()?;
        tags |= u32::from(byte & 0x7f) << shift;
        if byte & MORE == 0 {
            return Some(tags);
        }
        if shift == 0 {
            // More than 28 bits: the rest is ignored.
            while c.u8()? & MORE != 0 {}
            return Some(tags);
        }
        shift -= 7;
    }
}

/// Reads a field. Sets `is_known` to `false` if its size is unknown.
fn parse_field(c: &mut Cursor<'_>, depth: usize, is_known: &mut bool) -> Result<Field, Error> {
    let name = text(c.ansiz().ok_or_else(|| truncated(c, "a field's name"))?);
    let in_byte = c.u8().ok_or_else(|| truncated(c, "a field's type"))?;
    let mut out_code = 0;
    let mut field_tags = 0;
    if in_byte & MORE != 0 {
        let out_byte = c.u8().ok_or_else(|| truncated(c, "a field's out-type"))?;
        out_code = out_byte & !MORE;
        if out_byte & MORE != 0 {
            field_tags = tags(c).ok_or_else(|| truncated(c, "a field's tags"))?;
        }
    }
    let mut count = Count::One;
    let mut custom = false;
    match in_byte & COUNTED {
        CONSTANT => count = Count::Const(c.u16().ok_or_else(|| truncated(c, "a field's count"))?),
        VARIABLE => count = Count::Prefixed,
        CUSTOM => {
            let size = c
                .u16()
                .ok_or_else(|| truncated(c, "a custom type's size"))?;
            c.take(size.into())
                .ok_or_else(|| truncated(c, "a custom type"))?;
            custom = true;
        }
        _ => {}
    }
    let code = in_byte & 0x1f;
    let mut field = if custom {
        // Custom data begin with their size.
        Field::new(name, InType::Binary)
    } else if code == codes::STRUCT {
        if depth >= MAX_DEPTH {
            return Err(Error::TooDeep);
        }
        let mut members = Vec::new();
        for _ in 0..out_code {
            if c.is_empty() {
                return Err(Error::MissingMembers);
            }
            if !*is_known {
                break;
            }
            members.push(parse_field(c, depth + 1, is_known)?);
        }
        Field::structure(name, members)
    } else if let Some((ty, length)) = codes::in_type(code) {
        Field::new(name, ty)
            .with_length(length)
            .with_out(codes::out_type(out_code))
    } else {
        *is_known = false;
        count = Count::One;
        Field::new(name, InType::Binary).with_length(Length::Rest)
    };
    field.count = count;
    field.tags = field_tags;
    Ok(field)
}

#[cfg(test)]
mod tests;
