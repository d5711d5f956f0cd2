//! More traces than can be read at once: merged in halves, and the halves merged.
//!
//! Halves are halved until their buffers fit into the memory that is allowed. Each becomes an unnamed temporary
//! file, which goes with the process. Records of equal timestamps keep the order in which their traces are named, since a
//! half holds neighbours.

use std::io;

use etl_format::read::{FileSource, Mode, Options, Record};
use etl_format::rewrite::merge::{
    MergeError, MergeOptions, MergeReport, MergedInput, Refusal, Relation, merge_with,
};
use etl_format::write::{File, Output};

use crate::input::Input;

/// Merges `inputs` in as many passes as the memory of `options` needs; `watch` sees each record once, as it stands
/// in its trace.
///
/// # Errors
/// As [`merge_with`], and those of temporary files as errors of the output. [`MergeError::Memory`] is left for
/// two traces that do not fit together.
pub(super) fn merge<O: Output>(
    inputs: &mut [Input],
    medium: impl Fn() -> O,
    options: &MergeOptions,
    watch: &mut dyn FnMut(&Record<'_>),
) -> Result<MergeReport, MergeError> {
    let sources = inputs.iter_mut().map(Input::any).collect();
    match merge_with(sources, medium(), options, &mut *watch) {
        Ok((_, report)) => Ok(report),
        Err(MergeError::Memory { .. }) if inputs.len() > 2 => {
            let middle = inputs.len() / 2;
            let (first, second) = inputs.split_at_mut(middle);
            let (mut a, first) = half(first, 0, options, watch)?;
            let (mut b, second) = half(second, middle, options, watch)?;
            // What could not be read has been left out, and told, by now.
            let options = MergeOptions {
                read: Options { mode: Mode::default(), ..options.read },
                ..options.clone()
            };
            let halves = vec![&mut a, &mut b];
            let (_, done) = merge_with(halves, medium(), &options, |_| {})
                .map_err(|e| moved(e, |index| if index == 0 { 0 } else { middle }))?;
            let inputs = done
                .inputs
                .iter()
                .zip([first, second])
                .flat_map(|(whole, half)| half.into_iter().map(|input| told(input, whole)));
            Ok(MergeReport { summary: done.summary, inputs: inputs.collect() })
        }
        Err(error) => Err(error),
    }
}

/// One half, merged into a file of its own; its traces stand at `base` and behind among all.
fn half(
    inputs: &mut [Input],
    base: usize,
    options: &MergeOptions,
    watch: &mut dyn FnMut(&Record<'_>),
) -> Result<(FileSource<std::fs::File>, Vec<MergedInput>), MergeError> {
    let output = |e: io::Error| MergeError::Output(etl_format::Error::new(0, e.into()));
    let file = tempfile::tempfile().map_err(output)?;
    // It is read once and thrown away: packing it would cost more than it saves.
    let options = MergeOptions { compression: None, ..options.clone() };
    let done = merge(inputs, || File::new(&file), &options, watch)
        .map_err(|e| moved(e, |index| base + index))?;
    Ok((FileSource::new(file).map_err(output)?, done.inputs))
}

/// The error with the places of traces among all of them.
fn moved(error: MergeError, place: impl Fn(usize) -> usize) -> MergeError {
    match error {
        MergeError::Input { input, error } => MergeError::Input { input: place(input), error },
        MergeError::Refused(Refusal { input, with, reason }) => {
            MergeError::Refused(Refusal { input: place(input), with: place(with), reason })
        }
        other => other,
    }
}

/// What became of a trace whose half became part of the whole: its clock is another one if either step
/// took another one.
fn told(input: MergedInput, whole: &MergedInput) -> MergedInput {
    let relation = match input.relation {
        Relation::Same => whole.relation,
        converted @ Relation::Converted { .. } => converted,
    };
    MergedInput { relation, ..input }
}
