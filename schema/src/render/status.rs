//! Names of common Win32, NTSTATUS and HRESULT codes.

use std::collections::HashMap;
use std::sync::LazyLock;

/// Lines `KIND CODE NAME`.
const STATUS_TABLE: &str = include_str!("../../tables/status.txt");

fn find(kind: &str, code: u32) -> Option<&'static str> {
    static NAMES: LazyLock<HashMap<(&str, u32), &str>> = LazyLock::new(|| {
        let entry = |line: &'static str| {
            let mut words = line.split(' ');
            let (kind, code, name) = (words.next()?, words.next()?, words.next()?);
            let code = u32::from_str_radix(code.strip_prefix("0x")?, 16).ok()?;
            Some(((kind, code), name))
        };
        STATUS_TABLE.lines().filter_map(entry).collect()
    });
    NAMES.get(&(kind, code)).copied()
}

/// The name of a Win32 error code, for the common ones.
#[must_use]
pub fn win32(code: u32) -> Option<&'static str> {
    find("win32", code)
}

/// The name of an NTSTATUS, for the common ones.
#[must_use]
pub fn ntstatus(code: u32) -> Option<&'static str> {
    find("ntstatus", code)
}

/// The name of an HRESULT, for the common ones; one that wraps a Win32 error (`0x8007....`) has
/// that one's name.
#[must_use]
pub fn hresult(code: u32) -> Option<&'static str> {
    let wrapped = || {
        (code >> 16 == 0x8007)
            .then_some(code & 0xffff)
            .and_then(win32)
    };
    find("hresult", code).or_else(wrapped)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn status_names_are_found_by_kind_and_code() {
        assert_eq!(win32(1460), Some("ERROR_TIMEOUT"));
        assert_eq!(ntstatus(0xc000_0005), Some("STATUS_ACCESS_VIOLATION"));
        assert_eq!(hresult(0x8007_0005), Some("ERROR_ACCESS_DENIED"));
        assert_eq!(hresult(0x8007_ffff), None);
        assert_eq!(win32(4), None);
    }
}
