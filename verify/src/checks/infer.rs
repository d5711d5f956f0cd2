//! Infers the smallest enablement of a provider that explains its events.

use etl_analysis::machine::{Process, SignCount};
use etl_control::clr::{Code, INFORMATIONAL, Method, Rundown, Runtime, VERBOSE};
use etl_control::enable::{Enablement, EventKey, Variant};
use etl_format::Guid;
use etl_schema::clr::keyword::{
    END_ENUMERATION, END_RUNDOWN, JIT, NGEN, STACK, START_ENUMERATION, START_RUNDOWN,
};
use etl_schema::providers::CLR_RUNDOWN;
use etl_schema::views::clr::{Change, ClrProvider};

/// Keywords and level that method events prove in addition to their own: an unload of a compiled
/// method, for example, has the keywords Jit and NGen, and proves EndEnumeration.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Demands {
    /// Keywords that must be on.
    keywords: u64,
    /// Minimum level of the session.
    level: u8,
}

impl Demands {
    fn of(provider: ClrProvider, processes: &[Process]) -> Self {
        let mut demands = Demands::default();
        for &SignCount { sign, .. } in processes.iter().flat_map(Process::signs) {
            if matches!(sign.change, Change::Rundown(_)) != provider.is_rundown() {
                continue;
            }
            let method = Method::from_flags(sign.flags);
            demands.keywords |= match (method.code, sign.change) {
                (Code::Precompiled, Change::Load) => NGEN | START_ENUMERATION,
                (Code::Precompiled, Change::Unload) => NGEN | END_ENUMERATION,
                (Code::Precompiled, Change::Rundown(_)) => NGEN,
                (Code::Jitted, Change::Unload) => JIT | END_ENUMERATION,
                _ => JIT,
            };
            // Only a verbose session gets the names of plain methods.
            if sign.named && !method.is_always_named() {
                demands.level = VERBOSE;
            }
        }
        demands
    }
}

/// The keywords that a session needs to get an event.
#[derive(Clone, Copy, Debug)]
struct Choices {
    /// At least one of these has to be on: the event's keywords, without those that do not make the
    /// CLR raise it.
    keywords: u64,
    /// For events of a rundown, also at least one of these: StartRundown and EndRundown, as far as
    /// they request the event. 0 for other events.
    requests: u64,
}

impl Choices {
    fn of(provider: Option<ClrProvider>, event: EventKey) -> Self {
        let Some(provider) = provider else {
            return Choices {
                keywords: event.keyword,
                requests: 0,
            };
        };
        let enumerations = START_RUNDOWN | END_RUNDOWN | START_ENUMERATION | END_ENUMERATION;
        let mut keywords = raising_bits(provider, event, event.keyword, enumerations);
        if keywords == 0 {
            // The rules of the CLR do not contain the event.
            keywords = event.keyword;
        }
        let requests = match provider {
            ClrProvider::Runtime => 0,
            ClrProvider::Rundown => {
                raising_bits(provider, event, START_RUNDOWN | END_RUNDOWN, keywords)
            }
        };
        Choices { keywords, requests }
    }
}

/// The bits of `candidates` each of which makes the CLR raise an event, together with `others`.
fn raising_bits(provider: ClrProvider, event: EventKey, candidates: u64, others: u64) -> u64 {
    let mut raising = 0;
    for bit in (0..u64::BITS).map(|shift| 1 << shift) {
        if candidates & bit != 0 && raises(provider, event, bit | others) {
            raising |= bit;
        }
    }
    raising
}

/// Whether the CLR raises an event for a mask, at any level.
fn raises(provider: ClrProvider, event: EventKey, mask: u64) -> bool {
    [INFORMATIONAL, VERBOSE]
        .into_iter()
        .any(|level| match provider {
            ClrProvider::Runtime => Runtime::new(mask, level).raises_event(event),
            ClrProvider::Rundown => Rundown::new(mask, level).raises_event(event),
        })
}

/// The smallest level and mask that admit all the events and, for the CLR, make it raise them.
///
/// The mask has as few bits as possible; among equal masks it has the lowest bits. If no event has
/// a keyword, it is the top bit, since a mask of zero would admit all keywords.
#[must_use]
pub fn smallest(provider: Guid, events: &[EventKey], processes: &[Process]) -> Enablement {
    let provider = ClrProvider::from_guid(provider);
    let demands = match provider {
        Some(provider) => Demands::of(provider, processes),
        None => Demands::default(),
    };
    let mut level = demands.level;
    let mut sets = Vec::new();
    for event in events {
        level = level.max(event.level);
        let choices = Choices::of(provider, *event);
        sets.extend([choices.keywords, choices.requests]);
    }
    sets.retain(|&set| set != 0);
    sets.sort_unstable();
    sets.dedup();
    let mut any = demands.keywords;
    // A set of one bit leaves no choice.
    for &set in sets.iter().filter(|set| set.is_power_of_two()) {
        any |= set;
    }
    // The CLR's stack keyword admits only stacks, so other events need another keyword.
    sets.retain(|set| set & any & !STACK == 0);
    any |= hitting(&sets);
    Enablement::new(level, if any == 0 { 1 << 63 } else { any })
}

/// The same for an EventPipe session: events without keyword need no keyword there, and its only
/// rundown is an end rundown.
#[must_use]
pub fn smallest_of_event_pipe(
    provider: Guid,
    events: &[EventKey],
    processes: &[Process],
) -> Enablement {
    let mut enablement = smallest(provider, events, processes);
    enablement.variant = Variant::EventPipe;
    if provider == CLR_RUNDOWN && enablement.any & START_RUNDOWN != 0 {
        enablement.any = enablement.any & !START_RUNDOWN | END_RUNDOWN;
    }
    if events.iter().all(|event| event.keyword == 0) && provider != CLR_RUNDOWN {
        enablement.any = 0;
    }
    enablement
}

