//! `--symbols` in a build without the feature `symbols`: there is no such option.

use std::marker::PhantomData;
use std::sync::Arc;

use etl_analysis::Machine;
use etl_analysis::profile::{IlMaps, ProfileOptions, SampleCollector, WantedCode};
use etl_analysis::symbols::Image;
use etl_events::context::FunctionNames;
use etl_format::TimeRange;

use crate::error::Failure;
use crate::recording::{Analyzed, RecordingArgs};

/// No arguments.
#[derive(Debug, clap::Args)]
pub(crate) struct SymbolArgs {}

/// No names.
#[derive(Clone, Debug, Default)]
pub(crate) struct Names;

impl Names {
    /// The options as they are.
    pub fn apply(&self, options: ProfileOptions) -> ProfileOptions {
        options
    }
}

/// No PDBs.
#[derive(Debug)]
pub(crate) struct Symbols;

impl SymbolArgs {
    pub fn is_asked(&self) -> bool {
        false
    }

    pub fn open(&self) -> Result<Symbols, Failure> {
        Ok(Symbols)
    }

    /// Reads the samples of a recording.
    pub fn collect(
        &self,
        recording: &RecordingArgs,
        collector: impl FnOnce(TimeRange) -> SampleCollector,
    ) -> Result<(Analyzed<SampleCollector>, Names), Failure> {
        Ok((recording.analyze(collector)?, Names))
    }

    /// The same for other files than those of the arguments.
    pub fn collect_files(
        &self,
        recording: &RecordingArgs,
        files: &[std::path::PathBuf],
        collector: impl FnOnce(TimeRange) -> SampleCollector,
    ) -> Result<(Analyzed<SampleCollector>, Names), Failure> {
        Ok((recording.analyze_files(files, collector)?, Names))
    }
}

impl Symbols {
    pub fn maps(&self) -> Option<IlMaps> {
        None
    }

    pub fn names(
        &self,
        _: &Machine,
        _: &Option<IlMaps>,
        _: impl FnOnce(&IlMaps) -> WantedCode,
    ) -> Names {
        Names
    }

    pub fn functions<'m>(&'m self, _: &'m Machine) -> Option<Functions<'m>> {
        None
    }
}

/// No functions.
#[derive(Debug)]
pub(crate) struct Functions<'m>(PhantomData<&'m Machine>);

impl Functions<'_> {
    pub fn note_missing(&self) {}
}

impl FunctionNames for Functions<'_> {
    fn function(&self, _: &Image<'_>) -> Option<(Arc<str>, u32)> {
        None
    }
}
