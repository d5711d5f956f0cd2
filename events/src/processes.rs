//! The processes of a trace: names, lifetimes, and numbers of events.

use etl_analysis::machine::Process;
use etl_analysis::{Analysis, OwnerCounts, Recording};
use etl_format::read::{Limits, Source};
use etl_format::{Clock, ProcessId};
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
    /// When it ended, UTC; `None` if that was after the trace, or is not recorded.
    pub end_time: Option<String>,
    /// Number of its events; samples and stacks belong to the process that ran.
    pub count: u64,
}

impl ProcessCount {
    fn new(process: &Process, count: u64, clock: Option<&Clock>) -> Self {
        let mut out = ProcessCount {
            pid: process.pid().get(),
            name: None,
            parent_pid: process.parent_pid().map(ProcessId::get),
            start_time: None,
            end_time: None,
            count,
        };
        if !process.name().is_empty() {
            out.name = Some(process.name().to_owned());
        }
        if let Some(clock) = clock {
            out.start_time = process.started().map(|time| clock.time(time).to_string());
            out.end_time = process.ended().map(|time| clock.time(time).to_string());
        }
        out
    }
}

/// The processes of a trace whose records were `counted`, the process with the most events first.
/// Reads the trace within `limits` if several processes had the same id.
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
    let mut out = Vec::new();
    for (index, process) in events.machine.indexed_processes() {
        let count = events.count(index);
        // The idle process is in every machine, but may have no events.
        if count > 0 || process.parent_pid().is_some() {
            out.push(ProcessCount::new(process, count, clock.as_ref()));
        }
    }
    out.sort_by(|a, b| b.count.cmp(&a.count).then(a.pid.cmp(&b.pid)));
    Ok(out)
}
