//! Samples: how far they are apart, and where they are missing.

use etl_format::constants::{FILETIME_PER_SECOND, LogFileMode};

use super::is_selection;
use crate::checks::Facts;
use crate::checks::sampling::{Gap, Peak, Processor, Sampling};
use crate::finding::Severity;
use crate::rules::{Check, Rule};

pub(in crate::rules) const SAMPLES_MISSING: Rule = Rule {
    id: "kernel.samples-missing",
    statement: "As long as the kernel's session samples, each processor that works has samples.",
    severity: Severity::Warning,
    source: "the kernel's samples, its context switches, and what it logs on the same processor",
    protocol: &[],
    meaning: "What a processor did in this time is not known, and is missing from every sum of \
              processor time.",
    remedy: "Use the file that the session wrote, or record again.",
    commands: &[],
    check: samples_missing,
};

/// Intervals without a sample that are not an accident.
const MIN_INTERVALS: i64 = 100;
/// The shortest time without a sample that is not an accident: a second divided by this.
const MIN_PART: i64 = 2;
/// Spans of 10 ms with other events in that time which show that the processor worked.
const MIN_SIGNS: u64 = 10;
/// Intervals without a sample that are not an accident on a processor that is sampled all the time:
/// the longest time without one in a real trace is 7 intervals (net.4.5.2.x64.etl).
const MIN_REGULAR_INTERVALS: i64 = 50;

/// Whether buffers of a session have records of all processors: then samples have no processor.
fn has_no_processors(facts: &Facts) -> bool {
    let mut files = facts.machine.files().iter();
    files.any(|file| {
        file.header
            .mode
            .has(LogFileMode::NO_PER_PROCESSOR_BUFFERING)
    })
}

/// Whether a buffer states a processor that the machine does not have: its samples are missing from
/// another processor.
fn has_wrong_processors(facts: &Facts) -> bool {
    let mut files = facts.machine.files().iter();
    files.any(|file| file.beyond_processors.is_some())
}

fn samples_missing(check: &mut Check<'_>) {
    let facts = check.facts;
    let sampling = &facts.sampling;
    if is_selection(facts) || has_no_processors(facts) || has_wrong_processors(facts) {
        return;
    }
    let Some(last) = sampling.last() else {
        all_missing(check);
        return;
    };
    let Some(interval) = interval(facts) else {
        return;
    };
    let last = sampling.ended.unwrap_or(last);
    for (number, processor) in sampling.processors() {
        let at_end = processor.open_gap(last.max(processor.last));
        let mut gaps = [processor.gap, processor.longest, at_end].into_iter();
        let Some(gap) = gaps.find(|gap| {
            is_missing(facts, processor, gap, interval)
                || is_break(sampling, number, processor, gap, interval)
        }) else {
            continue;
        };
        let seconds = gap.ticks() as f64 / facts.ticks_per_second() as f64;
        let message = format!(
            "processor {number} has no samples for {seconds:.2} s in which it worked, or in which \
             the samples of idle processors are missing, and had them before"
        );
        let found = check.report(message).at(Some(gap.from));
        found.unless_lost(Some(gap.from), Some(gap.to));
    }
}

/// Adds a finding if the session requested samples for a second or more, and there is none.
fn all_missing(check: &mut Check<'_>) {
    let facts = check.facts;
    let Some(requested) = facts.sampling.requested else {
        return;
    };
    let Some(kernel) = facts.machine.kernel_span() else {
        return;
    };
    if kernel.last.saturating_since(requested) < facts.ticks_per_second() {
        return;
    }
    let message = "the kernel's session asked for samples, and there is none";
    check
        .report(message.to_owned())
        .at(Some(requested))
        .unless_lost(Some(requested), None);
}

/// Whether a processor should have had samples in a gap.
fn is_missing(facts: &Facts, processor: &Processor, gap: &Gap, interval: i64) -> bool {
    let shortest = MIN_INTERVALS.saturating_mul(interval);
    let min_ticks = shortest.max(facts.ticks_per_second() / MIN_PART);
    if gap.ticks() < min_ticks {
        return false;
    }
    if processor.has_switches() && gap.busy >= shortest && gap.signs >= MIN_SIGNS {
        return true;
    }
    is_sampled_all_the_time(processor, gap, interval, 90)
}

/// Whether a processor is also sampled when it is idle, and has a share of the samples, in percent,
/// that it should have outside of a gap: then idling does not explain the gap.
fn is_sampled_all_the_time(processor: &Processor, gap: &Gap, interval: i64, percent: i64) -> bool {
    let sampled = processor.last.saturating_since(processor.first);
    let inside = if gap.to <= processor.last {
        gap.ticks()
    } else {
        0
    };
    let expected = sampled.saturating_sub(inside) / interval.max(1);
    let count = i64::try_from(processor.count).unwrap_or(i64::MAX);
    count.saturating_mul(100) >= expected.saturating_mul(percent)
        && processor.idle.saturating_mul(10) >= processor.count
        && count >= MIN_INTERVALS
}

