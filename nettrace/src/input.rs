//! The bytes of the source, with their offset.

use std::io::{BufReader, ErrorKind, Read};

use crate::error::{Error, Result};

/// Reads a source front to back and counts the bytes.
#[derive(Debug)]
pub(crate) struct Input<R> {
    source: BufReader<R>,
    offset: u64,
}

impl<R: Read> Input<R> {
    pub fn new(source: R) -> Self {
        Input {
            source: BufReader::new(source),
            offset: 0,
        }
    }

    /// The number of bytes read so far.
    pub fn offset(&self) -> u64 {
        self.offset
    }

    /// Reads `len` bytes into an emptied vector, or fewer if the source ends before.
    ///
    /// The vector grows with the bytes that there are: a size is not believed before its bytes
    /// were read.
    pub fn read_up_to(&mut self, len: u64, out: &mut Vec<u8>) -> Result<()> {
        out.clear();
        let result = (&mut self.source).take(len).read_to_end(out);
        self.offset = self.offset.saturating_add(out.len() as u64);
        match result {
            Ok(_) => Ok(()),
            Err(error) => Err(Error::io(self.offset, error)),
        }
    }

    /// Reads and drops `len` bytes, or fewer if the source ends before. Returns their number.
    pub fn skip(&mut self, len: u64) -> Result<u64> {
        let result = std::io::copy(&mut (&mut self.source).take(len), &mut std::io::sink());
        match result {
            Ok(skipped) => {
                self.offset = self.offset.saturating_add(skipped);
                Ok(skipped)
            }
            Err(error) => Err(Error::io(self.offset, error)),
        }
    }

    /// The next `N` bytes.
    pub fn array<const N: usize>(&mut self, what: &'static str) -> Result<[u8; N]> {
        let start = self.offset;
        let mut array = [0; N];
        let mut filled = 0;
        while let Some(rest) = array.get_mut(filled..)
            && !rest.is_empty()
        {
            match self.source.read(rest) {
                Ok(0) => break,
                Ok(read) => filled += read,
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(error) => return Err(Error::io(start, error)),
            }
        }
        self.offset = self.offset.saturating_add(filled as u64);
        if filled < N {
            return Err(Error::truncated(start, what, N as u64, filled as u64));
        }
        Ok(array)
    }

    pub fn u8(&mut self, what: &'static str) -> Result<u8> {
        self.array::<1>(what).map(|[byte]| byte)
    }

    pub fn u32(&mut self, what: &'static str) -> Result<u32> {
        self.array(what).map(u32::from_le_bytes)
    }

    /// One byte, which must have a certain value.
    pub fn expect_tag(
        &mut self,
        tag: u8,
        what: &'static str,
        expected: &'static str,
    ) -> Result<()> {
        let start = self.offset;
        let found = self.u8(what)?;
        if found == tag {
            return Ok(());
        }
        Err(Error::invalid(start, what, found.into(), expected))
    }
}
