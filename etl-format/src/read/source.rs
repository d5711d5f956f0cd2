//! Sources of bytes: a slice, a seekable file, a pipe.

use std::io::{self, Read, Seek, SeekFrom};
use std::ops::Range;

/// Bytes that can be read by offset.
///
/// Readers have a few [`Source::Block`]s and fill them repeatedly. So a source that copies does not
/// allocate for each buffer, and a source that borrows does not copy.
pub trait Source {
    /// The bytes of one read. Another thread may process it.
    type Block: AsRef<[u8]> + Default + Send;

    /// Fills `block` with `len` bytes from an offset on, or fewer at the end of the source.
    ///
    /// # Errors
    /// I/O errors.
    fn read(&mut self, offset: u64, len: usize, block: &mut Self::Block) -> io::Result<()>;

    /// Length in bytes; `None` for a pipe.
    fn size(&self) -> Option<u64>;
}

/// A byte slice, such as a memory map. Nothing is copied.
impl<'s> Source for &'s [u8] {
    type Block = &'s [u8];

    #[inline]
    fn read(&mut self, offset: u64, len: usize, block: &mut &'s [u8]) -> io::Result<()> {
        let rest = match usize::try_from(offset) {
            Ok(offset) => self.get(offset..).unwrap_or_default(),
            Err(_) => &[],
        };
        *block = rest.get(..len).unwrap_or(rest);
        Ok(())
    }

    fn size(&self) -> Option<u64> {
        Some(<[u8]>::len(self) as u64)
    }
}

impl<S: Source> Source for &mut S {
    type Block = S::Block;

    #[inline]
    fn read(&mut self, offset: u64, len: usize, block: &mut S::Block) -> io::Result<()> {
        (**self).read(offset, len, block)
    }

    fn size(&self) -> Option<u64> {
        (**self).size()
    }
}

/// The block of sources that copy: memory that is reused.
#[derive(Debug, Default)]
pub struct Reused {
    memory: Vec<u8>,
    len: usize,
}

impl AsRef<[u8]> for Reused {
    #[inline]
    fn as_ref(&self) -> &[u8] {
        self.memory.get(..self.len).unwrap_or_default()
    }
}

impl Reused {
    /// Memory for `len` bytes, with any content.
    fn space(&mut self, len: usize) -> &mut [u8] {
        if self.memory.len() < len {
            // Not resized: the system has zeroed pages, and nothing has to be copied.
            self.memory = vec![0; len];
        }
        self.len = len;
        self.memory.get_mut(..len).unwrap_or_default()
    }
}

/// A seekable file, read piece by piece.
///
/// ```
/// use std::io::Cursor;
/// use etl_format::read::{FileSource, Options, Trace};
/// # use etl_format::FileHeader;
/// # use etl_format::write::Session;
/// # let bytes = Session::in_memory(FileHeader::new())?.finish()?;
///
/// let source = FileSource::new(Cursor::new(bytes))?;
/// assert!(Trace::open(source, &Options::default())?.header().is_closed());
/// # Ok::<(), etl_format::Error>(())
/// ```
#[derive(Debug)]
pub struct FileSource<R> {
    inner: R,
    len: u64,
    position: u64,
    /// The last short pieces that were read. The walk from buffer to buffer reads each header
    /// several times, and the header of the next buffer in between.
    older: Piece,
    newer: Piece,
}

/// Bytes of a file.
#[derive(Debug, Default)]
struct Piece {
    offset: u64,
    bytes: Vec<u8>,
}

impl Piece {
    fn get(&self, offset: u64, len: usize) -> Option<&[u8]> {
        let start = usize::try_from(offset.checked_sub(self.offset)?).ok()?;
        self.bytes.get(start..start.checked_add(len)?)
    }
}

/// Bytes of a short piece.
const PIECE: usize = 0x200;

impl<R: Read + Seek> FileSource<R> {
    /// Reads from the first byte, not from the current position.
    ///
    /// # Errors
    /// If seeking fails.
    pub fn new(mut inner: R) -> io::Result<Self> {
        let len = inner.seek(SeekFrom::End(0))?;
        let position = inner.seek(SeekFrom::Start(0))?;
        Ok(FileSource {
            inner,
            len,
            position,
            older: Piece::default(),
            newer: Piece::default(),
        })
    }

    /// The reader.
    pub fn into_inner(self) -> R {
        self.inner
    }

