//! Writes tables.

use std::collections::BTreeSet;
use std::io::{BufWriter, Write};
use std::path::{Path, PathBuf};

use etl_events::conditions::Conditions;
use etl_format::FileHeader;
use etl_format::read::{self, Damage, FileSource, Note};
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

/// The report about all traces.
#[derive(Debug, Serialize)]
struct Report {
    dataset: String,
    traces: Vec<TraceReport>,
}

/// The report about a trace.
#[derive(Debug, Serialize)]
struct TraceReport {
    file: String,
    /// Its name in the data set; none if it was there before.
    trace: Option<String>,
    rows: u64,
    bytes: u64,
}

/// A trace to add, with the hash of its content.
struct NewTrace {
    path: PathBuf,
    hash: Hash,
}

/// The result of adding a trace.
struct Addition {
    added: Added,
    /// The header and the notes of the trace, if it was read.
    condition: Option<ReadCondition>,
}

/// The condition of a trace by its own header and notes.
struct ReadCondition {
    header: FileHeader,
    notes: Vec<Note>,
    /// The damage, if the trace was read only to find it.
    damage: Vec<Damage>,
}

impl ReadCondition {
    fn of<S: read::Source>(trace: &read::Trace<S>) -> Self {
        ReadCondition {
            header: trace.header().clone(),
            notes: trace.notes().to_vec(),
            damage: Vec::new(),
        }
    }

    /// The condition of a trace that the data set contains already: it is read to its end.
    fn of_known(mut input: Input) -> Result<Self, Failure> {
        let salvage = read::Options::salvage();
        let (mut trace, about) = input.trace(&salvage)?;
        let mut condition = ReadCondition::of(&trace);
        condition.damage =
            read_damage(&mut trace).map_err(|error| Failure::trace(&about.name, &error))?;
        Ok(condition)
    }

    /// Reports the condition, with the damage that reading the records found.
    fn report(&self, name: &str, damage: &[Damage]) -> Outcome {
        let damage = if damage.is_empty() {
            &self.damage
        } else {
            damage
        };
        Condition::new(&self.header, damage, &self.notes).report(name)
    }
}

/// Reads all records, and returns the damage that is among them.
fn read_damage<S: read::Source>(trace: &mut read::Trace<S>) -> etl_format::Result<Vec<Damage>> {
    let mut records = trace.records(read::Order::File)?;
    while records.next_record()?.is_some() {}
    Ok(records.damage().to_vec())
}

pub(in super::super) fn parquet(args: &ParquetArgs) -> Result<Outcome, Failure> {
    let mut failures = Vec::new();
    let mut files = Vec::new();
    for found in trace_files::expand(&args.files, &args.input) {
        match found {
            Ok(path) if input::is_stdin(&path) || input::is_pipe(&path) => {
                return Err(Failure::new(
                    input::display(&path),
                    "is a pipe, and a trace of a data set is read twice",
                )
                .hint("write it to a file first"));
            }
            Ok(path) => files.push(path),
            Err(unreadable) => failures.push(unreadable.reason),
        }
    }
    if files.is_empty() && failures.is_empty() {
        return Err(trace_files::none_found());
    }
    let was_there = args.output.exists();
    let dataset = open(args)?;
    let (_, unfinished) = unfinished::create(|| Ok(dataset.unfinished()), |path| Some(path))?;
    let store = args.schemas.store(&args.input)?;
    let input = in_blocks(&args.input);
    let jobs = match args.jobs {
        Some(jobs) => usize::from(jobs),
        None => threads::processors(),
    };
    let jobs = jobs.min(files.len()).max(1);
    let new_traces = distinct(files, jobs, &input, &mut failures);
    for trace in &new_traces {
        // In the order of the files, so that the names do not depend on the jobs.
        dataset.name(&input::display(&trace.path), &trace.hash);
    }
    let additions = memory::map(
        &new_traces,
        jobs,
        |_| true,
        |trace, at_once| add(&dataset, trace, args, &store, &input.share(at_once)),
    );
    let mut outcome = Outcome::Success;
    let mut traces = Vec::new();
    for (trace, addition) in new_traces.iter().zip(additions) {
        match addition {
            Ok(addition) => {
                let file = input::display(&trace.path);
                outcome = outcome.max(report_addition(file, addition, &mut traces));
            }
            Err(failure) => failures.push(failure),
        }
    }
    if let Err(error) = dataset.finish() {
        failures.push(failure(&args.output.display().to_string(), &error));
    }
    drop(unfinished);
    if !was_there {
        // Succeeds only if it is empty: no trace could be added.
        let _ = std::fs::remove_dir(&args.output);
    }
    let report = Report {
        dataset: args.output.display().to_string(),
        traces,
    };
    print(&report, failures.len(), args.format)?;
    let last = failures.pop();
    failures.iter().for_each(Failure::print);
    match last {
        Some(failure) => Err(failure),
        None => Ok(outcome),
    }
}

