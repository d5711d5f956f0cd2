//! The fields of an event.

use crate::cursor::Cursor;
use crate::error::{Error, Result};

/// How deep structures and arrays may be nested. Event sources allow one level.
const MAX_DEPTH: u64 = 16;
/// The highest number of fields of an event, because a field takes more memory than its bytes.
const MAX_FIELDS: u64 = 1 << 16;

/// A field of an event's payload. Fields follow each other without alignment.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Field {
    /// Its name. Empty for the unnamed structure in which event counters are.
    pub name: String,
    /// Its type.
    pub field_type: FieldType,
}

/// The type of a field, and how its value is stored in the payload.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum FieldType {
    /// Fields in a field.
    Struct(Vec<Field>),
    /// 4 bytes, not 0 if true.
    Bool32,
    /// A UTF-16 unit.
    Utf16Unit,
    /// A signed byte.
    I8,
    /// A byte.
    U8,
    /// 2 bytes, signed.
    I16,
    /// 2 bytes.
    U16,
    /// 4 bytes, signed.
    I32,
    /// 4 bytes.
    U32,
    /// 8 bytes, signed.
    I64,
    /// 8 bytes.
    U64,
    /// A 4-byte floating-point number.
    F32,
    /// An 8-byte floating-point number.
    F64,
    /// A decimal number, which no known writer uses.
    Decimal,
    /// A date: 16 bytes of a `SYSTEMTIME` by the documentation, 8 bytes of a `FILETIME` in the
    /// reader of PerfView.
    DateTime,
    /// 16 bytes.
    Guid,
    /// UTF-16 text up to a NUL.
    Utf16Text,
    /// A 16-bit count, then the elements.
    Array(Box<FieldType>),
    /// A zigzag-encoded LEB128 number. Version 6.
    VarInt,
    /// A LEB128 number. Version 6.
    VarUInt,
    /// Elements without a count. Version 6.
    FixedArray {
        /// The type of the elements.
        element: Box<FieldType>,
        /// Their number.
        count: u16,
    },
    /// A UTF-8 unit. Version 6.
    Utf8Unit,
    /// Size in the upper, offset from the end of this field in the lower 16 of 32 bits. Version 6.
    RelativeLocation(Box<FieldType>),
    /// Size in the upper, offset in the payload in the lower 16 of 32 bits. Version 6.
    DataLocation(Box<FieldType>),
    /// 1 byte. Version 6.
    Bool8,
    /// A type code that this crate does not know.
    Unknown(u32),
}

/// How a list of fields is stored.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Layout {
    /// Versions 4 and 5: type, then name.
    Plain,
    /// The metadata tag of version 5: size, name, type.
    Sized,
    /// Version 6: a 16-bit size, name, type.
    Short,
}

pub(super) fn read(cursor: &mut Cursor<'_>, layout: Layout) -> Result<Vec<Field>> {
    FieldReader { layout, fields: 0 }.read_list(cursor, 0)
}

/// Reads the fields of one event.
struct FieldReader {
    layout: Layout,
    /// Fields read so far, nested ones included.
    fields: u64,
}

impl FieldReader {
    fn read_list(&mut self, cursor: &mut Cursor<'_>, depth: u64) -> Result<Vec<Field>> {
        let what = "the number of fields";
        let count = match self.layout {
            Layout::Short => cursor.u16(what)?.into(),
            Layout::Plain | Layout::Sized => cursor.size(what)?,
        };
        // Each field takes at least a byte, so that a wrong count ends at the end of the bytes.
        let mut fields = Vec::new();
        for _ in 0..count {
            fields.push(self.read_field(cursor, depth)?);
        }
        Ok(fields)
    }

    fn read_field(&mut self, cursor: &mut Cursor<'_>, depth: u64) -> Result<Field> {
        let start = cursor.offset();
        self.fields += 1;
        if self.fields > MAX_FIELDS {
            let what = "the number of fields of an event";
            return Err(Error::invalid(start, what, self.fields, "0x10000 or less"));
        }
        let mut content = match self.layout {
            Layout::Plain => {
                let field_type = self.read_type(cursor, depth)?;
                let name = cursor.utf16_text("the name of a field")?;
                return Ok(Field { name, field_type });
            }
            Layout::Sized => {
                let what = "the size of a field";
                let size = cursor.size(what)?;
                // The size includes its own 4 bytes.
                let Some(rest) = size.checked_sub(4) else {
                    return Err(Error::invalid(start, what, size as u64, "4 or more"));
                };
                cursor.sub(rest, "a field")?
            }
            Layout::Short => {
                let size = cursor.u16("the size of a field")?;
                cursor.sub(size.into(), "a field")?
            }
        };
        let name = match self.layout {
            Layout::Short => content.utf8_text("the name of a field")?,
            Layout::Plain | Layout::Sized => content.utf16_text("the name of a field")?,
        };
        let field_type = self.read_type(&mut content, depth)?;
        Ok(Field { name, field_type })
    }

    fn read_type(&mut self, cursor: &mut Cursor<'_>, depth: u64) -> Result<FieldType> {
        let start = cursor.offset();
        if depth > MAX_DEPTH {
            let what = "the nesting of a field";
            return Err(Error::invalid(start, what, depth, "0x10 or less"));
        }
        let what = "the type of a field";
        let code = match self.layout {
            Layout::Short => cursor.u8(what)?.into(),
            Layout::Plain | Layout::Sized => cursor.u32(what)?,
        };
        Ok(match code {
            1 => FieldType::Struct(self.read_list(cursor, depth + 1)?),
            3 => FieldType::Bool32,
            4 => FieldType::Utf16Unit,
            5 => FieldType::I8,
            6 => FieldType::U8,
            7 => FieldType::I16,
            8 => FieldType::U16,
            9 => FieldType::I32,
            10 => FieldType::U32,
            11 => FieldType::I64,
            12 => FieldType::U64,
            13 => FieldType::F32,
            14 => FieldType::F64,
            15 => FieldType::Decimal,
            16 => FieldType::DateTime,
            17 => FieldType::Guid,
            18 => FieldType::Utf16Text,
            19 => FieldType::Array(self.read_element(cursor, depth)?),
            20 => FieldType::VarInt,
            21 => FieldType::VarUInt,
            22 => {
                let element = self.read_element(cursor, depth)?;
                let count = cursor.u16("the number of elements of an array")?;
                FieldType::FixedArray { element, count }
            }
            23 => FieldType::Utf8Unit,
            24 => FieldType::RelativeLocation(self.read_element(cursor, depth)?),
            25 => FieldType::DataLocation(self.read_element(cursor, depth)?),
            26 => FieldType::Bool8,
            other => FieldType::Unknown(other),
        })
    }

    fn read_element(&mut self, cursor: &mut Cursor<'_>, depth: u64) -> Result<Box<FieldType>> {
        self.read_type(cursor, depth + 1).map(Box::new)
    }
}

/// About how many bytes of memory fields take.
pub(super) fn size_in_memory(fields: &[Field]) -> usize {
    let mut size = size_of_val(fields);
    for field in fields {
        size += field.name.len() + field.field_type.size_behind();
    }
    size
}

impl FieldType {
    /// Bytes of memory that it takes in addition to its own.
    fn size_behind(&self) -> usize {
        match self {
            FieldType::Struct(fields) => size_in_memory(fields),
            FieldType::Array(element)
            | FieldType::FixedArray { element, .. }
            | FieldType::RelativeLocation(element)
            | FieldType::DataLocation(element) => size_of::<FieldType>() + element.size_behind(),
            _ => 0,
        }
    }
}
