//! Numbers of bytes for people.

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
        value /= 1024.0;
        unit = next;
    }
    if unit == "bytes" {
        format!("{bytes} bytes")
    } else {
        format!("{value:.1} {unit}")
    }
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
