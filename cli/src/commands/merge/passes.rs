//! Merges more traces than fit into memory: each half first, then both halves.
//!
//! Halves are split until their buffers fit into the allowed memory. Each becomes an unnamed
//! temporary file. Records with equal timestamps keep the order of their traces, since each half
//! contains neighbours.

use etl_format::read::{FileSource, Mode, Record};
use etl_format::rewrite::merge::{MergeReport, MergedInput, Merger, Relation};
use etl_format::write::{File, Output};
use etl_format::{Error, ErrorKind};

use crate::input::Input;

/// Merges `inputs` in as many passes as the memory of the merger requires. `watch` is called once
/// for each record of the inputs.
///
/// # Errors
/// As [`Merger::run`]; errors of temporary files are errors of the output. [`ErrorKind::Memory`]
/// remains for two traces that do not fit together.
pub(super) fn merge<O: Output>(
    inputs: &mut [Input],
    medium: impl Fn() -> O,
    merger: &dyn Fn() -> Merger<'static>,
    watch: &mut dyn FnMut(&Record<'_>),
) -> etl_format::Result<MergeReport> {
    let sources = inputs.iter_mut().map(Input::source).collect();
    let merging = merger().on_record(|record, _, _| {
        watch(record);
        Ok(())
    });
    match merging.run(sources, medium()) {
        Ok((_, report)) => Ok(report),
        Err(Error { kind: ErrorKind::Memory { .. }, .. }) if inputs.len() > 2 => {
            let middle = inputs.len() / 2;
            let (first, second) = inputs.split_at_mut(middle);
            let (mut a, first) = half(first, 0, merger, watch)?;
            let (mut b, second) = half(second, middle, merger, watch)?;
            // Damage was skipped and reported in the first pass.
            let merging = merger().mode(Mode::Strict);
            let (_, done) = merging
                .run(vec![&mut a, &mut b], medium())
                .map_err(|e| moved(e, |index| if index == 0 { 0 } else { middle }))?;
            let inputs = done
                .inputs
                .iter()
                .zip([first, second])
                .flat_map(|(whole, half)| half.into_iter().map(|input| combined(input, whole)));
            Ok(MergeReport { summary: done.summary, inputs: inputs.collect() })
        }
        Err(error) => Err(error),
    }
}

/// Merges one half into a temporary file; `base` is the index of its first trace.
fn half(
    inputs: &mut [Input],
    base: usize,
    merger: &dyn Fn() -> Merger<'static>,
    watch: &mut dyn FnMut(&Record<'_>),
) -> etl_format::Result<(FileSource<std::fs::File>, Vec<MergedInput>)> {
    let file = tempfile::tempfile()?;
    // The file is read once: compressing it would cost more than it saves.
    let merger = || merger().compress(None);
    let done = merge(inputs, || File::new(&file), &merger, watch)
        .map_err(|e| moved(e, |index| base + index))?;
    Ok((FileSource::new(file)?, done.inputs))
}

/// The error with the indices of traces among all inputs.
fn moved(mut error: Error, index: impl Fn(usize) -> usize) -> Error {
    error.input = error.input.map(&index);
    if let ErrorKind::Refused(refusal) = &mut error.kind {
        (refusal.input, refusal.with) = (index(refusal.input), index(refusal.with));
    }
    error
}

/// The result for a trace after both passes: its clock was converted if either pass did so.
fn combined(input: MergedInput, whole: &MergedInput) -> MergedInput {
    let relation = match input.relation {
        Relation::Same => whole.relation,
        converted @ Relation::Converted { .. } => converted,
    };
    MergedInput { relation, ..input }
}
