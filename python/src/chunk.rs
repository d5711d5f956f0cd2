//! Records that were read together. Records in the bytes of the trace stay there; records of
//! compressed buffers are copied.

use std::sync::Arc;

use etl_format::read::{Record, RecordInfo};

use crate::decoding::Decoding;

/// Records that were read together.
#[derive(Default)]
pub struct Chunk {
    /// The traces.
    pub files: Arc<[Arc<Decoding>]>,
    copied: Vec<u8>,
    items: Vec<Item>,
}

struct Item {
    info: RecordInfo,
    offset: usize,
    len: u32,
    file: u16,
    /// Whether the offset is one in the copied bytes.
    is_copied: bool,
}

/// A record of a chunk, and how it is decoded.
pub struct ChunkRecord<'c> {
    pub record: Record<'c>,
    pub decoding: &'c Arc<Decoding>,
}

impl Chunk {
    pub fn new(files: Arc<[Arc<Decoding>]>, capacity: usize) -> Self {
        Chunk {
            files,
            copied: Vec::new(),
            items: Vec::with_capacity(capacity),
        }
    }

    /// Adds a record of a trace.
    #[inline]
    pub fn push(&mut self, file: usize, decoding: &Decoding, record: &Record<'_>) {
        let bytes = record.bytes();
        let offset_in_trace = decoding.data.offset_of(bytes);
        let offset = offset_in_trace.unwrap_or(self.copied.len());
        if offset_in_trace.is_none() {
            self.copied.extend_from_slice(bytes);
        }
        self.items.push(Item {
            info: record.info(),
            offset,
            len: bytes.len() as u32,
            file: file as u16,
            is_copied: offset_in_trace.is_none(),
        });
    }

    /// Number of records.
    pub fn len(&self) -> usize {
        self.items.len()
    }

    /// A record by its index.
    #[inline]
    pub fn get(&self, index: usize) -> Option<ChunkRecord<'_>> {
        let item = self.items.get(index)?;
        let decoding = self.files.get(usize::from(item.file))?;
        let source = if item.is_copied {
            &self.copied
        } else {
            decoding.data.bytes()
        };
        let end = item.offset.saturating_add(item.len as usize);
        let bytes = source.get(item.offset..end)?;
        Some(ChunkRecord {
            record: Record::with_info(bytes, item.info),
            decoding,
        })
    }
}
