//! What a reader may use: bounds that hold on any input.

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

/// Bytes that one stored byte of a compressed buffer stands for at most; what would be more is damage.
///
/// A record takes 64 KiB at most, and no two that differ can be stored in fewer bytes than tell them
/// apart: some ten, which makes 6,500. A few bytes of XPRESS alone could stand for gigabytes.
pub(super) const EXPANSION: usize = 8192;