/// The files with different contents. If several have the same content, the first one is used.
fn distinct(
    files: Vec<PathBuf>,
    jobs: usize,
    input: &InputArgs,
    failures: &mut Vec<Failure>,
) -> Vec<NewTrace> {
    let hashes = memory::map(
        &files,
        jobs,
        |_| true,
        |path, at_once| hash(path, input, at_once),
    );
    let mut seen = BTreeSet::new();
    let mut traces = Vec::new();
    for (path, hash) in files.into_iter().zip(hashes) {
        match hash {
            Ok(hash) if seen.insert(hash) => traces.push(NewTrace { path, hash }),
            Ok(_) => stderr_line!("note: {}: is there twice", input::display(&path)),
            Err(failure) => failures.push(failure),
        }
    }
    traces
}

/// Adds a trace to the report, and reports its condition.
fn report_addition(file: String, addition: Addition, traces: &mut Vec<TraceReport>) -> Outcome {
    let mut report = TraceReport {
        file,
        trace: None,
        rows: 0,
        bytes: 0,
    };
    let mut all_damage = Vec::new();
    if let Added::Written {
        trace,
        rows,
        bytes,
        damage,
    } = addition.added
    {
        report.trace = Some(trace);
        report.rows = rows;
        report.bytes = bytes;
        all_damage = damage;
    }
    let outcome = match addition.condition {
        Some(condition) => condition.report(&report.file, &all_damage),
        None => Outcome::Success,
    };
    traces.push(report);
    outcome
}

/// The same arguments, so that no file is mapped: mapped pages are memory of the process.
fn in_blocks(input: &InputArgs) -> InputArgs {
    let mut input = input.clone();
    input.no_mmap = true;
    input
}

/// Opens the data set with the options of the arguments.
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
            .hint("a data set is a directory: choose another name"));
    }
    let mut dataset = open_dataset(&args.output)?.codec(codec);
    if args.typed {
        dataset = dataset.typed_tables();
    }
    if args.by_provider {
        dataset = dataset.events_by_provider();
    }
    if !args.tables.is_empty() {
        dataset = dataset
            .tables(&args.tables)
            .map_err(|error| Failure::new("--tables", error.to_string()))?;
    }
    dataset
        .selection(selection_words(args)?.join(" "))
        .map_err(|error| failure(&name, &error))
}

/// Opens a data set, once no other process has it.
pub(in crate::commands) fn open_dataset(path: &Path) -> Result<Dataset, Failure> {
    let name = path.display().to_string();
    let opened = match Dataset::open(path) {
        Err(etl_tables::Error::Locked(_)) => {
            stderr_line!("note: {name}: another process writes to this data set; waiting for it");
            Dataset::open_when_free(path)
        }
        opened => opened,
    };
    opened.map_err(|error| failure(&name, &error))
}

/// The options that determine the rows. Files with definitions are included with the hash of their
/// content.
fn selection_words(args: &ParquetArgs) -> Result<Vec<String>, Failure> {
    let mut words = args.processes.words();
    if let Some(from) = &args.from {
        words.push(format!("--from {from}"));
    }
    if let Some(to) = &args.to {
        words.push(format!("--to {to}"));
    }
    if let Some(tables) = args.schemas.other_tables() {
        words.push(format!("--event-tables {tables}"));
    }
    for (option, path) in args.schemas.files()? {
        let name = input::display(&path);
        let file = FileSource::new(input::open_file(&path)?);
        let mut file = file.map_err(|error| Failure::io(&name, &error))?;
        let hash = dataset::hash(&mut file);
        let hash = hash
            .map_err(|error| Failure::io(&name, &error))?
            .to_string();
        let prefix = hash.get(..8).unwrap_or_default();
        words.push(format!("{option} {name} ({prefix})"));
    }
    Ok(words)
}

