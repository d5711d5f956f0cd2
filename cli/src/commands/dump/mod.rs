//! `etlkit dump`: prints the events of a trace in time order.

mod parallel;

use std::path::PathBuf;

use clap::ValueEnum;
use etl_format::read::{
    Damage, FileOrder, Mode, Note, Options, OrderCheck, Ordered, PipeSource, Record, Source, Trace,
};
use etl_format::{Clock, Error};
use etl_schema::SchemaSource;
use etl_schema::sources::{manifest, tmf};
use etl_schema::store::SchemaStore;
use etl_tools::filter::Filter;
use etl_tools::rows::{self, Columns, RowWriter};

use crate::Outcome;
use crate::commands::spec::EventTables;
use crate::diagnostics;
use crate::error::Failure;
use crate::filter::{self, FilterArgs};
use crate::input::{self, Input, InputArgs, WithSource};
use crate::missing_header;
use crate::output::Output;
use crate::progress::Progress;
use crate::threads::ThreadArgs;

/// Arguments of `etlkit dump`.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Exit codes: 0 success, 1 the trace is damaged and its intact parts were printed, 2 error.

Examples:
  etlkit dump trace.etl --limit 20
  etlkit dump trace.etl --format jsonl -p Microsoft-Windows-DotNETRuntime --id 143
  etlkit dump trace.etl --format csv --pid 4711 --from 1.5 --to 2
  etlkit dump trace.etl --format csv -p PerfInfo --opcode 46 --columns time,cpu,InstructionPointer
  etlkit dump trace.etl --format xml > trace.xml
  cat trace.etl | etlkit dump - --file-order --raw")]
pub(crate) struct Args {
    /// Trace to read; `-` is standard input
    #[arg(value_name = "FILE")]
    file: PathBuf,
    /// Output format; docs/dump.md describes each
    #[arg(long, value_enum, default_value_t)]
    format: Format,
    /// Print records in the order of the file; standard input is then printed while it is read
    #[arg(long)]
    file_order: bool,
    /// Print payloads as hexadecimal digits
    #[arg(long)]
    raw: bool,
    /// Columns of the CSV: names of the default columns, of decoded fields, or `event`, `message`,
    /// `channel`, `related_activity`
    #[arg(long, value_name = "A,B,...", value_delimiter = ',')]
    columns: Vec<String>,
    /// Stop after N events
    #[arg(long, value_name = "N")]
    limit: Option<u64>,
    /// Stop at the first damage of the file, with exit code 2
    #[arg(long)]
    strict: bool,
    /// Definitions of the CLR events to use where the reference pages and the runtimes disagree
    #[arg(long, value_enum, value_name = "TABLES", default_value_t)]
    event_tables: EventTables,
    /// Decode events with this XML instrumentation manifest; may be repeated
    #[arg(long, value_name = "FILE")]
    manifest: Vec<PathBuf>,
    /// Decode WPP messages with this TMF file; may be repeated
    #[arg(long, value_name = "FILE")]
    tmf: Vec<PathBuf>,
    #[command(flatten)]
    threads: ThreadArgs,
    #[command(flatten)]
    filter: FilterArgs,
    #[command(flatten)]
    input: InputArgs,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub(crate) enum Format {
    /// One line per event
    #[default]
    Text,
    /// One JSON object per line
    #[value(alias = "json")]
    Jsonl,
    /// Comma-separated values with a header line (see --columns)
    Csv,
    /// An XML document of the Event schema, as tracerpt and wevtutil write it
    Xml,
}

impl From<Format> for rows::Format {
    fn from(format: Format) -> Self {
        match format {
            Format::Text => rows::Format::Text,
            Format::Jsonl => rows::Format::JsonLines,
            Format::Csv => rows::Format::Csv,
            Format::Xml => rows::Format::Xml,
        }
    }
}

pub(crate) fn run(args: &Args) -> Result<Outcome, Failure> {
    let name = input::display(&args.file);
    if args.file_order && input::is_stdin(&args.file) {
        let input::Stream { reader, head, from } = input::stdin_stream(&args.input)?;
        let failure = |e: &Error| unreadable(args, &name, e, &head).unpacked(from.as_deref());
        let source = PipeSource::new(reader);
        let mut records = FileOrder::open(source, &options(args)).map_err(|e| failure(&e))?;
        return Dump { args, name: &name }.file_order(&mut records);
    }
    Input::open(&args.file, &args.input)?.with(Dump { args, name: &name })
}

fn options(args: &Args) -> Options {
    let mode = if args.strict { Mode::Strict } else { Mode::Salvage };
    // Printed lines cannot be reordered: the order has to be known before the first one.
    let threads = args.threads.count();
    Options { mode, order: OrderCheck::Full, threads, ..Options::default() }
}

/// The failure of opening or reading a trace.
fn unreadable(args: &Args, name: &str, error: &Error, head: &[u8]) -> Failure {
    if args.strict {
        input::strict_failure(name, error, head)
    } else {
        input::not_a_trace(name, error, head)
    }
}

struct Dump<'a> {
    args: &'a Args,
    name: &'a str,
}

