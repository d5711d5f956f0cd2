//! One pass over the opened traces as one recording.

use std::collections::BTreeSet;

use etl_analysis::{Analysis, Machine, Observer, ProcessIndex, ProcessSelector, Recording};
use etl_events::Trace;
use etl_format::TimeRange;

use crate::error::Result;
use crate::query::Seconds;

/// A recording that was read.
pub struct Analyzed<O> {
    pub machine: Machine,
    pub observer: O,
    /// The selected processes; `None` if all are.
    pub selected: Option<BTreeSet<ProcessIndex>>,
    /// The selected time.
    pub range: TimeRange,
    /// The name of the first file.
    pub title: String,
}

/// Reads the recording with an observer for the selected time, and finds the processes that are
/// selected by name or id.
pub fn analyze<O: Observer>(
    trace: &mut Trace,
    seconds: Seconds,
    processes: &[String],
    observer: impl FnOnce(TimeRange) -> O,
) -> Result<Analyzed<O>> {
    let times = seconds.times(trace.start_time());
    let mut files = Vec::new();
    for file in trace.sources() {
        files.push((file.source, file.name));
    }
    let title = files.first().map(|(_, name)| name.clone());
    let mut recording = Recording::open(files)?;
    let clock = recording.timeline().clock();
    let from = times.from.map(|time| clock.ticks_at(time));
    let to = times.to.map(|time| clock.ticks_at(time));
    let range = TimeRange::new(from, to);
    let mut observer = observer(range);
    let machine = Analysis::new()
        .with_names()
        .without_addresses()
        .run(&mut recording, &mut observer)?;
    let mut selected = None;
    if !processes.is_empty() {
        let selector = ProcessSelector::new(processes).find_others(&machine, &mut recording)?;
        selected = Some(selector.select(&machine)?);
    }
    Ok(Analyzed {
        machine,
        observer,
        selected,
        range,
        title: title.unwrap_or_default(),
    })
}
