//! What processes did: collections, compilations, exceptions, waits for locks, input and output,
//! context switches; and what drivers did between them.
//!
//! Each analysis is an [`Observer`](crate::Observer) that collects from the events of a recording;
//! its results name processes by their indices in the machine. What it needs of a trace is part of
//! its documentation.

pub mod activities;
pub mod allocations;
pub mod collections;
pub mod compilations;
pub mod contention;
mod distribution;
pub mod exceptions;
pub mod hardware;
mod histogram;
pub mod interrupts;
pub mod io;
pub mod loads;
pub mod missing;
mod named_value;
pub mod network;
pub mod occurrences;
pub mod presence;
pub mod processors;
pub mod thread_pool;
pub mod waits;

pub use distribution::Distribution;
pub use histogram::Histogram;
pub use named_value::NamedValue;

use etl_format::{Ticks, TimeRange};
use etl_schema::providers::CLR_RUNTIME;

use crate::observe::{EventKind, EventRef};

/// The ticks of what lasted from `since` to `time`, as far as they are in the range; `None` if it
/// did not happen there.
fn ticks_within(range: TimeRange, since: Ticks, time: Ticks) -> Option<u64> {
    let lasted = TimeRange::new(Some(since), Some(time));
    if lasted.is_empty() {
        // It lasted for less than a tick.
        return range.contains(since).then_some(0);
    }
    let part = range.intersection(lasted);
    if part.is_empty() {
        return None;
    }
    let ticks = part.to?.saturating_since(part.from?);
    Some(u64::try_from(ticks).unwrap_or(0))
}

/// The ticks from `since` to `time`; 0 if `time` is before.
fn ticks_since(since: Ticks, time: Ticks) -> u64 {
    u64::try_from(time.saturating_since(since)).unwrap_or(0)
}

/// The id of an event of the CLR's runtime provider.
#[inline]
fn runtime_event(event: &EventRef) -> Option<u16> {
    match event.kind {
        EventKind::Event {
            provider: CLR_RUNTIME,
            id,
        } => Some(id),
        _ => None,
    }
}
