//! The arguments of every command that reads a trace.

use etl_format::read::Limits;

/// Memory for buffers unless the user names another: what a small container has left.
const MEMORY: u64 = 1 << 30;

/// Memory for the buffers of the smallest trace.
const LEAST: u64 = 32 << 20;

/// A trace needs no more than this many times its size. Compressed traces of Windows decompress to
/// four to eight times their size, and two buffers of each processor are read at a time.
const TIMES: u64 = 256;

/// The arguments of every command that reads a trace.
#[derive(Clone, Debug, Default, clap::Args)]
#[command(next_help_heading = "Input (.etl, or packed: .etl.zip, .gz, .zst)")]
pub(crate) struct InputArgs {
    /// Read this file of a ZIP archive; needed if the archive contains several traces
    #[arg(long, value_name = "NAME")]
    pub member: Option<String>,
    /// Allow packed input to unpack to SIZE [default: 250 times its packed size, but at least 256M
    /// and at most 16G]
    #[arg(long, value_name = "SIZE", value_parser = byte_size)]
    pub max_unpacked: Option<u64>,
    /// Memory for the buffers of all traces that are read at the same time; a trace that needs more
    /// is refused [default: 1G, but for a trace at most 32M and 256 times its size]
    #[arg(long, value_name = "SIZE", value_parser = byte_size)]
    pub max_memory: Option<u64>,
    /// Read files in blocks instead of mapping them into memory
    #[arg(long)]
    pub no_mmap: bool,
    /// Traces that are read at the same time; 0 counts as 1.
    #[arg(skip)]
    at_once: u64,
}

impl InputArgs {
    /// The arguments for one of `count` traces that are read at the same time.
    pub fn share(&self, count: usize) -> Self {
        InputArgs { at_once: count as u64, ..self.clone() }
    }

    /// Memory for the buffers of all traces.
    pub fn memory(&self) -> u64 {
        self.max_memory.unwrap_or(MEMORY)
    }

    /// The bounds for reading a trace of `size` bytes.
    pub fn limits(&self, size: u64) -> Limits {
        let share = self.memory() / self.at_once.max(1);
        let tied = size.saturating_mul(TIMES).saturating_add(LEAST);
        let (held, buffer) = match self.max_memory {
            Some(_) => (share.max(LEAST), u32::MAX),
            None => (share.min(tied).max(LEAST), Limits::default().buffer),
        };
        Limits { buffer: u32::try_from(held).unwrap_or(u32::MAX).min(buffer), held }
    }
}

/// A number of bytes; the suffixes K, M, G and T are powers of 1024.
fn byte_size(text: &str) -> Result<u64, String> {
    let invalid = || "expected a number of bytes, with K, M, G or T as unit: 20G".to_owned();
    let upper = text.trim().to_ascii_uppercase();
    let number = upper.strip_suffix("IB").or_else(|| upper.strip_suffix('B')).unwrap_or(&upper);
    let unit = number.chars().last().and_then(|c| "KMGT".find(c));
    let (digits, shift) = match unit {
        Some(at) => (number.get(..number.len() - 1).unwrap_or_default(), 10 * (at as u32 + 1)),
        None => (number, 0),
    };
    let value: u64 = digits.trim().parse().map_err(|_| invalid())?;
    value.checked_mul(1 << shift).ok_or_else(invalid)
}

#[cfg(test)]
mod tests {
    use super::{InputArgs, byte_size};

    #[test]
    fn limits_are_tied_to_the_trace_and_shared() {
        let held = |max_memory, count, size| {
            InputArgs { max_memory, ..InputArgs::default() }.share(count).limits(size).held
        };
        assert_eq!(held(None, 1, 1 << 20), (256 + 32) << 20);
        assert_eq!(held(None, 1, u64::MAX), 1 << 30);
        assert_eq!(held(None, 4, u64::MAX), 256 << 20);
        assert_eq!(held(None, 1000, u64::MAX), 32 << 20);
        assert_eq!(held(Some(4 << 30), 1, 1), 4 << 30);
        assert_eq!(held(Some(4 << 30), 2, 1), 2 << 30);
        assert_eq!(held(Some(1), 1, 1), 32 << 20);
        let buffer = |memory| {
            InputArgs { max_memory: Some(memory), ..InputArgs::default() }.limits(1).buffer
        };
        assert_eq!([buffer(1), buffer(48 << 20), buffer(8 << 30)], [32 << 20, 48 << 20, u32::MAX]);
        assert_eq!(InputArgs::default().limits(u64::MAX).buffer, 64 << 20);
    }

    #[test]
    fn byte_size_reads_units() {
        for (text, bytes) in [
            ("0", 0),
            ("4096", 4096),
            ("1k", 1 << 10),
            ("20M", 20 << 20),
            ("3 GiB", 3 << 30),
            ("2TB", 2 << 40),
        ] {
            assert_eq!(byte_size(text), Ok(bytes), "{text}");
        }
        for text in ["", "G", "1.5G", "-1", "99999999999T", "1X"] {
            assert!(byte_size(text).is_err(), "{text}");
        }
    }
}
