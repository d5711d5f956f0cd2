//! `etlkit corpus`: the scenarios of a directory, or those in the program, and their outputs.

mod lock;
mod scripts;

use std::fs;
use std::path::{Path, PathBuf};

use clap::Subcommand;
use etl_synth::corpus_lock::{Checksum, CorpusLock, Outputs};
use etl_synth::model::{Expectation, Scenario};
use etl_synth::truth::JsonlWriter;
use etl_synth::{MemoryFileSystem, SimulatedFile, Simulation};
use serde_json::{Value, json};

use self::lock::Lock;
use self::scripts::{Corpus, Script};
use super::synth::{self, WriteTruth, WrittenFile};
use crate::Outcome;
use crate::error::Failure;
use crate::input;
use crate::output::{self, ReportFormat};

/// Arguments of `etlkit corpus`.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
The scenarios are the scripts in the directory `corpus`, if it contains any, and otherwise the
scripts in this program. The file corpus.lock in the directory lists CRC-32 and size of every output.
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
    /// Directory of the scenario scripts, instead of `corpus` or those in this program
    #[arg(long, value_name = "DIR", global = true)]
    corpus: Option<PathBuf>,
}

#[derive(Debug, Subcommand)]
enum Job {
    /// List the scenarios, and what each covers
    #[command(after_help = "\
Examples:
  etlkit corpus list
  etlkit corpus list --format json
  etlkit corpus list --corpus my-scenarios")]
    List {
        /// Output format; docs/scenario.md describes the JSON
        #[arg(long, value_enum, default_value_t)]
        format: ReportFormat,
    },
    /// Write the traces of the scenarios, each to its own directory
    #[command(after_help = "\
Examples:
  etlkit corpus build -o out
  etlkit corpus build -o out recipe circular --force")]
    Build {
        /// Write the outputs to DIR
        #[arg(short, long, value_name = "DIR", value_parser = input::directory())]
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
    let corpus = Corpus::new(args.corpus.as_deref());
    match &args.job {
        Job::List { format } => list(&corpus, *format),
        Job::Build {
            output,
            force,
            names,
        } => build(&corpus, output, *force, names),
        Job::Check { update, names } => check(&corpus, *update, names),
    }
}

fn list(corpus: &Corpus, format: ReportFormat) -> Result<Outcome, Failure> {
    let mut out = String::new();
    let mut items = Vec::new();
    for script in corpus.scripts(&[])? {
        let scenario = script.parse()?;
        let name = &script.name;
        let content = scenario.covers();
        out.push_str(&format!("{name:32} {}\n", scenario.about));
        out.push_str(&format!("{:32}   {}\n", "", content.join(", ")));
        items.push(json!({
            "name": name,
            "about": scenario.about,
            "seed": scenario.seed,
            "content": content,
            "expected": expected(&scenario),
        }));
    }
    match format {
        ReportFormat::Text => output::print(&out)?,
        ReportFormat::Json => output::print(&format!("{:#}\n", json!(items)))?,
    }
    Ok(Outcome::Success)
}

/// The findings that a verifier has to report about the traces of a scenario.
fn expected(scenario: &Scenario) -> Vec<Value> {
    scenario.expectations.iter().map(expectation).collect()
}

fn expectation(expectation: &Expectation) -> Value {
    json!({
        "files": expectation.files,
        "verdict": expectation.verdict.name(),
        "exit_code": expectation.verdict.exit_code(),
        "rules": expectation.rules,
    })
}

fn build(corpus: &Corpus, out: &Path, force: bool, names: &[String]) -> Result<Outcome, Failure> {
    let scripts = corpus.scripts(names)?;
    // An unreadable lock is reported before anything is written.
    let lock = Lock::of(corpus)?;
    let mut outputs = Outputs::new();
    for script in scripts {
        let scenario = script.parse()?;
        let name = &script.name;
        let directory = out.join(name);
        let store = synth::synthesize(&scenario, name, &directory, WriteTruth::Yes)?;
        let mut text = String::new();
        for WrittenFile { name: file, size } in store.finish(force, &[])? {
            let path = directory.join(&file);
            if lock.exists() {
                let checksum = fs::File::open(&path)
                    .and_then(Checksum::of_reader)
                    .map_err(|e| Failure::io(path.display(), &e))?;
                outputs.insert(format!("{name}/{file}"), checksum);
            }
            text.push_str(&format!("{}  {}\n", path.display(), output::size(size)));
        }
        output::print(&text)?;
    }
    if lock.exists() {
        warn(&lock.differences(&outputs, names));
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
fn outputs(script: &Script) -> Result<Outputs, Failure> {
    let scenario = script.parse()?;
    let name = &script.name;
    let mut files = MemoryFileSystem::default();
    let mut truth = JsonlWriter::new(Vec::new());
    Simulation::new(&scenario)
        .observer(&mut truth)
        .run(&mut files)
        .map_err(|e| Failure::new(name.as_str(), e.to_string()))?;
    let mut files = files.into_files();
    files.push(SimulatedFile {
        name: "truth.jsonl".to_owned(),
        bytes: truth.into_inner(),
    });
    let mut outputs = Outputs::new();
    for file in files {
        outputs.insert(format!("{name}/{}", file.name), Checksum::of(&file.bytes));
    }
    Ok(outputs)
}

fn check(corpus: &Corpus, update: bool, names: &[String]) -> Result<Outcome, Failure> {
    let scripts = corpus.scripts(names)?;
    if update && corpus.is_built_in() {
        let what = "the scenarios of this program do not change";
        return Err(Failure::new(CorpusLock::FILE_NAME, what).hint(scripts::HINT));
    }
    let lock = Lock::of(corpus)?;
    if !update && !lock.exists() {
        return Err(lock.missing());
    }
    let mut found = Outputs::new();
    for script in scripts {
        found.extend(outputs(&script)?);
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
    Ok(if equal {
        Outcome::Success
    } else {
        Outcome::Findings
    })
}