    /// Fills as much of `space` as the file has.
    fn fill(&mut self, offset: u64, space: &mut [u8]) -> io::Result<usize> {
        if self.position != offset {
            self.position = self.inner.seek(SeekFrom::Start(offset))?;
        }
        let len = read_up_to(&mut self.inner, space)?;
        self.position += len as u64;
        Ok(len)
    }

    /// Copies `len` bytes from a short piece; `false` if no piece has them.
    fn copy_piece(&self, offset: u64, len: usize, block: &mut Reused) -> bool {
        let in_older = self.older.get(offset, len);
        let Some(bytes) = in_older.or_else(|| self.newer.get(offset, len)) else {
            return false;
        };
        block.space(len).copy_from_slice(bytes);
        true
    }

    /// Reads a short piece, which replaces the older one.
    fn read_piece(&mut self, offset: u64, len: usize) -> io::Result<()> {
        let mut bytes = core::mem::take(&mut self.older.bytes);
        bytes.resize(len, 0);
        let len = self.fill(offset, &mut bytes)?;
        bytes.truncate(len);
        let piece = Piece { offset, bytes };
        self.older = core::mem::replace(&mut self.newer, piece);
        Ok(())
    }
}

impl<R: Read + Seek> Source for FileSource<R> {
    type Block = Reused;

    fn read(&mut self, offset: u64, len: usize, block: &mut Reused) -> io::Result<()> {
        let left = usize::try_from(self.len.saturating_sub(offset)).unwrap_or(usize::MAX);
        let len = len.min(left);
        if len <= PIECE / 2 && len > 0 {
            if self.copy_piece(offset, len, block) {
                return Ok(());
            }
            self.read_piece(offset, PIECE.min(left))?;
            let len = len.min(self.newer.bytes.len());
            if self.copy_piece(offset, len, block) {
                return Ok(());
            }
        }
        let space = block.space(len);
        block.len = if len == 0 {
            0
        } else {
            self.fill(offset, space)?
        };
        Ok(())
    }

    fn size(&self) -> Option<u64> {
        Some(self.len)
    }
}

/// Fills as much of `space` as the reader has.
fn read_up_to(reader: &mut impl Read, space: &mut [u8]) -> io::Result<usize> {
    let mut len = 0;
    while let Some(rest) = space.get_mut(len..).filter(|rest| !rest.is_empty()) {
        match reader.read(rest) {
            Ok(0) => break,
            Ok(count) => len += count,
            Err(e) if e.kind() == io::ErrorKind::Interrupted => {}
            Err(e) => return Err(e),
        }
    }
    Ok(len)
}

/// A pipe, read forwards only: for walking a trace in file order as it arrives.
///
/// Bytes before the offset of the last read are dropped, so a later read must not begin before it.
///
/// ```
/// use etl_format::read::{Options, PipeSource, Records};
/// # use etl_format::FileHeader;
/// # use etl_format::write::Session;
/// # let bytes = Session::in_memory(FileHeader::new())?.finish()?;
///
/// let pipe = bytes.as_slice(); // Anything that implements `Read`: standard input, for example.
/// let mut records = Records::stream(PipeSource::new(pipe), &Options::default())?;
/// while records.next_record()?.is_some() {}
/// assert_eq!(records.count(), 1);
/// # Ok::<(), etl_format::Error>(())
/// ```
#[derive(Debug)]
pub struct PipeSource<R> {
    inner: R,
    /// File offset of the first byte in memory.
    start: u64,
    /// Grows with the bytes that arrive, and not with the length that is requested.
    memory: Vec<u8>,
    /// The part of `memory` that contains bytes.
    held: Range<usize>,
}

/// The memory for a read has at least this many bytes: as many as a pipe contains on most systems.
const PIPE: usize = 1 << 16;

impl<R: Read> PipeSource<R> {
    /// Reads from the current position.
    pub fn new(inner: R) -> Self {
        PipeSource {
            inner,
            start: 0,
            memory: Vec::new(),
            held: 0..0,
        }
    }

    /// Reads until `len` bytes are in memory, or the pipe ends. Further bytes that have arrived are
    /// also read, as far as there is memory.
    fn fetch(&mut self, len: usize) -> io::Result<()> {
        if self.held.len() >= len {
            return Ok(());
        }
        self.memory.copy_within(self.held.clone(), 0);
        self.held = 0..self.held.len();
        while self.held.len() < len {
            if self.held.end == self.memory.len() {
                let max_len = len.saturating_add(PIPE);
                let new_len = (self.memory.len() * 2).clamp(PIPE, max_len);
                self.memory.resize(new_len, 0);
            }
            let space = self.memory.get_mut(self.held.end..).unwrap_or_default();
            match self.inner.read(space) {
                Ok(0) => break,
                // A faulty reader may return a number that is larger than the space.
                Ok(count) => self.held.end += count.min(space.len()),
                Err(e) if e.kind() == io::ErrorKind::Interrupted => {}
                Err(e) => return Err(e),
            }
        }
        Ok(())
    }

