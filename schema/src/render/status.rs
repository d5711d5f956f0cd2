//! Names of Win32, NTSTATUS and HRESULT codes.

use std::sync::LazyLock;

/// Lines `CODE NAME`, ascending, below the line of their kind.
const STATUS_TABLE: &str = include_str!("../../tables/status.txt");

/// A code and its name.
struct StatusName {
    code: u32,
    name: &'static str,
}

/// The names of the codes of each kind, ascending.
#[derive(Default)]
struct StatusNames {
    win32: Vec<StatusName>,
    ntstatus: Vec<StatusName>,
    hresult: Vec<StatusName>,
}

impl StatusNames {
    fn read(table: &'static str) -> Self {
        let mut names = StatusNames::default();
        let mut kind = &mut names.win32;
        for line in table.lines() {
            match line {
                "win32" => kind = &mut names.win32,
                "ntstatus" => kind = &mut names.ntstatus,
                "hresult" => kind = &mut names.hresult,
                line => kind.extend(parse(line)),
            }
        }
        names
    }
}

/// The code and the name in a line of the table.
fn parse(line: &'static str) -> Option<StatusName> {
    let (code, name) = line.split_once(' ')?;
    let code = u32::from_str_radix(code, 16).ok()?;
    Some(StatusName { code, name })
}

static NAMES: LazyLock<StatusNames> = LazyLock::new(|| StatusNames::read(STATUS_TABLE));

fn find(names: &[StatusName], code: u32) -> Option<&'static str> {
    let index = names.binary_search_by_key(&code, |named| named.code).ok()?;
    names.get(index).map(|named| named.name)
}

/// The name of a Win32 error code.
#[must_use]
pub fn win32(code: u32) -> Option<&'static str> {
    find(&NAMES.win32, code)
}

/// The name of an NTSTATUS. An NTSTATUS of a Win32 error (`0xc007....`) has the name of that error.
#[must_use]
pub fn ntstatus(code: u32) -> Option<&'static str> {
    match find(&NAMES.ntstatus, code) {
        None if code >> 16 == FACILITY_NTWIN32 => win32(code & 0xffff),
        name => name,
    }
}

/// The name of an HRESULT. An HRESULT of a Win32 error (`0x8007....`) or of an NTSTATUS (bit 28)
/// has the name of that error.
#[must_use]
pub fn hresult(code: u32) -> Option<&'static str> {
    match find(&NAMES.hresult, code) {
        None if code >> 16 == FACILITY_WIN32 => win32(code & 0xffff),
        None if code & FACILITY_NT_BIT != 0 => ntstatus(code & !FACILITY_NT_BIT),
        name => name,
    }
}

/// The upper half of an NTSTATUS that contains a Win32 error.
const FACILITY_NTWIN32: u32 = 0xc007;
/// The upper half of an HRESULT that contains a Win32 error.
const FACILITY_WIN32: u32 = 0x8007;
/// Set in an HRESULT that contains an NTSTATUS.
const FACILITY_NT_BIT: u32 = 0x1000_0000;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn status_names_are_found_by_kind_and_code() {
        assert_eq!(win32(1460), Some("ERROR_TIMEOUT"));
        assert_eq!(win32(4), Some("ERROR_TOO_MANY_OPEN_FILES"));
        assert_eq!(win32(10_060), Some("WSAETIMEDOUT"));
        assert_eq!(win32(0xffff), None);
        assert_eq!(ntstatus(0xc000_0005), Some("STATUS_ACCESS_VIOLATION"));
        assert_eq!(ntstatus(0xc000_0034), Some("STATUS_OBJECT_NAME_NOT_FOUND"));
        assert_eq!(ntstatus(0xc007_0005), Some("ERROR_ACCESS_DENIED"));
        assert_eq!(hresult(0x8007_0005), Some("ERROR_ACCESS_DENIED"));
        assert_eq!(hresult(0xd000_0034), Some("STATUS_OBJECT_NAME_NOT_FOUND"));
        assert_eq!(hresult(0x8009_2004), Some("CRYPT_E_NOT_FOUND"));
        assert_eq!(hresult(0x8013_1509), Some("COR_E_INVALIDOPERATION"));
        assert_eq!(hresult(0x8007_ffff), None);
    }

    /// The search needs ascending codes.
    #[test]
    fn codes_of_each_kind_are_ascending() {
        for names in [&NAMES.win32, &NAMES.ntstatus, &NAMES.hresult] {
            assert!(names.len() > 2_000);
            assert!(names.is_sorted_by(|one, next| one.code < next.code));
        }
    }
}
