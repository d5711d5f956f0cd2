//! Reads the files that a script names, up to the size that a script can use.

use std::fs::{self, File};
use std::io::{self, Read, Take};
use std::path::Path;

use super::network::MAX_CAPTURE;
use super::walk::MAX_INCLUDED;

/// Reads an included script, or a list of providers.
///
/// # Errors
/// Any I/O error; the file is not a regular file, or longer than a script can be.
pub fn read_script(path: &Path) -> io::Result<String> {
    let mut text = String::new();
    open(path, MAX_INCLUDED)?.read_to_string(&mut text)?;
    Ok(text)
}

/// Reads a capture of packets.
///
/// # Errors
/// Any I/O error; the file is not a regular file, or longer than a capture can be.
pub fn read_capture(path: &Path) -> io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    open(path, MAX_CAPTURE)?.read_to_end(&mut bytes)?;
    Ok(bytes)
}

fn open(path: &Path, most: usize) -> io::Result<Take<File>> {
    // Opening a pipe would wait for its other end, and a device may have no end.
    let about = fs::metadata(path)?;
    if !about.is_file() {
        return Err(io::Error::new(
            io::ErrorKind::InvalidInput,
            "not a regular file",
        ));
    }
    let most = most as u64;
    if about.len() > most {
        let message = format!("longer than {} KiB", most >> 10);
        return Err(io::Error::new(io::ErrorKind::FileTooLarge, message));
    }
    Ok(File::open(path)?.take(most))
}
