//! `etlkit dump`: prints the events of a trace in time order.

mod parallel;
mod printer;
mod schemas;

use std::path::PathBuf;

use etl_format::Clock;
use etl_format::read::{Mode, Options, Order, OrderCheck, PipeSource, Records, Source, Trace};
use etl_schema::tables::TableSet;
use etl_tools::filter::Filter;
use etl_tools::rows::Format;

use crate::Outcome;
use crate::choice::{Choice, EVENT_TABLES, one_of};
use crate::diagnostics::Condition;
use crate::error::Failure;
use crate::filter::{self, FilterArgs};
use crate::input::{self, About, Input, InputArgs};
use crate::missing_header;
use crate::progress::Progress;
use crate::threads::ThreadArgs;

use printer::Printer;

/// Arguments of `etlkit dump`.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Exit codes: 0 success, 1 the trace is damaged or lost buffers and what is left was printed, 2 error.

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
    #[arg(long, value_parser = one_of(FORMATS), default_value = "text")]
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
    #[arg(long, value_parser = one_of(EVENT_TABLES), value_name = "TABLES", default_value = "shipped")]
    event_tables: TableSet,
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

/// The words of `--format`.
const FORMATS: &[Choice<Format>] = &[
    ("text", "One line per event", Format::Text),
    ("jsonl", "One JSON object per line", Format::JsonLines),
    ("json", "", Format::JsonLines),
    ("csv", "Comma-separated values with a header line (see --columns)", Format::Csv),
    ("xml", "An XML document of the Event schema, as tracerpt and wevtutil write it", Format::Xml),
];

pub(crate) fn run(args: &Args) -> Result<Outcome, Failure> {
    let (name, options) = (input::display(&args.file), options(args));
    let mut dump = Dump { args, name: &name, processes: Filter::default() };
    // Processes are found in a pass of its own.
    if args.file_order && input::is_stdin(&args.file) && !args.filter.needs_processes() {
        let input::Stream { reader, about } = input::stdin_stream(&args.input)?;
        return dump.file_order(PipeSource::new(reader), &about, &options);
    }
    let mut input = Input::open(&args.file, &args.input)?;
    dump.processes = args.filter.processes(&mut input)?;
    if args.file_order {
        let (about, limits) = (input.about().clone(), input.limits());
        return dump.file_order(input.source(), &about, &Options { limits, ..options });
    }
    dump.ordered(&mut input.trace(&options)?.0)
}

fn options(args: &Args) -> Options {
    let mode = if args.strict { Mode::Strict } else { Mode::Salvage };
    // Printed lines cannot be reordered: the order has to be known before the first one.
    let threads = args.threads.count();
    let limits = args.input.limits(u64::MAX);
    Options { mode, order_check: OrderCheck::Scan, threads, limits }
}

struct Dump<'a> {
    args: &'a Args,
    name: &'a str,
    processes: Filter,
}

impl Dump<'_> {
    fn file_order<S: Source>(
        &self,
        source: S,
        about: &About,
        options: &Options,
    ) -> Result<Outcome, Failure> {
        let mut records =
            Records::stream(source, options).map_err(|e| about.unreadable(options.mode, &e))?;
        // The size of a pipe is unknown.
        let start =
            |clock| Printer::new(self.args, &self.processes, &clock, Progress::new(0, true));
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
        let (damage, notes) = (records.damage(), records.notes());
        Ok(Condition::new(records.header(), damage, notes).report(self.name))
    }

    fn ordered<S: Source>(&self, trace: &mut Trace<S>) -> Result<Outcome, Failure> {
        let progress = Progress::of_trace(trace, 1, true);
        let mut printer = Printer::new(self.args, &self.processes, &trace.clock(), progress)?;
        filter::learn_names(&mut printer.filter, trace, printer.rows.store());
        let mut records = match trace.records(Order::Time) {
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
        let (order, damage) = (records.report(), records.damage().to_vec());
        let condition = Condition::new(trace.header(), &damage, trace.notes());
        Ok(Condition { order, ..condition }.report(self.name))
    }
}
