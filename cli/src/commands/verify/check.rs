//! Verifies traces: one, several at the same time, or several as one recording.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicUsize, Ordering};

use etl_format::read::{Options, Source, Trace};
use etl_verify::{Error, Report};

use super::settings::Settings;
use crate::error::Failure;
use crate::input::{self, Input, InputArgs, WithSource};
use crate::missing_header;
use crate::progress::Progress;

/// Verifies files, `jobs` at the same time. Returns the reports in the order of the files.
pub(super) fn verify_all(
    files: &[PathBuf],
    jobs: usize,
    settings: &[Settings],
    input: &InputArgs,
) -> Vec<Result<Report, Failure>> {
    let jobs = jobs.min(files.len());
    if jobs <= 1 {
        return files.iter().zip(settings).map(|(f, s)| verify_one(f, s, input, false)).collect();
    }
    let next = AtomicUsize::new(0);
    let work = || {
        let mut done = Vec::new();
        while let Some((at, file, settings)) = {
            let at = next.fetch_add(1, Ordering::Relaxed);
            files.get(at).zip(settings.get(at)).map(|(file, settings)| (at, file, settings))
        } {
            done.push((at, verify_one(file, settings, input, true)));
        }
        done
    };
    let mut done = std::thread::scope(|scope| {
        let workers: Vec<_> = (0..jobs).map(|_| scope.spawn(work)).collect();
        let joined = workers
            .into_iter()
            .map(|w| w.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic)));
        joined.flatten().collect::<Vec<_>>()
    });
    done.sort_by_key(|(at, _)| *at);
    done.into_iter().map(|(_, report)| report).collect()
}

/// Verifies one file. `quiet` hides the progress bar, for several files at the same time.
pub(super) fn verify_one(
    path: &Path,
    settings: &Settings,
    input: &InputArgs,
    quiet: bool,
) -> Result<Report, Failure> {
    struct Verify<'a>(String, &'a Settings, bool);
    impl WithSource for Verify<'_> {
        type Output = Result<Report, Failure>;
        fn with<S: Source>(self, mut source: S) -> Self::Output {
            // The decompressed size is not known yet; the stored size is an estimate.
            let mut progress = (!self.2).then(|| Progress::new(source.size().unwrap_or(0), false));
            let on_progress = |bytes| {
                if let Some(progress) = &mut progress {
                    progress.add(bytes);
                }
            };
            let report = self.1.verifier().on_progress(on_progress).verify(&mut source, &self.0);
            let report = report.map_err(|e| not_a_trace(&self.0, e, &input::head(&mut source)))?;
            if report.records == 0
                && let Ok(mut trace) = Trace::open(&mut source, &Options::salvage())
            {
                missing_header::ensure_records(&self.0, &mut trace)?;
            }
            Ok(report)
        }
    }
    Input::open(path, input)?.with(Verify(input::display(path), settings, quiet))
}

/// Verifies several files as one recording.
pub(super) fn verify_together(
    files: &[PathBuf],
    settings: &Settings,
    args: &InputArgs,
) -> Result<Report, Failure> {
    if let Some(stdin) = files.iter().find(|f| input::is_stdin(f)) {
        return Err(Failure::new(input::display(stdin), "cannot be used with --together")
            .hint("write it to a file first"));
    }
    let mut seen = BTreeSet::new();
    let same = |file: &&PathBuf| file.canonicalize().is_ok_and(|whole| !seen.insert(whole));
    if let Some(file) = files.iter().find(same) {
        return Err(Failure::new(input::display(file), "is named twice")
            .hint("--together needs different files of one recording"));
    }
    let mut inputs = files.iter().map(|f| Input::open(f, args)).collect::<Result<Vec<_>, _>>()?;
    let names: Vec<_> = files.iter().map(|f| input::display(f)).collect();
    let heads: Vec<_> = inputs.iter_mut().map(Input::head).collect();
    // The report mentions a lost header event.
    for (input, name) in inputs.iter_mut().zip(&names) {
        missing_header::is_missing(name, input.any())?;
    }
    let sources: Vec<_> = inputs.iter_mut().map(Input::any).zip(names.iter().cloned()).collect();
    let all = sources.iter().filter_map(|(source, _)| source.size()).sum();
    let mut progress = Progress::new(all, false);
    let mut verifier = settings.verifier().on_progress(|bytes| progress.add(bytes));
    verifier.verify_together(sources).map_err(|e| {
        let file = if let Error::Trace(e) = &e { e.file() } else { 0 };
        let name = names.get(file).map_or("", String::as_str);
        not_a_trace(name, e, heads.get(file).map_or(&[], Vec::as_slice))
    })
}

fn not_a_trace(name: &str, error: Error, head: &[u8]) -> Failure {
    match error {
        Error::Trace(error) => input::not_a_trace(name, &error.into_source(), head),
        error => Failure::new(name, error.to_string()),
    }
}
