//! `etlkit merge`: several traces made one.

mod passes;

use std::collections::BTreeSet;
use std::fmt::Write;
use std::path::PathBuf;

use clap::ValueEnum;
use etl_format::read::{Mode, Options, OrderCheck, Record, Source as _};
use etl_format::rewrite::merge::{Allow, MergeError, MergeOptions, MergeReport, Relation};
use etl_format::write::File;
use serde::Serialize;

use crate::Outcome;
use crate::commands::repack::CompressArgs;
use crate::error::Failure;
use crate::escape::Printable;
use crate::headless;
use crate::input::{self, Input, InputArgs};
use crate::output::{self, ReportFormat};
use crate::problem::Problem;
use crate::progress::Progress;
use crate::sink::{Sink, SinkArgs};
use crate::threads::ThreadArgs;

/// Raised when a field of the report changes its meaning or goes away.
const SCHEMA_VERSION: u32 = 1;

/// Arguments of `etlkit merge`.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Exit codes: 0 merged, 1 merged what could be read (--salvage), 2 not merged.

Traces of one machine and one start of it are merged. Others are refused for a reason with a name,
and --allow takes the name: see docs/merge.md.

Examples:
  etlkit merge kernel.etl clr.etl clrRundown.etl -o merged.etl --compress
  etlkit merge monday.etl tuesday.etl -o both.etl --allow boot
  etlkit merge *.etl -o merged.etl --format json | jq .inputs")]
pub(crate) struct Args {
    /// The traces; `-` reads one of them from standard input
    #[arg(value_name = "FILE", required = true)]
    files: Vec<PathBuf>,
    #[command(flatten)]
    sink: SinkArgs,
    #[command(flatten)]
    packing: CompressArgs,
    /// Merge traces that do not belong together for this reason. May be given more than once
    #[arg(long, value_enum, value_name = "REASON")]
    allow: Vec<Why>,
    /// Merge what can be read of damaged traces
    #[arg(long)]
    salvage: bool,
    /// Most memory for reading traces at once, in MiB. What takes more is merged in passes, by way of
    /// temporary files
    #[arg(long, value_name = "MIB", default_value_t = 2048)]
    max_memory: u64,
    /// How to print the report; docs/merge.md describes the JSON
    #[arg(long = "format", value_enum, default_value_t)]
    report: ReportFormat,
    #[command(flatten)]
    threads: ThreadArgs,
    #[command(flatten)]
    input: InputArgs,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Why {
    /// Another machine: Windows' version, processors or their speed differ
    Machine,
    /// The machine was started anew in between; wall-clock times relate the traces
    Boot,
    /// A clock that nothing relates to the others; its stamps are taken as they are
    Clock,
    /// Pointers of another width
    PointerSize,
}

pub(crate) fn run(args: &Args) -> Result<Outcome, Failure> {
    let names: Vec<String> = args.files.iter().map(|f| input::display(f)).collect();
    once_each(args)?;
    let mut sink = Sink::create(&args.sink, args.files.iter().map(PathBuf::as_path))?;
    let mut inputs: Vec<Input> =
        args.files.iter().map(|f| Input::open(f, &args.input)).collect::<Result<_, _>>()?;
    let heads: Vec<_> = inputs.iter_mut().map(Input::head).collect();
    for (input, name) in inputs.iter_mut().zip(&names).filter(|_| args.salvage) {
        if headless::is_lost(name, input.any())? {
            headless::tell(name);
        }
    }
    let total = inputs.iter_mut().filter_map(|input| input.any().size()).sum();
    let mut progress = Progress::new(total, false);
    let mut watch = |record: &Record<'_>| progress.pass(record.bytes().len());
    let file: &std::fs::File = sink.file();
    let merged = passes::merge(&mut inputs, || File::new(file), &options(args), &mut watch);
    let done = match merged {
        Ok(done) => done,
        Err(error) => return Err(failure(&error, args.salvage, &names, &heads, &sink)),
    };
    drop(progress);
    let size = sink.size()?;
    let report = Report::new(&names, &sink, size, &done).render(args.report);
    sink.finish(&report)?;
    let damaged = done.inputs.iter().any(|i| !i.damage.is_empty());
    Ok(if damaged { Outcome::Findings } else { Outcome::Fine })
}

/// A file that is named twice would come in twice.
fn once_each(args: &Args) -> Result<(), Failure> {
    let mut seen = BTreeSet::new();
    for file in &args.files {
        let path = match input::is_stdin(file) {
            true => file.clone(),
            false => std::fs::canonicalize(file).unwrap_or_else(|_| file.clone()),
        };
        if !seen.insert(path) {
            return Err(Failure::new(input::display(file), "is named twice")
                .hint("each of its events would be in the merged trace twice"));
        }
    }
    Ok(())
}

fn options(args: &Args) -> MergeOptions {
    let mode = if args.salvage { Mode::Salvage } else { Mode::Strict };
    let allows = |why| args.allow.contains(&why);
    MergeOptions {
        read: Options {
            mode,
            order: OrderCheck::Full,
            threads: args.threads.count(),
            ..Options::default()
        },
        allow: Allow {
            machine: allows(Why::Machine),
            boot: allows(Why::Boot),
            clock: allows(Why::Clock),
            pointer_size: allows(Why::PointerSize),
        },
        compression: args.packing.chosen(),
        now: None,
        memory: args.max_memory.saturating_mul(1 << 20),
    }
}

fn failure(
    error: &MergeError,
    salvage: bool,
    names: &[String],
    heads: &[Vec<u8>],
    sink: &Sink,
) -> Failure {
    let name = |input: usize| names.get(input).map_or("", String::as_str);
    match error {
        MergeError::Input { input, error } => {
            let head = heads.get(*input).map_or(&[][..], Vec::as_slice);
            if salvage {
                return input::not_a_trace(name(*input), error, head);
            }
            let hint = "the trace is damaged; --salvage merges what can be read, and `etlkit repair` says what cannot";
            input::not_sound(name(*input), error, head, hint)
        }
        MergeError::Refused(refusal) => {
            let with = name(refusal.with);
            let message = format!("does not go with {with}: {}", refusal.reason);
            Failure::new(name(refusal.input), message)
                .hint(format!("--allow {} merges them all the same", refusal.reason.name()))
        }
        MergeError::Output(error) => sink.failure(error),
        MergeError::Memory { inputs, needed, most } => {
            let message = format!(
                "reading them at once takes {} of memory, and {} are allowed",
                output::size(*needed),
                output::size(*most)
            );
            Failure::new(format!("{inputs} traces"), message)
                .hint("raise --max-memory: two traces have to be read at once")
        }
        MergeError::NoInput => Failure::new("", error.to_string()),
    }
}

/// What is told of the work; docs/merge.md describes it.
#[derive(Debug, Serialize)]
struct Report<'a> {
    schema_version: u32,
    output: &'a str,
    bytes: u64,
    records: u64,
    buffers: u64,
    events_lost: u64,
    buffers_lost: u64,
    inputs: Vec<Source<'a>>,
}