/// The fewest bits that have a bit in common with every set: exactly for up to two bits, greedily
/// for more, since trying all combinations would take too long.
fn hitting(sets: &[u64]) -> u64 {
    if sets.is_empty() {
        return 0;
    }
    let candidates: Vec<u64> = (0..64)
        .map(|shift| 1 << shift)
        .filter(|bit| sets.iter().any(|set| set & bit != 0))
        .collect();
    for &bit in &candidates {
        if meets_all(bit, sets) {
            return bit;
        }
    }
    for (index, &first) in candidates.iter().enumerate() {
        for &second in candidates.iter().skip(index + 1) {
            if meets_all(first | second, sets) {
                return first | second;
            }
        }
    }
    greedy_hitting(&candidates, sets)
}

/// Whether a mask has a bit in common with every set.
fn meets_all(mask: u64, sets: &[u64]) -> bool {
    sets.iter().all(|set| set & mask != 0)
}

/// Adds the bit that is in most of the remaining sets, until none remains.
fn greedy_hitting(candidates: &[u64], sets: &[u64]) -> u64 {
    let mut mask = 0;
    let mut remaining = sets.to_vec();
    while !remaining.is_empty() {
        // The lowest bit among equals: `max_by_key` returns the last.
        let best = candidates
            .iter()
            .rev()
            .max_by_key(|&bit| remaining.iter().filter(|&set| set & bit != 0).count());
        let Some(&best) = best else { break };
        mask |= best;
        remaining.retain(|set| set & best == 0);
    }
    mask
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn seen(keys: &[(u8, u64)]) -> Vec<EventKey> {
        keys.iter()
            .map(|&(level, keyword)| EventKey {
                id: 0,
                level,
                keyword,
            })
            .collect()
    }

    #[test]
    fn smallest_uses_one_bit_if_one_is_enough() {
        let explained = |keys: &[(u8, u64)]| {
            let e = smallest(Guid::ZERO, &seen(keys), &[]);
            (e.level, e.any)
        };
        assert_eq!(explained(&[(4, 0x30), (4, 0x10)]), (4, 0x10));
        assert_eq!(explained(&[(4, 0x30), (5, 0x50), (2, 0x60)]), (5, 0x30));
        assert_eq!(explained(&[(0, 0)]), (0, 1 << 63));
        assert_eq!(explained(&[(4, 0x2000_0008)]), (4, 8));
    }

    #[test]
    fn smallest_requests_the_rundown_that_lists_the_events() {
        let of = |keys: &[(u16, u64)]| {
            let keys = keys.iter().map(|&(id, keyword)| EventKey {
                id,
                level: 4,
                keyword,
            });
            smallest(CLR_RUNDOWN, &keys.collect::<Vec<_>>(), &[]).any
        };
        // Only Threading lists threads, although their event also has another keyword.
        assert_eq!(of(&[(159, 0x1_0800)]), 0x1_0040);
        assert_eq!(of(&[(159, 0x1_0800), (158, 8)]), 0x1_0108);
        // Ranges and modules for PerfTrack come without Init and Complete.
        assert_eq!(of(&[(154, 0x2000_0008), (160, 0x2000_0000)]), 0x2000_0140);
        assert_eq!(of(&[(187, 0)]), 0x40);
        assert_eq!(of(&[(145, 0x2_0038), (157, 8)]), 0x48);
    }

    proptest! {
        #[test]
        fn smallest_lets_the_clr_raise_each_event(mask: u64, picked in 0usize..1_000) {
            // Keywords of events of the rundown.
            let kinds = [
                (145, 0x2_0038), (146, 0x2_0038), (151, 8), (152, 8), (153, 0x2000_0008),
                (154, 0x2000_0008), (155, 8), (156, 8), (157, 8), (158, 8), (159, 0x1_0800),
                (160, 0x2000_0000), (161, 0x2000_0000), (187, 0),
            ];
            let key = |(id, keyword)| EventKey { id, level: 4, keyword };
            let session = Rundown::new(mask | 1 << 63, 4);
            let raised: Vec<_> = kinds.into_iter().map(key).enumerate()
                .filter(|(at, event)| picked >> at & 1 == 0 && session.raises_event(*event))
                .map(|(_, event)| event)
                .collect();
            let found = smallest(CLR_RUNDOWN, &raised, &[]);
            for event in &raised {
                let again = Rundown::new(found.any, found.level).raises_event(*event);
                prop_assert!(again && found.admits(event), "{:?} {:?}", event, found);
            }
        }

        #[test]
        fn smallest_admits_every_event(
            keys in proptest::collection::vec((0u8..7, any::<u16>().prop_map(u64::from)), 1..20),
        ) {
            let keys = seen(&keys);
            let explained = smallest(Guid::ZERO, &keys, &[]);
            for key in &keys {
                // A session's level of 0 admits all levels, so the largest level seen is enough.
                prop_assert!(explained.admits(key), "{:?} {:?}", explained, key);
            }
        }

        #[test]
        fn hitting_uses_the_fewest_bits(
            sets in proptest::collection::vec(1u64..256, 1..6),
        ) {
            let found = hitting(&sets);
            prop_assert!(sets.iter().all(|s| s & found != 0));
            if found.count_ones() <= 3 {
                // A greedy choice of three is minimal, since all choices of two were tried.
                let least = (1u64..256).filter(|m| sets.iter().all(|s| s & m != 0));
                prop_assert_eq!(least.map(u64::count_ones).min(), Some(found.count_ones()));
            }
        }
    }
}
