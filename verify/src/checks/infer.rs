//! The smallest enablement that explains what was seen of a provider.

use etl_control::clr::{Code, INFORMATIONAL, Method, Rundown, Runtime, VERBOSE};
use etl_control::enable::{Enablement, EventKey};
use etl_schema::clr::keyword::{
    END_ENUMERATION, END_RUNDOWN, JIT, NGEN, STACK, START_ENUMERATION, START_RUNDOWN,
};

use etl_analysis::machine::{Process, SignCount};
use etl_format::Guid;
use etl_schema::providers::{CLR_RUNDOWN, CLR_RUNTIME};
use etl_schema::views::clr::Change;

/// Bits and level that method events prove although they do not carry them: enumerations,
/// verbosity.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Demands {
    /// Bits that must be on.
    bits: u64,
    /// Minimum level of the session.
    level: u8,
}

impl Demands {
    fn of(provider: Guid, processes: &[Process]) -> Self {
        let mut demands = Demands::default();
        let is_rundown = provider == CLR_RUNDOWN;
        if !is_rundown && provider != CLR_RUNTIME {
            return demands;
        }
        for &SignCount { sign, .. } in processes.iter().flat_map(Process::signs) {
            if matches!(sign.change, Change::Rundown(_)) != is_rundown {
                continue;
            }
            let method = Method::from_flags(sign.flags);
            demands.bits |= match (method.code, sign.change) {
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

/// Sets of bits. The CLR raises an event if one of each set is on: of the event's keywords that
/// make the CLR raise it, and in a rundown of those that request it.
fn choices(provider: Guid, event: &EventKey) -> [u64; 2] {
    let is_rundown = provider == CLR_RUNDOWN;
    if !is_rundown && provider != CLR_RUNTIME {
        return [event.keyword, 0];
    }
    let raises = |mask| {
        [INFORMATIONAL, VERBOSE]
            .iter()
            .any(|&level| match is_rundown {
                true => Rundown::new(mask, level).raises_event(*event),
                false => Runtime::new(mask, level).raises_event(*event),
            })
    };
    let raising = |bits: u64, with: u64| {
        let each = (0..u64::BITS).map(|bit| 1 << bit & bits);
        each.filter(|&bit| bit != 0 && raises(bit | with))
            .fold(0, |all, bit| all | bit)
    };
    let enumerations = START_RUNDOWN | END_RUNDOWN | START_ENUMERATION | END_ENUMERATION;
    let own = match raising(event.keyword, enumerations) {
        // The rules do not know the event.
        0 => event.keyword,
        own => own,
    };
    let requests = if is_rundown {
        raising(START_RUNDOWN | END_RUNDOWN, own)
    } else {
        0
    };
    [own, requests]
}

/// The smallest level and mask that admit all the events and, for the CLR, have them raised.
///
/// Fewest bits, and of several choices the lowest ones. If no event has a keyword, the mask is the
/// top bit, since a mask of zero would admit all keywords.
#[must_use]
pub fn smallest(provider: Guid, events: &[EventKey], processes: &[Process]) -> Enablement {
    let demands = Demands::of(provider, processes);
    let level = events
        .iter()
        .map(|e| e.level)
        .max()
        .unwrap_or(0)
        .max(demands.level);
    let sets = events.iter().flat_map(|event| choices(provider, event));
    let mut sets: Vec<u64> = sets.filter(|&set| set != 0).collect();
    sets.sort_unstable();
    sets.dedup();
    let mut any = demands.bits;
    // A set of one bit leaves no choice.
    for &set in sets.iter().filter(|set| set.is_power_of_two()) {
        any |= set;
    }
    // The CLR's stack keyword admits no more than stacks; it is no choice for other events.
    sets.retain(|set| set & any & !STACK == 0);
    any |= hitting(&sets);
    Enablement::new(level, if any == 0 { 1 << 63 } else { any })
}

/// Fewest bits that meet every set: exactly for up to two, greedily beyond.
fn hitting(sets: &[u64]) -> u64 {
    if sets.is_empty() {
        return 0;
    }
    let candidates: Vec<u64> = (0..64)
        .map(|bit| 1 << bit)
        .filter(|b| sets.iter().any(|s| s & b != 0))
        .collect();
    let meets = |mask: u64| sets.iter().all(|set| set & mask != 0);
    for &a in &candidates {
        if meets(a) {
            return a;
        }
    }
    for (at, &a) in candidates.iter().enumerate() {
        for &b in candidates.iter().skip(at + 1) {
            if meets(a | b) {
                return a | b;
            }
        }
    }
    let mut mask = 0;
    let mut rest = sets.to_vec();
    while !rest.is_empty() {
        let met = |bit: &u64| rest.iter().filter(|&set| set & bit != 0).count();
        // The first of the best: `max_by_key` returns the last.
        let Some(&best) = candidates.iter().rev().max_by_key(|bit| met(bit)) else {
            break;
        };
        mask |= best;
        rest.retain(|set| set & best == 0);
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
    fn smallest_uses_one_bit_where_one_is_enough() {
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
        // Only Threading lists threads; their event has another keyword, too.
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
                // A greedy choice of three is the least, since all choices of two were tried.
                let least = (1u64..256).filter(|m| sets.iter().all(|s| s & m != 0));
                prop_assert_eq!(least.map(u64::count_ones).min(), Some(found.count_ones()));
            }
        }
    }
}
