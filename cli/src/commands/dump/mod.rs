//! `etlkit dump`: prints the events of a trace in time order.

mod columns;
mod context;
mod lines;
mod merged;
mod parallel;
mod printer;

use std::path::{Path, PathBuf};

use etl_events::context::Context;
use etl_events::filter::Filter;
use etl_events::input::Head;
use etl_events::rows::Format;
use etl_format::Clock;
use etl_format::read::{Mode, Options, Order, OrderCheck, PipeSource, Records, Source, Trace};
use etl_schema::store::SchemaStore;

use crate::Outcome;
use crate::choice::{Choice, item, one_of};
use crate::diagnostics::Condition;
use crate::error::Failure;
use crate::filter::{self, FilterArgs};
use crate::input::{self, About, Input, InputArgs};
use crate::missing::Selection;
use crate::progress::{Printing, Progress};
use crate::schemas::SchemaArgs;
use crate::symbols::SymbolArgs;
use crate::threads::ThreadArgs;
use crate::trace_files;

use context::Before;
use merged::Merged;
use printer::{Printed, Printer, Session};

/// Arguments of `etlkit dump`.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Exit codes: 0 success; 1 a trace is damaged or lacks buffers (its intact part was printed), or no
trace has a selected provider, event or field; 2 error.

Examples:
  etlkit dump trace.etl --limit 20
  etlkit dump trace.etl --format jsonl -p Microsoft-Windows-DotNETRuntime --id 143
  etlkit dump trace.etl --format csv --pid 4711 --from 1.5 --to 2
  etlkit dump trace.etl --format csv -p PerfInfo --opcode 46 --columns time,cpu,InstructionPointer
  etlkit dump trace.etl --event 'Image*' --where 'FileName ~ *\\ntdll.dll'
  etlkit dump traces/ --count --grep denied
  etlkit dump trace.etl --event Stack --resolve --symbols bin/Release
  etlkit dump trace.etl --format xml > trace.xml
  cat trace.etl | etlkit dump - --file-order --raw")]
pub(crate) struct Args {
    /// Traces to read, or directories with traces; `-` is standard input
    #[arg(value_name = "FILE", required = true)]
    files: Vec<PathBuf>,
    /// Output format; docs/dump.md describes each
    #[arg(long, value_parser = one_of(FORMATS), default_value = "text")]
    format: Format,
    /// Print records in the order of the file; standard input is then printed while it is read
    #[arg(long)]
    file_order: bool,
    /// Print payloads as hexadecimal digits
    #[arg(long)]
    raw: bool,
    /// Columns of the CSV: names of the default columns, of decoded fields, or `channel`,
    /// `related_activity`
    #[arg(long, value_name = "A,B,...", value_delimiter = ',', value_parser = item)]
    columns: Vec<String>,
    /// Print the events of several traces together, in time order
    #[arg(long, conflicts_with = "file_order")]
    merge: bool,
    /// Print times as seconds since the start of the session
    #[arg(long)]
    relative: bool,
    /// Keep the devices of volumes in paths (`\Device\HarddiskVolume2`) even if the trace contains
    /// their drives
    #[arg(long)]
    raw_paths: bool,
    /// Print ids and paths as they are, without the names of processes and threads and the drives
    /// of volumes. With --file-order, the trace is then read only once
    #[arg(long, conflicts_with = "resolve")]
    no_names: bool,
    /// Name the code at addresses: a method of a module, or an image; with --symbols the function
    /// in the image
    #[arg(long)]
    resolve: bool,
    #[command(flatten)]
    symbols: SymbolArgs,
    /// Print the number of selected events instead of the events
    #[arg(long, conflicts_with = "limit")]
    count: bool,
    /// Include stale records: a merge left them in the first buffer, and another buffer contains
    /// them again
    #[arg(long)]
    stale: bool,
    /// Stop after N events; the whole trace is still read first, for schemas and names
    #[arg(long, value_name = "N")]
    limit: Option<u64>,
    /// Stop at the first damage of the file, with exit code 2
    #[arg(long)]
    strict: bool,
    #[command(flatten)]
    schemas: SchemaArgs,
    #[command(flatten)]
    threads: ThreadArgs,
    #[command(flatten)]
    filter: FilterArgs,
    /// Select events with this name; `*` matches any text, `?` a character
    #[arg(long, value_name = "NAME", help_heading = "Selection")]
    event: Vec<String>,
    /// Select events with a field or column of this value, such as `FileName ~ C:\Windows\*.dll`,
    /// `process = Orders.exe` or `level <= 3`; the operators are =, !=, <, <=, >, >= and ~. If
    /// repeated, all conditions must hold
    #[arg(
        long = "where",
        value_name = "CONDITION",
        allow_hyphen_values = true,
        help_heading = "Selection"
    )]
    conditions: Vec<String>,
    /// Select events with this text in a value of a field or in the message
    #[arg(
        long,
        value_name = "TEXT",
        allow_hyphen_values = true,
        help_heading = "Selection"
    )]
    grep: Vec<String>,
    #[command(flatten)]
    input: InputArgs,
}