#[derive(Debug, Serialize)]
struct Source<'a> {
    file: &'a str,
    records: u64,
    /// `same` or `converted`.
    clock: &'static str,
    /// Ticks in a second of the clock that was converted from.
    frequency: Option<u64>,
    damage: Vec<Problem>,
}

impl<'a> Report<'a> {
    fn new(names: &'a [String], sink: &'a Sink, bytes: u64, done: &MergeReport) -> Self {
        let inputs = names.iter().zip(&done.inputs).map(|(file, input)| Source {
            file,
            records: input.records,
            clock: input.relation.name(),
            frequency: match input.relation {
                Relation::Converted { from, .. } => Some(from.frequency),
                Relation::Same => None,
            },
            damage: input.damage.iter().map(Problem::damage).collect(),
        });
        Report {
            schema_version: SCHEMA_VERSION,
            output: sink.name(),
            bytes,
            records: done.records(),
            buffers: done.summary.buffers_written,
            events_lost: done.summary.events_lost,
            buffers_lost: done.summary.buffers_lost,
            inputs: inputs.collect(),
        }
    }

    fn render(&self, format: ReportFormat) -> String {
        if let ReportFormat::Json = format {
            return output::json(self);
        }
        let mut out = String::new();
        // Writing to a string does not fail.
        let _ = writeln!(
            out,
            "{}: {} records in {} buffers, {}",
            Printable(self.output),
            self.records,
            self.buffers,
            output::size(self.bytes)
        );
        for input in &self.inputs {
            let _ = write!(out, "  {}: {} records", Printable(input.file), input.records);
            if let Some(frequency) = input.frequency {
                let _ = write!(out, ", from a clock of {frequency} Hz");
            }
            out.push('\n');
            for problem in &input.damage {
                let _ = writeln!(out, "    {problem}");
            }
        }
        if self.events_lost > 0 || self.buffers_lost > 0 {
            let (events, buffers) = (self.events_lost, self.buffers_lost);
            let _ = writeln!(out, "  lost: {events} events, {buffers} buffers");
        }
        out
    }
}
