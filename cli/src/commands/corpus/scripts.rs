//! The scenario scripts of a directory, or of the program.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use etl_synth::corpus;
use etl_synth::model::Scenario;

use super::super::synth;
use crate::error::Failure;

/// The directory of the scripts if none is named.
const DEFAULT: &str = "corpus";
/// The directory of included files, which are not scenarios.
const PARTS: &str = "parts";

/// The hint for a wrong directory.
pub(super) const HINT: &str = "--corpus DIR names a directory of scenario scripts (.kdl)";

/// The place of the scripts.
#[derive(Debug)]
pub(super) enum Corpus {
    /// In the program.
    BuiltIn,
    /// In a directory.
    Directory(PathBuf),
}

/// A scenario script.
#[derive(Debug)]
pub(super) struct Script {
    /// Its name: `recipe`, `rules/file.damaged`.
    pub name: String,
    source: Source,
}

#[derive(Debug)]
enum Source {
    Text(&'static str),
    File(PathBuf),
}

impl Script {
    /// Reads the script, and prints its errors.
    pub fn parse(&self) -> Result<Scenario, Failure> {
        match &self.source {
            Source::File(path) => Ok(synth::parse(path, &[], None)?.scenario),
            Source::Text(text) => synth::parse_text(&self.name, text, &corpus::include),
        }
    }
}

impl Corpus {
    /// The named directory; else the directory `corpus`, if it contains scripts; else the scripts
    /// in the program.
    pub fn new(directory: Option<&Path>) -> Self {
        let default = Path::new(DEFAULT);
        match directory {
            Some(directory) => Corpus::Directory(directory.to_owned()),
            None if in_directory(default).is_ok() => Corpus::Directory(default.to_owned()),
            None => Corpus::BuiltIn,
        }
    }

    /// Whether the scripts are in the program.
    pub fn is_built_in(&self) -> bool {
        matches!(self, Corpus::BuiltIn)
    }

    /// The scripts in the order of their names; only the named ones, if any. Returns at least one.
    pub fn scripts(&self, names: &[String]) -> Result<Vec<Script>, Failure> {
        let mut scripts = match self {
            Corpus::Directory(directory) => in_directory(directory)?,
            Corpus::BuiltIn => built_in(),
        };
        scripts.sort_by(|a, b| a.name.cmp(&b.name));
        for name in names {
            if scripts.iter().all(|script| script.name != *name) {
                return Err(
                    Failure::new(name, "unknown scenario").hint("`etlkit corpus list` lists them")
                );
            }
        }
        scripts.retain(|script| names.is_empty() || names.contains(&script.name));
        Ok(scripts)
    }
}

/// The scripts in the program.
fn built_in() -> Vec<Script> {
    let scripts = corpus::scripts().map(|script| Script {
        name: script.name.to_owned(),
        source: Source::Text(script.text),
    });
    scripts.collect()
}

/// The scripts in a directory and its subdirectories: at least one.
fn in_directory(corpus: &Path) -> Result<Vec<Script>, Failure> {
    let mut scripts = Vec::new();
    let mut directories = vec![(String::new(), corpus.to_owned())];
    while let Some((prefix, directory)) = directories.pop() {
        let entries = fs::read_dir(&directory).map_err(|error| not_listed(corpus, &error))?;
        for entry in entries {
            let entry = entry.map_err(|error| not_listed(corpus, &error))?;
            let path = entry.path();
            let kind = entry.file_type();
            if path.extension().is_some_and(|e| e == "kdl")
                && let Some(stem) = path.file_stem()
            {
                let name = format!("{prefix}{}", stem.to_string_lossy());
                scripts.push(Script {
                    name,
                    source: Source::File(path),
                });
            } else if kind.map_err(|error| not_listed(corpus, &error))?.is_dir()
                && entry.file_name() != PARTS
            {
                let name = entry.file_name();
                directories.push((format!("{prefix}{}/", name.to_string_lossy()), path));
            }
        }
    }
    if scripts.is_empty() {
        return Err(wrong_directory(
            corpus,
            "contains no scenario scripts (.kdl)",
        ));
    }
    Ok(scripts)
}

fn not_listed(corpus: &Path, error: &io::Error) -> Failure {
    match error.kind() {
        io::ErrorKind::NotFound => wrong_directory(corpus, "directory not found"),
        io::ErrorKind::NotADirectory => wrong_directory(corpus, "is not a directory"),
        _ => wrong_directory(corpus, &error.to_string()),
    }
}

fn wrong_directory(corpus: &Path, message: &str) -> Failure {
    Failure::new(corpus.display().to_string(), message).hint(HINT)
}
