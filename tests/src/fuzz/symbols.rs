//! The target for symbols: PDBs of Windows and portable ones.

use std::io::Write;

use etl_analysis::pdb::{FunctionTable, PdbId, SymbolPaths, functions, source_lines};
use etl_analysis::profile::IlPoint;
use etl_format::Guid;

/// Reads a PDB in each way: functions and lines, or an error that names the file.
pub(super) fn pdb(data: &[u8]) {
    let mut file = tempfile::Builder::new()
        .suffix(".pdb")
        .tempfile()
        .expect("a temporary file");
    file.write_all(data).expect("the disk is not full");
    let path = file.path();
    let offsets: Vec<u32> = (0x1000..0x1400).step_by(16).collect();
    match functions(path, &offsets) {
        Ok(lists) => assert_eq!(lists.len(), offsets.len()),
        Err(error) => assert_eq!(error.path(), path),
    }
    if let Ok(table) = FunctionTable::read(path) {
        for offset in &offsets {
            if let Some(function) = table.at(*offset) {
                assert!(function.offset <= *offset);
            }
        }
    }
    let point = IlPoint {
        token: 0x0600_0001,
        offset: 0,
    };
    match source_lines(path, &[point]) {
        Ok(lines) => assert_eq!(lines.len(), 1),
        Err(error) => assert_eq!(error.path(), path),
    }
    let name = path.to_string_lossy().into_owned();
    let id = PdbId::new(&name, Guid::new(1, 2, 3, [4; 8]), 1);
    if let Ok(paths) = SymbolPaths::new([path.to_owned()]) {
        let _ = paths.find(&id);
    }
}

/// Beginnings of both kinds of PDBs.
pub(super) fn seeds() -> Vec<(String, Vec<u8>)> {
    let mut windows = b"Microsoft C/C++ MSF 7.00\r\n\x1aDS\0\0\0".to_vec();
    // Size of a block, free block map, blocks, bytes of the directory, unknown, its block.
    for number in [0x200_u32, 1, 6, 24, 0, 3] {
        windows.extend(number.to_le_bytes());
    }
    windows.resize(0x600, 0);
    // The list of the directory's blocks, and the directory: two streams.
    windows.extend(4_u32.to_le_bytes());
    windows.resize(0x800, 0);
    for number in [2_u32, 0, 28, 5] {
        windows.extend(number.to_le_bytes());
    }
    windows.resize(0xa00, 0);
    // Version, signature, age and GUID.
    for number in [20_000_404_u32, 1, 1, 1, 2, 3, 4] {
        windows.extend(number.to_le_bytes());
    }
    windows.resize(0xc00, 0);
    let mut portable = b"BSJB\x01\0\x01\0\0\0\0\0\x0c\0\0\0PDB v1.0\0\0\0\0\0\0\x01\0".to_vec();
    // One stream of metadata: offset, size, name.
    portable.extend([0x2c, 0, 0, 0, 0x20, 0, 0, 0]);
    portable.extend(b"#Pdb\0\0\0\0");
    portable.resize(0x80, 1);
    vec![
        ("windows".to_owned(), windows),
        ("portable".to_owned(), portable),
    ]
}
