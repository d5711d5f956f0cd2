//! Payloads whose types TraceLogging does not have, encoded again.

/// The longest payload of a record.
const MAX_PAYLOAD: usize = 0xffff;

/// How a value of a stream is stored, and with that how it is written.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Encoding {
    /// This many bytes, which stay as they are.
    Bytes(usize),
    /// UTF-16 text up to a NUL, which stays as it is.
    Utf16Text,
    /// A 16-bit length and this many bytes, which stay as they are.
    CountedBytes,
    /// A zigzag-encoded LEB128 number, which becomes 8 bytes.
    VarInt,
    /// A LEB128 number, which becomes 8 bytes.
    VarUInt,
    /// A 16-bit count and as many elements.
    Array(Box<Encoding>),
    /// Elements without a count.
    FixedArray { element: Box<Encoding>, count: u16 },
    /// The offset and size of bytes in the payload, which become a 16-bit length and these bytes.
    Location(LocationBase),
    /// Members, one after the other.
    Struct(Vec<Encoding>),
}

/// Where the offset of a location starts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum LocationBase {
    /// At the end of its field.
    Field,
    /// At the start of the payload.
    Payload,
}

impl Encoding {
    /// Whether the bytes of a value stay as they are.
    pub fn keeps_bytes(&self) -> bool {
        match self {
            Encoding::Bytes(_) | Encoding::Utf16Text | Encoding::CountedBytes => true,
            Encoding::VarInt | Encoding::VarUInt | Encoding::Location(_) => false,
            Encoding::Array(element) | Encoding::FixedArray { element, .. } => {
                element.keeps_bytes()
            }
            Encoding::Struct(members) => members.iter().all(Encoding::keeps_bytes),
        }
    }
}

/// Encodes a payload again. A value that is cut, and all after it, are left out, so that the result
/// is cut at the same field.
pub(super) fn encode(encodings: &[Encoding], payload: &[u8], out: &mut Vec<u8>) {
    out.clear();
    let mut encoder = Encoder {
        payload,
        position: 0,
        out,
    };
    for encoding in encodings {
        if encoder.value(encoding).is_none() {
            return;
        }
    }
}

struct Encoder<'a> {
    payload: &'a [u8],
    position: usize,
    out: &'a mut Vec<u8>,
}

impl<'a> Encoder<'a> {
    /// Encodes a value. `None` if it is cut, or the result too long for a record.
    fn value(&mut self, encoding: &Encoding) -> Option<()> {
        if self.out.len() > MAX_PAYLOAD {
            return None;
        }
        match encoding {
            Encoding::Bytes(size) => self.copy(*size),
            Encoding::Utf16Text => self.utf16_text(),
            Encoding::CountedBytes => {
                let len = self.count()?;
                self.copy(len.into())
            }
            Encoding::VarInt => {
                let value = self.var()?;
                // Zigzag: the lowest bit is the sign.
                self.number(value >> 1 ^ (value & 1).wrapping_neg())
            }
            Encoding::VarUInt => {
                let value = self.var()?;
                self.number(value)
            }
            Encoding::Array(element) => {
                let count = self.count()?;
                self.elements(element, count)
            }
            Encoding::FixedArray { element, count } => self.elements(element, *count),
            Encoding::Location(base) => self.location(*base),
            Encoding::Struct(members) => {
                for member in members {
                    self.value(member)?;
                }
                Some(())
            }
        }
    }

    fn elements(&mut self, element: &Encoding, count: u16) -> Option<()> {
        for _ in 0..count {
            let start = self.position;
            self.value(element)?;
            // Nested arrays of empty structures would take forever.
            if self.position == start {
                break;
            }
        }
        Some(())
    }

