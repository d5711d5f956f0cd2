//! Names of the folders and files of a data set.
//!
//! | path | content |
//! |---|---|
//! | `TABLE/TRACE.parquet` | the rows of a trace; further parts are `TABLE/TRACE.1.parquet` and so on |
//! | `TABLE/packed.HASH.parquet` | the rows of several traces |
//! | `TABLE/schema.parquet` | no row: the columns of the table |
//! | `events/provider=NAME/...` | the same of the events of one provider, if requested |
//! | `typed/PROVIDER.EVENT/...` | the same of the events of one kind |

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use super::{Hash, failed};
use crate::Result;

/// The file with the columns of a table and no row.
pub(super) const SCHEMA_FILE: &str = "schema.parquet";
/// The beginning of the names of files with the rows of several traces.
pub(super) const PACKED: &str = "packed.";
/// The most characters of a name.
const MAX_WORD: usize = 100;
/// Bytes of a value in the name of a partition: file systems allow 255 for the whole name.
const MAX_PARTITION: usize = 200;

/// The name of a file of a trace.
pub(super) fn part_name(trace: &str, number: usize) -> String {
    match number {
        0 => format!("{trace}.parquet"),
        number => format!("{trace}.{number}.parquet"),
    }
}

/// Whether a file with this name has rows of a trace only.
pub(super) fn is_part_of(file: &str, trace: &str) -> bool {
    let Some(rest) = file.strip_prefix(trace) else {
        return false;
    };
    match rest.strip_suffix(".parquet") {
        Some("") => true,
        Some(number) => {
            let digits = number.strip_prefix('.').unwrap_or_default();
            !digits.is_empty() && digits.bytes().all(|byte| byte.is_ascii_digit())
        }
        None => false,
    }
}

/// The folders of all tables, and of their partitions: each folder that may have files.
pub(super) fn table_folders(root: &Path) -> Result<Vec<PathBuf>> {
    let mut tables = Vec::new();
    for table in folders_in(root)? {
        let name = table.file_name().unwrap_or_default().to_string_lossy();
        if !name.starts_with(['.', '_']) {
            tables.extend(folders_in(&table)?);
            tables.push(table);
        }
    }
    tables.sort();
    Ok(tables)
}

/// The Parquet files in a folder, without the one of its columns, in the order of their names.
pub(super) fn files_in(folder: &Path) -> Result<Vec<PathBuf>> {
    let mut files = Vec::new();
    for path in entries_of(folder)? {
        let name = path.file_name().unwrap_or_default().to_string_lossy();
        let is_data = name.ends_with(".parquet") && name != SCHEMA_FILE && !name.starts_with('.');
        if is_data && path.is_file() {
            files.push(path);
        }
    }
    files.sort();
    Ok(files)
}

/// The folders in a folder.
fn folders_in(folder: &Path) -> Result<Vec<PathBuf>> {
    let mut folders = entries_of(folder)?;
    folders.retain(|path| path.is_dir());
    Ok(folders)
}

/// What is in a folder; nothing if it does not exist.
fn entries_of(folder: &Path) -> Result<Vec<PathBuf>> {
    let entries = match fs::read_dir(folder) {
        Ok(entries) => entries,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
        Err(error) => return Err(failed(folder, error)),
    };
    let mut paths = Vec::new();
    for entry in entries {
        paths.push(entry.map_err(|error| failed(folder, error))?.path());
    }
    Ok(paths)
}

/// The table of a folder: its path from the folder of the data set, without a partition.
pub(super) fn table_of_folder(root: &Path, folder: &Path) -> String {
    let relative = folder.strip_prefix(root).unwrap_or(folder);
    let names = relative.iter().map(|name| name.to_string_lossy());
    let names: Vec<_> = names.filter(|name| !name.contains('=')).collect();
    names.join("/")
}

/// A value as the name of a partition, which engines decode. Other characters than plain ones are
/// percent signs and the numbers of their bytes, as in Hive.
pub(super) fn partition(text: &str) -> String {
    let mut out = String::new();
    for c in text.chars() {
        let start = out.len();
        if is_plain(c) {
            out.push(c);
        } else {
            for byte in c.encode_utf8(&mut [0; 4]).bytes() {
                out.push_str(&format!("%{byte:02X}"));
            }
        }
        // The hash distinguishes long names with the same beginning.
        if out.len() > MAX_PARTITION {
            out.truncate(start);
            return format!("{out}-{}", Hash::of(text.as_bytes()).short());
        }
    }
    // Windows drops a dot at the end.
    match out.strip_suffix('.') {
        Some(rest) => format!("{rest}%2E"),
        None => out,
    }
}

fn is_plain(c: char) -> bool {
    c.is_ascii_alphanumeric() || "._-".contains(c)
}

/// A text as the name of a folder, with underscores instead of characters that are not plain.
pub(super) fn word(text: &str) -> String {
    let mut word = String::new();
    for c in text.chars().take(MAX_WORD) {
        word.push(if is_plain(c) { c } else { '_' });
    }
    if word.trim_matches('.').is_empty() {
        "_".to_owned()
    } else {
        word
    }
}

/// The name of the folder of the events of one kind. A hash distinguishes long names with the same
/// beginning.
pub(super) fn typed_folder(table: &str) -> String {
    let folder = word(table);
    match table.chars().nth(MAX_WORD) {
        Some(_) => format!("{folder}-{}", Hash::of(table.as_bytes()).short()),
        None => folder,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parts_of_a_trace_have_its_name_and_a_number() {
        assert_eq!(part_name("a-1", 0), "a-1.parquet");
        assert_eq!(part_name("a-1", 12), "a-1.12.parquet");
        for (file, is_part) in [
            ("a-1.parquet", true),
            ("a-1.12.parquet", true),
            ("a-12.parquet", false),
            ("a-1.x.parquet", false),
            ("a-1..parquet", false),
            ("packed.a-1.parquet", false),
            ("a-1.json", false),
        ] {
            assert_eq!(is_part_of(file, "a-1"), is_part, "{file}");
        }
    }

    #[test]
    fn partitions_have_names_that_are_values_again() {
        for (value, name) in [
            ("Contoso.Shop_1-2", "Contoso.Shop_1-2"),
            ("KernelTraceControl/ImageID", "KernelTraceControl%2FImageID"),
            ("50% {a=b}", "50%25%20%7Ba%3Db%7D"),
            ("\u{e9}.", "%C3%A9%2E"),
        ] {
            assert_eq!(partition(value), name);
        }
    }

    #[test]
    fn long_names_are_distinct() {
        let long = |last: &str| "\u{e9}".repeat(150) + last;
        assert_ne!(partition(&long("a")), partition(&long("b")));
        assert!(partition(&long("a")).len() < 220);
        assert_ne!(typed_folder(&long("a")), typed_folder(&long("b")));
        assert_eq!(typed_folder(&"a".repeat(MAX_WORD)), "a".repeat(MAX_WORD));
    }
}
