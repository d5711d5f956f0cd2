//! Merges more traces than fit into memory: each half first, then both halves.

use std::io::{self, Read, Seek, Write};

use crate::error::{Error, ErrorKind, Result};
use crate::read::{FileSource, Mode, Options, Source};
use crate::rewrite::callback::Callback;
use crate::write::{Finished, Output, TraceFile};

use super::inputs::Input;
use super::{MergeReport, MergedInput, Merger, Plan};

impl Merger<'_> {
    /// Merges the inputs in as many passes as [`Merger::max_memory`] requires. Halves are split
    /// until their buffers fit into the memory; `temporary` creates the file for each. Records with
    /// equal timestamps keep the order of their inputs, since each half contains neighbours. The
    /// first pass converts all timestamps to the clock of the merged trace.
    ///
    /// [`Merger::on_record`] is called once for each record of the inputs, in the first pass.
    ///
    /// # Errors
    /// As [`Merger::run`]; errors of temporary files are errors of the output.
    /// [`ErrorKind::Memory`] remains for two traces that do not fit together.
    pub fn run_in_passes<S: Source, O: Output, F: Read + Write + Seek>(
        mut self,
        inputs: &mut [S],
        output: O,
        mut temporary: impl FnMut() -> io::Result<F>,
    ) -> Result<Finished<O, MergeReport>> {
        let opened = Input::open_all(inputs.iter_mut().collect(), &self.read)?;
        let plan = Plan::new(&opened, self.allow)?;
        // Each pass opens its inputs again, so that no index of a trace stays in memory.
        drop(opened);
        self.passes(inputs, &plan, output, &mut temporary)
    }

    fn passes<S: Source, O: Output, F: Read + Write + Seek>(
        &mut self,
        inputs: &mut [S],
        plan: &Plan,
        output: O,
        temporary: &mut dyn FnMut() -> io::Result<F>,
    ) -> Result<Finished<O, MergeReport>> {
        let count = inputs.len();
        match self.open(inputs.iter_mut().collect()) {
            Ok(opened) => return self.write(opened, plan, output),
            Err(Error {
                kind: ErrorKind::Memory { .. },
                ..
            }) if count > 2 => {}
            Err(error) => return Err(error),
        }
        // Files that are read once: compressing them would cost more than it saves.
        let compressor = self.compressor.take();
        let middle = count / 2;
        let (first, second) = inputs.split_at_mut(middle);
        let [one, two] = plan.halves(middle);
        let (a, first) = self.half(first, &one, 0, temporary)?;
        let (b, second) = self.half(second, &two, middle, temporary)?;
        // Damage was skipped and reported in the first pass.
        let read = Options {
            mode: Mode::Strict,
            ..self.read
        };
        let mut whole = Merger {
            read,
            compressor,
            on_record: Callback::default(),
            ..*self
        };
        let joined = whole
            .open(vec![a, b])
            .and_then(|halves| whole.write(halves, &plan.joining(&one, &two), output));
        let whole = joined.map_err(|e| moved(e, |index| if index == 0 { 0 } else { middle }))?;
        let inputs = first.into_iter().chain(second).collect();
        let report = MergeReport {
            summary: whole.report.summary,
            inputs,
        };
        Ok(Finished {
            output: whole.output,
            report,
        })
    }

    /// Merges one half into a temporary file; `base` is the index of its first input.
    fn half<S: Source, F: Read + Write + Seek>(
        &mut self,
        inputs: &mut [S],
        plan: &Plan,
        base: usize,
        temporary: &mut dyn FnMut() -> io::Result<F>,
    ) -> Result<(FileSource<F>, Vec<MergedInput>)> {
        let file = TraceFile::new(temporary()?);
        let merged = self.passes(inputs, plan, file, temporary);
        let merged = merged.map_err(|e| moved(e, |index| base + index))?;
        Ok((
            FileSource::new(merged.output.into_inner())?,
            merged.report.inputs,
        ))
    }
}

/// The error with the index of its trace among all inputs.
fn moved(mut error: Error, index: impl Fn(usize) -> usize) -> Error {
    error.input = error.input.map(index);
    error
}
