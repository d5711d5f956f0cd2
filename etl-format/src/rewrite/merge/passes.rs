//! Merges more traces than fit into memory: each half first, then both halves.

use std::io::{self, Read, Seek, Write};

use crate::error::{Error, ErrorKind, Result};
use crate::read::{FileSource, Mode, Options, Source};
use crate::rewrite::callback::Callback;
use crate::write::{File, Output};

use super::{MergeReport, MergedInput, Merger, Relation, missing_between};

impl Merger<'_> {
    /// Merges the inputs in as many passes as [`Merger::max_memory`] requires. Halves are split
    /// until their buffers fit into the memory; `temporary` creates the file for each. Records with
    /// equal timestamps keep the order of their inputs, since each half contains neighbours.
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
    ) -> Result<(O, MergeReport)> {
        self.passes(inputs, true, output, &mut temporary)
    }

    fn passes<S: Source, O: Output, F: Read + Write + Seek>(
        &mut self,
        inputs: &mut [S],
        is_all: bool,
        output: O,
        temporary: &mut dyn FnMut() -> io::Result<F>,
    ) -> Result<(O, MergeReport)> {
        let count = inputs.len();
        match self.open(inputs.iter_mut().collect()) {
            Ok(opened) => {
                let between = if is_all { missing_between(&opened) } else { 0 };
                return self.write(opened, between, output);
            }
            Err(Error { kind: ErrorKind::Memory { .. }, .. }) if count > 2 => {}
            Err(error) => return Err(error),
        }
        // Files that are read once: compressing them would cost more than it saves.
        let compressor = self.compressor.take();
        let middle = count / 2;
        let (first, second) = inputs.split_at_mut(middle);
        let (a, first) = self.half(first, 0, temporary)?;
        let (b, second) = self.half(second, middle, temporary)?;
        // Damage was skipped and reported in the first pass.
        let read = Options { mode: Mode::Strict, ..self.read };
        let whole = Merger { read, compressor, on_record: Callback::default(), ..*self };
        let (output, done) = whole
            .run(vec![a, b], output)
            .map_err(|e| moved(e, |index| if index == 0 { 0 } else { middle }))?;
        let inputs = done
            .inputs
            .iter()
            .zip([first, second])
            .flat_map(|(whole, half)| half.into_iter().map(|input| combined(input, whole)));
        Ok((output, MergeReport { summary: done.summary, inputs: inputs.collect() }))
    }

    /// Merges one half into a temporary file; `base` is the index of its first input.
    fn half<S: Source, F: Read + Write + Seek>(
        &mut self,
        inputs: &mut [S],
        base: usize,
        temporary: &mut dyn FnMut() -> io::Result<F>,
    ) -> Result<(FileSource<F>, Vec<MergedInput>)> {
        let file = File::new(temporary()?);
        let merged = self.passes(inputs, false, file, temporary);
        let (file, done) = merged.map_err(|e| moved(e, |index| base + index))?;
        Ok((FileSource::new(file.into_inner())?, done.inputs))
    }
}

/// The error with the indices of traces among all inputs.
fn moved(mut error: Error, index: impl Fn(usize) -> usize) -> Error {
    error.input = error.input.map(&index);
    if let ErrorKind::Refused(refusal) = &mut error.kind {
        (refusal.input, refusal.with) = (index(refusal.input), index(refusal.with));
    }
    error
}

/// The result for an input after both passes: its clock was converted if either pass did so.
fn combined(input: MergedInput, whole: &MergedInput) -> MergedInput {
    let relation = match input.relation {
        Relation::Same => whole.relation,
        converted @ Relation::Converted { .. } => converted,
    };
    MergedInput { relation, ..input }
}
