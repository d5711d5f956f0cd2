//! Writes the contents of traces, and the results of an [analysis](etl_analysis), in the formats of
//! other viewers.
//!
//! | module | viewer |
//! |---|---|
//! | [`folded`] | flame graph scripts: one line a stack |
//! | [`flamegraph`] | a browser: one HTML page without external resources |
//! | [`speedscope`] | speedscope: a profile for each thread, in time order |
//! | [`pprof`] | pprof, with addresses and identities of images |
//! | [`firefox`] | the Firefox Profiler: samples and markers of each thread |
//! | [`perfetto`] | Perfetto: processors and threads over time, samples, slices, counters |
//! | [`pcapng`] | Wireshark: the packets that Windows captured, and events |
#![forbid(unsafe_code)]

pub mod firefox;
pub mod flamegraph;
pub mod folded;
pub mod pcapng;
pub mod perfetto;
pub mod pprof;
mod protobuf;
pub mod speedscope;
mod text;

use etl_analysis::profile::Weight;

/// The unit of the weights of stacks.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum Unit {
    /// Samples.
    #[default]
    Samples,
    /// Time by the interval that the recording states.
    Time,
}

impl Unit {
    /// The number of samples, or nanoseconds.
    #[must_use]
    pub fn of(self, weight: Weight) -> u64 {
        match self {
            Unit::Samples => weight.samples,
            Unit::Time => weight.time.saturating_mul(NANOSECONDS),
        }
    }
}

/// Nanoseconds of a unit of time in profiles.
const NANOSECONDS: u64 = 100;

/// The code of the page runs with the documentation tests.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;
