//! `etlkit corpus`: the scenarios of a directory and their outputs.

mod lock;

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use clap::Subcommand;
use etl_synth::corpus_lock::{Checksum, Outputs};
use etl_synth::truth::JsonlWriter;
use etl_synth::{MemoryFileSystem, Simulation};

use self::lock::Lock;
use super::synth;
use crate::Outcome;
use crate::error::Failure;
use crate::output;

/// Arguments of `etlkit corpus`.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
The file corpus.lock in the directory of the scripts lists CRC-32 and size of every output.
`corpus check` builds in memory and compares with it; `corpus build` warns if its outputs differ.

Exit codes: 0 success, 1 `corpus check` found differences, 2 error (no scenario, an invalid
script, no corpus.lock).

Examples:
  etlkit corpus list
  etlkit corpus build -o out recipe circular
  etlkit corpus check
  etlkit corpus check --update")]
pub(crate) struct Args {
    #[command(subcommand)]
    job: Job,
    /// Directory of the scenario scripts
    #[arg(long, value_name = "DIR", default_value = "corpus", global = true)]
    corpus: PathBuf,
}

#[derive(Debug, Subcommand)]
enum Job {
    /// List the scenarios, and what each covers
    #[command(after_help = "\
Examples:
  etlkit corpus list
  etlkit corpus list --corpus my-scenarios")]
    List,
    /// Write the traces of the scenarios, each to its own directory
    #[command(after_help = "\
Examples:
  etlkit corpus build -o out
  etlkit corpus build -o out recipe circular --force")]
    Build {
        /// Write the outputs to DIR
        #[arg(short, long, value_name = "DIR")]
        output: PathBuf,
        /// Replace existing files
        #[arg(long)]
        force: bool,
        /// Names of scenarios; all if none is given
        names: Vec<String>,
    },
    /// Compare the outputs of the scenarios with corpus.lock
    #[command(after_help = "\
Examples:
  etlkit corpus check
  etlkit corpus check recipe
  etlkit corpus check --update")]
    Check {
        /// Update corpus.lock
        #[arg(long)]
        update: bool,
        /// Names of scenarios; all if none is given
        names: Vec<String>,
    },
}

pub(crate) fn run(args: &Args) -> Result<Outcome, Failure> {
    match &args.job {
        Job::List => list(&args.corpus),
        Job::Build { output, force, names } => build(&args.corpus, output, *force, names),
        Job::Check { update, names } => check(&args.corpus, *update, names),
    }
}

/// The directory of included files, which are no scenarios.
const PARTS: &str = "parts";

/// The hint for a wrong directory.
const CORPUS_HINT: &str =
    "--corpus DIR names the directory of the scenario scripts (.kdl); the default is `corpus`";

/// The scripts in a directory and its subdirectories, by name (`recipe`, `rules/file.damaged`), in
/// order; only those in `names`, if any. Returns at least one.
fn scripts(corpus: &Path, names: &[String]) -> Result<Vec<(String, PathBuf)>, Failure> {
    let at = |what: String| Failure::new(corpus.display().to_string(), what).hint(CORPUS_HINT);
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
                found.push((format!("{prefix}{}", stem.to_string_lossy()), path));
            } else if entry.file_type().map_err(failure)?.is_dir() && entry.file_name() != PARTS {
                let name = entry.file_name();
                directories.push((format!("{prefix}{}/", name.to_string_lossy()), path));
            }
        }
    }
    if found.is_empty() {
        return Err(at("contains no scenario scripts (.kdl)".to_owned()));
    }
    found.sort();
    if let Some(unknown) = names.iter().find(|n| found.iter().all(|(name, _)| name != *n)) {
        return Err(Failure::new(unknown.as_str(), "unknown scenario")
            .hint("`etlkit corpus list` lists them"));
    }
    found.retain(|(name, _)| names.is_empty() || names.contains(name));
    Ok(found)
}

fn list(corpus: &Path) -> Result<Outcome, Failure> {
    let mut out = String::new();
    for (name, path) in scripts(corpus, &[])? {
        let scenario = synth::parse(&path, &[], None)?;
        out.push_str(&format!("{name:32} {}\n", scenario.about));
        out.push_str(&format!("{:32}   {}\n", "", scenario.covers().join(", ")));
    }
    output::print(&out)?;
    Ok(Outcome::Success)
}

fn build(corpus: &Path, out: &Path, force: bool, names: &[String]) -> Result<Outcome, Failure> {
    let scripts = scripts(corpus, names)?;
    // An unreadable lock is reported before anything is written.
    let lock = Lock::of(corpus)?;
    let mut made = Outputs::new();
    for (name, path) in scripts {
        let scenario = synth::parse(&path, &[], None)?;
        let directory = out.join(&name);
        let store = synth::synthesize(&scenario, &name, &directory, true)?;
        let mut text = String::new();
        for (file, size) in store.finish(force)? {
            let path = directory.join(&file);
            if lock.exists() {
                let checksum = fs::File::open(&path)
                    .and_then(Checksum::of_reader)
                    .map_err(|e| Failure::io(path.display(), &e))?;
                made.insert(format!("{name}/{file}"), checksum);
            }
            text.push_str(&format!("{}  {}\n", path.display(), output::size(size)));
        }
        output::print(&text)?;
    }
    if lock.exists() {
        warn(&lock.differences(&made, names));
    }
    Ok(Outcome::Success)
}

/// Warns that outputs differ from corpus.lock.
fn warn(differences: &[String]) {
    for difference in differences {
        stderr_line!("warning: not as in corpus.lock: {difference}");
    }
    if !differences.is_empty() {
        stderr_line!(
            "hint: `etlkit corpus check` fails until `etlkit corpus check --update` updates the file"
        );
    }
}

/// CRC-32 and size of every output of a scenario.
fn outputs(name: &str, path: &Path) -> Result<Outputs, Failure> {
    let scenario = synth::parse(path, &[], None)?;
    let (mut files, mut truth) = (MemoryFileSystem::default(), JsonlWriter::new(Vec::new()));
    Simulation::new(&scenario)
        .observer(&mut truth)
        .run(&mut files)
        .map_err(|e| Failure::new(name, e.to_string()))?;
    let mut files = files.into_files();
    files.push(("truth.jsonl".to_owned(), truth.into_inner()));
    let checksum =
        |(file, bytes): (String, Vec<u8>)| (format!("{name}/{file}"), Checksum::of(&bytes));
    Ok(files.into_iter().map(checksum).collect())
}

fn check(corpus: &Path, update: bool, names: &[String]) -> Result<Outcome, Failure> {
    let scripts = scripts(corpus, names)?;
    let lock = Lock::of(corpus)?;
    if !update && !lock.exists() {
        return Err(lock.missing());
    }
    let mut found = Outputs::new();
    for (name, path) in scripts {
        found.extend(outputs(&name, &path)?);
    }
    if update {
        lock.update(&found, names)?;
        return Ok(Outcome::Success);
    }
    let mut text = String::new();
    for difference in lock.differences(&found, names) {
        text.push_str(&format!("{difference}\n"));
    }
    let equal = text.is_empty();
    if equal {
        text = format!("{} outputs are as in corpus.lock\n", found.len());
    }
    output::print(&text)?;
    Ok(if equal { Outcome::Success } else { Outcome::Findings })
}
