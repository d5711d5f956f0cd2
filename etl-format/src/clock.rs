//! Raw timestamps to FILETIME and UTC, in integer arithmetic.

use crate::constants::{ClockType, FILETIME_PER_SECOND};
use crate::{FileTime, Ticks};

/// Ticks per second that are assumed for a trace without a header event: the frequency of Windows
/// since version 10, release 1809.
pub const ASSUMED_FREQUENCY: i64 = 10_000_000;

/// The time of day is adjusted by at most this many FILETIME units while a machine runs. Starts of
/// a machine are farther apart.
const MAX_ADJUSTMENT: u64 = 10 * FILETIME_PER_SECOND.unsigned_abs();

/// A counter may drift from the time of day by one unit in this many: 200 ppm.
const DRIFT: u64 = 5_000;

/// How the raw timestamps of a trace relate to the calendar.
///
/// `filetime = start_time + floor((timestamp - start_timestamp) * 10^7 / frequency)`. Raw
/// timestamps are never changed, because payloads refer to other records by raw timestamp.
///
/// ```
/// use etl_format::constants::ClockType;
/// use etl_format::{Clock, FileTime, Ticks};
///
/// // A counter with 1,000 ticks in a second that started on 2020-07-29.
/// let start = FileTime::new(132_404_544_000_000_000);
/// let clock = Clock::new(ClockType::QPC, start, Ticks::new(5_000), 1_000, 0);
/// let time = clock.time(Ticks::new(5_250));
/// assert_eq!(time.to_string(), "2020-07-29T00:00:00.2500000Z");
/// assert_eq!(clock.ticks_at(time), Ticks::new(5_250));
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Clock {
    /// The kind of clock.
    pub kind: ClockType,
    /// When the session started.
    pub start_time: FileTime,
    /// When the session started, as a raw timestamp: the timestamp of the header event.
    pub start_timestamp: Ticks,
    /// Ticks of the raw clock per second; never 0.
    pub frequency: u64,
}

impl Clock {
    /// A clock from the fields of a header event.
    ///
    /// The frequency is `perf_freq` for the performance counter and for clocks of type 0 or an
    /// unknown type, 10^7 for system time, and the processor's speed for its cycle counter. A
    /// frequency of 0 is replaced by 1 so that the arithmetic stays defined.
    #[must_use]
    pub fn new(
        kind: ClockType,
        start_time: FileTime,
        start_timestamp: Ticks,
        perf_freq: i64,
        cpu_mhz: u32,
    ) -> Self {
        let frequency = match kind {
            ClockType::SYSTEM_TIME => FILETIME_PER_SECOND.unsigned_abs(),
            ClockType::CPU_CYCLE => u64::from(cpu_mhz) * 1_000_000,
            _ => u64::try_from(perf_freq).unwrap_or(0),
        };
        Clock {
            kind,
            start_time,
            start_timestamp,
            frequency: frequency.max(1),
        }
    }

    /// The clock that is assumed for a trace whose header event is lost: this timestamp is FILETIME
    /// 0, and the frequency is [`ASSUMED_FREQUENCY`].
    #[must_use]
    pub fn assumed(start_timestamp: Ticks) -> Self {
        Clock::new(
            ClockType::RAW,
            FileTime::new(0),
            start_timestamp,
            ASSUMED_FREQUENCY,
            0,
        )
    }

    /// Whether both clocks read the same counter since the same start of the machine, so that their
    /// raw timestamps can be compared. Then kind and frequency are the same, and the counter was
    /// zero at the same time, apart from drift and from adjustments of the time of day.
    #[must_use]
    pub fn is_same_counter(&self, other: &Clock) -> bool {
        self.has_same_unit(other) && self.zeros_apart(other, MAX_ADJUSTMENT).is_none()
    }

    /// The time between the starts of the machine since which both clocks count, in FILETIME units.
    /// `None` if it may be the same start, or if kind or frequency of the clocks differ.
    #[must_use]
    pub fn restarted_after(&self, other: &Clock) -> Option<u64> {
        if self.has_same_unit(other) {
            self.zeros_apart(other, MAX_ADJUSTMENT)
        } else {
            None
        }
    }

