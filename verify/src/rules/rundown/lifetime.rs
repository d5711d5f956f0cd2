//! When managed code ran in a process, and which rundowns therefore have to list it.

use etl_analysis::machine::{Clr, Process};
use etl_format::Ticks;

use super::jit_loads::{JitLoads, Loads};
use super::listings::{Listing, Listings};
use crate::checks::Facts;

/// The time in which managed code ran in a process, as far as the trace shows it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Lifetime {
    /// When it began; `None` if that was before the recording.
    pub began: Option<Ticks>,
    /// When it ended; `None` if no event shows that.
    pub ended: Option<Ticks>,
    /// The last time at which it certainly still ran.
    pub alive: Option<Ticks>,
    /// Whether everything that it loaded was recorded.
    pub has_all_loads: bool,
}

/// Why a process has no rundown.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Unlisted {
    /// It should be in a rundown.
    Missing,
    /// It may have ended before a rundown: nothing shows that it still ran when the rundown began.
    Perhaps,
    /// It ended at this timestamp before a rundown, and what it loaded earlier is unknown.
    Exited(Ticks),
    /// No rundown had to list it.
    Sound,
}

impl Lifetime {
    /// What the kernel's and the CLR's events show of a process.
    pub fn of(facts: &Facts, process: &Process, listings: &Listings, jit_loads: &JitLoads) -> Self {
        let ended = ended(process);
        let until = ended.or(listings.last_begin()).unwrap_or(jit_loads.last());
        // If nothing decides it, the loads are assumed to be recorded.
        let has_all_loads = matches!(
            jit_loads.since_start(process, until),
            Loads::Whole | Loads::Unknown
        );
        let mut alive = process.last_runtime();
        // The kernel's events show the end of every process that they name.
        if process.parent_pid().is_some()
            && ended.is_none()
            && let Some(kernel) = facts.machine.kernel_span()
        {
            alive = alive.max(Some(kernel.last));
        }
        Lifetime {
            began: process.started().or_else(|| clrs_started(process)),
            ended,
            alive,
            has_all_loads,
        }
    }

    /// Why none of the rundowns lists the process.
    pub fn unlisted(self, listings: &Listings) -> Unlisted {
        let mut is_open = false;
        // A process that should be in a later listing of a kind should also be in the first.
        for listing in listings.first_after(self.began) {
            match self.need(listing) {
                Need::Certain => return Unlisted::Missing,
                Need::Perhaps => is_open = true,
                Need::None => {}
            }
        }
        match self.ended {
            Some(ended) if !self.has_all_loads && Some(ended) < listings.last_begin() => {
                Unlisted::Exited(ended)
            }
            _ if is_open => Unlisted::Perhaps,
            _ => Unlisted::Sound,
        }
    }

    /// Whether a listing that begins after the process should have it.
    fn need(self, listing: Listing) -> Need {
        if self.ended.is_some_and(|ended| ended < listing.first) {
            return Need::None;
        }
        let seen = self.ended.or(self.alive);
        if seen > Some(listing.last) {
            return Need::Certain;
        }
        // A process whose loads are all recorded need not be listed if it ended during the rundown.
        if self.has_all_loads {
            return Need::None;
        }
        // Processes end without an event, if neither the kernel nor the loader logs it.
        if seen >= Some(listing.first) {
            Need::Certain
        } else {
            Need::Perhaps
        }
    }
}

/// Whether a rundown should list a process.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Need {
    /// It lived when the rundown began.
    Certain,
    /// Nothing shows whether it lived then.
    Perhaps,
    /// It need not.
    None,
}

/// When the first CLR of a process started; `None` if the start of one was not recorded.
fn clrs_started(process: &Process) -> Option<Ticks> {
    let starts: Option<Vec<Ticks>> = process.clrs().values().map(Clr::started).collect();
    starts?.into_iter().min()
}

/// When a process ended, or the last of its CLRs, if an event shows it.
pub(super) fn ended(process: &Process) -> Option<Ticks> {
    if let Some(ended) = process.ended() {
        return Some(ended);
    }
    let ends: Option<Vec<Ticks>> = process.clrs().values().map(shut_down).collect();
    ends?.into_iter().max()
}