    fn take(&mut self, len: usize) -> Option<&'a [u8]> {
        let end = self.position.checked_add(len)?;
        let bytes = self.payload.get(self.position..end)?;
        self.position = end;
        Some(bytes)
    }

    fn copy(&mut self, len: usize) -> Option<()> {
        let bytes = self.take(len)?;
        self.out.extend_from_slice(bytes);
        Some(())
    }

    /// Copies a 16-bit count or length.
    fn count(&mut self) -> Option<u16> {
        let bytes = self.take(2)?.first_chunk()?;
        self.out.extend_from_slice(bytes);
        Some(u16::from_le_bytes(*bytes))
    }

    fn utf16_text(&mut self) -> Option<()> {
        let rest = self.payload.get(self.position..)?;
        let units = rest.as_chunks::<2>().0;
        let len = units.iter().position(|unit| *unit == [0, 0])?;
        self.copy(2 * (len + 1))
    }

    /// Reads a LEB128 number of up to 64 bits.
    fn var(&mut self) -> Option<u64> {
        let mut value = 0;
        for shift in (0..u64::BITS).step_by(7) {
            let byte = *self.take(1)?.first()?;
            value |= u64::from(byte & 0x7f) << shift;
            if byte & 0x80 == 0 {
                return Some(value);
            }
        }
        None
    }

    fn number(&mut self, value: u64) -> Option<()> {
        self.out.extend_from_slice(&value.to_le_bytes());
        Some(())
    }

    fn location(&mut self, base: LocationBase) -> Option<()> {
        let bytes = self.take(4)?.first_chunk()?;
        let word = u32::from_le_bytes(*bytes);
        let len = (word >> 16) as u16;
        let mut start = (word & 0xffff) as usize;
        if base == LocationBase::Field {
            start += self.position;
        }
        let data = self.payload.get(start..start + usize::from(len))?;
        self.out.extend_from_slice(&len.to_le_bytes());
        self.out.extend_from_slice(data);
        Some(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn encoded(encodings: &[Encoding], payload: &[u8]) -> Vec<u8> {
        let mut out = vec![9];
        encode(encodings, payload, &mut out);
        out
    }

    #[test]
    fn encode_writes_numbers_of_variable_length_in_8_bytes() {
        let encodings = [Encoding::VarUInt, Encoding::VarInt, Encoding::Bytes(1)];
        let out = encoded(&encodings, &[0x80, 0x01, 0x03, 7]);
        let expected = [&128u64.to_le_bytes()[..], &(-2i64).to_le_bytes(), &[7]].concat();
        assert_eq!(out, expected);
        let largest = [&[0xff; 9][..], &[1]].concat();
        assert_eq!(encoded(&encodings[..1], &largest), u64::MAX.to_le_bytes());
    }

    #[test]
    fn encode_copies_what_a_location_names() {
        let relative = [Encoding::Location(LocationBase::Field), Encoding::Bytes(1)];
        let out = encoded(&relative, b"\x01\0\x02\0\x07ab");
        assert_eq!(out, b"\x02\0ab\x07");
        let absolute = [Encoding::Location(LocationBase::Payload)];
        assert_eq!(encoded(&absolute, b"\x04\0\x03\0abc"), b"\x03\0abc");
        assert_eq!(encoded(&absolute, b"\x04\0\x04\0abc"), b"");
    }

    #[test]
    fn encode_stops_at_a_value_that_is_cut() {
        let encodings = [Encoding::Bytes(2), Encoding::Utf16Text, Encoding::VarUInt];
        assert_eq!(encoded(&encodings, b"abx\0\0\0\x81"), b"abx\0\0\0");
        assert_eq!(encoded(&encodings, b"abx\0\0"), b"ab");
        assert_eq!(encoded(&[Encoding::CountedBytes], b"\x04\0abc"), b"\x04\0");
    }

    #[test]
    fn encode_ends_for_nested_arrays_of_empty_structures() {
        let mut encoding = Encoding::Struct(Vec::new());
        for _ in 0..16 {
            encoding = Encoding::FixedArray {
                element: Box::new(encoding),
                count: u16::MAX,
            };
        }
        assert_eq!(encoded(&[encoding], &[1; 100]), b"");
    }

    #[test]
    fn encode_bounds_the_length_of_the_result() {
        let location = Encoding::Location(LocationBase::Payload);
        let encoding = Encoding::Array(Box::new(location));
        let payload = [&[0xff, 0xff][..], &b"\0\0\xff\x7f".repeat(16_000)].concat();
        let out = encoded(&[encoding], &payload);
        assert!(out.len() > MAX_PAYLOAD && out.len() < 3 * MAX_PAYLOAD);
    }
}
