//! Packed input must not fill the disk: what unpacks is counted, and held to limits.

use std::error::Error;
use std::fmt;
use std::io::{self, Read};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use crate::error::Failure;
use crate::output;

/// Up to this size, input may grow by any factor: preallocated traces are mostly zeros.
const FREE: u64 = 256 << 20;

/// Beyond it, by this factor at most.
const FACTOR: u64 = 250;

/// The most that anything may grow to.
const TOTAL: u64 = 16 << 30;

/// Why packed input is not read on.
#[derive(Debug)]
pub(crate) enum Stop {
    /// It grows beyond a size.
    Size(u64),
    /// It grows by more than a factor.
    Factor,
    /// It is not what its form demands.
    Broken { form: &'static str, at: u64, why: String },
}

impl fmt::Display for Stop {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Stop::Size(limit) => write!(f, "unpacks to more than {}", output::size(*limit)),
            Stop::Factor => {
                let free = output::size(FREE);
                write!(f, "unpacks to more than {free} and {FACTOR} times its size")
            }
            Stop::Broken { form, at, why } => {
                write!(f, "the {form} is damaged or cut off, {at} unpacked bytes in: {why}")
            }
        }
    }
}

impl Error for Stop {}

impl Stop {
    fn hint(&self) -> &'static str {
        match self {
            Stop::Size(_) | Stop::Factor => {
                "is it a trace? if you trust it, --max-unpacked 64G lets it grow to that size"
            }
            Stop::Broken { .. } => {
                "was the whole of the file copied? unpack it with its own tool, and \
                 `etlkit repair` makes a sound trace of what comes out"
            }
        }
    }
}

/// The failure of reading input that was perhaps packed.
pub(crate) fn failure(name: &str, error: &io::Error) -> Failure {
    let failure = Failure::new(name, error.to_string());
    match error.get_ref().and_then(|inner| inner.downcast_ref::<Stop>()) {
        Some(stop) => failure.hint(stop.hint()),
        None => failure,
    }
}

/// How many packed bytes were taken.
#[derive(Clone, Debug, Default)]
pub(super) struct Count(Arc<AtomicU64>);

impl Count {
    /// A number that is known beforehand.
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
        let got = self.inner.read(out)?;
        self.count.0.fetch_add(got as u64, Ordering::Relaxed);
        Ok(got)
    }
}

/// What comes out of an unpacker, held to the limits.
pub(super) struct Guard<R> {
    inner: R,
    form: &'static str,
    packed: Count,
    out: u64,
    limit: Option<u64>,
}

impl<R: Read> Guard<R> {
    /// `limit` is what the user allows in place of the limits.
    pub fn new(inner: R, form: &'static str, packed: Count, limit: Option<u64>) -> Self {
        Guard { inner, form, packed, out: 0, limit }
    }
}

impl<R: Read> Read for Guard<R> {
    fn read(&mut self, out: &mut [u8]) -> io::Result<usize> {
        let got = match self.inner.read(out) {
            Ok(got) => got,
            Err(e) if e.kind() == io::ErrorKind::Interrupted => return Err(e),
            Err(e) => {
                let (form, at, why) = (self.form, self.out, e.to_string());
                return Err(io::Error::other(Stop::Broken { form, at, why }));
            }
        };
        self.out = self.out.saturating_add(got as u64);
        let stop = match self.limit {
            Some(limit) => (self.out > limit).then_some(Stop::Size(limit)),
            None if self.out > TOTAL => Some(Stop::Size(TOTAL)),
            None => {
                let most = self.packed.get().saturating_mul(FACTOR).max(FREE);
                (self.out > most).then_some(Stop::Factor)
            }
        };
        match stop {
            Some(stop) => Err(io::Error::other(stop)),
            None => Ok(got),
        }
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
    fn what_unpacks_is_held_to_the_limits() {
        // By any factor while it is small, by the allowed factor beyond.
        assert_eq!(drain(FREE, 1, None), (FREE, None));
        assert_eq!(drain(FREE + 2 * FACTOR, FREE / FACTOR + 3, None).1, None);
        let (all, stop) = drain(u64::MAX, 1000, None);
        assert_eq!(all, FREE);
        assert!(stop.unwrap().contains("250 times"));
        // What the user allows counts instead.
        let (all, stop) = drain(u64::MAX, 1, Some(FREE * 2));
        assert_eq!(all, FREE * 2);
        assert!(stop.unwrap().contains("512.0 MiB"));
        assert!(drain(10, 1_000_000, Some(9)).1.is_some());
    }
}
