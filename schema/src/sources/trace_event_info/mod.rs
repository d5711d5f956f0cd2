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
/// Structs in structs.
const MAX_DEPTH: usize = 8;
/// Fields and members of one event. Structs may share members, so the blob's size is no bound.
const MAX_FIELDS: usize = 4096;

/// Maps by provider and name, as far as they were read.
#[derive(Debug, Clone, Default)]
pub struct Maps(HashMap<(Guid, String), Arc<ValueMap>>);

impl Maps {
    /// Adds the map of a record: a provider's GUID and an `EVENT_MAP_INFO` blob. `None` if the
    /// record cannot be read.
    pub fn add(&mut self, record: &[u8]) -> Option<ProviderMap> {
        let provider = record.guid_at(0)?;
        let map = Arc::new(parse_map(record.get(16..)?)?);
        self.0.insert((provider, map.name().to_owned()), map.clone());
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

/// One `EVENT_MAP_INFO` blob. Entries whose text lies outside are left out.
fn parse_map(blob: &[u8]) -> Option<ValueMap> {
    const BITS: u32 = 2 | 0x10 | 0x20;
    const WBEM: u32 = 8 | 0x10 | 0x20;
    // The values of a map from MOF may be text: where it stands.
    const TEXT_VALUES: u32 = 1;
    let texts_of = Texts::new(blob);
    let name = texts_of.at(blob.u32_at(0)?)?;
    let flags = blob.u32_at(4)?;
    let kind = if flags & BITS != 0 { MapKind::Bits } else { MapKind::Values };
    let texts = flags & WBEM != 0 && blob.u32_at(12)? == TEXT_VALUES;
    let count = usize::try_from(blob.u32_at(8)?).ok()?;
    let mut entries = Vec::new();
    for entry in blob.get(16..)?.chunks_exact(8).take(count) {
        let (output, value) = (entry.u32_at(0)?, entry.u32_at(4)?);
        let value =
            if texts { texts_of.at(value).and_then(|t| number(&t)) } else { Some(value.into()) };
        if let (Some(value), Some(name)) = (value, texts_of.at(output)) {
            entries.push(MapEntry { value, name: name.trim_end().to_owned().into() });
        }
    }
    Some(ValueMap::new(name.trim_end().to_owned(), kind, entries))
}

/// The texts of a blob. Any number of things may name the same one, so what all of them take
/// together is bounded by the blob's size.
struct Texts<'a> {
    blob: &'a [u8],
    left: Cell<usize>,
}

impl<'a> Texts<'a> {
    fn new(blob: &'a [u8]) -> Self {
        Texts { blob, left: Cell::new(blob.len().saturating_mul(4)) }
    }

    /// The text at an offset; `None` for offset 0 and outside, and when there was too much already.
    fn at(&self, at: u32) -> Option<String> {
        let rest = self.blob.get(usize::try_from(at).ok().filter(|at| *at != 0)?..)?;
        let rest = rest.get(..self.left.get()).unwrap_or(rest);
        let text = Cursor::new(rest).utf16z().unwrap_or(rest);
        self.left.set(self.left.get().checked_sub(text.len())?);
        Some(crate::decode::Utf16::new(text).to_string())
    }

