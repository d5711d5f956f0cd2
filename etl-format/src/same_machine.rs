//! Whether traces are of one machine, since one start of it.

use crate::FileTime;
use crate::constants::ClockType;
use crate::headers::FileHeader;
use crate::refusal::Reason;

/// The largest difference between two records of one boot time: they are inexact by some minutes.
const SAME_BOOT: u64 = 15 * 60 * 10_000_000;

/// In what two headers are of different machines, or of different starts of one. Facts that a
/// header does not state (0) are not compared.
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

/// In what two headers are of different machines.
pub(crate) fn other_machine(one: &FileHeader, other: &FileHeader) -> Vec<Reason> {
    let version = |h: &FileHeader| u64::from(h.os_major) * 100 + u64::from(h.os_minor);
    // A session without per-processor buffers counts one.
    let processors = |h: &FileHeader| {
        if h.processors > 1 {
            h.processors.into()
        } else {
            0
        }
    };
    let facts: [(&'static str, u64, u64); 3] = [
        (
            "Windows version (major * 100 + minor)",
            version(one),
            version(other),
        ),
        ("Windows build", one.build.into(), other.build.into()),
        ("processors", processors(one), processors(other)),
    ];
    let differ = facts
        .into_iter()
        .filter(|(_, a, b)| *a != 0 && *b != 0 && a != b);
    let mut differ: Vec<_> = differ
        .map(|(what, one, other)| Reason::Machine { what, one, other })
        .collect();
    let (slow, fast) = (
        one.cpu_mhz.min(other.cpu_mhz),
        one.cpu_mhz.max(other.cpu_mhz),
    );
    if slow != 0 && fast - slow > fast / 10 {
        let (one, other) = (one.cpu_mhz.into(), other.cpu_mhz.into());
        differ.push(Reason::Machine {
            what: "processor speed in MHz",
            one,
            other,
        });
    }
    differ
}

/// Whether two headers are of different starts of a machine: the zeros of their counter differ, or
/// the boot times.
pub(crate) fn other_boot(one: &FileHeader, other: &FileHeader) -> Option<Reason> {
    let has_clocks = unrelatable(one).or_else(|| unrelatable(other)).is_none();
    let restarted = one
        .clock()
        .restarted_after(&other.clock())
        .filter(|_| has_clocks);
    let apart = one.boot_time.get().abs_diff(other.boot_time.get());
    let is_known = one.boot_time > FileTime::default() && other.boot_time > FileTime::default();
    let booted = Some(apart).filter(|apart| is_known && *apart > SAME_BOOT);
    restarted.or(booted).map(|apart| Reason::Boot {
        seconds: apart / 10_000_000,
    })
}

/// Why a clock cannot be related to any other, if it cannot.
pub(crate) fn unrelatable(header: &FileHeader) -> Option<&'static str> {
    let frequency = match header.clock_type {
        ClockType::QPC => header.perf_freq > 0,
        ClockType::CPU_CYCLE => header.cpu_mhz > 0,
        ClockType::SYSTEM_TIME => true,
        _ => return Some("its header names no clock"),
    };
    if !frequency {
        return Some("its header states no frequency");
    }
    (header.start_time <= FileTime::default()).then_some("its header states no start time")
}
