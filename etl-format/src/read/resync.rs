//! The search for intact records around a fault among the records of a buffer.

use core::ops::Range;

use crate::constants::RECORD_ALIGNMENT;
use crate::cursor::Bytes;

use super::walk::{Found, next_at, record_at};

/// The bytes of a buffer in which to search.
#[derive(Clone, Copy)]
pub(super) struct Search<'a> {
    /// The buffer, which may end before its fill.
    pub data: &'a [u8],
    /// Where its records end.
    pub fill: usize,
    /// Where the filler after the records begins: see [`super::walk::tail`].
    pub tail: usize,
}

/// A complete record of a known kind.
struct Intact {
    timestamp: i64,
    /// The offset after it.
    next: usize,
}

/// Where a chain of records has to end so that a record hides it.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum ChainEnd {
    /// Beyond the end of the record.
    Beyond,
    /// At the end of the record, or beyond it.
    AtEnd,
}

/// The largest distance of a plausible timestamp: 30 hours of a 10 MHz clock. Random bytes are in
/// this range once in sixteen million.
const NEAR: i64 = 1 << 40;

impl Search<'_> {
    /// The first intact record at or after `from`, to continue after a fault. The timestamp before
    /// the fault is `floor`.
    ///
    /// Any bytes may follow damage, so the record must also be plausible: see
    /// [`Search::is_plausible`]. Each offset needs a bounded number of reads, so the search is
    /// linear.
    pub fn resync(self, from: usize, floor: i64) -> Option<usize> {
        let first = from.next_multiple_of(RECORD_ALIGNMENT);
        let last = self.end().checked_sub(8)?;
        (first..=last)
            .step_by(RECORD_ALIGNMENT)
            .find(|offset| self.is_plausible(*offset, floor))
    }

    /// Where the records begin that a record hides because its size is too large: the first of a
    /// chain of intact records that begins within it and reaches its end. `timestamp` is the
    /// timestamp of a record nearby.
    pub fn hidden(self, record: Range<usize>, timestamp: i64, end: ChainEnd) -> Option<usize> {
        let begin = (record.start + 8).next_multiple_of(RECORD_ALIGNMENT);
        let begin = (begin..record.end)
            .step_by(RECORD_ALIGNMENT)
            .find(|offset| self.intact_near(*offset, timestamp).is_some())?;
        let steps = (record.end - begin).div_ceil(RECORD_ALIGNMENT);
        // For each step, whether a chain begins there. Backwards, so that each offset is read once.
        let mut is_chain = vec![false; steps];
        for step in (0..steps).rev() {
            let offset = begin + step * RECORD_ALIGNMENT;
            let Some(intact) = self.intact_near(offset, timestamp) else {
                continue;
            };
            let next = intact.next;
            let leads_on = if next < record.end {
                let next_step = next.saturating_sub(begin) / RECORD_ALIGNMENT;
                is_chain.get(next_step).copied().unwrap_or(false)
            } else if next == record.end && end == ChainEnd::Beyond {
                false
            } else {
                self.is_end(next) || self.intact_near(next, intact.timestamp).is_some()
            };
            if let Some(is_chain) = is_chain.get_mut(step) {
                *is_chain = leads_on;
            }
        }
        let first = is_chain.iter().position(|is_chain| *is_chain)?;
        Some(begin + first * RECORD_ALIGNMENT)
    }

    /// Whether the bytes at an offset are probably a record: its timestamp is close after `floor`,
    /// or close to it and the records end with it, or another intact record follows. If the
    /// timestamps jump back, two records must follow, because `floor` itself may be damaged.
    fn is_plausible(self, offset: usize, floor: i64) -> bool {
        let Some(Intact { timestamp, next }) = self.intact(offset) else {
            return false;
        };
        if is_near(timestamp, floor) && (timestamp >= floor || self.is_end(next)) {
            return true;
        }
        let Some(second) = self.intact(next) else {
            return false;
        };
        if second.timestamp < timestamp {
            return false;
        }
        if timestamp >= floor || self.is_end(second.next) {
            return true;
        }
        match self.intact(second.next) {
            Some(third) => third.timestamp >= second.timestamp,
            None => false,
        }
    }

    /// Whether the records end at an offset: at the fill, or exactly where only filler follows.
    fn is_end(self, offset: usize) -> bool {
        offset == self.tail.next_multiple_of(RECORD_ALIGNMENT) || offset + 8 > self.end()
    }

    fn end(self) -> usize {
        self.fill.min(self.data.len())
    }

    /// The complete record of a known kind at an offset, if its timestamp is near `timestamp`.
    fn intact_near(self, offset: usize, timestamp: i64) -> Option<Intact> {
        self.intact(offset)
            .filter(|intact| is_near(intact.timestamp, timestamp))
    }

    /// The complete record of a known kind at an offset, if it has a timestamp.
    fn intact(self, offset: usize) -> Option<Intact> {
        if !matches!(self.data.u8_at(offset + 3)?, 0xc0 | 0x90) {
            return None;
        }
        let Found {
            offset,
            len,
            kind,
            timestamp,
            ..
        } = record_at(self.data, offset, self.fill).ok()?;
        kind.name()?;
        Some(Intact {
            timestamp: timestamp?,
            next: next_at(offset, len),
        })
    }
}

