//! Where in the files findings show: the processor and the offset of the record that came at their moment.
//!
//! Facts keep the moment of what is worth telling, and nothing of its place, since most of it never becomes a
//! finding. So the few buffers that cover these moments are read once more.

use std::collections::{BTreeMap, BTreeSet};

use etl_format::read::{BufferEntry, Mode, Options, OrderCheck, Record, Source, Trace};

use crate::facts::Facts;
use crate::facts::source::Timeline;
use crate::report::Finding;

/// Most moments that are looked for, those of the gravest findings first.
const MOMENTS: usize = 32;

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
    sources: &mut [(S, &str)],
    facts: &Facts,
    findings: &mut [Finding],
) -> Result<(), (usize, etl_format::Error)> {
    let mut wanted = BTreeSet::new();
    for stamp in findings.iter().filter(|f| f.offset.is_none()).filter_map(|f| f.stamp) {
        if wanted.len() < MOMENTS {
            wanted.insert(stamp);
        }
    }
    if wanted.is_empty() {
        return Ok(());
    }
    let mut spots: BTreeMap<i64, Vec<Spot>> = BTreeMap::new();
    let mut left = BUFFERS;
    for (index, (source, _)) in sources.iter_mut().enumerate() {
        let look = Look { index, timeline: facts.timeline(), wanted: &wanted };
        look.through(source, &mut left, &mut spots).map_err(|e| (index, e))?;
    }
    for finding in findings.iter_mut().filter(|f| f.offset.is_none()) {
        let Some(spots) = finding.stamp.and_then(|stamp| spots.get(&stamp)) else { continue };
        let own = spots.iter().find(|s| s.pid.is_some() && s.pid == finding.pid);
        let Some(spot) = own.or(spots.first()) else { continue };
        finding.file = sources.get(spot.source).map(|(_, name)| (*name).to_owned());
        (finding.processor, finding.offset) = (spot.processor, Some(spot.offset));
    }
    Ok(())
}

/// What is looked for in a file.
struct Look<'a> {
    index: usize,
    timeline: &'a Timeline,
    wanted: &'a BTreeSet<i64>,
}

impl Look<'_> {
    fn through<S: Source>(
        &self,
        source: &mut S,
        left: &mut usize,
        spots: &mut BTreeMap<i64, Vec<Spot>>,
    ) -> etl_format::Result<()> {
        let mode = Mode::Salvage;
        let options = Options { mode, order: OrderCheck::Ahead, ..Options::default() };
        let mut trace = Trace::open(source, &options)?;
        let mut covering = self.covering(trace.buffers());
        while covering.len() > *left {
            covering.pop_last();
        }
        *left -= covering.len();
        let compressed = trace.buffers().iter().filter(|b| b.compressed || b.rebuilt);
        let compressed: BTreeMap<u64, bool> = compressed
            .filter(|b| covering.contains(&b.offset))
            .map(|b| (b.offset, b.compressed))
            .collect();
        let mut records = trace.of_buffers(|b| covering.contains(&b.offset));
        while let Some(record) = records.next_record()? {
            let stamp = self.timeline.stamp(self.index, record.stamp());
            if self.wanted.contains(&stamp) {
                let here = spots.entry(stamp).or_default();
                // More than a few at one moment are of a file that was made to have them.
                if here.len() < 64 {
                    here.push(self.spot(&record, &compressed));
                }
            }
        }
        Ok(())
    }

    fn spot(&self, record: &Record<'_>, odd: &BTreeMap<u64, bool>) -> Spot {
        let place = record.place();
        let odd = odd.get(&place.buffer_offset);
        // Of a buffer whose header could not be read the processor is not known; in a compressed one records have no
        // place of their own in the file.
        let rebuilt = odd == Some(&false);
        let inside = if odd == Some(&true) { 0 } else { u64::from(place.in_buffer) };
        Spot {
            source: self.index,
            pid: record.process_id(),
            processor: (!rebuilt).then_some(place.processor),
            offset: place.buffer_offset.saturating_add(inside),
        }
    }

    /// Offsets of the buffers that may hold records of the moments: on each processor the last one that begins before
    /// it, and those that begin with it.
    fn covering(&self, buffers: &[BufferEntry]) -> BTreeSet<u64> {
        let mut by_processor: BTreeMap<u16, Vec<(i64, u64)>> = BTreeMap::new();
        for b in buffers {
            let first = self.timeline.stamp(self.index, b.first_stamp);
            by_processor.entry(b.processor).or_default().push((first, b.offset));
        }
        let mut out = BTreeSet::new();
        for stream in by_processor.values_mut() {
            stream.sort_unstable();
            for stamp in self.wanted {
                let before = stream.partition_point(|(first, _)| first < stamp);
                let with = stream.partition_point(|(first, _)| first <= stamp);
                let covering = stream.get(before.saturating_sub(1)..with).unwrap_or_default();
                out.extend(covering.iter().map(|&(_, offset)| offset));
            }
        }
        out
    }
}
