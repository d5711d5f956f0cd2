//! The smallest enablement that explains what was seen of a provider.

use etl_control::clr::{Code, Method, VERBOSE};
use etl_control::enable::{Enablement, EventKey};
use etl_schema::clr::keyword::{
    END_ENUMERATION, END_RUNDOWN, JIT, NGEN, STACK, START_ENUMERATION, START_RUNDOWN,
};

use etl_analysis::machine::Process;
use etl_format::Guid;
use etl_schema::clr::Enumeration;
use etl_schema::providers::{CLR_RUNDOWN, CLR_RUNTIME};
use etl_schema::views::clr::Change;

/// Bits and level that events prove although they do not carry them: enumerations, verbosity.
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
        if is_rundown {
            for bracket in processes.iter().flat_map(Process::brackets) {
                demands.bits |= match bracket.kind {
                    Enumeration::Start => START_RUNDOWN,
                    Enumeration::End => END_RUNDOWN,
                };
            }
        }
        for (sign, _) in processes.iter().flat_map(Process::signs) {
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

/// The smallest level and mask that admit all the events and, for the CLR, have them raised.
///
/// Fewest bits, and of several choices the lowest ones. If no event has a keyword, the mask is the
/// top bit, since a mask of zero would admit all keywords.
#[must_use]
pub fn smallest(provider: Guid, events: &[EventKey], processes: &[Process]) -> Enablement {
    let demands = Demands::of(provider, processes);
    let level = events.iter().map(|e| e.level).max().unwrap_or(0).max(demands.level);
    let mut sets: Vec<u64> = events.iter().map(|e| e.keyword).filter(|&k| k != 0).collect();
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
    let candidates: Vec<u64> =
        (0..64).map(|bit| 1 << bit).filter(|b| sets.iter().any(|s| s & b != 0)).collect();
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
        let Some(&best) = candidates.iter().rev().max_by_key(|bit| met(bit)) else { break };
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
        keys.iter().map(|&(level, keyword)| EventKey { id: 0, level, keyword }).collect()
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

    proptest! {
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
