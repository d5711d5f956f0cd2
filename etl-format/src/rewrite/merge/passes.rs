//! Merges more traces than fit into memory: each half first, then both halves.

use std::io::{self, Read, Seek, Write};

use crate::error::{Error, ErrorKind, Result};
use crate::read::{FileSource, Mode, Options, Source};
use crate::rewrite::callback::Callback;
use crate::write::{Finished, Output, TraceFile};

use super::inputs::Input;
use super::{MergeReport, MergedInput, Merger, Plan};

impl Merger<'_> {
    /// Merges the inputs in as many passes as [`Merger::max_memory`] requires. The inputs are
    /// halved until the buffers of a part fit into the memory; `temporary` creates the file for
    /// each part. Records with equal timestamps keep the order of their inputs, because each part
    /// contains consecutive inputs. The first pass converts all timestamps to the clock of the
    /// merged trace.
    ///
    /// [`Merger::on_record`] is called once for each record of the inputs, in the first pass.
    ///
    /// # Errors
    /// As [`Merger::run`]; errors of temporary files are errors of the output.
    /// [`ErrorKind::Memory`] if two traces do not fit into the memory together.
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
        // Temporary files are read once: compressing them would cost more than it saves.
        let compressor = self.compressor.take();
        let middle = count / 2;
        let (first, second) = inputs.split_at_mut(middle);
        let [first_plan, second_plan] = plan.halves(middle);
        let first = self.merge_half(first, &first_plan, 0, temporary)?;
        let second = self.merge_half(second, &second_plan, middle, temporary)?;
        // Damage was skipped and reported in the first pass.
        let read = Options {
            mode: Mode::Strict,
            ..self.read
        };
        let mut merger = Merger {
            read,
            compressor,
            on_record: Callback::default(),
            ..*self
        };
        let joint_plan = plan.joining(&first_plan, &second_plan);
        let merged = merger
            .open(vec![first.file, second.file])
            .and_then(|halves| merger.write(halves, &joint_plan, output))
            .map_err(|error| with_input(error, |half| if half == 0 { 0 } else { middle }))?;
        let mut inputs = first.inputs;
        inputs.extend(second.inputs);
        Ok(Finished {
            output: merged.output,
            report: MergeReport {
                summary: merged.report.summary,
                inputs,
            },
        })
    }

    /// Merges one half into a temporary file; `base` is the index of its first input.
    fn merge_half<S: Source, F: Read + Write + Seek>(
        &mut self,
        inputs: &mut [S],
        plan: &Plan,
        base: usize,
        temporary: &mut dyn FnMut() -> io::Result<F>,
    ) -> Result<Half<F>> {
        let file = TraceFile::new(temporary()?);
        let merged = self
            .passes(inputs, plan, file, temporary)
            .map_err(|error| with_input(error, |index| base + index))?;
        Ok(Half {
            file: FileSource::new(merged.output.into_inner())?,
            inputs: merged.report.inputs,
        })
    }
}

/// The merged trace of a half of the inputs.
struct Half<F> {
    file: FileSource<F>,
    inputs: Vec<MergedInput>,
}

/// The error with the index of its trace among all inputs.
fn with_input(mut error: Error, index: impl Fn(usize) -> usize) -> Error {
    error.input = error.input.map(index);
    error
}
