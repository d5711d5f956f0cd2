//! Manifests that `EventSource`s write into the trace, in chunks.
//!
//! Event 0xFFFE carries a header of 8 bytes and a piece of UTF-8 XML. Sources repeat their manifest
//! when another session starts, chunks of different processes interleave, and some may be lost.

use crate::model::{EventSchema, Field, Identity, InType, Length, OutType, SchemaSource};
use etl_format::Guid;
use etl_format::cursor::Cursor;
use std::collections::HashMap;

/// Marks a chunk.
const MAGIC: u8 = 0x5b;
/// The only format there is: plain XML in UTF-8.
const FORMAT: u8 = 1;
/// Chunks of one manifest.
const MAX_CHUNKS: u16 = 4096;

/// One chunk.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Chunk<'a> {
    /// Major version of the manifest.
    pub major_version: u8,
    /// Minor version of the manifest.
    pub minor_version: u8,
    /// Number of chunks.
    pub total: u16,
    /// Number of this chunk, from 0.
    pub number: u16,
    /// The piece of XML.
    pub text: &'a [u8],
}

impl<'a> Chunk<'a> {
    /// From the payload of a manifest event; `None` for other payloads.
    #[must_use]
    pub fn parse(payload: &'a [u8]) -> Option<Self> {
        let mut c = Cursor::new(payload);
        let format = c.u8()?;
        let major = c.u8()?;
        let minor = c.u8()?;
        let magic = c.u8()?;
        let total = c.u16()?;
        let number = c.u16()?;
        if format != FORMAT || magic != MAGIC || number >= total || total > MAX_CHUNKS {
            return None;
        }
        Some(Chunk {
            major_version: major,
            minor_version: minor,
            total,
            number,
            text: c.rest(),
        })
    }

    /// The schema of the manifest event itself.
    pub(crate) fn schema() -> EventSchema {
        let identity = Identity::Modern {
            id: u16::MAX - 1,
            version: 1,
        };
        let mut schema = EventSchema::new(Guid::ZERO, identity, SchemaSource::EventSource);
        schema.name = "ManifestData".into();
        let bytes = ["Format", "MajorVersion", "MinorVersion", "Magic"];
        schema.fields = bytes.map(|name| Field::new(name, InType::UInt8)).into();
        for name in ["TotalChunks", "ChunkNumber"] {
            schema.fields.push(Field::new(name, InType::UInt16));
        }
        let text = Field::new("Data", InType::Ansi).with_length(Length::Rest);
        schema.fields.push(text.with_out(OutType::Utf8));
        schema
    }

    /// The payload of the manifest event that carries this chunk.
    #[must_use]
    pub fn build(&self) -> Vec<u8> {
        let mut out = vec![FORMAT, self.major_version, self.minor_version, MAGIC];
        out.extend_from_slice(&self.total.to_le_bytes());
        out.extend_from_slice(&self.number.to_le_bytes());
        out.extend_from_slice(self.text);
        out
    }
}

/// A manifest that is being put together.
#[derive(Clone, Debug, Default)]
struct Pending {
    /// Major and minor version.
    version: [u8; 2],
    total: u16,
    chunks: HashMap<u16, Box<[u8]>>,
}

impl Pending {
    /// The bytes that it takes of the limit.
    fn held(&self) -> usize {
        self.chunks
            .values()
            .map(|text| text.len().saturating_add(OVERHEAD))
            .sum()
    }
}

/// The assumed number of bytes of memory for a chunk, in addition to its text.
const OVERHEAD: usize = 64;

/// Puts manifests together from their chunks, in any order.
///
/// Two processes may have different versions of a source under one name, and their chunks may
/// interleave. So the chunks of each process are put together separately.
#[derive(Debug, Clone)]
pub struct Reassembler {
    pending: HashMap<(Guid, u32), Pending>,
    /// The last complete manifest of each provider, to recognize its repetitions.
    done: HashMap<Guid, Box<[u8]>>,
    held: usize,
    limit: usize,
}

impl Reassembler {
    /// Holds at most `limit` bytes of chunks and manifests. Chunks beyond that are dropped.
    #[must_use]
    pub fn new(limit: usize) -> Self {
        Reassembler {
            pending: HashMap::new(),
            done: HashMap::new(),
            held: 0,
            limit,
        }
    }

