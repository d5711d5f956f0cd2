//! The rundown protocol: which processes have a rundown, its Init and Complete, what it lists.

pub(super) mod brackets;
pub(super) mod content;
pub(super) mod coverage;
mod jit_loads;
mod lifetime;
mod listings;
pub(super) mod partial;
mod promised;

use etl_analysis::machine::{Bracket, Process};
use std::collections::BTreeMap;

/// The rundowns of each CLR of a process, by instance id.
type ByClr<'a> = BTreeMap<u16, Vec<&'a Bracket>>;

fn by_clr(process: &Process) -> ByClr<'_> {
    let mut out = ByClr::new();
    for bracket in process.brackets() {
        out.entry(bracket.instance).or_default().push(bracket);
    }
    out
}