impl WithSource for Dump<'_> {
    type Output = Result<Outcome, Failure>;

    fn with<S: Source>(self, mut source: S) -> Self::Output {
        let options = options(self.args);
        if self.args.file_order {
            let mut records = FileOrder::open(&mut source, &options);
            if let Ok(records) = &mut records {
                return self.file_order(records);
            }
            let error = records.err();
            return Err(self.unreadable(error, &mut source));
        }
        match Trace::open(&mut source, &options) {
            Ok(mut trace) => {
                missing_header::ensure_records(self.name, &mut trace)?;
                self.ordered(&mut trace)
            }
            Err(error) => Err(self.unreadable(Some(error), &mut source)),
        }
    }
}

impl Dump<'_> {
    fn unreadable<S: Source>(&self, error: Option<Error>, source: &mut S) -> Failure {
        match error {
            Some(error) => unreadable(self.args, self.name, &error, &input::head(source)),
            None => Failure::new(self.name, "cannot read the trace"),
        }
    }

    fn file_order<S: Source>(&self, records: &mut FileOrder<S>) -> Result<Outcome, Failure> {
        // The size of a pipe is unknown.
        let start = |clock| Printer::new(self.args, &clock, 0);
        let has_header = records.header().is_known();
        let mut printer = if has_header { Some(start(records.clock())?) } else { None };
        while printer.as_ref().is_none_or(Printer::wants_more) {
            match (records.next_record(), &mut printer) {
                (Ok(Some(record)), Some(printer)) => printer.print(&record)?,
                // Without header event, times count from the first record.
                (Ok(Some(record)), None) => {
                    printer.insert(start(Clock::assumed(record.timestamp()))?).print(&record)?;
                }
                (Ok(None), _) => break,
                (Err(error), Some(printer)) => return printer.fail(self.name, &error),
                (Err(error), None) => return Err(Failure::trace(self.name, &error)),
            }
        }
        let Some(mut printer) = printer else {
            return Err(missing_header::no_records_error(self.name));
        };
        printer.finish()?;
        if !has_header {
            missing_header::warn(self.name);
        }
        Ok(self.warn(records.damage(), &[]))
    }

    fn ordered<S: Source>(&self, trace: &mut Trace<S>) -> Result<Outcome, Failure> {
        let used = trace.buffers().iter().map(|b| u64::from(b.fill)).sum();
        let mut printer = Printer::new(self.args, &trace.clock(), used)?;
        if printer.filter.has_unresolved_names()
            && let Ok(mut records) = trace.file_order()
        {
            printer.look_ahead(&mut records);
        }
        let mut records = match trace.ordered() {
            Ok(records) => records,
            Err(error) => return printer.fail(self.name, &error),
        };
        let threads = self.args.threads.count();
        // Threads format lines; with a limit there is too little to format.
        let end = if threads > 1 && self.args.limit.is_none() {
            parallel::print(&mut records, &mut printer, threads)?
        } else {
            printer.all(&mut records)?
        };
        match end {
            Some(error) => return printer.fail(self.name, &error),
            None => printer.finish()?,
        }
        let (report, outcome) = (records.report(), self.warn(records.damage(), &[]));
        if !report.was_in_order() {
            stderr_line!(
                "note: {}: the file is not in time order: {} buffers sorted, {} overlaps",
                self.name,
                report.sorted_buffers,
                report.overlaps
            );
        }
        missing_header::warn_if_missing(self.name, trace);
        self.warn(&[], trace.notes());
        Ok(outcome)
    }

    /// Reports damage and losses on standard error.
    fn warn(&self, damage: &[Damage], notes: &[Note]) -> Outcome {
        diagnostics::warn(self.name, damage);
        for note in notes {
            if let Note::EventsLost(_) | Note::BuffersLost(_) | Note::Unclosed = note {
                stderr_line!("note: {}: {note}", self.name);
            }
        }
        if damage.is_empty() { Outcome::Success } else { Outcome::Findings }
    }
}

/// The columns of the CSV.
fn columns(args: &Args) -> Result<Columns, Failure> {
    if args.columns.is_empty() {
        return Ok(Columns::default());
    }
    if args.format != Format::Csv {
        return Err(Failure::new("--columns", "needs the CSV format").hint("add --format csv"));
    }
    Columns::new(&args.columns).map_err(|e| Failure::new("--columns", e.to_string()))
}

