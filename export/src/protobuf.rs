//! Messages of Protocol Buffers: the few types that exporters need.

/// A message that is being written.
#[derive(Clone, Debug, Default)]
pub(crate) struct Message {
    bytes: Vec<u8>,
}

impl Message {
    /// The bytes of the message.
    pub fn bytes(&self) -> &[u8] {
        &self.bytes
    }

    /// Removes all fields, and keeps the memory.
    pub fn clear(&mut self) {
        self.bytes.clear();
    }

    /// A field with an integer; signed ones are sign-extended.
    pub fn uint(&mut self, field: u32, value: u64) {
        self.varint(u64::from(field) << 3);
        self.varint(value);
    }

    /// As [`Message::uint`], but leaves 0 out, the value of a missing field.
    pub fn uint_unless_zero(&mut self, field: u32, value: u64) {
        if value != 0 {
            self.uint(field, value);
        }
    }

    /// A field of type `sint32` or `sint64`: small numbers take few bytes, with either sign.
    pub fn zigzag(&mut self, field: u32, value: i64) {
        self.uint(field, ((value << 1) ^ (value >> 63)).cast_unsigned());
    }

    /// A field with a floating-point number.
    pub fn double(&mut self, field: u32, value: f64) {
        self.varint(u64::from(field) << 3 | 1);
        self.bytes.extend_from_slice(&value.to_le_bytes());
    }

    /// A field with a text.
    pub fn text(&mut self, field: u32, text: &str) {
        self.bytes_of(field, text.as_bytes());
    }

    /// A field with bytes, a text or the bytes of a message.
    pub fn bytes_of(&mut self, field: u32, bytes: &[u8]) {
        self.varint(u64::from(field) << 3 | 2);
        self.varint(bytes.len() as u64);
        self.bytes.extend_from_slice(bytes);
    }

    /// A field with a message.
    pub fn message(&mut self, field: u32, message: &Message) {
        self.bytes_of(field, &message.bytes);
    }

    /// The fields of another message.
    pub fn append(&mut self, other: &Message) {
        self.bytes.extend_from_slice(&other.bytes);
    }

    /// A repeated field of integers, packed.
    pub fn packed(&mut self, field: u32, values: impl IntoIterator<Item = u64>) {
        let mut packed = Message::default();
        for value in values {
            packed.varint(value);
        }
        self.message(field, &packed);
    }

    fn varint(&mut self, mut value: u64) {
        while value >= 0x80 {
            self.bytes.push(value as u8 | 0x80);
            value >>= 7;
        }
        self.bytes.push(value as u8);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fields_are_encoded_as_documented() {
        let mut message = Message::default();
        // The examples of the description of the encoding.
        message.uint(1, 150);
        message.bytes_of(2, b"testing");
        message.packed(6, [3, 270, 86_942]);
        message.uint_unless_zero(7, 0);
        let expected = [
            &[0x08, 0x96, 0x01, 0x12, 0x07][..],
            b"testing",
            &[0x32, 0x06, 0x03, 0x8e, 0x02, 0x9e, 0xa7, 0x05],
        ];
        assert_eq!(message.bytes(), expected.concat());
        message.clear();
        for value in [0, -1, 1, -2, i64::from(i32::MAX), i64::from(i32::MIN)] {
            message.zigzag(1, value);
        }
        message.double(2, 1.5);
        message.text(3, "a");
        let expected = [
            &[8, 0, 8, 1, 8, 2, 8, 3, 8, 0xfe, 0xff, 0xff, 0xff, 0x0f][..],
            &[
                8, 0xff, 0xff, 0xff, 0xff, 0x0f, 0x11, 0, 0, 0, 0, 0, 0, 0xf8, 0x3f, 0x1a, 1, b'a',
            ],
        ];
        assert_eq!(message.bytes(), expected.concat());
    }
}
