//! `etlkit synth`: simulates a scenario and writes its traces.

mod directory;
mod script_errors;
mod traces;

use std::cell::RefCell;
use std::io::{self, Write};
use std::path::{Path, PathBuf};

use etl_format::ErrorKind;
use etl_synth::corpus::TEMPLATES;
use etl_synth::model::Scenario;
use etl_synth::{MemoryFileSystem, Script, Simulation, read_capture, read_script, truth};

use crate::Outcome;
use crate::error::Failure;
use crate::filter::number;
use crate::input;
use crate::output;
use crate::threads;

use directory::{Directory, write_failure};

pub(crate) use directory::WrittenFile;
use script_errors::explain;
use traces::Traces;

/// The file that lists every event and whether it was recorded.
const TRUTH: &str = "truth.jsonl";

/// Arguments of `etlkit synth`.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
docs/scenario.md describes the scenario language; corpus/ contains examples.

Exit codes: 0 success, 2 error; with --verify the exit codes of etlverify.

Examples:
  etlkit synth corpus/recipe.kdl -o out
  etlkit synth corpus/recipe.kdl -o out --force --verify
  etlkit synth --seed 7 --set processes=40 many.kdl -o out --force
  etlkit synth --count 20 mine.kdl -o variants
  etlkit synth --template attach > mine.kdl
  etlkit synth --check mine.kdl other.kdl")]
pub(crate) struct Args {
    /// Scenario script; `-` is standard input. --check reads several
    #[arg(value_name = "SCRIPT", required_unless_present = "template")]
    scripts: Vec<PathBuf>,
    /// Write the traces to DIR, which is created if necessary
    #[arg(short, long, value_name = "DIR", value_parser = input::directory(),
          required_unless_present_any = ["check", "timeline", "template"])]
    output: Option<PathBuf>,
    /// Print a commented script to start from, and write nothing
    #[arg(long, value_name = "NAME", exclusive = true,
          value_parser = clap::builder::PossibleValuesParser::new(TEMPLATES.map(|template| template.name)))]
    template: Option<String>,
    /// Make N variants, with seeds from 1 (or from the value of --seed), each in a directory of DIR
    #[arg(long, value_name = "N", conflicts_with_all = ["check", "timeline", "verify"],
          value_parser = clap::value_parser!(u32).range(1..=100_000))]
    count: Option<u32>,
    /// Make so many variants at the same time; the output does not change [default: one per
    /// processor]
    #[arg(long, value_name = "N", requires = "count",
          value_parser = clap::value_parser!(u16).range(1..=256))]
    jobs: Option<u16>,
    /// Replace existing files
    #[arg(long)]
    force: bool,
    /// Seed of the random numbers, instead of the seed in the script
    #[arg(long, value_name = "N", value_parser = number::<u64>)]
    seed: Option<u64>,
    /// Set a parameter of the script; may be repeated
    #[arg(long, value_name = "NAME=VALUE", value_parser = setting)]
    set: Vec<Setting>,
    /// Check the traces with etlverify and print its report; the inputs of a merge, or the parts of
    /// a session, are checked as one recording
    #[arg(long, conflicts_with_all = ["check", "timeline"])]
    verify: bool,
    /// Only check the scripts for errors
    #[arg(long, conflicts_with_all = ["timeline", "output"])]
    check: bool,
    /// Print the simulated actions with their times, and write nothing
    #[arg(long, conflicts_with = "output")]
    timeline: bool,
    /// Do not write truth.jsonl, the list of every event and whether it was recorded
    #[arg(long)]
    no_truth: bool,
}

/// A value of `--set`.
#[derive(Clone, Debug)]
pub(super) struct Setting {
    name: String,
    value: String,
}

fn setting(text: &str) -> Result<Setting, String> {
    let (name, value) = text.split_once('=').ok_or("expected NAME=VALUE")?;
    Ok(Setting {
        name: name.to_owned(),
        value: value.to_owned(),
    })
}

