//! Merging: the files of several sessions become one. They are read piece by piece.

use etl_format::compress::Effort;
use etl_format::constants::CompressionFormat;
use etl_format::read::FileSource;
use etl_format::rewrite::merge::{MergeOptions, merge_adding};
use etl_schema::EventSchema;

use super::disk::Disk;
use super::identity::{Files, Identifier};
use super::{Etw, impossible};
use crate::error::Result;
use crate::machine::Nanos;
use crate::model::{EditPlan, Fault};

impl Etw<'_> {
    /// Merges files that are there into a new one, and tells the identities of images whose files are there.
    pub fn merge(
        &mut self,
        inputs: &[String],
        output: &str,
        identities: Option<&Files>,
        compress: bool,
        at: Nanos,
    ) -> Result<()> {
        if inputs.iter().any(|input| input == output) {
            let what = format!("{output} is one of the files to merge: name another output");
            return Err(impossible(at, what));
        }
        let mut files = Vec::with_capacity(inputs.len());
        let left_out = |file: &String| {
            self.sessions.iter().any(|s| {
                s.plan.faults.contains(&Fault::Unmerged) && s.files.iter().any(|f| f == file)
            })
        };
        let inputs: Vec<String> = inputs.iter().filter(|f| !left_out(f)).cloned().collect();
        if inputs.is_empty() {
            return Ok(());
        }
        for input in &inputs {
            if self.sessions.iter().any(|s| s.is_running() && s.writes(input)) {
                let what = format!("{input} is still being written: stop its session first");
                return Err(impossible(at, what));
            }
            let file = self.store.open(input).and_then(FileSource::new);
            files.push(file.map_err(|e| impossible(at, format!("{input}: {e}")))?);
        }
        let medium = self.store.create(output)?;
        let mut identifier = identities.map(Identifier::new);
        let compression = compress.then_some((CompressionFormat::XPRESS, Effort::Default));
        let now = Some(self.clock.filetime(at));
        let options = MergeOptions { now, compression, ..MergeOptions::default() };
        merge_adding(files, Disk::new(medium), &options, |record, timestamp, added| {
            match &mut identifier {
                Some(identifier) => identifier.identify(record, timestamp, added),
                None => Ok(()),
            }
        })
        .map_err(|e| impossible(at, format!("merging into {output}: {e}")))?;
        self.witness.merged(output, &inputs)?;
        let images = identifier.map(|identifier| identifier.images).unwrap_or_default();
        images.iter().try_for_each(|image| self.witness.identified(output, image))
    }

    /// Changes a finished file.
    pub fn edit(&mut self, plan: &EditPlan, schemas: &[EventSchema], at: Nanos) -> Result<()> {
        crate::edit::apply(plan, schemas, self.store).map_err(|what| impossible(at, what))
    }
}
