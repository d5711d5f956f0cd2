//! Sequence numbers of buffers: gaps, repetitions, and buffers out of order.

use std::collections::BTreeMap;

use crate::constants::LogFileMode;

use super::damage::Note;
use super::index::BufferEntry;

/// Notes on sequence numbers: gaps, repetitions, and buffers out of order. Numbers start again
/// after another file header.
pub(super) fn sequence_notes(buffers: &[BufferEntry], mode: LogFileMode) -> Vec<Note> {
    let mut notes = Vec::new();
    let mut rest = buffers;
    while let Some((first, others)) = rest.split_first() {
        let len = others.iter().position(BufferEntry::is_header).unwrap_or(others.len());
        let (session, after) = others.split_at_checked(len).unwrap_or((others, &[]));
        session_notes(first, session, mode, &mut notes);
        rest = after;
    }
    notes
}

fn session_notes(
    first: &BufferEntry,
    others: &[BufferEntry],
    mode: LogFileMode,
    notes: &mut Vec<Note>,
) {
    // A rebuilt buffer has no number, which is not a gap.
    let numbered = || core::iter::once(first).chain(others).filter(|b| !b.rebuilt);
    let mut last_of = BTreeMap::new();
    for b in numbered() {
        let last = last_of.insert((!b.is_header(), b.processor), b.sequence_number);
        if last.is_some_and(|last| last > b.sequence_number) {
            notes.push(Note::Reordered { offset: b.offset });
            break;
        }
    }
    let mut by_number: Vec<_> = numbered().map(|b| (b.sequence_number, b.offset)).collect();
    by_number.sort_unstable();
    for (&(before, _), &(number, offset)) in by_number.iter().zip(by_number.iter().skip(1)) {
        match number.saturating_sub(before) {
            0 => notes.push(Note::SequenceTwice { offset, number }),
            1 => {}
            // A later file of a session, and a circular file, can start at any number.
            _ if before == 0
                && (mode.has(LogFileMode::NEWFILE) || mode.has(LogFileMode::CIRCULAR)) => {}
            step => notes.push(Note::SequenceGap {
                offset,
                first: before.saturating_add(1),
                count: step.unsigned_abs().saturating_sub(1),
            }),
        }
    }
}
