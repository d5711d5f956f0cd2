//! Who owns an address at which time.
//!
//! Live ranges are kept in one ordered map with some 40 bytes for each, so that an index of
//! millions of methods stays small. Ranges that have ended, and those hidden by a later range, are
//! kept in a list that is sorted once, at the end.

use etl_format::Ticks;
use std::collections::BTreeMap;

use super::chunks::Chunks;

/// Ranges that are tried for an address at a time. Only a crafted trace has more at one address.
const MAX_TRIED: usize = 1 << 12;

/// The owner of a range. It is small: there is one per method.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Tag {
    /// Id of the method, or of what else owns the range.
    pub id: u64,
    /// The CLR of the process.
    pub instance: u16,
    /// Facts, see the constants.
    pub bits: u8,
    /// Ordinal of the rundown bracket that enumerated it last, as its low byte; 0 for none.
    pub mark: u8,
}

impl Tag {
    /// An event names it; others have only its token.
    pub const NAMED: u8 = 1;
    /// Compiled at run time; else precompiled code of an image.
    pub const JITTED: u8 = 2;
    /// Made at run time, without metadata.
    pub const DYNAMIC: u8 = 4;
    /// Its load was seen.
    pub const LOADED: u8 = 8;
    /// A start rundown listed it.
    pub const AT_START: u8 = 0x10;
    /// An end rundown listed it.
    pub const AT_END: u8 = 0x20;

    /// Whether all of `bits` are set.
    #[must_use]
    pub const fn has(self, bits: u8) -> bool {
        self.bits & bits == bits
    }
}

/// A stretch of addresses that was owned for some time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Range {
    /// First address.
    pub start: u64,
    /// Address after the last one.
    pub end: u64,
    /// Raw timestamp of its start; `None` if it was there before the trace.
    pub from: Option<Ticks>,
    /// Raw timestamp of its end; `None` if it was there at the end of the trace.
    pub to: Option<Ticks>,
    /// Who owns it.
    pub tag: Tag,
}

impl Range {
    fn covers(&self, address: u64) -> bool {
        self.start <= address && address < self.end
    }

    /// Whether it was owned at some time of a span.
    fn lived_in(&self, first: Ticks, last: Ticks) -> bool {
        self.from.is_none_or(|from| from <= last) && self.to.is_none_or(|to| to >= first)
    }
}

/// The start of a live range that was there before the trace.
const BEFORE: Ticks = Ticks::MIN;

/// A live range, its start being the key.
#[derive(Clone, Copy, Debug)]
struct Live {
    from: Ticks,
    id: u64,
    size: u32,
    instance: u16,
    bits: u8,
    mark: u8,
}

impl Live {
    fn covers(&self, start: u64, address: u64) -> bool {
        address.wrapping_sub(start) < u64::from(self.size)
    }

    fn tag(&self) -> Tag {
        Tag {
            id: self.id,
            instance: self.instance,
            bits: self.bits,
            mark: self.mark,
        }
    }

    fn range(&self, start: u64, to: Option<Ticks>) -> Range {
        let from = (self.from != BEFORE).then_some(self.from);
        Range {
            start,
            end: start.saturating_add(self.size.into()),
            from,
            to,
            tag: self.tag(),
        }
    }
}

/// What adding a range found.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Added {
    /// It holds no address.
    Empty,
    /// No range was there.
    New,
    /// It was known before, with this tag.
    Known(Tag),
    /// It was loaded a second time, without an unload in between.
    Again,
    /// Another range is still alive there, beginning at this address.
    Overlaps(u64),
}

/// Ranges of one kind in one address space.
#[derive(Clone, Debug, Default)]
pub struct Ranges {
    live: Chunks<Live>,
    /// What has gone.
    past: Vec<Range>,
    /// What is alive, but hidden from a plain look-up by a range that was added over it; by start.
    hidden: BTreeMap<u64, Vec<Range>>,
    /// Ranges that began over a range that was still alive.
    pub overlaps: u64,
    /// Whether a range ever began inside a range. The outer range then does not own all that it
    /// covers.
    nested: bool,
    /// The range found last: frames of a stack, and samples, come in bunches.
    recent: Option<(u64, Live)>,
    /// The gap found last: what follows an address without owner often has none either.
    gap: Option<Gap>,
    /// How often anything changed.
    changes: u64,
    /// How often anything changed, by page.
    changed: PageCounts,
    /// How often anything ended, by page.
    ended: PageCounts,
}

