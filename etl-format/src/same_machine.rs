//! Compares the headers of traces: same machine, same start of the machine.

use crate::FileTime;
use crate::constants::ClockType;
use crate::headers::FileHeader;
use crate::refusal::Reason;

/// Boot times in headers of the same start of a machine differ by some minutes; this is the largest
/// difference.
const MAX_BOOT_DIFFERENCE: u64 = 15 * 60 * 10_000_000;

/// The facts that show that two headers are from different machines, or from different starts of a
/// machine. Facts that a header does not state (0) are not compared.
///
/// ```
/// use etl_format::{FileHeader, FileTime};
/// use etl_format::same_machine::differences;
///
/// let one = FileHeader::starting_at(FileTime::new(132_000_000_000_000_000));
/// let other = FileHeader { build: 22_621, ..one.clone() };
/// assert!(differences(&one, &one).is_empty());
/// assert_eq!(differences(&one, &other).len(), 1, "another build of Windows");
/// ```
#[must_use]
pub fn differences(one: &FileHeader, other: &FileHeader) -> Vec<Reason> {
    other_machine(one, other)
        .into_iter()
        .chain(other_boot(one, other))
        .collect()
}

/// The facts that show that two headers are from different machines.
pub(crate) fn other_machine(one: &FileHeader, other: &FileHeader) -> Vec<Reason> {
    let facts = [
        Reason::Machine {
            what: "Windows version (major * 100 + minor)",
            one: windows_version(one),
            other: windows_version(other),
        },
        Reason::Machine {
            what: "Windows build",
            one: one.build.into(),
            other: other.build.into(),
        },
        Reason::Machine {
            what: "processors",
            one: processors(one),
            other: processors(other),
        },
    ];
    let mut different: Vec<Reason> = facts.into_iter().filter(is_different).collect();
    let slow = one.cpu_mhz.min(other.cpu_mhz);
    let fast = one.cpu_mhz.max(other.cpu_mhz);
    if slow != 0 && fast - slow > fast / 10 {
        different.push(Reason::Machine {
            what: "processor speed in MHz",
            one: one.cpu_mhz.into(),
            other: other.cpu_mhz.into(),
        });
    }
    different
}

fn windows_version(header: &FileHeader) -> u64 {
    u64::from(header.os_major) * 100 + u64::from(header.os_minor)
}

/// The number of processors; 0 if it is unknown. A session without per-processor buffers states 1.
fn processors(header: &FileHeader) -> u64 {
    match header.processors {
        0 | 1 => 0,
        processors => processors.into(),
    }
}

/// Whether both headers state a fact, and the facts differ.
fn is_different(reason: &Reason) -> bool {
    match *reason {
        Reason::Machine { one, other, .. } => one != 0 && other != 0 && one != other,
        _ => false,
    }
}

/// Whether two headers are from different starts of a machine: the zeros of their counters differ,
/// or the boot times.
pub(crate) fn other_boot(one: &FileHeader, other: &FileHeader) -> Option<Reason> {
    let between = time_between_counters(one, other).or_else(|| time_between_boots(one, other))?;
    Some(Reason::Boot {
        seconds: between / 10_000_000,
    })
}

/// The time between the starts of both counters, in FILETIME units, if they differ.
fn time_between_counters(one: &FileHeader, other: &FileHeader) -> Option<u64> {
    if unrelatable(one).is_some() || unrelatable(other).is_some() {
        return None;
    }
    one.clock().restarted_after(&other.clock())
}

/// The time between both boot times, in FILETIME units, if both are stated and differ.
fn time_between_boots(one: &FileHeader, other: &FileHeader) -> Option<u64> {
    if one.boot_time <= FileTime::default() || other.boot_time <= FileTime::default() {
        return None;
    }
    let between = one.boot_time.get().abs_diff(other.boot_time.get());
    (between > MAX_BOOT_DIFFERENCE).then_some(between)
}

/// Why timestamps of a clock cannot be converted; `None` if they can.
pub(crate) fn unrelatable(header: &FileHeader) -> Option<&'static str> {
    let has_frequency = match header.clock_type {
        ClockType::QPC => header.perf_freq > 0,
        ClockType::CPU_CYCLE => header.cpu_mhz > 0,
        ClockType::SYSTEM_TIME => true,
        _ => return Some("its header names no clock"),
    };
    if !has_frequency {
        return Some("its header states no frequency");
    }
    if header.start_time <= FileTime::default() {
        return Some("its header states no start time");
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn time_between_boots_is_stated_above_a_quarter_of_an_hour() {
        let booted_at = |time: i64| FileHeader {
            boot_time: FileTime::new(time),
            ..FileHeader::new()
        };
        let first = booted_at(1_000);
        let most = 15 * 60 * 10_000_000;
        assert_eq!(time_between_boots(&first, &booted_at(1_000 + most)), None);
        let more = booted_at(1_000 + most + 1);
        assert_eq!(time_between_boots(&first, &more), Some(most as u64 + 1));
        assert_eq!(time_between_boots(&booted_at(0), &more), None);
    }
}
