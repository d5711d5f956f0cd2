//! What processes did: collections, compilations, exceptions, waits for locks, input and output,
//! context switches.
//!
//! Each analysis is an [`Observer`](crate::Observer) that collects from the events of a recording;
//! its results name processes by their indices in the machine. What it needs of a trace is part of
//! its documentation.

pub mod activities;
pub mod collections;
pub mod compilations;
pub mod contention;
mod distribution;
pub mod exceptions;
pub mod hardware;
mod histogram;
pub mod io;
pub mod loads;
mod named_value;
pub mod network;
pub mod occurrences;
pub mod presence;
pub mod thread_pool;
pub mod waits;

pub use distribution::Distribution;
pub use histogram::Histogram;
pub use named_value::NamedValue;

use etl_schema::providers::CLR_RUNTIME;

use crate::observe::{EventKind, EventRef};

/// The times that an analysis counts: from one timestamp to before another one, in ticks of the
/// recording's clock.
#[derive(Clone, Copy, Debug, Default)]
struct Span {
    from: Option<i64>,
    to: Option<i64>,
}

impl Span {
    fn has(&self, time: i64) -> bool {
        self.from.is_none_or(|from| from <= time) && self.to.is_none_or(|to| time < to)
    }

    /// The ticks of what lasted from `since` to `time`, as far as they are in it; `None` if it did
    /// not happen there.
    fn part(&self, since: i64, time: i64) -> Option<u64> {
        let begin = self.from.map_or(since, |from| from.max(since));
        let end = self.to.map_or(time, |to| to.min(time));
        let is_inside = if since < time { begin < end } else { begin == since };
        let is_inside = is_inside && self.to.is_none_or(|to| begin < to);
        is_inside.then(|| u64::try_from(end.saturating_sub(begin)).unwrap_or(0))
    }
}

/// The id of an event of the CLR's runtime provider.
#[inline]
fn runtime_event(event: &EventRef) -> Option<u16> {
    match event.kind {
        EventKind::Event { provider: CLR_RUNTIME, id } => Some(id),
        _ => None,
    }
}
