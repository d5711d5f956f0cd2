//! `etlkit slice`: extracts a part of a trace, with the state that it needs.

use std::fmt::Write;
use std::path::PathBuf;

use etl_format::read::{Options, Order, Source, Trace};
use etl_schema::store::SchemaStore;
use etl_tools::slice::{KeepReason, Slicer, Summary};
use serde::Serialize;

use crate::Outcome;
use crate::commands::repack::CompressArgs;
use crate::error::Failure;
use crate::filter::{self, FilterArgs};
use crate::input::{self, Input, InputArgs, WithSource};
use crate::missing_header;
use crate::output::{self, ReportFormat};
use crate::progress::Progress;
use crate::sink::{Sink, SinkArgs};
use crate::threads::ThreadArgs;

/// Incremented when a field of the report changes its meaning or is removed.
const SCHEMA_VERSION: u32 = 1;

/// Arguments of `etlkit slice`.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
--pid and --tid select by the process and thread that an event is about, which may differ from
those in its header (samples, context switches). Stacks are kept with their events. The state that
selected events need is kept from the whole trace: processes, threads, images, managed code,
schemas, stack keys; docs/slice.md describes it.

Exit codes: 0 success, 1 the trace is damaged and its intact parts were read, 2 error.

Examples:
  etlkit slice trace.etl --from 12.5 --to 14 -o spike.etl
  etlkit slice merged.etl --pid 4711 --compress -o one-process.etl
  etlkit slice trace.etl -p Microsoft-Windows-DotNETRuntime --id 80 -o exceptions.etl
  cat trace.etl | etlkit slice - --tid 42 -o - | etlkit dump -")]
pub(crate) struct Args {
    /// Trace to read; `-` is standard input
    #[arg(value_name = "FILE")]
    file: PathBuf,
    #[command(flatten)]
    sink: SinkArgs,
    /// Keep what selected events need to be decoded and resolved (the default)
    #[arg(long, overrides_with = "no_keep_state")]
    keep_state: bool,
    /// Keep only the selected events, their stacks and the session events
    #[arg(long)]
    no_keep_state: bool,
    #[command(flatten)]
    packing: CompressArgs,
    /// Format of the report; docs/slice.md describes the JSON
    #[arg(long, value_enum, default_value_t)]
    format: ReportFormat,
    #[command(flatten)]
    threads: ThreadArgs,
    #[command(flatten)]
    filter: FilterArgs,
    #[command(flatten)]
    input: InputArgs,
}

#[derive(Debug, Serialize)]
struct Report<'a> {
    schema_version: u32,
    file: &'a str,
    output: &'a str,
    records: u64,
    selected: u64,
    kept_as_state: u64,
    kept: std::collections::BTreeMap<&'static str, u64>,
    damaged: bool,
}

pub(crate) fn run(args: &Args) -> Result<Outcome, Failure> {
    let name = input::display(&args.file);
    Input::open(&args.file, &args.input)?.with(Slice { args, name: &name })
}

struct Slice<'a> {
    args: &'a Args,
    name: &'a str,
}

impl WithSource for Slice<'_> {
    type Output = Result<Outcome, Failure>;

    fn with<S: Source>(self, mut source: S) -> Self::Output {
        let Slice { args, name } = self;
        let head = input::head(&mut source);
        let reading = Options { threads: args.threads.count(), ..Options::salvage() };
        let mut trace =
            Trace::open(source, &reading).map_err(|e| input::not_a_trace(name, &e, &head))?;
        missing_header::ensure_records(name, &mut trace)?;
        let mut filter = args.filter.filter(&trace.clock())?;
        if filter.has_unresolved_names()
            && let Ok(mut records) = trace.records(Order::File)
        {
            filter::learn_names(&mut filter, &mut records, &SchemaStore::default());
        }
        let mut sink = Sink::create(&args.sink, [args.file.as_path()])?;
        let keep_state = !args.no_keep_state || args.keep_state;
        let used: u64 = trace.buffers().iter().map(|b| u64::from(b.fill)).sum();
        let mut progress = Progress::new(used * if keep_state { 2 } else { 1 }, false);
        let done = Slicer::new()
            .keep_state(keep_state)
            .compression(args.packing.chosen())
            .on_record(|record| progress.pass(record.bytes().len()))
            .run(
                &mut trace,
                |record, subject| filter.admits_subject(record, subject),
                sink.medium(),
            )
            .map(|(_, summary)| summary);
        let summary = done.map_err(|error| sink.operation_failure(name, &error))?;
        drop(progress);
        missing_header::warn_if_missing(name, &trace);
        let report = match args.format {
            ReportFormat::Text => text(sink.name(), &summary),
            ReportFormat::Json => json(name, sink.name(), &summary),
        };
        sink.finish_with_damage(name, &summary.damage, &report)
    }
}

fn kept(summary: &Summary) -> impl Iterator<Item = (&'static str, u64)> + '_ {
    KeepReason::ALL.iter().map(|why| why.name()).zip(summary.state)
}

fn text(output: &str, summary: &Summary) -> String {
    let mut out = String::new();
    let all = summary.selected + summary.state();
    let _ = writeln!(out, "{output}: {all} of {} records", summary.records);
    let _ = writeln!(out, "{:>10}  selected", summary.selected);
    for (name, count) in kept(summary).filter(|(_, count)| *count > 0) {
        let _ = writeln!(out, "{count:>10}  kept as state: {}", name.replace('_', " "));
    }
    out
}

fn json(file: &str, output: &str, summary: &Summary) -> String {
    output::json(&Report {
        schema_version: SCHEMA_VERSION,
        file,
        output,
        records: summary.records,
        selected: summary.selected,
        kept_as_state: summary.state(),
        kept: kept(summary).collect(),
        damaged: !summary.damage.is_empty(),
    })
}