    /// Adds a chunk that a process wrote. Returns the manifest when it is complete and is not the
    /// one that was complete before.
    ///
    /// A chunk that differs from the held chunks in version, number of chunks or text starts a new
    /// manifest.
    pub fn add(&mut self, provider: Guid, process: u32, chunk: Chunk<'_>) -> Option<String> {
        let free = self.limit.saturating_sub(self.held);
        if chunk.text.len().saturating_add(OVERHEAD) > free {
            return None;
        }
        let pending = self.pending.entry((provider, process)).or_default();
        let held = pending.chunks.get(&chunk.number);
        let has_other_text = held.is_some_and(|text| **text != *chunk.text);
        let version = [chunk.major_version, chunk.minor_version];
        if pending.version != version || pending.total != chunk.total || has_other_text {
            self.held = self.held.saturating_sub(pending.held());
            pending.chunks.clear();
            pending.version = version;
            pending.total = chunk.total;
        }
        if pending
            .chunks
            .insert(chunk.number, chunk.text.into())
            .is_none()
        {
            self.held = self
                .held
                .saturating_add(chunk.text.len().saturating_add(OVERHEAD));
        }
        if pending.chunks.len() < usize::from(pending.total) {
            return None;
        }
        let mut whole = Vec::new();
        for number in 0..pending.total {
            whole.extend_from_slice(pending.chunks.get(&number)?);
        }
        self.held = self.held.saturating_sub(pending.held());
        self.pending.remove(&(provider, process));
        if self
            .done
            .get(&provider)
            .is_some_and(|done| **done == *whole)
        {
            return None;
        }
        let text = String::from_utf8_lossy(&whole).into_owned();
        self.held = self
            .held
            .saturating_add(whole.len().saturating_add(OVERHEAD));
        if let Some(before) = self.done.insert(provider, whole.into()) {
            self.held = self
                .held
                .saturating_sub(before.len().saturating_add(OVERHEAD));
        }
        Some(text)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn chunk(total: u16, number: u16, text: &[u8]) -> Chunk<'_> {
        Chunk {
            major_version: 1,
            minor_version: 0,
            total,
            number,
            text,
        }
    }

    #[test]
    fn add_accepts_chunks_in_any_order_and_repeated() {
        let mut r = Reassembler::new(1000);
        assert_eq!(r.add(Guid::ZERO, 1, chunk(3, 2, b"c")), None);
        assert_eq!(r.add(Guid::ZERO, 1, chunk(3, 0, b"a")), None);
        assert_eq!(r.add(Guid::ZERO, 1, chunk(3, 0, b"a")), None);
        assert_eq!(
            r.add(Guid::ZERO, 1, chunk(3, 1, b"b")).as_deref(),
            Some("abc")
        );
        // The repetition is known already; another manifest is not.
        for (number, text) in [(0, b"a"), (1, b"b"), (2, b"c")] {
            assert_eq!(r.add(Guid::ZERO, 1, chunk(3, number, text)), None);
        }
        assert_eq!(
            r.add(Guid::ZERO, 1, chunk(1, 0, b"x")).as_deref(),
            Some("x")
        );
    }

    #[test]
    fn add_keeps_the_chunks_of_processes_apart() {
        let mut r = Reassembler::new(1000);
        assert_eq!(r.add(Guid::ZERO, 1, chunk(2, 0, b"a")), None);
        assert_eq!(r.add(Guid::ZERO, 2, chunk(2, 0, b"x")), None);
        assert_eq!(
            r.add(Guid::ZERO, 1, chunk(2, 1, b"b")).as_deref(),
            Some("ab")
        );
        assert_eq!(
            r.add(Guid::ZERO, 2, chunk(2, 1, b"y")).as_deref(),
            Some("xy")
        );
        assert_eq!(r.held, 2 + OVERHEAD, "one manifest is held");
        assert!(r.pending.is_empty());
    }

    #[test]
    fn add_bounds_memory_when_chunks_are_lost() {
        let mut r = Reassembler::new(300);
        assert_eq!(r.add(Guid::ZERO, 1, chunk(2, 0, &[b'a'; 100])), None);
        assert_eq!(
            r.add(Guid::new(1, 0, 0, [0; 8]), 1, chunk(1, 0, &[b'a'; 200])),
            None
        );
        assert!(r.held <= 300);
        // The other half arrives with the repetition.
        assert!(r.add(Guid::ZERO, 1, chunk(2, 1, b"b")).is_some());
    }

    #[test]
    fn parse_refuses_other_payloads() {
        let good = chunk(2, 1, b"x").build();
        assert_eq!(Chunk::parse(&good), Some(chunk(2, 1, b"x")));
        for at in [0, 3, 6] {
            let mut bad = good.clone();
            bad[at] ^= 0x7f;
            assert_eq!(Chunk::parse(&bad), None, "byte {at}");
        }
        assert_eq!(Chunk::parse(&good[..7]), None);
    }
}
