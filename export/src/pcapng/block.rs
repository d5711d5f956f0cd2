//! Blocks of pcapng files. Numbers are little-endian, and everything is padded to 4 bytes.

use std::io::{self, Write};

/// A block that is being built; its memory is used again.
#[derive(Debug, Default)]
pub(super) struct Block {
    bytes: Vec<u8>,
}

/// Types of blocks.
pub(super) mod kind {
    pub const SECTION_HEADER: u32 = 0x0a0d_0d0a;
    pub const INTERFACE: u32 = 1;
    pub const ENHANCED_PACKET: u32 = 6;
}

/// Codes of options.
pub(super) mod option {
    pub const END: u16 = 0;
    pub const COMMENT: u16 = 1;
    pub const SECTION_APPLICATION: u16 = 4;
    pub const INTERFACE_NAME: u16 = 2;
    pub const INTERFACE_DESCRIPTION: u16 = 3;
    pub const INTERFACE_IPV4: u16 = 4;
    pub const INTERFACE_IPV6: u16 = 5;
    pub const INTERFACE_MAC: u16 = 6;
    pub const INTERFACE_RESOLUTION: u16 = 9;
    pub const PACKET_FLAGS: u16 = 2;
    pub const PACKET_ID: u16 = 5;
    pub const PACKET_VERDICT: u16 = 7;
    pub const PACKET_PROCESS: u16 = 8;
}

impl Block {
    /// Begins a block.
    pub fn begin(&mut self, kind: u32) -> &mut Self {
        self.bytes.clear();
        // The length follows at the end.
        self.u32(kind).u32(0)
    }

    pub fn u16(&mut self, value: u16) -> &mut Self {
        self.bytes.extend(value.to_le_bytes());
        self
    }

    pub fn u32(&mut self, value: u32) -> &mut Self {
        self.bytes.extend(value.to_le_bytes());
        self
    }

    pub fn bytes(&mut self, bytes: &[u8]) -> &mut Self {
        self.bytes.extend_from_slice(bytes);
        self.bytes.resize(self.bytes.len().next_multiple_of(4), 0);
        self
    }

    /// An option. One that is too long for its length field is cut.
    pub fn option(&mut self, code: u16, value: &[u8]) -> &mut Self {
        let len = u16::try_from(value.len()).unwrap_or(u16::MAX);
        self.u16(code)
            .u16(len)
            .bytes(value.get(..len.into()).unwrap_or_default())
    }

    /// A text option; nothing for an empty text.
    pub fn text(&mut self, code: u16, text: &str) -> &mut Self {
        if text.is_empty() {
            self
        } else {
            self.option(code, text.as_bytes())
        }
    }

    /// Ends the options and the block, and writes it.
    pub fn write(&mut self, out: &mut impl Write) -> io::Result<()> {
        self.u16(option::END).u16(0);
        let len = u32::try_from(self.bytes.len() + 4)
            .map_err(|_| io::Error::new(io::ErrorKind::InvalidData, "a block beyond 4 GB"))?;
        self.u32(len);
        if let Some(field) = self.bytes.get_mut(4..8) {
            field.copy_from_slice(&len.to_le_bytes());
        }
        out.write_all(&self.bytes)
    }
}
