//! Finds the records at which findings show: processor and file offset.

use etl_format::{ProcessId, Ticks};
use std::collections::BTreeMap;

use etl_analysis::files::Timeline;
use etl_analysis::{Error, Recording};
use etl_format::read::{BufferEntry, Record, Source, Trace};

use crate::checks::Facts;
use crate::finding::{Finding, Severity};

/// How many times are looked up, those of the most severe findings first.
const MAX_TIMES: usize = 32;

/// How many times are looked up if only notes are left: a valid trace should not wait for them.
const MAX_TIMES_OF_NOTES: usize = 6;

/// How many buffers are read.
const MAX_BUFFERS: usize = 1_024;

/// How many records of one time are kept; only crafted files have more.
const MAX_RECORDS_OF_A_TIME: usize = 64;

/// Where a record is.
#[derive(Clone, Copy, Debug)]
struct Location {
    source: usize,
    pid: Option<ProcessId>,
    processor: Option<u16>,
    offset: u64,
}

/// Sets the location of each finding that has a time and no location yet: that of the record of
/// this time, of the finding's process if there is one.
pub(crate) fn locate<S: Source>(
    recording: &mut Recording<S>,
    facts: &Facts,
    findings: &mut [Finding],
) -> Result<(), Error> {
    // Times, and the process that each is about.
    let mut wanted: BTreeMap<Ticks, Option<u32>> = BTreeMap::new();
    for finding in findings.iter().filter(|f| f.offset.is_none()) {
        // The most severe findings come first.
        let max = if finding.severity > Severity::Note {
            MAX_TIMES
        } else {
            MAX_TIMES_OF_NOTES
        };
        if let (Some(timestamp), true) = (finding.timestamp, wanted.len() < max) {
            wanted
                .entry(timestamp)
                .or_insert(finding.pid.map(ProcessId::get));
        }
    }
    if wanted.is_empty() {
        return Ok(());
    }
    let mut found: BTreeMap<Ticks, Vec<Location>> = BTreeMap::new();
    let mut budget = MAX_BUFFERS;
    for (index, file) in recording.files_mut().iter_mut().enumerate() {
        let search = Search {
            index,
            timeline: facts.machine.timeline(),
            wanted: &wanted,
        };
        search
            .run(&mut file.trace, &mut budget, &mut found)
            .map_err(|e| Error::new(index, &file.name, e))?;
    }
    for finding in findings.iter_mut().filter(|f| f.offset.is_none()) {
        let Some(found) = finding.timestamp.and_then(|t| found.get(&t)) else {
            continue;
        };
        let own = found
            .iter()
            .find(|l| l.pid.is_some() && l.pid == finding.pid);
        let Some(location) = own.or(found.first()) else {
            continue;
        };
        finding.file = recording
            .files()
            .get(location.source)
            .map(|file| file.name.clone());
        (finding.processor, finding.offset) = (location.processor, Some(location.offset));
    }
    Ok(())
}

/// What is searched in a file.
struct Search<'a> {
    index: usize,
    timeline: &'a Timeline,
    wanted: &'a BTreeMap<Ticks, Option<u32>>,
}

impl Search<'_> {
    fn run<S: Source>(
        &self,
        trace: &mut Trace<S>,
        budget: &mut usize,
        found: &mut BTreeMap<Ticks, Vec<Location>>,
    ) -> etl_format::Result<()> {
        let streams = self.streams(trace.buffers());
        for (&timestamp, &pid) in self.wanted {
            for (_, offset, state) in covering(&streams, timestamp) {
                if *budget == 0 {
                    return Ok(());
                }
                *budget -= 1;
                let mut records = trace.records_of(|b| b.offset == offset);
                let mut is_found = false;
                while let Some(record) = records.next_record()? {
                    if self.timeline.timestamp(self.index, record.timestamp()) != timestamp {
                        continue;
                    }
                    let location = self.location(&record, state);
                    is_found |= pid.is_none()
                        || location.pid.is_none()
                        || location.pid == pid.map(ProcessId::new);
                    let here = found.entry(timestamp).or_default();
                    if here.len() < MAX_RECORDS_OF_A_TIME {
                        here.push(location);
                    }
                }
                if is_found {
                    break;
                }
            }
        }
        Ok(())
    }

    fn location(&self, record: &Record<'_>, state: BufferState) -> Location {
        let location = record.location();
        let inside = if state.compressed {
            0
        } else {
            u64::from(location.in_buffer)
        };
        Location {
            source: self.index,
            pid: record.process_id(),
            processor: (!state.rebuilt).then_some(location.processor),
            offset: location.buffer_offset.saturating_add(inside),
        }
    }

    /// The buffers of each processor in the order of their first timestamps.
    fn streams(&self, buffers: &[BufferEntry]) -> Vec<Vec<Candidate>> {
        let mut streams: BTreeMap<u16, Vec<Candidate>> = BTreeMap::new();
        for b in buffers {
            let first = self.timeline.timestamp(self.index, b.first_timestamp);
            let state = BufferState {
                compressed: b.compressed,
                rebuilt: b.rebuilt,
            };
            streams
                .entry(b.processor)
                .or_default()
                .push((first, b.offset, state));
        }
        let mut streams: Vec<_> = streams.into_values().collect();
        streams.iter_mut().for_each(|stream| stream.sort_unstable());
        streams
    }
}

/// A buffer: its first timestamp, its offset, and its state.
type Candidate = (Ticks, u64, BufferState);

/// What limits the locations of a buffer's records: those of a compressed one have no offset of
/// their own in the file, and a buffer whose header could not be read has no known processor.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct BufferState {
    compressed: bool,
    rebuilt: bool,
}

/// The buffers that may hold a record of a time, the likeliest first: on each processor the last
/// one that begins before it, and those that begin with it.
fn covering(streams: &[Vec<Candidate>], timestamp: Ticks) -> Vec<Candidate> {
    let mut out = Vec::new();
    for stream in streams {
        let before = stream.partition_point(|(first, ..)| *first < timestamp);
        let with = stream.partition_point(|(first, ..)| *first <= timestamp);
        let all = stream
            .get(before.saturating_sub(1)..with)
            .unwrap_or_default();
        out.extend(all.iter().take(MAX_BUFFERS));
    }
    out.sort_unstable_by_key(|&(first, offset, _)| (std::cmp::Reverse(first), offset));
    out
}
