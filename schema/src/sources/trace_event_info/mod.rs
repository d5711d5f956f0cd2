//! `TRACE_EVENT_INFO` and `EVENT_MAP_INFO` blobs: schemas that a merge adds to the trace.
//!
//! Offsets are from the start of the blob; names are UTF-16 with a NUL.

use super::{number, tdh};
use crate::Error;
use crate::model::{
    Count, EventSchema, Field, FieldKind, FieldRef, Identity, InType, Length, MapEntry, MapKind,
    Named, OutType, SchemaSource, Text, ValueMap,
};
use etl_format::Guid;
use etl_format::cursor::{Bytes, Cursor};
use std::cell::Cell;
use std::collections::HashMap;
use std::sync::Arc;

/// Bytes before the first property.
const HEADER: usize = 0x70;
/// Bytes of a property.
const PROPERTY: usize = 0x18;
/// Nesting of structs.
const MAX_DEPTH: usize = 8;
/// Fields and members of one event. Structs can share members, so the blob's size is not a bound.
const MAX_FIELDS: usize = 4096;

/// The maps that were read so far, by provider and name.
#[derive(Debug, Clone, Default)]
pub struct Maps(HashMap<(Guid, String), Arc<ValueMap>>);

impl Maps {
    /// Adds the map of a record: a provider's GUID and an `EVENT_MAP_INFO` blob. `None` if the
    /// record cannot be read.
    pub fn add(&mut self, record: &[u8]) -> Option<ProviderMap> {
        let provider = record.guid_at(0)?;
        let map = Arc::new(parse_map(record.get(16..)?)?);
        self.0
            .insert((provider, map.name().to_owned()), map.clone());
        Some(ProviderMap { provider, map })
    }
}

/// A map and the provider whose events use it.
#[derive(Debug, Clone, PartialEq)]
pub struct ProviderMap {
    /// The provider.
    pub provider: Guid,
    /// The map.
    pub map: Arc<ValueMap>,
}

/// Reads one `EVENT_MAP_INFO` blob. Entries whose text lies outside of it are left out.
fn parse_map(blob: &[u8]) -> Option<ValueMap> {
    const BITS: u32 = 2 | 0x10 | 0x20;
    const WBEM: u32 = 8 | 0x10 | 0x20;
    // The values of a map from MOF can be offsets of texts.
    const TEXT_VALUES: u32 = 1;
    let texts = Texts::new(blob);
    let name = texts.at(blob.u32_at(0)?)?;
    let flags = blob.u32_at(4)?;
    let kind = if flags & BITS != 0 {
        MapKind::Bits
    } else {
        MapKind::Values
    };
    let has_text_values = flags & WBEM != 0 && blob.u32_at(12)? == TEXT_VALUES;
    let count = usize::try_from(blob.u32_at(8)?).ok()?;
    let mut entries = Vec::new();
    for entry in blob.get(16..)?.chunks_exact(8).take(count) {
        let output = entry.u32_at(0)?;
        let value = entry.u32_at(4)?;
        let value = if has_text_values {
            texts.at(value).and_then(|text| number(&text))
        } else {
            Some(value.into())
        };
        let name = texts.at(output);
        if let Some(value) = value
            && let Some(name) = name
        {
            entries.push(MapEntry {
                value,
                name: name.trim_end().to_owned().into(),
            });
        }
    }
    Some(ValueMap::new(name.trim_end().to_owned(), kind, entries))
}

/// The texts of a blob. Many references can name the same text, so the size of all copies together
/// is bounded by a multiple of the blob's size.
struct Texts<'a> {
    blob: &'a [u8],
    left: Cell<usize>,
}

impl<'a> Texts<'a> {
    fn new(blob: &'a [u8]) -> Self {
        Texts {
            blob,
            left: Cell::new(blob.len().saturating_mul(4)),
        }
    }

    /// The text at an offset; `None` for offset 0, outside of the blob, and after too many texts.
    fn at(&self, offset: u32) -> Option<String> {
        if offset == 0 {
            return None;
        }
        let rest = self.blob.get(usize::try_from(offset).ok()?..)?;
        let rest = rest.get(..self.left.get()).unwrap_or(rest);
        let text = Cursor::new(rest).utf16z().unwrap_or(rest);
        self.left.set(self.left.get().checked_sub(text.len())?);
        Some(crate::decode::Utf16::new(text).to_string())
    }

    /// The text whose offset is at `header_offset`; empty if there is none.
    fn name(&self, header_offset: usize) -> Text {
        let offset = self.blob.u32_at(header_offset).unwrap_or(0);
        match self.at(offset) {
            Some(text) => text.trim_end().to_owned().into(),
            None => Text::Borrowed(""),
        }
    }
}

