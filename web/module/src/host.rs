//! What the host provides: the bytes of files, and a place for results.

use std::io::{self, Read, Seek, SeekFrom, Write};

/// Bytes of one read from the host. Readers ask for the headers of buffers, 512 bytes each; a call
/// of the host for each would take most of the time.
const BLOCK: usize = 1 << 18;

/// Blocks that are kept: in time order, the buffers of all processors are read in turn.
const BLOCKS: usize = 16;

#[link(wasm_import_module = "etlkit")]
#[expect(unsafe_code, reason = "functions of the host")]
unsafe extern "C" {
    /// Writes up to `length` bytes of a file from `offset` on to the memory at `to`. Returns their
    /// number, or -1 for an error.
    fn read(file: u32, offset: f64, to: *mut u8, length: usize) -> i32;
    /// Receives the next `length` bytes of the result that is being written.
    fn write(from: *const u8, length: usize);
}

/// A block of a file.
#[derive(Debug, Default)]
struct Block {
    /// Its number in the file.
    number: u64,
    bytes: Vec<u8>,
    /// When it was last used: the count of uses then.
    used: u64,
}

/// A file of the host, which is read in blocks.
#[derive(Debug)]
pub struct HostFile {
    file: u32,
    size: u64,
    position: u64,
    blocks: Vec<Block>,
    uses: u64,
}

impl HostFile {
    /// The file with this number and size.
    pub fn new(file: u32, size: u64) -> Self {
        HostFile {
            file,
            size,
            position: 0,
            blocks: Vec::new(),
            uses: 0,
        }
    }

    /// The block with this number.
    fn block(&mut self, number: u64) -> io::Result<&[u8]> {
        self.uses += 1;
        let index = match self.blocks.iter().position(|block| block.number == number) {
            Some(index) => index,
            None => self.load(number)?,
        };
        let uses = self.uses;
        match self.blocks.get_mut(index) {
            Some(block) => {
                block.used = uses;
                Ok(&block.bytes)
            }
            None => Ok(&[]),
        }
    }

    /// Reads a block in the place of the one that was not used for the longest time. Returns its
    /// index.
    fn load(&mut self, number: u64) -> io::Result<usize> {
        let mut index = self.blocks.len();
        if index < BLOCKS {
            self.blocks.push(Block::default());
        } else {
            let used = self.blocks.iter().map(|block| block.used);
            let oldest = used.enumerate().min_by_key(|(_, used)| *used);
            index = oldest.map_or(0, |(index, _)| index);
        }
        let offset = number * BLOCK as u64;
        let rest = usize::try_from(self.size.saturating_sub(offset)).unwrap_or(usize::MAX);
        let length = BLOCK.min(rest);
        if let Some(block) = self.blocks.get_mut(index) {
            // A failed read must not leave bytes of another block with this number.
            block.number = u64::MAX;
            block.bytes.resize(length, 0);
            read_exactly(self.file, offset, &mut block.bytes)?;
            block.number = number;
        }
        Ok(index)
    }
}

/// Fills `space` with bytes of a file of the host.
fn read_exactly(file: u32, offset: u64, space: &mut [u8]) -> io::Result<()> {
    // SAFETY: the host writes at most `space.len()` bytes to `space`, while the module waits.
    #[expect(unsafe_code, reason = "a call of the host")]
    let count = unsafe { read(file, offset as f64, space.as_mut_ptr(), space.len()) };
    if usize::try_from(count) == Ok(space.len()) {
        Ok(())
    } else {
        Err(io::Error::other("the file cannot be read, or has changed"))
    }
}

impl Read for HostFile {
    fn read(&mut self, space: &mut [u8]) -> io::Result<usize> {
        if space.is_empty() || self.position >= self.size {
            return Ok(0);
        }
        let position = self.position;
        let in_block = (position % BLOCK as u64) as usize;
        let block = self.block(position / BLOCK as u64)?;
        let rest = block.get(in_block..).unwrap_or_default();
        let count = rest.len().min(space.len());
        if let (Some(to), Some(from)) = (space.get_mut(..count), rest.get(..count)) {
            to.copy_from_slice(from);
        }
        self.position += count as u64;
        Ok(count)
    }
}

impl Seek for HostFile {
    fn seek(&mut self, to: SeekFrom) -> io::Result<u64> {
        let position = match to {
            SeekFrom::Start(offset) => Some(offset),
            SeekFrom::End(distance) => self.size.checked_add_signed(distance),
            SeekFrom::Current(distance) => self.position.checked_add_signed(distance),
        };
        self.position = position.ok_or(io::ErrorKind::InvalidInput)?;
        Ok(self.position)
    }
}

/// A result that the host keeps, so that it does not need the memory of the module.
#[derive(Debug, Default)]
pub struct Out;

impl Write for Out {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        // SAFETY: the host reads `bytes.len()` bytes from `bytes`, while the module waits.
        #[expect(unsafe_code, reason = "a call of the host")]
        unsafe {
            write(bytes.as_ptr(), bytes.len());
        }
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}
