//! Compresses buffers on several threads.

use core::fmt;

use crate::constants::{BUFFER_HEADER_SIZE, MAX_EXPANSION};
use crate::error::Result;
use crate::pool::{OrderedPool, Work};

use super::compressor::BufferCompressor;

/// A buffer, uncompressed and compressed.
#[derive(Debug)]
pub(crate) struct Packed<T> {
    /// Space for the header, then the uncompressed records.
    pub plain: Vec<u8>,
    /// Space for the header, then the compressed records.
    pub packed: Vec<u8>,
    /// The data that came with it.
    pub with: T,
}

impl<T> Packed<T> {
    /// Whether the compressed buffer is shorter, and readers accept that it expands so far. Else
    /// the buffer is written uncompressed.
    pub fn is_worthwhile(&self) -> bool {
        let (plain, packed) = (self.plain.len(), self.packed.len());
        packed < plain && plain <= packed.saturating_mul(MAX_EXPANSION)
    }
}

/// A compressor at work.
struct CompressWork(BufferCompressor);

impl Work for CompressWork {
    /// The buffer, uncompressed and compressed.
    type Job = (Vec<u8>, Vec<u8>);

    fn work(&mut self, (plain, packed): &mut Self::Job) {
        packed.clear();
        packed.resize(BUFFER_HEADER_SIZE, 0);
        self.0
            .compress(plain.get(BUFFER_HEADER_SIZE..).unwrap_or_default(), packed);
    }
}

/// Of larger buffers, the memory of two is kept.
const LARGE: usize = 1 << 17;

/// The buffers under way, and memory for more of them.
pub(crate) struct Packing<T> {
    pool: OrderedPool<CompressWork, T>,
    spare: Vec<Vec<u8>>,
}

impl<T> fmt::Debug for Packing<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Packing")
            .field("format", &self.compressor().format())
            .field("pool", &self.pool)
            .finish_non_exhaustive()
    }
}

impl<T> Packing<T> {
    pub fn new(compressor: BufferCompressor) -> Self {
        let others = (1..compressor.threads())
            .map(|_| CompressWork(compressor.clone()))
            .collect();
        Packing {
            pool: OrderedPool::new(CompressWork(compressor), others),
            spare: Vec::new(),
        }
    }

    pub fn compressor(&self) -> &BufferCompressor {
        &self.pool.worker().0
    }

    /// Memory for a buffer: empty, and used before where there is some.
    pub fn memory(&mut self) -> Vec<u8> {
        let mut memory = self.spare.pop().unwrap_or_default();
        memory.clear();
        memory
    }

    /// Returns memory for use again.
    pub fn give_back(&mut self, memory: Vec<u8>) {
        let most = if memory.capacity() > LARGE {
            1
        } else {
            2 * self.pool.max_jobs()
        };
        if self.spare.len() <= most {
            self.spare.push(memory);
        }
    }

    /// Adds a buffer, which begins with space for its header.
    pub fn push(&mut self, plain: Vec<u8>, with: T) {
        let (packed, bytes) = (self.memory(), plain.len());
        self.pool.push((plain, packed), bytes, with);
    }

    /// Whether so much is under way that the oldest has to be waited for.
    pub fn is_full(&self) -> bool {
        self.pool.is_full()
    }

    /// The oldest buffer, as [`OrderedPool::pop`] returns it.
    ///
    /// # Errors
    /// When a compressor on another thread has panicked.
    pub fn pop(&mut self, wait: bool) -> Result<Option<Packed<T>>> {
        let done = self.pool.pop(wait)?;
        Ok(done.map(|((plain, packed), with)| Packed {
            plain,
            packed,
            with,
        }))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::compress::{Effort, decompress};
    use crate::constants::CompressionFormat;

    #[test]
    fn pop_returns_compressed_buffers_in_order() {
        for threads in [1, 3] {
            let format = CompressionFormat::XPRESS;
            let compressor = BufferCompressor::new(format, Effort::Fast).unwrap();
            let mut packing = Packing::new(compressor.with_threads(threads));
            let mut number = 0;
            for records in 0..100 {
                let mut plain = packing.memory();
                plain.resize(BUFFER_HEADER_SIZE + records, 7);
                packing.push(plain, records);
                while let Some(done) = packing.pop(packing.is_full() || records == 99).unwrap() {
                    assert_eq!(done.with, number);
                    assert_eq!(done.plain.len(), BUFFER_HEADER_SIZE + number);
                    let (header, records) = done.packed.split_at(BUFFER_HEADER_SIZE);
                    assert_eq!(header, [0; BUFFER_HEADER_SIZE]);
                    let mut plain = vec![0; number];
                    decompress(format, records, &mut plain).unwrap();
                    assert_eq!(plain, vec![7; number]);
                    packing.give_back(done.plain);
                    packing.give_back(done.packed);
                    number += 1;
                }
            }
            assert_eq!(number, 100);
        }
    }
}
