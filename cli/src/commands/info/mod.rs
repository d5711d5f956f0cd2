//! `etlkit info`: summarizes traces.

mod text;

use std::path::{Path, PathBuf};

use etl_format::constants::LogFileMode;
use etl_format::read::{Mode, Options, Record};
use etl_tools::survey::Survey;
use serde::Serialize;

use crate::Outcome;
use crate::diagnostics::Condition;
use crate::error::{Failure, print_readable};
use crate::input::{self, Input, InputArgs};
use crate::memory;
use crate::output::{self, ReportFormat};
use crate::process_args::ProcessArgs;
use crate::progress::Progress;
use crate::threads::ThreadArgs;

/// Incremented when a field of the report changes its meaning or is removed.
const SCHEMA_VERSION: u32 = 1;

/// Arguments of `etlkit info`.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Exit codes: 0 success, 1 a trace is damaged or lost buffers and what is left was read, 2 a file
cannot be read; the other files are summarized nevertheless. Events that were lost while recording
are noted and do not change the exit code.

Examples:
  etlkit info trace.etl
  etlkit info --process devenv --children trace.etl
  etlkit info --format json trace.etl | jq '.events[] | select(.count > 1000)'")]
pub(crate) struct Args {
    /// Traces to read; `-` is standard input
    #[arg(value_name = "FILE", required = true)]
    files: Vec<PathBuf>,
    /// Output format; the JSON is an object, or an array of them for several files
    /// (docs/json-info.md)
    #[arg(long, value_enum, default_value_t)]
    format: ReportFormat,
    /// Stop at the first damage of the file, with exit code 2
    #[arg(long)]
    strict: bool,
    #[command(flatten)]
    processes: ProcessArgs,
    #[command(flatten)]
    threads: ThreadArgs,
    #[command(flatten)]
    input: InputArgs,
}

/// The report of a file; docs/json-info.md describes its JSON.
#[derive(Debug, Serialize)]
struct Report {
    schema_version: u32,
    file: String,
    bytes: u64,
    /// The processes whose events are counted, as the user named them; empty for all.
    processes: Vec<String>,
    #[serde(flatten)]
    survey: Survey,
}

pub(crate) fn run(args: &Args) -> Result<Outcome, Failure> {
    print_readable(all(args), |reports| print(args, reports))
}

/// Prints the reports: as a list if several files were named.
fn print(args: &Args, reports: &[Report]) -> Result<Outcome, Failure> {
    let several = args.files.len() > 1;
    let text = match (args.format, reports) {
        (ReportFormat::Json, [one]) if !several => output::json(one),
        (ReportFormat::Json, many) => output::json(many),
        (ReportFormat::Text, many) => many.iter().map(text::render).collect::<Vec<_>>().join("\n"),
    };
    output::print(&text)?;
    let conditions = reports.iter().map(|report| {
        let Survey { damage, notes, mode_bits, header, .. } = &report.survey;
        let mode = LogFileMode(mode_bits.unwrap_or(0));
        let condition = Condition { damage, notes, mode, ..Condition::default() };
        Condition { lost_header: !header, ..condition }.report(&report.file)
    });
    Ok(conditions.fold(Outcome::Success, Outcome::max))
}

/// The reports of all files in their order; several files are read at the same time.
fn all(args: &Args) -> Vec<Result<Report, Failure>> {
    let mode = if args.strict { Mode::Strict } else { Mode::Salvage };
    let threads = args.threads.count();
    let at_once = threads.min(args.files.len()).max(1);
    let options = Options { mode, threads: threads / at_once, ..Options::default() };
    let (processes, options) = (&args.processes, &options);
    let is_file = |file: &PathBuf| !input::is_stdin(file);
    memory::map(&args.files, at_once, is_file, |file, at_once| {
        survey(file, processes, options, &args.input.share(at_once))
    })
}

fn survey(
    path: &Path,
    processes: &ProcessArgs,
    options: &Options,
    args: &InputArgs,
) -> Result<Report, Failure> {
    let mut input = Input::open(path, args)?;
    let (bytes, filter) = (input.size(), processes.filter(&mut input)?);
    let (mut trace, about) = input.trace(options)?;
    let mut progress = Progress::of_trace(&trace, 1, false);
    let on_record = move |record: &Record<'_>| progress.pass(record.bytes().len());
    let survey = Survey::of_selected(&mut trace, &filter, on_record)
        .map_err(|e| about.unreadable(options.mode, e.format_error()))?;
    let file = about.name.clone();
    let processes = processes.names().to_vec();
    Ok(Report { schema_version: SCHEMA_VERSION, file, bytes, processes, survey })
}
