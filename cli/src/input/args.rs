//! The arguments of every command that reads a trace.

use etl_events::eventpipe;
use etl_events::input::InputOptions;
use etl_format::read::{Budget, Limits};

use crate::memory;
use crate::open_files;

/// The most memory for a trace unless the user chooses: it fits into a container of 2 GiB.
const MAX_DEFAULT: u64 = 1 << 30;

/// Memory for the smallest trace.
const MIN_DEFAULT: u64 = 128 << 20;

/// A trace needs at most this many times its size. Compressed traces of Windows decompress to four
/// to eight times their size, and the index of its records takes some of its size again.
const MAX_GROWTH: u64 = 256;

/// Memory for the buffers of a thread: it compresses 4 MiB at a time, and the result may be as
/// large.
const MAX_THREAD_MEMORY: u64 = 32 << 20;

/// The smallest budget: with less, no command can work.
const MIN_MEMORY: u64 = 32 << 20;

/// A buffer may take one of this many parts of the memory for buffers. Larger ones are treated as
/// damage.
const PARTS: u64 = 2;
/// Buffers of Windows are at most this large, and always allowed.
const WINDOWS_BUFFER: u32 = 16 << 20;

/// The largest file that is mapped if the memory is limited: the pages of a mapped file are memory
/// of the process until the system needs them.
const MAX_MAPPED: u64 = 32 << 20;

/// The arguments of every command that reads a trace.
#[derive(Clone, Debug, Default, clap::Args)]
#[command(next_help_heading = "Input (.etl or .nettrace, or packed: .zip, .gz, .zst)")]
pub(crate) struct InputArgs {
    /// Read this file of a ZIP archive; needed if the archive contains several traces
    #[arg(long, value_name = "NAME")]
    pub member: Option<String>,
    /// Allow packed input to unpack to SIZE [default: 250 times its packed size, but at least 256M
    /// and at most 16G]
    #[arg(long, value_name = "SIZE", value_parser = byte_size)]
    pub max_unpacked: Option<u64>,
    /// Memory for buffers, tables and indexes of the traces; a trace that needs more is refused
    /// [default: 128M and 256 times the size of the trace, at most 1G]
    #[arg(long, value_name = "SIZE", value_parser = byte_size)]
    pub max_memory: Option<u64>,
    /// Read files in blocks instead of mapping them into memory
    #[arg(long)]
    pub no_mmap: bool,
    /// Traces that are read at the same time; 0 means 1.
    #[arg(skip)]
    at_once: u64,
}

impl InputArgs {
    /// Whether a file is opened again for each read, because the system does not allow to keep all
    /// that are read at the same time open.
    pub fn closes_files(&self) -> bool {
        self.at_once > open_files::max_inputs()
    }

    /// The arguments of each of `count` traces that are read at the same time.
    pub fn share(&self, count: usize) -> Self {
        InputArgs {
            at_once: count as u64,
            ..self.clone()
        }
    }

    /// How inputs are opened.
    pub fn options(&self) -> InputOptions {
        let mut options = InputOptions::default();
        options.unpacker.member = self.member.clone();
        options.unpacker.max_unpacked = self.max_unpacked;
        // The window is only a part of what the command needs.
        options.unpacker.window = self.max_memory.map(|memory| memory / 4);
        if let Some(memory) = self.max_memory {
            options.unpacker.eventpipe.limits = stream_limits(memory.max(MIN_MEMORY));
        }
        if self.no_mmap {
            options.max_mapped = 0;
        } else if self.max_memory.is_some() {
            options.max_mapped = MAX_MAPPED;
        }
        options
    }

    /// The memory for traces of `size` bytes together.
    pub fn memory(&self, size: u64) -> u64 {
        let default = size
            .saturating_mul(MAX_GROWTH)
            .saturating_add(MIN_DEFAULT)
            .min(MAX_DEFAULT);
        self.max_memory.unwrap_or(default).max(MIN_MEMORY)
    }

    /// The memory for the open buffers of a merge, which reads as many traces at once as fit.
    pub fn merge_memory(&self, size: u64) -> u64 {
        self.memory(size) / Budget::PARTS
    }

    /// The largest number of threads that may compress buffers.
    pub fn max_threads(&self) -> usize {
        let threads = self.max_memory.unwrap_or(MAX_DEFAULT) / MAX_THREAD_MEMORY;
        usize::try_from(threads).unwrap_or(usize::MAX).max(1)
    }

    /// The bounds for reading traces of `size` bytes together.
    pub fn limits(&self, size: u64) -> Limits {
        let memory = self.memory(size);
        let held = memory / Budget::PARTS / self.at_once.max(1);
        let max_buffer = if self.max_memory.is_some() {
            u32::MAX
        } else {
            Limits::default().buffer
        };
        let buffer = u32::try_from(held / PARTS)
            .unwrap_or(u32::MAX)
            .clamp(WINDOWS_BUFFER, max_buffer);
        Limits {
            buffer,
            held,
            budget: memory::budget(memory),
        }
    }
}

/// The bounds for converting an EventPipe stream: half of the memory for its tables, and a quarter
/// each for events that wait for earlier ones and for a block.
fn stream_limits(memory: u64) -> eventpipe::Limits {
    let limits = eventpipe::Limits::default();
    eventpipe::Limits {
        block: limits.block.min(memory / 4),
        tables: memory / 2,
        sorting: memory / 4,
    }
}

/// A number of bytes; the suffixes K, M, G and T are powers of 1024.
fn byte_size(text: &str) -> Result<u64, String> {
    const EXPECTED: &str = "expected a number of bytes, with K, M, G or T as unit: 20G";
    let upper = text.trim().to_ascii_uppercase();
    let number = upper
        .strip_suffix("IB")
        .or_else(|| upper.strip_suffix('B'))
        .unwrap_or(&upper);
    let mut digits = number;
    let mut unit = 1u64;
    for (letter, shift) in [('K', 10), ('M', 20), ('G', 30), ('T', 40)] {
        if let Some(before) = number.strip_suffix(letter) {
            digits = before;
            unit <<= shift;
        }
    }
    let value: u64 = digits.trim().parse().map_err(|_| EXPECTED)?;
    value.checked_mul(unit).ok_or_else(|| EXPECTED.to_owned())
}

#[cfg(test)]
mod tests {
    use super::{InputArgs, byte_size};

    #[test]
    fn limits_are_tied_to_the_trace_and_shared() {
        let args = |max_memory| InputArgs {
            max_memory,
            ..InputArgs::default()
        };
        let memory = |max_memory, size| args(max_memory).memory(size);
        assert_eq!(memory(None, 1 << 20), (256 + 128) << 20);
        assert_eq!(memory(None, u64::MAX), 1 << 30);
        assert_eq!(memory(Some(4 << 30), 1), 4 << 30);
        assert_eq!(memory(Some(1), 1), 32 << 20);
        assert_eq!(args(Some(1)).merge_memory(1), 16 << 20);
        // Half of it is for buffers.
        let held = |max_memory, count| args(max_memory).share(count).limits(u64::MAX).held;
        assert_eq!([held(None, 1), held(None, 4)], [512 << 20, 128 << 20]);
        assert_eq!(held(Some(4 << 30), 2), 1 << 30);
        let buffer = |memory| args(Some(memory)).limits(1).buffer;
        assert_eq!(
            [buffer(1), buffer(1 << 28), buffer(1 << 40)],
            [16 << 20, 64 << 20, u32::MAX]
        );
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
