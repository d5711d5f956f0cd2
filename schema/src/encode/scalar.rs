//! Writing of values whose type determines their length.

use super::{EncodeProblem, OwnedValue};
use crate::model::{InType, OutType};
use etl_format::constants::PointerSize;

/// Writes one value of a type that is neither text nor binary nor a struct.
pub(super) fn write(
    ty: InType,
    out_type: OutType,
    value: &OwnedValue,
    pointers: PointerSize,
    out: &mut Vec<u8>,
) -> Result<(), EncodeProblem> {
    let wrong = || EncodeProblem::WrongType { expected: ty.name() };
    match ty {
        InType::Null => Ok(()),
        InType::Int8 => signed(value, 1, wrong, out),
        InType::Int16 => signed(value, 2, wrong, out),
        InType::Int32 => signed(value, 4, wrong, out),
        InType::Int64 => signed(value, 8, wrong, out),
        InType::UInt8 => unsigned(value, 1, wrong, out),
        InType::UInt16 if out_type == OutType::Port => {
            let port = u16::try_from(number(value).ok_or_else(wrong)?);
            let port = port.map_err(|_| EncodeProblem::OutOfRange)?;
            out.extend_from_slice(&port.to_be_bytes());
            Ok(())
        }
        InType::UInt16 => unsigned(value, 2, wrong, out),
        InType::UInt32 => match value {
            OwnedValue::Ipv4(a) => {
                out.extend_from_slice(&a.octets());
                Ok(())
            }
            _ => unsigned(value, 4, wrong, out),
        },
        InType::HexInt32 | InType::Boolean => unsigned(value, 4, wrong, out),
        InType::UInt64 | InType::HexInt64 | InType::FileTime => unsigned(value, 8, wrong, out),
        InType::Pointer | InType::SizeT => unsigned(value, pointers.bytes(), wrong, out),
        InType::Float => match value {
            OwnedValue::Float(v) => {
                out.extend_from_slice(&v.to_le_bytes());
                Ok(())
            }
            OwnedValue::Auto => unsigned(value, 4, wrong, out),
            _ => Err(wrong()),
        },
        InType::Double => match value {
            OwnedValue::Double(v) => {
                out.extend_from_slice(&v.to_le_bytes());
                Ok(())
            }
            OwnedValue::Float(v) => {
                out.extend_from_slice(&f64::from(*v).to_le_bytes());
                Ok(())
            }
            OwnedValue::Auto => unsigned(value, 8, wrong, out),
            _ => Err(wrong()),
        },
        InType::Guid => match value {
            OwnedValue::Guid(v) => {
                out.extend_from_slice(&v.to_bytes());
                Ok(())
            }
            OwnedValue::Auto => {
                out.extend_from_slice(&[0; 16]);
                Ok(())
            }
            _ => Err(wrong()),
        },
        InType::SystemTime => match value {
            OwnedValue::SystemTime(v) => {
                out.extend(v.iter().flat_map(|part| part.to_le_bytes()));
                Ok(())
            }
            OwnedValue::Auto => {
                out.extend_from_slice(&[0; 16]);
                Ok(())
            }
            _ => Err(wrong()),
        },
        InType::Sid => match value {
            // The shortest SID: revision 1, the null authority, no sub-authority.
            OwnedValue::Auto => {
                out.extend_from_slice(&[1, 0, 0, 0, 0, 0, 0, 0]);
                Ok(())
            }
            _ => sid(value, wrong, out),
        },
        InType::WbemSid => match value {
            OwnedValue::Auto | OwnedValue::Null => {
                out.extend_from_slice(&[0; 4]);
                Ok(())
            }
            _ => {
                // TOKEN_USER holds a pointer to the SID and attributes, meaningless in a trace; but
                // the first must not be zero, which would say that there is no SID.
                let start = out.len();
                out.push(1);
                out.resize(start + pointers.bytes() * 2, 0);
                sid(value, wrong, out)
            }
        },
        InType::Utf16 | InType::Ansi | InType::Binary => Err(wrong()),
    }
}

fn number(value: &OwnedValue) -> Option<u64> {
    match value {
        OwnedValue::Auto => Some(0),
        other => other.as_u64(),
    }
}

fn unsigned(
    value: &OwnedValue,
    width: usize,
    wrong: impl Fn() -> EncodeProblem,
    out: &mut Vec<u8>,
) -> Result<(), EncodeProblem> {
    let number = match value {
        OwnedValue::Int(v) if *v < 0 => return Err(EncodeProblem::OutOfRange),
        other => number(other).ok_or_else(wrong)?,
    };
    if width < 8 && number >> (width * 8) != 0 {
        return Err(EncodeProblem::OutOfRange);
    }
    put(number, width, out);
    Ok(())
}

/// The lowest bytes of a number. A length that is known when this is compiled takes a store and not
/// a call.
#[inline]
fn put(number: u64, width: usize, out: &mut Vec<u8>) {
    let bytes = number.to_le_bytes();
    let [a, b, c, d, ..] = bytes;
    match width {
        1 => out.push(a),
        2 => out.extend_from_slice(&[a, b]),
        4 => out.extend_from_slice(&[a, b, c, d]),
        _ => out.extend_from_slice(&bytes),
    }
}

fn signed(
    value: &OwnedValue,
    width: usize,
    wrong: impl Fn() -> EncodeProblem,
    out: &mut Vec<u8>,
) -> Result<(), EncodeProblem> {
    let number = match value {
        OwnedValue::Int(v) => *v,
        // Characters in signed bytes keep their bits.
        OwnedValue::Char(v) if width == 1 && *v <= 0xff => {
            put(u64::from(*v), 1, out);
            return Ok(());
        }
        other => i64::try_from(number(other).ok_or_else(wrong)?)
            .map_err(|_| EncodeProblem::OutOfRange)?,
    };
    let limit = 1i128 << (width * 8 - 1);
    if i128::from(number) < -limit || i128::from(number) >= limit {
        return Err(EncodeProblem::OutOfRange);
    }
    put(number as u64, width, out);
    Ok(())
}

fn sid(
    value: &OwnedValue,
    wrong: impl Fn() -> EncodeProblem,
    out: &mut Vec<u8>,
) -> Result<(), EncodeProblem> {
    let OwnedValue::Sid(bytes) = value else { return Err(wrong()) };
    let subs = bytes.get(1).map_or(0, |n| usize::from(*n));
    if bytes.len() != 8 + subs * 4 {
        return Err(EncodeProblem::BadSid);
    }
    out.extend_from_slice(bytes);
    Ok(())
}