/// The fixed part of a blob, without the offsets of texts.
struct InfoHeader {
    provider: Guid,
    event_guid: Guid,
    id: u16,
    version: u8,
    channel: u8,
    level: u8,
    opcode: u8,
    task: u16,
    keywords: u64,
    /// Kind of provider: 1 is a classic MOF class, 2 WPP.
    decoding_source: u32,
    properties: u32,
    top_level_properties: u32,
}

impl InfoHeader {
    fn read(blob: &[u8]) -> Option<Self> {
        let [version, channel, level, opcode] = blob.array(0x22)?;
        Some(InfoHeader {
            provider: blob.guid_at(0)?,
            event_guid: blob.guid_at(16)?,
            id: blob.u16_at(0x20)?,
            version,
            channel,
            level,
            opcode,
            task: blob.u16_at(0x26)?,
            keywords: blob.u64_at(0x28)?,
            decoding_source: blob.u32_at(0x30)?,
            properties: blob.u32_at(0x64)?,
            top_level_properties: blob.u32_at(0x68)?,
        })
    }

    /// The GUID of the events: of a class, of messages, or of a provider.
    fn owner(&self) -> Guid {
        match self.decoding_source {
            1 | 2 => self.event_guid,
            _ => self.provider,
        }
    }

    fn identity(&self) -> Identity {
        match self.decoding_source {
            1 => Identity::Classic {
                opcode: self.opcode,
                version: self.version.into(),
            },
            2 => Identity::Message { number: self.id },
            _ => Identity::Modern {
                id: self.id,
                version: self.version,
            },
        }
    }
}

/// Reads a blob. A field whose map is not in `maps` gets an empty one, see [`attach`].
///
/// # Errors
/// If the blob is cut, or its layout is invalid.
pub fn parse(blob: &[u8], maps: &Maps) -> Result<EventSchema, Error> {
    let have = blob.len();
    let header = InfoHeader::read(blob).ok_or(Error::ShortInfo { need: HEADER, have })?;
    let owner = header.owner();
    let texts = Texts::new(blob);
    let mut schema = EventSchema::new(owner, header.identity(), SchemaSource::TraceEventInfo);
    schema.provider_name = texts.name(0x34);
    schema.level = Named::new(header.level, texts.name(0x38));
    schema.channel = Named::new(header.channel, texts.name(0x3c));
    schema.task = Named::new(header.task, texts.name(0x44));
    schema.opcode = Named::new(header.opcode, texts.name(0x48));
    schema.keywords = header.keywords;
    schema.keyword_names = keyword_names(blob);
    schema.message = Some(texts.name(0x4c)).filter(|message| !message.is_empty());
    schema.name = texts.name(0x5c);
    schema.complete_name();
    let count = usize::try_from(header.properties).unwrap_or(usize::MAX);
    let top = usize::try_from(header.top_level_properties).unwrap_or(usize::MAX);
    let need = count.saturating_mul(PROPERTY).saturating_add(HEADER);
    if top > count || need > have {
        return Err(Error::ShortInfo { need, have });
    }
    let mut reader = Properties {
        blob,
        texts: &texts,
        maps,
        provider: owner,
        count,
        top,
        left: MAX_FIELDS,
    };
    schema.fields = reader.list(0, top, 0)?;
    Ok(schema)
}

fn keyword_names(blob: &[u8]) -> Vec<Text> {
    let mut names = Vec::new();
    let offset = blob
        .u32_at(0x40)
        .and_then(|offset| usize::try_from(offset).ok())
        .unwrap_or(0);
    if offset == 0 {
        return names;
    }
    let mut c = Cursor::new(blob.get(offset..).unwrap_or_default());
    while names.len() < MAX_KEYWORDS
        && let Some(text) = c.utf16z()
        && !text.is_empty()
    {
        names.push(
            crate::decode::Utf16::new(text)
                .to_string()
                .trim_end()
                .to_owned()
                .into(),
        );
    }
    names
}

/// Bits of a keyword mask.
const MAX_KEYWORDS: usize = 64;

/// One property as it is stored.
struct Property {
    flags: u32,
    /// Offset of the name.
    name: u32,
    /// In-type, or index of the first member of a struct.
    first: u16,
    /// Out-type, or number of members of a struct.
    second: u16,
    /// Offset of the name of the map.
    map: u32,
    /// Number of values, or index of the property that has it.
    count: u16,
    /// Length, or index of the property that has it.
    length: u16,
}