/// Addresses without an owner, from `start` to before `end`.
#[derive(Clone, Copy, Debug)]
struct Gap {
    start: u64,
    end: u64,
}

/// How often something happened at pages.
#[derive(Clone, Debug, Default)]
struct PageCounts {
    /// How often it reached over many pages.
    far: u64,
    /// How often else, by page. Empty before the first time.
    near: Vec<u32>,
}

impl PageCounts {
    /// Pages that are counted apart; a power of two. Pages that are as far from each other share a
    /// count.
    const PAGES: usize = 256;
    /// Pages that it may reach over to be counted for each of them.
    const FEW: u64 = 8;

    /// The page of an address.
    #[inline]
    fn page(address: u64) -> u64 {
        address >> 12
    }

    /// It happens from `start` to before `end`.
    fn add(&mut self, start: u64, end: u64) {
        let first = Self::page(start);
        let last = Self::page(end.saturating_sub(1));
        if last.saturating_sub(first) >= Self::FEW {
            self.far += 1;
            return;
        }
        self.near.resize(Self::PAGES, 0);
        for page in first..=last {
            if let Some(count) = self.near.get_mut(page as usize & (Self::PAGES - 1)) {
                match count.checked_add(1) {
                    Some(more) => *count = more,
                    // What has to grow goes on growing.
                    None => self.far += 1,
                }
            }
        }
    }

    /// How often it happened at an address, or near it.
    #[inline]
    fn at(&self, address: u64) -> u64 {
        let near = self
            .near
            .get(Self::page(address) as usize & (Self::PAGES - 1));
        self.far + u64::from(near.copied().unwrap_or(0))
    }
}

impl Ranges {
    /// A range begins, or is found to have been there all along (`from` is `None`).
    ///
    /// An event about a known range (a rundown lists what was loaded before) only adds to its tag.
    pub fn add(&mut self, start: u64, size: u64, from: Option<Ticks>, tag: Tag) -> Added {
        let size = u32::try_from(size).unwrap_or(u32::MAX);
        let end = start.saturating_add(size.into());
        if end == start {
            return Added::Empty;
        }
        let mut beneath = self.live.at_or_before_mut(end - 1);
        // Most known ranges are the only ones where they are.
        if let Some((at, known)) = &mut beneath
            && *at == start
            && known.size == size
        {
            let before = **known;
            let again = known.again(start, from, tag);
            if known.tag() != before.tag() || known.from != before.from {
                self.changed(start, end);
            }
            return self.added_again(again);
        }
        let beneath = beneath.map(|(at, known)| (at, *known));
        let overlapped = beneath.filter(|(at, live)| at.saturating_add(live.size.into()) > start);
        // What another range covers after its end is not found any more.
        let other = overlapped.map_or(end, |(at, live)| live.range(at, None).end);
        self.changed(start, end.max(other));
        // Something begins inside of it.
        if beneath.is_some_and(|(at, _)| at > start)
            && let Some(known) = self.live.get_mut(start)
            && known.size == size
        {
            let again = known.again(start, from, tag);
            return self.added_again(again);
        }
        if let Some((at, older)) = overlapped {
            self.overlaps += 1;
            if at != start {
                self.nested = true;
                self.hidden
                    .entry(at)
                    .or_default()
                    .push(older.range(at, None));
            }
        }
        if let Some(replaced) = self.live.insert(start, live(from, size, tag)) {
            self.end(replaced.range(start, from));
        }
        overlapped.map_or(Added::New, |(at, _)| Added::Overlaps(at))
    }

