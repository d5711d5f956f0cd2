//! `etlkit repair`: writes an intact trace from a damaged or unclosed one.

use std::fmt::{self, Write};
use std::path::PathBuf;

use etl_events::input::Head;
use etl_events::problem::Problem;
use etl_format::read::{Mode, Options, Order, OrderCheck, Trace, Weight};
use etl_format::rewrite::repair::{RepairReport, Repairer};
use etl_format::write::TraceFile;
use serde::Serialize;

use crate::Outcome;
use crate::commands::repack::CompressArgs;
use crate::diagnostics::{Condition, LOST_HEADER, plural};
use crate::error::Failure;
use crate::input::{self, Input};
use crate::progress::Progress;
use crate::rewrite::{self, RewriteArgs};
use crate::sink::Sink;

/// Problems that are listed in text.
const MAX_LISTED: usize = 50;

/// Arguments of `etlkit repair`.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
The output contains every record that can be read, in time order. The report lists the regions
that cannot be read, with the number of records before and after each. A compressed trace stays
compressed; --compress compresses the output in any case.

Exit codes: 0 the trace was intact, 1 it was damaged, unclosed or lacked buffers and the output is
intact, 2 error.

Examples:
  etlkit repair broken.etl -o repaired.etl
  etlkit repair broken.etl -o repaired.etl --format json | jq '.problems[].damage'")]
pub(crate) struct Args {
    /// Trace to read; `-` is standard input
    #[arg(value_name = "FILE")]
    file: PathBuf,
    #[command(flatten)]
    packing: CompressArgs,
    #[command(flatten)]
    rewrite: RewriteArgs,
}

pub(crate) fn run(args: &Args) -> Result<Outcome, Failure> {
    let name = input::display(&args.file);
    let threads = args.rewrite.threads();
    let mut sink = Sink::create(&args.rewrite.sink, "a trace", [args.file.as_path()])?;
    let mut input = Input::open(&args.file, &args.rewrite.input)?;
    let mut progress = Progress::of_inputs([&mut input]);
    let options = Options {
        threads,
        limits: input.limits(),
        ..Options::default()
    };
    let done = Repairer::new()
        .compress(args.packing.compressor(args.rewrite.threads()))
        .options(options)
        .on_record(move |record| progress.pass(record.bytes().len()))
        .run(input.source(), TraceFile::new(sink.file()))
        .map(|finished| finished.report);
    let done = match done {
        Ok(report) if !report.header && report.summary.events_written == 0 => {
            return Err(Failure::input(&name, &Head::no_records()));
        }
        Ok(report) => report,
        Err(e) if e.is_io() => return Err(sink.failure(&e)),
        Err(e) => return Err(input.about().not_a_trace(&e)),
    };
    // Its memory is free before the output is read.
    drop(input);
    check(&mut sink, &done, &options)?;
    rewrite::finish(sink, &name, args.rewrite.format, &Report::new(&done))?;
    let condition = Condition {
        damage: &done.damage,
        notes: &done.notes,
        mode: done.mode,
        lost_header: !done.header,
        ..Condition::default()
    };
    let outcome = condition.report(&name);
    if done.was_intact() {
        return Ok(outcome);
    }
    match (condition.weight(), done.oversized_records) {
        (Weight::Detail, 0) => stderr_line!("note: {name}: the report lists what was corrected"),
        (Weight::Detail, n) => {
            let records = plural(n, "record does", "records do");
            stderr_line!("warning: {name}: {records} not fit into a buffer: left out");
        }
        _ => {}
    }
    Ok(Outcome::Findings)
}

/// Reads the new file strictly: it is kept only if it is intact.
fn check(sink: &mut Sink, done: &RepairReport, read: &Options) -> Result<(), Failure> {
    let options = Options {
        mode: Mode::Strict,
        order_check: OrderCheck::FirstRecord,
        ..*read
    };
    // A mapped file would be memory of the process, so a large output is read in blocks.
    let records = Trace::open(sink.written()?, &options).and_then(|mut trace| {
        let mut records = trace.records(Order::Time)?.with_threads(read.threads);
        records.for_each(|_| Ok::<_, etl_format::Error>(()))?;
        Ok(records.count())
    });
    match records {
        Ok(count) if count >= done.summary.events_written => Ok(()),
        Ok(count) => {
            let written = done.summary.events_written;
            let message = format!("{written} records were written, {count} can be read");
            Err(Failure::new(sink.name(), message)
                .hint("this is a bug of etlkit: please report it"))
        }
        Err(e) => Err(sink.failure(&e).hint(
            "the output would be damaged, and was not kept: a bug of etlkit, please report it",
        )),
    }
}

/// The report; docs/rewrite.md describes it.
#[derive(Debug, Serialize)]
struct Report {
    was_intact: bool,
    records: u64,
    buffers: u64,
    header: bool,
    closed: bool,
    buffers_sorted: u64,
    records_left_out: u64,
    problems: Vec<Problem>,
}

impl Report {
    fn new(done: &RepairReport) -> Self {
        let notes = done.notes.iter().map(Problem::from);
        Report {
            was_intact: done.was_intact(),
            records: done.records,
            buffers: done.summary.buffers_written,
            header: done.header,
            closed: done.closed,
            buffers_sorted: done.order.sorted_buffers,
            records_left_out: done.oversized_records,
            problems: done.damage.iter().map(Problem::from).chain(notes).collect(),
        }
    }
}

impl rewrite::Report for Report {
    fn text(&self, file: &str, output: &str, out: &mut String) -> fmt::Result {
        let was = match (self.was_intact, self.problems.is_empty()) {
            (true, true) => "was intact",
            (true, false) => "was intact; notes:",
            (false, _) => "was damaged",
        };
        writeln!(out, "{file} {was}")?;
        if !self.header {
            writeln!(out, "  {}", LOST_HEADER)?;
        } else if !self.closed {
            writeln!(
                out,
                "  it was not closed: the last record is used as its end"
            )?;
        }
        let sorted = self.buffers_sorted;
        let left_out = self.records_left_out;
        if sorted > 0 {
            let were = if sorted == 1 {
                "buffer was"
            } else {
                "buffers were"
            };
            writeln!(out, "  {sorted} {were} not in time order")?;
        }
        if left_out > 0 {
            let records = plural(left_out, "record does", "records do");
            writeln!(out, "  {records} not fit into a buffer: left out")?;
        }
        for problem in self.problems.iter().take(MAX_LISTED) {
            writeln!(out, "  {problem}")?;
        }
        if self.problems.len() > MAX_LISTED {
            let more = self.problems.len() - MAX_LISTED;
            writeln!(out, "  ... and {more} more (--format json lists all)")?;
        }
        let records = plural(self.records, "record", "records");
        writeln!(
            out,
            "{output}: {records} in {}",
            plural(self.buffers, "buffer", "buffers")
        )
    }
}
