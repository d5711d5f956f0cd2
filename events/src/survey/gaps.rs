//! When missing buffers could have been written.

use std::collections::BTreeMap;

use etl_format::Ticks;
use etl_format::read::{BufferEntry, Note};
use foldhash::HashMap;

use super::counts::TimeSpan;
use super::{Gap, Span};

/// The most spans of all gaps. Every gap has a span for each processor that wrote buffers, and a
/// trace of small buffers can have many thousands of both.
const MAX_SPANS: usize = 1 << 16;

/// The times in which the missing buffers of each gap could have been written.
pub(super) fn gaps(
    notes: &[Note],
    entries: &[BufferEntry],
    buffers: &HashMap<u64, TimeSpan>,
    utc: &dyn Fn(Ticks) -> String,
) -> Vec<Gap> {
    // Numbers start again with each run of sessions.
    let mut runs: BTreeMap<u32, BTreeMap<u16, Vec<&BufferEntry>>> = BTreeMap::new();
    for entry in entries {
        if !entry.is_header() && !entry.rebuilt {
            let streams = runs.entry(entry.run).or_default();
            streams.entry(entry.processor).or_default().push(entry);
        }
    }
    for stream in runs.values_mut().flat_map(BTreeMap::values_mut) {
        stream.sort_by_key(|entry| entry.sequence_number);
    }
    let run_of_offset: BTreeMap<u64, u32> = entries.iter().map(|e| (e.offset, e.run)).collect();
    let mut gaps = Vec::new();
    let mut space = MAX_SPANS;
    for note in notes {
        let Note::SequenceGap {
            offset,
            first,
            count,
        } = *note
        else {
            continue;
        };
        let run = run_of_offset.get(&offset).copied().unwrap_or(0);
        let Some(streams) = runs.get(&run) else {
            continue;
        };
        let mut spans = Vec::new();
        for (&processor, stream) in streams.iter().take(space) {
            let previous = first_index(stream, first).checked_sub(1);
            let before = times(previous.and_then(|index| stream.get(index)), buffers);
            let next = first_index(stream, first.saturating_add(1));
            let after = times(stream.get(next), buffers);
            spans.push(Span {
                processor,
                from: before.map(|times| utc(times.last)),
                to: after.map(|times| utc(times.first)),
            });
        }
        space -= spans.len();
        let spans_left_out = streams.len() - spans.len();
        gaps.push(Gap {
            first,
            count,
            spans,
            spans_left_out,
        });
    }
    gaps
}

/// The index of the first buffer with at least this sequence number.
fn first_index(stream: &[&BufferEntry], sequence_number: i64) -> usize {
    stream.partition_point(|entry| entry.sequence_number < sequence_number)
}

/// The times of the records in a buffer.
fn times(entry: Option<&&BufferEntry>, buffers: &HashMap<u64, TimeSpan>) -> Option<TimeSpan> {
    buffers.get(&entry?.offset).copied()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The gaps of a trace with a buffer of each processor, and one missing after each.
    fn found(processors: u16) -> Vec<Gap> {
        let numbers = (0..processors).map(|processor| (processor, 2 * i64::from(processor)));
        let entries: Vec<_> = numbers
            .clone()
            .map(|(processor, sequence_number)| {
                let mut entry = BufferEntry::default();
                (entry.processor, entry.sequence_number) = (processor, sequence_number);
                entry.offset = u64::from(processor);
                entry
            })
            .collect();
        let notes: Vec<_> = numbers
            .map(|(_, number)| Note::SequenceGap {
                offset: 0,
                first: number + 1,
                count: 1,
            })
            .collect();
        let times = |entry: &BufferEntry| {
            let time = Ticks::new(10 * entry.sequence_number);
            let span = TimeSpan {
                first: time,
                last: time.saturating_add(5),
            };
            (entry.offset, span)
        };
        gaps(
            &notes,
            &entries,
            &entries.iter().map(times).collect(),
            &|time| time.to_string(),
        )
    }

    #[test]
    fn gaps_lie_between_the_buffers_of_each_processor() {
        let found = found(2);
        let spans = |gap: &Gap| -> Vec<_> {
            gap.spans
                .iter()
                .map(|span| (span.from.clone(), span.to.clone()))
                .collect()
        };
        let at = |time: &str| Some(time.to_owned());
        assert_eq!(spans(&found[0]), [(at("5"), None), (None, at("20"))]);
        assert_eq!(spans(&found[1]), [(at("5"), None), (at("25"), None)]);
        assert_eq!(found[0].spans_left_out, 0);
    }

    #[test]
    fn spans_have_a_limit() {
        let found = found(300);
        assert_eq!(
            found.iter().map(|gap| gap.spans.len()).sum::<usize>(),
            MAX_SPANS
        );
        let all = |gap: &Gap| gap.spans.len() + gap.spans_left_out == 300;
        assert!(found.len() == 300 && found.iter().all(all));
    }
}
