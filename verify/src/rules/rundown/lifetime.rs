//! When managed code ran in a process, against the times of the rundowns: which of them has to list
//! it.

use std::collections::BTreeSet;

use super::jit_loads::{JitLoads, Loads};
use crate::facts::{Clr, Facts, Process};
use etl_schema::clr::Enumeration;

/// Timestamps of the first and the last event of rundowns that were requested together, over all
/// processes.
pub(super) type Listing = (i64, i64);

/// The rundowns of a trace, by kind and time.
pub(super) fn listings(facts: &Facts) -> Vec<Listing> {
    let mut out = Vec::new();
    let second = i64::try_from(facts.clock().frequency).unwrap_or(i64::MAX);
    for kind in Enumeration::ALL {
        let processes = facts.processes().iter().enumerate();
        let brackets =
            processes.flat_map(|(p, process)| process.brackets().iter().map(move |b| (p, b)));
        let own = brackets.filter(|(_, bracket)| bracket.kind == kind).map(|(process, bracket)| {
            let from = bracket.opened.or(bracket.closed).unwrap_or(bracket.last);
            ((from, bracket.last), (process, bracket.instance))
        });
        join(own.collect(), second, &mut out);
    }
    // Threads and ranges alone are listed without Init and Complete.
    if out.is_empty() {
        out.extend(facts.rundown_span());
    }
    out
}

/// Joins the rundowns of CLRs that were requested together: those before a CLR has its next one,
/// a second or more later.
fn join(mut spans: Vec<(Listing, (usize, u16))>, second: i64, out: &mut Vec<Listing>) {
    spans.sort_unstable();
    let mut current: Option<Listing> = None;
    let mut listed = BTreeSet::new();
    for ((from, to), clr) in spans {
        let is_later = |known: Listing| from.saturating_sub(known.1) > second;
        match &mut current {
            Some(known) if !(is_later(*known) && listed.contains(&clr)) => {
                known.1 = known.1.max(to);
            }
            _ => {
                out.extend(current.replace((from, to)));
                listed.clear();
            }
        }
        listed.insert(clr);
    }
    out.extend(current);
}

/// The time in which managed code ran in a process, as far as the trace shows it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Lifetime {
    /// When it began; `None` if that was before the recording.
    pub began: Option<i64>,
    /// When it ended; `None` if no event shows that.
    pub ended: Option<i64>,
    /// When it was certainly still there.
    pub alive: Option<i64>,
    /// Whether everything that it loaded was recorded.
    pub has_all_loads: bool,
}

/// What a process without a rundown means.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Unlisted {
    /// It should be in a rundown.
    Missing,
    /// It ended at this timestamp before a rundown, and what it loaded earlier is unknown.
    Exited(i64),
    /// No rundown had to list it.
    Sound,
}

impl Lifetime {
    /// What the kernel's and the CLR's events show of a process.
    pub fn of(
        facts: &Facts,
        process: &Process,
        listings: &[Listing],
        jit_loads: &JitLoads,
    ) -> Self {
        let began: Option<Vec<i64>> = process.clrs().values().map(Clr::started).collect();
        let ended = ended(process);
        let listed = listings.iter().map(|&(first, _)| first).max();
        let until = ended.or(listed).unwrap_or(jit_loads.last());
        // The kernel's events show the end of every process that they name.
        let is_watched = process.parent_pid().is_some() && ended.is_none();
        let watched = facts.kernel_span().filter(|_| is_watched).map(|(_, last)| last);
        Lifetime {
            began: process.started().or_else(|| began?.into_iter().min()),
            ended,
            alive: process.last_runtime().max(watched),
            // Where nothing decides it, the process has the benefit of the doubt.
            has_all_loads: matches!(
                jit_loads.since_start(process, until),
                Loads::Whole | Loads::Unknown
            ),
        }
    }

    /// The verdict for a process that none of the rundowns lists.
    pub fn unlisted(self, listings: &[Listing]) -> Unlisted {
        let Lifetime { began, ended, alive, has_all_loads } = self;
        let concerns = |&(first, last): &Listing| {
            let was_there =
                began.is_none_or(|began| began < first) && ended.is_none_or(|ended| ended >= first);
            // A process whose loads are all known lacks nothing if it ended during the rundown.
            let outlived = ended.or(alive).is_some_and(|seen| seen > last);
            was_there && (outlived || !has_all_loads)
        };
        if listings.iter().any(concerns) {
            return Unlisted::Missing;
        }
        let before = |ended: &i64| listings.iter().any(|(first, _)| ended < first);
        match ended.filter(before) {
            Some(ended) if !has_all_loads => Unlisted::Exited(ended),
            _ => Unlisted::Sound,
        }
    }
}

