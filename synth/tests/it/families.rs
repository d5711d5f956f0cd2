//! Each event of the tables of the CLR's runtime and rundown providers is raised by some scenario,
//! or synth/DESIGN.md says why not.

use std::collections::BTreeSet;

use etl_format::Guid;
use etl_schema::Identity;
use etl_schema::encode::OwnedValue;
use etl_schema::providers::{CLR_PRIVATE, CLR_RUNDOWN, CLR_RUNTIME};
use etl_schema::tables::Registry;
use etl_synth::model::{Action, Request, Scenario, SessionPlan};
use etl_synth::truth::{InMemoryTruth, KnownEvent};
use etl_synth::{MemoryFileSystem, SECOND, Script, Simulation};

const LIFE: &str = r#"
process "App.exe" threads=1 start="1s" exit="3.5s" {
    clr {clr} heaps=2 {
        domain "clrhost" {
            assembly "A" signed=#true authenticode=#true {
                module "C:\\A.dll" kind="{kind}" { methods 4 ready=4 cold=#true; methods 1 generic=#true; methods 1 kind="helper" ready=1 }
            }
            assembly "B" { module "C:\\B.dll" { methods 60 ready=8 size="16..400" } }
            assembly "E" { module "E" kind="dynamic" { methods 3 kind="dynamic" ready=3 } }
            assembly "P" late=#true collectible=#true signed=#true authenticode=#true { module "C:\\P.dll" kind="{kind}" { methods 3 ready=3 cold=#true; methods 2 kind="jitted" ready=2 } }
        }
        domain "Second" late=#true { assembly "S" { module "C:\\S.dll" { methods 1 } } }
    }
    at "1.7s" { jit 30; tier 1; rejit 2; forget 1; throw 1 filters=1 finallys=1 inner=#true; allocate; contend 40; grow-pool 3; stub 40; start-thread; end-thread }
    at "1.8s" { handle 2; handle 1 kind="pinned"; gc 1; gc 2 background=#true; allocate 2000; gc 2 compact=#true; free-handle; add-pressure 4096; remove-pressure 4096; queue-work 2; queue-io 1; wait "1ms" }
    at "1.9s" { grow-pool 2 io=#true; retire-threads 2; return-threads 1; retire-threads 1 io=#true; return-threads 1 io=#true; suspend-threads 1; resume-threads 1; shrink-pool 1; shrink-pool 1 io=#true }
    at "2s" { load "P"; load-domain "Second" }
    at "2.2s" { enter-domain "Second"; jit 9 }
    at "2.4s" { unload "P"; unload-domain "Second" }
}
"#;

/// Products whose events differ: product and version, kind of precompiled modules.
const PRODUCTS: [(&str, &str); 10] = [
    ("\"desktop\" version=\"4.0.21006\"", "ngen"),
    ("\"desktop\" version=\"4.0.30319\"", "ngen"),
    ("\"desktop\" version=\"4.5.50938\"", "ngen"),
    ("\"desktop\" version=\"4.8.4000\"", "ngen"),
    ("\"core\" version=\"3.1.0\"", "r2r"),
    ("\"core\" version=\"5.0.0\"", "r2r"),
    ("\"core\" version=\"6.0.100\"", "r2r"),
    ("\"core\" version=\"8.0.0\"", "r2r"),
    ("\"core\" version=\"10.0.100\"", "r2r"),
    ("\"core\" version=\"11.0.0\"", "r2r"),
];

/// Events of a product, with sessions at levels 4 and 5 that enable its three providers.
fn raised(product: usize, level: u8) -> Vec<KnownEvent> {
    let (clr, kind) = PRODUCTS[product];
    let script = LIFE.replace("{clr}", clr).replace("{kind}", kind);
    let mut scenario: Scenario = Script::new("life", &script)
        .parse()
        .unwrap_or_else(|e| panic!("{e:#?}"));
    let plan = SessionPlan::new("s", "s.etl").with(CLR_RUNTIME, !0x4_0000, level);
    let plan = plan.with(CLR_RUNDOWN, !0x4_0000, level);
    scenario.at(0, Action::Start(Box::new(plan)));
    // Enabled again: both enumerations of what is loaded then.
    let again = SessionPlan::new("", "").with(CLR_RUNDOWN, !0x4_0000, level);
    let private = SessionPlan::new("", "").with(CLR_PRIVATE, 0, level);
    for (at, enable) in [(21 * SECOND / 10, again), (3 * SECOND, private)] {
        let request = Request::Enable(enable.providers[0].clone());
        scenario.at(at, Action::Session("s".to_owned(), request));
    }
    let mut truth = InMemoryTruth::default();
    Simulation::new(&scenario)
        .observer(&mut truth)
        .run(&mut MemoryFileSystem::default())
        .unwrap();
    truth.recorded(0).cloned().collect()
}

/// Ids in the table of synth/DESIGN.md that lists what is not simulated.
fn not_simulated() -> BTreeSet<u16> {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/DESIGN.md");
    let page = std::fs::read_to_string(path).unwrap().replace("\r\n", "\n");
    let (_, section) = page.split_once("\n## Not simulated\n").unwrap();
    let mut ids = BTreeSet::new();
    for row in section.lines().filter_map(|line| line.strip_prefix("| ")) {
        let cell = row.split([':', '|']).next().unwrap_or_default();
        let cell = cell.split(" of the ").next().unwrap_or_default();
        for part in cell.split(',').map(str::trim) {
            let number = |text: &str| text.split(' ').next().unwrap_or_default().parse::<u16>();
            let mut ends = part.split(" to ").map(number);
            match (ends.next(), ends.next()) {
                (Some(Ok(one)), None) => ids.extend([one]),
                (Some(Ok(from)), Some(Ok(to))) => ids.extend(from..=to),
                _ => {}
            }
        }
    }
    ids
}

fn number(event: &KnownEvent, name: &str) -> u64 {
    match event.field(name) {
        Some(OwnedValue::UInt(n)) => *n,
        _ => 0,
    }
}

#[test]
fn each_event_of_the_tables_is_raised_or_declared_impossible() {
    let mut seen: BTreeSet<(Guid, u16, u8)> = BTreeSet::new();
    for product in 0..PRODUCTS.len() {
        for level in [4, 5] {
            let events = raised(product, level);
            seen.extend(
                events
                    .iter()
                    .map(|e| (e.provider, e.descriptor.id, e.descriptor.version)),
            );
        }
    }
    let declared = not_simulated();
    let mut missing = Vec::new();
    for guid in [CLR_RUNTIME, CLR_RUNDOWN] {
        let provider = Registry::builtin().provider(guid).unwrap();
        for event in &provider.events {
            let Identity::Modern { id, version } = event.schema.identity else {
                continue;
            };
            // An older version of an event that has a later one.
            let later = seen
                .range((guid, id, version)..=(guid, id, u8::MAX))
                .next()
                .is_some();
            // The rundown provider has its own numbers below 300.
            let impossible = declared.contains(&id) && (guid == CLR_RUNTIME || id >= 300);
            if !later && !impossible {
                missing.push(format!(
                    "{} {id} v{version} {}",
                    provider.name, event.schema.name
                ));
            }
        }
    }
    assert!(
        missing.is_empty(),
        "neither raised nor declared impossible:\n{}",
        missing.join("\n")
    );
    let odd: Vec<u16> = declared
        .into_iter()
        .filter(|id| seen.iter().any(|s| (s.0, s.1) == (CLR_RUNTIME, *id)))
        .collect();
    assert!(
        odd.is_empty(),
        "raised, although the page says that they are not simulated: {odd:?}"
    );
}

#[test]
fn enabling_the_private_provider_lists_the_segments() {
    for product in 0..PRODUCTS.len() {
        let events = raised(product, 5);
        let of = |id: u16, late: bool| {
            let is = move |e: &&KnownEvent| e.descriptor.id == id && (e.at >= 3 * SECOND) == late;
            let found = events
                .iter()
                .filter(is)
                .filter(|e| e.provider == CLR_RUNTIME);
            found
                .map(|e| number(e, "Address"))
                .collect::<BTreeSet<u64>>()
        };
        let living: BTreeSet<u64> = of(5, false).difference(&of(6, false)).copied().collect();
        assert!(!living.is_empty());
        // A segment that was freed can have come again at its address.
        assert!(of(5, true).is_superset(&living), "product {product}");
        let settings = events.iter().filter(|e| e.provider == CLR_PRIVATE).count();
        assert_eq!(settings, 1, "product {product}");
    }
}

#[test]
fn helpers_and_dynamic_methods_are_identified_as_documented() {
    for product in [2, 3, 6] {
        let events = raised(product, 5);
        let loads = events
            .iter()
            .filter(|e| [141, 143].contains(&e.descriptor.id));
        let (mut helpers, mut dynamic) = (0, 0);
        for load in loads.filter(|e| e.provider == CLR_RUNTIME) {
            let flags = number(load, "MethodFlags");
            if flags & 0x10 != 0 {
                helpers += 1;
                assert_eq!(number(load, "MethodID"), number(load, "MethodStartAddress"));
                assert_eq!(number(load, "ModuleID"), 0);
            }
            dynamic += u32::from(flags & 1 != 0);
            assert_eq!(
                flags & 0x11 != 0,
                number(load, "MethodToken") == 0,
                "{load:?}"
            );
        }
        assert!(dynamic > 0);
        // .NET Core reports no helpers.
        assert_eq!(helpers > 0, product < 4, "product {product}");
    }
}

#[test]
fn net_framework_4_5_raises_both_versions_of_gc_start() {
    let versions = |product: usize| {
        let events = raised(product, 5);
        let starts = events
            .iter()
            .filter(|e| e.descriptor.id == 1 && e.provider == CLR_RUNTIME);
        starts
            .map(|e| (number(e, "Count"), e.descriptor.version))
            .collect::<Vec<_>>()
    };
    for pair in versions(2).chunks(2) {
        assert_eq!(pair, [(pair[0].0, 1), (pair[0].0, 2)]);
    }
    assert!(versions(1).iter().all(|(_, version)| *version == 1));
    assert!(versions(6).iter().all(|(_, version)| *version == 2));
}
