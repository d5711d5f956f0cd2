//! Merging: the files of several sessions become one. They are read piece by piece.

use etl_format::read::FileSource;
use etl_format::write::merge::{MergeOptions, merge};

use super::store::Boxed;
use super::{Etw, impossible};
use crate::error::Result;
use crate::machine::Nanos;

impl Etw<'_> {
    /// Merges files that are there into a new one.
    pub fn merge(&mut self, inputs: &[String], output: &String, at: Nanos) -> Result<()> {
        if inputs.contains(output) {
            let what = format!("{output} is one of the files to merge: name another output");
            return Err(impossible(at, what));
        }
        let mut files = Vec::with_capacity(inputs.len());
        for input in inputs {
            let running = self
                .sessions
                .iter()
                .any(|s| s.is_running() && s.plan.file.as_ref().is_some_and(|f| f == input));
            if running {
                let what = format!("{input} is still being written: stop its session first");
                return Err(impossible(at, what));
            }
            let file = self.store.open(input).and_then(FileSource::new);
            files.push(file.map_err(|e| impossible(at, format!("{input}: {e}")))?);
        }
        let medium = self.store.create(output)?;
        let options =
            MergeOptions { now: Some(self.clock.filetime(at)), ..MergeOptions::default() };
        merge(files, Boxed(medium), &options)
            .map_err(|e| impossible(at, format!("merging into {output}: {e}")))?;
        self.witness.merged(output, inputs)
    }
}
