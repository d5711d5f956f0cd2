//! Names of common Win32, NTSTATUS and HRESULT codes.

use std::collections::HashMap;
use std::sync::LazyLock;

/// Lines `KIND CODE NAME`.
const STATUS_TABLE: &str = include_str!("../../tables/status.txt");

/// A code of a kind.
#[derive(PartialEq, Eq, Hash)]
struct StatusCode<'s> {
    kind: &'s str,
    code: u32,
}

fn find(kind: &str, code: u32) -> Option<&'static str> {
    static NAMES: LazyLock<HashMap<StatusCode<'_>, &str>> = LazyLock::new(|| {
        let mut names = HashMap::new();
        for line in STATUS_TABLE.lines() {
            if let Some((code, name)) = parse(line) {
                names.insert(code, name);
            }
        }
        names
    });
    NAMES.get(&StatusCode { kind, code }).copied()
}

/// The code and the name in a line of the table.
fn parse(line: &'static str) -> Option<(StatusCode<'static>, &'static str)> {
    let mut words = line.split(' ');
    let kind = words.next()?;
    let code = words.next()?.strip_prefix("0x")?;
    let name = words.next()?;
    let code = u32::from_str_radix(code, 16).ok()?;
    Some((StatusCode { kind, code }, name))
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

/// The name of an HRESULT, for the common ones. An HRESULT of a Win32 error (`0x8007....`) has the
/// name of that error.
#[must_use]
pub fn hresult(code: u32) -> Option<&'static str> {
    match find("hresult", code) {
        None if code >> 16 == 0x8007 => win32(code & 0xffff),
        name => name,
    }
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
