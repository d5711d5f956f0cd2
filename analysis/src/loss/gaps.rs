//! When the buffers were written whose numbers are missing.

use std::collections::{BTreeSet, HashMap};

use etl_format::read::BufferEntry;

/// First and last timestamp; `None` for the beginning and the end of the recording.
pub(super) type Span = (Option<i64>, Option<i64>);

/// The span of each gap, by its first missing number, in rising order: a missing buffer may be of
/// any processor, so it is from after the last buffer that one of them has before the gap to the
/// first buffer that one of them has after it.
pub(super) fn spans(buffers: &[&BufferEntry], gaps: &[i64]) -> Vec<Span> {
    let mut numbered: Vec<_> = buffers.iter().copied().filter(|b| !b.is_header()).collect();
    numbered.sort_by_key(|b| b.sequence_number);
    let processors = numbered.iter().map(|b| b.processor).collect::<BTreeSet<_>>().len();
    let mut nearest = Nearest::default();
    let mut before = numbered.iter().peekable();
    let mut spans = Vec::new();
    for gap in gaps {
        while let Some(buffer) = before.next_if(|b| b.sequence_number < *gap) {
            nearest.pass(buffer);
        }
        let from = nearest.of_all(processors).and_then(BTreeSet::first);
        spans.push((from.map(|(time, _)| *time), None));
    }
    let mut nearest = Nearest::default();
    let mut after = numbered.iter().rev().peekable();
    for (gap, (_, to)) in gaps.iter().zip(&mut spans).rev() {
        while let Some(buffer) = after.next_if(|b| b.sequence_number > *gap) {
            nearest.pass(buffer);
        }
        let last = nearest.of_all(processors).and_then(BTreeSet::last);
        *to = last.map(|(time, _)| *time);
    }
    spans
}

/// The last buffer that was passed of each processor.
#[derive(Default)]
struct Nearest {
    times: HashMap<u16, i64>,
    sorted: BTreeSet<(i64, u16)>,
}

impl Nearest {
    fn pass(&mut self, buffer: &BufferEntry) {
        let (processor, time) = (buffer.processor, buffer.first_timestamp);
        if let Some(old) = self.times.insert(processor, time) {
            self.sorted.remove(&(old, processor));
        }
        self.sorted.insert((time, processor));
    }

    /// The times, if each of so many processors has one.
    fn of_all(&self, processors: usize) -> Option<&BTreeSet<(i64, u16)>> {
        (self.sorted.len() == processors).then_some(&self.sorted)
    }
}