fn hash(path: &Path, input: &InputArgs, at_once: usize) -> Result<Hash, Failure> {
    let mut input = Input::open(path, &input.share(at_once))?;
    dataset::hash(&mut input.source()).map_err(|error| Failure::io(input::display(path), &error))
}

/// Adds a trace, unless the data set contains it.
fn add(
    dataset: &Dataset,
    new_trace: &NewTrace,
    args: &ParquetArgs,
    store: &SchemaStore,
    input: &InputArgs,
) -> Result<Addition, Failure> {
    if dataset.has(&new_trace.hash) {
        let known = ReadCondition::of_known(Input::open(&new_trace.path, input)?)?;
        return Ok(Addition {
            added: Added::Known,
            condition: Some(known),
        });
    }
    let mut input = Input::open(&new_trace.path, input)?;
    let mut selected = args.processes.filter(&mut input)?;
    let salvage = read::Options::salvage();
    let (trace, about) = input.trace(&salvage)?;
    let name = about.name.clone();
    selected.time = filter::range(args.from.as_deref(), args.to.as_deref(), &trace.clock())?;
    let condition = ReadCondition::of(&trace);
    drop(trace);
    let limits = input.limits();
    let options = Options::new(&name)
        .filter(selected)
        .store(store.clone())
        .limits(limits);
    let added = dataset
        .add(input.source(), &name, &new_trace.hash, options)
        .map_err(|error| failure(&name, &error))?;
    Ok(Addition {
        added,
        condition: Some(condition),
    })
}

fn failure(name: &str, error: &etl_tables::Error) -> Failure {
    match error {
        etl_tables::Error::File(path, error) => Failure::io(path, error),
        error => match error.trace_error() {
            Some(error) => Failure::trace(name, error),
            None => Failure::new(name, error.to_string()),
        },
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
    let traces = report.traces.iter();
    let new = traces.filter(|trace| trace.trace.is_some()).count();
    let all = report.traces.len() + failed;
    text += &format!("{}: {new} of {all} traces added\n", report.dataset);
    Ok(output::print(&text)?)
}

/// Tables whose rows have a thread.
const TABLES_WITH_THREADS: [&str; 18] = [
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
    "activities",
    "thread_waits",
    "wait_reasons",
    "wakers",
    "loads",
    "disk_operations",
    "large_objects",
];

/// Rejects options that select by threads or by headers of events if the rows of the table have
/// none: they would select nothing.
fn ensure_selection(args: &ArrowArgs) -> Result<(), Failure> {
    // The table of the events of one kind has no name of its own.
    let Some(table) = Table::named(&args.table) else {
        return Ok(());
    };
    if args.filter.has_threads() && !TABLES_WITH_THREADS.contains(&table.name) {
        let message = format!("the rows of the table {} have no thread", args.table);
        return Err(Failure::new("--tid", message).hint("use --process or --pid"));
    }
    let mut options = args.filter.header_options();
    if !args.event.is_empty() {
        options.push("--event");
    }
    match options.first() {
        Some(option) if table.name != "events" => {
            let message = format!("the rows of the table {} are not events", args.table);
            Err(Failure::new(*option, message)
                .hint("use --process, --pid, --from or --to; or the table events"))
        }
        _ => Ok(()),
    }
}

pub(in super::super) fn arrow(args: &ArrowArgs) -> Result<Outcome, Failure> {
    ensure_selection(args)?;
    let store = args.schemas.store(&args.input)?;
    let mut sink = Sink::create(&args.sink, "a table", [args.file.as_path()])?;
    let mut input = Input::open(&args.file, &in_blocks(&args.input))?;
    let processes = args.filter.processes(&mut input)?;
    let salvage = read::Options::salvage();
    let (mut trace, about) = input.trace(&salvage)?;
    let name = about.name.clone();
    let mut selected = args.filter.filter(&trace.clock(), &processes)?;
    let unknown = filter::learn_names(&mut selected, &mut trace, &store)
        .map_err(|error| Failure::trace(&name, &error))?;
    let condition = ReadCondition::of(&trace);
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
    let outcome = condition.report(&name, &damage);
    let mut missing = Outcome::Success;
    if rows == 0 {
        let selection = Selection {
            providers: args.filter.providers(),
            events: &args.event,
            conditions: &[],
        };
        let file = std::slice::from_ref(&args.file);
        missing = selection.report_missing(&store, &args.input, file);
    }
    if missing == Outcome::Success {
        filter::note_unknown(unknown);
    }
    Ok(outcome.max(missing))
}
