//! One clock for all inputs, and how each input's timestamps become its timestamps.

use core::ops::Range;

use crate::constants::{ClockType, FILETIME_PER_SECOND};
use crate::headers::FileHeader;
use crate::refusal::{Reason, Refusal};
use crate::same_machine::{other_boot, other_machine, unrelatable};
use crate::{Clock, Ticks};

use super::refusal::Allow;

/// How the timestamps of an input become those of the merged trace.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Relation {
    /// The same counter: timestamps stay as they are.
    Same,
    /// Another clock: start and frequency of both relate them, through the wall clock.
    Converted {
        /// The input's clock.
        from: Clock,
        /// The clock of the merged trace.
        to: Clock,
        /// Ticks per second of the performance counter, of the input and of the merged trace:
        /// records may hold durations of that counter whatever the session's clock is. 0 if the
        /// header does not state it.
        counter: [i64; 2],
    },
}

impl Relation {
    /// A timestamp of the input as one of the merged trace; rounded down, so that order stays.
    #[must_use]
    pub fn timestamp(&self, timestamp: Ticks) -> Ticks {
        let Relation::Converted { from, to, .. } = self else {
            return timestamp;
        };
        let per_second = i128::from(FILETIME_PER_SECOND);
        let (f, t) = (i128::from(from.frequency), i128::from(to.frequency));
        // Only the result is rounded: all else is in units of 1 / (frequency * 10^7) seconds.
        let apart = i128::from(from.start_time.get()) - i128::from(to.start_time.get());
        let since = i128::from(timestamp.get()) - i128::from(from.start_timestamp.get());
        let sum = apart
            .saturating_mul(f)
            .saturating_add(since.saturating_mul(per_second));
        let ticks = sum
            .saturating_mul(t)
            .div_euclid(f.saturating_mul(per_second).max(1));
        Ticks::new(saturate(
            i128::from(to.start_timestamp.get()).saturating_add(ticks),
        ))
    }

    /// A distance in ticks of the input's performance counter as one in those of the merged
    /// trace's, rounded to the nearest. It is unchanged if a header does not state the counter's
    /// frequency.
    #[must_use]
    pub fn counted(&self, ticks: i64) -> i64 {
        match *self {
            Relation::Converted {
                counter: [from, to],
                ..
            } if from > 0 && to > 0 => {
                let (from, to) = (i128::from(from), i128::from(to));
                let doubled = i128::from(ticks).saturating_mul(to).saturating_mul(2);
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

fn saturate(v: i128) -> i64 {
    i64::try_from(v).unwrap_or(if v < 0 { i64::MIN } else { i64::MAX })
}

/// The clock of the merged trace.
#[derive(Clone, Debug)]
pub(super) struct Clocks {
    /// Starts at the earliest start of all inputs.
    pub clock: Clock,
    /// The frequency of the performance counter, for the header.
    pub perf_freq: i64,
    /// The processors' speed, for the header.
    pub cpu_mhz: u32,
    /// Where each input starts, on this clock.
    pub starts: Vec<i64>,
    /// One per input.
    pub relations: Vec<Relation>,
}

impl Clocks {
    /// Finds the clock and the relations of all inputs to it.
    ///
    /// It is the finest performance counter there is: the cycle counter's frequency is only known
    /// roughly, and system time is coarse.
    pub fn relate(headers: &[&FileHeader], allow: Allow) -> Result<Self, Refusal> {
        let rank = |h: &FileHeader| {
            let kind = match h.clock_type {
                _ if unrelatable(h).is_some() => 0,
                ClockType::QPC => 3,
                ClockType::CPU_CYCLE => 2,
                _ => 1,
            };
            (kind, h.clock().frequency)
        };
        let best = headers.iter().map(|h| rank(h)).max();
        let with = headers
            .iter()
            .position(|h| Some(rank(h)) == best)
            .unwrap_or(0);
        let Some(target) = headers.get(with) else {
            return Err(Refusal {
                input: 0,
                with: 0,
                reason: Reason::Clock { why: "no trace" },
            });
        };
        let mut to = target.clock();
        let mut same = Vec::new();
        for (input, header) in headers.iter().enumerate() {
            if input != with {
                for reason in other_machine(header, target) {
                    allow.check(input, with, reason)?;
                }
                let [one, other] = [header, target].map(|h| h.pointer_size);
                if one != other {
                    let [one, other] = [one, other].map(|size| size.bytes() as u64);
                    allow.check(input, with, Reason::PointerSize { one, other })?;
                }
                same.push(Self::is_same(input, header, with, target, allow)?);
            } else {
                same.push(true);
            }
        }
        // The earliest input on the common counter defines its start.
        for (header, same) in headers.iter().zip(&same) {
            let clock = header.clock();
            if *same && clock.start_timestamp < to.start_timestamp && unrelatable(header).is_none()
            {
                (to.start_timestamp, to.start_time) = (clock.start_timestamp, clock.start_time);
            }
        }
        let relations: Vec<Relation> = headers
            .iter()
            .zip(&same)
            .map(|(header, same)| match same {
                true => Relation::Same,
                false => {
                    let counter = [header.perf_freq, target.perf_freq];
                    Relation::Converted {
                        from: header.clock(),
                        to,
                        counter,
                    }
                }
            })
            .collect();
        let starts: Vec<i64> = headers
            .iter()
            .zip(&relations)
            .map(|(h, r)| r.timestamp(h.timestamp).get())
            .collect();
        let earliest = starts
            .iter()
            .min()
            .copied()
            .unwrap_or(to.start_timestamp.get());
        let mut clock = to;
        if earliest != to.start_timestamp.get() {
            let earliest = Ticks::new(earliest);
            clock.start_timestamp = earliest;
            clock.start_time = to.time(earliest);
        }
        let (perf_freq, cpu_mhz) = (target.perf_freq, target.cpu_mhz);
        Ok(Clocks {
            clock,
            perf_freq,
            cpu_mhz,
            starts,
            relations,
        })
    }

    /// The input that began first.
    pub fn first(&self) -> usize {
        let earliest = self.starts.iter().min();
        self.starts
            .iter()
            .position(|start| Some(start) == earliest)
            .unwrap_or(0)
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
        let [one, two] = parts;
        let start = |part: &Self| part.starts.iter().min().copied().unwrap_or(i64::MAX);
        Clocks {
            starts: vec![start(one), start(two)],
            relations: vec![Relation::Same; 2],
            ..*one
        }
    }

    /// Whether an input is on the counter of the target.
    fn is_same(
        input: usize,
        header: &FileHeader,
        with: usize,
        target: &FileHeader,
        allow: Allow,
    ) -> Result<bool, Refusal> {
        if let Some(why) = unrelatable(header).or_else(|| unrelatable(target)) {
            allow.check(input, with, Reason::Clock { why })?;
            return Ok(true);
        }
        if let Some(reason) = other_boot(header, target) {
            allow.check(input, with, reason)?;
        }
        Ok(header.clock().is_same_counter(&target.clock()))
    }
}
