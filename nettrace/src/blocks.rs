//! The bytes of blocks that are in use.

/// The bytes of blocks. A block is kept while something refers to it: the reader, or an event whose
/// payload is in it. Then its memory is used for the next block.
#[derive(Debug, Default)]
pub(crate) struct BlockPool {
    slots: Vec<Slot>,
    /// Slots without a block.
    free: Vec<BlockId>,
    /// Emptied vectors for later blocks.
    spare: Vec<Vec<u8>>,
    /// Bytes of memory of the blocks in use.
    size: usize,
}

/// Selects a block of the pool.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct BlockId(usize);

#[derive(Debug, Default)]
struct Slot {
    bytes: Vec<u8>,
    references: usize,
}

impl Slot {
    fn size_in_memory(&self) -> usize {
        size_of::<Self>() + self.bytes.capacity()
    }
}

impl BlockPool {
    /// Vectors that are kept for later blocks, and the largest of them. The runtimes write blocks
    /// of 100 KiB.
    const MAX_SPARE: usize = 2;
    const MAX_SPARE_BYTES: usize = 1 << 20;

    /// An empty vector for the bytes of a block, which [`BlockPool::insert`] takes back.
    pub fn vector(&mut self) -> Vec<u8> {
        self.spare.pop().unwrap_or_default()
    }

    /// Adds a block with one reference.
    pub fn insert(&mut self, bytes: Vec<u8>) -> BlockId {
        let slot = Slot {
            bytes,
            references: 1,
        };
        self.size += slot.size_in_memory();
        if let Some(id) = self.free.pop()
            && let Some(free) = self.slots.get_mut(id.0)
        {
            *free = slot;
            return id;
        }
        self.slots.push(slot);
        BlockId(self.slots.len() - 1)
    }

    pub fn bytes(&self, id: BlockId) -> &[u8] {
        match self.slots.get(id.0) {
            Some(slot) => &slot.bytes,
            None => &[],
        }
    }

    pub fn add_reference(&mut self, id: BlockId) {
        if let Some(slot) = self.slots.get_mut(id.0) {
            slot.references += 1;
        }
    }

    pub fn drop_reference(&mut self, id: BlockId) {
        let Some(slot) = self.slots.get_mut(id.0) else {
            return;
        };
        slot.references = slot.references.saturating_sub(1);
        if slot.references > 0 {
            return;
        }
        self.size -= slot.size_in_memory();
        let bytes = std::mem::take(&mut slot.bytes);
        if self.spare.len() < Self::MAX_SPARE && bytes.capacity() <= Self::MAX_SPARE_BYTES {
            self.spare.push(bytes);
        }
        self.free.push(id);
    }

    /// Bytes of memory of the blocks in use.
    pub fn size(&self) -> usize {
        self.size
    }
}
