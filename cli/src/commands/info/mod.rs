//! `etlkit info`: summarizes traces.

mod text;

use std::path::{Path, PathBuf};

use etl_analysis::OwnerCounts;
use etl_events::context::{self, Code, Context};
use etl_events::survey::{Report, Survey};
use etl_format::constants::LogFileMode;
use etl_format::read::{Mode, Options};
use etl_schema::store::SchemaStore;

use crate::Outcome;
use crate::diagnostics::Condition;
use crate::error::{Failure, print_readable};
use crate::input::{self, Input, InputArgs};
use crate::memory;
use crate::output::{self, ReportFormat};
use crate::process_args::ProcessArgs;
use crate::progress::{Printing, Progress};
use crate::schemas::SchemaArgs;
use crate::threads::ThreadArgs;
use crate::trace_files;

/// Arguments of `etlkit info`.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Exit codes: 0 success, 1 a trace is damaged or lacks buffers; its intact part was read, 2 a file
cannot be read; the other files are still summarized. Events that were lost while recording
are noted and do not change the exit code.

Examples:
  etlkit info trace.etl
  etlkit info --process devenv --children trace.etl
  etlkit info --format json trace.etl | jq '.events[] | select(.count > 1000)'")]
pub(crate) struct Args {
    /// Traces to read, or directories with traces; `-` is standard input
    #[arg(value_name = "FILE", required = true)]
    files: Vec<PathBuf>,
    /// Output format; the JSON is an object, or an array of them for several files
    /// (docs/json.md)
    #[arg(long, value_enum, default_value_t)]
    format: ReportFormat,
    /// Stop at the first damage of the file, with exit code 2
    #[arg(long)]
    strict: bool,
    #[command(flatten)]
    schemas: SchemaArgs,
    #[command(flatten)]
    processes: ProcessArgs,
    #[command(flatten)]
    threads: ThreadArgs,
    #[command(flatten)]
    input: InputArgs,
}

pub(crate) fn run(args: &Args) -> Result<Outcome, Failure> {
    print_readable(all(args), |reports| print(args, reports))
}

/// Prints the reports: as a list if several files were named.
fn print(args: &Args, reports: &[Report]) -> Result<Outcome, Failure> {
    let several = args.files.len() > 1 || args.files.iter().any(|file| file.is_dir());
    match (args.format, reports) {
        (ReportFormat::Json, [one]) if !several => output::print_json(one)?,
        (ReportFormat::Json, []) if !several => {}
        (ReportFormat::Json, many) => output::print_json(many)?,
        (ReportFormat::Text, many) => {
            let texts: Vec<String> = many.iter().map(text::render).collect();
            output::print(&texts.join("\n"))?;
        }
    }
    let mut outcome = Outcome::Success;
    for report in reports {
        let survey = &report.survey;
        let condition = Condition {
            damage: &survey.damage,
            notes: &survey.notes,
            mode: LogFileMode(survey.mode_bits.unwrap_or(0)),
            lost_header: !survey.header,
            ..Condition::default()
        };
        outcome = outcome.max(condition.report(&report.file));
    }
    Ok(outcome)
}

/// The reports of all files in their order; several files are read at the same time.
fn all(args: &Args) -> Vec<Result<Report, Failure>> {
    let mode = if args.strict {
        Mode::Strict
    } else {
        Mode::Salvage
    };
    let threads = args.threads.count();
    let files = trace_files::expand(&args.files, &args.input);
    if files.is_empty() {
        return vec![Err(trace_files::none_found())];
    }
    let at_once = threads.min(files.len()).max(1);
    let options = Options {
        mode,
        threads: threads / at_once,
        ..Options::default()
    };
    let store = match args.schemas.store(&args.input) {
        Ok(store) => store,
        Err(failure) => return vec![Err(failure)],
    };
    memory::map(
        &files,
        at_once,
        |file| file.as_ref().is_ok_and(|path| !input::is_stdin(path)),
        |file, at_once| match file {
            Ok(path) => {
                let input = args.input.share(at_once);
                survey(path, &args.processes, &options, &input, store.clone())
            }
            Err(unreadable) => Err(unreadable.failure()),
        },
    )
}

fn survey(
    path: &Path,
    selected: &ProcessArgs,
    options: &Options,
    args: &InputArgs,
    store: SchemaStore,
) -> Result<Report, Failure> {
    let mut input = Input::open(path, args)?;
    let filter = selected.filter(&mut input)?;
    let machine = if selected.names().is_empty() {
        None
    } else {
        let limits = input.limits();
        let name = input.about().name.clone();
        let traces = [(input.source(), name)];
        context::machine(traces, limits, options.threads, Code::Skip, &mut ()).ok()
    };
    let context = machine.as_ref().map(Context::new);
    let (mut trace, about) = input.trace(options)?;
    let mut progress = Progress::of_trace(&trace, 1, Printing::Nothing);
    // Counting by process needs times, which a trace without a header event lacks.
    let counts_owners = trace.header().is_known() && selected.names().is_empty();
    let mut owners = counts_owners.then(OwnerCounts::default);
    let survey = Survey::of_selected(&mut trace, store, &filter, context.as_ref(), |record| {
        progress.pass(record.bytes().len());
        if let Some(owners) = &mut owners {
            owners.add(record);
        }
    });
    let survey = survey.map_err(|error| about.unreadable(options.mode, &error))?;
    let file = about.name.clone();
    drop(trace);
    drop(progress);
    let limits = input.limits();
    let stream = input.conversion().cloned();
    let source = input.source();
    let report = Report::new(survey, &file, source, limits, selected.names(), owners);
    let mut report = report.map_err(|error| input.about().not_a_trace(&error.into_source()))?;
    report.stream = stream;
    Ok(report)
}
