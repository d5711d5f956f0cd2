//! The search for earlier occurrences that every encoder uses.

use super::Effort;
use crate::cursor::Bytes;

/// Bits of a hash of three bytes.
const HASH_BITS: u32 = 15;
/// Positions whose predecessors are remembered: the farthest that any format reaches.
const RING: usize = 1 << 16;
/// A match is this long at least, in every format.
pub(super) const SHORTEST: usize = 3;
/// Of a longer match only the ends are remembered.
const REMEMBERED: usize = 64;

/// Chains of positions with the same three bytes, newest first. Positions are counted from 1.
#[derive(Clone, Debug)]
pub(super) struct Chains {
    head: Vec<u32>,
    previous: Vec<u32>,
    /// Candidates looked at.
    depth: u32,
    /// A match of this length is not improved upon.
    enough: usize,
    /// Whether to see if the next position has a longer match.
    lazy: bool,
    /// The match at the position after one that became a literal in its favour.
    next: Option<(usize, Match)>,
}

/// `len` bytes that repeat those `distance` before.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Match {
    pub len: usize,
    pub distance: usize,
}

impl Chains {
    pub(super) fn new(effort: Effort) -> Self {
        let (depth, enough, lazy) = match effort {
            Effort::Fast => (4, 32, false),
            Effort::Default => (8, 32, true),
            Effort::Best => (256, 1024, true),
        };
        let (head, previous) = (vec![0; 1 << HASH_BITS], vec![0; RING]);
        Chains {
            head,
            previous,
            depth,
            enough,
            lazy,
            next: None,
        }
    }

    /// Forgets the last buffer.
    pub(super) fn reset(&mut self) {
        self.head.fill(0);
        self.next = None;
    }

    #[inline]
    fn slot(data: &[u8], at: usize) -> Option<usize> {
        let bytes: &[u8; 3] = data.get(at..)?.first_chunk()?;
        let [a, b, c] = *bytes;
        let word = u32::from_le_bytes([a, b, c, 0]);
        Some((word.wrapping_mul(0x9e37_79b1) >> (32 - HASH_BITS)) as usize)
    }

    /// Remembers a position.
    #[inline]
    pub(super) fn insert(&mut self, data: &[u8], at: usize) {
        let (Some(slot), Ok(number)) = (Self::slot(data, at), u32::try_from(at + 1)) else {
            return;
        };
        if let (Some(head), Some(place)) =
            (self.head.get_mut(slot), self.previous.get_mut(at % RING))
        {
            *place = *head;
            *head = number;
        }
    }

    /// Remembers the positions that a match covers.
    pub(super) fn cover(&mut self, data: &[u8], from: usize, end: usize) {
        if end.saturating_sub(from) <= REMEMBERED {
            (from..end).for_each(|at| self.insert(data, at));
        } else {
            (from..from + REMEMBERED / 2).for_each(|at| self.insert(data, at));
            (end - REMEMBERED / 2..end).for_each(|at| self.insert(data, at));
        }
    }

    /// The longest match found for `at` that has more than `least` bytes, within `reach` before it
    /// and ending before `end`.
    #[inline]
    fn longest(
        &self,
        data: &[u8],
        at: usize,
        reach: usize,
        end: usize,
        least: usize,
    ) -> Option<Match> {
        let slot = Self::slot(data, at)?;
        let mut candidate = *self.head.get(slot)? as usize;
        let here = data.get(at..end)?;
        let mut best = Match {
            len: least,
            distance: 0,
        };
        for _ in 0..self.depth {
            let Some(from) = candidate.checked_sub(1) else {
                break;
            };
            let distance = at.saturating_sub(from);
            if distance == 0 || distance > reach {
                break;
            }
            if here.len() <= best.len {
                break;
            }
            // A longer match has these bytes in common.
            let same = match best.len.checked_sub(3) {
                Some(probe) => data.u32_at(from + probe) == here.u32_at(probe),
                None => data.get(from + best.len) == here.get(best.len),
            };
            if same {
                let len = common(data.get(from..)?, here);
                if len > best.len {
                    best = Match { len, distance };
                    if len >= self.enough {
                        break;
                    }
                }
            }
            candidate = *self.previous.get(from % RING)? as usize;
        }
        (best.distance > 0).then_some(best)
    }

    /// The match to write at `at`, or `None` for a literal. Remembers `at`.
    #[inline]
    pub(super) fn choose(
        &mut self,
        data: &[u8],
        at: usize,
        reach: usize,
        end: usize,
    ) -> Option<Match> {
        let found = match self.next.take() {
            Some((known, found)) if known == at => Some(found),
            _ => self.longest(data, at, reach, end, SHORTEST - 1),
        };
        self.insert(data, at);
        let found = found?;
        if self.lazy && found.len < self.enough {
            let next = self.longest(data, at + 1, reach, end, found.len + 1);
            if let Some(next) = next {
                self.next = Some((at + 1, next));
                return None;
            }
        }
        Some(found)
    }
}

/// How many bytes two slices have in common at their beginning.
#[inline]
fn common(a: &[u8], b: &[u8]) -> usize {
    let mut len = 0;
    while let (Some(x), Some(y)) = (a.u64_at(len), b.u64_at(len)) {
        let differ = x ^ y;
        if differ != 0 {
            return len + (differ.trailing_zeros() / 8) as usize;
        }
        len += 8;
    }
    let rest = a.iter().skip(len).zip(b.iter().skip(len));
    len + rest.take_while(|(x, y)| x == y).count()
}
