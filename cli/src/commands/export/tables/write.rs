//! Writes tables.

use std::collections::BTreeMap;
use std::io::{BufWriter, Write};
use std::iter;
use std::path::{Path, PathBuf};

use etl_events::conditions::Conditions;
use etl_format::FileHeader;
use etl_format::read::{self, Note};
use etl_schema::store::SchemaStore;
use etl_tables::Options;
use etl_tables::dataset::{self, Added, Codec, Dataset, Hash};
use etl_tables::ipc::{self, Written};
use etl_tables::tables::Table;
use serde::Serialize;

use super::{ArrowArgs, ParquetArgs};
use crate::Outcome;
use crate::diagnostics::Condition;
use crate::error::Failure;
use crate::filter;
use crate::input::{self, Input, InputArgs};
use crate::memory;
use crate::missing::Selection;
use crate::output::{self, ReportFormat};
use crate::sink::Sink;
use crate::threads;
use crate::trace_files;
use crate::unfinished;

/// What became of the traces.
#[derive(Debug, Serialize)]
struct Report {
    dataset: String,
    traces: Vec<TraceReport>,
}

/// What became of a trace.
#[derive(Debug, Serialize)]
struct TraceReport {
    file: String,
    /// Its name in the data set; none where it was there before.
    trace: Option<String>,
    rows: u64,
    bytes: u64,
}

/// What a trace says of its own condition.
type Facts = (FileHeader, Vec<Note>);

pub(in super::super) fn parquet(args: &ParquetArgs) -> Result<Outcome, Failure> {
    let mut failures = Vec::new();
    let mut files = Vec::new();
    for found in trace_files::expand(&args.files, &args.input) {
        match found {
            Ok(path) if input::is_stdin(&path) => {
                return Err(
                    Failure::new(input::display(&path), "cannot be added to a data set")
                        .hint("write it to a file first"),
                );
            }
            Ok(path) => files.push(path),
            Err((_, failure)) => failures.push(failure),
        }
    }
    if files.is_empty() && failures.is_empty() {
        return Err(trace_files::none_found());
    }
    let was_there = args.output.exists();
    let dataset = open(args)?;
    let (_, unfinished) = unfinished::create(|| Ok(dataset.unfinished()), PathBuf::as_path)?;
    let store = args.schemas.store()?;
    let input = in_blocks(&args.input);
    let jobs = args
        .jobs
        .map_or_else(threads::processors, usize::from)
        .min(files.len())
        .max(1);
    let hashes = memory::map(
        &files,
        jobs,
        |_| true,
        |path, at_once| hash(path, &input, at_once),
    );
    // Of several files with the same content, the first one counts.
    let (mut firsts, mut work) = (BTreeMap::new(), Vec::new());
    for (path, hash) in files.iter().zip(hashes) {
        match hash {
            Ok(hash) if firsts.insert(hash, path).is_none() => work.push((path, hash)),
            Ok(_) => stderr_line!("note: {}: is there twice", input::display(path)),
            Err(failure) => failures.push(failure),
        }
    }
    let added = memory::map(
        &work,
        jobs,
        |_| true,
        |(path, hash), at_once| {
            let share = input.share(at_once);
            add(&dataset, (path, hash), args, &store, &share)
        },
    );
    let mut outcome = Outcome::Success;
    let mut report = Report {
        dataset: args.output.display().to_string(),
        traces: Vec::new(),
    };
    for ((path, _), added) in work.iter().zip(added) {
        let file = input::display(path);
        let (added, facts) = match added {
            Ok(added) => added,
            Err(failure) => {
                failures.push(failure);
                continue;
            }
        };
        let (trace, damage) = match added {
            Added::Written {
                trace,
                rows,
                bytes,
                damage,
            } => (
                TraceReport {
                    file,
                    trace: Some(trace),
                    rows,
                    bytes,
                },
                damage,
            ),
            _ => (
                TraceReport {
                    file,
                    trace: None,
                    rows: 0,
                    bytes: 0,
                },
                Vec::new(),
            ),
        };
        if let Some((header, notes)) = facts {
            let condition = Condition::new(&header, &damage, &notes);
            outcome = outcome.max(condition.report(&trace.file));
        }
        report.traces.push(trace);
    }
    dataset.finish();
    drop(unfinished);
    if !was_there {
        // It stays unless it is empty: no trace could be added.
        let _ = std::fs::remove_dir(&args.output);
    }
    print(&report, failures.len(), args.format)?;
    let last = failures.pop();
    failures.iter().for_each(Failure::print);
    last.map_or(Ok(outcome), Err)
}

