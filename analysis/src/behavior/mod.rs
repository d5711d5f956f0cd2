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
pub mod network;
pub mod occurrences;
pub mod presence;
pub mod thread_pool;
pub mod waits;

pub use distribution::Distribution;
pub use histogram::Histogram;

use etl_schema::providers::CLR_RUNTIME;

use crate::observe::{EventKind, EventRef};

/// The id of an event of the CLR's runtime provider.
#[inline]
fn runtime_event(event: &EventRef) -> Option<u16> {
    match event.kind {
        EventKind::Event { provider: CLR_RUNTIME, id } => Some(id),
        _ => None,
    }
}
