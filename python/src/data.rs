//! The bytes of a trace, shared by its readers and by the events that were read.

use std::io;
use std::sync::Arc;

use etl_events::input::Mapped;
use etl_format::read::Source;
use pyo3::pybacked::PyBackedBytes;

/// All bytes of a trace.
pub enum Data {
    /// A file, mapped, or bytes in memory.
    Mapped(Mapped),
    /// A `bytes` object.
    Python(PyBackedBytes),
}

impl Data {
    /// The bytes.
    #[inline]
    pub fn bytes(&self) -> &[u8] {
        match self {
            Data::Mapped(mapped) => mapped.bytes(),
            Data::Python(bytes) => bytes,
        }
    }

    /// The offset of a slice, if it is a part of these bytes.
    #[inline]
    pub fn offset_of(&self, part: &[u8]) -> Option<usize> {
        let all = self.bytes();
        let offset = (part.as_ptr() as usize).checked_sub(all.as_ptr() as usize)?;
        if offset.checked_add(part.len())? <= all.len() {
            Some(offset)
        } else {
            None
        }
    }
}

/// A source of a reader, which shares the bytes.
#[derive(Clone)]
pub struct SharedSource(pub Arc<Data>);

/// A part of the bytes.
#[derive(Default)]
pub struct SharedBlock {
    data: Option<Arc<Data>>,
    start: usize,
    end: usize,
}

impl AsRef<[u8]> for SharedBlock {
    #[inline]
    fn as_ref(&self) -> &[u8] {
        match &self.data {
            Some(data) => data.bytes().get(self.start..self.end).unwrap_or_default(),
            None => &[],
        }
    }
}

impl Source for SharedSource {
    type Block = SharedBlock;

    fn read(&mut self, offset: u64, len: usize, block: &mut SharedBlock) -> io::Result<()> {
        let size = self.0.bytes().len();
        block.start = usize::try_from(offset).unwrap_or(size).min(size);
        block.end = block.start.saturating_add(len).min(size);
        if block.data.is_none() {
            block.data = Some(Arc::clone(&self.0));
        }
        Ok(())
    }

    fn size(&self) -> Option<u64> {
        Some(self.0.bytes().len() as u64)
    }
}
