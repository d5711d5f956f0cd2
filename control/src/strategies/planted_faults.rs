//! Filters with a fault each: the strategies find every one within 256 cases, from every seed.

use proptest::test_runner::{Config, RngAlgorithm, TestRng, TestRunner};

use super::*;
use etl_schema::tables::Registry;

/// The faults.
#[derive(Clone, Copy, Debug)]
enum Fault {
    /// The level of the session is not admitted.
    LevelIsExclusive,
    /// Level 0 of a session admits nothing.
    SessionLevel0IsNone,
    /// Events without keyword do not pass.
    Keyword0IsRefused,
    /// Events without keyword always pass.
    Keyword0IsAlwaysAdmitted,
    /// The mask 0 admits nothing.
    Any0IsNone,
    /// All bits of `any` are needed.
    AnyAsAll,
    /// One bit of `all` is enough.
    AllAsAny,
    /// `all` has no effect.
    AllIsIgnored,
    /// `all` has no effect if `any` is 0.
    AllIsIgnoredForAny0,
    /// Masks have 32 bits.
    MasksAreCut,
    /// Ids have 8 bits.
    IdsAreCut,
    /// A list of refused ids admits them.
    OutIsIn,
    /// A list of ids is not asked for events without keyword.
    IdsAreIgnoredForKeyword0,
}

const FAULTS: [Fault; 13] = [
    Fault::LevelIsExclusive,
    Fault::SessionLevel0IsNone,
    Fault::Keyword0IsRefused,
    Fault::Keyword0IsAlwaysAdmitted,
    Fault::Any0IsNone,
    Fault::AnyAsAll,
    Fault::AllAsAny,
    Fault::AllIsIgnored,
    Fault::AllIsIgnoredForAny0,
    Fault::MasksAreCut,
    Fault::IdsAreCut,
    Fault::OutIsIn,
    Fault::IdsAreIgnoredForKeyword0,
];

/// A filter written from the documents, without or with a fault.
fn admits(session: &Enablement, event: &EventKey, fault: Option<Fault>) -> bool {
    admits_level(session.level, event.level, fault)
        && admits_keyword(session, event.keyword, fault)
        && admits_id(session, event, fault)
}

fn admits_level(session: u8, event: u8, fault: Option<Fault>) -> bool {
    match fault {
        Some(Fault::LevelIsExclusive) => session == 0 || event == 0 || event < session,
        Some(Fault::SessionLevel0IsNone) => event <= session,
        _ => session == 0 || event == 0 || event <= session,
    }
}

fn admits_keyword(session: &Enablement, keyword: u64, fault: Option<Fault>) -> bool {
    let Enablement {
        mut any, mut all, ..
    } = *session;
    let mut keyword = keyword;
    if keyword == 0 {
        return match fault {
            Some(Fault::Keyword0IsRefused) => false,
            Some(Fault::Keyword0IsAlwaysAdmitted) => true,
            _ => !session.ignore_keyword_0,
        };
    }
    match fault {
        Some(Fault::Any0IsNone) if any == 0 => return false,
        Some(Fault::AllIsIgnored) => all = 0,
        Some(Fault::AllIsIgnoredForAny0) if any == 0 => all = 0,
        Some(Fault::MasksAreCut) => {
            keyword &= u64::from(u32::MAX);
            any &= u64::from(u32::MAX);
            all &= u64::from(u32::MAX);
        }
        _ => {}
    }
    let any_matches = match fault {
        Some(Fault::AnyAsAll) => keyword & any == any,
        _ => any == 0 || keyword & any != 0,
    };
    let all_matches = match fault {
        Some(Fault::AllAsAny) => all == 0 || keyword & all != 0,
        _ => keyword & all == all,
    };
    any_matches && all_matches
}

fn admits_id(session: &Enablement, event: &EventKey, fault: Option<Fault>) -> bool {
    if matches!(fault, Some(Fault::IdsAreIgnoredForKeyword0)) && event.keyword == 0 {
        return true;
    }
    match &session.ids {
        IdFilter::Any => true,
        IdFilter::In(ids) => is_listed(ids, event.id, fault),
        IdFilter::Out(ids) => {
            let is_listed = is_listed(ids, event.id, fault);
            is_listed == matches!(fault, Some(Fault::OutIsIn))
        }
    }
}

fn is_listed(ids: &[u16], id: u16, fault: Option<Fault>) -> bool {
    match fault {
        Some(Fault::IdsAreCut) => ids.iter().any(|listed| *listed as u8 == id as u8),
        _ => ids.contains(&id),
    }
}

/// Whether 256 cases from a seed show a difference to the rule.
fn is_found(cases: &BoxedStrategy<Case>, fault: Option<Fault>, seed: u8) -> bool {
    let config = Config {
        cases: 256,
        failure_persistence: None,
        ..Config::default()
    };
    let rng = TestRng::from_seed(RngAlgorithm::ChaCha, &[seed; 32]);
    let mut runner = TestRunner::new_with_rng(config, rng);
    let result = runner.run(cases, |case| {
        let admitted = admits(&case.session, &case.event, fault);
        prop_assert_eq!(admitted, case.is_admitted());
        Ok(())
    });
    result.is_err()
}

/// The sound filter passes, and each fault is found, from 20 seeds.
fn assert_each_fault_is_found(cases: &BoxedStrategy<Case>) {
    for seed in 0..20 {
        assert!(
            !is_found(cases, None, seed),
            "the sound filter, seed {seed}"
        );
        for fault in FAULTS {
            assert!(is_found(cases, Some(fault), seed), "{fault:?}, seed {seed}");
        }
    }
}

#[test]
#[cfg_attr(miri, ignore = "Miri reads the tables for many minutes")]
fn cases_of_finds_every_planted_fault_from_20_seeds() {
    let runtime = Registry::builtin().find("runtime").unwrap();
    assert_each_fault_is_found(&cases_of(runtime).boxed());
}

#[test]
fn cases_finds_every_planted_fault_from_20_seeds() {
    assert_each_fault_is_found(&cases().boxed());
}
