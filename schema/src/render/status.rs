//! Names of the status codes that traces hold most: from the public headers `winerror.h` and
//! `ntstatus.h`.

const WIN32: &[(u32, &str)] = &[
    (0, "ERROR_SUCCESS"),
    (1, "ERROR_INVALID_FUNCTION"),
    (2, "ERROR_FILE_NOT_FOUND"),
    (3, "ERROR_PATH_NOT_FOUND"),
    (5, "ERROR_ACCESS_DENIED"),
    (6, "ERROR_INVALID_HANDLE"),
    (8, "ERROR_NOT_ENOUGH_MEMORY"),
    (13, "ERROR_INVALID_DATA"),
    (14, "ERROR_OUTOFMEMORY"),
    (18, "ERROR_NO_MORE_FILES"),
    (32, "ERROR_SHARING_VIOLATION"),
    (50, "ERROR_NOT_SUPPORTED"),
    (80, "ERROR_FILE_EXISTS"),
    (87, "ERROR_INVALID_PARAMETER"),
    (109, "ERROR_BROKEN_PIPE"),
    (120, "ERROR_CALL_NOT_IMPLEMENTED"),
    (122, "ERROR_INSUFFICIENT_BUFFER"),
    (123, "ERROR_INVALID_NAME"),
    (126, "ERROR_MOD_NOT_FOUND"),
    (127, "ERROR_PROC_NOT_FOUND"),
    (183, "ERROR_ALREADY_EXISTS"),
    (234, "ERROR_MORE_DATA"),
    (258, "WAIT_TIMEOUT"),
    (259, "ERROR_NO_MORE_ITEMS"),
    (995, "ERROR_OPERATION_ABORTED"),
    (997, "ERROR_IO_PENDING"),
    (1168, "ERROR_NOT_FOUND"),
    (1223, "ERROR_CANCELLED"),
    (1460, "ERROR_TIMEOUT"),
];

const NTSTATUS: &[(u32, &str)] = &[
    (0x0000_0000, "STATUS_SUCCESS"),
    (0x0000_0102, "STATUS_TIMEOUT"),
    (0x0000_0103, "STATUS_PENDING"),
    (0x4001_0005, "DBG_CONTROL_C"),
    (0x8000_0003, "STATUS_BREAKPOINT"),
    (0x8000_0005, "STATUS_BUFFER_OVERFLOW"),
    (0x8000_0006, "STATUS_NO_MORE_FILES"),
    (0x8000_001a, "STATUS_NO_MORE_ENTRIES"),
    (0xc000_0001, "STATUS_UNSUCCESSFUL"),
    (0xc000_0002, "STATUS_NOT_IMPLEMENTED"),
    (0xc000_0004, "STATUS_INFO_LENGTH_MISMATCH"),
    (0xc000_0005, "STATUS_ACCESS_VIOLATION"),
    (0xc000_0008, "STATUS_INVALID_HANDLE"),
    (0xc000_000d, "STATUS_INVALID_PARAMETER"),
    (0xc000_000f, "STATUS_NO_SUCH_FILE"),
    (0xc000_0010, "STATUS_INVALID_DEVICE_REQUEST"),
    (0xc000_0011, "STATUS_END_OF_FILE"),
    (0xc000_0017, "STATUS_NO_MEMORY"),
    (0xc000_0022, "STATUS_ACCESS_DENIED"),
    (0xc000_0023, "STATUS_BUFFER_TOO_SMALL"),
    (0xc000_0034, "STATUS_OBJECT_NAME_NOT_FOUND"),
    (0xc000_0035, "STATUS_OBJECT_NAME_COLLISION"),
    (0xc000_003a, "STATUS_OBJECT_PATH_NOT_FOUND"),
    (0xc000_0043, "STATUS_SHARING_VIOLATION"),
    (0xc000_009a, "STATUS_INSUFFICIENT_RESOURCES"),
    (0xc000_00bb, "STATUS_NOT_SUPPORTED"),
    (0xc000_00fd, "STATUS_STACK_OVERFLOW"),
    (0xc000_0120, "STATUS_CANCELLED"),
    (0xc000_0135, "STATUS_DLL_NOT_FOUND"),
    (0xc000_013a, "STATUS_CONTROL_C_EXIT"),
    (0xc000_0142, "STATUS_DLL_INIT_FAILED"),
    (0xc000_0225, "STATUS_NOT_FOUND"),
    (0xc000_0409, "STATUS_STACK_BUFFER_OVERRUN"),
];

const HRESULT: &[(u32, &str)] = &[
    (0x0000_0000, "S_OK"),
    (0x0000_0001, "S_FALSE"),
    (0x8000_000a, "E_PENDING"),
    (0x8000_000b, "E_BOUNDS"),
    (0x8000_4001, "E_NOTIMPL"),
    (0x8000_4002, "E_NOINTERFACE"),
    (0x8000_4003, "E_POINTER"),
    (0x8000_4004, "E_ABORT"),
    (0x8000_4005, "E_FAIL"),
    (0x8000_ffff, "E_UNEXPECTED"),
    (0x8004_0154, "REGDB_E_CLASSNOTREG"),
    (0x8013_1500, "COR_E_EXCEPTION"),
    (0x8013_1501, "COR_E_SYSTEM"),
    (0x8013_1509, "COR_E_INVALIDOPERATION"),
    (0x8013_1620, "COR_E_IO"),
];

fn find(table: &[(u32, &'static str)], code: u32) -> Option<&'static str> {
    table
        .binary_search_by_key(&code, |(c, _)| *c)
        .ok()
        .and_then(|at| table.get(at))
        .map(|(_, n)| *n)
}

/// The name of a Win32 error code, for the common ones.
#[must_use]
pub fn win32(code: u32) -> Option<&'static str> {
    find(WIN32, code)
}

/// The name of an NTSTATUS, for the common ones.
#[must_use]
pub fn ntstatus(code: u32) -> Option<&'static str> {
    find(NTSTATUS, code)
}

/// The name of an HRESULT, for the common ones; one that wraps a Win32 error (`0x8007....`) has
/// that one's name.
#[must_use]
pub fn hresult(code: u32) -> Option<&'static str> {
    find(HRESULT, code).or_else(|| (code >> 16 == 0x8007).then_some(code & 0xffff).and_then(win32))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tables_are_sorted_and_found() {
        for table in [WIN32, NTSTATUS, HRESULT] {
            assert!(table.is_sorted_by(|a, b| a.0 < b.0));
        }
        assert_eq!(ntstatus(0xc000_0005), Some("STATUS_ACCESS_VIOLATION"));
        assert_eq!(hresult(0x8007_0005), Some("ERROR_ACCESS_DENIED"));
        assert_eq!(hresult(0x8007_ffff), None);
    }
}