    /// Counts a known range that was added again.
    fn added_again(&mut self, again: Again) -> Added {
        self.overlaps += u64::from(matches!(again.added, Added::Overlaps(_)));
        if let Some(range) = again.ended {
            self.end(range);
        }
        again.added
    }

    /// The range that begins at `start` ends; returns its tag. One whose beginning was not
    /// seen has been there since before the trace.
    pub fn remove(&mut self, start: u64, size: u64, at: Ticks, tag: Tag) -> Option<Tag> {
        let known = self.live.remove(start);
        let stated = start.saturating_add(size);
        let end = known.map_or(stated, |live| live.range(start, None).end);
        // What it covered of an older range is found again, up to the end of the older range.
        let beneath = (self.overlaps > 0)
            .then(|| self.live.at_or_before(start))
            .flatten();
        let other = beneath.map_or(end, |(at, live)| live.range(at, None).end);
        self.changed(start, end.max(other));
        let range = match known {
            Some(live) => live.range(start, Some(at)),
            None => {
                let end = stated;
                Range {
                    start,
                    end,
                    from: None,
                    to: Some(at),
                    tag,
                }
            }
        };
        if !self.hidden.is_empty() {
            self.hidden.remove(&start);
        }
        self.end(range);
        known.map(|live| live.tag())
    }

    /// Everything ends, since the process does.
    pub fn clear(&mut self, at: Ticks) {
        for (start, live) in std::mem::take(&mut self.live).iter() {
            self.past.push(live.range(start, Some(at)));
        }
        for range in std::mem::take(&mut self.hidden).into_values().flatten() {
            self.past.push(Range {
                to: Some(at),
                ..range
            });
        }
        self.changed(0, u64::MAX);
        self.ended.add(0, u64::MAX);
    }

    /// What stretches from `start` to before `end` changes.
    fn changed(&mut self, start: u64, end: u64) {
        self.recent = None;
        self.gap = None;
        self.changes += 1;
        self.changed.add(start, end);
    }

    /// What was alive ends.
    fn end(&mut self, range: Range) {
        self.ended.add(range.start, range.end);
        self.past.push(range);
    }

    /// How often anything changed.
    #[must_use]
    #[inline]
    pub fn changes(&self) -> u64 {
        self.changes
    }

    /// How often anything changed at an address, or near it: what [`Ranges::now`] returns for it
    /// holds as long as this.
    #[must_use]
    #[inline]
    pub fn changes_at(&self, address: u64) -> u64 {
        self.changed.at(address)
    }

    /// How often anything ended at an address, or near it: nothing that covered the address has
    /// ended as long as this stays.
    #[must_use]
    pub(crate) fn ended_at(&self, address: u64) -> u64 {
        self.ended.at(address)
    }

    /// The owner, among those alive now, of an address.
    #[inline]
    pub fn now(&mut self, address: u64) -> Option<Tag> {
        if let Some((start, live)) = self.recent
            && live.covers(start, address)
        {
            return Some(live.tag());
        }
        if self
            .gap
            .is_some_and(|gap| gap.start <= address && address < gap.end)
        {
            return None;
        }
        let found = self.live.at_or_before(address);
        match found.filter(|(at, live)| live.covers(*at, address)) {
            Some((at, live)) => {
                self.recent = (!self.nested).then_some((at, live));
                Some(live.tag())
            }
            None => {
                let start = found.map_or(0, |(at, live)| at.saturating_add(live.size.into()));
                let end = self.live.at_or_after(address).unwrap_or(u64::MAX);
                self.gap = Some(Gap { start, end });
                None
            }
        }
    }

    /// Ranges alive now.
    #[must_use]
    pub fn live(&self) -> usize {
        self.live.len()
    }

