//! Bounds on the memory of a reader.

use crate::error::{Error, ErrorKind, Result};

/// Bounds on the memory of a reader.
///
/// ```
/// use etl_format::read::{Limits, Options, Trace};
/// # use etl_format::FileHeader;
/// # use etl_format::write::Session;
/// # let bytes = Session::in_memory(FileHeader::new())?.finish()?;
///
/// let limits = Limits { buffer: 0x1000, ..Limits::default() };
/// let error = Trace::open(bytes.as_slice(), &Options { limits, ..Options::default() });
/// assert_eq!(error.unwrap_err().code(), "limit", "its buffers have 64 KiB");
/// # Ok::<(), etl_format::Error>(())
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// Largest buffer, stored or decompressed, in bytes. Windows' own limit is 16 MiB.
    pub buffer: u32,
    /// Memory for all buffers that a time-ordered reader holds at once, in bytes.
    pub held: u64,
    /// Memory of the whole process; `None` for no bound.
    pub budget: Option<Budget>,
}

impl Default for Limits {
    /// 64 MiB for a buffer, 2 GiB for all buffers, no budget.
    fn default() -> Self {
        Limits {
            buffer: 64 << 20,
            held: 2 << 30,
            budget: None,
        }
    }
}

/// A bound on the memory of the whole process: the buffers of the reader, and everything that the
/// program keeps.
///
/// A reader checks it with each buffer and after every [`Budget::RECORDS`] records. The program
/// returns how much it uses, for example from an allocator that counts.
#[derive(Clone, Copy, Debug)]
pub struct Budget {
    /// Bytes that the process may use.
    pub bytes: u64,
    /// Returns how many bytes the process uses now.
    pub used: fn() -> u64,
}

impl PartialEq for Budget {
    fn eq(&self, other: &Self) -> bool {
        self.bytes == other.bytes && core::ptr::fn_addr_eq(self.used, other.used)
    }
}

impl Eq for Budget {}

impl Budget {
    /// The number of records after which the memory is checked. A program keeps at most some
    /// hundred bytes for a record.
    pub const RECORDS: u64 = 1 << 12;

    /// While a trace is read, the process may use the budget divided by this number. A table that
    /// grows takes three times its size for a while, and results need memory in addition to the
    /// data from which they are computed.
    pub const PARTS: u64 = 2;
}

impl Limits {
    /// Checks the budget. `offset` is the place in the file that was read last.
    ///
    /// # Errors
    /// [`ErrorKind::Budget`] if the budget is exceeded.
    #[cold]
    #[inline(never)]
    pub fn check(&self, offset: u64) -> Result<()> {
        match self.budget {
            Some(Budget { bytes, used }) if used() > bytes / Budget::PARTS => {
                Err(Error::new(offset, ErrorKind::Budget { bytes }))
            }
            _ => Ok(()),
        }
    }
}