/// When a process ended, or all of its CLRs, if an event shows it.
pub(super) fn ended(process: &Process) -> Option<i64> {
    let ends = || process.clrs().values().map(shut_down).collect::<Option<Vec<i64>>>();
    process.ended().or_else(|| ends()?.into_iter().max())
}

/// When a CLR shut down: its default domain was unloaded, or the last one of those that are all
/// known.
fn shut_down(clr: &Clr) -> Option<i64> {
    if clr.started().is_none() {
        return clr.ended();
    }
    let ends: Option<Vec<i64>> = clr.domains().iter().map(|(_, domain)| domain.to).collect();
    ends?.into_iter().max()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A start rundown from 10 to 20, an end rundown from 100 to 120; the recording ends at 200.
    const BOTH: &[Listing] = &[(10, 20), (100, 120)];
    /// The end rundown alone.
    const END: &[Listing] = &[(100, 120)];

    /// Where a process began: before the recording, between the rundowns, during the end rundown.
    const BEGINNINGS: [Option<i64>; 3] = [None, Some(50), Some(110)];

    /// The verdicts by beginning, for a process that ended between the rundowns, during the end
    /// rundown, after it, and that did not end.
    type Row = [Option<Unlisted>; 4];

    fn check(listings: &[Listing], kernel: bool, has_all_loads: bool, rows: [Row; 3]) {
        for (began, row) in BEGINNINGS.into_iter().zip(rows) {
            for (end, expected) in [Some(60), Some(115), Some(150), None].into_iter().zip(row) {
                let Some(expected) = expected else { continue };
                // Without the kernel's events only the CLR's last event shows that it was there.
                let (ended, alive) = match (end, kernel) {
                    (Some(end), true) => (Some(end), Some(end)),
                    (None, true) => (None, Some(200)),
                    (end, false) => (None, Some(end.unwrap_or(90))),
                };
                let lifetime = Lifetime { began, ended, alive, has_all_loads };
                assert_eq!(lifetime.unlisted(listings), expected, "{lifetime:?} {listings:?}");
            }
        }
    }

    #[test]
    fn unlisted_follows_the_table_of_beginnings_and_ends() {
        let (missing, sound) = (Some(Unlisted::Missing), Some(Unlisted::Sound));
        let exited = Some(Unlisted::Exited(60));
        let never = None;
        // With the kernel's events, and all loads recorded since the beginning.
        let early = [missing, missing, missing, missing];
        let inside = [sound, sound, missing, missing];
        let late = [never, sound, sound, sound];
        for listings in [BOTH, END] {
            check(listings, true, true, [[never; 4], inside, late]);
        }
        // Loads were not recorded: what the process had loaded is unknown.
        let unknown = [exited, missing, missing, missing];
        check(BOTH, true, false, [early, unknown, late]);
        check(END, true, false, [unknown, unknown, late]);
        // Without the kernel's events the end is unknown.
        let seen = [sound, sound, missing, sound];
        for listings in [BOTH, END] {
            check(listings, false, true, [[never; 4], seen, late]);
            check(listings, false, false, [early, early, late]);
        }
    }

    #[test]
    fn join_parts_rundowns_where_a_clr_has_its_next_one() {
        let joined = |spans: &[(i64, i64, usize)]| {
            let mut out = Vec::new();
            join(spans.iter().map(|&(from, to, p)| ((from, to), (p, 1))).collect(), 10, &mut out);
            out
        };
        // Those of two processes at once, and a process that takes long to respond.
        assert_eq!(joined(&[(0, 4, 1), (2, 7, 2), (60, 61, 3)]), [(0, 61)]);
        // A collector that asks twice, first for modules and then for methods.
        assert_eq!(joined(&[(0, 4, 1), (6, 9, 1), (3, 5, 2), (8, 20, 2)]), [(0, 20)]);
        assert_eq!(
            joined(&[(0, 4, 1), (1, 3, 2), (60, 61, 3), (90, 95, 2), (92, 93, 1)]),
            [(0, 61), (90, 95)]
        );
        assert!(joined(&[]).is_empty());
    }

    #[test]
    fn unlisted_is_sound_after_the_last_listing() {
        let lifetime = Lifetime { began: Some(130), ..Lifetime::default() };
        assert_eq!(lifetime.unlisted(BOTH), Unlisted::Sound);
        assert_eq!(lifetime.unlisted(&[]), Unlisted::Sound);
    }
}
