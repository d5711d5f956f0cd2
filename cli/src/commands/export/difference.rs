//! `etlkit export folded` and `flamegraph` with `--compare`: the stacks of two traces.

use std::path::Path;

use etl_analysis::behavior::allocations::StackedAllocations;
use etl_analysis::profile::{Profile, SampleCollector};
use etl_export::Unit;
use etl_export::difference::StackDifference;

use super::{ComparedArgs, Export, StackArgs, Weight};
use crate::Outcome;
use crate::error::Failure;
use crate::input;
use crate::profile::{ProfileRequest, Profiled};

/// What is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Output {
    /// Folded stacks with two numbers.
    Folded,
    /// A flame graph whose colours show what grew.
    Flamegraph,
}

/// Writes the stacks of both traces.
pub(super) fn run(args: &ComparedArgs, before: &Path, output: Output) -> Result<Outcome, Failure> {
    let stacks = &args.stacks;
    if stacks.by_thread {
        let message = "threads of two traces are not the same";
        return Err(Failure::new("--by-thread", message).hint("leave it out"));
    }
    if stacks.weight == Some(Weight::Bytes) {
        let earlier = earlier_allocations(args, before)?;
        let export = stacks.samples.allocations(stacks.options())?;
        return write(args, before, &earlier, export, output);
    }
    let earlier = earlier_samples(args, before)?;
    let export = stacks
        .samples
        .collect(SampleCollector::new(), stacks.options(), ())?;
    export.ensure_samples()?;
    write(args, before, &earlier, export, output)
}

/// An earlier trace as a profile.
struct Earlier {
    profile: Profile,
    outcome: Outcome,
}

impl<O> From<Profiled<O>> for Earlier {
    fn from(profiled: Profiled<O>) -> Self {
        Earlier {
            profile: profiled.profile,
            outcome: profiled.analyzed.outcome,
        }
    }
}

fn earlier_samples(args: &ComparedArgs, before: &Path) -> Result<Earlier, Failure> {
    let samples = &args.stacks.samples;
    let symbols = samples.symbols.open()?;
    let mut options = args.stacks.options();
    if samples.idle {
        options = options.with_idle();
    }
    let files = [before.to_owned()];
    let request = ProfileRequest {
        files: &files,
        selector: args.compare.earlier_processes(&samples.recording.processes),
        ..ProfileRequest::new(&samples.recording, &symbols, options)
    };
    let profiled = request.run(
        |range| SampleCollector::new().within(range),
        |samples| samples.profile_bytes(),
        |samples, machine, options| samples.profile(machine, options),
    )?;
    Ok(profiled.into())
}

fn earlier_allocations(args: &ComparedArgs, before: &Path) -> Result<Earlier, Failure> {
    let samples = &args.stacks.samples;
    let symbols = samples.symbols.open()?;
    let files = [before.to_owned()];
    let request = ProfileRequest {
        files: &files,
        selector: args.compare.earlier_processes(&samples.recording.processes),
        ..ProfileRequest::new(&samples.recording, &symbols, args.stacks.options())
    };
    let profiled = request.run(
        |range| StackedAllocations::new().within(range),
        |allocations| allocations.profile_bytes(),
        StackedAllocations::profile,
    )?;
    Ok(profiled.into())
}

/// The unit that both profiles have.
fn unit(stacks: &StackArgs, output: Output, before: &Profile, after: &Profile) -> Unit {
    let default = match output {
        Output::Folded => Weight::Samples,
        Output::Flamegraph => Weight::Time,
    };
    match stacks.unit(default) {
        Unit::Time if !before.has_times() || !after.has_times() => Unit::Samples,
        unit => unit,
    }
}

fn write<O>(
    args: &ComparedArgs,
    before: &Path,
    earlier: &Earlier,
    export: Export<O>,
    output: Output,
) -> Result<Outcome, Failure> {
    let title = format!("{} since {}", export.title(), input::display(before));
    let renames = args.compare.renames();
    let outcome = export.write(|profiled, out| {
        let after = &profiled.profile;
        let unit = unit(&args.stacks, output, &earlier.profile, after);
        let mut difference = StackDifference::default();
        difference.add_before(&earlier.profile, unit, &|name| {
            renames.new_name(name).into_owned()
        });
        difference.add_after(after, unit);
        if args.compare.normalize {
            difference.normalize();
        }
        match output {
            Output::Folded => difference.write_folded(out),
            Output::Flamegraph => difference.write_flamegraph(&title, unit, out),
        }
    })?;
    Ok(outcome.max(earlier.outcome))
}
