//! Checks whether traces belong together.

use crate::constants::ClockType;
use crate::headers::FileHeader;
use crate::refusal::{Reason, Refusal};

/// The largest difference between two records of one boot time: they are inexact by some minutes.
const SAME_BOOT: u64 = 15 * 60 * 10_000_000;

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