/// Whether two timestamps of neighbouring records can both be right.
pub(super) fn is_near(timestamp: i64, other: i64) -> bool {
    timestamp.abs_diff(other) <= NEAR.unsigned_abs()
}

#[cfg(test)]
mod tests {
    use super::super::walk::{tail, tests::perfinfo};
    use super::*;

    fn search(data: &[u8]) -> Search<'_> {
        Search {
            data,
            fill: data.len(),
            tail: tail(data, data.len()),
        }
    }

    #[test]
    fn resync_accepts_records_that_lead_on() {
        let mut data = vec![0xab; 24];
        for timestamp in [10, 11, 12] {
            data.extend(perfinfo(24, timestamp));
        }
        data.extend([0xab; 16]);
        assert_eq!(
            search(&data).resync(8, i64::MIN),
            Some(24),
            "two records in order"
        );
        assert_eq!(
            search(&data).resync(8, 1 << 50),
            Some(24),
            "three, though far in the past"
        );
        assert_eq!(
            search(&data).resync(32, 1 << 50),
            None,
            "two are not enough for that"
        );
        assert_eq!(search(&data).resync(56, i64::MIN), None, "nor is one");
        assert_eq!(
            search(&data).resync(56, 5),
            Some(72),
            "one whose timestamp fits is enough"
        );
        let data = &data[..96];
        assert_eq!(
            search(data).resync(56, 20),
            Some(72),
            "or that ends where all ends"
        );
        assert_eq!(
            search(data).resync(56, 1 << 50),
            None,
            "offset a time that is possible"
        );
        let more = [data, &[0xab; 8], &[0xff; 64]].concat();
        assert_eq!(search(&more).resync(56, 20), None, "not before");
    }

    /// A quadratic search through these zeros would take hours.
    #[test]
    #[cfg_attr(miri, ignore = "16 MiB take hours")]
    fn resync_is_linear() {
        let mut data = vec![0; 16 << 20];
        // Records that all lead into the zeros, and so to no other record.
        for offset in (0..0x8000).step_by(16) {
            data[offset..offset + 8].copy_from_slice(&[2, 0, 0x11, 0xc0, 0, 0xf0, 0x2e, 0x0f]);
        }
        *data.last_mut().unwrap() = 1;
        assert_eq!(search(&data).resync(8, 1), None);
    }

    #[test]
    fn hidden_finds_the_chain_that_leads_out_of_a_record() {
        let records = [
            perfinfo(24, 10),
            perfinfo(40, 11),
            perfinfo(24, 12),
            perfinfo(32, 13),
        ];
        let whole = records.concat();
        // The first record claims the bytes up to the middle of the last one, or of the third.
        for end in [96, 72] {
            assert_eq!(
                search(&whole).hidden(0..end, 10, ChainEnd::Beyond),
                Some(24),
                "{end}"
            );
        }
        assert_eq!(
            search(&whole).hidden(0..88, 10, ChainEnd::Beyond),
            None,
            "ends where another one begins"
        );
        assert_eq!(
            search(&whole).hidden(0..88, 10, ChainEnd::AtEnd),
            Some(24),
            "though it may end there"
        );
        assert_eq!(
            search(&whole).hidden(0..96, 1 << 50, ChainEnd::Beyond),
            None,
            "of another time"
        );
        let mut broken = whole.clone();
        broken[64 + 3] = 0xab;
        assert_eq!(
            search(&broken).hidden(0..96, 10, ChainEnd::Beyond),
            Some(88),
            "what is left of the chain"
        );
        broken[88 + 3] = 0xab;
        assert_eq!(
            search(&broken).hidden(0..96, 10, ChainEnd::Beyond),
            None,
            "nothing leads on"
        );
    }
}
