//! Where in the files findings show: the processor and the offset of the record that came at their moment.
//!
//! Facts keep the moment of what is worth telling, and nothing of its place, since most of it never becomes a
//! finding. So the few buffers that cover these moments are read once more.

use std::collections::BTreeMap;

use etl_analysis::{Error, Recording};
use etl_format::read::{BufferEntry, Record, Source, Trace};

use crate::facts::Facts;
use crate::facts::source::Timeline;
use crate::report::{Finding, Severity};

/// Most moments that are looked for, those of the gravest findings first.
const MOMENTS: usize = 32;

/// Most of them that only notes are about: a trace with nothing to mend is not to wait for them.
const NOTED: usize = 6;

/// Most buffers that are read for them.
const BUFFERS: usize = 1_024;

/// A record at a moment.
#[derive(Clone, Copy, Debug)]
struct Spot {
    source: usize,
    pid: Option<u32>,
    processor: Option<u16>,
    offset: u64,
}

/// Gives each finding that has a moment, and no place yet, the place of the record that came then: of the finding's
/// process, if there is one.
pub(crate) fn find<S: Source>(
    recording: &mut Recording<S>,
    facts: &Facts,
    findings: &mut [Finding],
) -> Result<(), Error> {
    // The moments, and the process that each is about.
    let mut wanted: BTreeMap<i64, Option<u32>> = BTreeMap::new();
    for finding in findings.iter().filter(|f| f.offset.is_none()) {
        // The gravest come first.
        let most = if finding.severity > Severity::Note { MOMENTS } else { NOTED };
        if let (Some(timestamp), true) = (finding.ticks, wanted.len() < most) {
            wanted.entry(timestamp).or_insert(finding.pid);
        }
    }
    if wanted.is_empty() {
        return Ok(());
    }
    let mut spots: BTreeMap<i64, Vec<Spot>> = BTreeMap::new();
    let mut left = BUFFERS;
    for (index, (trace, name)) in recording.files_mut().iter_mut().enumerate() {
        let look = Look { index, timeline: facts.timeline(), wanted: &wanted };
        look.through(trace, &mut left, &mut spots).map_err(|e| Error::new(index, name, e))?;
    }
    for finding in findings.iter_mut().filter(|f| f.offset.is_none()) {
        let Some(spots) = finding.ticks.and_then(|timestamp| spots.get(&timestamp)) else {
            continue;
        };
        let own = spots.iter().find(|s| s.pid.is_some() && s.pid == finding.pid);
        let Some(spot) = own.or(spots.first()) else { continue };
        finding.file = recording.files().get(spot.source).map(|(_, name)| name.clone());
        (finding.processor, finding.offset) = (spot.processor, Some(spot.offset));
    }
    Ok(())
}

/// What is looked for in a file.
struct Look<'a> {
    index: usize,
    timeline: &'a Timeline,
    wanted: &'a BTreeMap<i64, Option<u32>>,
}

impl Look<'_> {
    fn through<S: Source>(
        &self,
        trace: &mut Trace<S>,
        left: &mut usize,
        spots: &mut BTreeMap<i64, Vec<Spot>>,
    ) -> etl_format::Result<()> {
        let streams = self.streams(trace.buffers());
        for (&timestamp, &pid) in self.wanted {
            for (_, offset, odd) in covering(&streams, timestamp) {
                if *left == 0 {
                    return Ok(());
                }
                *left -= 1;
                let mut records = trace.of_buffers(|b| b.offset == offset);
                let mut found = false;
                while let Some(record) = records.next_record()? {
                    if self.timeline.timestamp(self.index, record.timestamp()) != timestamp {
                        continue;
                    }
                    let spot = self.spot(&record, odd);
                    found |= pid.is_none() || spot.pid.is_none() || spot.pid == pid;
                    let here = spots.entry(timestamp).or_default();
                    // More than a few at one moment are of a file that was made to have them.
                    if here.len() < 64 {
                        here.push(spot);
                    }
                }
                if found {
                    break;
                }
            }
        }
        Ok(())
    }

    fn spot(&self, record: &Record<'_>, odd: Odd) -> Spot {
        let place = record.location();
        let inside = if odd.compressed { 0 } else { u64::from(place.in_buffer) };
        Spot {
            source: self.index,
            pid: record.process_id(),
            processor: (!odd.rebuilt).then_some(place.processor),
            offset: place.buffer_offset.saturating_add(inside),
        }
    }

    /// The buffers of each processor in the order of their first timestamps.
    fn streams(&self, buffers: &[BufferEntry]) -> Vec<Vec<Candidate>> {
        let mut streams: BTreeMap<u16, Vec<Candidate>> = BTreeMap::new();
        for b in buffers {
            let first = self.timeline.timestamp(self.index, b.first_timestamp);
            let odd = Odd { compressed: b.compressed, rebuilt: b.rebuilt };
            streams.entry(b.processor).or_default().push((first, b.offset, odd));
        }
        let mut streams: Vec<_> = streams.into_values().collect();
        streams.iter_mut().for_each(|stream| stream.sort_unstable());
        streams
    }
}

/// A buffer: its first timestamp and its offset.
type Candidate = (i64, u64, Odd);

/// What makes places in a buffer differ: in a compressed one records have no place of their own in the file, and of one
/// whose header could not be read the processor is not known.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Odd {
    compressed: bool,
    rebuilt: bool,
}

/// The buffers that may hold a record of a moment, the likeliest first: on each processor the last one that begins before
/// it, and those that begin with it.
fn covering(streams: &[Vec<Candidate>], timestamp: i64) -> Vec<Candidate> {
    let mut out = Vec::new();
    for stream in streams {
        let before = stream.partition_point(|(first, ..)| *first < timestamp);
        let with = stream.partition_point(|(first, ..)| *first <= timestamp);
        // As many at one moment as are ever read.
        let all = stream.get(before.saturating_sub(1)..with).unwrap_or_default();
        out.extend(all.iter().take(BUFFERS));
    }
    out.sort_unstable_by_key(|&(first, offset, _)| (std::cmp::Reverse(first), offset));
    out
}