/// The schemas of the tables, and of the manifests and TMF files of the user.
fn store(args: &Args) -> Result<SchemaStore, Failure> {
    const MANIFEST: &str =
        "name an instrumentation manifest: the XML (.man, .xml) that a provider is compiled from";
    const TMF: &str = "name a TMF file; tracepdb extracts them from a PDB";
    let mut store = SchemaStore::default().with_tables(args.event_tables.into());
    let read = |path: &PathBuf, hint: &str| {
        let bytes = input::read_all(path).map_err(|failure| failure.hint(hint))?;
        let name = input::display(path);
        match input::binary_format(&bytes) {
            Some(what) => Err(Failure::new(name, format!("this is {what}, not text")).hint(hint)),
            None => Ok((text_of(&bytes), name)),
        }
    };
    for path in &args.manifest {
        let (text, name) = read(path, MANIFEST)?;
        let schemas = manifest::parse(&text, SchemaSource::Manifest)
            .map_err(|e| Failure::new(name, e.to_string()).hint(MANIFEST))?;
        store.add_schemas(schemas);
    }
    for path in &args.tmf {
        let (text, name) = read(path, TMF)?;
        let tmf = tmf::parse(&text).map_err(|e| Failure::new(&name, e.to_string()).hint(TMF))?;
        for note in tmf.notes {
            stderr_line!(
                "note: {name}: line {}: unknown type {}; the message shows bytes from there on",
                note.line,
                note.item
            );
        }
        store.add_schemas(tmf.schemas);
    }
    Ok(store)
}

/// Text in UTF-8, or in UTF-16 with a byte order mark, as Windows tools write it.
fn text_of(bytes: &[u8]) -> String {
    let units = |rest: &[u8], from: fn([u8; 2]) -> u16| {
        let units: Vec<_> = rest.as_chunks().0.iter().map(|&unit| from(unit)).collect();
        String::from_utf16_lossy(&units)
    };
    match bytes {
        [0xff, 0xfe, rest @ ..] => units(rest, u16::from_le_bytes),
        [0xfe, 0xff, rest @ ..] => units(rest, u16::from_be_bytes),
        [0xef, 0xbb, 0xbf, rest @ ..] => String::from_utf8_lossy(rest).into_owned(),
        _ => String::from_utf8_lossy(bytes).into_owned(),
    }
}

/// Prints the selected records.
struct Printer {
    filter: Filter,
    rows: RowWriter,
    out: Output,
    left: u64,
    progress: Progress,
    strict: bool,
}

impl Printer {
    fn new(args: &Args, clock: &Clock, total: u64) -> Result<Self, Failure> {
        let mut out = Output::new();
        let rows = RowWriter::new(args.format.into(), *clock, store(args)?)
            .payload_bytes(args.raw)
            .columns(columns(args)?);
        rows.begin(&mut out.buffer);
        let mut filter = args.filter.filter(clock)?;
        filter.learn_names(rows.store());
        Ok(Printer {
            filter,
            rows,
            out,
            left: args.limit.unwrap_or(u64::MAX),
            strict: args.strict,
            progress: Progress::new(total, true),
        })
    }

    /// Reads the whole trace for names of providers: they may be at its end.
    fn look_ahead<S: Source>(&mut self, records: &mut FileOrder<S>) {
        filter::learn_names(&mut self.filter, records, self.rows.store());
    }

    fn wants_more(&self) -> bool {
        self.left > 0
    }

    #[inline]
    fn print(&mut self, record: &Record<'_>) -> Result<(), Failure> {
        self.progress.pass(record.bytes().len());
        self.rows.learn(record);
        if self.rows.write_if(&self.filter, &mut self.out.buffer, record) {
            self.left -= 1;
            self.out.flush_if_large()?;
        }
        Ok(())
    }

    /// Prints the remaining records, up to the limit. Returns the error that ended reading, if any.
    fn all<S: Source>(&mut self, records: &mut Ordered<S>) -> Result<Option<Error>, Failure> {
        while self.wants_more() {
            match records.next_record() {
                Ok(Some(record)) => self.print(&record)?,
                Ok(None) => break,
                Err(error) => return Ok(Some(error)),
            }
        }
        Ok(None)
    }

    fn finish(&mut self) -> Result<(), Failure> {
        self.rows.end(&mut self.out.buffer);
        self.out.flush()?;
        for column in self.rows.columns_without_values() {
            stderr_line!("note: no printed event has a field {column}");
        }
        Ok(())
    }

    /// Finishes the output, then returns the failure.
    fn fail(&mut self, name: &str, error: &Error) -> Result<Outcome, Failure> {
        self.finish()?;
        Err(if self.strict {
            input::strict_failure(name, error, &[])
        } else {
            Failure::trace(name, error)
        })
    }
}
