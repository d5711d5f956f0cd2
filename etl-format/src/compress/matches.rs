//! The search for earlier occurrences that every encoder uses.

use super::Effort;
use crate::cursor::Bytes;

/// Bits of a hash of three bytes.
const HASH_BITS: u32 = 15;
/// Positions whose predecessors are remembered: the farthest that any format reaches.
const RING: usize = 1 << 16;
/// A match is this long at least, in every format.
pub(super) const SHORTEST: usize = 3;
/// Positions inside a match that are remembered: of a longer match only its first and last ones.
const MAX_REMEMBERED: usize = 64;

/// Chains of positions with the same three bytes, newest first. Positions are counted from 1.
#[derive(Clone, Debug)]
pub(super) struct Chains {
    head: Vec<u32>,
    previous: Vec<u32>,
    limits: Limits,
    /// A match that was found one position ahead and is longer than the match before it, which
    /// became a literal.
    next: Option<NextMatch>,
}

/// How long an encoder looks for a longer match.
#[derive(Clone, Copy, Debug)]
struct Limits {
    /// Candidates to compare.
    candidates: u32,
    /// A match of this length is good enough to end the search.
    good_len: usize,
    /// Whether to check if the next position has a longer match.
    looks_ahead: bool,
}

impl Limits {
    fn new(effort: Effort) -> Self {
        match effort {
            Effort::Fast => Limits {
                candidates: 4,
                good_len: 32,
                looks_ahead: false,
            },
            Effort::Default => Limits {
                candidates: 8,
                good_len: 32,
                looks_ahead: true,
            },
            Effort::Best => Limits {
                candidates: 256,
                good_len: 1024,
                looks_ahead: true,
            },
        }
    }
}

/// A match that was found before the encoder reached its position.
#[derive(Clone, Copy, Debug)]
struct NextMatch {
    position: usize,
    found: Match,
}

/// `len` bytes that repeat the bytes `distance` before them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Match {
    pub len: usize,
    pub distance: usize,
}

impl Chains {
    pub(super) fn new(effort: Effort) -> Self {
        Chains {
            head: vec![0; 1 << HASH_BITS],
            previous: vec![0; RING],
            limits: Limits::new(effort),
            next: None,
        }
    }

    /// Forgets the last buffer.
    pub(super) fn reset(&mut self) {
        self.head.fill(0);
        self.next = None;
    }

    /// The hash of the three bytes at a position.
    #[inline]
    fn slot(data: &[u8], position: usize) -> Option<usize> {
        let bytes: &[u8; 3] = data.get(position..)?.first_chunk()?;
        let [a, b, c] = *bytes;
        let word = u32::from_le_bytes([a, b, c, 0]);
        Some((word.wrapping_mul(0x9e37_79b1) >> (32 - HASH_BITS)) as usize)
    }

    /// Remembers a position.
    #[inline]
    pub(super) fn insert(&mut self, data: &[u8], position: usize) {
        if let Some(slot) = Self::slot(data, position)
            && let Ok(number) = u32::try_from(position + 1)
            && let Some(head) = self.head.get_mut(slot)
            && let Some(previous) = self.previous.get_mut(position % RING)
        {
            *previous = *head;
            *head = number;
        }
    }

    /// Remembers the positions that a match covers.
    pub(super) fn cover(&mut self, data: &[u8], from: usize, end: usize) {
        if end.saturating_sub(from) <= MAX_REMEMBERED {
            (from..end).for_each(|position| self.insert(data, position));
        } else {
            let head_end = from + MAX_REMEMBERED / 2;
            let tail_start = end - MAX_REMEMBERED / 2;
            (from..head_end).for_each(|position| self.insert(data, position));
            (tail_start..end).for_each(|position| self.insert(data, position));
        }
    }

    /// The longest match at a position that is longer than `shorter`, begins at most `max_distance`
    /// before, and ends before `end`.
    #[inline]
    fn longest(
        &self,
        data: &[u8],
        position: usize,
        max_distance: usize,
        end: usize,
        shorter: usize,
    ) -> Option<Match> {
        let slot = Self::slot(data, position)?;
        let mut candidate = *self.head.get(slot)? as usize;
        let target = data.get(position..end)?;
        let mut best = Match {
            len: shorter,
            distance: 0,
        };
        for _ in 0..self.limits.candidates {
            let Some(from) = candidate.checked_sub(1) else {
                break;
            };
            let distance = position.saturating_sub(from);
            if distance == 0 || distance > max_distance {
                break;
            }
            if target.len() <= best.len {
                break;
            }
            // A longer match has these bytes in common.
            let is_candidate = match best.len.checked_sub(3) {
                Some(probe) => data.u32_at(from + probe) == target.u32_at(probe),
                None => data.get(from + best.len) == target.get(best.len),
            };
            if is_candidate {
                let len = common_len(data.get(from..)?, target);
                if len > best.len {
                    best = Match { len, distance };
                    if len >= self.limits.good_len {
                        break;
                    }
                }
            }
            candidate = *self.previous.get(from % RING)? as usize;
        }
        (best.distance > 0).then_some(best)
    }

    /// The match to write at a position, or `None` for a literal. Remembers the position.
    #[inline]
    pub(super) fn choose(
        &mut self,
        data: &[u8],
        position: usize,
        max_distance: usize,
        end: usize,
    ) -> Option<Match> {
        let found = match self.next.take() {
            Some(next) if next.position == position => Some(next.found),
            _ => self.longest(data, position, max_distance, end, SHORTEST - 1),
        };
        self.insert(data, position);
        let found = found?;
        if self.limits.looks_ahead && found.len < self.limits.good_len {
            let position = position + 1;
            let longer = self.longest(data, position, max_distance, end, found.len + 1);
            if let Some(found) = longer {
                self.next = Some(NextMatch { position, found });
                return None;
            }
        }
        Some(found)
    }
}

/// How many bytes two slices have in common at their beginning.
#[inline]
fn common_len(a: &[u8], b: &[u8]) -> usize {
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
