//! `etlkit merge`: merges several traces into one.

use std::fmt::{self, Write};
use std::path::PathBuf;

use clap::ValueEnum;
use etl_events::input::Temporary;
use etl_events::problem::Problem;
use etl_format::ErrorKind;
use etl_format::read::{Limits, Mode, Options};
use etl_format::rewrite::merge::{Allow, MergeReport, Merger, Relation};
use serde::Serialize;

use crate::Outcome;
use crate::commands::repack::CompressArgs;
use crate::diagnostics::{Condition, plural};
use crate::error::Failure;
use crate::input::{self, About, Input};
use crate::output;
use crate::progress::Progress;
use crate::rewrite::{self, RewriteArgs};
use crate::sink::Sink;

/// Arguments of `etlkit merge`.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Traces are merged if they come from one machine and one boot of it. Otherwise the command fails
with a reason, which --allow-mismatch accepts; docs/rewrite.md describes the reasons.

Exit codes: 0 success, 1 traces are damaged and their intact parts were merged (--salvage), or lack
buffers, 2 error.

Examples:
  etlkit merge kernel.etl clr.etl clrRundown.etl -o merged.etl --compress
  etlkit merge monday.etl tuesday.etl -o both.etl --allow-mismatch boot
  etlkit merge *.etl -o merged.etl --format json | jq .inputs")]
pub(crate) struct Args {
    /// Traces to merge; one of them may be `-`, standard input
    #[arg(value_name = "FILE", required = true)]
    files: Vec<PathBuf>,
    #[command(flatten)]
    packing: CompressArgs,
    /// Merge the traces although they differ in this; may be repeated
    #[arg(long, value_enum, value_name = "REASON")]
    allow_mismatch: Vec<Mismatch>,
    /// Merge the intact parts of damaged traces
    #[arg(long)]
    salvage: bool,
    #[command(flatten)]
    rewrite: RewriteArgs,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Mismatch {
    /// Different machines: Windows version, processors or their speed
    Machine,
    /// Different boots; the traces are aligned by wall-clock time
    Boot,
    /// Clocks that cannot be converted; raw timestamps are kept
    Clock,
    /// Different pointer sizes
    PointerSize,
}

impl Args {
    fn allows(&self, mismatch: Mismatch) -> bool {
        self.allow_mismatch.contains(&mismatch)
    }
}

/// What to do with a damaged trace.
const SALVAGE: &str =
    "the trace is damaged: --salvage merges its intact parts, `etlkit repair` lists the damage";

pub(crate) fn run(args: &Args) -> Result<Outcome, Failure> {
    let hint = "name each trace once, or its events occur twice in the merged trace";
    input::reject_twice(&args.files, hint)?;
    let mut sink = Sink::create(
        &args.rewrite.sink,
        "a trace",
        args.files.iter().map(PathBuf::as_path),
    )?;
    let share = args.rewrite.input.share(args.files.len());
    let mut inputs = Vec::new();
    for file in &args.files {
        inputs.push(Input::open(file, &share)?);
    }
    for input in &mut inputs {
        if args.salvage {
            input.ensure_records()?;
        } else {
            input.about().ensure_whole_stream(SALVAGE)?;
        }
    }
    let size: u64 = inputs.iter_mut().map(Input::size).sum();
    let limits = share.limits(size);
    let merger = merger(args, limits, size).look_ahead();
    let mut merged = merge(merger, &mut inputs, &mut sink);
    if let Err(error) = &merged
        && is_due_to_look_ahead(error)
    {
        // Reading all records first needs neither order nor as much memory.
        sink.clear()?;
        merged = merge(self::merger(args, limits, size), &mut inputs, &mut sink);
    }
    let done = merged.map_err(|error| failure(&error, args.salvage, &inputs, &sink))?;
    let size = sink.size()?;
    rewrite::finish(
        sink,
        "",
        args.rewrite.format,
        &Report::new(&inputs, size, &done),
    )?;
    let mut outcome = Outcome::Success;
    for (input, merged) in inputs.iter().zip(&done.inputs) {
        let condition = Condition::new(&merged.header, &merged.damage, &merged.notes);
        outcome = outcome.max(condition.report(&input.about().name));
    }
    Ok(outcome)
}

fn is_due_to_look_ahead(error: &etl_format::Error) -> bool {
    use ErrorKind::{Limit, Memory, OutOfOrder};
    matches!(error.kind, OutOfOrder | Memory { .. } | Limit { .. })
}

/// Merges the inputs into the sink.
fn merge(
    merger: Merger<'_>,
    inputs: &mut [Input],
    sink: &mut Sink,
) -> etl_format::Result<MergeReport> {
    let mut progress = Progress::of_inputs(inputs.iter_mut());
    let mut sources: Vec<_> = inputs.iter_mut().map(Input::source).collect();
    let merger = merger.on_record(|record, _, _| {
        progress.pass(record.bytes().len());
        Ok(())
    });
    let finished = merger.run_in_passes(&mut sources, sink.medium(), Temporary::create)?;
    Ok(finished.report)
}

/// A merger of traces of `size` bytes together.
fn merger(args: &Args, limits: Limits, size: u64) -> Merger<'static> {
    Merger::new()
        .options(Options {
            mode: if args.salvage {
                Mode::Salvage
            } else {
                Mode::Strict
            },
            threads: args.rewrite.threads(),
            limits,
            ..Options::default()
        })
        .allow(Allow {
            machine: args.allows(Mismatch::Machine),
            boot: args.allows(Mismatch::Boot),
            clock: args.allows(Mismatch::Clock),
            pointer_size: args.allows(Mismatch::PointerSize),
        })
        .compress(args.packing.compressor(args.rewrite.threads()))
        .max_memory(args.rewrite.input.merge_memory(size))
}

