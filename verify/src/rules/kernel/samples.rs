//! Samples: how far they are apart, and where they are missing.

use etl_format::constants::FILETIME_PER_SECOND;

use super::is_selection;
use crate::checks::Facts;
use crate::checks::sampling::{Gap, Processor};
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

/// Intervals without a sample that are no accident, and the time without one, in parts of a second.
const MIN_INTERVALS: i64 = 100;
const MIN_PART: i64 = 2;
/// Spans of 10 ms with other events in that time which show that the processor worked.
const MIN_SIGNS: u64 = 10;

fn samples_missing(check: &mut Check<'_>) {
    let facts = check.facts;
    let sampling = &facts.sampling;
    if is_selection(facts) {
        return;
    }
    let Some(last) = sampling.last() else {
        let kernel = facts.machine.kernel_span();
        if let (Some(asked), Some(kernel)) = (sampling.asked, kernel) {
            let message = "the kernel's session asked for samples, and there is none";
            let is_long = kernel.last.saturating_since(asked) >= frequency(facts);
            if is_long {
                check
                    .find(message.to_owned())
                    .at(Some(asked))
                    .unless_lost(Some(asked), None);
            }
        }
        return;
    };
    let Some(interval) = interval(facts) else {
        return;
    };
    let last = sampling.ended.unwrap_or(last);
    for (number, processor) in sampling.processors() {
        let at_end = processor.open_gap(last.max(processor.last));
        let mut gaps = [processor.gap, at_end].into_iter();
        let Some(gap) = gaps.find(|gap| is_missing(facts, processor, gap, interval)) else {
            continue;
        };
        let seconds = gap.ticks() as f64 / frequency(facts) as f64;
        let message = format!(
            "processor {number} has no samples for {seconds:.1} s in which it worked, and had them \
             before"
        );
        let found = check.find(message).at(Some(gap.from));
        found.unless_lost(Some(gap.from), Some(gap.to));
    }
}

/// Whether samples should have come in a gap.
fn is_missing(facts: &Facts, processor: &Processor, gap: &Gap, interval: i64) -> bool {
    let shortest = MIN_INTERVALS.saturating_mul(interval);
    if gap.ticks() < shortest.max(frequency(facts) / MIN_PART) || gap.signs < MIN_SIGNS {
        return false;
    }
    if processor.has_switches() {
        return gap.busy >= shortest;
    }
    // Where idle processors are sampled, too, idling is no reason.
    let &Processor { first, last, .. } = processor;
    let inside = if gap.to <= last { gap.ticks() } else { 0 };
    let expected = last.saturating_since(first).saturating_sub(inside) / interval.max(1);
    let count = i64::try_from(processor.count).unwrap_or(i64::MAX);
    count.saturating_mul(10) >= expected.saturating_mul(9)
        && processor.idle.saturating_mul(10) >= processor.count
        && count >= MIN_INTERVALS
}

/// Ticks of a second.
fn frequency(facts: &Facts) -> i64 {
    i64::try_from(facts.machine.clock().frequency).unwrap_or(FILETIME_PER_SECOND)
}

/// Ticks between samples, as the session states them.
fn interval(facts: &Facts) -> Option<i64> {
    let sampling = &facts.sampling;
    let stated = sampling.stated[0]
        .or(sampling.stated[1])
        .filter(|_| !sampling.is_set)?;
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

/// Distances below which nothing is certain.
const MIN_DISTANCES: u64 = 1_000;

fn sample_interval(check: &mut Check<'_>) {
    let facts = check.facts;
    let sampling = &facts.sampling;
    if let ([Some(first), Some(last)], false) = (sampling.stated, sampling.is_set)
        && first != last
    {
        let message = format!(
            "the interval between samples is {} ms at the start of the session and {} ms at its end, \
             and was not set in between",
            milliseconds(first),
            milliseconds(last)
        );
        check.find(message).unless_lost(None, None);
    }
    if is_selection(facts) {
        return;
    }
    let (Some(interval), Some(stated)) = (interval(facts), sampling.stated[0]) else {
        return;
    };
    let all = sampling.distances();
    if all < MIN_DISTANCES {
        return;
    }
    let part = |numerator, denominator| interval.saturating_mul(numerator) / denominator;
    let few = all / 50;
    // Where idle processors have no samples, they are as far apart as the work is. Two sessions
    // that both sample log each sample twice.
    let idle: u64 = sampling.processors().map(|(_, p)| p.idle).sum();
    // Most of them are about as far apart as the session has it.
    let [shortest, longest] = match sampling.peak() {
        Some((count, range)) if count * 10 >= all * 6 => range,
        _ => [interval as f64; 2],
    };
    let is_slow = idle >= all / 10 && sampling.shorter(part(3, 2)) <= few
        || shortest > interval as f64 * 1.05;
    let is_fast = sampling.shorter(part(3, 4)) * 2 > all && sampling.shorter(part(1, 10)) <= few
        || longest < interval as f64 * 0.95;
    if is_slow || is_fast {
        let message = format!(
            "the session states samples every {} ms, and by the file's clock they are {}",
            milliseconds(stated),
            if is_slow {
                "farther apart"
            } else {
                "closer together"
            }
        );
        check.find(message);
    }
}

/// Milliseconds of an interval in 100 ns.
fn milliseconds(interval: u32) -> f64 {
    f64::from(interval) / 10_000.0
}