pub(crate) fn run(args: &Args) -> Result<Outcome, Failure> {
    if args.check {
        return check(args);
    }
    let script = match args.scripts.as_slice() {
        [] => return print_template(args.template.as_deref().unwrap_or_default()),
        [script] => script,
        [_, second, ..] => {
            return Err(
                Failure::new(input::display(second), "one script is simulated at a time")
                    .hint("call etlkit synth for each; --check reads several"),
            );
        }
    };
    let name = input::display(script);
    let ParsedScript { scenario, inputs } = parse(script, &args.set, args.seed)?;
    if args.timeline {
        let mut timeline = truth::Timeline::new(Vec::new());
        Simulation::new(&scenario)
            .observer(&mut timeline)
            .run(&mut MemoryFileSystem::default())
            .map_err(|error| simulation_failure(&name, &error))?;
        output::print(&String::from_utf8_lossy(&timeline.into_inner()))?;
        return Ok(Outcome::Success);
    }
    let Some(out) = &args.output else {
        return Ok(Outcome::Success);
    };
    if let Some(count) = args.count {
        return variants(args, &scenario, &name, out, count, &inputs);
    }
    let store = synthesize(&scenario, &name, out, args.truth())?;
    let mut recordings: Vec<Vec<PathBuf>> = Vec::new();
    for names in store.recordings() {
        recordings.push(names.iter().map(|name| out.join(name)).collect());
    }
    let files = store.finish(args.force, &inputs)?;
    output::print(&file_list(out, &files))?;
    if recordings.is_empty() {
        stderr_line!("note: {name}: no session of the script writes a trace");
    }
    if !args.verify || recordings.is_empty() {
        return Ok(Outcome::Success);
    }
    output::print("\n")?;
    super::verify::report_on(&recordings)
}

/// Reads the scripts and prints the errors of each.
fn check(args: &Args) -> Result<Outcome, Failure> {
    let mut last_failure: Option<Failure> = None;
    for script in &args.scripts {
        match parse(script, &args.set, args.seed) {
            Ok(_) => output::print(&format!("{}: no errors\n", input::display(script)))?,
            Err(failure) => {
                if let Some(earlier) = last_failure.replace(failure) {
                    earlier.print();
                }
            }
        }
    }
    match last_failure {
        Some(failure) => Err(failure),
        None => Ok(Outcome::Success),
    }
}

fn print_template(name: &str) -> Result<Outcome, Failure> {
    if let Some(template) = TEMPLATES.iter().find(|template| template.name == name) {
        output::print(template.text)?;
    }
    Ok(Outcome::Success)
}

/// The files of a directory with their sizes, a line for each.
fn file_list(directory: &Path, files: &[WrittenFile]) -> String {
    let mut text = String::new();
    for file in files {
        let path = directory.join(&file.name);
        let size = output::size(file.size);
        text.push_str(&format!("{}  {size}\n", path.display()));
    }
    text
}

impl Args {
    fn truth(&self) -> WriteTruth {
        if self.no_truth {
            WriteTruth::No
        } else {
            WriteTruth::Yes
        }
    }
}

/// Makes variants of a scenario, several at the same time: each seed has a directory of its own.
fn variants(
    args: &Args,
    scenario: &Scenario,
    name: &str,
    out: &Path,
    count: u32,
    inputs: &[PathBuf],
) -> Result<Outcome, Failure> {
    let first = args.seed.unwrap_or(1);
    let seeds: Option<Vec<u64>> = (0..u64::from(count))
        .map(|n| first.checked_add(n))
        .collect();
    let seeds = seeds.ok_or_else(|| {
        Failure::new(name, format!("there are no {count} seeds from {first} on"))
            .hint("choose a lower --seed or --count")
    })?;
    let jobs = match args.jobs {
        Some(jobs) => usize::from(jobs),
        None => threads::processors(),
    };
    let lists = threads::map(&seeds, jobs.min(seeds.len()), |seed| {
        let directory = out.join(seed.to_string());
        let scenario = scenario.clone().with_seed(*seed);
        let store = synthesize(&scenario, name, &directory, args.truth())?;
        let files = store.finish(args.force, inputs)?;
        Ok(file_list(&directory, &files))
    });
    let text: Result<String, Failure> = lists.into_iter().collect();
    output::print(&text?)?;
    Ok(Outcome::Success)
}

/// Reads the text of a script that is in no file, and prints its errors.
pub(super) fn parse_text(
    name: &str,
    text: &str,
    include: etl_synth::Include<'_>,
) -> Result<Scenario, Failure> {
    Script::new(name, text)
        .include(include)
        .parse()
        .map_err(|errors| explain(name, &errors))
}

