//! What real .NET runtimes raised for many masks and levels, compared with what the rules of
//! `etl_control` promise and with what a simulated CLR of the same version raises for similar work.
//!
//! The runtimes were recorded through EventPipe on Linux: 3.1 was attached to, 8.0 and 10.0 were
//! recorded from their first event to the end of the process.

use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;

use etl_control::clr::Runtime;
use etl_control::enable::Enablement;
use etl_control::mask::explain;
use etl_format::Guid;
use etl_schema::providers::{CLR_RUNDOWN, CLR_RUNTIME};
use etl_schema::tables::{Registry, TableSet};
use etl_schema::{EventSchema, Identity};
use etl_synth::model::{Action, EnablePlan, Request, Scenario, SessionPlan};
use etl_synth::truth::InMemoryTruth;
use etl_synth::{MILLISECOND, MemoryFileSystem, SECOND, Script, Simulation};
use etl_test_support::{needs, traces};
use proptest::prelude::*;

/// The list of other recordings, which `cargo xtask record` makes.
const FRESH: &str = "ETLKIT_RECORDINGS";

/// Asserts that the recordings were compared: a fresh list has fewer.
fn assert_checked(checked: usize, known: usize) {
    let is_fresh = std::env::var_os(FRESH).is_some();
    assert!(is_fresh || checked == known, "{checked} recordings");
}

/// Ids of events.
type Ids = BTreeSet<u16>;

/// A recording of a real runtime: provider, runtime, mask, level.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Recording {
    is_rundown: bool,
    runtime: String,
    mask: u64,
    level: u8,
}

/// An event and its version.
type Kind = (u16, u8);

/// The kinds of events that each recording has.
fn recordings() -> BTreeMap<Recording, BTreeSet<Kind>> {
    let list = match std::env::var_os(FRESH) {
        Some(list) => PathBuf::from(list),
        None => traces().join("../facts/real-clr/masks.tsv"),
    };
    let text = std::fs::read_to_string(list).unwrap();
    let mut all: BTreeMap<Recording, BTreeSet<Kind>> = BTreeMap::new();
    for line in text.lines().skip(1) {
        let columns: Vec<&str> = line.split('\t').collect();
        let [provider, runtime, mask, level, id, version, _] = columns[..] else {
            panic!("{line}")
        };
        let recording = Recording {
            is_rundown: provider == "rundown",
            runtime: runtime.to_owned(),
            mask: u64::from_str_radix(mask.trim_start_matches("0x"), 16).unwrap(),
            level: level.parse().unwrap(),
        };
        let kinds = all.entry(recording).or_default();
        // A recording without events has one line.
        if id != "-" {
            kinds.insert((id.parse().unwrap(), version.parse().unwrap()));
        }
    }
    all
}

fn ids(kinds: &BTreeSet<Kind>) -> Ids {
    kinds.iter().map(|(id, _)| *id).collect()
}

/// Events that real runtimes raise and the simulated CLR does not, each with the reason.
const NOT_SIMULATED: [(&[u16], &str); 3] = [
    (&[16, 18, 19, 38], "the simulated heap has no object graph"),
    (&[39], "internal numbers of the collector"),
    (&[58], "a measurement of the processor"),
];

/// An event that only the simulated collector raises for this work: it gives regions back at once.
const FREE_SEGMENT: u16 = 6;

fn is_simulated(id: u16) -> bool {
    !NOT_SIMULATED.iter().any(|(ids, _)| ids.contains(&id))
}

