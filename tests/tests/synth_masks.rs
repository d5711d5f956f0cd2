//! What the simulated CLR raises under a mask and level, held against the rules of the schema crate,
//! which know nothing of the simulation.

use std::collections::{BTreeMap, BTreeSet};

use etl_format::Guid;
use etl_schema::clr::{Rundown, Runtime};
use etl_schema::enable::Enablement;
use etl_schema::tables::Registry;
use etl_schema::{EventSchema, Identity};
use etl_synth::model::{Action, EnablePlan, Scenario, SessionPlan};
use etl_synth::scenario::parse;
use etl_synth::truth::Gathered;
use etl_synth::{Memory, RUNDOWN, RUNTIME, SECOND};
use rand::{RngExt, SeedableRng};
use rand_chacha::ChaCha8Rng;

/// A little of everything that a CLR does: a process that lives throughout, and one that begins and
/// ends while it is watched.
const LIFE: &str = r#"
machine processors=1
process "Long.exe" threads=2 {
    clr "core" version="6.0.100" {
        domain "clrhost" {
            assembly "A" {
                module "C:\\A.dll" kind="r2r" { methods 2; methods 1 generic=#true; methods 1 kind="generic"; methods 1 kind="helper" }
            }
            assembly "B" { module "C:\\B.dll" { methods 6 ready=2 } }
            assembly "E" { module "E" kind="dynamic" { methods 3 } }
            assembly "P" late=#true collectible=#true { module "C:\\P.dll" kind="r2r" { methods 2; methods 1 generic=#true; methods 1 kind="jitted"; methods 1 kind="generic"; methods 1 kind="dynamic" } }
        }
        domain "Second" late=#true { assembly "S" { module "C:\\S.dll" { methods 1 } } }
    }
    at "2.1s" { jit 2; tier 1; forget 1; throw; gc 1; allocate; contend; grow-pool 2; shrink-pool 1; stub; start-thread; end-thread }
    at "2.2s" { load "P"; load-domain "Second" }
    at "2.4s" { unload "P"; unload-domain "Second" }
}
process "Short.exe" start="2.1s" exit="2.6s" {
    clr "core" version="6.0.100" { assembly "Z" { module "C:\\Z.dll" kind="r2r" { methods 2; methods 1 generic=#true; methods 2 kind="jitted"; methods 1 kind="dynamic" } } }
}
"#;

/// Ids and versions of a provider's events that come under a mask and level.
fn raised(life: &Scenario, provider: Guid, mask: u64, level: u8) -> BTreeSet<(u16, u8)> {
    let mut scenario = life.clone();
    let mut plan = SessionPlan::new("s", "s.etl");
    let rule = Enablement::new(level, mask);
    plan.providers.push(EnablePlan { rule, ..EnablePlan::new(provider, 0, 0) });
    scenario.at(2 * SECOND, Action::Start(Box::new(plan)));
    scenario.at(3 * SECOND, Action::Stop { session: "s".to_owned() });
    let mut truth = Gathered::default();
    etl_synth::simulate(&scenario, &mut Memory::default(), &mut truth).unwrap();
    truth.recorded(0).map(|e| (e.descriptor.id, e.descriptor.version)).collect()
}

fn schema(provider: Guid, (id, version): (u16, u8)) -> &'static EventSchema {
    let event = Registry::builtin().event(provider, Identity::Modern { id, version });
    &event.unwrap_or_else(|| panic!("{provider} {id} {version}")).schema
}

/// Masks: every keyword alone and with those that go with it, the documents' masks, and chance.
fn masks(provider: Guid) -> Vec<u64> {
    let table = Registry::builtin().provider(provider).unwrap();
    let bits: Vec<u64> = table.keywords.iter().map(|(mask, _)| *mask).collect();
    let mut masks = vec![0, u64::MAX, 0xffff_ffff, 0x1CCBD, 0x1FC1F, 0x138, 0xB8, 0x178, 0x40138];
    for bit in &bits {
        masks.extend([*bit, *bit | 0x40, *bit | 0x100, *bit | 0x80, *bit | 0x4000_0000]);
        masks.extend([*bit | 0x20 | 0x40 | 0x80, *bit | 0x20 | 0x100, *bit | 0x4_0000 | 0x160]);
    }
    let mut random = ChaCha8Rng::seed_from_u64(11);
    for _ in 0..60 {
        let some = bits.iter().filter(|_| random.random_range(0..3) == 0);
        masks.push(some.fold(0, |mask, bit| mask | bit));
    }
    masks.sort_unstable();
    masks.dedup();
    masks
}

/// Whether the runtime follows an event with a stack.
fn has_stack(provider: Guid, (id, version): (u16, u8)) -> bool {
    let event = Registry::builtin().event(provider, Identity::Modern { id, version });
    event.is_some_and(|e| e.stack)
}

fn hold(provider: Guid, rule: impl Fn(u64, u8, &EventSchema) -> bool) {
    let life = parse("life", LIFE).unwrap_or_else(|e| panic!("{:#?}", e.0));
    // All that this life can bring forth: everything but what suppresses something, at each level.
    let all = !0x4_0000;
    let mut possible = BTreeMap::new();
    for level in [4, 5] {
        for (id, version) in raised(&life, provider, all, level) {
            possible.insert((id, version), schema(provider, (id, version)));
        }
    }
    assert!(possible.len() > 10, "{possible:?}");
    let mut cases = 0;
    for mask in masks(provider) {
        for level in [0, 1, 2, 4, 5] {
            let found = raised(&life, provider, mask, level);
            let mut expected: BTreeSet<(u16, u8)> = possible
                .iter()
                .filter(|(_, schema)| rule(mask, level, schema))
                .map(|(key, _)| *key)
                .collect();
            // A stack follows an event: without one there is none.
            let stack = if provider == RUNTIME { (82, 0) } else { (0, 0) };
            if !expected.iter().any(|key| *key != stack && has_stack(provider, *key)) {
                expected.remove(&stack);
            }
            assert_eq!(found, expected, "mask {mask:#x}, level {level}");
            cases += 1;
        }
    }
    eprintln!("{cases} masks and levels, {} events", possible.len());
}

#[test]
fn the_runtime_provider_raises_what_the_rules_say() {
    hold(RUNTIME, |mask, level, schema| Runtime::new(mask, level).raises(schema));
}

#[test]
fn the_rundown_provider_raises_what_the_rules_say() {
    hold(RUNDOWN, |mask, level, schema| Rundown::new(mask, level).raises(schema));
}