    /// Ranges alive at the end, or now, by address.
    pub fn alive(&self) -> impl Iterator<Item = Range> + '_ {
        self.live
            .iter()
            .map(|(start, live)| live.range(start, None))
    }

    /// All ranges that there ever were, in no order, but for hidden ones that are alive.
    pub(crate) fn all(&self) -> impl Iterator<Item = Range> + '_ {
        self.past.iter().copied().chain(self.alive())
    }

    /// Ranges that have gone, in no order.
    #[must_use]
    pub fn past(&self) -> &[Range] {
        &self.past
    }

    /// All ranges there ever were, ready to be searched.
    #[must_use]
    pub fn history(&self) -> History<'_> {
        let mut past: Vec<_> = self
            .past
            .iter()
            .chain(self.hidden.values().flatten())
            .copied()
            .collect();
        past.sort_unstable_by_key(|r| (r.start, r.to.unwrap_or(Ticks::MAX), r.end, r.from));
        let mut starts: Vec<Start> = Vec::new();
        let mut furthest = 0;
        for (at, range) in past.iter().enumerate() {
            furthest = range.end.max(furthest);
            match starts.last_mut().filter(|last| last.start == range.start) {
                Some(last) => last.furthest = furthest,
                None => starts.push(Start {
                    start: range.start,
                    first: at,
                    furthest,
                }),
            }
        }
        History {
            live: &self.live,
            past,
            starts,
        }
    }
}

/// A known range that was added again.
#[derive(Clone, Copy, Debug)]
struct Again {
    added: Added,
    /// The range that was there before, whose end was not seen.
    ended: Option<Range>,
}

impl Live {
    /// An event about this range, which begins at `start`.
    fn again(&mut self, start: u64, from: Option<Ticks>, tag: Tag) -> Again {
        let before = self.tag();
        if tag.mark != 0 {
            self.mark = tag.mark;
        }
        if from.is_none() {
            self.bits |= tag.bits;
            // Another owner has moved in, and the unload in between was not seen.
            let added = if self.id == tag.id {
                Added::Known(before)
            } else {
                Added::Overlaps(start)
            };
            self.id = tag.id;
            return Again { added, ended: None };
        }
        // Loaded again at the same address: the unload in between was not seen.
        let ended = Some(self.range(start, from));
        *self = live(from, self.size, tag);
        Again {
            added: Added::Again,
            ended,
        }
    }
}

fn live(from: Option<Ticks>, size: u32, tag: Tag) -> Live {
    let Tag {
        id,
        instance,
        bits,
        mark,
    } = tag;
    Live {
        from: from.unwrap_or(BEFORE),
        id,
        size,
        instance,
        bits,
        mark,
    }
}

/// The past ranges that begin at one address.
#[derive(Clone, Copy, Debug)]
struct Start {
    start: u64,
    /// Index of the first of them.
    first: usize,
    /// The furthest end of them and of those that begin before.
    furthest: u64,
}

/// All ranges that there ever were, by address.
#[derive(Clone, Debug)]
pub struct History<'a> {
    live: &'a Chunks<Live>,
    /// By start, and then by their ends in time.
    past: Vec<Range>,
    starts: Vec<Start>,
}

