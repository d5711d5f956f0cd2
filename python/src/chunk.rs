//! Records that were read together. Those that are in the bytes of the trace as they are stay
//! there; those of compressed buffers are copied.

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
    at: usize,
    len: u32,
    file: u16,
    is_copied: bool,
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
        let (at, is_copied) = match decoding.data.position_of(bytes) {
            Some(at) => (at, false),
            None => {
                let at = self.copied.len();
                self.copied.extend_from_slice(bytes);
                (at, true)
            }
        };
        let (info, len) = (record.info(), bytes.len() as u32);
        self.items.push(Item {
            info,
            at,
            len,
            file: file as u16,
            is_copied,
        });
    }

    /// Number of records.
    pub fn len(&self) -> usize {
        self.items.len()
    }

    /// A record, and how it is decoded.
    #[inline]
    pub fn get(&self, index: usize) -> Option<(Record<'_>, &Arc<Decoding>)> {
        let item = self.items.get(index)?;
        let decoding = self.files.get(usize::from(item.file))?;
        let from = if item.is_copied {
            &self.copied
        } else {
            decoding.data.bytes()
        };
        let bytes = from.get(item.at..item.at.saturating_add(item.len as usize))?;
        Some((Record::with_info(bytes, item.info), decoding))
    }
}
