//! Compresses buffers on several threads.

use core::fmt;

use crate::constants::{BUFFER_HEADER_SIZE, MAX_EXPANSION};
use crate::error::Result;
use crate::pool::{Completed, OrderedPool, Take, Work};

use super::compressor::BufferCompressor;

/// A buffer, uncompressed and compressed.
#[derive(Debug)]
pub(crate) struct Packed {
    /// Space for the header, then the uncompressed records.
    pub plain: Vec<u8>,
    /// Space for the header, then the compressed records.
    pub packed: Vec<u8>,
}

impl Packed {
    /// Whether the compressed buffer is shorter, and does not expand more than readers accept.
    /// Otherwise the buffer is written uncompressed.
    pub fn is_worthwhile(&self) -> bool {
        let max_len = self.packed.len().saturating_mul(MAX_EXPANSION);
        self.packed.len() < self.plain.len() && self.plain.len() <= max_len
    }
}

/// Compresses buffers.
struct CompressWork(BufferCompressor);

impl Work for CompressWork {
    type Job = Packed;

    fn work(&mut self, job: &mut Packed) {
        let records = job.plain.get(BUFFER_HEADER_SIZE..).unwrap_or_default();
        job.packed.clear();
        job.packed.resize(BUFFER_HEADER_SIZE, 0);
        self.0.compress(records, &mut job.packed);
    }
}

/// The memory of at most two larger buffers is kept.
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

    /// Memory for a buffer, without content. It may have been used before.
    pub fn memory(&mut self) -> Vec<u8> {
        let mut memory = self.spare.pop().unwrap_or_default();
        memory.clear();
        memory
    }

    /// Takes back memory, to use it again.
    pub fn give_back(&mut self, memory: Vec<u8>) {
        let max_spare = if memory.capacity() > LARGE {
            1
        } else {
            2 * self.pool.max_jobs()
        };
        if self.spare.len() <= max_spare {
            self.spare.push(memory);
        }
    }

    /// Adds a buffer, which begins with space for its header.
    pub fn push(&mut self, plain: Vec<u8>, with: T) {
        let bytes = plain.len();
        let packed = self.memory();
        self.pool.push(Packed { plain, packed }, bytes, with);
    }

    /// Takes the oldest buffer: see [`OrderedPool::pop`].
    ///
    /// # Errors
    /// If a compressor on another thread has panicked.
    pub fn pop(&mut self, take: Take) -> Result<Option<Completed<Packed, T>>> {
        self.pool.pop(take)
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
                let take = if records == 99 {
                    Take::All
                } else {
                    Take::Finished
                };
                while let Some(Completed { job, with }) = packing.pop(take).unwrap() {
                    assert_eq!(with, number);
                    assert_eq!(job.plain.len(), BUFFER_HEADER_SIZE + number);
                    let (header, records) = job.packed.split_at(BUFFER_HEADER_SIZE);
                    assert_eq!(header, [0; BUFFER_HEADER_SIZE]);
                    let mut plain = vec![0; number];
                    decompress(format, records, &mut plain).unwrap();
                    assert_eq!(plain, vec![7; number]);
                    packing.give_back(job.plain);
                    packing.give_back(job.packed);
                    number += 1;
                }
            }
            assert_eq!(number, 100);
        }
    }
}