/// Whether a gap is a break in regular samples: of a processor that is sampled all the time, while
/// others had samples. A virtual machine that stands still has none on any processor.
fn is_break(
    sampling: &Sampling,
    number: usize,
    processor: &Processor,
    gap: &Gap,
    interval: i64,
) -> bool {
    if gap.ticks() < MIN_REGULAR_INTERVALS.saturating_mul(interval) {
        return false;
    }
    let mut others = sampling
        .processors()
        .filter(|(other, _)| *other != number)
        .peekable();
    let has_others = others.peek().is_some();
    let is_alone = others.all(|(_, other)| {
        other.first <= gap.from && gap.to <= other.last && !stands_still(&other.longest, gap)
    });
    has_others && is_alone && is_sampled_all_the_time(processor, gap, interval, 99)
}

/// Whether another processor has no samples either, for at least half of a gap.
fn stands_still(other: &Gap, gap: &Gap) -> bool {
    let is_long = other.ticks() >= gap.ticks() / 2;
    is_long && other.from < gap.to && gap.from < other.to
}

/// Ticks between samples, by the interval that the session states.
fn interval(facts: &Facts) -> Option<i64> {
    if facts.sampling.is_set {
        return None;
    }
    let stated = facts.sampling.stated_interval()?;
    let ticks = i128::from(stated) * i128::from(facts.machine.clock().frequency);
    let ticks = i64::try_from(ticks / i128::from(FILETIME_PER_SECOND)).ok()?;
    Some(ticks).filter(|ticks| *ticks > 0)
}

pub(in crate::rules) const SAMPLE_INTERVAL: Rule = Rule {
    id: "kernel.sample-interval",
    statement: "Samples of a processor are as far apart as the session states.",
    severity: Severity::Warning,
    source: "the kernel's samples, and the interval that it logs",
    protocol: &[],
    meaning: "The clock of the file runs at another rate than its header states, so that all times \
              and durations are wrong; or most samples are missing.",
    remedy: "Use the file that the session wrote. What the header states:",
    commands: &["etlkit info trace.etl"],
    check: sample_interval,
};

/// Fewer distances prove nothing, unless most of them are equal.
const MIN_DISTANCES: u64 = 1_000;
/// Fewer distances prove nothing.
const MIN_EQUAL_DISTANCES: u64 = 100;

fn sample_interval(check: &mut Check<'_>) {
    let facts = check.facts;
    let sampling = &facts.sampling;
    if let Some(first) = sampling.interval_at_start
        && let Some(last) = sampling.interval_at_end
        && first != last
        && !sampling.is_set
    {
        let message = format!(
            "the interval between samples is {} ms at the start of the session and {} ms at its end, \
             and was not set in between",
            milliseconds(first),
            milliseconds(last)
        );
        check.report(message).unless_lost(None, None);
    }
    if is_selection(facts) || has_no_processors(facts) {
        return;
    }
    let Some(interval) = interval(facts) else {
        return;
    };
    let Some(stated) = sampling.interval_at_start else {
        return;
    };
    let difference = if is_slow(sampling, interval) {
        "farther apart"
    } else if is_fast(sampling, interval) {
        "closer together"
    } else {
        return;
    };
    check.report(format!(
        "the session states samples every {} ms, and by the file's clock they are {difference}",
        milliseconds(stated),
    ));
}

/// Whether samples are farther apart than the stated interval, in ticks.
fn is_slow(sampling: &Sampling, interval: i64) -> bool {
    let all = sampling.distances();
    if all < MIN_EQUAL_DISTANCES {
        return false;
    }
    if let Some(peak) = usual_peak(sampling, all)
        && peak.shortest > interval as f64 * 1.05
    {
        return true;
    }
    if all < MIN_DISTANCES {
        return false;
    }
    // If idle processors are not sampled, the distances depend on the work.
    let idle: u64 = sampling.processors().map(|(_, p)| p.idle).sum();
    let longer = interval.saturating_mul(3) / 2;
    idle >= all / 10 && sampling.shorter(longer) <= all / FEW_PART
}

/// Whether samples are closer together than the stated interval, in ticks.
fn is_fast(sampling: &Sampling, interval: i64) -> bool {
    let all = sampling.distances();
    if all < MIN_EQUAL_DISTANCES {
        return false;
    }
    if let Some(peak) = usual_peak(sampling, all)
        && peak.longest < interval as f64 * 0.95
    {
        return true;
    }
    if all < MIN_DISTANCES {
        return false;
    }
    // Two sessions that both sample log each sample twice, at nearly the same time.
    let doubled = sampling.shorter(interval / 10);
    let shorter = interval.saturating_mul(3) / 4;
    sampling.shorter(shorter) * 2 > all && doubled <= all / FEW_PART
}

/// A number of distances divided by this is so small that they may be accidents.
const FEW_PART: u64 = 50;

/// The most frequent distances, if most distances are among them.
fn usual_peak(sampling: &Sampling, all: u64) -> Option<Peak> {
    sampling.peak().filter(|peak| peak.count * 10 >= all * 6)
}

/// Milliseconds of an interval in 100 ns.
fn milliseconds(interval: u32) -> f64 {
    f64::from(interval) / 10_000.0
}
