//! `corpus.lock`: CRC-32 and size of every output of a corpus, one a line.

use std::collections::BTreeMap;
use std::fs;
use std::io::{self, Read};
use std::path::{Path, PathBuf};

use crate::error::Failure;
use crate::sink;

/// The file's name, in the directory of the scripts.
const NAME: &str = "corpus.lock";

/// Outputs by `scenario/file`.
pub(super) type Outputs = BTreeMap<String, Sum>;

/// What the file says of an output.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Sum {
    crc: u32,
    size: u64,
}

impl Sum {
    pub fn of(bytes: &[u8]) -> Self {
        Sum { crc: crc32fast::hash(bytes), size: bytes.len() as u64 }
    }

    /// Of a file, which may be larger than memory.
    pub fn of_file(path: &Path) -> io::Result<Self> {
        let mut file = fs::File::open(path)?;
        let mut hasher = crc32fast::Hasher::new();
        let mut size = 0u64;
        let mut chunk = vec![0; 1 << 18];
        loop {
            let len = file.read(&mut chunk)?;
            let Some(read) = chunk.get(..len).filter(|read| !read.is_empty()) else { break };
            hasher.update(read);
            size = size.saturating_add(read.len() as u64);
        }
        Ok(Sum { crc: hasher.finalize(), size })
    }
}

fn line(file: &str, sum: &Sum) -> String {
    format!("{file} {:08x} {}", sum.crc, sum.size)
}

/// The output that a line is about; its name may have spaces in it.
fn file_of(line: &str) -> &str {
    line.rsplitn(3, ' ').nth(2).unwrap_or(line)
}

/// The scenario of an output: its name may have a directory in it, that of the file has none.
fn scenario_of(file: &str) -> &str {
    file.rsplit_once('/').map_or("", |(name, _)| name)
}

/// The file of a corpus, if it has one.
#[derive(Debug)]
pub(super) struct Lock {
    path: PathBuf,
    text: Option<String>,
}

impl Lock {
    pub fn of(corpus: &Path) -> Result<Self, Failure> {
        let path = corpus.join(NAME);
        let text = match fs::read_to_string(&path) {
            Ok(text) => Some(text),
            Err(error) if error.kind() == io::ErrorKind::NotFound => None,
            Err(error) => {
                return Err(Failure::new(path.display().to_string(), error.to_string())
                    .hint("`etlkit corpus check --update` writes it anew where it is a file"));
            }
        };
        Ok(Lock { path, text })
    }

    /// Whether there is such a file.
    pub fn is_there(&self) -> bool {
        self.text.is_some()
    }

    /// That there is none, where one is needed.
    pub fn missing(&self) -> Failure {
        Failure::new(self.path.display().to_string(), "there is no such file")
            .hint("`etlkit corpus check --update` writes it")
    }

    fn lines(&self) -> impl Iterator<Item = &str> {
        self.text.as_deref().unwrap_or_default().lines()
    }

    /// Where outputs are not what the file says, of these scenarios or, if none is named, of all: a line for each.
    pub fn differences(&self, found: &Outputs, names: &[String]) -> Vec<String> {
        let known: BTreeMap<&str, &str> = self.lines().map(|l| (file_of(l), l)).collect();
        let mut said = Vec::new();
        for (file, sum) in found {
            let line = line(file, sum);
            match known.get(file.as_str()) {
                Some(known) if **known == line => {}
                Some(_) => said.push(format!("differs: {line}")),
                None => said.push(format!("new: {line}")),
            }
        }
        let mine = |file: &str| names.is_empty() || names.iter().any(|n| n == scenario_of(file));
        let gone = known.iter().filter(|(file, _)| mine(file) && !found.contains_key(**file));
        said.extend(gone.map(|(_, line)| format!("missing: {line}")));
        said
    }

    /// Writes these outputs in the place of those of the same scenarios or, if none is named, of all.
    pub fn update(&self, found: &Outputs, names: &[String]) -> Result<(), Failure> {
        let others = |line: &&str| {
            let of = scenario_of(file_of(line));
            !names.is_empty() && names.iter().all(|n| n != of)
        };
        let mut all: Vec<String> = self.lines().filter(others).map(str::to_owned).collect();
        all.extend(found.iter().map(|(file, sum)| line(file, sum)));
        all.sort();
        all.dedup();
        sink::replace(&self.path, (all.join("\n") + "\n").as_bytes())
            .map_err(|e| Failure::new(self.path.display().to_string(), e.to_string()))
    }
}
