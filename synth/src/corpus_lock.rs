//! `corpus.lock`: CRC-32 and size of every output of a corpus, one per line.

use std::collections::BTreeMap;
use std::io::{self, Read};

/// Outputs of a corpus by `SCENARIO/FILE`.
pub type Outputs = BTreeMap<String, Checksum>;

/// CRC-32 and size of an output.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Checksum {
    crc: u32,
    size: u64,
}

impl Checksum {
    /// The checksum of bytes in memory.
    #[must_use]
    pub fn of(bytes: &[u8]) -> Self {
        Checksum {
            crc: crc32fast::hash(bytes),
            size: bytes.len() as u64,
        }
    }

    /// The checksum of a file, which may be larger than memory.
    ///
    /// # Errors
    /// Errors of reading.
    pub fn of_reader(mut file: impl Read) -> io::Result<Self> {
        let mut hasher = crc32fast::Hasher::new();
        let mut size = 0u64;
        let mut chunk = vec![0; 1 << 18];
        loop {
            let len = file.read(&mut chunk)?;
            let Some(read) = chunk.get(..len).filter(|read| !read.is_empty()) else {
                break;
            };
            hasher.update(read);
            size = size.saturating_add(read.len() as u64);
        }
        Ok(Checksum {
            crc: hasher.finalize(),
            size,
        })
    }
}

/// The expected outputs of a corpus.
///
/// ```
/// use etl_synth::corpus_lock::{Checksum, CorpusLock, Outputs};
///
/// let outputs = Outputs::from([("gc/a.etl".to_owned(), Checksum::of(b"bytes"))]);
/// let lock = CorpusLock::parse(&CorpusLock::default().updated(&outputs, &[]));
/// assert!(lock.differences(&outputs, &[]).is_empty());
/// assert_eq!(lock.differences(&Outputs::new(), &[]).len(), 1, "an output is missing");
/// ```
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct CorpusLock {
    lines: Vec<String>,
}

impl CorpusLock {
    /// The name of the file, in the directory of the scripts.
    pub const FILE_NAME: &str = "corpus.lock";

    /// Reads the text of the file.
    #[must_use]
    pub fn parse(text: &str) -> Self {
        CorpusLock {
            lines: text.lines().map(str::to_owned).collect(),
        }
    }

    /// The outputs that differ from the expected ones, a line for each. `names` restricts the check
    /// to these scenarios.
    #[must_use]
    pub fn differences(&self, found: &Outputs, names: &[String]) -> Vec<String> {
        let known: BTreeMap<&str, &str> = self
            .lines
            .iter()
            .map(|line| (file_of(line), line.as_str()))
            .collect();
        let mut out = Vec::new();
        for (file, checksum) in found {
            let line = line(file, checksum);
            match known.get(file.as_str()) {
                Some(known) if **known == line => {}
                Some(_) => out.push(format!("differs: {line}")),
                None => out.push(format!("new: {line}")),
            }
        }
        for (file, line) in &known {
            let is_checked = names.is_empty() || is_of(file, names);
            if is_checked && !found.contains_key(*file) {
                out.push(format!("missing: {line}"));
            }
        }
        out
    }

    /// The text of the file with the outputs of these scenarios, or of all if `names` is empty,
    /// replaced by the found ones.
    #[must_use]
    pub fn updated(&self, found: &Outputs, names: &[String]) -> String {
        let others = self
            .lines
            .iter()
            .filter(|line| !names.is_empty() && !is_of(file_of(line), names));
        let mut all: Vec<String> = others.cloned().collect();
        all.extend(found.iter().map(|(file, checksum)| line(file, checksum)));
        all.sort();
        all.dedup();
        all.join("\n") + "\n"
    }
}

fn line(file: &str, checksum: &Checksum) -> String {
    format!("{file} {:08x} {}", checksum.crc, checksum.size)
}

/// The output of a line; its name may contain spaces.
fn file_of(line: &str) -> &str {
    line.rsplitn(3, ' ').nth(2).unwrap_or(line)
}

/// Whether an output belongs to one of these scenarios, whose names may contain a directory.
fn is_of(file: &str, names: &[String]) -> bool {
    let scenario = file.rsplit_once('/').map_or("", |(name, _)| name);
    names.iter().any(|name| name == scenario)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn outputs(all: &[(&str, &[u8])]) -> Outputs {
        all.iter()
            .map(|(name, bytes)| ((*name).to_owned(), Checksum::of(bytes)))
            .collect()
    }

    #[test]
    fn differences_lists_changed_new_and_missing_outputs() {
        let old = outputs(&[
            ("a/x y.etl", b"1"),
            ("a/gone.etl", b"2"),
            ("rules/b/z.etl", b"3"),
        ]);
        let lock = CorpusLock::parse(&CorpusLock::default().updated(&old, &[]));
        assert!(lock.differences(&old, &[]).is_empty());
        let new = outputs(&[("a/x y.etl", b"22"), ("a/new.etl", b"")]);
        let found = lock.differences(&new, &["a".to_owned()]);
        let kinds: Vec<&str> = found
            .iter()
            .filter_map(|l| l.rsplitn(3, ' ').nth(2))
            .collect();
        assert_eq!(
            kinds,
            [
                "new: a/new.etl",
                "differs: a/x y.etl",
                "missing: a/gone.etl"
            ]
        );
        assert_eq!(lock.differences(&new, &[]).len(), 4);
    }

    #[test]
    fn updated_keeps_other_scenarios() {
        let old = outputs(&[("a/x.etl", b"1"), ("rules/b/z.etl", b"3")]);
        let lock = CorpusLock::parse(&CorpusLock::default().updated(&old, &[]));
        let text = lock.updated(&outputs(&[("a/new.etl", b"")]), &["a".to_owned()]);
        let files: Vec<&str> = text.lines().map(file_of).collect();
        assert_eq!(files, ["a/new.etl", "rules/b/z.etl"]);
    }

    #[test]
    fn of_reader_is_of_the_bytes() {
        let bytes = vec![7u8; 1 << 19];
        assert_eq!(
            Checksum::of_reader(bytes.as_slice()).unwrap(),
            Checksum::of(&bytes)
        );
    }
}
