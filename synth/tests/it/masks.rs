//! Compares what the simulated CLR raises for a mask and level with tables that are written down
//! here. Neither the simulator nor the predicates of the control crate take part in what is
//! expected.

use std::collections::BTreeSet;
use std::sync::LazyLock;

use etl_control::enable::Enablement;
use etl_format::Guid;
use etl_schema::encode::OwnedValue;
use etl_schema::providers::{CLR_RUNDOWN, CLR_RUNTIME};
use etl_synth::model::{Action, EnablePlan, Request, Scenario, SessionPlan};
use etl_synth::truth::{InMemoryTruth, KnownEvent};
use etl_synth::{MemoryFileSystem, SECOND, Script};
use proptest::prelude::*;

/// All operations of a CLR: a process that runs throughout, and one that starts and exits during
/// the session. `{clr}` is the product and version, `{kind}` that of precompiled modules.
const LIFE: &str = r#"
machine processors=1
process "Long.exe" threads=2 {
    clr {clr} heaps=2 {
        domain "clrhost" {
            assembly "A" {
                module "C:\\A.dll" kind="{kind}" { methods 2 cold=#true; methods 1 generic=#true; methods 1 kind="generic"; methods 1 kind="helper" }
            }
            assembly "B" { module "C:\\B.dll" { methods 24 ready=8 size="16..400" } }
            assembly "E" { module "E" kind="dynamic" { methods 3 kind="dynamic" } }
            assembly "P" late=#true collectible=#true signed=#true authenticode=#true { module "C:\\P.dll" kind="{kind}" { methods 2 cold=#true; methods 1 generic=#true; methods 1 kind="jitted"; methods 1 kind="generic"; methods 1 kind="dynamic" } }
        }
        domain "Second" late=#true { assembly "S" { module "C:\\S.dll" { methods 1 } } }
    }
    at "2.1s" { jit 20; tier 1; rejit 1; forget 1; throw 1 filters=1 finallys=1 inner=#true; throw 1 rethrow=#true; allocate; contend; grow-pool 2; stub 40; start-thread; end-thread }
    at "2.15s" { handle 2; handle 1 kind="pinned"; gc 1; gc 2 background=#true; gc 2 compact=#true; free-handle; add-pressure 4096; remove-pressure 4096; queue-work 2; queue-io 1; grow-pool 1 io=#true; shrink-pool 1 io=#true; shrink-pool 1; wait "1ms" }
    at "2.2s" { load "P"; load-domain "Second"; enter-domain "Second" }
    at "2.3s" { jit 9 }
    at "2.4s" { unload "P"; unload-domain "Second" }
}
process "Short.exe" start="2.1s" exit="2.6s" {
    clr {clr} { assembly "Z" { module "C:\\Z.dll" kind="{kind}" { methods 2; methods 1 generic=#true; methods 2 kind="jitted" ready=2; methods 1 kind="dynamic" ready=1; methods 1 kind="helper" ready=1 } } }
    at "2.2s" { allocate 60; gc 2 background=#true }
}
"#;

/// Runtimes whose events differ.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Product {
    Core6,
    Core10,
    Desktop,
}

use Product::{Core6, Core10, Desktop};

const PRODUCTS: [Product; 3] = [Core6, Core10, Desktop];

impl Product {
    fn script(self) -> String {
        let (clr, kind) = match self {
            Core6 => ("\"core\" version=\"6.0.100\"", "r2r"),
            Core10 => ("\"core\" version=\"10.0.100\"", "r2r"),
            Desktop => ("\"desktop\" version=\"4.8.4000.0\"", "ngen"),
        };
        LIFE.replace("{clr}", clr).replace("{kind}", kind)
    }
}

/// The subject of an event, as far as masks depend on it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Code {
    /// No method.
    None,
    Jitted,
    Generic,
    Precompiled,
    /// Precompiled code of a generic method.
    PrecompiledGeneric,
    Dynamic,
    Helper,
}

/// Bits of the field MethodFlags.
fn code(event: &KnownEvent) -> Code {
    let Some(OwnedValue::UInt(flags)) = event.field("MethodFlags") else {
        return Code::None;
    };
    match (
        flags & 1 != 0,
        flags & 2 != 0,
        flags & 8 != 0,
        flags & 0x10 != 0,
    ) {
        (true, ..) => Code::Dynamic,
        (.., true) => Code::Helper,
        (_, true, true, _) => Code::Generic,
        (_, true, false, _) => Code::PrecompiledGeneric,
        (_, false, true, _) => Code::Jitted,
        (_, false, false, _) => Code::Precompiled,
    }
}

/// Events of a provider that a session with a mask and level records.
fn recorded(product: Product, provider: Guid, mask: u64, level: u8) -> Vec<KnownEvent> {
    static PARSED: LazyLock<[Scenario; 3]> = LazyLock::new(|| {
        PRODUCTS.map(|product| {
            let script = product.script();
            Script::new("life", &script)
                .parse()
                .unwrap_or_else(|e| panic!("{product:?}: {:#?}", e))
        })
    });
    let mut scenario = PARSED[product as usize].clone();
    let mut plan = SessionPlan::new("s", "s.etl");
    let rule = Enablement::new(level, mask);
    plan.providers.push(EnablePlan {
        rule,
        ..EnablePlan::new(provider, 0, 0)
    });
    scenario.at(2 * SECOND, Action::Start(Box::new(plan)));
    scenario.at(3 * SECOND, Action::Session("s".to_owned(), Request::Stop));
    let mut truth = InMemoryTruth::default();
    etl_synth::Simulation::new(&scenario)
        .observer(&mut truth)
        .run(&mut MemoryFileSystem::default())
        .unwrap();
    truth.recorded(0).cloned().collect()
}

type Keys = BTreeSet<(u16, Code)>;

fn keys(events: &[KnownEvent]) -> Keys {
    events.iter().map(|e| (e.descriptor.id, code(e))).collect()
}

const PLAIN_LOAD: u16 = 141;
const PLAIN_UNLOAD: u16 = 142;
const LOAD: u16 = 143;
const UNLOAD: u16 = 144;

/// What enables an event: minimum level, keywords (any of them; 0: every mask),
/// and whether a stack follows.
type Terms = (u8, u64, bool);

/// Ids of the runtime provider that come by their level and keywords alone.
const BY_KEYWORD: &[(u16, Terms)] = &[
    (1, (4, 0x1, false)),
    (2, (4, 0x1, false)),
    (3, (4, 0x1, false)),
    (4, (4, 0x1, false)),
    (5, (4, 0x1, false)),
    (6, (4, 0x1, false)),
    (7, (4, 0x1, false)),
    (8, (4, 0x1, false)),
    (9, (4, 0x1, false)),
    (10, (5, 0x1, true)),
    (11, (4, 0x1_0001, false)),
    (12, (4, 0x1_0001, false)),
    (13, (4, 0x1, false)),
    (14, (4, 0x1, false)),
    (20, (4, 0x20_0000, true)),
    (21, (4, 0x40_0000, false)),
    (22, (4, 0x40_0000, false)),
    (23, (4, 0x40_0000, false)),
    (25, (4, 0x1, false)),
    (26, (4, 0x1, false)),
    (27, (4, 0x1, false)),
    (28, (4, 0x1, false)),
    (29, (5, 0x1, false)),
    (30, (4, 0x2, true)),
    (31, (4, 0x2, true)),
    (32, (4, 0x200_0000, true)),
    (33, (5, 0x1, false)),
    (35, (4, 0x1, true)),
    (44, (4, 0x1_0000, true)),
    (45, (4, 0x1_0000, true)),
    (50, (4, 0x1_0000, false)),
    (51, (4, 0x1_0000, false)),
    (54, (4, 0x1_0000, false)),
    (55, (4, 0x1_0000, false)),
    (56, (5, 0x1_0000, true)),
    (57, (4, 0x1_0000, false)),
    (59, (4, 0x1_0000, false)),
    (60, (5, 0x1_0000, true)),
    (61, (5, 0x8001_0000, true)),
    (62, (5, 0x8001_0000, true)),
    (63, (5, 0x8001_0000, true)),
    (64, (5, 0x8001_0000, true)),
    (65, (5, 0x1_0000, true)),
    (70, (4, 0x8001_0000, true)),
    (71, (4, 0x8001_0000, true)),
    (73, (4, 0x80_0000_0000, false)),
    (74, (4, 0x80_0000_0000, false)),
    (80, (2, 0x2_0000_8000, true)),
    (81, (4, 0x4000, true)),
    (83, (4, 0x800, true)),
    (84, (4, 0x800, true)),
    (85, (4, 0x1_0800, true)),
    (86, (4, 0x1_0800, true)),
    (87, (4, 0x1_0800, true)),
    (88, (4, 0x2000, true)),
    (89, (4, 0x2000, true)),
    (90, (4, 0x4000, false)),
    (91, (4, 0x4000, false)),
    (145, (5, 0x10, true)),
    (146, (5, 0x10, false)),
    (151, (4, 0x8, true)),
    (152, (4, 0x2000_0008, true)),
    (153, (4, 0x8, true)),
    (154, (4, 0x8, true)),
    (155, (4, 0x8, true)),
    (156, (4, 0x8, true)),
    (157, (4, 0x8, true)),
    (158, (4, 0x2000_0000, false)),
    (159, (5, 0x20_0000_0000, true)),
    (160, (4, 0x20_0000_0000, false)),
    (181, (5, 0x400, false)),
    (182, (4, 0x400, true)),
    (183, (5, 0x400, false)),
    (184, (4, 0x400, true)),
    (185, (5, 0x1000, false)),
    (186, (5, 0x1000, true)),
    (187, (4, 0, false)),
    (188, (5, 0x1000, false)),
    (189, (5, 0x1000, true)),
    (190, (5, 0x2_0000, true)),
    (191, (5, 0x1000, false)),
    (192, (5, 0x1000, false)),
    (200, (5, 0x1, true)),
    (201, (5, 0x1, true)),
    (202, (4, 0x1, false)),
    (203, (5, 0x1, true)),
    (204, (4, 0x1, false)),
    (205, (4, 0x1, false)),
    (208, (4, 0x1, false)),
    (250, (4, 0x8000, true)),
    (251, (4, 0x8000, true)),
    (252, (4, 0x8000, true)),
    (253, (4, 0x8000, true)),
    (254, (4, 0x8000, true)),
    (255, (4, 0x8000, true)),
    (256, (4, 0x8000, true)),
    (280, (4, 0x10_0000_0000, false)),
    (281, (4, 0x10_0000_0000, false)),
    (282, (4, 0x10_0000_0000, false)),
    (283, (4, 0x10_0000_0000, false)),
    (284, (4, 0x10_0000_0000, false)),
    (290, (4, 0x4, false)),
    (291, (4, 0x4, false)),
    (292, (4, 0x4, false)),
    (296, (4, 0x4, false)),
    (301, (5, 0x400_0000_0000, false)),
    (302, (5, 0x400_0000_0000, false)),
    (303, (4, 0x800_0000_0000, false)),
];

/// What is otherwise in one of the products.
const OTHERWISE: &[(Product, u16, Terms)] = &[
    (Desktop, 23, (4, 0x1, false)),
    (Desktop, 80, (2, 0x8000, true)),
    (Core10, 81, (4, 0x4000, false)),
    (Core10, 159, (4, 0x20_0000_0000, true)),
];

fn terms(product: Product) -> impl Iterator<Item = (u16, Terms)> {
    BY_KEYWORD.iter().map(move |(id, terms)| {
        let other = OTHERWISE
            .iter()
            .find(|(p, other, _)| (*p, *other) == (product, *id));
        (*id, other.map_or(*terms, |(_, _, terms)| *terms))
    })
}

/// What of methods comes: load or unload, which code, keywords that are all needed, and whether
/// OverrideAndSuppressNGenEvents turns it off.
const METHODS: &[(u16, Code, u64, bool)] = &[
    (LOAD, Code::Jitted, 0x10, false),
    (LOAD, Code::Generic, 0x10, false),
    (LOAD, Code::Dynamic, 0x10, false),
    (LOAD, Code::Helper, 0x10, false),
    (LOAD, Code::Precompiled, 0x60, true),
    (LOAD, Code::PrecompiledGeneric, 0x60, true),
    (UNLOAD, Code::Jitted, 0x90, false),
    (UNLOAD, Code::Generic, 0x90, false),
    // One is destroyed by itself in this life.
    (UNLOAD, Code::Dynamic, 0x10, false),
    (UNLOAD, Code::Precompiled, 0xa0, true),
    (UNLOAD, Code::PrecompiledGeneric, 0xa0, true),
];

/// Events that no .NET Core of 6 or later raises, as recordings of 8.0 and 10.0 show: phases of
/// marking, threads and memory of app domains, the queue of the pool.
const NEVER_IN_CORE: &[u16] = &[
    25, 26, 27, 28, 60, 61, 62, 83, 84, 86, 87, 181, 182, 183, 184,
];

/// The lowest level of a method's event; `None` if the product never raises it. .NET Core has loads
/// of compiled methods at level 5 only, and none of precompiled ones and of helpers.
fn method_level(product: Product, id: u16, code: Code) -> Option<u8> {
    match (product, id, code) {
        (Desktop, ..) | (_, UNLOAD, _) | (.., Code::None) => Some(4),
        (.., Code::Precompiled | Code::PrecompiledGeneric | Code::Helper) => None,
        (.., Code::Jitted | Code::Generic | Code::Dynamic) => Some(5),
    }
}

/// A session's mask and level, with 0 as "everything".
#[derive(Clone, Copy)]
struct Asked(u64, u8);

impl Asked {
    fn any(self, keywords: u64) -> bool {
        keywords == 0 || self.0 == 0 || self.0 & keywords != 0
    }

    fn all(self, keywords: u64) -> bool {
        self.0 == 0 || self.0 & keywords == keywords
    }

    fn level(self, least: u8) -> bool {
        self.1 == 0 || self.1 >= least
    }

    /// The id of a method's event: the verbose one at level 5, and always for methods without
    /// metadata, whose names are not known otherwise.
    fn id(self, verbose: u16, code: Code) -> u16 {
        let named = !matches!(code, Code::Jitted | Code::Precompiled);
        if self.level(5) || named {
            verbose
        } else {
            verbose - 2
        }
    }
}

/// What the runtime provider raises, of all that happens.
fn runtime(product: Product, asked: Asked, all: &Keys) -> Keys {
    let happens = |id: u16| all.iter().any(|(found, _)| *found == id);
    let mut expected = Keys::new();
    let mut stacks = false;
    for (id, (level, keywords, stack)) in terms(product) {
        // In .NET Core a map follows the load of its method.
        if id == 190 && product != Desktop && !(asked.any(0x10) && asked.level(5)) {
            continue;
        }
        if happens(id) && asked.level(level) && asked.any(keywords) {
            expected.insert((id, Code::None));
            stacks |= stack;
        }
    }
    for &(id, code, keywords, suppressed) in METHODS {
        let on = asked.all(keywords) && !(suppressed && asked.any(0x4_0000));
        let Some(level) = method_level(product, id, code) else {
            continue;
        };
        if all.contains(&(id, code)) && asked.level(level) && on {
            expected.insert((asked.id(id, code), code));
        }
    }
    // Types go with the events that speak of them: samples of allocations, and finalized objects.
    let speaks = asked.any(0x220_0000) && asked.level(4) || asked.any(0x1) && asked.level(5);
    if asked.any(0x8_0000) && speaks {
        expected.insert((15, Code::None));
    }
    // Details of a method go with its load.
    if product != Desktop && asked.any(0x40_0000_0000) && asked.level(5) && asked.any(0x10) {
        expected.insert((72, Code::None));
    }
    if stacks && asked.any(0x4000_0000) {
        expected.insert((82, Code::None));
    }
    expected
}

/// Whether the rundown provider enumerates: Loader, Jit, maps, ranges, threads, and NGen unless it
/// is suppressed.
fn enumerates(asked: Asked, precompiled: bool) -> bool {
    asked.any(0x2003_0018) || precompiled
}

/// What the rundown provider raises, of all that is there.
fn rundown(asked: Asked, all: &Keys) -> Keys {
    let mut expected = Keys::new();
    let precompiled = asked.any(0x20) && !asked.any(0x4_0000);
    for (rundown, end) in [(0x40u64, 0u16), (0x100, 1)] {
        if !asked.any(rundown) || !asked.level(4) {
            continue;
        }
        let mut say = |on: bool, id: u16, code: Code| {
            if on
                && all
                    .iter()
                    .any(|(found, _)| *found == id || [LOAD, UNLOAD].contains(&(id + 2)))
            {
                expected.insert((id, code));
            }
        };
        say(true, 187, Code::None);
        say(asked.any(0x1), 10, Code::None);
        // The markers go by keywords of their own.
        let enumerates = enumerates(asked, precompiled);
        say(enumerates && asked.any(0x10_0000_0000), 280, Code::None);
        say(enumerates && asked.any(0x2_0038), 147 + end, Code::None);
        say(enumerates && asked.any(0x2_0038), 145 + end, Code::None);
        say(asked.any(0x8), 157 + end, Code::None);
        say(asked.any(0x8), 155 + end, Code::None);
        say(asked.any(0x2000_0008), 153 + end, Code::None);
        say(asked.any(0x8), 151 + end, Code::None);
        say(asked.any(0x2000_0000), 160 + end, Code::None);
        say(asked.any(0x1_0000), 159, Code::None);
        say(asked.any(0x2_0000) && asked.level(5), 149 + end, Code::None);
        for code in [Code::Jitted, Code::Generic, Code::Dynamic] {
            say(
                asked.any(0x10) && all.contains(&(LOAD + end, code)),
                asked.id(LOAD + end, code),
                code,
            );
        }
        for code in [Code::Precompiled, Code::PrecompiledGeneric] {
            say(
                precompiled && all.contains(&(LOAD + end, code)),
                asked.id(LOAD + end, code),
                code,
            );
        }
    }
    // Every event of this provider has a stack, except ranges and settings.
    let stacked = expected
        .iter()
        .any(|(id, _)| ![10, 160, 161, 280].contains(id));
    if stacked && asked.any(0x4000_0000) {
        expected.insert((0, Code::None));
    }
    expected
}

/// All that happens in these lives, as a session sees it that asks for everything but silence.
static ALL: LazyLock<[[Keys; 2]; 3]> = LazyLock::new(|| {
    let all = |product, provider| keys(&recorded(product, provider, !0x4_0000, 5));
    PRODUCTS.map(|product| [all(product, CLR_RUNTIME), all(product, CLR_RUNDOWN)])
});

fn hold_in(product: Product, provider: Guid, mask: u64, level: u8) {
    let found = keys(&recorded(product, provider, mask, level));
    let asked = Asked(mask, level);
    let [all_runtime, all_rundown] = &ALL[product as usize];
    let expected = if provider == CLR_RUNTIME {
        runtime(product, asked, all_runtime)
    } else {
        rundown(asked, all_rundown)
    };
    let missing: Vec<_> = expected.difference(&found).collect();
    let odd: Vec<_> = found.difference(&expected).collect();
    assert!(
        missing.is_empty() && odd.is_empty(),
        "{product:?} {provider}, mask {mask:#x}, level {level}: missing {missing:?}, not expected {odd:?}"
    );
}

fn hold(provider: Guid, mask: u64, level: u8) {
    PRODUCTS
        .into_iter()
        .for_each(|product| hold_in(product, provider, mask, level));
}

/// Every combination of these bits.
fn combinations(bits: &[u64]) -> impl Iterator<Item = u64> {
    let bits = bits.to_vec();
    (0..1u64 << bits.len()).map(move |chosen| {
        let on = bits
            .iter()
            .enumerate()
            .filter(|(n, _)| chosen >> n & 1 == 1);
        on.fold(0, |mask, (_, bit)| mask | bit)
    })
}

#[test]
fn scenarios_contain_every_event_of_the_rules() {
    let mut happened = BTreeSet::new();
    for (product, [runtime, rundown]) in PRODUCTS.into_iter().zip(&*ALL) {
        for &(id, code, _, _) in METHODS {
            assert_eq!(
                runtime.contains(&(id, code)),
                method_level(product, id, code).is_some(),
                "{product:?}: {id} {code:?}"
            );
        }
        let listed: BTreeSet<u16> = BY_KEYWORD.iter().map(|(id, _)| *id).collect();
        for (id, code) in runtime.iter() {
            let known = *code != Code::None || listed.contains(id) || [15, 72, 82].contains(id);
            assert!(
                known,
                "{product:?}: id {id} happens, and no rule here speaks of it"
            );
        }
        happened.extend(runtime.iter().map(|(id, _)| *id));
        for which in 0..2 {
            for id in [145, 147, 149, 151, 153, 155, 157] {
                assert!(
                    rundown.contains(&(id + which, Code::None)),
                    "{id} + {which}"
                );
            }
            let ranges = rundown.contains(&(160 + which, Code::None));
            assert_eq!(ranges, product == Desktop, "{product:?}: ranges");
            let codes = [
                Code::Jitted,
                Code::Generic,
                Code::Dynamic,
                Code::Precompiled,
            ];
            for code in codes.into_iter().chain([Code::PrecompiledGeneric]) {
                assert!(
                    rundown.contains(&(LOAD + which, code)),
                    "{code:?} + {which}"
                );
            }
        }
        assert_eq!(rundown.contains(&(10, Code::None)), product == Core10);
    }
    let spoken = BY_KEYWORD.iter().map(|(id, _)| *id).chain([15, 72, 82]);
    let missing: Vec<u16> = spoken.filter(|id| !happened.contains(id)).collect();
    assert!(
        missing.is_empty(),
        "{missing:?} do not happen in any of these lives"
    );
}

#[test]
fn runtime_provider_follows_the_rules_for_combined_keywords() {
    // Loader, Jit, NGen, the two enumerations, suppression, stacks.
    for mask in combinations(&[0x8, 0x10, 0x20, 0x40, 0x80, 0x4_0000, 0x4000_0000]) {
        for level in [4, 5] {
            hold(CLR_RUNTIME, mask, level);
        }
    }
}

#[test]
fn rundown_provider_follows_the_rules_for_combined_keywords() {
    // Loader, Jit, NGen, the two rundowns, suppression, maps, threads, stacks.
    for mask in combinations(&[0x8, 0x10, 0x20, 0x40, 0x100, 0x4_0000, 0x2_0000, 0x1_0000]) {
        // A mask of 0 is another thing, and tested below.
        hold(CLR_RUNDOWN, mask | 0x4000_0000, 5);
        hold(CLR_RUNDOWN, mask | 0x800, 4);
    }
}

#[test]
fn providers_follow_the_documented_masks_at_every_level() {
    for level in (0..=7).chain([255]) {
        for mask in [
            0,
            u64::MAX,
            0xffff_ffff,
            0x1CCBD,
            0x1FC1F,
            0x9C,
            0x98,
            0x8,
            0x10,
            0x4000_0000,
        ] {
            hold(CLR_RUNTIME, mask, level);
        }
        for mask in [
            0,
            u64::MAX,
            0xffff_ffff,
            0x138,
            0xB8,
            0x178,
            0x78,
            0x118,
            0x4_0138,
            0x40,
        ] {
            hold(CLR_RUNDOWN, mask, level);
        }
    }
}

/// Any named keywords together, now and then with bits that have no name.
fn mask(named: &'static [u64]) -> impl Strategy<Value = u64> {
    let some = prop::sample::subsequence(named, 0..named.len())
        .prop_map(|bits| bits.into_iter().fold(0, |mask, bit| mask | bit));
    let odd = prop_oneof![4 => Just(0u64), 1 => any::<u64>().prop_map(|m| m & m.rotate_left(7))];
    (some, odd).prop_map(|(some, odd)| some | odd)
}

const NAMED_RUNTIME: &[u64] = &[
    0x1,
    0x2,
    0x4,
    0x8,
    0x10,
    0x20,
    0x40,
    0x80,
    0x400,
    0x800,
    0x1000,
    0x2000,
    0x4000,
    0x8000,
    0x1_0000,
    0x2_0000,
    0x4_0000,
    0x8_0000,
    0x10_0000,
    0x20_0000,
    0x40_0000,
    0x80_0000,
    0x100_0000,
    0x200_0000,
    0x2000_0000,
    0x4000_0000,
    0x8000_0000,
    0x1_0000_0000,
    0x2_0000_0000,
    0x4_0000_0000,
    0x8_0000_0000,
    0x10_0000_0000,
    0x20_0000_0000,
    0x40_0000_0000,
    0x80_0000_0000,
    0x400_0000_0000,
    0x800_0000_0000,
];
const NAMED_RUNDOWN: &[u64] = &[
    0x1,
    0x8,
    0x10,
    0x20,
    0x40,
    0x100,
    0x800,
    0x1_0000,
    0x2_0000,
    0x4_0000,
    0x2000_0000,
    0x4000_0000,
    0x10_0000_0000,
];

proptest! {
    #![proptest_config(ProptestConfig { cases: 96, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn any_mask_and_level_of_the_runtime_provider(mask in mask(NAMED_RUNTIME), level in any::<u8>().prop_map(|l| if l > 40 { l % 7 } else { l })) {
        hold(CLR_RUNTIME, mask, level);
    }

    #[test]
    fn any_mask_and_level_of_the_rundown_provider(mask in mask(NAMED_RUNDOWN), level in any::<u8>().prop_map(|l| if l > 40 { l % 7 } else { l })) {
        hold(CLR_RUNDOWN, mask, level);
    }
}

const LOADER: u64 = 0x8;
const JIT: u64 = 0x10;
const NGEN: u64 = 0x20;
const NOTHING: &str = "None";

/// Table 1 of the documents: the runtime provider. Keywords; loader events; methods that are not
/// dynamic; dynamic methods.
const TABLE_1: [(u64, [&str; 3]); 7] = [
    (LOADER, ["Load and unload events", NOTHING, NOTHING]),
    (JIT, [NOTHING, "Load events", "Load and unload events"]),
    (
        JIT | 0x40,
        [NOTHING, "Load events", "Load and unload events"],
    ),
    (
        JIT | 0x80,
        [NOTHING, "Load and unload events", "Load and unload events"],
    ),
    (NGEN, [NOTHING, NOTHING, "Not applicable"]),
    (NGEN | 0x40, [NOTHING, "Load events", "Not applicable"]),
    (NGEN | 0x80, [NOTHING, "Unload events", "Not applicable"]),
];

/// Table 2: the rundown provider. Keywords; loader events; methods.
const TABLE_2: [(u64, [&str; 2]); 9] = [
    (LOADER, [NOTHING, NOTHING]),
    (LOADER | 0x40, ["DCStart events", NOTHING]),
    (LOADER | 0x100, ["DCEnd events", NOTHING]),
    (JIT, [NOTHING, NOTHING]),
    (JIT | 0x40, [NOTHING, "DCStart events"]),
    (JIT | 0x100, [NOTHING, "DCEnd events"]),
    (NGEN, [NOTHING, NOTHING]),
    (NGEN | 0x40, [NOTHING, "DCStart events"]),
    (NGEN | 0x100, [NOTHING, "DCEnd events"]),
];

/// A cell for two kinds of events: whether each was seen, and its name.
fn cell(first: (bool, &str), second: (bool, &str)) -> String {
    match (first, second) {
        ((false, _), (false, _)) => NOTHING.to_owned(),
        ((true, a), (false, _)) => format!("{a} events"),
        ((false, _), (true, b)) => format!("{b} events"),
        ((true, a), (true, b)) => format!("{a} and {} events", b.to_lowercase()),
    }
}

#[test]
fn core_lacks_the_events_of_desktop() {
    for (product, [runtime, _]) in PRODUCTS.into_iter().zip(&*ALL) {
        let ids: BTreeSet<u16> = runtime.iter().map(|(id, _)| *id).collect();
        let found = NEVER_IN_CORE.iter().filter(|id| ids.contains(id)).count();
        let expected = if product == Desktop {
            NEVER_IN_CORE.len()
        } else {
            0
        };
        assert_eq!(found, expected, "{product:?}");
        let loads = [Code::Precompiled, Code::PrecompiledGeneric].map(|code| (LOAD, code));
        let has_loads = loads.iter().all(|load| runtime.contains(load));
        assert_eq!(has_loads, product == Desktop, "{product:?}");
    }
}

#[test]
fn runtime_events_match_table_1_of_the_documentation() {
    for (mask, printed) in TABLE_1 {
        let found = keys(&recorded(Desktop, CLR_RUNTIME, mask, 5));
        let seen = |ids: &[u16], codes: &dyn Fn(Code) -> bool| {
            found
                .iter()
                .any(|(id, code)| ids.contains(id) && codes(*code))
        };
        let loads = |ids: (&[u16], &[u16]), codes: &dyn Fn(Code) -> bool| {
            cell((seen(ids.0, codes), "Load"), (seen(ids.1, codes), "Unload"))
        };
        let methods: (&[u16], &[u16]) = (&[PLAIN_LOAD, LOAD], &[PLAIN_UNLOAD, UNLOAD]);
        // Helpers of the runtime are not methods of the program.
        let ordinary = |code: Code| !matches!(code, Code::Dynamic | Code::Helper);
        let cells = [
            loads((&[151, 152, 154, 156], &[153, 155, 157]), &|_| true),
            loads(methods, &ordinary),
            loads(methods, &|code| code == Code::Dynamic),
        ];
        for (found, printed) in cells.iter().zip(printed) {
            // Where the table does not apply, nothing comes.
            let printed = if printed == "Not applicable" {
                NOTHING
            } else {
                printed
            };
            assert_eq!(found, printed, "mask {mask:#x}: {cells:?}");
        }
    }
}

#[test]
fn table_2_of_the_documents_cell_by_cell() {
    for (mask, printed) in TABLE_2 {
        let found = keys(&recorded(Core6, CLR_RUNDOWN, mask, 5));
        let seen = |ids: &[u16]| found.iter().any(|(id, _)| ids.contains(id));
        let cells = [
            cell(
                (seen(&[151, 153, 155, 157]), "DCStart"),
                (seen(&[152, 154, 156, 158]), "DCEnd"),
            ),
            cell((seen(&[141, 143]), "DCStart"), (seen(&[142, 144]), "DCEnd")),
        ];
        assert_eq!(cells, printed, "mask {mask:#x}");
    }
}
