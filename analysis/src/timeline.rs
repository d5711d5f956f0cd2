//! One timeline for all files of a recording.

use etl_format::constants::{ClockType, FILETIME_PER_SECOND};
use etl_format::{Clock, FileTime, Ticks};

/// The clock of a file, and the machine that recorded it.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct MachineClock {
    /// The number of the machine, as from [`machines`](crate::files::machines).
    pub machine: usize,
    /// The clock of the file.
    pub clock: Clock,
}

impl MachineClock {
    /// Whether two files count the same counter of one machine.
    fn is_on_counter_of(&self, other: &MachineClock) -> bool {
        self.machine == other.machine && self.clock.is_same_counter(&other.clock)
    }
}

/// How the timestamps of several files become times of one timeline.
///
/// Files on one counter of a machine are related by the counter, so by the clock of the file that
/// began first: the time of day may have been set between their starts. If all files are on one
/// counter, the raw timestamps are kept; else all become FILETIMEs.
#[derive(Clone, Debug)]
pub struct Timeline {
    /// The clock by which the counter of each file is read.
    clocks: Vec<Clock>,
    same: bool,
    set_by: u64,
}

impl Timeline {
    /// The greatest difference between the times of one raw timestamp in two files of a machine
    /// without a change of its clock. A session reads two clocks one after the other.
    const SKEW: u64 = FILETIME_PER_SECOND.unsigned_abs() / 10;

    /// A timeline for files of one machine, with these clocks.
    #[must_use]
    pub fn new(clocks: Vec<Clock>) -> Self {
        let mut files = Vec::with_capacity(clocks.len());
        for clock in clocks {
            files.push(MachineClock { machine: 0, clock });
        }
        Timeline::of_machines(&files)
    }

    /// A timeline for files of several machines.
    #[must_use]
    pub fn of_machines(files: &[MachineClock]) -> Self {
        let mut by_start = files.to_vec();
        by_start.sort_by_key(|file| file.clock.start_timestamp);
        // Of the files on one counter, the file that began first.
        let mut firsts: Vec<MachineClock> = Vec::new();
        for file in by_start {
            if !firsts.iter().any(|first| file.is_on_counter_of(first)) {
                firsts.push(file);
            }
        }
        let mut clocks = Vec::with_capacity(files.len());
        let mut set_by = 0;
        for file in files {
            let first = firsts.iter().find(|first| file.is_on_counter_of(first));
            let clock = first.map_or(file.clock, |first| first.clock);
            let apart = clock.zeros_apart(&file.clock, Self::SKEW).unwrap_or(0);
            set_by = apart.max(set_by);
            clocks.push(clock);
        }
        let same = clocks
            .windows(2)
            .all(|pair| matches!(pair, [one, other] if one == other));
        Timeline {
            same,
            set_by,
            clocks,
        }
    }

    /// Whether all files have the same clock.
    #[must_use]
    pub fn is_one_clock(&self) -> bool {
        self.same
    }

    /// The greatest change of the time of day between the starts of files on one counter, in
    /// FILETIME units; 0 if the headers show none.
    #[must_use]
    pub fn set_by(&self) -> u64 {
        self.set_by
    }

    /// The clock of the timeline. It starts when the file starts that began first.
    #[must_use]
    pub fn clock(&self) -> Clock {
        let first = self.clocks.first().copied();
        let first = first.unwrap_or(clock_in_file_time(FileTime::new(0)));
        if self.same {
            return first;
        }
        let starts = self.clocks.iter().map(|clock| clock.start_time);
        clock_in_file_time(starts.min().unwrap_or(first.start_time))
    }

    /// The time on the timeline of a raw timestamp of a file.
    #[inline]
    #[must_use]
    pub fn timestamp(&self, source: usize, raw: Ticks) -> Ticks {
        if self.same {
            return raw;
        }
        self.clocks
            .get(source)
            .map_or(raw, |clock| Ticks::new(clock.time(raw).get()))
    }

    /// The clock by which raw timestamps of a file become calendar times that agree with the times
    /// of the other files. Its start may be the start of another file.
    #[must_use]
    pub fn clock_of(&self, source: usize) -> Clock {
        self.clocks
            .get(source)
            .copied()
            .unwrap_or_else(|| self.clock())
    }

    /// The time that is some FILETIME units after a time of the timeline.
    #[must_use]
    pub fn after(&self, timestamp: Ticks, units: i64) -> Ticks {
        let clock = self.clock();
        let time = clock.time(timestamp).get().saturating_add(units);
        clock.ticks_at(FileTime::new(time))
    }
}

/// A clock that counts in FILETIME units.
fn clock_in_file_time(start: FileTime) -> Clock {
    Clock::new(ClockType::SYSTEM_TIME, start, Ticks::new(start.get()), 0, 0)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn clock(start_timestamp: i64, start_time: i64, frequency: i64) -> Clock {
        Clock::new(
            ClockType::QPC,
            FileTime::new(start_time),
            Ticks::new(start_timestamp),
            frequency,
            0,
        )
    }

    #[test]
    fn one_machine_has_one_clock() {
        let second = FILETIME_PER_SECOND;
        let one = Timeline::new(vec![
            clock(0, 0, 1_000),
            clock(5_000, 5 * second + 7, 1_000),
        ]);
        assert!(one.is_one_clock());
        assert_eq!(one.timestamp(1, Ticks::new(6_000)), 6_000);
        let two = Timeline::new(vec![clock(0, 0, 1_000), clock(5_000, 99 * second, 1_000)]);
        assert!(!two.is_one_clock());
        assert_eq!(two.timestamp(1, Ticks::new(6_000)), 100 * second);
        assert_eq!(two.clock().time(Ticks::new(10 * second)).get(), 10 * second);
    }

    #[test]
    fn timeline_starts_with_the_first_file_in_any_order() {
        let second = FILETIME_PER_SECOND;
        let (early, late) = (clock(0, 0, 1_000), clock(5_000, 5 * second, 1_000));
        for files in [vec![early, late], vec![late, early]] {
            assert_eq!(Timeline::new(files).clock(), early);
        }
    }

    #[test]
    fn timeline_relates_files_by_their_counter_if_the_time_was_set() {
        let second = FILETIME_PER_SECOND;
        let early = clock(0, 0, 1_000);
        let set = clock(5_000, 14 * second, 1_000);
        let one = Timeline::new(vec![set, early]);
        assert!(one.is_one_clock());
        assert_eq!(
            (one.clock(), one.set_by()),
            (early, 9 * second.unsigned_abs())
        );
        // Beside a file with another clock.
        let system = Clock::new(
            ClockType::SYSTEM_TIME,
            FileTime::new(second),
            Ticks::new(second),
            0,
            0,
        );
        let several = Timeline::new(vec![set, early, system]);
        assert!(!several.is_one_clock());
        assert_eq!(
            several.timestamp(0, Ticks::new(5_000)),
            several.timestamp(1, Ticks::new(5_000))
        );
        // Another machine that started at the same time.
        let files = [early, set].into_iter().enumerate();
        let files = files.map(|(machine, clock)| MachineClock { machine, clock });
        let two = Timeline::of_machines(&files.collect::<Vec<_>>());
        assert_eq!(two.timestamp(1, Ticks::new(5_000)), 14 * second);
    }
}
