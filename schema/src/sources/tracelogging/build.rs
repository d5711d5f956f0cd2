//! Building of TraceLogging metadata from a schema.

use super::{CONSTANT, MAX_DEPTH, MORE, VARIABLE, codes};
use crate::Error;
use crate::model::{Count, EventSchema, Field, FieldKind};

/// The data of an `EVENT_SCHEMA_TL` item for this schema: name, tags and fields.
///
/// # Errors
/// If TraceLogging cannot describe the schema: an array counted by a field, for example.
pub fn build(schema: &EventSchema) -> Result<Vec<u8>, Error> {
    let mut out = vec![0, 0];
    push_tags(schema.tags, &mut out);
    push_name(&schema.name, &mut out)?;
    schema
        .fields
        .iter()
        .try_for_each(|field| push_field(field, 0, &mut out))?;
    let size = u16::try_from(out.len()).map_err(|_| Error::TooLong { size: out.len() })?;
    for (to, from) in out.iter_mut().zip(size.to_le_bytes()) {
        *to = from;
    }
    Ok(out)
}

fn push_name(name: &str, out: &mut Vec<u8>) -> Result<(), Error> {
    if name.contains('\0') {
        return Err(Error::NulInName {
            name: name.to_owned(),
        });
    }
    out.extend_from_slice(name.as_bytes());
    out.push(0);
    Ok(())
}

/// Seven bits to a byte, the highest first, as many bytes as hold a set bit.
fn push_tags(tags: u32, out: &mut Vec<u8>) {
    let mut rest = tags & 0x0fff_ffff;
    loop {
        let byte = (rest >> 21) as u8 & 0x7f;
        rest = (rest << 7) & 0x0fff_ffff;
        if rest == 0 {
            out.push(byte);
            return;
        }
        out.push(byte | MORE);
    }
}

fn push_field(field: &Field, depth: usize, out: &mut Vec<u8>) -> Result<(), Error> {
    push_name(&field.name, out)?;
    let (code, out_code, members) = match &field.kind {
        FieldKind::Value(ty) => {
            let code = codes::in_code(*ty, field.length).ok_or_else(|| no_code(field))?;
            (code, codes::out_code(field.out), &[][..])
        }
        FieldKind::Struct(members) => {
            let count = u8::try_from(members.len()).map_err(|_| bad_struct(field))?;
            if count == 0 || count > 127 || depth >= MAX_DEPTH {
                return Err(bad_struct(field));
            }
            (codes::STRUCT, count, &members[..])
        }
    };
    let (counted, count) = match field.count {
        Count::One => (0, None),
        Count::Const(n) => (CONSTANT, Some(n)),
        Count::Prefixed => (VARIABLE, None),
        Count::Field(_) | Count::Rest => return Err(no_code(field)),
    };
    let tagged = field.tags & 0x0fff_ffff != 0;
    if out_code != 0 || tagged {
        out.push(code | counted | MORE);
        out.push(if tagged { out_code | MORE } else { out_code });
        if tagged {
            push_tags(field.tags, out);
        }
    } else {
        out.push(code | counted);
    }
    if let Some(count) = count {
        out.extend_from_slice(&count.to_le_bytes());
    }
    members
        .iter()
        .try_for_each(|member| push_field(member, depth + 1, out))
}

fn no_code(field: &Field) -> Error {
    Error::NoCode {
        field: field.name.to_string(),
    }
}

fn bad_struct(field: &Field) -> Error {
    Error::BadStruct {
        field: field.name.to_string(),
    }
}
