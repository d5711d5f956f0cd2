//! `etlkit info`: summarizes traces.

mod text;

use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, PoisonError};

use etl_format::read::{Mode, Options, Source, Trace};
use etl_tools::survey::{Survey, Surveyor};
use serde::Serialize;

use crate::Outcome;
use crate::error::Failure;
use crate::input::{self, Input, InputArgs, WithSource};
use crate::missing_header;
use crate::output::{self, ReportFormat};
use crate::progress::Progress;
use crate::threads::ThreadArgs;

/// Incremented when a field of the report changes its meaning or is removed.
const SCHEMA_VERSION: u32 = 1;

/// Arguments of `etlkit info`.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Exit codes: 0 success, 1 a trace is damaged and its intact parts were read, 2 a file cannot be
read; the other files are summarized nevertheless. Lost events are listed as problems and do not
change the exit code.

Examples:
  etlkit info trace.etl
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
    #[serde(flatten)]
    survey: Survey,
}

pub(crate) fn run(args: &Args) -> Result<Outcome, Failure> {
    let mut reports = Vec::new();
    let mut failures = Vec::new();
    for result in all(args) {
        match result {
            Ok(report) => reports.push(report),
            Err(failure) => failures.push(failure),
        }
    }
    let last = failures.pop();
    // An unreadable file does not hide the others.
    if !reports.is_empty() {
        print(args, &reports)?;
    }
    failures.iter().for_each(|failure| stderr_line!("error: {failure}"));
    match last {
        Some(last) => Err(last),
        None if reports.iter().any(|r| r.survey.is_damaged) => Ok(Outcome::Findings),
        None => Ok(Outcome::Success),
    }
}

/// Prints the reports: as a list if several files were named.
fn print(args: &Args, reports: &[Report]) -> Result<(), Failure> {
    let several = args.files.len() > 1;
    let text = match (args.format, reports) {
        (ReportFormat::Json, [one]) if !several => output::json(one),
        (ReportFormat::Json, many) => output::json(many),
        (ReportFormat::Text, many) => many.iter().map(text::render).collect::<Vec<_>>().join("\n"),
    };
    Ok(output::print(&text)?)
}

/// The reports of all files in their order; several files are read at the same time.
fn all(args: &Args) -> Vec<Result<Report, Failure>> {
    let mode = if args.strict { Mode::Strict } else { Mode::Salvage };
    let threads = args.threads.count();
    let at_once = threads.min(args.files.len()).max(1);
    let options = Options { mode, threads: threads / at_once, ..Options::default() };
    if at_once == 1 {
        return args.files.iter().map(|f| survey(f, options, &args.input)).collect();
    }
    let next = AtomicUsize::new(0);
    let done: Mutex<Vec<_>> = Mutex::new(args.files.iter().map(|_| None).collect());
    std::thread::scope(|scope| {
        for _ in 0..at_once {
            scope.spawn(|| {
                loop {
                    let at = next.fetch_add(1, Ordering::Relaxed);
                    let Some(file) = args.files.get(at) else { return };
                    let survey = survey(file, options, &args.input);
                    let mut done = done.lock().unwrap_or_else(PoisonError::into_inner);
                    if let Some(slot) = done.get_mut(at) {
                        *slot = Some(survey);
                    }
                }
            });
        }
    });
    done.into_inner().unwrap_or_else(PoisonError::into_inner).into_iter().flatten().collect()
}

fn survey(path: &Path, options: Options, args: &InputArgs) -> Result<Report, Failure> {
    struct Look(String, Options);
    impl WithSource for Look {
        type Output = Result<Report, Failure>;
        fn with<S: Source>(self, mut source: S) -> Self::Output {
            let Look(file, options) = self;
            let bytes = source.size().unwrap_or(0);
            let survey = read(&mut source, &options).map_err(|e| {
                let (error, head) = (e.format_error(), input::head(&mut source));
                match options.mode {
                    Mode::Strict => input::strict_failure(&file, error, &head),
                    Mode::Salvage => input::not_a_trace(&file, error, &head),
                }
            })?;
            if survey.header || survey.records > 0 {
                Ok(Report { schema_version: SCHEMA_VERSION, file, bytes, survey })
            } else {
                Err(missing_header::no_records_error(&file))
            }
        }
    }
    Input::open(path, args)?.with(Look(input::display(path), options))
}

fn read<S: Source>(source: &mut S, options: &Options) -> etl_tools::Result<Survey> {
    let mut trace = Trace::open(source, options)?;
    let used = trace.buffers().iter().map(|b| u64::from(b.fill)).sum();
    let mut progress = Progress::new(used, false);
    Surveyor::new().on_record(|record| progress.pass(record.bytes().len())).run(&mut trace)
}
