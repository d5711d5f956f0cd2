//! What could not be read.

use core::ops::Range;

use crate::error::{Error, Result};
use crate::options::Mode;

/// A part of a stream that could not be read.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Damage {
    /// The bytes that were skipped. Empty if an event was returned without its undefined stack,
    /// thread or labels.
    pub range: Range<u64>,
    /// The fault.
    pub error: Error,
}

/// Collects damage, or turns it into an error.
#[derive(Debug)]
pub(crate) struct DamageLog {
    pub list: Vec<Damage>,
    /// The number of faults, including those that are not in the list.
    pub count: u64,
    mode: Mode,
}

impl DamageLog {
    /// Faults in the list. A damaged stream may have one in each event.
    const MAX_LISTED: usize = 1000;

    pub fn new(mode: Mode) -> Self {
        DamageLog {
            list: Vec::new(),
            count: 0,
            mode,
        }
    }

    /// Adds a fault. Fails in strict mode, and if reading cannot continue.
    #[cold]
    pub fn add(&mut self, range: Range<u64>, error: Error) -> Result<()> {
        if self.mode == Mode::Strict || error.is_fatal() {
            return Err(error);
        }
        self.count += 1;
        if self.list.len() < Self::MAX_LISTED {
            self.list.push(Damage { range, error });
        }
        Ok(())
    }
}
