//! When missing buffers could have been written.

use std::collections::BTreeMap;

use etl_format::read::{BufferEntry, Note};
use foldhash::HashMap;

use super::counts::TimeSpan;
use super::{Gap, Span};

/// The times in which the missing buffers of each gap could have been written.
pub(super) fn gaps(
    notes: &[Note],
    entries: &[BufferEntry],
    buffers: &HashMap<u64, TimeSpan>,
    utc: &dyn Fn(i64) -> String,
) -> Vec<Gap> {
    let mut streams: BTreeMap<u16, Vec<&BufferEntry>> = BTreeMap::new();
    for entry in entries.iter().filter(|e| !e.is_header() && !e.rebuilt) {
        streams.entry(entry.processor).or_default().push(entry);
    }
    for stream in streams.values_mut() {
        stream.sort_by_key(|e| e.sequence_number);
    }
    let span_of = |e: &&&BufferEntry| buffers.get(&e.offset).copied().flatten();
    let mut gaps = Vec::new();
    for note in notes {
        let Note::SequenceGap { first, count, .. } = *note else { continue };
        let spans = streams
            .iter()
            .map(|(&processor, stream)| {
                let before = stream.iter().rev().find(|e| e.sequence_number < first);
                let after = stream.iter().find(|e| e.sequence_number > first);
                Span {
                    processor,
                    from: before.as_ref().and_then(span_of).map(|(_, last)| utc(last)),
                    to: after.as_ref().and_then(span_of).map(|(first, _)| utc(first)),
                }
            })
            .collect();
        gaps.push(Gap { first, count, spans });
    }
    gaps
}
