//! The alignment of two windows of events.

use std::collections::HashSet;

use similar::{Algorithm, DiffOp, capture_diff_slices};

use super::event::Event;

/// The result for events, by their indexes in the windows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Op {
    Same,
    Missing(usize),
    Extra(usize),
    Changed { before: usize, after: usize },
}

/// An index in each window.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Position {
    pub a: usize,
    pub b: usize,
}

impl Position {
    /// The position after one event of each window.
    fn next(self) -> Self {
        Position {
            a: self.a + 1,
            b: self.b + 1,
        }
    }
}

/// Results in order, and the end of the events that they cover.
#[derive(Debug)]
pub(super) struct Aligned {
    pub ops: Vec<Op>,
    pub end: Position,
}

/// Levels of pairing in the order in which they are tried; see [`Event::pairing`].
const LEVELS: [usize; 3] = [0, 1, 2];
const LEVELS_WITHOUT_TIME: [usize; 3] = [0, 2, 3];

/// Aligns two windows: all events if no events follow them (`whole`), else the events up to the
/// last match, because later events may match events that follow.
pub(super) fn windows(a: &[Event], b: &[Event], whole: bool, without_time: bool) -> Aligned {
    let matches = common(a, b, Event::hash);
    let end = match matches.last() {
        _ if whole => Position {
            a: a.len(),
            b: b.len(),
        },
        Some(last) => last.next(),
        None => middle(a, b, without_time),
    };
    let levels: &[usize] = if without_time {
        &LEVELS_WITHOUT_TIME
    } else {
        &LEVELS
    };
    let mut aligner = Aligner {
        a,
        b,
        ops: Vec::new(),
    };
    let mut start = Position::default();
    for position in matches {
        aligner.pair_gap(start, position, levels);
        aligner.ops.push(Op::Same);
        start = position.next();
    }
    aligner.pair_gap(start, end, levels);
    Aligned {
        ops: aligner.ops,
        end,
    }
}

/// Where to cut windows that have no event in common: in the middle, at the same time in both,
/// after at least one event.
fn middle(a: &[Event], b: &[Event], without_time: bool) -> Position {
    if without_time || a.is_empty() || b.is_empty() {
        return Position {
            a: a.len().div_ceil(2),
            b: b.len().div_ceil(2),
        };
    }
    let time = middle_time(a).min(middle_time(b));
    Position {
        a: count_until(a, time),
        b: count_until(b, time),
    }
}

fn middle_time(events: &[Event]) -> i64 {
    match events.get(events.len() / 2) {
        Some(event) => event.compared_time(),
        None => i64::MAX,
    }
}

/// The number of events up to a time.
fn count_until(events: &[Event], time: i64) -> usize {
    events.partition_point(|event| event.compared_time() <= time)
}

struct Aligner<'e> {
    a: &'e [Event],
    b: &'e [Event],
    ops: Vec<Op>,
}

impl Aligner<'_> {
    /// Pairs events between two positions as changed; the others are missing or extra.
    fn pair_gap(&mut self, start: Position, end: Position, levels: &[usize]) {
        let Some((level, deeper)) = levels.split_first() else {
            return self.add_unpaired(start, end);
        };
        if start.a >= end.a || start.b >= end.b {
            return self.add_unpaired(start, end);
        }
        let a = self.a.get(start.a..end.a).unwrap_or_default();
        let b = self.b.get(start.b..end.b).unwrap_or_default();
        let mut gap_start = start;
        for pair in common(a, b, |event| event.pairing(*level)) {
            let pair = Position {
                a: start.a + pair.a,
                b: start.b + pair.b,
            };
            self.pair_gap(gap_start, pair, deeper);
            self.ops.push(Op::Changed {
                before: pair.a,
                after: pair.b,
            });
            gap_start = pair.next();
        }
        self.pair_gap(gap_start, end, deeper);
    }

    fn add_unpaired(&mut self, start: Position, end: Position) {
        self.ops.extend((start.a..end.a).map(Op::Missing));
        self.ops.extend((start.b..end.b).map(Op::Extra));
    }
}

/// The positions of a longest common subsequence by `key`.
fn common(a: &[Event], b: &[Event], key: impl Fn(&Event) -> u64) -> Vec<Position> {
    // Keys of one side only cannot match. Without them the search is short, even if the windows are
    // very different.
    let all_a: Vec<u64> = a.iter().map(&key).collect();
    let all_b: Vec<u64> = b.iter().map(&key).collect();
    let a = CommonKeys::new(&all_a, &all_b);
    let b = CommonKeys::new(&all_b, &all_a);
    let mut matches = Vec::new();
    for op in capture_diff_slices(Algorithm::Myers, &a.keys, &b.keys) {
        if let DiffOp::Equal {
            old_index,
            new_index,
            len,
        } = op
        {
            let indexes_a = a.indexes.iter().skip(old_index);
            let indexes_b = b.indexes.iter().skip(new_index);
            for (a, b) in indexes_a.zip(indexes_b).take(len) {
                matches.push(Position { a: *a, b: *b });
            }
        }
    }
    matches
}

/// The keys of one window that the other window also has.
struct CommonKeys {
    keys: Vec<u64>,
    /// The index of each key in its window.
    indexes: Vec<usize>,
}

impl CommonKeys {
    fn new(all: &[u64], other: &[u64]) -> Self {
        let other: HashSet<u64> = other.iter().copied().collect();
        let mut common = CommonKeys {
            keys: Vec::new(),
            indexes: Vec::new(),
        };
        for (index, key) in all.iter().enumerate() {
            if other.contains(key) {
                common.keys.push(*key);
                common.indexes.push(index);
            }
        }
        common
    }
}
