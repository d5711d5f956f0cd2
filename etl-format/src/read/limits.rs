//! Bounds on the memory of a reader.

/// Bounds on the memory of a reader.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// Largest buffer, stored or decompressed, in bytes. Windows' own limit is 16 MiB.
    pub buffer: u32,
    /// Memory for all buffers that a time-ordered reader holds at once, in bytes.
    pub held: u64,
}

impl Default for Limits {
    /// 64 MiB a buffer, 2 GiB held.
    fn default() -> Self {
        Limits { buffer: 64 << 20, held: 2 << 30 }
    }
}

/// The largest number of bytes that one stored byte of a compressed buffer can decompress to; more
/// is damage.
///
/// A record takes at most 64 KiB, and each different record takes about ten stored bytes: a factor
/// of 6,500. Without this bound a few bytes of XPRESS could decompress to gigabytes.
pub(super) const EXPANSION: usize = 8192;
