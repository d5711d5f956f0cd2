//! `etlkit repair`: a sound trace from a damaged or unclosed one.

use std::fmt::Write;
use std::path::PathBuf;

use etl_format::read::{Mode, Options, OrderCheck, Source, Trace};
use etl_format::rewrite::repair::{self, RepairOptions, RepairReport};
use etl_format::write::File;
use serde::Serialize;

use crate::Outcome;
use crate::commands::repack::CompressArgs;
use crate::error::Failure;
use crate::escape::Printable;
use crate::headless;
use crate::input::{self, Input, InputArgs, WithSource};
use crate::output::{self, ReportFormat};
use crate::problem::Problem;
use crate::progress::Progress;
use crate::sink::{Sink, SinkArgs};
use crate::threads::ThreadArgs;

/// Raised when a field of the report changes its meaning or goes away.
const SCHEMA_VERSION: u32 = 1;

/// Problems that are listed in text.
const MOST: usize = 50;

/// Arguments of `etlkit repair`.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Exit codes: 0 the trace was sound already, 1 it was damaged or unclosed and the new one is sound,
2 nothing could be made of it.

The new file holds every record that could be read, in time order. The report is the map of what
could not be read: where in the damaged file, and how many records stand before and behind.
What was compressed is compressed again; --compress compresses what was not, or otherwise.

Examples:
  etlkit repair broken.etl -o sound.etl
  etlkit repair broken.etl -o sound.etl --format json | jq '.problems[].damage'")]
pub(crate) struct Args {
    /// The trace; `-` reads standard input
    #[arg(value_name = "FILE")]
    file: PathBuf,
    #[command(flatten)]
    sink: SinkArgs,
    #[command(flatten)]
    packing: CompressArgs,
    /// How to print the report; docs/files.md describes the JSON
    #[arg(long = "format", value_enum, default_value_t)]
    report: ReportFormat,
    #[command(flatten)]
    threads: ThreadArgs,
    #[command(flatten)]
    input: InputArgs,
}

pub(crate) fn run(args: &Args) -> Result<Outcome, Failure> {
    let name = input::display(&args.file);
    let mut sink = Sink::create(&args.sink, [args.file.as_path()])?;
    let source = Input::open(&args.file, &args.input)?;
    let done = source.with(Repair { args, name: &name, sink: &mut sink })?;
    check(&mut sink, &done, args.threads.count())?;
    let outcome = if done.was_intact() { Outcome::Fine } else { Outcome::Findings };
    let report = Report::new(&name, sink.name(), &done).render(args.report);
    sink.finish(&report)?;
    Ok(outcome)
}

struct Repair<'a> {
    args: &'a Args,
    name: &'a str,
    sink: &'a mut Sink,
}

impl WithSource for Repair<'_> {
    type Output = Result<RepairReport, Failure>;

    fn with<S: Source>(self, mut source: S) -> Self::Output {
        let mut progress = Progress::new(source.size().unwrap_or(0), false);
        let medium = File::new(self.sink.file());
        let how = RepairOptions {
            compression: self.args.packing.chosen(),
            threads: self.args.threads.count(),
            ..RepairOptions::default()
        };
        let done = repair::repair_with(&mut source, medium, &how, |record| {
            progress.pass(record.bytes().len());
        });
        match done {
            Ok((_, report)) if !report.header && report.summary.events_written == 0 => {
                Err(headless::nothing(self.name))
            }
            Ok((_, report)) => Ok(report),
            Err(e) if e.is_io() => Err(self.sink.failure(&e)),
            Err(e) => Err(input::not_a_trace(self.name, &e, &input::head(&mut source))),
        }
    }
}

/// Reads the new file as strictly as can be: it is not given a name unless it is sound.
fn check(sink: &mut Sink, done: &RepairReport, threads: usize) -> Result<(), Failure> {
    let mapped = sink.map()?;
    let options = Options { mode: Mode::Strict, order: OrderCheck::Heads, ..Options::default() };
    let records = Trace::open(mapped.bytes(), &options).and_then(|mut trace| {
        trace.ordered()?.with_threads(threads, |records| {
            while records.next_record()?.is_some() {}
            Ok(records.records())
        })
    });
    match records {
        Ok(found) if found >= done.summary.events_written => Ok(()),
        Ok(found) => {
            let wrote = done.summary.events_written;
            let message = format!("{wrote} records were written, {found} are there");
            Err(Failure::new(sink.name(), message)
                .hint("this is a fault of etlkit; please report it"))
        }
        Err(e) => Err(sink
            .failure(&e)
            .hint("the new file is not sound, and was not kept: a fault of etlkit")),
    }
}

/// What is told of the work; docs/files.md describes it.
#[derive(Debug, Serialize)]
struct Report<'a> {
    schema_version: u32,
    input: &'a str,
    output: &'a str,
    was_intact: bool,
    records: u64,
    buffers: u64,
    header: bool,
    closed: bool,
    buffers_sorted: u64,
    records_left_out: u64,
    problems: Vec<Problem>,
}

impl<'a> Report<'a> {
    fn new(input: &'a str, output: &'a str, done: &RepairReport) -> Self {
        let notes = done.notes.iter().map(Problem::note);
        Report {
            schema_version: SCHEMA_VERSION,
            input,
            output,
            was_intact: done.was_intact(),
            records: done.summary.events_written,
            buffers: done.summary.buffers_written,
            header: done.header,
            closed: done.closed,
            buffers_sorted: done.order.sorted_buffers,
            records_left_out: done.too_long,
            problems: done.damage.iter().map(Problem::damage).chain(notes).collect(),
        }
    }

    fn render(&self, format: ReportFormat) -> String {
        if let ReportFormat::Json = format {
            return output::json(self);
        }
        let mut out = String::new();
        let was = match (self.was_intact, self.problems.is_empty()) {
            (true, true) => "was sound",
            (true, false) => "has nothing to repair; notes:",
            (false, _) => "was not sound",
        };
        let (input, output) = (Printable(self.input), Printable(self.output));
        // Writing to a string does not fail.
        let _ = writeln!(out, "{input} {was}");
        if !self.header {
            let _ = writeln!(out, "  {}", headless::LOST);
        } else if !self.closed {
            let _ = writeln!(out, "  it was not closed: its end is told by its last record");
        }
        if self.buffers_sorted > 0 {
            let _ = writeln!(out, "  {} buffers were not in time order", self.buffers_sorted);
        }
        if self.records_left_out > 0 {
            let _ =
                writeln!(out, "  {} records did not fit into any buffer", self.records_left_out);
        }
        for problem in self.problems.iter().take(MOST) {
            let _ = writeln!(out, "  {problem}");
        }
        if let Some(more) = self.problems.len().checked_sub(MOST).filter(|more| *more > 0) {
            let _ = writeln!(out, "  ... and {more} more; --format json lists all");
        }
        let _ = writeln!(out, "{output}: {} records in {} buffers", self.records, self.buffers);
        out
    }
}
