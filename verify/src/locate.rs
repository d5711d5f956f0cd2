//! Finds the records that show findings: their processors and file offsets.

use std::cmp::Reverse;
use std::collections::BTreeMap;

use etl_analysis::files::Timeline;
use etl_analysis::{Error, Recording};
use etl_format::read::{BufferEntry, Record, Source, Trace};
use etl_format::{ProcessId, Ticks};

use crate::checks::Facts;
use crate::finding::{Finding, Severity};

/// The number of times that are looked up. The most severe findings come first.
const MAX_TIMES: usize = 32;

/// The number of times that are looked up for notes: a valid trace should not wait for them.
const MAX_TIMES_OF_NOTES: usize = 6;

/// The number of buffers that are read.
const MAX_BUFFERS: usize = 1_024;

/// The number of records of one time that are kept; only crafted files have more.
const MAX_RECORDS_OF_A_TIME: usize = 64;

/// Times of findings, with the process that each finding is about.
type WantedTimes = BTreeMap<Ticks, Option<ProcessId>>;

/// The records that were found, by time.
type Locations = BTreeMap<Ticks, Vec<Location>>;

/// The location of a record.
#[derive(Clone, Copy, Debug)]
struct Location {
    source: usize,
    pid: Option<ProcessId>,
    processor: Option<u16>,
    offset: u64,
}

/// Sets the location of each finding that has a time and no location yet: the location of the
/// record of this time, if possible of the finding's process.
pub(crate) fn locate<S: Source>(
    recording: &mut Recording<S>,
    facts: &Facts,
    findings: &mut [Finding],
) -> Result<(), Error> {
    let wanted = wanted_times(findings);
    if wanted.is_empty() {
        return Ok(());
    }
    let mut locations = Locations::new();
    let mut budget = MAX_BUFFERS;
    for (index, file) in recording.files_mut().iter_mut().enumerate() {
        let search = Search {
            index,
            timeline: facts.machine.timeline(),
            wanted: &wanted,
        };
        search
            .run(&mut file.trace, &mut budget, &mut locations)
            .map_err(|e| Error::new(index, &file.name, e))?;
    }
    for finding in findings.iter_mut().filter(|f| f.offset.is_none()) {
        let Some(timestamp) = finding.timestamp else {
            continue;
        };
        let Some(location) = best_location(&locations, timestamp, finding.pid) else {
            continue;
        };
        finding.file = recording
            .files()
            .get(location.source)
            .map(|file| file.name.clone());
        finding.processor = location.processor;
        finding.offset = Some(location.offset);
    }
    Ok(())
}

/// The times of findings without a location.
fn wanted_times(findings: &[Finding]) -> WantedTimes {
    let mut wanted = WantedTimes::new();
    for finding in findings.iter().filter(|f| f.offset.is_none()) {
        let max = if finding.severity > Severity::Note {
            MAX_TIMES
        } else {
            MAX_TIMES_OF_NOTES
        };
        if let Some(timestamp) = finding.timestamp
            && wanted.len() < max
        {
            wanted.entry(timestamp).or_insert(finding.pid);
        }
    }
    wanted
}

/// The location of a record of a process, or else of the first record of a time.
fn best_location(
    locations: &Locations,
    timestamp: Ticks,
    pid: Option<ProcessId>,
) -> Option<&Location> {
    let locations = locations.get(&timestamp)?;
    let mut of_process = locations.iter().filter(|l| l.pid.is_some() && l.pid == pid);
    of_process.next().or(locations.first())
}

/// A search in a file.
struct Search<'a> {
    /// Index of the file.
    index: usize,
    timeline: &'a Timeline,
    wanted: &'a WantedTimes,
}

impl Search<'_> {
    fn run<S: Source>(
        &self,
        trace: &mut Trace<S>,
        budget: &mut usize,
        locations: &mut Locations,
    ) -> etl_format::Result<()> {
        let streams = self.streams(trace.buffers());
        for (&timestamp, &pid) in self.wanted {
            for buffer in candidates(&streams, timestamp) {
                if *budget == 0 {
                    return Ok(());
                }
                *budget -= 1;
                let mut records = trace.records_of(|entry| entry.offset == buffer.offset);
                let mut is_found = false;
                while let Some(record) = records.next_record()? {
                    if self.timeline.timestamp(self.index, record.timestamp()) != timestamp {
                        continue;
                    }
                    let location = self.location(&record, buffer);
                    is_found |= pid.is_none() || location.pid.is_none() || location.pid == pid;
                    let of_time = locations.entry(timestamp).or_default();
                    if of_time.len() < MAX_RECORDS_OF_A_TIME {
                        of_time.push(location);
                    }
                }
                if is_found {
                    break;
                }
            }
        }
        Ok(())
    }

    fn location(&self, record: &Record<'_>, buffer: Buffer) -> Location {
        let location = record.location();
        // A record of a compressed buffer has no offset of its own in the file.
        let in_buffer = if buffer.is_compressed {
            0
        } else {
            u64::from(location.in_buffer)
        };
        // If the header of a buffer could not be read, its processor is unknown.
        let processor = if buffer.is_rebuilt {
            None
        } else {
            Some(location.processor)
        };
        Location {
            source: self.index,
            pid: record.process_id(),
            processor,
            offset: location.buffer_offset.saturating_add(in_buffer),
        }
    }

    /// The buffers of each processor in the order of their first timestamps.
    fn streams(&self, buffers: &[BufferEntry]) -> Vec<Vec<Buffer>> {
        let mut by_processor: BTreeMap<u16, Vec<Buffer>> = BTreeMap::new();
        for entry in buffers {
            let stream = by_processor.entry(entry.processor).or_default();
            stream.push(Buffer {
                first: self.timeline.timestamp(self.index, entry.first_timestamp),
                offset: entry.offset,
                is_compressed: entry.compressed,
                is_rebuilt: entry.rebuilt,
            });
        }
        let mut streams: Vec<_> = by_processor.into_values().collect();
        for stream in &mut streams {
            stream.sort_unstable();
        }
        streams
    }
}

/// A buffer that may be searched.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Buffer {
    /// The time of its first record.
    first: Ticks,
    /// File offset.
    offset: u64,
    is_compressed: bool,
    is_rebuilt: bool,
}

/// The buffers that may have a record of a time, the likeliest first: of each processor the last
/// buffer that begins before the time, and the buffers that begin at it.
fn candidates(streams: &[Vec<Buffer>], timestamp: Ticks) -> Vec<Buffer> {
    let mut out: Vec<Buffer> = Vec::new();
    for stream in streams {
        let before = stream.partition_point(|buffer| buffer.first < timestamp);
        let until = stream.partition_point(|buffer| buffer.first <= timestamp);
        let buffers = stream.get(before.saturating_sub(1)..until);
        out.extend(buffers.unwrap_or_default().iter().take(MAX_BUFFERS));
    }
    out.sort_unstable_by_key(|buffer| (Reverse(buffer.first), buffer.offset));
    out
}
