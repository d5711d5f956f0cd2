//! Limits for unpacked input, so that it cannot fill the disk.

use std::io::{self, Read};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use super::super::bytes::MAX_PIPE;
use super::super::stop::{ALWAYS_ALLOWED, MAX_FACTOR, Stop};

/// The number of packed bytes that were read.
#[derive(Clone, Debug, Default)]
pub(super) struct Count(Arc<AtomicU64>);

impl Count {
    /// A number that is known in advance.
    pub fn known(bytes: u64) -> Self {
        Count(Arc::new(AtomicU64::new(bytes)))
    }

    fn get(&self) -> u64 {
        self.0.load(Ordering::Relaxed)
    }
}

/// A reader whose bytes are counted.
pub(super) struct Counted<R> {
    pub inner: R,
    pub count: Count,
}

impl<R: Read> Read for Counted<R> {
    fn read(&mut self, out: &mut [u8]) -> io::Result<usize> {
        let len = self.inner.read(out)?;
        self.count.0.fetch_add(len as u64, Ordering::Relaxed);
        Ok(len)
    }
}

/// Enforces the limits on the output of an unpacker.
pub(super) struct Guard<R> {
    inner: R,
    format: &'static str,
    packed: Count,
    /// The unpacked bytes so far.
    unpacked: u64,
    limit: Option<u64>,
}

impl<R: Read> Guard<R> {
    /// `limit` is the limit of the user, which replaces all other limits.
    pub fn new(inner: R, format: &'static str, packed: Count, limit: Option<u64>) -> Self {
        Guard {
            inner,
            format,
            packed,
            unpacked: 0,
            limit,
        }
    }
}

impl<R: Read> Read for Guard<R> {
    fn read(&mut self, out: &mut [u8]) -> io::Result<usize> {
        let len = match self.inner.read(out) {
            Ok(len) => len,
            Err(e) if e.kind() == io::ErrorKind::Interrupted => return Err(e),
            Err(e) => {
                return Err(io::Error::other(Stop::Broken {
                    format: self.format,
                    at: self.unpacked,
                    why: e.to_string(),
                }));
            }
        };
        self.unpacked = self.unpacked.saturating_add(len as u64);
        match self.exceeded_limit() {
            Some(stop) => Err(io::Error::other(stop)),
            None => Ok(len),
        }
    }
}

impl<R> Guard<R> {
    /// The limit that the output exceeds.
    fn exceeded_limit(&self) -> Option<Stop> {
        let max_total = self.limit.unwrap_or(MAX_PIPE);
        if self.unpacked > max_total {
            return Some(Stop::Size(max_total));
        }
        let max_by_factor = self.packed.get().saturating_mul(MAX_FACTOR);
        if self.limit.is_none() && self.unpacked > max_by_factor.max(ALWAYS_ALLOWED) {
            return Some(Stop::Factor);
        }
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn drain(bytes: u64, packed: u64, limit: Option<u64>) -> (u64, Option<String>) {
        let zeros = io::repeat(0).take(bytes);
        let mut guard = Guard::new(zeros, "gzip data", Count::known(packed), limit);
        let (mut block, mut all) = (vec![0; 1 << 20], 0);
        loop {
            match guard.read(&mut block) {
                Ok(0) => return (all, None),
                Ok(got) => all += got as u64,
                Err(e) => return (all, Some(e.to_string())),
            }
        }
    }

    #[test]
    fn read_stops_at_the_limits() {
        // Any factor for small output, the largest factor beyond.
        assert_eq!(drain(ALWAYS_ALLOWED, 1, None), (ALWAYS_ALLOWED, None));
        let packed = ALWAYS_ALLOWED / MAX_FACTOR + 3;
        assert_eq!(drain(ALWAYS_ALLOWED + 2 * MAX_FACTOR, packed, None).1, None);
        let (all, stop) = drain(u64::MAX, 1000, None);
        assert_eq!(all, ALWAYS_ALLOWED);
        assert!(stop.unwrap().contains("250 times"));
        // The limit of the user replaces them.
        let (all, stop) = drain(u64::MAX, 1, Some(ALWAYS_ALLOWED * 2));
        assert_eq!(all, ALWAYS_ALLOWED * 2);
        assert!(stop.unwrap().contains("512.0 MiB"));
        assert!(drain(10, 1_000_000, Some(9)).1.is_some());
    }
}
