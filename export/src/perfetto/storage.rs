//! The storage of a written trace, and of samples until their names are known.

use std::fs::File;
use std::io::{self, Cursor, Read, Seek, Write};

/// Bytes that are written, read back, and written again from the beginning.
pub trait Storage: Read + Write + Seek {
    /// Removes all bytes.
    ///
    /// # Errors
    /// If the storage cannot be written.
    fn clear(&mut self) -> io::Result<()>;
}

impl Storage for File {
    fn clear(&mut self) -> io::Result<()> {
        self.set_len(0)?;
        self.rewind()
    }
}

impl Storage for Cursor<Vec<u8>> {
    fn clear(&mut self) -> io::Result<()> {
        self.get_mut().clear();
        self.rewind()
    }
}

impl<S: Storage + ?Sized> Storage for &mut S {
    fn clear(&mut self) -> io::Result<()> {
        (**self).clear()
    }
}