/// The words of `--format`.
const FORMATS: &[Choice<Format>] = &[
    Choice::new("text", "One line per event", Format::Text),
    Choice::new("jsonl", "One JSON object per line", Format::JsonLines),
    Choice::new("json", "", Format::JsonLines),
    Choice::new(
        "csv",
        "Comma-separated values with a header line (see --columns)",
        Format::Csv,
    ),
    Choice::new(
        "xml",
        "An XML document of the Event schema, as tracerpt and wevtutil write it",
        Format::Xml,
    ),
];

pub(crate) fn run(args: &Args) -> Result<Outcome, Failure> {
    if args.symbols.is_asked() && !args.resolve {
        return Err(Failure::new(
            "--symbols",
            "names functions at addresses that are resolved",
        )
        .hint("add --resolve"));
    }
    let files = trace_files::expand(&args.files, &args.input);
    if files.is_empty() {
        return Err(trace_files::none_found());
    }
    let several = args.files.len() > 1 || args.files.iter().any(|file| file.is_dir());
    let session = Session::new(args, several)?;
    let readable: Vec<PathBuf> = files.iter().flatten().cloned().collect();
    columns::expand(&session, &readable);
    if args.merge && several {
        input::reject_twice(
            &readable,
            "name each trace once, or its events are printed twice",
        )?;
        let Merged {
            outcome,
            failures: unreadable,
        } = merged::print(&session, &readable)?;
        let mut failures = Vec::new();
        for file in &files {
            if let Err(unreadable) = file {
                failures.push(unreadable.failure());
            }
        }
        failures.extend(unreadable);
        session.end(failures.is_empty())?;
        print_failures(failures)?;
        return Ok(outcome.max(note_missing(&session, &readable)));
    }
    let mut failures = Vec::new();
    let mut outcome = Outcome::Success;
    for file in &files {
        if !session.wants_more() {
            break;
        }
        let printed = match file {
            Ok(path) => print(&session, path, several),
            Err(unreadable) => Err(unreadable.failure()),
        };
        match printed {
            Ok(one) => outcome = outcome.max(one),
            Err(failure) if failure.is_broken_pipe() => return Err(failure),
            Err(failure) => failures.push(failure),
        }
    }
    session.end(failures.is_empty())?;
    print_failures(failures)?;
    Ok(outcome.max(note_missing(&session, &readable)))
}

/// Prints all failures but the last one, which is returned.
fn print_failures(mut failures: Vec<Failure>) -> Result<(), Failure> {
    let last = failures.pop();
    failures.iter().for_each(Failure::print);
    match last {
        Some(failure) => Err(failure),
        None => Ok(()),
    }
}

/// Says which of the selected names no trace has.
fn note_missing(session: &Session<'_>, paths: &[PathBuf]) -> Outcome {
    let mut outcome = Outcome::Success;
    if session.matched.get() == 0 {
        let args = session.args;
        let selection = Selection {
            providers: args.filter.providers(),
            events: &args.event,
            conditions: &args.conditions,
        };
        outcome = selection.report_missing(&session.store, &args.input, paths);
    }
    if outcome == Outcome::Success {
        filter::note_unknown(session.unknown());
    }
    outcome
}

/// Prints the events of one trace.
fn print(session: &Session<'_>, path: &Path, several: bool) -> Result<Outcome, Failure> {
    let args = session.args;
    let name = input::display(path);
    let options = options(args);
    let mut dump = Dump {
        session,
        file: several.then_some(&*name),
        name: &name,
        processes: Filter::default(),
        context: None,
        schemas: None,
        stale: Vec::new(),
        silence: input::Silence::default(),
    };
    // Finding processes takes a pass of its own, and a pipe is read only once.
    if args.file_order && input::is_stdin(path) && !args.filter.needs_processes() {
        let input::Stream { reader, about } = input::stdin_stream(&args.input)?;
        let source = PipeSource::new(dump.silence.watch(reader));
        return dump.file_order(source, &about, &options, Rest::Leave);
    }
    let mut input = Input::open(path, &args.input)?;
    dump.processes = args.filter.processes(&mut input)?;
    let before = Before::read([&mut input], session);
    let machine = before.as_ref().and_then(Before::machine);
    dump.context = context::context(machine, 0, session);
    dump.schemas = before.as_ref().and_then(|before| before.schemas(0));
    let outcome = dump.any_order(&mut input, &options, before.as_ref());
    session.symbols.note_missing();
    outcome
}

fn options(args: &Args) -> Options {
    Options {
        mode: if args.strict {
            Mode::Strict
        } else {
            Mode::Salvage
        },
        // Printed lines cannot be reordered: the order has to be known before the first one.
        order_check: OrderCheck::Scan,
        threads: args.threads.count(),
        limits: args.input.limits(u64::MAX),
    }
}

/// The options for a trace that was read before. If it was in order, it is not scanned again.
fn with_order(options: Options, before: Option<&Before>) -> Options {
    match (options.mode, before) {
        (Mode::Salvage, Some(before)) if before.is_ordered() => Options {
            order_check: OrderCheck::Lookahead,
            ..options
        },
        _ => options,
    }
}

