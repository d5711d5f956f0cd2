//! The trace in a ZIP archive, as PerfView makes them.

use std::io::{BufReader, Read, Seek, SeekFrom};

use zip::ZipArchive;
use zip::result::ZipError;

use super::super::error::{Advice, Choose, Error};
use super::guard::{Count, Guard};

/// Files of an archive that a message lists.
const MAX_LISTED: usize = 12;

const FORMAT: &str = "ZIP archive";

/// Calls `read` with the name and the bytes of the trace in the archive.
///
/// # Errors
/// When the archive contains no trace, or several and none is chosen, or cannot be read; and errors
/// of `read`.
pub(super) fn with_member<R: Read + Seek, T>(
    mut archive: R,
    wanted: Option<&str>,
    max_unpacked: Option<u64>,
    read: impl FnOnce(&str, &mut dyn Read) -> Result<T, Error>,
) -> Result<T, Error> {
    let size = archive.seek(SeekFrom::End(0))?;
    let mut archive = ZipArchive::new(BufReader::new(archive)).map_err(|e| unreadable(&e))?;
    if archive.has_duplicate_names() {
        // Only the last of them could be read.
        return Err(
            Error::new("two files in the ZIP archive have the same name")
                .hint_text("unpack it with its own tool, and name the .etl file"),
        );
    }
    let names: Vec<String> = (0..archive.len())
        .map(|i| match archive.name_for_index(i) {
            Some(Ok(name)) => name.into_owned(),
            _ => String::new(),
        })
        .collect();
    let index = choose(&names, wanted)?;
    let member = archive.by_index(index).map_err(|e| unreadable(&e))?;
    let name = names.get(index).map_or("", String::as_str);
    let mut bytes = Guard::new(member, FORMAT, Count::known(size), max_unpacked);
    read(name, &mut bytes)
}

fn unreadable(error: &ZipError) -> Error {
    Error::new(message(error)).hint_text(hint(error))
}

fn message(error: &ZipError) -> String {
    match error {
        ZipError::Io(e) => e.to_string(),
        ZipError::UnsupportedArchive(why) if *why == ZipError::PASSWORD_REQUIRED => {
            "the file in the ZIP archive is encrypted".to_owned()
        }
        ZipError::UnsupportedArchive(why) => format!("this ZIP archive cannot be read: {why}"),
        ZipError::CompressionMethodNotSupported(method) => {
            format!(
                "the file in the ZIP archive uses compression method {method}, which is not supported"
            )
        }
        _ => "the ZIP archive is damaged or truncated".to_owned(),
    }
}

fn hint(error: &ZipError) -> &'static str {
    match error {
        ZipError::UnsupportedArchive(_) | ZipError::CompressionMethodNotSupported(_) => {
            "unpack it with its own tool, and name the .etl file"
        }
        _ => {
            "copy the file again: it may be incomplete, and the directory of an archive is at its end"
        }
    }
}

/// A file of an archive.
#[derive(Clone, Copy)]
struct Member<'n> {
    index: usize,
    name: &'n str,
}

/// The files among the entries of an archive: without directories and the files that macOS adds.
fn files(names: &[String]) -> Vec<Member<'_>> {
    let mut files = Vec::new();
    for (index, name) in names.iter().enumerate() {
        if !name.is_empty() && !name.ends_with('/') && !name.starts_with("__MACOSX/") {
            files.push(Member { index, name });
        }
    }
    files
}

/// The index of the file that the user means.
fn choose(names: &[String], wanted: Option<&str>) -> Result<usize, Error> {
    let files = files(names);
    let candidates = match wanted {
        Some(wanted) => with_name(&files, wanted),
        None => traces(&files),
    };
    match (candidates.as_slice(), wanted) {
        ([file], _) => Ok(file.index),
        ([], Some(wanted)) => {
            let advice = Advice::Member {
                before: "it contains ",
                files: list(&files),
                choose: Choose::No,
            };
            Err(Error::new(format!("the ZIP archive contains no {wanted}")).advise(advice))
        }
        ([], None) => {
            let advice = if files.is_empty() {
                Advice::Text("it is empty")
            } else {
                Advice::Member {
                    before: "it contains ",
                    files: list(&files),
                    choose: Choose::After,
                }
            };
            Err(Error::new("the ZIP archive contains no .etl file").advise(advice))
        }
        (several, _) => {
            let advice = Advice::Member {
                before: "",
                files: list(several),
                choose: Choose::Before,
            };
            let message = format!("the ZIP archive contains {} traces", several.len());
            Err(Error::new(message).advise(advice))
        }
    }
}

