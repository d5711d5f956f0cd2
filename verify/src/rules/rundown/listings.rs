//! The times of the rundowns of a trace.

use etl_format::Ticks;
use std::collections::BTreeSet;

use crate::checks::Facts;
use etl_schema::clr::Enumeration;

/// Timestamps of the first and the last event of rundowns that were requested together, over all
/// processes.
pub(super) type Listing = (Ticks, Ticks);

/// The rundowns of a trace, by kind and time. Those of a kind do not overlap.
#[derive(Clone, Debug)]
pub(super) struct Listings([Vec<Listing>; 2]);

impl Listings {
    pub fn of(facts: &Facts) -> Self {
        let second = i64::try_from(facts.machine.clock().frequency).unwrap_or(i64::MAX);
        let mut kinds = Enumeration::ALL.map(|kind| {
            let processes = facts.machine.processes().iter().enumerate();
            let brackets =
                processes.flat_map(|(p, process)| process.brackets().iter().map(move |b| (p, b)));
            let own = brackets.filter(|(_, bracket)| bracket.kind == kind);
            let spans = own.map(|(process, bracket)| {
                let from = bracket.opened.or(bracket.closed).unwrap_or(bracket.last);
                ((from, bracket.last.max(from)), (process, bracket.instance))
            });
            join(spans.collect(), second)
        });
        // Threads and ranges alone are listed without Init and Complete.
        if let [none, other] = &mut kinds
            && none.is_empty()
            && other.is_empty()
        {
            let span = facts.machine.rundown_span();
            none.extend(span.map(|span| (span.first, span.last)));
        }
        Listings(kinds)
    }

    /// The first of each kind that begins after a timestamp, or at all.
    pub fn first_after(&self, at: Option<Ticks>) -> impl Iterator<Item = Listing> {
        self.0.iter().filter_map(move |own| {
            let later = own.partition_point(|&(first, _)| Some(first) <= at);
            own.get(later).copied()
        })
    }

    /// When the last one began.
    pub fn last_begin(&self) -> Option<Ticks> {
        self.0
            .iter()
            .filter_map(|own| own.last())
            .map(|&(first, _)| first)
            .max()
    }
}

/// Joins the rundowns of CLRs that were requested together: those before a CLR has its next one,
/// a second or more later.
fn join(mut spans: Vec<(Listing, (usize, u16))>, second: i64) -> Vec<Listing> {
    spans.sort_unstable();
    let mut out: Vec<Listing> = Vec::new();
    let mut listed = BTreeSet::new();
    for ((from, to), clr) in spans {
        let is_later = |known: &Listing| from.saturating_since(known.1) > second;
        match out.last_mut() {
            Some(known) if !(is_later(known) && listed.contains(&clr)) => {
                known.1 = known.1.max(to);
            }
            _ => {
                out.push((from, to));
                listed.clear();
            }
        }
        listed.insert(clr);
    }
    out
}

#[cfg(test)]
impl From<[&[Listing]; 2]> for Listings {
    fn from(kinds: [&[Listing]; 2]) -> Self {
        Listings(kinds.map(<[_]>::to_vec))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn listing(spans: &[(i64, i64)]) -> Vec<Listing> {
        spans
            .iter()
            .map(|&(from, to)| (Ticks::new(from), Ticks::new(to)))
            .collect()
    }

    fn plain(spans: Vec<Listing>) -> Vec<(i64, i64)> {
        spans
            .into_iter()
            .map(|(from, to)| (from.get(), to.get()))
            .collect()
    }

    #[test]
    fn first_after_has_one_of_each_kind() {
        let listings = Listings([listing(&[(1, 2), (5, 6)]), listing(&[(3, 9)])]);
        let after = |at: Option<i64>| plain(listings.first_after(at.map(Ticks::new)).collect());
        assert_eq!(after(None), [(1, 2), (3, 9)]);
        assert_eq!(
            (after(Some(1)), after(Some(4))),
            (vec![(5, 6), (3, 9)], vec![(5, 6)])
        );
        assert_eq!(
            (after(Some(5)), listings.last_begin()),
            (vec![], Some(Ticks::new(5)))
        );
    }

    #[test]
    fn join_parts_rundowns_where_a_clr_has_its_next_one() {
        let joined = |spans: &[(i64, i64, usize)]| {
            let span =
                |&(from, to, p): &(i64, i64, usize)| ((Ticks::new(from), Ticks::new(to)), (p, 1));
            plain(join(spans.iter().map(span).collect(), 10))
        };
        // Those of two processes at once, and a process that takes long to respond.
        assert_eq!(joined(&[(0, 4, 1), (2, 7, 2), (60, 61, 3)]), [(0, 61)]);
        // A collector that asks twice, first for modules and then for methods.
        assert_eq!(
            joined(&[(0, 4, 1), (6, 9, 1), (3, 5, 2), (8, 20, 2)]),
            [(0, 20)]
        );
        assert_eq!(
            joined(&[(0, 4, 1), (1, 3, 2), (60, 61, 3), (90, 95, 2), (92, 93, 1)]),
            [(0, 61), (90, 95)]
        );
        assert!(joined(&[]).is_empty());
    }
}
