//! Manifests that `EventSource`s write into the trace, in chunks.
//!
//! Event 0xFFFE carries a header of 8 bytes and a piece of UTF-8 XML. Sources repeat their manifest
//! when another session starts, chunks of several processes interleave, and some may be lost.

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
    /// Version of the manifest: major, minor.
    pub version: (u8, u8),
    /// Number of chunks.
    pub total: u16,
    /// Number of this one, from 0.
    pub number: u16,
    /// The piece of XML.
    pub text: &'a [u8],
}

impl<'a> Chunk<'a> {
    /// From the payload of a manifest event; `None` when it is none.
    #[must_use]
    pub fn parse(payload: &'a [u8]) -> Option<Self> {
        let mut c = Cursor::new(payload);
        let (format, major, minor, magic) = (c.u8()?, c.u8()?, c.u8()?, c.u8()?);
        let (total, number) = (c.u16()?, c.u16()?);
        let sound = format == FORMAT && magic == MAGIC && number < total && total <= MAX_CHUNKS;
        sound.then(|| Chunk { version: (major, minor), total, number, text: c.rest() })
    }

    /// The payload of the manifest event that carries this chunk.
    #[must_use]
    pub fn build(&self) -> Vec<u8> {
        let mut out = vec![FORMAT, self.version.0, self.version.1, MAGIC];
        out.extend_from_slice(&self.total.to_le_bytes());
        out.extend_from_slice(&self.number.to_le_bytes());
        out.extend_from_slice(self.text);
        out
    }
}

/// A manifest that is being put together.
#[derive(Debug, Default)]
struct Pending {
    version: (u8, u8),
    total: u16,
    chunks: HashMap<u16, Box<[u8]>>,
    /// The last manifest that was complete, to know its repetitions.
    done: Option<Box<[u8]>>,
}

/// Puts manifests together from their chunks, in any order.
#[derive(Debug)]
pub struct Reassembler {
    pending: HashMap<Guid, Pending>,
    held: usize,
    limit: usize,
}

impl Reassembler {
    /// Holds at most `limit` bytes of chunks and manifests; what would be more is dropped.
    #[must_use]
    pub fn new(limit: usize) -> Self {
        Reassembler { pending: HashMap::new(), held: 0, limit }
    }

    /// Adds a chunk. Returns the manifest when it is complete and was not seen before.
    ///
    /// A chunk that differs in version, number of chunks or text from what is held begins anew.
    pub fn add(&mut self, provider: Guid, chunk: Chunk<'_>) -> Option<String> {
        let room = self.limit.saturating_sub(self.held);
        if chunk.text.len().saturating_add(64) > room {
            return None;
        }
        let pending = self.pending.entry(provider).or_default();
        let other = pending.chunks.get(&chunk.number).is_some_and(|t| **t != *chunk.text);
        if pending.version != chunk.version || pending.total != chunk.total || other {
            let dropped: usize = pending.chunks.values().map(|t| t.len() + 64).sum();
            self.held = self.held.saturating_sub(dropped);
            pending.chunks.clear();
            (pending.version, pending.total) = (chunk.version, chunk.total);
        }
        if pending.chunks.insert(chunk.number, chunk.text.into()).is_none() {
            self.held = self.held.saturating_add(chunk.text.len() + 64);
        }
        if pending.chunks.len() < usize::from(pending.total) {
            return None;
        }
        let mut whole = Vec::new();
        for number in 0..pending.total {
            whole.extend_from_slice(pending.chunks.get(&number)?);
        }
        let dropped: usize = pending.chunks.values().map(|t| t.len() + 64).sum();
        self.held = self.held.saturating_sub(dropped);
        pending.chunks.clear();
        if pending.done.as_deref() == Some(&whole) {
            return None;
        }
        self.held = self.held.saturating_sub(pending.done.as_ref().map_or(0, |d| d.len()));
        self.held = self.held.saturating_add(whole.len());
        pending.done = Some(whole.clone().into());
        Some(String::from_utf8_lossy(&whole).into_owned())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn chunk(total: u16, number: u16, text: &[u8]) -> Chunk<'_> {
        Chunk { version: (1, 0), total, number, text }
    }

    #[test]
    fn chunks_come_in_any_order_and_again() {
        let mut r = Reassembler::new(1000);
        assert_eq!(r.add(Guid::ZERO, chunk(3, 2, b"c")), None);
        assert_eq!(r.add(Guid::ZERO, chunk(3, 0, b"a")), None);
        assert_eq!(r.add(Guid::ZERO, chunk(3, 0, b"a")), None);
        assert_eq!(r.add(Guid::ZERO, chunk(3, 1, b"b")).as_deref(), Some("abc"));
        // The repetition tells nothing new; another manifest does.
        for (number, text) in [(0, b"a"), (1, b"b"), (2, b"c")] {
            assert_eq!(r.add(Guid::ZERO, chunk(3, number, text)), None);
        }
        assert_eq!(r.add(Guid::ZERO, chunk(1, 0, b"x")).as_deref(), Some("x"));
    }

    #[test]
    fn a_lost_chunk_leaves_no_manifest_and_memory_is_bounded() {
        let mut r = Reassembler::new(300);
        assert_eq!(r.add(Guid::ZERO, chunk(2, 0, &[b'a'; 100])), None);
        assert_eq!(r.add(Guid::new(1, 0, 0, [0; 8]), chunk(1, 0, &[b'a'; 200])), None);
        assert!(r.held <= 300);
        // The other half arrives with the repetition.
        assert!(r.add(Guid::ZERO, chunk(2, 1, b"b")).is_some());
    }

    #[test]
    fn what_is_no_chunk_is_refused() {
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
