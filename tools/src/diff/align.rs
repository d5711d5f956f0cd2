//! The alignment of two windows of events.

use std::collections::HashSet;
use std::ops::Range;

use similar::{Algorithm, DiffOp, capture_diff_slices};

use super::event::Event;

/// The result for events, by their indexes in the windows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Op {
    Same,
    Missing(usize),
    Extra(usize),
    Changed(usize, usize),
}

/// Results in order, and the number of events of each window that they cover.
#[derive(Debug)]
pub(super) struct Aligned {
    pub ops: Vec<Op>,
    pub decided: (usize, usize),
}

/// Levels of pairing in the order in which they are tried; see [`Event::pairing`].
const LEVELS: [usize; 3] = [0, 1, 2];
const LEVELS_WITHOUT_TIME: [usize; 3] = [0, 2, 3];

/// Aligns two windows: all events if nothing follows them (`whole`), else those up to the last
/// match, because later ones may match events that follow.
pub(super) fn windows(a: &[Event], b: &[Event], whole: bool, without_time: bool) -> Aligned {
    let matches = common(a, b, |e| e.hash());
    let decided = match matches.last() {
        _ if whole => (a.len(), b.len()),
        Some(&(i, j)) => (i + 1, j + 1),
        None => halves(a, b, without_time),
    };
    let levels: &[usize] = if without_time {
        &LEVELS_WITHOUT_TIME
    } else {
        &LEVELS
    };
    let mut ops = Vec::new();
    let (mut i, mut j) = (0, 0);
    for (next_i, next_j) in matches {
        gap(a, b, i..next_i, j..next_j, levels, &mut ops);
        ops.push(Op::Same);
        (i, j) = (next_i + 1, next_j + 1);
    }
    gap(
        a,
        b,
        i..decided.0.max(i),
        j..decided.1.max(j),
        levels,
        &mut ops,
    );
    Aligned { ops, decided }
}

/// Where to cut windows that have no event in common: in the middle, at the same time in both,
/// after at least one event.
fn halves(a: &[Event], b: &[Event], without_time: bool) -> (usize, usize) {
    let middle = |events: &[Event]| events.len().div_ceil(2);
    if without_time || a.is_empty() || b.is_empty() {
        return (middle(a), middle(b));
    }
    let at = |events: &[Event]| {
        events
            .get(events.len() / 2)
            .map_or(i64::MAX, Event::compared_time)
    };
    let cut = at(a).min(at(b));
    let until = |events: &[Event]| events.partition_point(|e| e.compared_time() <= cut);
    (until(a), until(b))
}

/// Pairs events of a gap as changed; the rest is missing or extra.
fn gap(
    a: &[Event],
    b: &[Event],
    mine: Range<usize>,
    others: Range<usize>,
    levels: &[usize],
    ops: &mut Vec<Op>,
) {
    if let Some((level, deeper)) = levels.split_first()
        && !mine.is_empty()
        && !others.is_empty()
    {
        let pairs = match (a.get(mine.clone()), b.get(others.clone())) {
            (Some(a), Some(b)) => common(a, b, |e| e.pairing(*level)),
            _ => Vec::new(),
        };
        let (mut i, mut j) = (mine.start, others.start);
        for (pair_i, pair_j) in pairs {
            let (next_i, next_j) = (mine.start + pair_i, others.start + pair_j);
            gap(a, b, i..next_i, j..next_j, deeper, ops);
            ops.push(Op::Changed(next_i, next_j));
            (i, j) = (next_i + 1, next_j + 1);
        }
        gap(a, b, i..mine.end, j..others.end, deeper, ops);
        return;
    }
    ops.extend(mine.map(Op::Missing));
    ops.extend(others.map(Op::Extra));
}

/// Indexes of a longest common subsequence by `key`.
fn common(a: &[Event], b: &[Event], key: impl Fn(&Event) -> u64) -> Vec<(usize, usize)> {
    // Keys of one side only cannot match; without them the search is short however different the
    // windows are.
    let keys = |events: &[Event]| events.iter().map(&key).collect::<Vec<_>>();
    let (of_a, of_b) = (keys(a), keys(b));
    let in_both = |own: &[u64], other: &[u64]| {
        let other: HashSet<u64> = other.iter().copied().collect();
        let indexes = own.iter().enumerate().filter(|(_, k)| other.contains(k));
        indexes
            .map(|(index, k)| (index, *k))
            .unzip::<_, _, Vec<_>, Vec<_>>()
    };
    let (indexes_a, keys_a) = in_both(&of_a, &of_b);
    let (indexes_b, keys_b) = in_both(&of_b, &of_a);
    let mut matches = Vec::new();
    for op in capture_diff_slices(Algorithm::Myers, &keys_a, &keys_b) {
        if let DiffOp::Equal {
            old_index,
            new_index,
            len,
        } = op
        {
            let pairs = indexes_a
                .iter()
                .skip(old_index)
                .zip(indexes_b.iter().skip(new_index));
            matches.extend(pairs.take(len).map(|(i, j)| (*i, *j)));
        }
    }
    matches
}
