//! Decoding of payloads to named, typed values that borrow from the payload.
//!
//! [`Decoder::new`] compiles a schema once for both pointer sizes; [`Decoder::fields`] then walks a
//! payload without allocating. Nothing here fails: if a payload is too short, the values up to its
//! end are returned; if it is too long, bytes are left over. [`Fields::note`] reports both.
//!
//! ```
//! use etl_format::{Guid, constants::PointerSize};
//! use etl_schema::{EventSchema, Field, Identity, InType, SchemaSource, decode::{Decoder, Value}};
//!
//! let id = Identity::Modern { id: 1, version: 0 };
//! let mut schema = EventSchema::new(Guid::ZERO, id, SchemaSource::Table);
//! schema.fields = vec![Field::new("Count", InType::UInt32), Field::new("Name", InType::Utf16)];
//! let decoder = Decoder::new(schema.into());
//! let mut fields = decoder.fields(b"\x07\0\0\0G\0C\0\0\0", PointerSize::P8);
//! assert_eq!(fields.next().map(|(_, v)| v.as_u64()), Some(Some(7)));
//! let Some((field, Value::Utf16(name))) = fields.next() else { unreachable!() };
//! assert_eq!((&*field.name, name.to_string()), ("Name", "GC".to_owned()));
//! assert!(fields.next().is_none() && fields.note().is_exact());
//! ```

use crate::model::{Count, EventSchema, Field, Length};
use etl_format::constants::{PointerSize, RecordKind};
use etl_format::read::Record;
use std::sync::Arc;

mod extent;
mod fields;
mod path;
mod plan;
mod shared;
mod text;
mod value;
mod views;

pub(crate) use extent::wbem_sid_len;
pub use fields::{Fields, LocatedField, Note};
pub(crate) use text::ansi_chars;
pub use text::{Utf16, ansi_text};
pub use value::{Sid, SystemTime, Value};
pub use views::{ArrayView, Elements, LocatedElement, StructView};

pub(crate) use plan::MAX_DEPTH;
use plan::{Op, Run, Shape};
use shared::Shared;

/// A schema compiled for walking payloads.
#[derive(Debug, Clone)]
pub struct Decoder {
    shared: Shared,
    /// For pointers of 4 and of 8 bytes.
    narrow: Vec<Op>,
    wide: Vec<Op>,
    /// Decoders of other layouts with the same id and version.
    others: Vec<Decoder>,
}

/// The bytes around the texts of a payload: see [`Decoder::string_layout`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct StringLayout {
    /// Bytes of the fields before them.
    pub before: usize,
    /// How many texts in UTF-16 there are, one after the other, each ended by a NUL.
    pub texts: usize,
    /// Bytes of the fields after them.
    pub after: usize,
}

/// How [`views`](crate::views) find the end of a field.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Reach {
    /// Always this many bytes.
    Fixed(u16),
    /// Text in UTF-16 up to its NUL.
    Utf16,
    /// Text of 8-bit units up to its NUL.
    Ansi,
    /// The kernel's SID field, for pointers of this width.
    Sid(usize),
    /// Anything else.
    Open,
}

impl Decoder {
    /// Compiles a schema. A reference to a counting field that does not exist, comes later or is
    /// not an integer means a count of 0. At most sixteen counts are kept at a time: a list of
    /// fields ends before a field whose count would be the seventeenth.
    #[must_use]
    pub fn new(schema: Arc<EventSchema>) -> Self {
        let narrow = plan::compile(&schema.fields, PointerSize::P4);
        let wide = plan::compile(&schema.fields, PointerSize::P8);
        Decoder {
            shared: Shared::new(schema),
            narrow,
            wide,
            others: Vec::new(),
        }
    }

    /// The decoder with other layouts of the same event, for payloads that it does not decode.
    pub(crate) fn with_others(mut self, layouts: &[Vec<Field>]) -> Self {
        for fields in layouts {
            let schema = EventSchema {
                fields: fields.clone(),
                ..EventSchema::clone(self.schema())
            };
            self.others.push(Decoder::new(Arc::new(schema)));
        }
        self
    }

    /// The decoder for a payload: this one, or the one of another layout with the same id and
    /// version if only that decodes the whole payload.
    #[must_use]
    #[inline]
    pub fn of_payload(&self, payload: &[u8], pointers: PointerSize) -> &Decoder {
        if self.others.is_empty() || self.check(payload, pointers).is_exact() {
            return self;
        }
        let mut others = self.others.iter();
        let fitting = others.find(|other| other.check(payload, pointers).is_exact());
        fitting.unwrap_or(self)
    }