/// The same arguments, such that no file is mapped: it would count as memory of the process.
fn in_blocks(input: &InputArgs) -> InputArgs {
    let mut input = input.clone();
    input.no_mmap = true;
    input
}

/// The data set, as the arguments want it.
fn open(args: &ParquetArgs) -> Result<Dataset, Failure> {
    let codec = match args.codec.as_str() {
        "snappy" => Codec::Snappy,
        "none" => Codec::None,
        #[cfg(feature = "zstd")]
        "zstd" => Codec::Zstd,
        other => {
            return Err(
                Failure::new(format!("--codec {other}"), "this etlkit has no such codec")
                    .hint("choose snappy or none; `--features zstd` builds one with zstd"),
            );
        }
    };
    let name = args.output.display().to_string();
    if args.output.is_file() {
        return Err(Failure::new(&name, "this is a file")
            .hint("a data set is a directory: name another one"));
    }
    let failed = |error: etl_tables::Error| failure(&name, &error);
    let dataset = Dataset::open(&args.output).map_err(failed)?;
    let mut dataset = dataset.codec(codec);
    if args.typed {
        dataset = dataset.typed_tables();
    }
    if args.by_provider {
        dataset = dataset.events_by_provider();
    }
    if !args.tables.is_empty() {
        let unknown = |error: etl_tables::Error| Failure::new("--tables", error.to_string());
        dataset = dataset.tables(&args.tables).map_err(unknown)?;
    }
    let mut words: Vec<String> = args.processes.words();
    let times = [("--from", &args.from), ("--to", &args.to)];
    words.extend(
        times
            .iter()
            .filter_map(|(name, time)| Some(format!("{name} {}", (*time).as_ref()?))),
    );
    words.extend(definitions(args)?);
    dataset.selection(words.join(" ")).map_err(failed)
}

/// What events are decoded with: files count by their content.
fn definitions(args: &ParquetArgs) -> Result<Vec<String>, Failure> {
    let mut words = Vec::new();
    words.extend(
        args.schemas
            .other_tables()
            .map(|tables| format!("--event-tables {tables}")),
    );
    for (option, path) in args.schemas.files()? {
        let name = input::display(&path);
        let bytes = input::read_all(&path)?;
        let hash = dataset::hash(&mut bytes.as_slice())
            .map_err(|error| Failure::io(&name, &error))?
            .to_string();
        words.push(format!(
            "{option} {name} ({})",
            hash.get(..8).unwrap_or_default()
        ));
    }
    Ok(words)
}

fn hash(path: &Path, input: &InputArgs, at_once: usize) -> Result<Hash, Failure> {
    let mut input = Input::open(path, &input.share(at_once))?;
    dataset::hash(&mut input.source()).map_err(|error| Failure::io(input::display(path), &error))
}

/// Adds a trace; with what it says of its condition, if it was read.
fn add(
    dataset: &Dataset,
    (path, hash): (&PathBuf, &Hash),
    args: &ParquetArgs,
    store: &SchemaStore,
    input: &InputArgs,
) -> Result<(Added, Option<Facts>), Failure> {
    if dataset.has(hash) {
        return Ok((Added::Known, None));
    }
    let mut input = Input::open(path, input)?;
    let mut selected = args.processes.filter(&mut input)?;
    let salvage = read::Options::salvage();
    let (trace, about) = input.trace(&salvage)?;
    let name = about.name.clone();
    let (from, to) = (args.from.as_deref(), args.to.as_deref());
    selected.time = filter::span(from, to, &trace.clock())?;
    let facts = (trace.header().clone(), trace.notes().to_vec());
    drop(trace);
    let limits = input.limits();
    let options = Options::new(&name)
        .filter(selected)
        .store(store.clone())
        .limits(limits);
    let added = dataset
        .add(input.source(), &name, hash, options)
        .map_err(|error| failure(&name, &error))?;
    Ok((added, Some(facts)))
}

fn failure(name: &str, error: &etl_tables::Error) -> Failure {
    match error {
        etl_tables::Error::Trace(error) => Failure::trace(name, error),
        etl_tables::Error::File(path, error) => Failure::io(path, error),
        error => Failure::new(name, error.to_string()),
    }
}

