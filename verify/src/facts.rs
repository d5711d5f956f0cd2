//! What rules and reports look at.

pub(crate) use crate::checks::{
    Facts, carried::Carried, enablement as enable, infer, payload, raised,
};
pub(crate) use etl_analysis::address::{Origin, Range, Tag, Tallies, Tally};
pub(crate) use etl_analysis::files as source;
pub(crate) use etl_analysis::loss;
pub(crate) use etl_analysis::machine::{
    Bracket, Clr, Counted, Counts, Item, Items, MethodSign, MethodUnloads, Process, Span,
    UnresolvedCause, images,
};
