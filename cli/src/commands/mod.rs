//! The subcommands, one file each.

pub(crate) mod analyze;
pub(crate) mod completions;
pub(crate) mod convert;
pub(crate) mod corpus;
pub(crate) mod dataset;
pub(crate) mod diff;
pub(crate) mod doctor;
pub(crate) mod dump;
pub(crate) mod errata;
pub(crate) mod export;
pub(crate) mod info;
pub(crate) mod merge;
pub(crate) mod repack;
pub(crate) mod repair;
mod roff;
pub(crate) mod scrub;
pub(crate) mod slice;
pub(crate) mod spec;
pub(crate) mod symbols;
pub(crate) mod synth;
pub(crate) mod verify;