/// The file with this path, or else the files with this name in any directory.
fn with_name<'n>(files: &[Member<'n>], wanted: &str) -> Vec<Member<'n>> {
    if let Some(file) = files.iter().find(|file| file.name == wanted) {
        return vec![*file];
    }
    let mut files = files.to_vec();
    files.retain(|file| etl_format::file_name(file.name) == wanted);
    files
}

/// The files that end with `.etl`, else with `.nettrace`; if there are none, the only file.
fn traces<'n>(files: &[Member<'n>]) -> Vec<Member<'n>> {
    let mut traces = Vec::new();
    for ending in [".etl", ".nettrace"] {
        if traces.is_empty() {
            traces = files.to_vec();
            traces.retain(|file| file.name.to_ascii_lowercase().ends_with(ending));
        }
    }
    if traces.is_empty() && files.len() == 1 {
        return files.to_vec();
    }
    traces
}

/// The names of the first files.
fn list(files: &[Member<'_>]) -> String {
    let mut names: Vec<&str> = files.iter().map(|file| file.name).collect();
    let all = names.len();
    names.truncate(MAX_LISTED);
    let more = if all > MAX_LISTED {
        format!(" and {} more", all - MAX_LISTED)
    } else {
        String::new()
    };
    names.join(", ") + &more
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::input::OptionNames;

    fn chosen(names: &[&str], wanted: Option<&str>) -> Result<usize, String> {
        let names: Vec<_> = names.iter().map(|&n| n.to_owned()).collect();
        choose(&names, wanted).map_err(|error| {
            let options = OptionNames {
                member: "--member NAME",
                max_unpacked: "--max-unpacked 64G",
                max_memory: "--max-memory",
            };
            format!("{error}; {}", error.hint(options).unwrap_or_default())
        })
    }

    #[test]
    fn choose_finds_the_trace_of_an_archive() {
        assert_eq!(chosen(&["a.etl"], None), Ok(0));
        assert_eq!(chosen(&["x/", "x/readme.txt", "x/A.ETL"], None), Ok(2));
        assert_eq!(chosen(&["__MACOSX/._a.etl", "a.etl"], None), Ok(1));
        assert_eq!(chosen(&["trace"], None), Ok(0));
        assert_eq!(chosen(&["x.txt", "a.nettrace"], None), Ok(1));
        assert_eq!(chosen(&["a.nettrace", "a.etl"], None), Ok(1));
        assert_eq!(chosen(&["x/a.etl", "y/b.etl"], Some("b.etl")), Ok(1));
        assert_eq!(chosen(&["a.etl", "x/a.etl"], Some("a.etl")), Ok(0));
        let error = chosen(&["a.etl", "b.etl"], None).unwrap_err();
        assert_eq!(
            error,
            "the ZIP archive contains 2 traces; choose one with --member NAME: a.etl, b.etl"
        );
        assert!(chosen(&["x/a.etl", "y/a.etl"], Some("a.etl")).is_err());
        assert!(
            chosen(&["a.txt", "b.txt"], None)
                .unwrap_err()
                .contains("a.txt, b.txt")
        );
        assert!(
            chosen(&["a.etl"], Some("c.etl"))
                .unwrap_err()
                .contains("contains no c.etl")
        );
        assert!(chosen(&[], None).unwrap_err().contains("is empty"));
        let many: Vec<_> = (0..20).map(|i| format!("{i}.etl")).collect();
        let many = choose(&many, None).unwrap_err();
        assert!(format!("{many:?}").contains(" and 8 more"));
    }
}
