//! Profiles of recordings, for all commands that show stacks.

use std::path::PathBuf;

use etl_analysis::profile::{Profile, ProfileOptions};
use etl_analysis::{Machine, Observer, ProcessSelector};
use etl_format::TimeRange;

use crate::error::Failure;
use crate::recording::{Analyzed, RecordingArgs};
use crate::symbols::Symbols;

/// A recording that was read, and its profile.
pub(crate) struct Profiled<O> {
    pub analyzed: Analyzed<O>,
    pub profile: Profile,
}

/// Which part of which recording a profile is made from, and how.
pub(crate) struct ProfileRequest<'a> {
    pub recording: &'a RecordingArgs,
    /// The files to read.
    pub files: &'a [PathBuf],
    /// The selected processes.
    pub selector: ProcessSelector,
    /// PDBs with names.
    pub symbols: &'a Symbols,
    pub options: ProfileOptions,
}

impl<'a> ProfileRequest<'a> {
    /// The files and processes of the arguments.
    pub fn new(
        recording: &'a RecordingArgs,
        symbols: &'a Symbols,
        options: ProfileOptions,
    ) -> Self {
        ProfileRequest {
            recording,
            files: &recording.files,
            selector: recording.processes.selector(),
            symbols,
            options,
        }
    }

    /// Reads the files with an observer, and makes the profile from it. `needed_bytes` is about the
    /// memory that `make` needs.
    pub fn run<O: Observer>(
        self,
        observer: impl FnOnce(TimeRange) -> O,
        needed_bytes: impl FnOnce(&mut O) -> u64,
        make: impl FnOnce(&mut O, &Machine, &ProfileOptions) -> Profile,
    ) -> Result<Profiled<O>, Failure> {
        let ProfileRequest {
            recording,
            files,
            selector,
            symbols,
            options,
        } = self;
        let Analyzed {
            names,
            machine,
            selected,
            range,
            observer: (observer, maps),
            outcome,
            budget,
            conditions,
        } = recording.analyze_files(files, selector, |range| (observer(range), symbols.maps()))?;
        let mut analyzed = Analyzed {
            names,
            machine,
            selected,
            range,
            observer,
            outcome,
            budget,
            conditions,
        };
        let needed_bytes = needed_bytes(&mut analyzed.observer);
        analyzed.ensure_memory(needed_bytes)?;
        let options = select(recording, &analyzed, options);
        let options = symbols.apply(options, maps.as_ref());
        let profile = make(&mut analyzed.observer, &analyzed.machine, &options);
        symbols.note_missing();
        Ok(Profiled { analyzed, profile })
    }
}

/// Adds the selection of processes and threads to the options.
pub(crate) fn select<O>(
    recording: &RecordingArgs,
    analyzed: &Analyzed<O>,
    options: ProfileOptions,
) -> ProfileOptions {
    let options = options.threads(recording.thread.clone());
    match &analyzed.selected {
        Some(selected) => options.processes(selected.clone()),
        None => options,
    }
}
