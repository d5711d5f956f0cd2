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

pub mod difference;
pub mod firefox;
pub mod flamegraph;
pub mod folded;
pub mod pcapng;
pub mod perfetto;
pub mod pprof;
mod protobuf;
pub mod speedscope;
mod text;

use etl_analysis::profile::{Measure, Profile, Weight};

/// The unit of the weights of stacks.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum Unit {
    /// Samples.
    #[default]
    Samples,
    /// Time by the interval that the recording states.
    Time,
    /// Bytes that events state; for a profile of allocations.
    Bytes,
}

impl Unit {
    /// Bytes of a profile of allocations, else this unit, or samples if the profile has no times.
    pub(crate) fn for_profile(self, profile: &Profile) -> Self {
        match self {
            Unit::Samples => Unit::Samples,
            _ if profile.measure() == Measure::Bytes => Unit::Bytes,
            _ if profile.has_times() => Unit::Time,
            _ => Unit::Samples,
        }
    }

    /// Its name in pages.
    pub(crate) const fn name(self) -> &'static str {
        match self {
            Unit::Samples => "samples",
            Unit::Time => "ns",
            Unit::Bytes => "bytes",
        }
    }

    /// The number of samples, nanoseconds, or bytes.
    #[must_use]
    pub fn of(self, weight: Weight) -> u64 {
        match self {
            Unit::Samples => weight.samples,
            Unit::Time => weight.time.saturating_mul(NANOSECONDS),
            Unit::Bytes => weight.time,
        }
    }
}

/// Nanoseconds of a unit of time in profiles.
const NANOSECONDS: u64 = 100;

/// The code of the page runs with the documentation tests.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;
