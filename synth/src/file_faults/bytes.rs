//! Faults that damage the bytes of a finished file. Only the bytes that change are touched, so that
//! files may be of any size.

use std::io::{self, Read, Seek, SeekFrom};
use std::ops::Range;

use crate::file_system::FileSystem;
use crate::model::Fault;
use crate::rng::Rng;

/// Zeros that are written at a time.
const PIECE: usize = 1 << 16;

/// Applies a fault to a file and returns the changed bytes. `last` is the buffer that was written
/// last. Faults of the session itself (a skewed clock, a session that is not stopped) change
/// nothing here.
pub(crate) fn apply(
    fault: &Fault,
    file: &str,
    buffer_size: u32,
    last: Option<Range<u64>>,
    rng: &mut Rng,
    files: &mut dyn FileSystem,
) -> io::Result<Vec<Range<u64>>> {
    let buffer = u64::from(buffer_size);
    match *fault {
        Fault::Truncated(percent) => {
            let len = length(file, files)?;
            let keep = u128::from(len) * u128::from(percent.min(100)) / 100;
            let keep = u64::try_from(keep).unwrap_or(len);
            files.truncate(file, keep)?;
            Ok(some(keep..len))
        }
        Fault::Flipped(bits) => {
            let len = length(file, files)?;
            let mut places = Vec::new();
            for _ in 0..bits {
                let at = buffer.saturating_add(rng.below(len.saturating_sub(buffer)));
                let bit = rng.below(8);
                let mut byte = [0];
                let mut reader = files.open(file)?;
                reader.seek(SeekFrom::Start(at))?;
                if reader.read(&mut byte)? == 1 {
                    drop(reader);
                    files.overwrite(file, at, &byte.map(|b| b ^ 1 << bit))?;
                    places.push(at..at.saturating_add(1));
                }
            }
            Ok(places)
        }
        Fault::Torn => {
            // Only half of the last buffer reached the disk; the file has its length all the same.
            let Some(Range { start, end }) = last else {
                return Ok(Vec::new());
            };
            let from = start.saturating_add(end.saturating_sub(start) / 2);
            let mut at = from;
            while at < end {
                let piece = usize::try_from(end - at).unwrap_or(PIECE).min(PIECE);
                files.overwrite(file, at, &vec![0; piece])?;
                at += piece as u64;
            }
            Ok(some(from..end))
        }
        _ => Ok(Vec::new()),
    }
}

fn length(file: &str, files: &mut dyn FileSystem) -> io::Result<u64> {
    files.open(file)?.seek(SeekFrom::End(0))
}

fn some(range: Range<u64>) -> Vec<Range<u64>> {
    if range.is_empty() {
        Vec::new()
    } else {
        vec![range]
    }
}