impl Property {
    fn read(blob: &[u8], offset: usize) -> Option<Self> {
        let property = blob.at(offset, PROPERTY)?;
        Some(Property {
            flags: property.u32_at(0)?,
            name: property.u32_at(4)?,
            first: property.u16_at(8)?,
            second: property.u16_at(10)?,
            map: property.u32_at(12)?,
            count: property.u16_at(0x10)?,
            length: property.u16_at(0x12)?,
        })
    }
}

struct Properties<'a> {
    blob: &'a [u8],
    texts: &'a Texts<'a>,
    maps: &'a Maps,
    provider: Guid,
    count: usize,
    top: usize,
    left: usize,
}

impl Properties<'_> {
    fn list(&mut self, start: usize, len: usize, depth: usize) -> Result<Vec<Field>, Error> {
        if depth > MAX_DEPTH || start.saturating_add(len) > self.count {
            return Err(Error::InfoTooBig);
        }
        (start..start + len)
            .map(|index| self.property(index, start, depth))
            .collect()
    }

    fn property(&mut self, index: usize, start: usize, depth: usize) -> Result<Field, Error> {
        const STRUCT: u32 = 1;
        const PARAM_LENGTH: u32 = 2;
        const PARAM_COUNT: u32 = 4;
        const FIXED_COUNT: u32 = 0x20;
        self.left = self.left.checked_sub(1).ok_or(Error::InfoTooBig)?;
        let offset = HEADER + index * PROPERTY;
        let short = Error::ShortInfo {
            need: offset + PROPERTY,
            have: self.blob.len(),
        };
        let property = Property::read(self.blob, offset).ok_or(short)?;
        let name: Text = self.texts.at(property.name).unwrap_or_default().into();
        let count = if property.flags & PARAM_COUNT != 0 {
            Count::Field(self.reference(property.count, start, depth))
        } else if property.flags & FIXED_COUNT != 0 || property.count > 1 {
            Count::Const(property.count)
        } else {
            Count::One
        };
        let field = if property.flags & STRUCT != 0 {
            let members = self.list(property.first.into(), property.second.into(), depth + 1)?;
            Field::structure(name, members)
        } else if property.flags & PARAM_LENGTH != 0 {
            let length = Length::Field(self.reference(property.length, start, depth));
            self.value(name, &property, Some(length))?
        } else {
            self.value(name, &property, None)?
        };
        Ok(field.with_count(count))
    }

    /// A field that is not a struct. `by_field` is its length, if another field has it.
    fn value(
        &self,
        name: Text,
        property: &Property,
        by_field: Option<Length>,
    ) -> Result<Field, Error> {
        let number = property.first;
        let (ty, usual, char_out) = tdh::in_type(number).ok_or(Error::UnknownType(number))?;
        let out = match tdh::out_type(property.second) {
            OutType::Default => char_out,
            out => out,
        };
        let has_fixed_length = property.length > 0 && matches!(number, 1 | 2 | 14);
        let length = match ty {
            InType::Utf16 | InType::Ansi | InType::Binary => match by_field {
                Some(by_field) => by_field,
                None if has_fixed_length => Length::Fixed(property.length),
                None if number == 14 && out == OutType::Ipv6 => Length::Fixed(16),
                None => usual,
            },
            _ => Length::Natural,
        };
        let mut field = Field::new(name, ty).with_length(length).with_out(out);
        if let Some(map) = self.texts.at(property.map) {
            field.map = Some(self.map(map.trim_end()));
        }
        Ok(field)
    }

    /// The map with this name; an empty map with the name if it was not read yet.
    fn map(&self, name: &str) -> Arc<ValueMap> {
        let key = (self.provider, name.to_owned());
        if let Some(map) = self.maps.0.get(&key) {
            return map.clone();
        }
        Arc::new(ValueMap::new(key.1, MapKind::Values, Vec::new()))
    }

    /// A counting field. The blob has its index among all properties.
    fn reference(&self, index: u16, start: usize, depth: usize) -> FieldRef {
        let property = usize::from(index);
        if depth > 0 && property < self.top {
            return FieldRef::Top(index);
        }
        let in_list = property.saturating_sub(start);
        FieldRef::Here(u16::try_from(in_list).unwrap_or(u16::MAX))
    }
}

/// Sets a map for the fields that name it.
pub fn attach(schema: &mut EventSchema, map: &Arc<ValueMap>) {
    fn visit(fields: &mut [Field], map: &Arc<ValueMap>) {
        for field in fields {
            if let FieldKind::Struct(members) = &mut field.kind {
                visit(members, map);
            } else if field.map.as_ref().is_some_and(|m| m.name() == map.name()) {
                field.map = Some(map.clone());
            }
        }
    }
    visit(&mut schema.fields, map);
}

#[cfg(test)]
mod tests;
