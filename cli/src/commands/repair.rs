//! `etlkit repair`: writes an intact trace from a damaged or unclosed one.

use std::fmt::Write;
use std::path::PathBuf;

use etl_format::read::{Mode, Options, Order, OrderCheck, Source, Trace};
use etl_format::rewrite::repair::{RepairReport, Repairer};
use etl_format::write::File;
use etl_tools::problem::Problem;
use serde::Serialize;

use crate::Outcome;
use crate::commands::repack::CompressArgs;
use crate::error::Failure;
use crate::input::{self, Input, InputArgs, WithSource};
use crate::missing_header;
use crate::output::{self, ReportFormat};
use crate::progress::Progress;
use crate::sink::{Sink, SinkArgs};
use crate::threads::ThreadArgs;

/// Incremented when a field of the report changes its meaning or is removed.
const SCHEMA_VERSION: u32 = 1;

/// Problems that are listed in text.
const MAX_LISTED: usize = 50;

/// Arguments of `etlkit repair`.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
The output contains every record that can be read, in time order. The report lists the regions
that cannot be read, with the number of records before and after each. A compressed trace stays
compressed; --compress compresses the output in any case.

Exit codes: 0 the trace was intact, 1 it was damaged or unclosed and the output is intact, 2 error.

Examples:
  etlkit repair broken.etl -o repaired.etl
  etlkit repair broken.etl -o repaired.etl --format json | jq '.problems[].damage'")]
pub(crate) struct Args {
    /// Trace to read; `-` is standard input
    #[arg(value_name = "FILE")]
    file: PathBuf,
    #[command(flatten)]
    sink: SinkArgs,
    #[command(flatten)]
    packing: CompressArgs,
    /// Format of the report; docs/files.md describes the JSON
    #[arg(long, value_enum, default_value_t)]
    format: ReportFormat,
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
    let outcome = if done.was_intact() { Outcome::Success } else { Outcome::Findings };
    let report = Report::new(&name, sink.name(), &done).render(args.format);
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
        let repairer = Repairer::new()
            .compress(self.args.packing.compressor(&self.args.threads))
            .threads(self.args.threads.count())
            .on_record(|record| progress.pass(record.bytes().len()));
        match repairer.run(&mut source, medium) {
            Ok((_, report)) if !report.header && report.summary.events_written == 0 => {
                Err(missing_header::no_records_error(self.name))
            }
            Ok((_, report)) => Ok(report),
            Err(e) if e.is_io() => Err(self.sink.failure(&e)),
            Err(e) => Err(input::not_a_trace(self.name, &e, &input::head(&mut source))),
        }
    }
}

/// Reads the new file strictly: it is kept only if it is intact.
fn check(sink: &mut Sink, done: &RepairReport, threads: usize) -> Result<(), Failure> {
    let mapped = sink.map()?;
    let options =
        Options { mode: Mode::Strict, order_check: OrderCheck::FirstRecord, ..Options::default() };
    let records = Trace::open(mapped.bytes(), &options).and_then(|mut trace| {
        let mut records = trace.records(Order::Time)?.with_threads(threads);
        records.for_each(|_| Ok::<_, etl_format::Error>(()))?;
        Ok(records.count())
    });
    match records {
        Ok(found) if found >= done.summary.events_written => Ok(()),
        Ok(found) => {
            let wrote = done.summary.events_written;
            let message = format!("{wrote} records were written, {found} can be read");
            Err(Failure::new(sink.name(), message)
                .hint("this is a bug of etlkit: please report it"))
        }
        Err(e) => Err(sink.failure(&e).hint(
            "the output would be damaged, and was not kept: a bug of etlkit, please report it",
        )),
    }
}

/// The report; docs/files.md describes it.
#[derive(Debug, Serialize)]
struct Report<'a> {
    schema_version: u32,
    file: &'a str,
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
    fn new(file: &'a str, output: &'a str, done: &RepairReport) -> Self {
        let notes = done.notes.iter().map(Problem::from);
        Report {
            schema_version: SCHEMA_VERSION,
            file,
            output,
            was_intact: done.was_intact(),
            records: done.summary.events_written,
            buffers: done.summary.buffers_written,
            header: done.header,
            closed: done.closed,
            buffers_sorted: done.order.sorted_buffers,
            records_left_out: done.oversized_records,
            problems: done.damage.iter().map(Problem::from).chain(notes).collect(),
        }
    }

    fn render(&self, format: ReportFormat) -> String {
        if let ReportFormat::Json = format {
            return output::json(self);
        }
        let mut out = String::new();
        let was = match (self.was_intact, self.problems.is_empty()) {
            (true, true) => "was intact",
            (true, false) => "was intact; notes:",
            (false, _) => "was damaged",
        };
        // Writing to a String does not fail.
        let _ = writeln!(out, "{} {was}", self.file);
        if !self.header {
            let _ = writeln!(out, "  {}", missing_header::MESSAGE);
        } else if !self.closed {
            let _ = writeln!(out, "  it was not closed: the last record is taken as its end");
        }
        if self.buffers_sorted > 0 {
            let _ = writeln!(out, "  {} buffers were not in time order", self.buffers_sorted);
        }
        if self.records_left_out > 0 {
            let _ = writeln!(
                out,
                "  {} records do not fit into a buffer and are left out",
                self.records_left_out
            );
        }
        for problem in self.problems.iter().take(MAX_LISTED) {
            let _ = writeln!(out, "  {problem}");
        }
        if let Some(more) = self.problems.len().checked_sub(MAX_LISTED).filter(|more| *more > 0) {
            let _ = writeln!(out, "  ... and {more} more (--format json lists all)");
        }
        let _ =
            writeln!(out, "{}: {} records in {} buffers", self.output, self.records, self.buffers);
        out
    }
}