/// A scenario, and the files that it was read from.
pub(super) struct ParsedScript {
    pub scenario: Scenario,
    /// The script and the files that it includes.
    pub inputs: Vec<PathBuf>,
}

/// Reads a script, and prints its errors.
pub(super) fn parse(
    script: &Path,
    set: &[Setting],
    seed: Option<u64>,
) -> Result<ParsedScript, Failure> {
    let text = read(script)?;
    let name = input::display(script);
    let files = ScriptFiles {
        directory: script.parent().unwrap_or(Path::new("")),
        read: RefCell::new(vec![script.to_owned()]),
    };
    let include = |name: &str| read_script(&files.path(name));
    let capture = |name: &str| read_capture(&files.path(name));
    let parameters = set.iter().cloned();
    let mut script = Script::new(&name, &text)
        .include(&include)
        .files(&capture)
        .parameters(parameters.map(|setting| (setting.name, setting.value)));
    if let Some(seed) = seed {
        script = script.seed(seed);
    }
    let scenario = script.parse().map_err(|errors| explain(&name, &errors))?;
    Ok(ParsedScript {
        scenario,
        inputs: files.read.take(),
    })
}

/// The files that a script reads.
struct ScriptFiles<'a> {
    /// The directory of the script.
    directory: &'a Path,
    read: RefCell<Vec<PathBuf>>,
}

impl ScriptFiles<'_> {
    /// The path of a file that the script names; remembers it.
    fn path(&self, name: &str) -> PathBuf {
        let path = self.directory.join(name);
        self.read.borrow_mut().push(path.clone());
        path
    }
}

/// The failure of a simulation. An impossible action is shown at its position in the script.
fn simulation_failure(name: &str, error: &etl_synth::Error) -> Failure {
    if let Some(errors) = error.script_errors() {
        return explain(name, &errors);
    }
    let unwritten = match error {
        etl_synth::Error::Io(error) => write_failure(error),
        etl_synth::Error::Trace { source, .. } => match &source.kind {
            ErrorKind::Io(error) => write_failure(error),
            _ => None,
        },
        _ => None,
    };
    unwritten.unwrap_or_else(|| Failure::new(name, error.to_string()))
}

/// Whether truth.jsonl is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum WriteTruth {
    Yes,
    No,
}

/// Simulates a scenario; its files are in a temporary directory until [`Directory::finish`].
pub(super) fn synthesize(
    scenario: &Scenario,
    name: &str,
    out: &Path,
    truth: WriteTruth,
) -> Result<Directory, Failure> {
    let mut store = Directory::new(out)?;
    let simulated = match truth {
        WriteTruth::Yes => simulate_with_truth(scenario, &mut store),
        WriteTruth::No => simulate(scenario, &mut (), &mut store),
    };
    simulated.map_err(|error| simulation_failure(name, &error))?;
    Ok(store)
}

fn simulate_with_truth(scenario: &Scenario, store: &mut Directory) -> etl_synth::Result<()> {
    let file = io::BufWriter::with_capacity(1 << 18, store.file(TRUTH)?);
    let mut lines = truth::JsonlWriter::new(file);
    simulate(scenario, &mut lines, store)?;
    lines.into_inner().flush()?;
    Ok(())
}

/// Runs a simulation, and notes the names of its traces.
fn simulate(
    scenario: &Scenario,
    observer: &mut dyn truth::Observer,
    store: &mut Directory,
) -> etl_synth::Result<()> {
    let mut traces = Traces::new(observer);
    Simulation::new(scenario).observer(&mut traces).run(store)?;
    store.set_recordings(traces.into_recordings());
    Ok(())
}

fn read(path: &Path) -> Result<String, Failure> {
    const HINT: &str = "name a scenario script, for example corpus/recipe.kdl";
    const KIND: &str = "a scenario script";
    let text = input::read_text(path, KIND).map_err(|failure| failure.hint(HINT))?;
    // A file of another format is not reported as a script with errors.
    match input::what(text.as_bytes()) {
        Some(what) if what != "text" => Err(Failure::new(
            input::display(path),
            format!("this is {what}, not {KIND}"),
        )
        .hint(HINT)),
        _ => Ok(text),
    }
}
