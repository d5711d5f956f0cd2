//! Memory maps of files: the only `unsafe` of the package.

use std::fs::File;
use std::io;

use memmap2::Mmap;

/// Maps a file that is not empty.
pub fn map(file: &File) -> io::Result<Mmap> {
    // SAFETY: the map is only read. If another process writes to the file, the bytes change under
    // the reader, which accepts any bytes and checks each index. If another process truncates the
    // file, an access ends this process (SIGBUS). SECURITY.md describes both; `mmap=False` avoids
    // them.
    #[allow(unsafe_code)]
    unsafe {
        Mmap::map(file)
    }
}
