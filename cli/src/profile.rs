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

/// Reads files as a recording, and makes the profile of the selected processes and threads, with
/// names from PDBs. `bytes` is about the memory that `make` needs.
#[expect(
    clippy::too_many_arguments,
    reason = "two of them are parts of one observer"
)]
pub(crate) fn profile<O: Observer>(
    recording: &RecordingArgs,
    files: &[PathBuf],
    selector: ProcessSelector,
    symbols: &Symbols,
    options: ProfileOptions,
    observer: impl FnOnce(TimeRange) -> O,
    bytes: impl FnOnce(&mut O) -> u64,
    make: impl FnOnce(&mut O, &Machine, &ProfileOptions) -> Profile,
) -> Result<Profiled<O>, Failure> {
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
    let needed = bytes(&mut analyzed.observer);
    analyzed.ensure_memory(needed)?;
    let options = select(recording, &analyzed, options);
    let options = symbols.apply(options, maps.as_ref());
    let profile = make(&mut analyzed.observer, &analyzed.machine, &options);
    symbols.note_missing();
    Ok(Profiled { analyzed, profile })
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
