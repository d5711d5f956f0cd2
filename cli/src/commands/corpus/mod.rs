//! `etlkit corpus`: scenarios in a directory, and what comes out of them.

mod lock;

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use clap::Subcommand;
use etl_synth::truth::Lines;
use etl_synth::{Memory, simulate};

use self::lock::{Lock, Outputs, Sum};
use super::synth;
use crate::Outcome;
use crate::error::Failure;
use crate::escape::Printable;
use crate::output;

/// Arguments of `etlkit corpus`.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
corpus.lock, in the directory of the scripts, holds CRC-32 and size of every output. check builds in
memory and compares; build compares what it has written, and warns on standard error.

Exit codes: 0 fine, 1 check found what is not as corpus.lock says, 2 could not be done: no scenario,
a mistake in one, or for check no corpus.lock.

Examples:
  etlkit corpus list
  etlkit corpus build -o out recipe circular
  etlkit corpus check
  etlkit corpus check --update")]
pub(crate) struct Args {
    #[command(subcommand)]
    job: Job,
    /// Directory of the scripts
    #[arg(long, value_name = "DIR", default_value = "corpus", global = true)]
    corpus: PathBuf,
}

#[derive(Debug, Subcommand)]
enum Job {
    /// Say what the scenarios are, and what each covers
    #[command(after_help = "\
Examples:
  etlkit corpus list
  etlkit corpus list --corpus my-scenarios")]
    List,
    /// Make the traces of the scenarios, a directory for each
    #[command(after_help = "\
Examples:
  etlkit corpus build -o out
  etlkit corpus build -o out recipe circular --force")]
    Build {
        /// Directory for the outputs
        #[arg(short, long, value_name = "DIR")]
        out: PathBuf,
        /// Overwrite what is there
        #[arg(long)]
        force: bool,
        /// Scenarios by name; all without
        names: Vec<String>,
    },
    /// Compare what comes out with corpus.lock
    #[command(after_help = "\
Examples:
  etlkit corpus check
  etlkit corpus check recipe
  etlkit corpus check --update")]
    Check {
        /// Write what comes out into corpus.lock
        #[arg(long)]
        update: bool,
        /// Scenarios by name; all without
        names: Vec<String>,
    },
}

pub(crate) fn run(args: &Args) -> Result<Outcome, Failure> {
    match &args.job {
        Job::List => list(&args.corpus),
        Job::Build { out, force, names } => build(&args.corpus, out, *force, names),
        Job::Check { update, names } => check(&args.corpus, *update, names),
    }
}

/// The directory of what scripts include: no scenarios.
const PARTS: &str = "parts";

/// What to do about a directory that is not the right one.
const WHERE: &str =
    "--corpus names the directory of the scenario scripts (.kdl), `corpus` without it";

/// The scripts of a directory and of those in it, or those named, in the order of their names: `recipe`,
/// `rules/file.damaged`. There is one at least.
fn scripts(corpus: &Path, names: &[String]) -> Result<Vec<(String, PathBuf)>, Failure> {
    let at = |what: String| Failure::new(corpus.display().to_string(), what).hint(WHERE);
    let failure = |e: io::Error| match e.kind() {
        io::ErrorKind::NotFound => at("there is no such directory".to_owned()),
        io::ErrorKind::NotADirectory => at("this is no directory".to_owned()),
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
        return Err(at("this directory has no scenario scripts (.kdl) in it".to_owned()));
    }
    found.sort();
    if let Some(unknown) = names.iter().find(|n| found.iter().all(|(name, _)| name != *n)) {
        return Err(Failure::new(unknown.as_str(), "there is no such scenario")
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
    Ok(Outcome::Fine)
}

fn build(corpus: &Path, out: &Path, force: bool, names: &[String]) -> Result<Outcome, Failure> {
    let scripts = scripts(corpus, names)?;
    // Before there is anything that would not be compared.
    let lock = Lock::of(corpus)?;
    let mut made = Outputs::new();
    for (name, path) in scripts {
        let scenario = synth::parse(&path, &[], None)?;
        let directory = out.join(&name);
        let store = synth::synthesize(&scenario, &name, &directory, true)?;
        let mut said = String::new();
        for (file, size) in store.finish(force)? {
            let path = directory.join(&file);
            if lock.is_there() {
                let sum = Sum::of_file(&path)
                    .map_err(|e| Failure::new(path.display().to_string(), e.to_string()))?;
                made.insert(format!("{name}/{file}"), sum);
            }
            said.push_str(&format!("{}  {}\n", path.display(), output::size(size)));
        }
        output::print(&said)?;
    }
    if lock.is_there() {
        warn(&lock.differences(&made, names));
    }
    Ok(Outcome::Fine)
}

/// Says where what was built is not what was built before. It is built all the same: scripts are changed in order to
/// see what comes of it.
fn warn(differences: &[String]) {
    for difference in differences {
        tell!("warning: not as corpus.lock says: {}", Printable(difference));
    }
    if !differences.is_empty() {
        tell!(
            "hint: `etlkit corpus check --update` takes it over; `etlkit corpus check` fails until then"
        );
    }
}

/// CRC-32 and size of every output of a scenario.
fn outputs(name: &str, path: &Path) -> Result<Outputs, Failure> {
    let scenario = synth::parse(path, &[], None)?;
    let (mut files, mut truth) = (Memory::default(), Lines::new(Vec::new()));
    simulate(&scenario, &mut files, &mut truth).map_err(|e| Failure::new(name, e.to_string()))?;
    let mut files = files.into_files();
    files.push(("truth.jsonl".to_owned(), truth.into_inner()));
    let sum = |(file, bytes): (String, Vec<u8>)| (format!("{name}/{file}"), Sum::of(&bytes));
    Ok(files.into_iter().map(sum).collect())
}

fn check(corpus: &Path, update: bool, names: &[String]) -> Result<Outcome, Failure> {
    let scripts = scripts(corpus, names)?;
    let lock = Lock::of(corpus)?;
    if !update && !lock.is_there() {
        return Err(lock.missing());
    }
    let mut found = Outputs::new();
    for (name, path) in scripts {
        found.extend(outputs(&name, &path)?);
    }
    if update {
        lock.update(&found, names)?;
        return Ok(Outcome::Fine);
    }
    let mut said = String::new();
    for difference in lock.differences(&found, names) {
        said.push_str(&format!("{}\n", Printable(&difference)));
    }
    let fine = said.is_empty();
    if fine {
        said = format!("{} outputs are as corpus.lock says\n", found.len());
    }
    output::print(&said)?;
    Ok(if fine { Outcome::Fine } else { Outcome::Findings })
}
