//! The times of the rundowns of a trace.

use std::collections::BTreeSet;

use etl_analysis::machine::Span;
use etl_format::Ticks;

use crate::checks::Facts;
use etl_schema::clr::Enumeration;

/// Rundowns that were requested together, over all processes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Listing {
    /// Time of the first event.
    pub first: Ticks,
    /// Time of the last event.
    pub last: Ticks,
}

/// The rundown of a CLR.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct ClrListing {
    span: Listing,
    /// Index of the process.
    process: usize,
    instance: u16,
}

/// The rundowns of a trace, by kind and time. Rundowns of the same kind do not overlap.
#[derive(Clone, Debug)]
pub(super) struct Listings([Vec<Listing>; 2]);

impl Listings {
    pub fn of(facts: &Facts) -> Self {
        let second = facts.ticks_per_second();
        let mut kinds = Enumeration::ALL.map(|kind| join(clr_listings(facts, kind), second));
        // Threads and ranges alone are listed without Init and Complete.
        if let [starts, ends] = &mut kinds
            && starts.is_empty()
            && ends.is_empty()
            && let Some(Span { first, last }) = facts.machine.rundown_span()
        {
            starts.push(Listing { first, last });
        }
        Listings(kinds)
    }

    /// The first rundown of each kind that begins after a time, or at all.
    pub fn first_after(&self, time: Option<Ticks>) -> Vec<Listing> {
        let mut out = Vec::new();
        for listings in &self.0 {
            let later = listings.partition_point(|listing| Some(listing.first) <= time);
            out.extend(listings.get(later));
        }
        out
    }

    /// When the last rundown began.
    pub fn last_begin(&self) -> Option<Ticks> {
        let last = self.0.iter().filter_map(|listings| listings.last());
        last.map(|listing| listing.first).max()
    }
}

/// The rundowns of a kind of all CLRs.
fn clr_listings(facts: &Facts, kind: Enumeration) -> Vec<ClrListing> {
    let mut out = Vec::new();
    for (index, process) in facts.machine.processes().iter().enumerate() {
        for bracket in process.brackets().iter().filter(|b| b.kind == kind) {
            let first = bracket.opened.or(bracket.closed).unwrap_or(bracket.last);
            out.push(ClrListing {
                span: Listing {
                    first,
                    last: bracket.last.max(first),
                },
                process: index,
                instance: bracket.instance,
            });
        }
    }
    out
}

/// Joins the rundowns of CLRs that were requested together: all rundowns until a CLR has another
/// one, more than a second later.
fn join(mut listings: Vec<ClrListing>, second: i64) -> Vec<Listing> {
    listings.sort_unstable();
    let mut out: Vec<Listing> = Vec::new();
    let mut listed = BTreeSet::new();
    for listing in listings {
        let ClrListing {
            span,
            process,
            instance,
        } = listing;
        match out.last_mut() {
            Some(joined)
                if span.first.saturating_since(joined.last) <= second
                    || !listed.contains(&(process, instance)) =>
            {
                joined.last = joined.last.max(span.last);
            }
            _ => {
                out.push(span);
                listed.clear();
            }
        }
        listed.insert((process, instance));
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

    fn listing(first: i64, last: i64) -> Listing {
        Listing {
            first: Ticks::new(first),
            last: Ticks::new(last),
        }
    }

    fn plain(listings: Vec<Listing>) -> Vec<(i64, i64)> {
        listings
            .into_iter()
            .map(|listing| (listing.first.get(), listing.last.get()))
            .collect()
    }

    #[test]
    fn first_after_has_one_of_each_kind() {
        let listings = Listings([vec![listing(1, 2), listing(5, 6)], vec![listing(3, 9)]]);
        let after = |time: Option<i64>| plain(listings.first_after(time.map(Ticks::new)));
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
            let listings = spans.iter().map(|&(first, last, process)| ClrListing {
                span: listing(first, last),
                process,
                instance: 1,
            });
            plain(join(listings.collect(), 10))
        };
        // Rundowns of two processes at once, and of a process that takes long to respond.
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
