//! One clock for all inputs, and the conversion of each input's timestamps to it.

use core::ops::Range;

use crate::clock::saturate;
use crate::constants::{ClockType, FILETIME_PER_SECOND};
use crate::headers::FileHeader;
use crate::refusal::{Reason, Refusal};
use crate::same_machine::{other_boot, other_machine, unrelatable};
use crate::{Clock, Ticks};

use super::refusal::Allow;

/// How the timestamps of an input are converted to the clock of the merged trace.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Relation {
    /// The same counter: timestamps are copied.
    Same,
    /// Another clock: timestamps are converted by the time of day of both starts, and by both
    /// frequencies.
    Converted {
        /// The input's clock.
        from: Clock,
        /// The clock of the merged trace.
        to: Clock,
        /// Ticks per second of the performance counter, of the input and of the merged trace. With
        /// any clock of the session, records may contain durations of this counter. 0 if the header
        /// does not state it.
        counter: [i64; 2],
    },
}

impl Relation {
    /// Converts a timestamp of the input. It is rounded down, which keeps the order.
    #[must_use]
    pub fn timestamp(&self, timestamp: Ticks) -> Ticks {
        let Relation::Converted { from, to, .. } = self else {
            return timestamp;
        };
        let per_second = i128::from(FILETIME_PER_SECOND);
        let from_frequency = i128::from(from.frequency);
        let to_frequency = i128::from(to.frequency);
        // Only the result is rounded: the sum is in units of 1 / (frequency * 10^7) seconds.
        let between_starts = i128::from(from.start_time.get()) - i128::from(to.start_time.get());
        let since_start = i128::from(timestamp.get()) - i128::from(from.start_timestamp.get());
        let sum = between_starts
            .saturating_mul(from_frequency)
            .saturating_add(since_start.saturating_mul(per_second));
        let ticks = sum
            .saturating_mul(to_frequency)
            .div_euclid(from_frequency.saturating_mul(per_second).max(1));
        let converted = i128::from(to.start_timestamp.get()).saturating_add(ticks);
        Ticks::new(saturate(converted))
    }

    /// Converts a duration in ticks of the input's performance counter to ticks of the merged
    /// trace's performance counter, rounded to the nearest. It is unchanged if a header does not
    /// state the counter's frequency.
    #[must_use]
    pub fn counted(&self, ticks: i64) -> i64 {
        match *self {
            Relation::Converted {
                counter: [from, to],
                ..
            } if from > 0 && to > 0 => {
                let from = i128::from(from);
                let doubled = i128::from(ticks)
                    .saturating_mul(to.into())
                    .saturating_mul(2);
                saturate(doubled.saturating_add(from).div_euclid(2 * from))
            }
            _ => ticks,
        }
    }

    /// `same` or `converted`.
    #[must_use]
    pub const fn name(&self) -> &'static str {
        match self {
            Relation::Same => "same",
            Relation::Converted { .. } => "converted",
        }
    }
}

/// The clock of the merged trace, and its relations to the inputs.
#[derive(Clone, Debug)]
pub(super) struct Clocks {
    /// Starts at the earliest start of all inputs.
    pub clock: Clock,
    /// The frequency of the performance counter, for the header.
    pub perf_freq: i64,
    /// The processors' speed, for the header.
    pub cpu_mhz: u32,
    /// When each input starts, on this clock.
    pub starts: Vec<i64>,
    /// The relation of each input.
    pub relations: Vec<Relation>,
}

/// The order in which clocks are preferred for the merged trace.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Precision {
    kind: ClockKind,
    frequency: u64,
}

/// The kinds of clocks, the best last. The frequency of the cycle counter is not stated exactly,
/// and system time is coarse.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum ClockKind {
    Unrelatable,
    SystemTime,
    CycleCounter,
    PerformanceCounter,
}

impl Precision {
    fn of(header: &FileHeader) -> Self {
        let kind = match header.clock_type {
            _ if unrelatable(header).is_some() => ClockKind::Unrelatable,
            ClockType::QPC => ClockKind::PerformanceCounter,
            ClockType::CPU_CYCLE => ClockKind::CycleCounter,
            _ => ClockKind::SystemTime,
        };
        Precision {
            kind,
            frequency: header.clock().frequency,
        }
    }
}