/// When a CLR shut down: its default domain was unloaded, or the last of its domains if they are
/// all known.
fn shut_down(clr: &Clr) -> Option<Ticks> {
    if clr.started().is_none() {
        return clr.ended();
    }
    let ends: Option<Vec<Ticks>> = clr.domains().iter().map(|(_, domain)| domain.to).collect();
    ends?.into_iter().max()
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const fn listing(first: i64, last: i64) -> Listing {
        Listing {
            first: Ticks::new(first),
            last: Ticks::new(last),
        }
    }

    /// A start rundown from 10 to 20, an end rundown from 100 to 120; the recording ends at 200.
    const BOTH: [&[Listing]; 2] = [&[listing(10, 20)], &[listing(100, 120)]];
    /// The end rundown alone.
    const END: [&[Listing]; 2] = [&[], &[listing(100, 120)]];

    /// When a process began: before the recording, between the rundowns, during the end rundown.
    const BEGINNINGS: [Option<Ticks>; 3] = [None, Some(Ticks::new(50)), Some(Ticks::new(110))];

    /// The verdicts by beginning, for a process that ended between the rundowns, during the end
    /// rundown, after it, and that did not end.
    type Row = [Option<Unlisted>; 4];

    fn check(listings: [&[Listing]; 2], kernel: bool, has_all_loads: bool, rows: [Row; 3]) {
        let listings = Listings::from(listings);
        for (began, row) in BEGINNINGS.into_iter().zip(rows) {
            for (end, expected) in [Some(60), Some(115), Some(150), None].into_iter().zip(row) {
                let Some(expected) = expected else { continue };
                // Without the kernel's events only the CLR's last event shows that it was there.
                let (ended, alive) = match (end, kernel) {
                    (Some(end), true) => (Some(end), Some(end)),
                    (None, true) => (None, Some(200)),
                    (end, false) => (None, Some(end.unwrap_or(90))),
                };
                let ended = ended.map(Ticks::new);
                let alive = alive.map(Ticks::new);
                let lifetime = Lifetime {
                    began,
                    ended,
                    alive,
                    has_all_loads,
                };
                assert_eq!(
                    lifetime.unlisted(&listings),
                    expected,
                    "{lifetime:?} {listings:?}"
                );
            }
        }
    }

    #[test]
    fn unlisted_follows_the_table_of_beginnings_and_ends() {
        let (missing, sound) = (Some(Unlisted::Missing), Some(Unlisted::Sound));
        let exited = Some(Unlisted::Exited(Ticks::new(60)));
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
        let perhaps = Some(Unlisted::Perhaps);
        let open = [perhaps, missing, missing, perhaps];
        for listings in [BOTH, END] {
            check(listings, false, true, [[never; 4], seen, late]);
        }
        check(BOTH, false, false, [early, open, late]);
        check(END, false, false, [open, open, late]);
    }

    #[test]
    fn unlisted_is_sound_after_the_last_listing() {
        let lifetime = Lifetime {
            began: Some(Ticks::new(130)),
            ..Lifetime::default()
        };
        assert_eq!(lifetime.unlisted(&BOTH.into()), Unlisted::Sound);
        assert_eq!(lifetime.unlisted(&[&[][..]; 2].into()), Unlisted::Sound);
    }

    /// Listings in order, from the lengths of gaps and of listings.
    fn listings() -> impl Strategy<Value = Vec<Listing>> {
        prop::collection::vec((1i64..6, 0i64..6), 0..5).prop_map(|lengths| {
            let mut at = 0;
            let each = lengths.into_iter().map(|(gap, len)| {
                let first = at + gap;
                at = first + len;
                listing(first, at)
            });
            each.collect()
        })
    }

    proptest! {
        #[test]
        fn unlisted_looks_at_each_listing(
            starts in listings(), ends in listings(), began in prop::option::of(0i64..40),
            ended in prop::option::of(0i64..40), alive in prop::option::of(0i64..40),
            has_all_loads: bool,
        ) {
            let all = || starts.iter().chain(&ends);
            let seen = ended.or(alive).unwrap_or(-1);
            let may_have = |listing: &Listing| {
                let first = listing.first.get();
                began.is_none_or(|began| began < first) && ended.is_none_or(|ended| ended >= first)
            };
            let should_have = |listing: &Listing| {
                let is_seen_then = seen >= listing.first.get() && !has_all_loads;
                may_have(listing) && (seen > listing.last.get() || is_seen_then)
            };
            // The verdict is about the first listing of each kind after the beginning.
            let first_of_each = || [&starts, &ends].into_iter().filter_map(|kind| {
                kind.iter().find(|l| began.is_none_or(|began| began < l.first.get()))
            });
            let expected = match ended {
                _ if first_of_each().any(should_have) => Unlisted::Missing,
                Some(end) if !has_all_loads && all().any(|l| end < l.first.get()) => {
                    Unlisted::Exited(Ticks::new(end))
                }
                _ if !has_all_loads && first_of_each().any(may_have) => Unlisted::Perhaps,
                _ => Unlisted::Sound,
            };
            let lifetime = Lifetime { began: began.map(Ticks::new), ended: ended.map(Ticks::new), alive: alive.map(Ticks::new), has_all_loads };
            prop_assert_eq!(lifetime.unlisted(&[&starts[..], &ends].into()), expected);
        }
    }
}
