//! `etlkit diff`: compares two traces.

mod json;
mod text;

use std::path::PathBuf;

use etl_events::missing::TraceNames;
use etl_format::read::{Options, Source, Trace};
use etl_schema::store::SchemaStore;
use etl_tools::Side;
use etl_tools::diff::{Change, Differ, Difference, Event, Ignore};

use crate::Outcome;
use crate::choice::item;
use crate::diagnostics::Condition;
use crate::error::Failure;
use crate::input::{self, Input, InputArgs};
use crate::missing;
use crate::output::{self, ReportFormat};
use crate::process_args::ProcessArgs;
use crate::progress::{Printing, Progress};
use crate::schemas::SchemaArgs;
use crate::threads::ThreadArgs;

/// Arguments of `etlkit diff`.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Events are aligned in time order: first equal events, then, between them, events of the same
identity and time. docs/diff.md describes the algorithm.

Values of --ignore:
  time             times of events, and fields that contain times
  ids              process and thread ids, of events and in fields
  addresses        stacks, pointers, and 64-bit fields that contain addresses
  processor        the processor that wrote an event
  activity         activity ids
  header           the header event; header:NAME ignores one of its fields
  field:NAME       a payload field
  provider:NAME    the events of a provider, by GUID or name

Exit codes: 0 no differences, 1 differences, or one of the traces is damaged or lacks buffers, 2
error (one of the files cannot be read).

Examples:
  etlkit diff before.etl after.etl
  etlkit diff monday.etl tuesday.etl --ignore time --ignore ids --ignore addresses --ignore header
  etlkit diff --process app.exe a.etl b.etl
  etlkit diff a.etl b.etl --format json | jq '.differences[] | select(.kind == \"missing\")'")]
pub(crate) struct Args {
    /// First trace; `-` is standard input
    #[arg(value_name = "A")]
    first: PathBuf,
    /// Second trace
    #[arg(value_name = "B")]
    second: PathBuf,
    /// Ignore these differences (see below); a list with commas, may be repeated
    #[arg(long, value_name = "WHAT", value_delimiter = ',', value_parser = item)]
    ignore: Vec<String>,
    /// Output format; docs/diff.md describes the JSON
    #[arg(long, value_enum, default_value_t)]
    format: ReportFormat,
    /// Print at most N changed, missing and extra events; all are counted
    #[arg(long, value_name = "N", default_value_t = 1000)]
    limit: u64,
    /// Compare up to N events of each trace where the traces differ
    #[arg(long, value_name = "N", default_value_t = Differ::DEFAULT_WINDOW,
        value_parser = window)]
    window: usize,
    #[command(flatten)]
    schemas: SchemaArgs,
    #[command(flatten)]
    processes: ProcessArgs,
    #[command(flatten)]
    threads: ThreadArgs,
    #[command(flatten)]
    input: InputArgs,
}

/// The events of a window are held in memory, so its size is limited.
fn window(text: &str) -> Result<usize, String> {
    match text.parse() {
        Ok(n @ 2..=1_000_000) => Ok(n),
        _ => Err("expected a number from 2 to 1000000".to_owned()),
    }
}

pub(crate) fn run(args: &Args) -> Result<Outcome, Failure> {
    if input::is_stdin(&args.first) && input::is_stdin(&args.second) {
        return Err(
            Failure::new("-", "only one of the two traces can be standard input")
                .hint("write the other trace to a file"),
        );
    }
    let store = args.schemas.store(&args.input)?;
    let ignore = ignore(args)?;
    let input = args.input.share(2);
    let mut first = Input::open(&args.first, &input)?;
    let mut second = Input::open(&args.second, &input)?;
    let limits = input.limits(first.size().saturating_add(second.size()));
    first.set_limits(limits);
    second.set_limits(limits);
    let filters = [
        args.processes.filter(&mut first)?,
        args.processes.filter(&mut second)?,
    ];
    let (mut first, about_first) = first.trace(&Options::salvage())?;
    let (mut second, about_second) = second.trace(&Options::salvage())?;
    let names = [about_first.name.as_str(), about_second.name.as_str()];
    let mut progress = Progress::of_trace(&first, 1, Printing::Nothing);
    let mut listed = Vec::new();
    let summary = Differ::new()
        .ignore(ignore)
        .select(filters)
        .window(args.window)
        .threads(args.threads.count())
        .schemas(store.clone())
        .on_record(move |record| progress.pass(record.bytes().len()))
        .run(&mut first, &mut second, |difference| {
            if (listed.len() as u64) < args.limit {
                listed.extend(ListedDifference::new(difference));
            }
        })
        .map_err(|error| {
            let [first_name, second_name] = names;
            let name = if error.side() == Side::SecondInput {
                second_name
            } else {
                first_name
            };
            Failure::trace(name, error.format_error())
        })?;
    let text = match args.format {
        ReportFormat::Json => json::render(names, &summary, &listed),
        ReportFormat::Text => {
            text::render(names, &summary, &listed, first.clock().start_time.get())
        }
    };
    output::ignore_broken_pipe(output::print_colored(&text))?;
    note_missing(args, &mut first, &mut second, &store);
    let [first_damage, second_damage] = &summary.damage;
    let [first_name, second_name] = names;
    let first = Condition::new(first.header(), first_damage, first.notes());
    let second = Condition::new(second.header(), second_damage, second.notes());
    let outcome = first.report(first_name).max(second.report(second_name));
    Ok(if summary.differs() {
        Outcome::Findings
    } else {
        outcome
    })
}

/// The values of --ignore.
fn ignore(args: &Args) -> Result<Ignore, Failure> {
    let mut ignore = Ignore::default();
    for value in &args.ignore {
        ignore.add(value).map_err(|_| {
            Failure::new(value, "unknown value of --ignore")
                .hint("`etlkit diff --help` lists the values; give an unknown provider by its GUID")
        })?;
    }
    Ok(ignore)
}

/// Notes the ignored fields that no event has.
fn note_missing<S: Source>(
    args: &Args,
    first: &mut Trace<S>,
    second: &mut Trace<S>,
    store: &SchemaStore,
) {
    let values = args.ignore.iter();
    let ignored: Vec<&str> = values
        .filter_map(|value| value.strip_prefix("field:"))
        .collect();
    if ignored.is_empty() {
        return;
    }
    let mut names = TraceNames::default();
    // The fields before an error are better than none.
    let _ = names.add_fields(first, store.clone());
    let _ = names.add_fields(second, store.clone());
    missing::note_fields("--ignore", &names.missing_members(ignored));
}

/// A difference between events that is printed.
struct ListedDifference {
    /// The event; of a changed event the one in the first trace.
    event: Event,
    kind: Kind,
}

enum Kind {
    Missing,
    Extra,
    Changed(Vec<Change>),
}

impl ListedDifference {
    fn new(difference: Difference<'_>) -> Option<Self> {
        let (event, kind) = match difference {
            Difference::Missing(event) => (event, Kind::Missing),
            Difference::Extra(event) => (event, Kind::Extra),
            Difference::Changed {
                before, changes, ..
            } => (before, Kind::Changed(changes.into())),
            _ => return None,
        };
        Some(ListedDifference {
            event: event.clone(),
            kind,
        })
    }
}
