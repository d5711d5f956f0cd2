//! `etlkit dump`: the events of a trace, in time order.

mod columns;
mod facts;
mod lines;
mod together;
mod xml;

use std::path::PathBuf;

use clap::ValueEnum;
use etl_format::read::{
    Damage, FileOrder, Mode, Note, Options, OrderCheck, Ordered, PipeSource, Record, Source, Trace,
};
use etl_format::{Clock, Error};
use etl_schema::SchemaSource;
use etl_schema::sources::{manifest, tmf};
use etl_schema::store::SchemaStore;

use crate::Outcome;
use crate::commands::spec::ProfileArg;
use crate::error::Failure;
use crate::filter::{Filter, FilterArgs};
use crate::headless;
use crate::input::{self, Input, InputArgs, WithSource};
use crate::output::Output;
use crate::problem;
use crate::progress::Progress;
use crate::threads::ThreadArgs;

use columns::Columns;
use lines::Lines;

/// Arguments of `etlkit dump`.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Exit codes: 0 fine, 1 the trace is damaged and was dumped as far as possible, 2 not readable.

Examples:
  etlkit dump trace.etl --limit 20
  etlkit dump trace.etl --format jsonl -p Microsoft-Windows-DotNETRuntime --id 143
  etlkit dump trace.etl --format csv --pid 4711 --from 1.5 --to 2
  etlkit dump trace.etl --format csv -p PerfInfo --opcode 46 --columns time,cpu,InstructionPointer
  etlkit dump trace.etl --format xml > trace.xml
  cat trace.etl | etlkit dump - --file-order --raw")]
pub(crate) struct Args {
    /// The trace; `-` reads standard input
    #[arg(value_name = "FILE")]
    file: PathBuf,
    /// How to print
    #[arg(long, value_enum, default_value_t)]
    format: Format,
    /// Print records as they stand in the file; then standard input is read as it comes
    #[arg(long)]
    file_order: bool,
    /// Print payloads as hexadecimal digits
    #[arg(long)]
    raw: bool,
    /// Columns of CSV, in this order: those of the header line, `event`, `message`, `channel`,
    /// `related_activity`, and names of decoded fields
    #[arg(long, value_name = "A,B,...", value_delimiter = ',')]
    columns: Vec<String>,
    /// Stop after this many events
    #[arg(long, value_name = "N")]
    limit: Option<u64>,
    /// Stop at the first fault of the file, with exit code 2
    #[arg(long)]
    strict: bool,
    /// Whose word counts where reference pages and runtimes disagree about the CLR's events
    #[arg(long, value_enum, default_value_t)]
    profile: ProfileArg,
    /// Describe events by this XML instrumentation manifest. May be given more than once
    #[arg(long, value_name = "FILE")]
    manifest: Vec<PathBuf>,
    /// Describe WPP messages by this TMF text. May be given more than once
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
    /// One line per event, for people
    #[default]
    Text,
    /// One JSON object per line; see docs/dump.md
    #[value(alias = "json")]
    Jsonl,
    /// Comma-separated values with a header line; see `--columns`
    Csv,
    /// A document of the Event schema, as tracerpt and wevtutil write it
    Xml,
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
    // What is printed cannot be taken back, so the order must be sure before the first line.
    let threads = args.threads.count();
    Options { mode, order: OrderCheck::Full, threads, ..Options::default() }
}

/// The failure of opening a trace, or of reading on in it.
fn unreadable(args: &Args, name: &str, error: &Error, head: &[u8]) -> Failure {
    if args.strict {
        input::not_whole(name, error, head)
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
                headless::something(self.name, &mut trace)?;
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
            None => Failure::new(self.name, "cannot be read"),
        }
    }

    fn file_order<S: Source>(&self, records: &mut FileOrder<S>) -> Result<Outcome, Failure> {
        // How much is to come is not known of a pipe.
        let start = |clock| Printer::new(self.args, &clock, 0);
        let known = records.header().is_known();
        let mut printer = if known { Some(start(records.clock())?) } else { None };
        while printer.as_ref().is_none_or(Printer::wants_more) {
            match (records.next_record(), &mut printer) {
                (Ok(Some(record)), Some(printer)) => printer.print(&record)?,
                // Without a header event times count from the first record.
                (Ok(Some(record)), None) => {
                    printer.insert(start(Clock::assumed(record.timestamp()))?).print(&record)?;
                }
                (Ok(None), _) => break,
                (Err(error), Some(printer)) => return printer.fail(self.name, &error),
                (Err(error), None) => return Err(Failure::trace(self.name, &error)),
            }
        }
        let Some(mut printer) = printer else { return Err(headless::nothing(self.name)) };
        printer.finish()?;
        if !known {
            tell!("warning: {}: {}", crate::escape::Printable(self.name), headless::LOST);
        }
        Ok(self.complain(records.damage(), &[]))
    }

    fn ordered<S: Source>(&self, trace: &mut Trace<S>) -> Result<Outcome, Failure> {
        let used = trace.buffers().iter().map(|b| u64::from(b.fill)).sum();
        let mut printer = Printer::new(self.args, &trace.clock(), used)?;
        if printer.filter.asks_for_names()
            && let Ok(mut records) = trace.file_order()
        {
            printer.look_ahead(&mut records);
        }
        let mut records = match trace.ordered() {
            Ok(records) => records,
            Err(error) => return printer.fail(self.name, &error),
        };
        let threads = self.args.threads.count();
        // Most of the work is writing lines. Where only so many are wanted, they are soon written.
        let end = if threads > 1 && self.args.limit.is_none() {
            together::print(&mut records, &mut printer, threads)?
        } else {
            printer.all(&mut records)?
        };
        match end {
            Some(error) => return printer.fail(self.name, &error),
            None => printer.finish()?,
        }
        let (report, outcome) = (records.report(), self.complain(records.damage(), &[]));
        if !report.was_in_order() {
            tell!(
                "note: {}: not in time order by itself: {} buffers sorted, {} overlaps",
                crate::escape::Printable(self.name),
                report.sorted_buffers,
                report.overlaps
            );
        }
        headless::warn(self.name, trace);
        self.complain(&[], trace.notes());
        Ok(outcome)
    }

    /// Tells of damage on standard error.
    fn complain(&self, damage: &[Damage], notes: &[Note]) -> Outcome {
        problem::warn(self.name, damage);
        let name = crate::escape::Printable(self.name);
        for note in notes {
            if let Note::EventsLost(_) | Note::BuffersLost(_) | Note::Unclosed = note {
                tell!("note: {name}: {note}");
            }
        }
        if damage.is_empty() { Outcome::Fine } else { Outcome::Findings }
    }
}