    /// Drops up to `count` bytes from memory, and returns how many.
    fn drop_held(&mut self, count: u64) -> u64 {
        let count = usize::try_from(count).unwrap_or(usize::MAX);
        let dropped = self.held.len().min(count);
        self.held.start += dropped;
        self.start += dropped as u64;
        dropped as u64
    }
}

impl<R: Read> Source for PipeSource<R> {
    type Block = Reused;

    fn read(&mut self, offset: u64, len: usize, block: &mut Reused) -> io::Result<()> {
        let mut skip = offset.checked_sub(self.start).ok_or_else(|| {
            io::Error::new(
                io::ErrorKind::Unsupported,
                "a pipe cannot be read backwards",
            )
        })?;
        skip -= self.drop_held(skip);
        // Skipped bytes are read and dropped piece by piece to bound the memory.
        while skip > 0 {
            self.fetch(1)?;
            let dropped = self.drop_held(skip);
            if dropped == 0 {
                block.space(0);
                return Ok(());
            }
            skip -= dropped;
        }
        self.fetch(len)?;
        let held = self.memory.get(self.held.clone()).unwrap_or_default();
        let bytes = held.get(..len).unwrap_or(held);
        block.space(bytes.len()).copy_from_slice(bytes);
        Ok(())
    }

    fn size(&self) -> Option<u64> {
        None
    }
}

/// The complete content of a pipe, to read it in time order: in memory if it fits a limit,
/// otherwise in a file that the caller provides.
///
/// ```
/// use std::io::{Cursor, Read};
/// use etl_format::read::{Options, Order, Spooled, Trace};
/// # use etl_format::FileHeader;
/// # use etl_format::write::Session;
/// # let bytes = Session::in_memory(FileHeader::new())?.finish()?;
///
/// let pipe = bytes.as_slice();
/// // Up to 1 MiB stays in memory. A real program creates a temporary file in the closure.
/// let source = Spooled::new(pipe, 1 << 20, || Ok(Cursor::new(Vec::new())))?;
/// assert!(matches!(source, Spooled::Memory(_)));
/// let mut trace = Trace::open(source, &Options::default())?;
/// assert!(trace.records(Order::Time)?.next_record()?.is_some());
/// # Ok::<(), etl_format::Error>(())
/// ```
#[derive(Debug)]
pub enum Spooled<F> {
    /// The whole content is in memory.
    Memory(Vec<u8>),
    /// The whole content is in the caller's file.
    File(FileSource<F>),
}

impl<F: Read + io::Write + Seek> Spooled<F> {
    /// Reads `reader` to its end. If there are more than `limit` bytes, `file` creates the file
    /// that holds all of them.
    ///
    /// # Errors
    /// I/O errors of the pipe or the file.
    pub fn new(
        mut reader: impl Read,
        limit: usize,
        file: impl FnOnce() -> io::Result<F>,
    ) -> io::Result<Self> {
        let mut memory = Vec::new();
        (&mut reader)
            .take(limit as u64 + 1)
            .read_to_end(&mut memory)?;
        if memory.len() <= limit {
            return Ok(Spooled::Memory(memory));
        }
        let mut file = file()?;
        file.write_all(&memory)?;
        drop(memory);
        io::copy(&mut reader, &mut file)?;
        file.flush()?;
        FileSource::new(file).map(Spooled::File)
    }
}

impl<F: Read + Seek> Source for Spooled<F> {
    type Block = Reused;

    fn read(&mut self, offset: u64, len: usize, block: &mut Reused) -> io::Result<()> {
        match self {
            Spooled::File(file) => file.read(offset, len, block),
            Spooled::Memory(bytes) => {
                let mut slice = &[][..];
                Source::read(&mut bytes.as_slice(), offset, len, &mut slice)?;
                block.space(slice.len()).copy_from_slice(slice);
                Ok(())
            }
        }
    }