impl Clocks {
    /// Selects the most precise clock of all inputs, and determines the relations to it.
    pub fn relate(headers: &[&FileHeader], allow: Allow) -> Result<Self, Refusal> {
        let best = headers.iter().map(|header| Precision::of(header)).max();
        let target_index = headers
            .iter()
            .position(|header| Some(Precision::of(header)) == best)
            .unwrap_or(0);
        let Some(target) = headers.get(target_index) else {
            return Err(Refusal {
                input: 0,
                with: 0,
                reason: Reason::Clock { why: "no trace" },
            });
        };
        let mut is_same = Vec::new();
        for (input, header) in headers.iter().enumerate() {
            is_same.push(
                input == target_index
                    || Self::check_input(input, header, target_index, target, allow)?,
            );
        }
        let mut common = target.clock();
        // The earliest input on the common counter defines its start.
        for (header, is_same) in headers.iter().zip(&is_same) {
            let clock = header.clock();
            if *is_same
                && clock.start_timestamp < common.start_timestamp
                && unrelatable(header).is_none()
            {
                common.start_timestamp = clock.start_timestamp;
                common.start_time = clock.start_time;
            }
        }
        let mut relations = Vec::new();
        let mut starts = Vec::new();
        for (header, is_same) in headers.iter().zip(&is_same) {
            let relation = if *is_same {
                Relation::Same
            } else {
                Relation::Converted {
                    from: header.clock(),
                    to: common,
                    counter: [header.perf_freq, target.perf_freq],
                }
            };
            starts.push(relation.timestamp(header.timestamp).get());
            relations.push(relation);
        }
        let mut clock = common;
        if let Some(&earliest) = starts.iter().min() {
            clock.start_timestamp = Ticks::new(earliest);
        }
        if clock.start_timestamp != common.start_timestamp {
            clock.start_time = common.time(clock.start_timestamp);
        }
        Ok(Clocks {
            clock,
            perf_freq: target.perf_freq,
            cpu_mhz: target.cpu_mhz,
            starts,
            relations,
        })
    }

    /// The index of the input that began first.
    pub fn first(&self) -> usize {
        let earliest = self.starts.iter().min();
        self.starts
            .iter()
            .position(|start| Some(start) == earliest)
            .unwrap_or(0)
    }

    /// When the first input starts, on this clock.
    fn earliest_start(&self) -> i64 {
        self.starts.iter().min().copied().unwrap_or(i64::MAX)
    }

    /// The same clock for a part of the inputs.
    pub fn part(&self, inputs: Range<usize>) -> Self {
        let starts = self.starts.get(inputs.clone()).unwrap_or_default().to_vec();
        let relations = self.relations.get(inputs).unwrap_or_default().to_vec();
        Clocks {
            starts,
            relations,
            ..*self
        }
    }

    /// The same clock for traces that are on it already.
    pub fn joining(parts: [&Self; 2]) -> Self {
        let [first, second] = parts;
        Clocks {
            starts: vec![first.earliest_start(), second.earliest_start()],
            relations: vec![Relation::Same; 2],
            ..*first
        }
    }

    /// Checks that an input belongs to the target. Returns whether its timestamps can be copied,
    /// because both have the same counter, or because they cannot be converted.
    fn check_input(
        input: usize,
        header: &FileHeader,
        target_index: usize,
        target: &FileHeader,
        allow: Allow,
    ) -> Result<bool, Refusal> {
        for reason in other_machine(header, target) {
            allow.check(input, target_index, reason)?;
        }
        if header.pointer_size != target.pointer_size {
            let reason = Reason::PointerSize {
                one: header.pointer_size.bytes() as u64,
                other: target.pointer_size.bytes() as u64,
            };
            allow.check(input, target_index, reason)?;
        }
        if let Some(why) = unrelatable(header).or_else(|| unrelatable(target)) {
            allow.check(input, target_index, Reason::Clock { why })?;
            return Ok(true);
        }
        if let Some(reason) = other_boot(header, target) {
            allow.check(input, target_index, reason)?;
        }
        Ok(header.clock().is_same_counter(&target.clock()))
    }
}
