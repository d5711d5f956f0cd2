//! `etlkit export speedscope`: a profile for each thread, and activities.

use etl_analysis::behavior::activities::Activities;
use etl_analysis::profile::ProfileOptions;
use etl_export::speedscope::{self, ActivityProfiles};
use etl_schema::store::SchemaStore;

use super::{StackArgs, Weight};
use crate::Outcome;
use crate::commands::analyze::profile_options;
use crate::error::Failure;

pub(super) fn run(args: &StackArgs) -> Result<Outcome, Failure> {
    let by_thread = ProfileOptions::new().by_thread(true);
    let activities = Activities::new(SchemaStore::default());
    let export = args.samples.collect(true, by_thread, activities)?;
    let recording = &args.samples.recording;
    let options = profile_options(recording, &export.analyzed, ProfileOptions::new());
    let options = options.idle(args.samples.idle);
    let (unit, title) = (args.unit(Weight::Time), export.title());
    let range = recording.range(export.analyzed.machine.clock())?;
    export.write(|profile, analyzed, out| {
        let (_, activities) = &analyzed.observer;
        let activities = ActivityProfiles::new(activities, &analyzed.machine, &options, range);
        speedscope::write(profile, &activities, &title, unit, out)
    })
}
