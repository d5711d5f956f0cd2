//! The arguments of every command that reads a trace.

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
    /// Read files in blocks instead of mapping them into memory
    #[arg(long)]
    pub no_mmap: bool,
}

/// A number of bytes; the suffixes K, M, G and T are powers of 1024.
pub(crate) fn byte_size(text: &str) -> Result<u64, String> {
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
    use super::byte_size;

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
