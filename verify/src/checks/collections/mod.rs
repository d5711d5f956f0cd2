//! Garbage collections: their numbers, starts and ends, and the suspensions around them.

mod collectors;
mod kinds;
mod rate;

use etl_analysis::machine::Counted;
use etl_format::Ticks;
use etl_schema::clr::collection::START;

pub(crate) use collectors::Collectors;
pub(crate) use kinds::AbsentKinds;
use kinds::KindCounts;
use rate::Rate;

/// The events that are missing from the collections of a CLR.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Collections {
    /// Numbers without a start event, between numbers with one.
    pub skipped: Counted,
    /// Starts that are followed by another start instead of an end.
    pub unended: Counted,
    /// Suspensions that are followed by another suspension instead of a restart.
    pub unrestarted: Counted,
    /// Events of suspensions that are missing between others.
    pub steps: Counted,
    /// Collections that ended and have no heap statistics.
    pub without_stats: Counted,
    /// Beginnings or ends of runs of finalizers that are missing between others.
    pub finalizers: Counted,
    /// Starts that are logged twice in one version of the event, or in fewer versions than the
    /// others.
    pub unmatched: Counted,
    /// The last start.
    last: Option<Start>,
    /// Versions of the event for the last start, as bits.
    last_versions: u8,
    /// Versions of the event for the first start, as bits; `None` before the second start.
    usual_versions: Option<u8>,
    /// Time of the first start.
    first_start: Option<Ticks>,
    /// A start whose end has to come before the next start.
    open: Option<Start>,
    /// The number of the last collection that ended.
    last_end: Option<u32>,
    /// When the last collection ended, if its heap statistics have not come yet.
    awaits_stats: Option<EndEvent>,
    /// The index in `STEPS` of the last event that only one thread of the CLR logs at a time: all
    /// but the first.
    cycle: Option<u8>,
    /// The last event of finalizers.
    finalizer: Option<u16>,
    /// Restarts so far.
    restarts: u64,
    /// Collections, and allocation events between them.
    rate: Rate,
    /// The number of events of each kind.
    counts: KindCounts,
}

/// The start of a collection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Start {
    number: u32,
    timestamp: Ticks,
}

/// The end of a collection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct EndEvent {
    timestamp: Ticks,
    /// Whether it is the end of a collection that suspends the CLR all the time.
    is_blocking: bool,
}

/// How a collection started.
#[derive(Clone, Copy, Debug)]
struct StartEvent {
    number: u32,
    /// The version of the event as a bit: some runtimes log each start in two versions.
    version: u8,
    /// Whether it is or may be a background collection: others may start before it ends.
    is_background: bool,
    timestamp: Ticks,
}

impl Collections {
    /// Allocation events after the last collection, if they must have caused another.
    pub fn uncollected(&self) -> Counted {
        self.rate.uncollected()
    }

    /// The kinds without any event, although there are many events of kinds that never come without
    /// them.
    pub fn absent(&self) -> Option<AbsentKinds> {
        self.counts.absent()
    }

    /// Checks that a start is logged once in each version of the event in which the first start is.
    fn check_version(&mut self, start: &StartEvent) {
        let Some(last) = self.last else {
            self.last_versions = start.version;
            self.first_start = Some(start.timestamp);
            return;
        };
        if last.number == start.number {
            if self.last_versions & start.version != 0 {
                self.unmatched.add(start.timestamp);
            }
            self.last_versions |= start.version;
            return;
        }
        let usual = *self.usual_versions.get_or_insert(self.last_versions);
        if self.last_versions != usual && self.last_versions.count_ones() < usual.count_ones() {
            self.unmatched.add(last.timestamp);
        }
        let has_more = self.last_versions & usual == usual && self.last_versions != usual;
        if has_more && let Some(first) = self.first_start {
            self.unmatched.add(first);
            self.usual_versions = Some(self.last_versions);
        }
        self.last_versions = start.version;
    }