/// What becomes of the records after the last printed one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Rest {
    /// They are read, to find damage.
    Check,
    /// They are not read: a pipe may have no end.
    Leave,
}

/// Reads the records after the limit: a damaged trace is reported however little is printed.
fn read_rest<S: Source>(records: &mut Records<S>) -> etl_format::Result<()> {
    while records.next_record()?.is_some() {}
    Ok(())
}

struct Dump<'a> {
    session: &'a Session<'a>,
    name: &'a str,
    /// The name of the file, if rows have it.
    file: Option<&'a str>,
    processes: Filter,
    context: Option<Context<'a>>,
    /// The schemas of the whole trace, if they are known.
    schemas: Option<SchemaStore>,
    /// Offsets of stale records.
    stale: Vec<u32>,
    /// Ends a pipe from which no record comes any more.
    silence: input::Silence,
}

impl<'a> Dump<'a> {
    fn printer(&self, clock: &Clock, progress: Progress) -> Result<Printer<'a>, Failure> {
        let printed = Printed {
            file: self.file,
            clock: *clock,
            start: clock.start_time,
            schemas: self.schemas.clone(),
            context: self.context.clone(),
            processes: &self.processes,
        };
        Printer::new(self.session, printed, progress)
    }

    /// Prints the trace in the order of the arguments.
    fn any_order(
        &mut self,
        input: &mut Input,
        options: &Options,
        before: Option<&Before>,
    ) -> Result<Outcome, Failure> {
        if self.session.args.file_order {
            // A stream is read without looking ahead.
            let salvage = Options {
                mode: Mode::Salvage,
                ..*options
            };
            if let Ok((trace, _)) = input.trace(&salvage) {
                self.stale = trace.stale_records().to_vec();
            }
            let about = input.about().clone();
            let options = Options {
                limits: input.limits(),
                ..*options
            };
            return self.file_order(input.source(), &about, &options, Rest::Check);
        }
        let (mut trace, _) = input.trace(&with_order(*options, before))?;
        self.ordered(&mut trace)
    }

    fn file_order<S: Source>(
        &self,
        source: S,
        about: &About,
        options: &Options,
        rest: Rest,
    ) -> Result<Outcome, Failure> {
        let records = Records::stream(source, options);
        let mut records = records
            .map_err(|e| about.unreadable(options.mode, &e))?
            .with_stale_records(&self.stale);
        let has_header = records.header().is_known();
        let mut printer = if has_header {
            Some(self.stream_printer(&records.clock())?)
        } else {
            None
        };
        while printer.as_ref().is_none_or(Printer::wants_more) {
            let record = records.next_record();
            self.silence.end();
            match (record, &mut printer) {
                (Ok(Some(record)), Some(printer)) => printer.print(&record)?,
                // Without header event, times count from the first record.
                (Ok(Some(record)), None) => {
                    let clock = Clock::assumed(record.timestamp());
                    let started = self.stream_printer(&clock)?;
                    printer.insert(started).print(&record)?;
                }
                (Ok(None), _) => break,
                (Err(error), Some(printer)) => return printer.fail(self.name, &error),
                (Err(error), None) => return Err(Failure::trace(self.name, &error)),
            }
        }
        let Some(mut printer) = printer else {
            return Err(Failure::input(self.name, &Head::no_records()));
        };
        printer.finish()?;
        if rest == Rest::Check
            && let Err(error) = read_rest(&mut records)
        {
            return printer.fail(self.name, &error);
        }
        let condition = Condition::new(records.header(), records.damage(), records.notes());
        Ok(condition.report(self.name))
    }

    /// A printer for a stream, whose size is unknown.
    fn stream_printer(&self, clock: &Clock) -> Result<Printer<'a>, Failure> {
        self.printer(clock, Progress::new(0, Printing::Events))
    }

    fn ordered<S: Source>(&self, trace: &mut Trace<S>) -> Result<Outcome, Failure> {
        let progress = Progress::of_trace(trace, 1, Printing::Events);
        let mut printer = self.printer(&trace.clock(), progress)?;
        if let Err(error) = printer.learn_names(trace) {
            return printer.fail(self.name, &error);
        }
        let mut records = match trace.records(Order::Time) {
            Ok(records) => records,
            Err(error) => return printer.fail(self.name, &error),
        };
        let args = self.session.args;
        let threads = args.threads.count();
        // Threads format lines. With a limit, they would format lines that are not printed.
        let end = if threads > 1 && args.limit.is_none() {
            parallel::print(&mut records, &mut printer, threads)?
        } else {
            printer.all(&mut records)?
        };
        match end {
            Some(error) => return printer.fail(self.name, &error),
            None => printer.finish()?,
        }
        if let Err(error) = read_rest(&mut records) {
            return printer.fail(self.name, &error);
        }
        let order = records.report();
        let damage = records.damage().to_vec();
        let mut condition = Condition::new(trace.header(), &damage, trace.notes());
        condition.order = order;
        Ok(condition.report(self.name))
    }
}