impl History<'_> {
    /// Whether there never was a range.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.live.len() == 0 && self.past.is_empty()
    }

    /// The owner of an address at some time of a span.
    #[must_use]
    pub fn owner(&self, address: u64, first: Ticks, last: Ticks) -> Option<Tag> {
        self.range(address, first, last).map(|range| range.tag)
    }

    /// The range that owned an address at some time of a span.
    ///
    /// Of a range that was found by an enumeration alone it is not known since when it was there.
    /// So of several that may have been there at that time, the one that ended first was: the
    /// others came after it.
    #[must_use]
    pub fn range(&self, address: u64, first: Ticks, last: Ticks) -> Option<Range> {
        let live = self.live.at_or_before(address);
        let live = live.filter(|(at, live)| live.covers(*at, address) && live.from <= last);
        match live {
            Some((start, live)) if live.from != BEFORE => Some(live.range(start, None)),
            _ => {
                let past = self.gone(address, first, last);
                past.or_else(|| live.map(|(start, live)| live.range(start, None)))
            }
        }
    }

    /// The past range with the earliest end that owned an address at some time of a span.
    fn gone(&self, address: u64, first: Ticks, last: Ticks) -> Option<Range> {
        let mut found: Option<Range> = None;
        let mut tried = 0;
        let groups = self.starts.partition_point(|s| s.start <= address);
        let mut after = self.starts.get(groups).map_or(self.past.len(), |s| s.first);
        for group in self.starts.get(..groups).unwrap_or_default().iter().rev() {
            if group.furthest <= address || tried >= MAX_TRIED {
                break;
            }
            let ranges = self.past.get(group.first..after).unwrap_or_default();
            after = group.first;
            // Those whose end in time is not before the span.
            let at = ranges.partition_point(|r| r.to.is_some_and(|to| to < first));
            tried += 1;
            for range in ranges.get(at..).unwrap_or_default() {
                tried += 1;
                if range.covers(address) && range.lived_in(first, last) {
                    let end = range.to.unwrap_or(Ticks::MAX);
                    if found.is_none_or(|found| end < found.to.unwrap_or(Ticks::MAX)) {
                        found = Some(*range);
                    }
                    break;
                }
                if tried >= MAX_TRIED {
                    break;
                }
            }
        }
        found
    }

    /// Whether a range begins in `[from, to)`, or covers its first address.
    #[must_use]
    pub fn has_any_in(&self, from: u64, to: u64) -> bool {
        if self.ever(from).is_some() {
            return true;
        }
        let last = to.saturating_sub(1);
        let live = self.live.at_or_before(last);
        if live.is_some_and(|(start, _)| start >= from) {
            return true;
        }
        let begun = self.starts.partition_point(|group| group.start <= last);
        let before = begun.checked_sub(1).and_then(|at| self.starts.get(at));
        before.is_some_and(|group| group.start >= from)
    }

    /// Whether the address has ever had an owner.
    #[must_use]
    pub fn ever(&self, address: u64) -> Option<Tag> {
        self.owner(address, Ticks::MIN, Ticks::MAX)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn named(id: u64) -> Tag {
        Tag {
            id,
            bits: Tag::NAMED,
            ..Tag::default()
        }
    }

    #[test]
    fn owner_is_the_range_that_lives_at_the_time() {
        let mut ranges = Ranges::default();
        assert_eq!(
            ranges.add(0x1000, 0x100, Some(Ticks::new(10)), named(1)),
            Added::New
        );
        assert_eq!(ranges.now(0x10ff), Some(named(1)));
        assert_eq!(ranges.now(0x1100), None);
        assert_eq!(
            ranges.remove(0x1000, 0x100, Ticks::new(20), Tag::default()),
            Some(named(1))
        );
        assert_eq!(ranges.now(0x1000), None);
        assert_eq!(
            ranges.add(0x1080, 0x10, Some(Ticks::new(30)), named(2)),
            Added::New
        );
        let history = ranges.history();
        assert_eq!(
            history.owner(0x1000, Ticks::new(5), Ticks::new(15)),
            Some(named(1))
        );
        assert_eq!(history.owner(0x1000, Ticks::new(5), Ticks::new(9)), None);
        assert_eq!(history.owner(0x1000, Ticks::new(21), Ticks::new(30)), None);
        assert_eq!(
            history.owner(0x1088, Ticks::new(12), Ticks::new(13)),
            Some(named(1))
        );
        assert_eq!(
            history.owner(0x1088, Ticks::new(31), Ticks::new(31)),
            Some(named(2))
        );
        assert_eq!(history.ever(0x10ff), Some(named(1)));
    }

    #[test]
    fn owner_among_many_is_found_by_time() {
        let mut ranges = Ranges::default();
        for i in 0..20_000 {
            ranges.add(0x1000, 0x40, Some(Ticks::new(10 * i)), named(i as u64));
            ranges.remove(0x1000, 0x40, Ticks::new(10 * i + 5), Tag::default());
        }
        // This one was there at the end, and its load was not seen.
        ranges.add(0x1000, 0x40, None, named(77_777));
        let history = ranges.history();
        for i in [0, 1, 9_999, 10_000, 19_999] {
            for at in [0, 3, 5] {
                let found = history.owner(0x1010, Ticks::new(10 * i + at), Ticks::new(10 * i + at));
                assert_eq!(found, Some(named(i as u64)), "{i}");
            }
        }
        assert_eq!(
            history.owner(0x1010, Ticks::new(200_001), Ticks::new(200_001)),
            Some(named(77_777))
        );
    }

    #[test]
    fn enumerated_range_has_been_there_all_along() {
        let mut ranges = Ranges::default();
        ranges.add(0x1000, 0x100, None, named(1));
        assert!(
            ranges
                .history()
                .owner(0x1000, Ticks::MIN, Ticks::MIN)
                .is_some()
        );
        // A load that was seen states since when, and the rundown after it does not change that.
        let mut ranges = Ranges::default();
        ranges.add(
            0x1000,
            0x100,
            Some(Ticks::new(10)),
            Tag {
                id: 1,
                ..Tag::default()
            },
        );
        let before = Tag {
            id: 1,
            ..Tag::default()
        };
        assert_eq!(
            ranges.add(0x1000, 0x100, None, named(1)),
            Added::Known(before)
        );
        assert!(
            ranges
                .history()
                .owner(0x1000, Ticks::new(1), Ticks::new(9))
                .is_none()
        );
        // Listed as another method's, it is another's.
        assert_eq!(
            ranges.add(0x1000, 0x100, None, named(2)),
            Added::Overlaps(0x1000)
        );
        ranges.add(0x1000, 0x100, None, named(1));
        assert_eq!(ranges.now(0x1000), Some(named(1)));
    }

    #[test]
    fn small_range_inside_a_large_one_hides_nothing() {
        let mut ranges = Ranges::default();
        ranges.add(0x1000, 0x1000, None, named(1));
        assert_eq!(
            ranges.add(0x1100, 0x10, None, named(2)),
            Added::Overlaps(0x1000)
        );
        assert_eq!(ranges.overlaps, 1);
        assert_eq!(
            ranges.history().owner(0x1500, Ticks::new(0), Ticks::new(0)),
            Some(named(1))
        );
        assert!(
            ranges
                .history()
                .owner(0x2000, Ticks::new(0), Ticks::new(0))
                .is_none()
        );
    }

    #[test]
    fn gap_is_kept_until_something_is_added() {
        let mut ranges = Ranges::default();
        assert_eq!(ranges.now(0x1008), None);
        ranges.add(0x1000, 0x10, Some(Ticks::new(1)), named(1));
        assert_eq!(ranges.now(0x1008), Some(named(1)));
        assert_eq!(ranges.now(0x1010), None);
        assert_eq!(ranges.now(0x0fff), None);
        assert_eq!(ranges.now(0x1000), Some(named(1)));
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(64))]
        #[test]
        fn owner_holds_while_changes_at_its_address_do(
            steps in proptest::collection::vec((0u64..0x60, 0u32..14, any::<bool>(), any::<bool>()), 1..80)
        ) {
            let mut ranges = Ranges::default();
            let addresses: Vec<_> = (0..0x200).map(|i| i * 0x100).collect();
            let mut found = vec![(0, 0, None); addresses.len()];
            for (timestamp, (slot, size, gone, seen)) in steps.into_iter().enumerate() {
                let (start, size, timestamp) = (slot * 0x200, 0x80u64 << size, timestamp as i64);
                if gone {
                    ranges.remove(start, size, Ticks::new(timestamp), named(9));
                } else {
                    ranges.add(start, size, seen.then_some(Ticks::new(timestamp)), named(timestamp as u64));
                }
                for (&address, found) in addresses.iter().zip(&mut found) {
                    let now = (ranges.changes(), ranges.changes_at(address), ranges.now(address));
                    prop_assert!(found.0 < now.0 && found.1 <= now.1);
                    if found.1 == now.1 {
                        prop_assert_eq!(found.2, now.2, "{:#x}", address);
                    }
                    *found = now;
                }
            }
        }
    }
}
