//! The processes of a trace: names, lifetimes, and numbers of events.

use etl_analysis::{Analysis, OwnerCounts, Recording};
use etl_format::read::{Limits, Source};
use etl_format::{ProcessId, Ticks};
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
    /// Number of its events; samples and stacks belong to the process that ran.
    pub count: u64,
}

/// The processes of a trace whose records were `counted`, those with the most events first. Reads
/// the trace, within bounds on the memory for its buffers, where an id was that of several.
///
/// # Errors
/// When the trace cannot be read.
pub fn processes<S: Source>(
    source: S,
    name: &str,
    limits: Limits,
    counted: OwnerCounts,
) -> Result<Vec<ProcessCount>, etl_analysis::Error> {
    let mut recording = Recording::open_within([(source, name)], limits)?;
    let clock = recording.files().first().map(|file| file.trace.clock());
    let events = Analysis::new().count_by_owner(&mut recording, counted)?;
    let utc = |time: Ticks| clock.as_ref().map(|clock| clock.time(time).to_string());
    let mut out = Vec::new();
    for (index, process) in events.machine.indexed_processes() {
        let count = events.count(index);
        // The idle process is always known, but may have no events.
        if count == 0 && process.parent_pid().is_none() {
            continue;
        }
        out.push(ProcessCount {
            pid: process.pid().get(),
            name: Some(process.name().to_owned()).filter(|name| !name.is_empty()),
            parent_pid: process.parent_pid().map(ProcessId::get),
            start_time: process.started().and_then(utc),
            end_time: process.ended().and_then(utc),
            count,
        });
    }
    out.sort_by(|a, b| b.count.cmp(&a.count).then(a.pid.cmp(&b.pid)));
    Ok(out)
}
