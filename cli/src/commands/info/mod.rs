//! `etlkit info`: summarizes traces.

mod survey;
mod text;

use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, PoisonError};

use etl_format::read::{Mode, Options, Source};

use crate::Outcome;
use crate::error::Failure;
use crate::input::{self, Input, InputArgs, WithSource};
use crate::missing_header;
use crate::output::{self, ReportFormat};
use crate::threads::ThreadArgs;

use survey::Survey;

/// Arguments of `etlkit info`.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Exit codes: 0 success, 1 a trace is damaged and its intact parts were read, 2 a file cannot be read; the
other files are summarized nevertheless. Lost events are listed as problems and do not change the exit
code.

Examples:
  etlkit info trace.etl
  etlkit info --format json trace.etl | jq '.events[] | select(.count > 1000)'")]
pub(crate) struct Args {
    /// Traces to read; `-` is standard input
    #[arg(value_name = "FILE", required = true)]
    files: Vec<PathBuf>,
    /// Output format; the JSON is an object, or an array of them for several files (docs/json-info.md)
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

pub(crate) fn run(args: &Args) -> Result<Outcome, Failure> {
    let mut surveys = Vec::new();
    let mut failures = Vec::new();
    for result in all(args) {
        match result {
            Ok(survey) => surveys.push(survey),
            Err(failure) => failures.push(failure),
        }
    }
    let last = failures.pop();
    // An unreadable file does not hide the others.
    if !surveys.is_empty() {
        print(args, &surveys)?;
    }
    failures.iter().for_each(|failure| stderr_line!("error: {failure}"));
    match last {
        Some(last) => Err(last),
        None if surveys.iter().any(|s| s.damaged) => Ok(Outcome::Findings),
        None => Ok(Outcome::Success),
    }
}

/// Prints the surveys: as a list if several files were named.
fn print(args: &Args, surveys: &[Survey]) -> Result<(), Failure> {
    let several = args.files.len() > 1;
    let text = match (args.format, surveys) {
        (ReportFormat::Json, [one]) if !several => output::json(one),
        (ReportFormat::Json, many) => output::json(many),
        (ReportFormat::Text, many) => many.iter().map(text::render).collect::<Vec<_>>().join("\n"),
    };
    Ok(output::print(&text)?)
}

/// The surveys of all files in their order; several files are read at the same time.
fn all(args: &Args) -> Vec<Result<Survey, Failure>> {
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

fn survey(path: &Path, options: Options, args: &InputArgs) -> Result<Survey, Failure> {
    struct Look(String, Options);
    impl WithSource for Look {
        type Output = Result<Survey, Failure>;
        fn with<S: Source>(self, mut source: S) -> Self::Output {
            let survey = Survey::new(&mut source, &self.0, &self.1).map_err(|e| {
                let head = input::head(&mut source);
                match self.1.mode {
                    Mode::Strict => input::strict_failure(&self.0, &e, &head),
                    Mode::Salvage => input::not_a_trace(&self.0, &e, &head),
                }
            })?;
            if survey.header || survey.records > 0 {
                Ok(survey)
            } else {
                Err(missing_header::no_records_error(&self.0))
            }
        }
    }
    Input::open(path, args)?.with(Look(input::display(path), options))
}