    fn size(&self) -> Option<u64> {
        match self {
            Spooled::File(file) => file.size(),
            Spooled::Memory(bytes) => Some(bytes.len() as u64),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Cursor;

    fn check(source: &mut impl Source, bytes: &[u8], reads: &[(u64, usize)]) {
        let mut block = Default::default();
        for &(offset, len) in reads {
            source.read(offset, len, &mut block).unwrap();
            let rest = bytes.get(offset as usize..).unwrap_or_default();
            assert_eq!(
                block.as_ref(),
                &rest[..len.min(rest.len())],
                "{len} at {offset}"
            );
        }
    }

    #[test]
    fn every_source_returns_the_same_bytes() {
        // Miri is a thousand times slower.
        let len = if cfg!(miri) { 2_000 } else { 200_000 };
        let bytes: Vec<u8> = (0..len).map(|i: u32| (i * 7 % 251) as u8).collect();
        let (len, whole) = (bytes.len(), bytes.len() as u64);
        let forwards = [
            (0, 10),
            (0, len / 3),
            (5, 3),
            (whole / 2, len / 5 * 2),
            (whole - 1, 5),
            (whole / 2 * 3, 1),
        ];
        check(&mut bytes.as_slice(), &bytes, &forwards);
        check(
            &mut FileSource::new(Cursor::new(&bytes)).unwrap(),
            &bytes,
            &forwards,
        );
        check(&mut PipeSource::new(bytes.as_slice()), &bytes, &forwards);
        for limit in [0, len - 1, len] {
            let mut spooled =
                Spooled::new(bytes.as_slice(), limit, || Ok(Cursor::new(Vec::new()))).unwrap();
            assert_eq!(matches!(spooled, Spooled::Memory(_)), limit == len);
            check(&mut spooled, &bytes, &forwards);
            check(&mut spooled, &bytes, &[(0, 4)]);
        }
    }

    /// A reader that returns pieces of these sizes in turn, and is interrupted between them.
    struct Pieces<'a> {
        rest: &'a [u8],
        sizes: &'a [usize],
        calls: usize,
    }

    impl Read for Pieces<'_> {
        fn read(&mut self, space: &mut [u8]) -> io::Result<usize> {
            self.calls += 1;
            if self.calls.is_multiple_of(2) {
                return Err(io::ErrorKind::Interrupted.into());
            }
            let size = self.sizes[self.calls / 2 % self.sizes.len()].min(space.len());
            Read::read(&mut self.rest, &mut space[..size])
        }
    }

    #[test]
    fn pipe_returns_the_same_bytes_in_pieces_of_any_size() {
        let len = if cfg!(miri) { 2_000 } else { 400_000 };
        let bytes: Vec<u8> = (0..len).map(|i: u32| (i * 7 % 251) as u8).collect();
        for sizes in [
            &[1][..],
            &[7, 4_096],
            &[PIPE - 1, 1, PIPE + 1],
            &[usize::MAX],
        ] {
            // The order in which buffers are walked: the header, the header of the next buffer, and
            // then all bytes.
            for buffer in [100, 4_096, PIPE, PIPE + 1, 150_000] {
                let mut pipe = PipeSource::new(Pieces {
                    rest: &bytes,
                    sizes,
                    calls: 0,
                });
                for at in (0..bytes.len() as u64).step_by(buffer) {
                    let reads = [(at, 72), (at, buffer + 72), (at, buffer)];
                    check(&mut pipe, &bytes, &reads);
                    assert!(pipe.memory.len() <= buffer + 72 + PIPE);
                }
                let mut pipe = PipeSource::new(Pieces {
                    rest: &bytes,
                    sizes,
                    calls: 0,
                });
                // Gaps.
                let reads: Vec<_> = (0..bytes.len() as u64 * 2)
                    .step_by(buffer * 3)
                    .map(|at| (at, buffer))
                    .collect();
                check(&mut pipe, &bytes, &reads);
            }
        }
    }

    #[test]
    fn pipe_takes_memory_only_for_bytes_that_arrive() {
        let mut pipe = PipeSource::new(&b"abcdef"[..]);
        let mut block = Reused::default();
        pipe.read(1, usize::MAX, &mut block).unwrap();
        assert_eq!(block.as_ref(), b"bcdef");
        assert_eq!(pipe.memory.len(), PIPE);
        // What is skipped is not kept.
        let mut pipe = PipeSource::new(io::repeat(7).take(100 * PIPE as u64));
        pipe.read(99 * PIPE as u64, 10, &mut block).unwrap();
        assert_eq!((block.as_ref(), pipe.memory.len()), (&[7; 10][..], PIPE));
    }

    #[test]
    fn pipe_refuses_to_go_back() {
        let mut pipe = PipeSource::new(&b"abcdef"[..]);
        let mut block = Reused::default();
        pipe.read(4, 1, &mut block).unwrap();
        assert!(pipe.read(3, 1, &mut block).is_err());
    }
}