    /// The text whose offset stands at `header_at`, or none.
    fn name(&self, header_at: usize) -> Text {
        let at = self.blob.u32_at(header_at).unwrap_or(0);
        self.at(at).map_or(Text::Borrowed(""), |s| s.trim_end().to_owned().into())
    }
}

/// Reads a blob; `maps` are those that were read before. A field whose map is missing has an empty
/// one, see [`attach`].
///
/// # Errors
/// When the blob is cut, or its layout cannot be known.
pub fn parse(blob: &[u8], maps: &Maps) -> Result<EventSchema, Error> {
    let cut = |need| Error::ShortInfo { need, have: blob.len() };
    let (Some(provider), Some(event_guid)) = (blob.guid_at(0), blob.guid_at(16)) else {
        return Err(cut(HEADER));
    };
    let u32_at = |at| blob.u32_at(at).ok_or_else(|| cut(HEADER));
    let id = blob.u16_at(0x20).ok_or_else(|| cut(HEADER))?;
    let [version, channel, level, opcode] = blob.array(0x22).ok_or_else(|| cut(HEADER))?;
    let task = blob.u16_at(0x26).ok_or_else(|| cut(HEADER))?;
    // Where the decoding comes from: 1 is a classic MOF class, 2 WPP.
    let (owner, identity) = match u32_at(0x30)? {
        1 => (event_guid, Identity::Classic { opcode, version: version.into() }),
        2 => (event_guid, Identity::Message { number: id }),
        _ => (provider, Identity::Modern { id, version }),
    };
    let texts = Texts::new(blob);
    let name = |header_at| texts.name(header_at);
    let mut schema = EventSchema::new(owner, identity, SchemaSource::TraceEventInfo);
    schema.provider_name = name(0x34);
    schema.level = Named::new(level, name(0x38));
    schema.channel = Named::new(channel, name(0x3c));
    schema.task = Named::new(task, name(0x44));
    schema.opcode = Named::new(opcode, name(0x48));
    schema.keywords = blob.u64_at(0x28).ok_or_else(|| cut(HEADER))?;
    schema.keyword_names = keyword_names(blob);
    schema.message = Some(name(0x4c)).filter(|m| !m.is_empty());
    schema.name = name(0x5c);
    schema.complete_name();
    let count = usize::try_from(u32_at(0x64)?).unwrap_or(usize::MAX);
    let top = usize::try_from(u32_at(0x68)?).unwrap_or(usize::MAX);
    let need = count.saturating_mul(PROPERTY).saturating_add(HEADER);
    if top > count || need > blob.len() {
        return Err(cut(need));
    }
    let mut reader =
        Properties { blob, texts: &texts, maps, provider: owner, count, top, left: MAX_FIELDS };
    schema.fields = reader.list(0, top, 0)?;
    Ok(schema)
}

fn keyword_names(blob: &[u8]) -> Vec<Text> {
    let mut names = Vec::new();
    let at = blob.u32_at(0x40).and_then(|at| usize::try_from(at).ok()).filter(|at| *at != 0);
    let mut c = Cursor::new(at.and_then(|at| blob.get(at..)).unwrap_or_default());
    while let Some(text) = c.utf16z().filter(|t| !t.is_empty() && names.len() < 64) {
        names.push(crate::decode::Utf16::new(text).to_string().trim_end().to_owned().into());
    }
    names
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
        (start..start + len).map(|index| self.property(index, start, depth)).collect()
    }

    fn property(&mut self, index: usize, start: usize, depth: usize) -> Result<Field, Error> {
        const STRUCT: u32 = 1;
        const PARAM_LENGTH: u32 = 2;
        const PARAM_COUNT: u32 = 4;
        const FIXED_COUNT: u32 = 0x20;
        self.left = self.left.checked_sub(1).ok_or(Error::InfoTooBig)?;
        let at = HEADER + index * PROPERTY;
        let cut = || Error::ShortInfo { need: at + PROPERTY, have: self.blob.len() };
        let p = self.blob.at(at, PROPERTY).ok_or_else(cut)?;
        let u16_at = |at| p.u16_at(at).ok_or_else(cut);
        let flags = p.u32_at(0).ok_or_else(cut)?;
        let name: Text = self.texts.at(p.u32_at(4).ok_or_else(cut)?).unwrap_or_default().into();
        let (first, second) = (u16_at(8)?, u16_at(10)?);
        let (count, length) = (u16_at(0x10)?, u16_at(0x12)?);
        // A counting field is stated as its index among all properties.
        let reference = |index: u16| {
            let index = usize::from(index);
            let narrow = |n: usize| u16::try_from(n).unwrap_or(u16::MAX);
            if depth > 0 && index < self.top {
                FieldRef::Top(narrow(index))
            } else {
                FieldRef::Here(narrow(index.saturating_sub(start)))
            }
        };
        let counted = if flags & PARAM_COUNT != 0 {
            Count::Field(reference(count))
        } else if flags & FIXED_COUNT != 0 || count > 1 {
            Count::Const(count)
        } else {
            Count::One
        };
        let by_field = (flags & PARAM_LENGTH != 0).then(|| Length::Field(reference(length)));
        let mut field = if flags & STRUCT != 0 {
            let members = self.list(first.into(), second.into(), depth + 1)?;
            Field::structure(name, members)
        } else {
            let (ty, usual, char_out) = tdh::in_type(first).ok_or(Error::UnknownType(first))?;
            let out = match tdh::out_type(second) {
                OutType::Default => char_out,
                out => out,
            };
            let length = match ty {
                InType::Utf16 | InType::Ansi | InType::Binary => match by_field {
                    Some(by_field) => by_field,
                    None if length > 0 && matches!(first, 1 | 2 | 14) => Length::Fixed(length),
                    None if first == 14 && out == OutType::Ipv6 => Length::Fixed(16),
                    None => usual,
                },
                _ => Length::Natural,
            };
            let mut field = Field::new(name, ty).with_length(length).with_out(out);
            if let Some(map) = self.texts.at(p.u32_at(12).ok_or_else(cut)?) {
                let map = map.trim_end().to_owned();
                let key = (self.provider, map);
                let found = self.maps.0.get(&key).cloned();
                let empty = || Arc::new(ValueMap::new(key.1.clone(), MapKind::Values, vec![]));
                field.map = Some(found.unwrap_or_else(empty));
            }
            field
        };
        field.count = counted;
        Ok(field)
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
