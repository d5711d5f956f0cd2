//! `etlkit export speedscope`: a profile for each thread, and activities.

use etl_analysis::behavior::activities::Activities;
use etl_analysis::profile::{ProfileOptions, SampleCollector};
use etl_export::Unit;
use etl_export::speedscope::{self, ActivityProfiles};
use etl_schema::store::SchemaStore;

use super::{StackArgs, Weight};
use crate::Outcome;
use crate::error::Failure;
use crate::profile;

pub(super) fn run(args: &StackArgs) -> Result<Outcome, Failure> {
    if args.weight == Some(Weight::Bytes) {
        return allocations(args);
    }
    let by_thread = ProfileOptions::new().by_thread();
    let samples = SampleCollector::new().keep_samples();
    let activities = Activities::new(SchemaStore::default());
    let export = args.samples.collect(samples, by_thread, activities)?;
    let analyzed = &export.profiled.analyzed;
    let (_, activities) = &analyzed.observer;
    if activities.list().is_empty() {
        export.ensure_samples()?;
    }
    let mut options = ProfileOptions::new();
    if args.samples.idle {
        options = options.with_idle();
    }
    let options = profile::select(&args.samples.recording, analyzed, options);
    let unit = args.unit(Weight::Time);
    let title = export.title();
    export.write(|profiled, out| {
        let analyzed = &profiled.analyzed;
        let (_, activities) = &analyzed.observer;
        let activities =
            ActivityProfiles::new(activities, &analyzed.machine, &options, analyzed.range);
        speedscope::write(&profiled.profile, &activities, &title, unit, out)
    })
}

/// Writes the allocations of each thread by their stacks, without activities.
fn allocations(args: &StackArgs) -> Result<Outcome, Failure> {
    let options = ProfileOptions::new().by_thread();
    let export = args.samples.allocations(options.clone())?;
    let title = export.title();
    let activities = Activities::new(SchemaStore::default());
    export.write(|profiled, out| {
        let analyzed = &profiled.analyzed;
        let activities =
            ActivityProfiles::new(&activities, &analyzed.machine, &options, analyzed.range);
        speedscope::write(&profiled.profile, &activities, &title, Unit::Bytes, out)
    })
}