    /// The schema.
    #[must_use]
    pub fn schema(&self) -> &Arc<EventSchema> {
        &self.shared.schema
    }

    fn ops(&self, pointers: PointerSize) -> &[Op] {
        match pointers {
            PointerSize::P4 => &self.narrow,
            PointerSize::P8 => &self.wide,
        }
    }

    /// The fields of a payload, in order.
    #[must_use]
    #[inline]
    pub fn fields<'a>(&'a self, payload: &'a [u8], pointers: PointerSize) -> Fields<'a> {
        Fields::top(&self.shared, self.ops(pointers), payload)
    }

    /// One value of a payload, by the path to it: see [`Fields::get`].
    ///
    /// Compares names each time. Code that reads many events reads [`Decoder::fields`] in order.
    ///
    /// ```
    /// use etl_format::{Guid, constants::PointerSize};
    /// use etl_schema::{EventSchema, Field, Identity, InType, SchemaSource, decode::Decoder};
    ///
    /// let identity = Identity::Modern { id: 1, version: 0 };
    /// let mut schema = EventSchema::new(Guid::ZERO, identity, SchemaSource::Manifest);
    /// schema.fields = vec![Field::new("Id", InType::UInt8), Field::new("Size", InType::UInt16)];
    /// let decoder = Decoder::new(schema.into());
    /// let size = decoder.get("Size", &[1, 0x10, 0], PointerSize::P8);
    /// assert_eq!(size.and_then(|size| size.as_u64()), Some(0x10));
    /// assert!(decoder.get("Size", &[1], PointerSize::P8).is_none());
    /// ```
    #[must_use]
    pub fn get<'a>(
        &'a self,
        path: &str,
        payload: &'a [u8],
        pointers: PointerSize,
    ) -> Option<Value<'a>> {
        self.fields(payload, pointers).get(path)
    }

    /// The size of every payload, if all fields have a fixed size.
    #[must_use]
    pub fn fixed_size(&self, pointers: PointerSize) -> Option<usize> {
        let ops = self.ops(pointers);
        let run = Run::at_start_of(ops);
        if run.fields == ops.len() {
            Some(run.bytes)
        } else {
            None
        }
    }

    /// Where the texts of every payload are, if all fields but some texts in a row have a fixed
    /// size. Then no walk over the fields is necessary to check that a payload ends with them.
    #[must_use]
    pub fn string_layout(&self, pointers: PointerSize) -> Option<StringLayout> {
        let ops = self.ops(pointers);
        let before = Run::at_start_of(ops);
        let rest = ops.get(before.fields..)?;
        let texts = rest.iter().take_while(|op| is_utf16z(op)).count();
        let rest = rest.get(texts..)?;
        let after = Run::at_start_of(rest);
        if texts == 0 || after.fields != rest.len() {
            return None;
        }
        Some(StringLayout {
            before: before.bytes,
            texts,
            after: after.bytes,
        })
    }

    /// The top-level fields and how far each reaches.
    pub(crate) fn reaches(&self, pointers: PointerSize) -> impl Iterator<Item = (&Field, Reach)> {
        self.shared
            .schema
            .fields
            .iter()
            .zip(self.ops(pointers).iter().map(Op::reach))
    }

    /// The pointer size of a record's payload: the size that the record states, or 8 bytes if it
    /// states none.
    ///
    /// If a 32-bit program logs events of the kernel again on 64-bit Windows, the record states 32
    /// bits, but its payload has pointers of 8 bytes. So if only 8 bytes fit, this returns 8 bytes.
    #[must_use]
    pub fn pointers_of(&self, record: &Record<'_>) -> PointerSize {
        let pointers = record.pointer_size().unwrap_or(PointerSize::P8);
        let payload = record.payload();
        let may_be_relogged = record.kind() == RecordKind::FULL32;
        if may_be_relogged
            && !self.check(payload, pointers).is_exact()
            && self.check(payload, PointerSize::P8).is_exact()
        {
            return PointerSize::P8;
        }
        pointers
    }

    /// Walks a whole payload and returns its missing fields and remaining bytes.
    #[must_use]
    pub fn check<'a>(&'a self, payload: &'a [u8], pointers: PointerSize) -> Note<'a> {
        let mut fields = self.fields(payload, pointers);
        fields.skip_to(usize::MAX);
        fields.note()
    }
}

/// Whether a field is one text in UTF-16 that ends at a NUL.
fn is_utf16z(op: &Op) -> bool {
    op.shape == Shape::Utf16 && op.length == Length::NulTerminated && op.count == Count::One
}

#[cfg(test)]
mod tests;