    /// The time between the zeros of both counters, in FILETIME units, if it is longer than
    /// `tolerance` and the drift between the starts of both sessions.
    #[must_use]
    pub fn zeros_apart(&self, other: &Clock, tolerance: u64) -> Option<u64> {
        let ticks =
            i128::from(self.start_timestamp.get()) - i128::from(other.start_timestamp.get());
        let by_counter =
            (ticks * i128::from(FILETIME_PER_SECOND)).div_euclid(self.frequency.max(1).into());
        let by_time = i128::from(self.start_time.get()) - i128::from(other.start_time.get());
        let apart = u64::try_from((by_time - by_counter).unsigned_abs()).unwrap_or(u64::MAX);
        let drift = self.start_time.get().abs_diff(other.start_time.get()) / DRIFT;
        (apart > drift.saturating_add(tolerance)).then_some(apart)
    }

    fn has_same_unit(&self, other: &Clock) -> bool {
        self.kind == other.kind && self.frequency == other.frequency
    }

    /// Units of `per_second` since the session's start, rounded down.
    fn since_start(&self, timestamp: Ticks, per_second: i128) -> i128 {
        let ticks = i128::from(timestamp.get()) - i128::from(self.start_timestamp.get());
        // Nearly always 64 bits are enough; they divide in a fraction of the time.
        if let (Ok(ticks), Ok(per_second)) = (u64::try_from(ticks), u64::try_from(per_second))
            && let Some(units) = ticks.checked_mul(per_second)
            && let Some(units) = units.checked_div(self.frequency)
        {
            return units.into();
        }
        (ticks * per_second).div_euclid(i128::from(self.frequency))
    }

    /// The calendar time of a raw timestamp, saturating at the ends of 64 bits.
    #[must_use]
    #[inline]
    pub fn time(&self, timestamp: Ticks) -> FileTime {
        // The usual clock today ticks in FILETIME units and needs no 128-bit division.
        if self.frequency == FILETIME_PER_SECOND.unsigned_abs()
            && let Some(since) = timestamp.get().checked_sub(self.start_timestamp.get())
            && let Some(time) = self.start_time.get().checked_add(since)
        {
            return FileTime::new(time);
        }
        let since = self.since_start(timestamp, i128::from(FILETIME_PER_SECOND));
        FileTime::new(saturate(i128::from(self.start_time.get()) + since))
    }

    /// The time from one raw timestamp to another, in FILETIME units, rounded to the nearest and
    /// saturating; negative if `to` is before `from`.
    ///
    /// ```
    /// use etl_format::constants::ClockType;
    /// use etl_format::{Clock, FileTime, Ticks};
    ///
    /// let clock = Clock::new(ClockType::QPC, FileTime::new(0), Ticks::new(0), 3_000_000, 0);
    /// // One tick is 333.3 ns, two are 666.7 ns.
    /// assert_eq!(clock.duration(Ticks::new(5), Ticks::new(6)), 3);
    /// assert_eq!(clock.duration(Ticks::new(5), Ticks::new(7)), 7);
    /// ```
    #[must_use]
    pub fn duration(&self, from: Ticks, to: Ticks) -> i64 {
        let ticks = i128::from(to.get()) - i128::from(from.get());
        let frequency = i128::from(self.frequency.max(1));
        let doubled = 2 * ticks * i128::from(FILETIME_PER_SECOND);
        saturate((doubled + frequency).div_euclid(2 * frequency))
    }

    /// The first raw timestamp whose time is not before `time`, saturating at the ends of 64 bits.
    /// This is the inverse of [`Clock::time`], to convert the ends of a time range once.
    #[must_use]
    pub fn ticks_at(&self, time: FileTime) -> Ticks {
        let since = i128::from(time.get()) - i128::from(self.start_time.get());
        let per_second = i128::from(FILETIME_PER_SECOND);
        let ticks = since * i128::from(self.frequency);
        // Round up: the smallest tick count that floors to `since` or more.
        let ticks =
            ticks.div_euclid(per_second) + i128::from(u8::from(ticks.rem_euclid(per_second) != 0));
        Ticks::new(saturate(i128::from(self.start_timestamp.get()) + ticks))
    }

