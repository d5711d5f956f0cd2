//! The file `corpus.lock` of a directory.

use std::fs;
use std::io;
use std::path::PathBuf;

use etl_synth::corpus;
use etl_synth::corpus_lock::{CorpusLock, Outputs};

use super::scripts::Corpus;
use crate::error::Failure;
use crate::sink;

/// The file of a corpus, if it has one.
#[derive(Debug)]
pub(super) struct Lock {
    path: PathBuf,
    lock: Option<CorpusLock>,
}

impl Lock {
    pub fn of(corpus: &Corpus) -> Result<Self, Failure> {
        let directory = match corpus {
            Corpus::Directory(directory) => directory,
            Corpus::BuiltIn => {
                let path = PathBuf::from(CorpusLock::FILE_NAME);
                return Ok(Lock {
                    path,
                    lock: Some(corpus::lock()),
                });
            }
        };
        let path = directory.join(CorpusLock::FILE_NAME);
        let lock = match fs::read_to_string(&path) {
            Ok(text) => Some(CorpusLock::parse(&text)),
            Err(error) if error.kind() == io::ErrorKind::NotFound => None,
            Err(error) => {
                return Err(Failure::new(path.display().to_string(), error.to_string())
                    .hint("`etlkit corpus check --update` writes it again if it is a file"));
            }
        };
        Ok(Lock { path, lock })
    }

    /// Whether the file exists.
    pub fn exists(&self) -> bool {
        self.lock.is_some()
    }

    /// The error of a missing file.
    pub fn missing(&self) -> Failure {
        Failure::new(self.path.display().to_string(), "file not found")
            .hint("`etlkit corpus check --update` creates it")
    }

    /// The outputs that differ from the expected ones, a line for each.
    pub fn differences(&self, outputs: &Outputs, names: &[String]) -> Vec<String> {
        match &self.lock {
            Some(lock) => lock.differences(outputs, names),
            None => Vec::new(),
        }
    }

    /// Writes the outputs of these scenarios, or of all if none is named.
    pub fn update(&self, outputs: &Outputs, names: &[String]) -> Result<(), Failure> {
        let lock = self.lock.clone().unwrap_or_default();
        let text = lock.updated(outputs, names);
        sink::replace(&self.path, text.as_bytes())
    }
}
