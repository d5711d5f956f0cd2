//! `etlkit slice`: extracts a part of a trace, with the state that it needs.

use std::fmt::{self, Write};
use std::path::PathBuf;

use etl_events::Subject;
use etl_events::missing::TraceNames;
use etl_events::survey::Survey;
use etl_format::read::Record;
use etl_schema::store::SchemaStore;
use etl_tools::slice::{Slicer, Summary};

use crate::Outcome;
use crate::commands::repack::CompressArgs;
use crate::error::Failure;
use crate::filter::{self, FilterArgs};
use crate::input::{self, Input};
use crate::missing;
use crate::rewrite::{Report, Rewrite, RewriteArgs};

/// Arguments of `etlkit slice`.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
--pid and --tid select by the process and thread that an event is about, which may differ from
those in its header (samples, context switches). Stacks are kept with their events. The state that
selected events need is kept from the whole trace: processes, threads, images, managed code,
schemas, stack keys; docs/rewrite.md describes it.

Exit codes: 0 success, 1 the trace is damaged or lacks buffers; its intact part was read, 2 error.

Examples:
  etlkit slice trace.etl --from 12.5 --to 14 -o spike.etl
  etlkit slice merged.etl --process app --children -o app.etl
  etlkit slice merged.etl --pid 4711 --compress -o one-process.etl
  etlkit slice trace.etl -p Microsoft-Windows-DotNETRuntime --id 80 -o exceptions.etl
  cat trace.etl | etlkit slice - --tid 42 -o - | etlkit dump -")]
pub(crate) struct Args {
    /// Trace to read; `-` is standard input
    #[arg(value_name = "FILE")]
    file: PathBuf,
    /// Keep the events that decoding and resolving the selected events needs (the default)
    #[arg(long, overrides_with = "no_keep_state")]
    keep_state: bool,
    /// Keep only the selected events, their stacks and the session events
    #[arg(long)]
    no_keep_state: bool,
    #[command(flatten)]
    packing: CompressArgs,
    #[command(flatten)]
    rewrite: RewriteArgs,
    #[command(flatten)]
    filter: FilterArgs,
}

pub(crate) fn run(args: &Args) -> Result<Outcome, Failure> {
    let mut input = Input::open(&args.file, &args.rewrite.input)?;
    let processes = args.filter.processes(&mut input)?;
    let mut job = Rewrite::start(&mut input, &args.rewrite, [], &args.file)?;
    let mut filter = args.filter.filter(&job.trace.clock(), &processes)?;
    let unknown = filter::learn_names(&mut filter, &mut job.trace, &SchemaStore::default())
        .map_err(|error| Failure::trace(&input::display(&args.file), &error))?;
    let keep_state = !args.no_keep_state || args.keep_state;
    let mut progress = job.progress(if keep_state { 2 } else { 1 });
    let slicer = if keep_state {
        Slicer::new()
    } else {
        Slicer::new().without_state()
    };
    let done = slicer
        .compression(args.packing.chosen())
        .on_record(move |record| progress.pass(record.bytes().len()))
        .run(
            &mut job.trace,
            |record: &Record<'_>, subject: &Subject| filter.admits_subject(record, subject),
            job.sink.medium(),
        )
        .map(|finished| finished.report);
    let summary = done.map_err(|error| job.failure(&error))?;
    let mut names = TraceNames::default();
    if summary.selected == 0
        && let Ok(survey) = Survey::of(&mut job.trace, SchemaStore::default(), |_| {})
    {
        names.add_survey(&survey);
    }
    let outcome = job.finish(&summary, &summary.damage)?;
    Ok(outcome.max(note_missing(args, &summary, &names, &unknown)))
}

/// Reports the selected names that the trace does not have.
fn note_missing(args: &Args, summary: &Summary, names: &TraceNames, unknown: &[String]) -> Outcome {
    if summary.selected == 0 && !names.is_empty() {
        let providers = args.filter.providers().iter().map(String::as_str);
        let missing = names.missing_providers(providers);
        if missing.is_empty() {
            stderr_line!("note: {}: no event is selected", input::display(&args.file));
        }
        return missing::report(&missing);
    }
    filter::note_unknown(unknown);
    Outcome::Success
}

impl Report for Summary {
    fn text(&self, _: &str, output: &str, out: &mut String) -> fmt::Result {
        let all = self.selected + self.kept_as_state;
        writeln!(out, "{output}: {all} of {} records", self.records)?;
        writeln!(out, "{:>10}  selected", self.selected)?;
        for (reason, count) in self.kept.iter().filter(|(_, count)| **count > 0) {
            writeln!(
                out,
                "{count:>10}  kept as state: {}",
                reason.name().replace('_', " ")
            )?;
        }
        Ok(())
    }
}