/// Work like that of the recorded program: it compiles and tiers methods, throws, collects, waits
/// for locks, and unloads an assembly.
const WORK: &str = r#"
machine processors=1
process "Work.exe" threads=2 start="{start}" exit="{exit}" {
    clr "core" version="{version}" {
        domain "clrhost" {
            assembly "Core" { module "C:\\Core.dll" kind="r2r" { methods 8 ready=4; methods 2 generic=#true } }
            assembly "Work" { module "C:\\Work.dll" { methods 40 ready=10; methods 3 kind="generic" } }
            assembly "Made" { module "Made" kind="dynamic" { methods 4 kind="dynamic" } }
            assembly "Gone" late=#true collectible=#true { module "C:\\Gone.dll" { methods 2 } }
        }
    }
    at "2.2s" { jit 20; forget 3; allocate 40; throw 3 filters=1 finallys=1; throw 1 rethrow=#true; contend 2 }
    at "2.3s" { tier 3; tier 60; handle 2 kind="pinned"; gc 0; gc 1; gc 2; gc 2; allocate 40 }
    at "2.35s" { load "Gone"; add-pressure 4096; remove-pressure 4096 }
    at "2.4s" { jit 10; tier 60; allocate 40; gc 2; unload "Gone" }
}
"#;

/// What the session of a simulated recording sees.
struct Simulated {
    scenario: Scenario,
}

impl Simulated {
    /// A process of this runtime that starts and exits while the session runs, or, like 3.1, runs
    /// before and after it.
    fn of(runtime: &str) -> Self {
        let is_attached = runtime == "3.1";
        let [start, exit] = if is_attached {
            ["1s", "4s"]
        } else {
            ["2.1s", "2.9s"]
        };
        let script = WORK
            .replace("{version}", &format!("{runtime}.0"))
            .replace("{start}", start)
            .replace("{exit}", exit);
        let scenario = Script::new("work", &script)
            .parse()
            .unwrap_or_else(|errors| panic!("{errors:#?}"));
        Simulated { scenario }
    }

    /// The events that a session records from the second second to the third.
    fn record(&self, provider: Guid, rule: Enablement) -> BTreeSet<Kind> {
        let mut scenario = self.scenario.clone();
        let mut plan = SessionPlan::new("s", "s.etl");
        plan.providers.push(EnablePlan {
            rule,
            ..EnablePlan::new(provider, 0, 0)
        });
        // A rundown lists what is loaded while the process still runs.
        let start = match provider {
            CLR_RUNDOWN => 2 * SECOND + 450 * MILLISECOND,
            _ => 2 * SECOND,
        };
        scenario.at(start, Action::Start(Box::new(plan)));
        scenario.at(3 * SECOND, Action::Session("s".to_owned(), Request::Stop));
        let mut truth = InMemoryTruth::default();
        Simulation::new(&scenario)
            .observer(&mut truth)
            .run(&mut MemoryFileSystem::default())
            .unwrap();
        let recorded = truth.recorded(0);
        recorded
            .filter(|event| event.provider == provider)
            .map(|event| (event.descriptor.id, event.descriptor.version))
            .filter(|(id, _)| *id != FREE_SEGMENT)
            .collect()
    }
}

/// The events of the runtime provider that the rules promise for .NET Core.
fn promised(mask: u64, level: u8) -> Ids {
    let registry = Registry::builtin();
    let provider = registry.find("runtime").unwrap();
    let explained = explain(TableSet::Shipped, provider, mask, level);
    let of_core = explained
        .raised
        .iter()
        .filter(|raised| raised.core_levels.contains(&level));
    let ids = of_core.filter_map(|raised| id_of(&raised.event.schema));
    ids.collect()
}

fn id_of(event: &EventSchema) -> Option<u16> {
    match event.identity {
        Identity::Modern { id, .. } => Some(id),
        _ => None,
    }
}

#[needs(traces)]
#[test]
fn spec_mask_promises_what_real_runtimes_raised() {
    let mut checked = 0;
    for (recording, kinds) in recordings() {
        if recording.is_rundown {
            continue;
        }
        let promised = promised(recording.mask, recording.level);
        let mut odd = Vec::new();
        for id in ids(&kinds) {
            // The level of this event depends on the version.
            let is_by_version = id == 159 && recording.runtime == "3.1";
            if !promised.contains(&id) && !is_by_version {
                odd.push(id);
            }
        }
        assert!(odd.is_empty(), "{recording:?}: raised {odd:?}");
        checked += 1;
    }
    assert_checked(checked, 99);
}

#[needs(traces)]
#[test]
fn simulated_core_raises_what_real_runtimes_raised() {
    let mut checked = 0;
    for runtime in ["3.1", "8.0", "10.0"] {
        let simulated = Simulated::of(runtime);
        for (recording, kinds) in recordings() {
            if recording.is_rundown || recording.runtime != runtime {
                continue;
            }
            let rule = Enablement::new(recording.level, recording.mask);
            let found = simulated.record(CLR_RUNTIME, rule);
            let mut expected = ids(&kinds);
            expected.retain(|id| is_simulated(*id));
            assert_eq!(ids(&found), expected, "{recording:?}");
            let versions = |kinds: &BTreeSet<Kind>| -> Vec<Kind> {
                // Which methods reach which tier before they are unloaded is up to the program.
                let others = kinds.iter().filter(|(id, _)| ![142, 144].contains(id));
                others
                    .copied()
                    .filter(|(id, _)| is_simulated(*id))
                    .collect()
            };
            assert_eq!(versions(&found), versions(&kinds), "{recording:?}");
            checked += 1;
        }
    }
    assert_checked(checked, 99);
}

/// Rundown masks for which EventPipe differs from ETW, with the reason.
const EVENTPIPE_ONLY: [(u64, &str); 2] = [
    (0x0, "0 means all keywords only in ETW"),
    (0x40120, "EventPipe ignores OverrideAndSuppressNGenEvents"),
];

#[needs(traces)]
#[test]
fn simulated_rundown_lists_what_a_real_one_listed() {
    let simulated = Simulated::of("10.0");
    let mut checked = 0;
    for (recording, kinds) in recordings() {
        let is_different = EVENTPIPE_ONLY
            .iter()
            .any(|(mask, _)| *mask == recording.mask);
        if !recording.is_rundown || is_different {
            continue;
        }
        // EventPipe writes an end rundown, whatever the two keywords that request one in ETW, and
        // has no stacks of its own.
        let mask = recording.mask & !0x4000_0040 | 0x100;
        let found = simulated.record(CLR_RUNDOWN, Enablement::new(recording.level, mask));
        assert_eq!(ids(&found), ids(&kinds), "{recording:?}");
        checked += 1;
    }
    assert_checked(checked, 27);
}

#[test]
fn tiers_count_the_versions_of_a_method() {
    for (runtime, last) in [("3.1", 1), ("8.0", 3), ("10.0", 3)] {
        let mut scenario = Simulated::of(runtime).scenario;
        let mut plan = SessionPlan::new("s", "s.etl");
        plan.providers.push(EnablePlan {
            rule: Enablement::new(5, 0x10),
            ..EnablePlan::new(CLR_RUNTIME, 0, 0)
        });
        scenario.at(SECOND / 2, Action::Start(Box::new(plan)));
        let mut truth = InMemoryTruth::default();
        Simulation::new(&scenario)
            .observer(&mut truth)
            .run(&mut MemoryFileSystem::default())
            .unwrap();
        let mut next: BTreeMap<u64, u64> = BTreeMap::new();
        let mut highest = 0;
        for event in truth.events.iter().filter(|e| e.descriptor.id == 143) {
            let method = event.number("MethodID").unwrap();
            let version = event.number("ReJITID").unwrap_or(0);
            let flags = event.number("MethodFlags").unwrap();
            // Dynamic methods are made again.
            if flags & 1 != 0 {
                continue;
            }
            assert_eq!(event.descriptor.version, if version == 0 { 1 } else { 2 });
            // Precompiled methods have no load of their first code.
            let expected = next.entry(method).or_insert(version.min(1));
            assert_eq!(version, *expected, "{event:?}");
            *expected += 1;
            highest = highest.max(version);
            let tier = flags >> 7 & 7;
            let is_known = match (runtime, version) {
                (_, 0) => matches!(tier, 2 | 3),
                ("3.1", _) => tier == 4,
                _ => matches!(tier, 4..=7),
            };
            assert!(is_known, "{runtime}: {event:?}");
        }
        assert!(highest >= last.min(2), "{runtime}: {highest}");
    }
}

#[test]
fn loads_and_histories_of_core_are_in_the_order_of_real_ones() {
    for runtime in ["8.0", "10.0"] {
        let mut scenario = Simulated::of(runtime).scenario;
        let mut plan = SessionPlan::new("s", "s.etl");
        plan.providers.push(EnablePlan {
            rule: Enablement::new(5, 0x9),
            ..EnablePlan::new(CLR_RUNTIME, 0, 0)
        });
        scenario.at(SECOND / 2, Action::Start(Box::new(plan)));
        let mut truth = InMemoryTruth::default();
        Simulation::new(&scenario)
            .observer(&mut truth)
            .run(&mut MemoryFileSystem::default())
            .unwrap();
        let mut ids: Vec<u16> = Vec::new();
        for event in truth.recorded(0).filter(|e| e.provider == CLR_RUNTIME) {
            // The first event of each id.
            if !ids.contains(&event.descriptor.id) {
                ids.push(event.descriptor.id);
            }
        }
        // The app domain comes after its first assembly, module and DomainModule.
        assert_eq!(only(&ids, &[151, 152, 154, 156]), [154, 152, 151, 156]);
        assert_eq!(only(&ids, &[204, 205]), [205, 204], "{runtime}");
    }
}

/// The wanted ones of some ids.
fn only(ids: &[u16], wanted: &[u16]) -> Vec<u16> {
    let of_interest = ids.iter().filter(|id| wanted.contains(id));
    of_interest.copied().collect()
}

/// Masks of keywords that the runtime provider has, and some others.
fn mask() -> impl Strategy<Value = u64> {
    let named = Registry::builtin().find("runtime").unwrap();
    let bits: Vec<u64> = named.keywords.iter().map(|keyword| keyword.mask).collect();
    let bit = prop_oneof![9 => prop::sample::select(bits), 1 => (0u32..64).prop_map(|n| 1 << n)];
    prop::collection::vec(bit, 1..7)
        .prop_map(|bits| bits.into_iter().fold(0, |mask, bit| mask | bit))
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 48, failure_persistence: None, ..ProptestConfig::default() })]

    /// The simulation and the rules are two programs. They agree on .NET Core for any mask, as far
    /// as the work has such events at all.
    #[test]
    fn rules_and_simulation_agree_on_core(mask in mask(), level in 1u8..6) {
        let simulated = Simulated::of("8.0");
        let everything = simulated.record(CLR_RUNTIME, Enablement::new(5, !0x4_0000));
        let found = ids(&simulated.record(CLR_RUNTIME, Enablement::new(level, mask)));
        let rules = Runtime::new(mask, level).in_core();
        let mut expected = promised(mask, level);
        let happens = ids(&everything);
        expected.retain(|id| happens.contains(id));
        if rules.heap_dump() {
            // The simulated heap has no dump that could name types.
            expected.remove(&15);
        }
        // A stack follows only an event that has one.
        expected.remove(&82);
        let without_stacks: Ids = found.into_iter().filter(|id| *id != 82).collect();
        // Plain events come at level 4 only, so `everything` has none.
        let plain: Ids = without_stacks.iter().copied().filter(|id| matches!(id, 141 | 142)).collect();
        prop_assert!(plain.is_empty() || level == 4, "{:?}", rules);
        let others: Ids = without_stacks.difference(&plain).copied().collect();
        prop_assert_eq!(others, expected, "mask {:#x} level {}", mask, level);
    }
}