fn print(report: &Report, failed: usize, format: ReportFormat) -> Result<(), Failure> {
    if format == ReportFormat::Json {
        return Ok(output::print(&output::json(report))?);
    }
    let mut text = String::new();
    for TraceReport {
        file,
        trace,
        rows,
        bytes,
    } in &report.traces
    {
        let what = match trace {
            Some(trace) => format!("{rows} rows, {}, as {trace}", output::size(*bytes)),
            None => "in the data set already".to_owned(),
        };
        text += &format!("{file}: {what}\n");
    }
    let new = report
        .traces
        .iter()
        .filter(|trace| trace.trace.is_some())
        .count();
    let all = report.traces.len() + failed;
    text += &format!("{}: {new} of {all} traces added\n", report.dataset);
    Ok(output::print(&text)?)
}

/// Tables whose rows have a thread.
const OF_THREADS: [&str; 16] = [
    "events",
    "threads",
    "samples",
    "event_stacks",
    "context_switches",
    "packets",
    "gcs",
    "gc_heaps",
    "compilations",
    "exceptions",
    "lock_waits",
    "thread_waits",
    "wait_reasons",
    "wakers",
    "loads",
    "disk_operations",
];

/// Rows of the tables about the machine are no events, and few have a thread: such options would
/// select nothing of them.
fn ensure_selection(args: &ArrowArgs) -> Result<(), Failure> {
    let is_of_events = Table::named(&args.table).is_none_or(|table| table.name == "events");
    let by_name = (!args.event.is_empty()).then_some("--event");
    let is_of_threads = Table::named(&args.table).is_none_or(|t| OF_THREADS.contains(&t.name));
    if args.filter.has_threads() && !is_of_threads {
        let message = format!("the rows of the table {} are of no thread", args.table);
        return Err(Failure::new("--tid", message).hint("use --process or --pid"));
    }
    match args.filter.options_of_headers().chain(by_name).next() {
        Some(option) if !is_of_events => {
            let message = format!("the rows of the table {} are no events", args.table);
            Err(Failure::new(option, message)
                .hint("use --process, --pid, --from or --to; or the table events"))
        }
        _ => Ok(()),
    }
}

pub(in super::super) fn arrow(args: &ArrowArgs) -> Result<Outcome, Failure> {
    ensure_selection(args)?;
    let mut sink = Sink::create(&args.sink, "a table", [args.file.as_path()])?;
    let mut input = Input::open(&args.file, &in_blocks(&args.input))?;
    let processes = args.filter.processes(&mut input)?;
    let salvage = read::Options::salvage();
    let store = args.schemas.store()?;
    let (mut trace, about) = input.trace(&salvage)?;
    let name = about.name.clone();
    let mut selected = args.filter.filter(&trace.clock(), &processes)?;
    let unknown = filter::learn_names(&mut selected, &mut trace, &store)
        .map_err(|error| Failure::trace(&name, &error))?;
    let (header, notes) = (trace.header().clone(), trace.notes().to_vec());
    drop(trace);
    let events = Conditions::new(&args.event, &[], &[])
        .map_err(|error| Failure::new("--event", error.to_string()))?;
    let limits = input.limits();
    let mut options = Options::new(etl_format::file_name(&name))
        .columns(&args.columns)
        .filter(selected)
        .events(events)
        .store(store.clone())
        .limits(limits)
        .threads(args.threads.count());
    if args.no_names {
        options = options.without_names();
    }
    let to = sink.name().to_owned();
    let is_stream = sink.is_stream() || Path::new(&to).extension().is_some_and(|e| e == "arrows");
    let form = if is_stream {
        ipc::Form::Stream
    } else {
        ipc::Form::File
    };
    let mut out = BufWriter::new(sink.file());
    let Written { rows, damage, .. } =
        ipc::write(input.source(), &args.table, options, form, &mut out).map_err(|error| {
            match &error {
                etl_tables::Error::Output(error) => Failure::io(&to, error),
                error => failure(&name, error),
            }
        })?;
    out.flush().map_err(|error| Failure::io(&to, &error))?;
    drop(out);
    sink.finish(&format!("{to}: {rows} rows of {}\n", args.table))?;
    let outcome = Condition::new(&header, &damage, &notes).report(&name);
    let mut missing = Outcome::Success;
    if rows == 0 {
        let (providers, events) = (args.filter.providers(), args.event.as_slice());
        let selection = Selection {
            providers,
            events,
            conditions: &[],
        };
        missing = selection.report_missing(&store, &args.input, iter::once(&args.file));
    }
    if missing == Outcome::Success {
        filter::note_unknown(unknown);
    }
    Ok(outcome.max(missing))
}
