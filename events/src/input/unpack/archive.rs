//! The trace in a ZIP archive, as PerfView makes them.

use std::io::{BufReader, Read, Seek, SeekFrom};

use zip::ZipArchive;
use zip::result::ZipError;

use super::super::error::{Advice, Choose, Error};
use super::guard::{Count, Guard};

/// Files of an archive that a message lists.
const MAX_LISTED: usize = 12;

const FORMAT: &str = "ZIP archive";

/// Calls `f` with the name and the bytes of the trace in the archive.
///
/// # Errors
/// When the archive contains no trace, or several and none is chosen, or cannot be read; or those
/// of `f`.
pub(super) fn with_member<R: Read + Seek, T>(
    mut archive: R,
    wanted: Option<&str>,
    max_unpacked: Option<u64>,
    f: impl FnOnce(&str, &mut dyn Read) -> Result<T, Error>,
) -> Result<T, Error> {
    let failure = |e: &ZipError| Error::new(message(e)).hint_text(hint(e));
    let size = archive.seek(SeekFrom::End(0))?;
    let mut archive = ZipArchive::new(BufReader::new(archive)).map_err(|e| failure(&e))?;
    let names: Vec<String> = (0..archive.len())
        .map(|i| match archive.name_for_index(i) {
            Some(Ok(name)) => name.into_owned(),
            _ => String::new(),
        })
        .collect();
    let chosen = choose(&names, wanted)?;
    let member = archive.by_index(chosen).map_err(|e| failure(&e))?;
    let called = names.get(chosen).map_or("", String::as_str);
    f(
        called,
        &mut Guard::new(member, FORMAT, Count::known(size), max_unpacked),
    )
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

/// The index of the file that the user means.
fn choose(names: &[String], wanted: Option<&str>) -> Result<usize, Error> {
    let files = || {
        let files = names.iter().enumerate();
        files.filter(|(_, n)| !n.is_empty() && !n.ends_with('/') && !n.starts_with("__MACOSX/"))
    };
    let is_trace = |name: &str| name.to_ascii_lowercase().ends_with(".etl");
    let last = |name: &str| etl_format::file_name(name).to_owned();
    let found: Vec<_> = match wanted {
        Some(wanted) => {
            if let Some((at, _)) = files().find(|(_, name)| *name == wanted) {
                return Ok(at);
            }
            files().filter(|(_, name)| last(name) == wanted).collect()
        }
        None => {
            let traces: Vec<_> = files().filter(|(_, name)| is_trace(name)).collect();
            if traces.is_empty() && files().count() == 1 {
                files().collect()
            } else {
                traces
            }
        }
    };
    match (found.as_slice(), wanted) {
        ([(at, _)], _) => Ok(*at),
        ([], Some(wanted)) => {
            let files = list(files().map(|(_, n)| n));
            let advice = Advice::Member {
                before: "it contains ",
                files,
                choose: Choose::No,
            };
            Err(Error::new(format!("the ZIP archive contains no {wanted}")).advise(advice))
        }
        ([], None) => {
            let advice = match files().next() {
                None => Advice::Text("it is empty"),
                Some(_) => {
                    let files = list(files().map(|(_, n)| n));
                    Advice::Member {
                        before: "it contains ",
                        files,
                        choose: Choose::After,
                    }
                }
            };
            Err(Error::new("the ZIP archive contains no .etl file").advise(advice))
        }
        (several, _) => {
            let files = list(several.iter().map(|(_, n)| *n));
            let advice = Advice::Member {
                before: "",
                files,
                choose: Choose::Before,
            };
            let message = format!("the ZIP archive contains {} traces", several.len());
            Err(Error::new(message).advise(advice))
        }
    }
}

fn list<'a>(names: impl Iterator<Item = &'a String>) -> String {
    let mut names: Vec<&str> = names.map(String::as_str).collect();
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
