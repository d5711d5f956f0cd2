//! `etlkit corpus`: scenarios in a directory, and what comes out of them.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use clap::Subcommand;
use etl_synth::truth::Lines;
use etl_synth::{Memory, simulate};

use super::synth;
use crate::Outcome;
use crate::error::Failure;
use crate::output;
use crate::sink;

/// The file that holds checksum and size of every output.
const LOCK: &str = "corpus.lock";

/// Arguments of `etlkit corpus`.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
corpus.lock, in the directory of the scripts, holds CRC-32 and size of every output; check builds in
memory and compares.

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

/// The scripts of a directory and of those in it, or those named, in the order of their names: `recipe`,
/// `rules/file.damaged`.
fn scripts(corpus: &Path, names: &[String]) -> Result<Vec<(String, PathBuf)>, Failure> {
    let failure = |e: std::io::Error| {
        Failure::new(corpus.display().to_string(), e.to_string())
            .hint("--corpus names the directory of the scripts")
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
    for (name, path) in scripts(corpus, names)? {
        let scenario = synth::parse(&path, &[], None)?;
        let directory = out.join(&name);
        let store = synth::synthesize(&scenario, &name, &directory, true)?;
        let mut said = String::new();
        for (file, size) in store.finish(force)? {
            let path = directory.join(file);
            said.push_str(&format!("{}  {}\n", path.display(), output::size(size)));
        }
        output::print(&said)?;
    }
    Ok(Outcome::Fine)
}

/// CRC-32 and size of every output of a scenario.
fn outputs(name: &str, path: &Path) -> Result<BTreeMap<String, (u32, usize)>, Failure> {
    let scenario = synth::parse(path, &[], None)?;
    let (mut files, mut truth) = (Memory::default(), Lines::new(Vec::new()));
    simulate(&scenario, &mut files, &mut truth).map_err(|e| Failure::new(name, e.to_string()))?;
    let mut files = files.into_files();
    files.push(("truth.jsonl".to_owned(), truth.into_inner()));
    let sum = |(file, bytes): (String, Vec<u8>)| {
        (format!("{name}/{file}"), (crc32fast::hash(&bytes), bytes.len()))
    };
    Ok(files.into_iter().map(sum).collect())
}

fn check(corpus: &Path, update: bool, names: &[String]) -> Result<Outcome, Failure> {
    let lock = corpus.join(LOCK);
    let known = fs::read_to_string(&lock).unwrap_or_default();
    let mut found = BTreeMap::new();
    for (name, path) in scripts(corpus, names)? {
        found.extend(outputs(&name, &path)?);
    }
    let line = |(file, (crc, size)): (&String, &(u32, usize))| format!("{file} {crc:08x} {size}");
    let lines: Vec<String> = found.iter().map(line).collect();
    if update {
        // A scenario's name may have a directory in it, a file's has none.
        let of = |line: &str| line.rsplit_once('/').map_or("", |(name, _)| name).to_owned();
        let mut all: Vec<String> = known
            .lines()
            .filter(|l| !names.is_empty() && !names.contains(&of(l)))
            .map(str::to_owned)
            .chain(lines)
            .collect();
        all.sort();
        all.dedup();
        sink::replace(&lock, (all.join("\n") + "\n").as_bytes())
            .map_err(|e| Failure::new(lock.display().to_string(), e.to_string()))?;
        return Ok(Outcome::Fine);
    }
    let mut said = String::new();
    for line in &lines {
        if !known.lines().any(|l| l == line) {
            said.push_str(&format!("differs: {line}\n"));
        }
    }
    for line in known.lines() {
        let file = line.split(' ').next().unwrap_or_default();
        let of = file.rsplit_once('/').map_or("", |(name, _)| name);
        let mine = names.iter().any(|n| n == of) || names.is_empty();
        if mine && !found.contains_key(file) {
            said.push_str(&format!("missing: {line}\n"));
        }
    }
    let fine = said.is_empty();
    if fine {
        said = format!("{} outputs are as {LOCK} says\n", lines.len());
    }
    output::print(&said)?;
    Ok(if fine { Outcome::Fine } else { Outcome::Findings })
}
