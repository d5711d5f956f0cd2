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
    let wrong = EncodeProblem::WrongType {
        expected: ty.name(),
    };
    let width = ty.width(pointers);
    match (ty, value) {
        (InType::Null, _) => {}
        (InType::Int8 | InType::Int16 | InType::Int32 | InType::Int64, _) => {
            put(signed(value, width, wrong)? as u64, width, out);
        }
        (InType::UInt16, _) if out_type == OutType::Port => {
            let port = u16::try_from(number(value).ok_or(wrong)?);
            let port = port.map_err(|_| EncodeProblem::OutOfRange)?;
            out.extend_from_slice(&port.to_be_bytes());
        }
        (InType::UInt32, OwnedValue::Ipv4(a)) => out.extend_from_slice(&a.octets()),
        (InType::Float, OwnedValue::Float(v)) => out.extend_from_slice(&v.to_le_bytes()),
        (InType::Double, OwnedValue::Double(v)) => out.extend_from_slice(&v.to_le_bytes()),
        (InType::Double, OwnedValue::Float(v)) => {
            out.extend_from_slice(&f64::from(*v).to_le_bytes());
        }
        (InType::Float | InType::Double, OwnedValue::Auto) => put(0, width, out),
        (InType::Guid, OwnedValue::Guid(v)) => out.extend_from_slice(&v.to_bytes()),
        (InType::SystemTime, OwnedValue::SystemTime(v)) => {
            out.extend(v.iter().flat_map(|part| part.to_le_bytes()));
        }
        (InType::Guid | InType::SystemTime, OwnedValue::Auto) => out.extend_from_slice(&[0; 16]),
        // The shortest SID: revision 1, the null authority, no sub-authority.
        (InType::Sid, OwnedValue::Auto) => out.extend_from_slice(&[1, 0, 0, 0, 0, 0, 0, 0]),
        (InType::WbemSid, OwnedValue::Auto | OwnedValue::Null) => out.extend_from_slice(&[0; 4]),
        (InType::Sid | InType::WbemSid, OwnedValue::Sid(bytes)) => {
            if ty == InType::WbemSid {
                // TOKEN_USER holds a pointer to the SID and attributes, meaningless in a trace; but
                // the first must not be zero, which would say that there is no SID.
                let start = out.len();
                out.push(1);
                out.resize(start + pointers.bytes() * 2, 0);
            }
            let subs = bytes.get(1).map_or(0, |n| usize::from(*n));
            if bytes.len() != 8 + subs * 4 {
                return Err(EncodeProblem::BadSid);
            }
            out.extend_from_slice(bytes);
        }
        _ if ty.is_integer() || ty == InType::FileTime => {
            put(unsigned(value, width, wrong)?, width, out);
        }
        _ => return Err(wrong),
    }
    Ok(())
}

fn number(value: &OwnedValue) -> Option<u64> {
    match value {
        OwnedValue::Auto => Some(0),
        other => other.as_u64(),
    }
}

fn unsigned(value: &OwnedValue, width: usize, wrong: EncodeProblem) -> Result<u64, EncodeProblem> {
    let number = match value {
        OwnedValue::Int(v) if *v < 0 => return Err(EncodeProblem::OutOfRange),
        other => number(other).ok_or(wrong)?,
    };
    if width < 8 && number >> (width * 8) != 0 {
        return Err(EncodeProblem::OutOfRange);
    }
    Ok(number)
}

fn signed(value: &OwnedValue, width: usize, wrong: EncodeProblem) -> Result<i64, EncodeProblem> {
    let number = match value {
        OwnedValue::Int(v) => *v,
        // Characters in signed bytes keep their bits.
        OwnedValue::Char(v) if width == 1 && *v <= 0xff => return Ok(i64::from(*v)),
        other => {
            let number = i64::try_from(number(other).ok_or(wrong)?);
            number.map_err(|_| EncodeProblem::OutOfRange)?
        }
    };
    let limit = 1i128 << (width * 8 - 1);
    if i128::from(number) < -limit || i128::from(number) >= limit {
        return Err(EncodeProblem::OutOfRange);
    }
    Ok(number)
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
