//! The processes of a trace: names, lifetimes, and numbers of events.

use etl_analysis::{Analysis, EventRef, Machine, Observer, Recording};
use etl_format::clock::iso_utc;
use etl_format::read::{Limits, Record, Source};
use serde::Serialize;

/// A process, and how many events it has.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct ProcessCount {
    /// Its id.
    pub pid: u32,
    /// File name of its image, if that is known.
    pub name: Option<String>,
    /// Id of the process that started it, if that is known.
    pub parent_pid: Option<u32>,
    /// When it started, UTC; `None` if that was before the trace, or is not recorded.
    pub start_time: Option<String>,
    /// When it ended, UTC; likewise.
    pub end_time: Option<String>,
    /// Number of its events; samples belong to the process that ran.
    pub count: u64,
}

/// Counts events by process.
#[derive(Default)]
struct Counter(Vec<u64>);

impl Observer for Counter {
    fn record(&mut self, _: &Machine, _: &Record<'_>, event: &EventRef) {
        let Some(process) = event.process else { return };
        if self.0.len() <= process {
            self.0.resize(process + 1, 0);
        }
        if let Some(count) = self.0.get_mut(process) {
            *count += 1;
        }
    }

    fn restart(&mut self) {
        self.0.clear();
    }
}

/// The processes of a trace, those with the most events first. Reads the trace once, within bounds
/// on the memory for its buffers.
///
/// # Errors
/// When the trace cannot be read.
pub fn processes<S: Source>(
    source: S,
    name: &str,
    limits: Limits,
) -> Result<Vec<ProcessCount>, etl_analysis::Error> {
    let mut recording = Recording::open_within([(source, name)], limits)?;
    let clock = recording.files().first().map(|(trace, _)| trace.clock());
    let mut counter = Counter::default();
    let machine = Analysis::new().run(&mut recording, &mut counter)?;
    let utc = |time: i64| clock.as_ref().map(|clock| iso_utc(clock.filetime(time)));
    let mut out: Vec<ProcessCount> = machine
        .processes()
        .iter()
        .enumerate()
        .map(|(at, process)| ProcessCount {
            pid: process.pid(),
            name: Some(process.name().to_owned()).filter(|name| !name.is_empty()),
            parent_pid: process.parent_pid(),
            start_time: process.started().and_then(utc),
            end_time: process.ended().and_then(utc),
            count: counter.0.get(at).copied().unwrap_or(0),
        })
        // The idle process is always known, but may have neither name nor events.
        .filter(|process| process.count > 0 || process.name.is_some())
        .collect();
    out.sort_by(|a, b| b.count.cmp(&a.count).then(a.pid.cmp(&b.pid)));
    Ok(out)
}
