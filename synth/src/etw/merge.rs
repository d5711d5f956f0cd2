//! Merging the files of several sessions.

use etl_format::FileTime;
use etl_format::compress::Effort;
use etl_format::constants::CompressionFormat;
use etl_format::read::FileSource;
use etl_format::rewrite::merge::Merger;
use etl_format::write::BufferCompressor;

use super::Etw;
use super::file_sequence::{FileSequence, WrittenBuffers};
use super::identity::{ImageFiles, ImageIdentifier};
use crate::error::{Error, Result};
use crate::file_system::FileSystem;
use crate::model::Fault;
use crate::time::Nanos;
use crate::truth::{Fact, RefusalCode};

/// The name of the request in refusals.
const MERGE: &str = "merge";

struct MergeRefusal {
    code: RefusalCode,
    what: String,
}

impl Etw<'_> {
    /// Merges files into a new one, and adds the identities of images whose files are known.
    pub fn merge(
        &mut self,
        inputs: &[String],
        output: &str,
        identities: Option<&ImageFiles>,
        compress: bool,
        at: Nanos,
    ) -> Result<()> {
        if inputs
            .iter()
            .any(|input| input.eq_ignore_ascii_case(output))
        {
            let what = format!("{output} is one of the files to merge: name another output");
            return self.fail(output, MERGE, RefusalCode::InvalidParameter, what, at);
        }
        let mut inputs = inputs.to_vec();
        for session in &self.sessions {
            if session.plan.faults.contains(&Fault::Unmerged) {
                inputs.retain(|input| !session.files.contains(input));
            }
        }
        if inputs.is_empty() {
            return Ok(());
        }
        if let Some(refusal) = self.merge_refusal(&inputs, output) {
            return self.fail(output, MERGE, refusal.code, refusal.what, at);
        }
        let mut files = Vec::with_capacity(inputs.len());
        for input in &inputs {
            let file = self.files.open(input).and_then(FileSource::new);
            files.push(file.map_err(|e| Error::impossible(at, format!("{input}: {e}")))?);
        }
        let created = self.files.create(output)?;
        self.report_buffers(usize::MAX)?;
        let mut identifier = identities.map(ImageIdentifier::new);
        let mut compressor = None;
        if compress {
            let new = BufferCompressor::new(CompressionFormat::XPRESS, Effort::Default);
            compressor = Some(new.map_err(|error| {
                Error::impossible(at, format!("merging into {output}: {error}"))
            })?);
        }
        let merged = Merger::new()
            .omit_headers()
            .compress(compressor)
            .made_at(FileTime::new(self.clock.filetime(at)))
            .on_record(|record, timestamp, insertions| match &mut identifier {
                Some(identifier) => identifier.identify(record, timestamp.get(), insertions),
                None => Ok(()),
            })
            .run(
                files,
                FileSequence::new(output, created, &WrittenBuffers::default()),
            );
        if let Err(error) = merged {
            let what = format!("merging into {output}: {error}");
            return self.fail(output, MERGE, RefusalCode::InvalidParameter, what, at);
        }
        self.observer.observe(&Fact::Merged {
            output,
            inputs: &inputs,
        })?;
        let images = identifier
            .map(|identifier| identifier.images)
            .unwrap_or_default();
        for image in &images {
            self.observer.observe(&Fact::Identity {
                file: output,
                image,
            })?;
        }
        Ok(())
    }
    /// Why files cannot be merged: one does not exist, or is open for writing.
    fn merge_refusal(&mut self, inputs: &[String], output: &str) -> Option<MergeRefusal> {
        for input in inputs {
            if self.files.open(input).is_err() {
                let what = format!("{input}: no such file");
                let code = RefusalCode::FileNotFound;
                return Some(MergeRefusal { code, what });
            }
        }
        let code = RefusalCode::SharingViolation;
        for input in inputs {
            if self.sessions.iter().any(|s| s.writes(input)) {
                let what = format!("{input} is still being written: stop its session first");
                return Some(MergeRefusal { code, what });
            }
        }
        if self.sessions.iter().any(|s| s.writes(output)) {
            let what = format!("{output} is being written: stop its session first");
            return Some(MergeRefusal { code, what });
        }
        None
    }
}
