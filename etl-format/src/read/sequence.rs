//! Sequence numbers of buffers: gaps, repetitions, and buffers out of order.

use std::collections::BTreeMap;

use crate::constants::LogFileMode;

use super::damage::Note;
use super::index::BufferEntry;

/// Notes on sequence numbers: gaps, repetitions, and buffers out of order. Numbers start again
/// after another file header. Damaged numbers are corrected.
pub(super) fn sequence_notes(buffers: &mut [BufferEntry], mode: LogFileMode) -> Vec<Note> {
    let mut notes = Vec::new();
    for session in buffers.chunk_by_mut(|_, next| !next.is_header()) {
        correct(session, &mut notes);
        session_notes(session, mode, &mut notes);
    }
    notes
}

/// Numbers further apart than this are not of one session.
const FAR: u64 = 1 << 20;

/// Corrects the number of a buffer where a single number is missing at its place, or in all. Its
/// own has to be apart from all others: the kernel also leaves numbers out.
fn correct(session: &mut [BufferEntry], notes: &mut Vec<Note>) {
    let numbers = session
        .iter()
        .filter(|b| !b.rebuilt)
        .map(|b| b.sequence_number);
    let nexts: Vec<_> = numbers.clone().skip(1).collect();
    let mut sorted: Vec<_> = numbers.collect();
    sorted.sort_unstable();
    let has = |number: i64| sorted.binary_search(&number).is_ok();
    let stray = stray(&sorted);
    let mut nexts = nexts.into_iter();
    let mut before = None;
    for entry in session.iter_mut().filter(|b| !b.rebuilt) {
        let (number, next) = (entry.sequence_number, nexts.next());
        let Some(last) = before.replace(number) else {
            continue;
        };
        let mut expected = last.saturating_add(1);
        let mut is_wrong = number != expected
            && next == Some(expected.saturating_add(1))
            && ![expected, number.saturating_sub(1), number.saturating_add(1)]
                .map(has)
                .contains(&true);
        if let Some((_, missing)) = stray.filter(|(stray, _)| *stray == number) {
            (expected, is_wrong) = (missing, true);
        }
        if is_wrong {
            notes.push(Note::SequenceWrong {
                offset: entry.offset,
                number,
                expected,
            });
            entry.sequence_number = expected;
            before = Some(expected);
        }
    }
}

/// A number that is far from all others, and the single one that these lack. They lack none where
/// the last buffer has the stray number.
fn stray(sorted: &[i64]) -> Option<(i64, i64)> {
    let (stray, others) = match sorted {
        [stray, others @ ..] if *stray < 0 => (*stray, others),
        [others @ .., stray] => (*stray, others),
        [] => return None,
    };
    let last = *others
        .last()
        .filter(|last| last.abs_diff(stray) > FAR && **last > 0)?;
    let mut gaps = others
        .iter()
        .zip(others.iter().skip(1))
        .filter(|(a, b)| a.abs_diff(**b) != 1);
    match (gaps.next(), gaps.next()) {
        (None, _) => Some((stray, last.saturating_add(1))),
        (Some((before, after)), None) if before.abs_diff(*after) == 2 => {
            Some((stray, before.saturating_add(1)))
        }
        _ => None,
    }
}

fn session_notes(session: &[BufferEntry], mode: LogFileMode, notes: &mut Vec<Note>) {
    // A rebuilt buffer has no number, which is not a gap.
    let numbered = || session.iter().filter(|b| !b.rebuilt);
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
