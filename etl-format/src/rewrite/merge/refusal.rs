//! Checks whether traces belong together, and reasons to refuse a merge.

use crate::constants::ClockType;
use crate::read::FileHeader;

/// The largest difference between two records of one boot time: they are inexact by some minutes.
const SAME_BOOT: u64 = 15 * 60 * 10_000_000;

/// A refusal to merge traces, with its reason.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("input {} does not go with input {}: {reason}", input + 1, with + 1)]
pub struct Refusal {
    /// Index of the input that does not fit.
    pub input: usize,
    /// Index of the input it was compared with.
    pub with: usize,
    /// Why it does not fit.
    pub reason: Reason,
}

/// A reason not to merge two traces.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum Reason {
    /// Another machine: a fact of the machine differs. When allowed, the first one's stays.
    #[error("another machine: {what} {one}, there {other}")]
    Machine {
        /// The fact.
        what: &'static str,
        /// The value of the input.
        one: u64,
        /// The value of the other input.
        other: u64,
    },
    /// The machine was restarted in between, or it is another machine: the counters do not start at
    /// the same time. When allowed, wall-clock times relate them.
    #[error("the machine was restarted in between: the counters started {seconds} seconds apart")]
    Boot {
        /// Seconds between the starts of the counters.
        seconds: u64,
    },
    /// The clock of the input cannot be related to any other. When allowed, its timestamps are
    /// taken for those of the merged trace.
    #[error("its clock cannot be related to the other: {why}")]
    Clock {
        /// What is missing.
        why: &'static str,
    },
    /// The machine had pointers of another width. When allowed, each record keeps its own.
    #[error("pointers of {one} bytes, there of {other}")]
    PointerSize {
        /// Bytes of the input's.
        one: u64,
        /// Bytes of the other's.
        other: u64,
    },
}

impl Reason {
    /// The name by which the reason is allowed: `machine`, `boot`, `clock` or `pointer-size`.
    #[must_use]
    pub const fn name(&self) -> &'static str {
        match self {
            Reason::Machine { .. } => "machine",
            Reason::Boot { .. } => "boot",
            Reason::Clock { .. } => "clock",
            Reason::PointerSize { .. } => "pointer-size",
        }
    }
}

/// Reasons that are ignored.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[allow(clippy::struct_excessive_bools)] // Each is a switch of its own.
pub struct Allow {
    /// [`Reason::Machine`].
    pub machine: bool,
    /// [`Reason::Boot`].
    pub boot: bool,
    /// [`Reason::Clock`].
    pub clock: bool,
    /// [`Reason::PointerSize`].
    pub pointer_size: bool,
}

impl Allow {
    /// Nothing is refused.
    pub const ALL: Allow = Allow { machine: true, boot: true, clock: true, pointer_size: true };

    fn has(self, reason: &Reason) -> bool {
        match reason {
            Reason::Machine { .. } => self.machine,
            Reason::Boot { .. } => self.boot,
            Reason::Clock { .. } => self.clock,
            Reason::PointerSize { .. } => self.pointer_size,
        }
    }

    /// Refuses, unless it is allowed.
    pub(super) fn check(self, input: usize, with: usize, reason: Reason) -> Result<(), Refusal> {
        if self.has(&reason) { Ok(()) } else { Err(Refusal { input, with, reason }) }
    }
}

/// Why two headers are of different machines, if they are. Fields that a header does not have (0)
/// are not compared.
pub(super) fn other_machine(one: &FileHeader, other: &FileHeader) -> Option<Reason> {
    let version = |h: &FileHeader| u64::from(h.os_major) * 100 + u64::from(h.os_minor);
    let facts: [(&'static str, u64, u64); 3] = [
        ("Windows version (major * 100 + minor)", version(one), version(other)),
        ("Windows build", one.build.into(), other.build.into()),
        // A session without per-processor buffers counts one.
        ("processors", counted(one), counted(other)),
    ];
    let differs = facts.into_iter().find(|(_, a, b)| *a != 0 && *b != 0 && a != b);
    if let Some((what, one, other)) = differs {
        return Some(Reason::Machine { what, one, other });
    }
    let (slow, fast) = (one.cpu_mhz.min(other.cpu_mhz), one.cpu_mhz.max(other.cpu_mhz));
    if slow != 0 && fast - slow > fast / 10 {
        let (one, other) = (one.cpu_mhz.into(), other.cpu_mhz.into());
        return Some(Reason::Machine { what: "processor speed in MHz", one, other });
    }
    if one.pointer_size != other.pointer_size {
        let bytes = |h: &FileHeader| h.pointer_size.bytes() as u64;
        return Some(Reason::PointerSize { one: bytes(one), other: bytes(other) });
    }
    None
}

fn counted(header: &FileHeader) -> u64 {
    if header.processors > 1 { header.processors.into() } else { 0 }
}

/// Why two headers on different clocks are of different boots, if they are.
pub(super) fn other_boot(one: &FileHeader, other: &FileHeader) -> Option<Reason> {
    let apart = one.boot_time.abs_diff(other.boot_time);
    let known = one.boot_time > 0 && other.boot_time > 0;
    (known && apart > SAME_BOOT).then_some(Reason::Boot { seconds: apart / 10_000_000 })
}

/// Why a clock cannot be related to any other, if it cannot.
pub(super) fn unrelatable(header: &FileHeader) -> Option<&'static str> {
    let frequency = match header.clock_type {
        ClockType::QPC => header.perf_freq > 0,
        ClockType::CPU_CYCLE => header.cpu_mhz > 0,
        ClockType::SYSTEM_TIME => true,
        _ => return Some("its header names no clock"),
    };
    if !frequency {
        return Some("its header states no frequency");
    }
    (header.start_time <= 0).then_some("its header states no start time")
}