fn about(inputs: &[Input], index: usize) -> About {
    match inputs.get(index) {
        Some(input) => input.about().clone(),
        None => About::default(),
    }
}

fn failure(error: &etl_format::Error, salvage: bool, inputs: &[Input], sink: &Sink) -> Failure {
    match (&error.kind, error.input) {
        (ErrorKind::Refused(refusal), _) => {
            let with = about(inputs, refusal.with).name;
            let message = format!("cannot be merged with {with}: {}", refusal.reason);
            Failure::new(about(inputs, refusal.input).name, message).hint(format!(
                "--allow-mismatch {} merges them anyway",
                refusal.reason.name()
            ))
        }
        (
            ErrorKind::Memory {
                inputs,
                needed,
                max,
            },
            _,
        ) => {
            let message = format!(
                "merging them needs {} of memory, and the limit is {}",
                output::size(*needed),
                output::size(*max)
            );
            let hint = match inputs {
                1 => "raise --max-memory",
                _ => "raise --max-memory: two traces have to be read at the same time",
            };
            Failure::new(plural(*inputs as u64, "trace", "traces"), message).hint(hint)
        }
        (ErrorKind::NoInput, _) => Failure::new("", error.to_string()),
        (_, Some(input)) => {
            // The name of the trace replaces its index.
            let error = &etl_format::Error {
                input: None,
                ..error.clone()
            };
            let about = about(inputs, input);
            if salvage {
                return about.not_a_trace(error);
            }
            about.not_intact(error, SALVAGE)
        }
        (_, None) => sink.failure(error),
    }
}

/// The report; docs/rewrite.md describes it.
#[derive(Debug, Serialize)]
struct Report<'a> {
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
    /// Ticks per second of the clock that was converted.
    frequency: Option<u64>,
    problems: Vec<Problem>,
}

impl<'a> Report<'a> {
    fn new(inputs: &'a [Input], bytes: u64, done: &MergeReport) -> Self {
        let inputs = inputs.iter().zip(&done.inputs).map(|(file, input)| Source {
            file: &file.about().name,
            records: input.records,
            clock: input.relation.name(),
            frequency: match input.relation {
                Relation::Converted { from, .. } => Some(from.frequency),
                Relation::Same => None,
            },
            problems: input.damage.iter().map(Problem::from).collect(),
        });
        Report {
            bytes,
            records: done.records(),
            buffers: done.summary.buffers_written,
            events_lost: done.summary.events_lost,
            buffers_lost: done.summary.buffers_lost,
            inputs: inputs.collect(),
        }
    }
}

impl rewrite::Report for Report<'_> {
    fn text(&self, _: &str, output: &str, out: &mut String) -> fmt::Result {
        let records = plural(self.records, "record", "records");
        let buffers = plural(self.buffers, "buffer", "buffers");
        let size = output::size(self.bytes);
        writeln!(out, "{output}: {records} in {buffers}, {size}")?;
        for input in &self.inputs {
            let records = plural(input.records, "record", "records");
            write!(out, "  {}: {records}", input.file)?;
            if let Some(frequency) = input.frequency {
                write!(out, ", from a clock of {frequency} Hz")?;
            }
            out.push('\n');
            for problem in &input.problems {
                writeln!(out, "    {problem}")?;
            }
        }
        if self.events_lost > 0 || self.buffers_lost > 0 {
            let events = self.events_lost;
            let buffers = self.buffers_lost;
            writeln!(out, "  lost: {events} events, {buffers} buffers")?;
        }
        Ok(())
    }
}