/// The columns of CSV.
fn columns(args: &Args) -> Result<Columns, Failure> {
    if args.columns.is_empty() {
        return Ok(Columns::default());
    }
    if args.format != Format::Csv {
        return Err(Failure::new("--columns", "only CSV has columns").hint("add --format csv"));
    }
    Columns::new(&args.columns).map_err(|why| Failure::new("--columns", why))
}

/// The tables, and what the files that were named describe.
fn store(args: &Args) -> Result<SchemaStore, Failure> {
    const MANIFEST: &str = "a manifest is the XML that a provider is built from (.man, .xml)";
    const TMF: &str = "tracepdb makes TMF files from a PDB";
    let mut store = SchemaStore::default().with_profile(args.profile.into());
    let read = |path: &PathBuf, hint: &str| {
        let bytes = input::read_all(path).map_err(|failure| failure.hint(hint))?;
        let name = input::display(path);
        match input::no_text(&bytes) {
            Some(what) => Err(Failure::new(name, format!("this is {what}, not text")).hint(hint)),
            None => Ok((text_of(&bytes), name)),
        }
    };
    for path in &args.manifest {
        let (text, name) = read(path, MANIFEST)?;
        let schemas = manifest::parse(&text, SchemaSource::Manifest)
            .map_err(|e| Failure::new(name, e.to_string()).hint(MANIFEST))?;
        store.give(schemas);
    }
    for path in &args.tmf {
        let (text, name) = read(path, TMF)?;
        let tmf = tmf::parse(&text).map_err(|e| Failure::new(&name, e.to_string()).hint(TMF))?;
        for note in tmf.notes {
            tell!(
                "note: {}: line {}: the type {} is not known; its message shows bytes from there on",
                crate::escape::Printable(&name),
                note.line,
                crate::escape::Printable(&note.item)
            );
        }
        store.give(tmf.schemas);
    }
    Ok(store)
}

/// Text in UTF-8, or in UTF-16 with a byte order mark, as Windows' tools write it.
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

/// Prints the records that were asked for.
struct Printer {
    filter: Filter,
    lines: Lines,
    out: Output,
    left: u64,
    progress: Progress,
    strict: bool,
}

impl Printer {
    fn new(args: &Args, clock: &Clock, total: u64) -> Result<Self, Failure> {
        let mut out = Output::new();
        let columns = columns(args)?;
        let lines = Lines::new(args.format, args.raw, columns, *clock, store(args)?);
        lines.header(&mut out.buffer);
        let mut filter = args.filter.compile(clock)?;
        filter.learn_names(&lines.store);
        Ok(Printer {
            filter,
            lines,
            out,
            left: args.limit.unwrap_or(u64::MAX),
            strict: args.strict,
            progress: Progress::new(total, true),
        })
    }

    /// Reads the trace once for the names of its providers: some tell theirs at the end.
    fn look_ahead<S: Source>(&mut self, records: &mut FileOrder<S>) {
        self.filter.look_ahead(records, &self.lines.store);
    }

    fn wants_more(&self) -> bool {
        self.left > 0
    }

    #[inline]
    fn print(&mut self, record: &Record<'_>) -> Result<(), Failure> {
        self.progress.pass(record.bytes().len());
        self.lines.learn(record);
        if self.lines.line_if(&self.filter, &mut self.out.buffer, record) {
            self.left -= 1;
            self.out.settle()?;
        }
        Ok(())
    }

    /// Prints all records that are left, as many as are wanted. Returns what ended the reading.
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
        self.lines.footer(&mut self.out.buffer);
        self.out.flush()?;
        for column in self.lines.columns_without_values() {
            tell!(
                "note: no event that was printed has a field {}",
                crate::escape::Printable(column)
            );
        }
        Ok(())
    }

    /// What was printed so far stands; then the fault.
    fn fail(&mut self, name: &str, error: &Error) -> Result<Outcome, Failure> {
        self.finish()?;
        Err(if self.strict {
            input::not_whole(name, error, &[])
        } else {
            Failure::trace(name, error)
        })
    }
}