    fn start(&mut self, event: StartEvent) {
        self.check_version(&event);
        let start = Start {
            number: event.number,
            timestamp: event.timestamp,
        };
        let last = self.last.replace(start);
        if last.is_some_and(|last| last.number == start.number) {
            return;
        }
        self.rate.collection(start.timestamp);
        // A smaller number is another process's, whose start the trace may lack, or comes from
        // another session's event.
        if let Some(last) = last
            && last.number < start.number
        {
            let skipped = u64::from(start.number - last.number - 1);
            if skipped > 0 {
                self.skipped.count += skipped;
                self.skipped.first.get_or_insert(last.timestamp);
            }
            if let Some(open) = self.open {
                self.unended.add(open.timestamp);
            }
        }
        self.open = if event.is_background {
            None
        } else {
            Some(start)
        };
    }

    fn end(&mut self, number: u32, timestamp: Ticks) {
        // Another session recorded the event as well.
        if self.last_end.replace(number) == Some(number) {
            return;
        }
        if let Some(before) = self.awaits_stats.take() {
            self.without_stats.add(before.timestamp);
        }
        if let Some(last) = self.last
            && last.number < number
        {
            self.skipped.count += u64::from(number - last.number);
            self.skipped.first.get_or_insert(timestamp);
            self.last = Some(Start { number, timestamp });
        }
        let is_blocking = self.open.is_some_and(|open| open.number == number);
        if is_blocking {
            self.open = None;
        }
        self.awaits_stats = Some(EndEvent {
            timestamp,
            is_blocking,
        });
    }

    /// The statistics of the heap come after the end of each collection.
    fn stats(&mut self, timestamp: Ticks) {
        let is_expected = self.awaits_stats.take().is_some();
        if let Some(open) = self.open
            && !is_expected
            && self.last_end.is_some()
        {
            self.unended.add(open.timestamp.max(timestamp));
            self.open = None;
        }
    }

    /// The CLR begins to restart: a collection that suspends it all the time is over.
    fn restarting(&mut self, timestamp: Ticks) {
        if let Some(open) = self.open.take() {
            self.unended.add(open.timestamp);
        }
        if let Some(end) = self.awaits_stats
            && end.is_blocking
            && end.timestamp <= timestamp
        {
            self.without_stats.add(end.timestamp);
            self.awaits_stats = None;
        }
    }

    /// One thread runs the finalizers of a CLR.
    fn finalizer(&mut self, id: u16, timestamp: Ticks) {
        if self.finalizer.replace(id) == Some(id) {
            self.finalizers.add(timestamp);
        }
    }

    /// Whether several sessions recorded the starts, and so the other events as well.
    pub fn is_doubled(&self) -> bool {
        let starts = self.counts.of(START);
        self.unmatched.count * 2 >= starts.max(1)
    }
}

#[cfg(test)]
mod tests {
    use etl_schema::clr::collection::{END, FINALIZED, FINALIZING, HEAP_STATS, RESTARTING};

    use super::*;

    fn start(number: u32, version: u8, timestamp: Ticks) -> StartEvent {
        StartEvent {
            number,
            version,
            is_background: false,
            timestamp,
        }
    }

    fn background(number: u32, version: u8, timestamp: Ticks) -> StartEvent {
        StartEvent {
            is_background: true,
            ..start(number, version, timestamp)
        }
    }

    #[test]
    fn start_counts_skipped_numbers_and_starts_without_end() {
        let mut clr = Collections::default();
        // The first one may have any number; background collections may end later.
        clr.start(start(7, 4, Ticks::new(10)));
        clr.end(7, Ticks::new(11));
        clr.start(background(8, 4, Ticks::new(20)));
        clr.start(start(9, 4, Ticks::new(30)));
        clr.end(9, Ticks::new(31));
        clr.start(start(10, 4, Ticks::new(40)));
        clr.end(8, Ticks::new(41));
        assert_eq!((clr.skipped.count, clr.unended.count), (0, 0));
        clr.start(start(11, 4, Ticks::new(50)));
        assert_eq!(
            clr.unended,
            Counted {
                count: 1,
                first: Some(Ticks::new(40))
            }
        );
        clr.end(11, Ticks::new(51));
        clr.start(start(14, 4, Ticks::new(60)));
        assert_eq!(
            clr.skipped,
            Counted {
                count: 2,
                first: Some(Ticks::new(50))
            }
        );
        assert_eq!(clr.unended.count, 1);
    }

