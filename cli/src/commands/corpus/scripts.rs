//! The scenario scripts: those of a directory, or those in the program.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use etl_synth::corpus;
use etl_synth::model::Scenario;

use super::super::synth;
use crate::error::Failure;

/// The directory of the scripts where none is named.
const DEFAULT: &str = "corpus";
/// The directory of included files, which are no scenarios.
const PARTS: &str = "parts";

/// The hint for a wrong directory.
pub(super) const HINT: &str = "--corpus DIR names a directory of scenario scripts (.kdl)";

/// Where the scripts are.
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

    /// The scripts by name, in order; only those in `names`, if any. Returns at least one.
    pub fn scripts(&self, names: &[String]) -> Result<Vec<Script>, Failure> {
        let mut found: Vec<Script> = match self {
            Corpus::Directory(directory) => in_directory(directory)?,
            Corpus::BuiltIn => corpus::scripts()
                .map(|script| Script {
                    name: script.name.to_owned(),
                    source: Source::Text(script.text),
                })
                .collect(),
        };
        found.sort_by(|a, b| a.name.cmp(&b.name));
        if let Some(unknown) = names.iter().find(|n| found.iter().all(|s| s.name != **n)) {
            return Err(Failure::new(unknown.as_str(), "unknown scenario")
                .hint("`etlkit corpus list` lists them"));
        }
        found.retain(|script| names.is_empty() || names.contains(&script.name));
        Ok(found)
    }
}

/// The scripts in a directory and its subdirectories: at least one.
fn in_directory(corpus: &Path) -> Result<Vec<Script>, Failure> {
    let at = |what: String| Failure::new(corpus.display().to_string(), what).hint(HINT);
    let failure = |e: io::Error| match e.kind() {
        io::ErrorKind::NotFound => at("directory not found".to_owned()),
        io::ErrorKind::NotADirectory => at("is not a directory".to_owned()),
        _ => at(e.to_string()),
    };
    let mut found = Vec::new();
    let mut directories = vec![(String::new(), corpus.to_owned())];
    while let Some((prefix, directory)) = directories.pop() {
        for entry in fs::read_dir(&directory).map_err(failure)? {
            let entry = entry.map_err(failure)?;
            let path = entry.path();
            if path.extension().is_some_and(|e| e == "kdl")
                && let Some(stem) = path.file_stem()
            {
                let name = format!("{prefix}{}", stem.to_string_lossy());
                found.push(Script {
                    name,
                    source: Source::File(path),
                });
            } else if entry.file_type().map_err(failure)?.is_dir() && entry.file_name() != PARTS {
                let name = entry.file_name();
                directories.push((format!("{prefix}{}/", name.to_string_lossy()), path));
            }
        }
    }
    if found.is_empty() {
        return Err(at("contains no scenario scripts (.kdl)".to_owned()));
    }
    Ok(found)
}