    /// Nanoseconds since the session's start, saturating; negative before it.
    #[must_use]
    pub fn nanos_since_start(&self, timestamp: Ticks) -> i64 {
        saturate(self.since_start(timestamp, 1_000_000_000))
    }
}

/// The nearest value that fits into 64 bits.
pub(crate) fn saturate(value: i128) -> i64 {
    let nearest = if value < 0 { i64::MIN } else { i64::MAX };
    i64::try_from(value).unwrap_or(nearest)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn time_of_known_clocks() {
        let at =
            |kind, freq, mhz| Clock::new(kind, FileTime::new(1_000), Ticks::new(50), freq, mhz);
        let time = |clock: Clock, timestamp| clock.time(Ticks::new(timestamp)).get();
        assert_eq!(
            time(at(ClockType::QPC, 3_117_777, 0), 50 + 3_117_777),
            1_000 + 10_000_000
        );
        assert_eq!(time(at(ClockType::SYSTEM_TIME, 3_117_777, 0), 60), 1_010);
        assert_eq!(time(at(ClockType::CPU_CYCLE, 1, 2_000), 50 + 2_000), 1_010);
        assert_eq!(at(ClockType::RAW, 0, 0).frequency, 1);
        assert_eq!(at(ClockType::QPC, -5, 0).frequency, 1);
        // Timestamps before the start floor towards the past.
        assert_eq!(time(at(ClockType::QPC, 3, 0), 49), 1_000 - 3_333_334);
    }

    #[test]
    fn counters_are_the_same_apart_from_drift_and_a_changed_time() {
        let second = FILETIME_PER_SECOND;
        let at = |ticks, time| {
            Clock::new(
                ClockType::QPC,
                FileTime::new(time),
                Ticks::new(ticks),
                1_000,
                0,
            )
        };
        let first = at(0, 0);
        // An hour of 200 ppm is 0.72 s.
        for (time, is_same) in [(3_600, true), (3_610, true), (3_590, true), (3_611, false)] {
            let other = at(3_600_000, time * second);
            assert_eq!(first.is_same_counter(&other), is_same, "{time}");
            assert_eq!(other.restarted_after(&first).is_none(), is_same, "{time}");
        }
        let other = at(3_600_000, 3_600 * second + second / 2);
        assert_eq!(first.zeros_apart(&other, 0), None);
        let faster = Clock {
            frequency: 1_001,
            ..first
        };
        assert_eq!(
            (
                first.is_same_counter(&faster),
                first.restarted_after(&faster)
            ),
            (false, None)
        );
    }

    #[test]
    fn nanos_since_start_keeps_full_resolution() {
        let start = FileTime::UNIX_EPOCH;
        let clock = Clock::new(ClockType::QPC, start, Ticks::new(0), 1_000_000_000, 0);
        let timestamp = Ticks::new(157);
        assert_eq!(clock.time(timestamp), FileTime::new(start.get() + 1));
        assert_eq!(clock.nanos_since_start(timestamp), 157);
    }

    proptest! {
        #[test]
        fn time_keeps_order(
            start_time: i64, start_timestamp: i64, freq: i64, a: i64, b: i64, kind in 0u32..5, mhz: u32,
        ) {
            let start_time = FileTime::new(start_time);
            let start_timestamp = Ticks::new(start_timestamp);
            let clock = Clock::new(ClockType(kind), start_time, start_timestamp, freq, mhz);
            let low = Ticks::new(a.min(b));
            let high = Ticks::new(a.max(b));
            prop_assert!(clock.time(low) <= clock.time(high));
        }

        #[test]
        fn ticks_at_returns_the_first_at_or_after(
            start_timestamp in -1_000_000_000i64..1_000_000_000, freq in 1i64..20_000_000, offset in -1_000_000_000i64..1_000_000_000,
        ) {
            let start_timestamp = Ticks::new(start_timestamp);
            let clock = Clock::new(ClockType::QPC, FileTime::new(0), start_timestamp, freq, 0);
            let time = FileTime::new(offset);
            let timestamp = clock.ticks_at(time);
            prop_assert!(clock.time(timestamp) >= time);
            prop_assert!(clock.time(timestamp.saturating_add(-1)) < time);
        }
    }
}