    #[test]
    fn start_knows_doubled_events_and_new_processes() {
        let mut clr = Collections::default();
        clr.start(start(7, 4, Ticks::new(10)));
        clr.start(start(7, 4, Ticks::new(10)));
        clr.end(7, Ticks::new(11));
        clr.end(7, Ticks::new(11));
        clr.start(start(8, 4, Ticks::new(20)));
        // The process ended, and another has its id.
        clr.start(start(1, 4, Ticks::new(30)));
        clr.end(1, Ticks::new(31));
        clr.start(start(2, 4, Ticks::new(40)));
        assert_eq!((clr.skipped.count, clr.unended.count), (0, 0));
    }

    #[test]
    fn check_version_expects_each_start_in_the_same_versions() {
        let mut clr = Collections::default();
        let both = |clr: &mut Collections, number, at| {
            clr.start(start(number, 2, at));
            clr.start(start(number, 4, at));
            clr.end(number, Ticks::new(1));
        };
        both(&mut clr, 1, Ticks::new(10));
        both(&mut clr, 2, Ticks::new(20));
        assert_eq!(clr.unmatched.count, 0);
        // One of the two is missing.
        clr.start(start(3, 4, Ticks::new(30)));
        clr.end(3, Ticks::new(31));
        both(&mut clr, 4, Ticks::new(40));
        assert_eq!(
            clr.unmatched,
            Counted {
                count: 1,
                first: Some(Ticks::new(30))
            }
        );
        clr.start(start(5, 2, Ticks::new(50)));
        clr.start(start(5, 2, Ticks::new(50)));
        assert_eq!(clr.unmatched.count, 2);
    }

    #[test]
    fn check_version_finds_that_the_first_start_is_halved() {
        let mut clr = Collections::default();
        clr.start(start(1, 4, Ticks::new(10)));
        for number in 2..4 {
            clr.start(start(number, 2, Ticks::new(20)));
            clr.start(start(number, 4, Ticks::new(20)));
        }
        clr.start(start(4, 2, Ticks::new(30)));
        let found = clr.unmatched;
        assert_eq!((found.count, found.first), (1, Some(Ticks::new(10))));
    }

    #[test]
    fn end_and_stats_find_each_missing_event_of_a_collection() {
        let of = |without: u16| {
            let mut clr = Collections::default();
            for number in 1..4 {
                for id in [START, END, HEAP_STATS, RESTARTING] {
                    if id == without && number == 3 {
                        continue;
                    }
                    let time = Ticks::new(i64::from(10 * number));
                    match id {
                        START => clr.start(start(number, 4, time)),
                        END => clr.end(number, time),
                        HEAP_STATS => clr.stats(time),
                        _ => clr.restarting(time),
                    }
                }
            }
            [clr.skipped, clr.unended, clr.without_stats].map(|counted| counted.count)
        };
        assert_eq!(of(0), [0, 0, 0]);
        assert_eq!(of(START), [1, 0, 0]);
        assert_eq!(of(END), [0, 1, 0]);
        assert_eq!(of(HEAP_STATS), [0, 0, 1]);
    }

    #[test]
    fn finalizer_finds_a_run_without_beginning_or_end() {
        let of = |ids: &[u16]| {
            let mut clr = Collections::default();
            ids.iter().for_each(|id| clr.finalizer(*id, Ticks::new(5)));
            clr.finalizers.count
        };
        assert_eq!(of(&[FINALIZED, FINALIZING, FINALIZED, FINALIZING]), 0);
        assert_eq!(of(&[FINALIZING, FINALIZING]), 1);
        assert_eq!(of(&[FINALIZED, FINALIZED]), 1);
    }
}
