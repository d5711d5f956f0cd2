//! How inputs are read: the arguments of every command that takes a trace.

/// The arguments of every command that takes a trace.
#[derive(Clone, Debug, Default, clap::Args)]
#[command(next_help_heading = "Input (.etl, .etl.zip, .gz and .zst are read alike)")]
pub(crate) struct InputArgs {
    /// Of a ZIP archive, read this file; needed only where it holds several traces
    #[arg(long, value_name = "NAME")]
    pub member: Option<String>,
    /// Let packed input grow to this size, by whatever factor [default: 250 times its size, 256M
    /// at least and 16G at most]
    #[arg(long, value_name = "SIZE", value_parser = size)]
    pub max_unpacked: Option<u64>,
    /// Read files piece by piece instead of mapping them into memory
    #[arg(long)]
    pub no_mmap: bool,
}

/// A number of bytes, with K, M, G or T behind it for powers of 1024.
fn size(text: &str) -> Result<u64, String> {
    let mistake = || "expected bytes, with K, M, G or T behind them: 20G".to_owned();
    let upper = text.trim().to_ascii_uppercase();
    let number = upper.strip_suffix("IB").or_else(|| upper.strip_suffix('B')).unwrap_or(&upper);
    let unit = number.chars().last().and_then(|c| "KMGT".find(c));
    let (digits, shift) = match unit {
        Some(at) => (number.get(..number.len() - 1).unwrap_or_default(), 10 * (at as u32 + 1)),
        None => (number, 0),
    };
    let value: u64 = digits.trim().parse().map_err(|_| mistake())?;
    value.checked_mul(1 << shift).ok_or_else(mistake)
}

#[cfg(test)]
mod tests {
    use super::size;

    #[test]
    fn sizes_are_read_as_people_write_them() {
        for (text, bytes) in [
            ("0", 0),
            ("4096", 4096),
            ("1k", 1 << 10),
            ("20M", 20 << 20),
            ("3 GiB", 3 << 30),
            ("2TB", 2 << 40),
        ] {
            assert_eq!(size(text), Ok(bytes), "{text}");
        }
        for text in ["", "G", "1.5G", "-1", "99999999999T", "1X"] {
            assert!(size(text).is_err(), "{text}");
        }
    }
}
