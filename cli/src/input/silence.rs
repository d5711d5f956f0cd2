//! Ends a pipe from which no record comes any more: it may have no end (`< /dev/zero`).

use std::cell::Cell;
use std::io::{self, Read};
use std::rc::Rc;

/// The most bytes of a pipe without a record. The damage of a real trace is much smaller.
const MAX_SILENT: u64 = 64 << 20;

/// Bytes of a pipe since the last record.
#[derive(Clone, Debug, Default)]
pub(crate) struct Silence(Rc<Cell<u64>>);

impl Silence {
    /// Notes that there is a record.
    pub fn end(&self) {
        self.0.set(0);
    }

    /// A reader that fails after too many bytes without a record.
    pub fn watch(&self, reader: Box<dyn Read>) -> Box<dyn Read> {
        Box::new(Watched {
            reader,
            silence: self.clone(),
        })
    }
}

/// A pipe whose bytes are counted.
struct Watched {
    reader: Box<dyn Read>,
    silence: Silence,
}

impl Read for Watched {
    fn read(&mut self, space: &mut [u8]) -> io::Result<usize> {
        let bytes = &self.silence.0;
        if bytes.get() > MAX_SILENT {
            let message = format!("no record is in {} MiB of the pipe", MAX_SILENT >> 20);
            return Err(io::Error::other(message));
        }
        let len = self.reader.read(space)?;
        bytes.set(bytes.get().saturating_add(len as u64));
        Ok(len)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pipe_ends_after_many_bytes_without_a_record() {
        let silence = Silence::default();
        let mut reader = silence.watch(Box::new(io::repeat(0)));
        let mut space = vec![0; 1 << 20];
        let mut read = |records: bool| {
            let mut bytes = 0;
            while bytes < 4 * MAX_SILENT
                && let Ok(len) = reader.read(&mut space)
            {
                bytes += len as u64;
                if records {
                    silence.end();
                }
            }
            bytes
        };
        assert_eq!(read(true), 4 * MAX_SILENT);
        let silent = read(false);
        assert!((MAX_SILENT..2 * MAX_SILENT).contains(&silent), "{silent}");
    }
}
