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
