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
use script_errors::explain;
use traces::Traces;

/// The file that lists every event and whether it was recorded.
const TRUTH: &str = "truth.jsonl";

/// Arguments of `etlkit synth`.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
docs/scenario.md describes the scenario language; corpus/ contains examples.

Exit codes: 0 success, 2 error; with --verify those of etlverify.

Examples:
  etlkit synth corpus/recipe.kdl -o out
  etlkit synth corpus/recipe.kdl -o out --force --verify
  etlkit synth --seed 7 --set processes=40 many.kdl -o out --force
  etlkit synth --count 20 mine.kdl -o variants
  etlkit synth --template attach > mine.kdl
  etlkit synth --check mine.kdl")]
pub(crate) struct Args {
    /// Scenario script; `-` is standard input
    #[arg(value_name = "SCRIPT", required_unless_present = "template")]
    script: Option<PathBuf>,
    /// Write the traces to DIR, which is created if necessary
    #[arg(short, long, value_name = "DIR", value_parser = input::directory(),
          required_unless_present_any = ["check", "timeline", "template"])]
    output: Option<PathBuf>,
    /// Print a commented script to start from, and write nothing
    #[arg(long, value_name = "NAME", exclusive = true,
          value_parser = clap::builder::PossibleValuesParser::new(TEMPLATES.map(|template| template.name)))]
    template: Option<String>,
    /// Make N variants, with seeds from 1 (or from that of --seed), each in a directory of DIR
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
    set: Vec<(String, String)>,
    /// Check the traces with etlverify and print its report: those of one recording together, which
    /// are the inputs of a merge, or the parts of a session
    #[arg(long, conflicts_with_all = ["check", "timeline"])]
    verify: bool,
    /// Only check the script for errors
    #[arg(long, conflicts_with_all = ["timeline", "output"])]
    check: bool,
    /// Print the simulated actions with their times, and write nothing
    #[arg(long, conflicts_with = "output")]
    timeline: bool,
    /// Do not write truth.jsonl, the list of every event and whether it was recorded
    #[arg(long)]
    no_truth: bool,
}

fn setting(text: &str) -> Result<(String, String), String> {
    let (name, value) = text.split_once('=').ok_or("expected NAME=VALUE")?;
    Ok((name.to_owned(), value.to_owned()))
}

pub(crate) fn run(args: &Args) -> Result<Outcome, Failure> {
    let Some(script) = &args.script else {
        let name = args.template.as_deref();
        if let Some(template) = TEMPLATES
            .iter()
            .find(|template| Some(template.name) == name)
        {
            output::print(template.text)?;
        }
        return Ok(Outcome::Success);
    };
    let name = input::display(script);
    let ParsedScript { scenario, inputs } = parse(script, &args.set, args.seed)?;
    if args.check {
        output::print(&format!("{name}: no errors\n"))?;
        return Ok(Outcome::Success);
    }
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
    let store = synthesize(&scenario, &name, out, !args.no_truth)?;
    let paths = |names: &Vec<String>| names.iter().map(|name| out.join(name)).collect();
    let recordings: Vec<Vec<PathBuf>> = store.recordings().iter().map(paths).collect();
    let mut text = String::new();
    for (file, size) in store.finish(args.force, &inputs)? {
        text.push_str(&format!(
            "{}  {}\n",
            out.join(file).display(),
            output::size(size)
        ));
    }
    output::print(&text)?;
    if recordings.is_empty() {
        stderr_line!("note: {name}: no session of the script writes a trace");
    }
    if !args.verify || recordings.is_empty() {
        return Ok(Outcome::Success);
    }
    output::print("\n")?;
    super::verify::report_on(&recordings)
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
    let jobs = args
        .jobs
        .map_or_else(threads::processors, usize::from)
        .min(seeds.len());
    let made = threads::map(&seeds, jobs, |seed| {
        let directory = out.join(seed.to_string());
        let scenario = scenario.clone().with_seed(*seed);
        let store = synthesize(&scenario, name, &directory, !args.no_truth)?;
        let files = store.finish(args.force, inputs)?;
        let line = |(file, size): (String, u64)| {
            format!(
                "{}  {}\n",
                directory.join(file).display(),
                output::size(size)
            )
        };
        Ok(files.into_iter().map(line).collect::<String>())
    });
    let text: Result<String, Failure> = made.into_iter().collect();
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
    /// The script and what it includes.
    pub inputs: Vec<PathBuf>,
}

/// Reads a script, and prints its errors.
pub(super) fn parse(
    script: &Path,
    set: &[(String, String)],
    seed: Option<u64>,
) -> Result<ParsedScript, Failure> {
    let text = read(script)?;
    let directory = script.parent().unwrap_or(Path::new("")).to_owned();
    let inputs = RefCell::new(vec![script.to_owned()]);
    let beside = |name: &str| {
        let path = directory.join(name);
        inputs.borrow_mut().push(path.clone());
        path
    };
    let include = |name: &str| read_script(&beside(name));
    let name = input::display(script);
    let files = |name: &str| read_capture(&beside(name));
    let script = Script::new(&name, &text).include(&include).files(&files);
    let script = script.parameters(set.iter().cloned());
    let script = seed.map_or(script.clone(), |seed| script.seed(seed));
    let scenario = script.parse().map_err(|errors| explain(&name, &errors))?;
    Ok(ParsedScript {
        scenario,
        inputs: inputs.take(),
    })
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

/// Simulates a scenario; its files are in a temporary directory until [`Directory::finish`].
pub(super) fn synthesize(
    scenario: &Scenario,
    name: &str,
    out: &Path,
    with_truth: bool,
) -> Result<Directory, Failure> {
    let mut store = Directory::new(out)?;
    let failure = |error| simulation_failure(name, &error);
    let io_failure = |error: io::Error| failure(error.into());
    if with_truth {
        let file = io::BufWriter::with_capacity(1 << 18, store.file(TRUTH).map_err(io_failure)?);
        let mut lines = truth::JsonlWriter::new(file);
        simulate(scenario, &mut lines, &mut store).map_err(failure)?;
        lines.into_inner().flush().map_err(io_failure)?;
    } else {
        simulate(scenario, &mut (), &mut store).map_err(failure)?;
    }
    Ok(store)
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
