//! Verifies traces: one, several at the same time, or several as one recording.

use std::path::{Path, PathBuf};

use etl_verify::{Error, Report};

use super::settings::Settings;
use crate::error::Failure;
use crate::input::{self, About, Input, InputArgs};
use crate::memory;
use crate::process_args::ProcessArgs;
use crate::progress::Progress;

/// A file to verify.
pub(super) struct Job {
    pub file: PathBuf,
    pub settings: Settings,
}

/// Whether a progress bar is shown.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ShowProgress {
    Yes,
    No,
}

/// Verifies files, several at the same time. Returns the reports in the order of the files.
pub(super) fn verify_all(
    jobs: &[Job],
    at_once: usize,
    args: &InputArgs,
    progress: ShowProgress,
) -> Vec<Result<Report, Failure>> {
    let at_once = at_once.min(jobs.len());
    let progress = if at_once > 1 {
        ShowProgress::No
    } else {
        progress
    };
    memory::map(
        jobs,
        at_once,
        |job| !input::is_stdin(&job.file),
        |job, at_once| verify_one(&job.file, &job.settings, &args.share(at_once), progress),
    )
}

/// Verifies one file.
pub(super) fn verify_one(
    path: &Path,
    settings: &Settings,
    input: &InputArgs,
    progress: ShowProgress,
) -> Result<Report, Failure> {
    let mut input = Input::open(path, input)?;
    let about = input.about().clone();
    let mut bar = match progress {
        ShowProgress::Yes => Some(Progress::of_inputs([&mut input])),
        ShowProgress::No => None,
    };
    let report = settings
        .verifier()
        .limits(input.limits())
        .on_progress(move |bytes| {
            if let Some(bar) = &mut bar {
                bar.add(bytes);
            }
        })
        .verify(input.source(), &about.name)
        .map_err(|e| not_a_trace(&about, e))?;
    if report.records == 0 {
        input.ensure_records()?;
    }
    Ok(report)
}

/// Verifies several files as one recording.
pub(super) fn verify_together(
    files: &[PathBuf],
    settings: &Settings,
    args: &InputArgs,
) -> Result<Report, Failure> {
    if let Some(stdin) = files.iter().find(|f| input::is_stdin(f)) {
        return Err(
            Failure::new(input::display(stdin), "cannot be used with --together")
                .hint("write it to a file first"),
        );
    }
    input::reject_twice(files, "--together needs different files of one recording")?;
    let share = args.share(files.len());
    let mut inputs = Vec::new();
    for file in files {
        inputs.push(Input::open(file, &share)?);
    }
    let abouts: Vec<_> = inputs.iter().map(|input| input.about().clone()).collect();
    for input in &mut inputs {
        input.ensure_records()?;
    }
    let total = inputs.iter_mut().map(Input::size).sum();
    let mut progress = Progress::of_inputs(&mut inputs);
    let names = abouts.iter().map(|about| about.name.clone());
    let sources: Vec<_> = inputs.iter_mut().map(Input::source).zip(names).collect();
    let verifier = settings.verifier().limits(share.limits(total));
    let mut verifier = verifier.on_progress(|bytes| progress.add(bytes));
    verifier.verify_together(sources).map_err(|e| {
        let file = if let Error::Trace(e) = &e {
            e.file()
        } else {
            0
        };
        not_a_trace(abouts.get(file).unwrap_or(&About::default()), e)
    })
}

fn not_a_trace(about: &About, error: Error) -> Failure {
    match error {
        Error::Trace(error) => about.not_a_trace(&error.into_source()),
        Error::NoProcess(error) => {
            Failure::new(&about.name, error.to_string()).hint(ProcessArgs::HINT)
        }
        error => Failure::new(&about.name, error.to_string()),
    }
}
