//! The bytes of traces: packed ones unpacked (gzip, Zstandard, ZIP), and files of other formats
//! recognized.
//!
//! ```
//! use etl_tools::input::{Bytes, Unpacker};
//!
//! fn read(file: std::fs::File) -> Result<(), etl_tools::input::Error> {
//!     let (bytes, head) = Unpacker::default().open(Bytes::of_file(file)?)?;
//!     println!("{} {:?}", head.from.as_deref().unwrap_or("not packed"), head.bytes);
//!     let whole = bytes.whole()?;
//!     Ok(())
//! }
//! ```

mod archive;
mod bytes;
mod error;
mod guard;
mod head;
mod sniff;
mod temporary;
mod zst;

pub use bytes::{Bytes, Unpacker};
pub use error::{Error, OptionNames};
pub use head::Head;
pub use sniff::{binary_format, what};
pub use temporary::{Temporary, TemporaryError};

/// A number of bytes for people: `4.7 MiB`.
#[must_use]
pub fn size(bytes: u64) -> String {
    const UNITS: [&str; 4] = ["KiB", "MiB", "GiB", "TiB"];
    let mut value = bytes as f64;
    let mut unit = "bytes";
    for next in UNITS {
        if value < 1024.0 {
            break;
        }
        (value, unit) = (value / 1024.0, next);
    }
    if unit == "bytes" { format!("{bytes} bytes") } else { format!("{value:.1} {unit}") }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn size_prints_the_unit() {
        assert_eq!(size(1023), "1023 bytes");
        assert_eq!(size(4_879_401), "4.7 MiB");
    }
}
