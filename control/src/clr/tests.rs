//! The predicates against the documents' tables, against a second wording, and against real masks.

use proptest::prelude::*;

use super::tables::tables;
use super::*;
use crate::enable::{CombinedEnablement, Enablement};
use etl_schema::clr::keyword;
use etl_schema::tables::Registry;

/// Table 1 of the documents: keywords by name, and the cells as printed.
const TABLE_1: [(&str, [&str; 3]); 7] = [
    ("Loader", ["Load and Unload events", "None", "None"]),
    ("Jit", ["None", "Load events", "Load and unload events"]),
    (
        "Jit StartEnumeration",
        ["None", "Load events", "Load and unload events"],
    ),
    (
        "Jit EndEnumeration",
        ["None", "Load and unload events", "Load and Unload events"],
    ),
    ("NGen", ["None", "None", "Not applicable"]),
    (
        "NGen StartEnumeration",
        ["None", "Load events", "Not applicable"],
    ),
    (
        "NGen EndEnumeration",
        ["None", "Unload events", "Not applicable"],
    ),
];

/// Table 2.
const TABLE_2: [(&str, [&str; 2]); 9] = [
    ("LoaderRundown", ["None", "None"]),
    ("LoaderRundown StartRundown", ["DCStart events", "None"]),
    ("LoaderRundown EndRundown", ["DCEnd events", "None"]),
    ("JitRundown", ["None", "None"]),
    ("JitRundown StartRundown", ["None", "DCStart events"]),
    ("JitRundown EndRundown", ["None", "DCEnd events"]),
    ("NGenRundown", ["None", "None"]),
    ("NGenRundown StartRundown", ["None", "DCStart events"]),
    ("NGenRundown EndRundown", ["None", "DCEnd events"]),
];

fn mask_of(provider: &str, names: &str) -> u64 {
    let provider = Registry::builtin().find(provider).unwrap();
    names.split(' ').fold(0, |m, n| {
        m | provider.keyword(&format!("{n}Keyword")).unwrap()
    })
}

#[test]
#[cfg_attr(miri, ignore = "Miri reads the tables for many minutes")]
fn tables_match_the_documents_cell_by_cell() {
    let [one, two, _] = tables(5);
    assert_eq!(
        (one.rows.len(), two.rows.len()),
        (TABLE_1.len(), TABLE_2.len())
    );
    let check = |table: &super::tables::Table, names: &str, printed: &[&str]| {
        let mask = mask_of(table.provider, names);
        let row = table.rows.iter().find(|r| r.mask == mask).unwrap();
        assert_eq!(row.cells.len(), table.columns.len());
        for (cell, printed) in row.cells.iter().zip(printed) {
            assert_eq!(
                cell.shipped.to_lowercase(),
                printed.to_lowercase(),
                "{names}"
            );
            assert_eq!(
                (cell.documented, cell.erratum),
                (cell.shipped, None),
                "{names}"
            );
            // Only precompiled methods differ at the documents' level.
            let is_precompiled_load = names == "NGen StartEnumeration" && *printed == "Load events";
            assert_eq!(cell.core.is_some(), is_precompiled_load, "{names}");
        }
    };
    for (names, printed) in TABLE_1 {
        check(&one, names, &printed);
    }
    for (names, printed) in TABLE_2 {
        check(&two, names, &printed);
    }
}

#[test]
fn tables_name_an_erratum_where_cells_differ() {
    let mut named = std::collections::BTreeSet::new();
    for level in 0..=6 {
        for table in tables(level) {
            for cell in table.rows.iter().flat_map(|r| &r.cells) {
                assert_eq!(cell.erratum.is_some(), cell.shipped != cell.documented);
                named.extend(cell.erratum);
            }
            if (1..4).contains(&level) {
                let silent = |cell: &str| matches!(cell, "None" | "Not applicable");
                let mut cells = table.rows.iter().flat_map(|r| &r.cells);
                assert!(cells.all(|c| silent(c.shipped) && silent(c.documented)));
            }
        }
    }
    assert_eq!(named.into_iter().collect::<Vec<_>>(), ["X02", "X16", "X17"]);
}

#[test]
#[cfg_attr(miri, ignore = "Miri reads the tables for many minutes")]
fn keyword_constants_match_the_tables() {
    use keyword::*;
    for (name, value) in [
        ("Loader", LOADER),
        ("Jit", JIT),
        ("NGen", NGEN),
        ("StartEnumeration", START_ENUMERATION),
        ("EndEnumeration", END_ENUMERATION),
        ("AppDomainResourceManagement", APP_DOMAIN_RESOURCES),
        ("JitTracing", JIT_TRACING),
        ("Threading", THREADING),
        ("JittedMethodILToNativeMap", IL_MAP),
        ("OverrideAndSuppressNGenEvents", OVERRIDE_NGEN),
        ("PerfTrack", PERF_TRACK),
        ("Stack", STACK),
        ("Compilation", COMPILATION),
    ] {
        assert_eq!(mask_of("runtime", name), value, "{name}");
    }
    for (name, value) in [
        ("LoaderRundown", LOADER),
        ("JitRundown", JIT),
        ("NGenRundown", NGEN),
        ("StartRundown", START_RUNDOWN),
        ("EndRundown", END_RUNDOWN),
        ("AppDomainResourceManagementRundown", APP_DOMAIN_RESOURCES),
        ("Threading", THREADING),
        ("JittedMethodILToNativeMapRundown", IL_MAP),
        ("OverrideAndSuppressNGenEventsRundown", OVERRIDE_NGEN),
        ("PerfTrackRundown", PERF_TRACK),
        ("Stack", STACK),
        ("Compilation", COMPILATION),
    ] {
        assert_eq!(mask_of("rundown", name), value, "{name}");
    }
}

#[test]
fn rules_for_the_masks_of_the_documents() {
    let (jitted, precompiled) = (Method::new(Code::Jitted), Method::new(Code::Precompiled));
    // 1FC1F: no NGen, no enumeration.
    let most = Runtime::new(0x1FC1F, 5);
    assert_eq!(most.method_load(jitted), Some(Form::Verbose));
    assert_eq!(most.method_unload(jitted, Unload::OwnerGone), None);
    assert_eq!(most.method_load(precompiled), None);
    assert!(!most.stacks() && most.loads(Loader::Module) && most.jitting_started());
    // 1CCBD: unloads, and of precompiled methods only these.
    let recipe = Runtime::new(0x1CCBD, 4);
    assert_eq!(recipe.method_load(jitted), Some(Form::Plain));
    assert_eq!(
        recipe.method_unload(jitted, Unload::OwnerGone),
        Some(Form::Plain)
    );
    assert_eq!(recipe.method_load(precompiled), None);
    assert_eq!(
        recipe.method_unload(precompiled, Unload::OwnerGone),
        Some(Form::Plain)
    );
    assert!(!recipe.jitting_started());
    // "All sets of events" of the documents holds the bit that turns NGen off.
    let all = Runtime::new(0xFFFF_FFFF, 5);
    assert_eq!(all.method_load(precompiled), None);
    assert!(all.method_load(jitted).is_some() && all.stacks());
    assert_eq!(Runtime::new(0, 0).method_load(precompiled), None);

    let rundown = Rundown::new(0x138, 5);
    assert!(rundown.brackets(Enumeration::End) && !rundown.brackets(Enumeration::Start));
    assert_eq!(
        rundown.method(Enumeration::End, precompiled),
        Some(Form::Verbose)
    );
    let without = Rundown::new(0xB8, 5);
    for which in Enumeration::ALL {
        assert!(!without.is_enabled(which));
        assert!(!without.enumerates(which) && !without.stacks());
    }
}

#[test]
fn brackets_is_false_for_threads_or_ranges_alone() {
    for keywords in [keyword::THREADING, keyword::PERF_TRACK] {
        let rundown = Rundown::new(keywords | keyword::END_RUNDOWN, 5);
        assert!(rundown.enumerates(Enumeration::End));
        assert!(!rundown.brackets(Enumeration::End));
    }
    // But they do if NGen is on and turned off again: only their own keywords matter.
    let mask = keyword::THREADING | keyword::NGEN | keyword::OVERRIDE_NGEN | keyword::END_RUNDOWN;
    assert!(Rundown::new(mask, 5).brackets(Enumeration::End));
    assert_eq!(
        Rundown::new(mask, 5).method(Enumeration::End, Method::new(Code::Precompiled)),
        None
    );
}

#[test]
fn runtime_raises_for_the_union_of_sessions() {
    let jit = Enablement::new(5, keyword::JIT);
    let ngen = Enablement::new(5, keyword::NGEN | keyword::START_ENUMERATION);
    let precompiled = Method::new(Code::Precompiled);
    assert_eq!(
        Runtime::from(CombinedEnablement::of([&jit])).method_load(precompiled),
        None
    );
    let both = Runtime::from(CombinedEnablement::of([&jit, &ngen]));
    assert_eq!(both.method_load(precompiled), Some(Form::Verbose));
    assert!(
        jit.admits_keyword(keyword::JIT | keyword::NGEN),
        "and so it gets the event"
    );
}

#[test]
fn in_core_raises_no_loads_of_compiled_methods_at_level_4() {
    for code in [Code::Jitted, Code::Dynamic] {
        let method = Method::new(code);
        let at = |level| Runtime::new(0x90, level).in_core();
        assert_eq!(at(4).method_load(method), None);
        assert_eq!(at(5).method_load(method), Some(Form::Verbose));
        assert!(at(4).method_unload(method, Unload::OwnerGone).is_some());
    }
    // Precompiled methods have no loads at any level.
    let everything = Runtime::new(!keyword::OVERRIDE_NGEN, 5);
    let precompiled = Method::new(Code::Precompiled);
    assert!(everything.method_load(precompiled).is_some());
    assert_eq!(everything.in_core().method_load(precompiled), None);
}

#[test]
fn il_map_needs_jit_in_core_only() {
    let alone = Runtime::new(keyword::IL_MAP, 5);
    assert!(alone.il_map() && !alone.in_core().il_map());
    let with_jit = Runtime::new(keyword::IL_MAP | keyword::JIT, 5);
    assert!(with_jit.in_core().il_map());
}

proptest! {
    /// .NET Core raises nothing that .NET Framework does not, as far as the rules go.
    #[test]
    fn in_core_raises_a_subset(mask in any::<u64>(), level in 0u8..8, id in 1u16..320) {
        let event = crate::enable::EventKey { id, level: 4, keyword: mask & 0xffff_ffff };
        let rules = Runtime::new(mask, level);
        prop_assert!(rules.raises_event(event) || !rules.in_core().raises_event(event));
    }
}

/// Masks of the keywords that matter, and some that do not.
fn mask() -> impl Strategy<Value = u64> {
    let bits = prop_oneof![
        9 => prop::sample::select(vec![3u32, 4, 5, 6, 7, 8, 11, 16, 17, 18, 29, 30, 36]),
        1 => 0u32..64,
    ];
    prop::collection::vec(bits, 1..6)
        .prop_map(|bits| bits.into_iter().fold(0, |mask, bit| mask | 1u64 << bit))
}

proptest! {
    /// A second version of the rules in plain words: bits and levels of one session.
    #[test]
    fn runtime_agrees_with_the_rules_in_other_words(mask in mask(), level in 0u8..8) {
        let runtime = Runtime::new(mask, level);
        let has = |bit: u64| mask & bit != 0;
        let (info, verbose) = (level == 0 || level >= 4, level == 0 || level >= 5);
        let ngen = has(0x20) && !has(0x40000);
        for method in Method::all() {
            let (load, unload) = match method.code {
                Code::Jitted => (has(0x10), has(0x10) && has(0x80)),
                Code::Dynamic => (has(0x10), has(0x10)),
                Code::Helper => (has(0x10), false),
                Code::Precompiled => (ngen && has(0x40), ngen && has(0x80)),
            };
            prop_assert_eq!(runtime.method_load(method).is_some(), info && load);
            let gone = [Unload::Destroyed, Unload::OwnerGone].map(|w| runtime.method_unload(method, w));
            prop_assert_eq!(gone.iter().any(Option::is_some), info && unload);
            let named = verbose || method.generic || matches!(method.code, Code::Dynamic | Code::Helper);
            for form in gone.into_iter().chain([runtime.method_load(method)]).flatten() {
                prop_assert_eq!(form == Form::Verbose, named);
            }
        }
        prop_assert_eq!(runtime.loads(Loader::Assembly), info && has(0x8));
        prop_assert_eq!(runtime.loads(Loader::Module), info && (has(0x8) || has(0x2000_0000)));
        prop_assert_eq!(runtime.unloads(Loader::Module), info && has(0x8));
        prop_assert_eq!(runtime.jitting_started(), verbose && has(0x10));
        prop_assert_eq!(runtime.il_map(), verbose && has(0x20000));
        prop_assert_eq!(runtime.threads(), info && (has(0x800) || has(0x10000)));
        prop_assert_eq!(runtime.stacks(), has(0x4000_0000));
    }

    #[test]
    fn rundown_agrees_with_the_rules_in_other_words(mask in mask(), level in 0u8..8) {
        let rundown = Rundown::new(mask, level);
        let has = |bit: u64| mask & bit != 0;
        let (info, verbose) = (level == 0 || level >= 4, level == 0 || level >= 5);
        let ngen = has(0x20) && !has(0x40000);
        for (which, bit) in [(Enumeration::Start, 0x40), (Enumeration::End, 0x100)] {
            let asked = info && has(bit);
            let something = has(0x8) || has(0x10) || ngen || has(0x20000)
                || has(0x2000_0000) || has(0x10000);
            prop_assert_eq!(rundown.is_enabled(which), asked);
            prop_assert_eq!(rundown.enumerates(which), asked && something);
            prop_assert_eq!(rundown.brackets(which), asked && something && has(0x20038));
            prop_assert_eq!(rundown.threads(which), asked && has(0x10000));
            prop_assert_eq!(rundown.il_maps(which), asked && verbose && has(0x20000));
            prop_assert_eq!(rundown.loader(which, Loader::AppDomain), asked && has(0x8));
            for method in Method::all() {
                let on = match method.code {
                    Code::Jitted | Code::Dynamic => has(0x10),
                    Code::Precompiled => ngen,
                    Code::Helper => false,
                };
                let form = rundown.method(which, method);
                prop_assert_eq!(form.is_some(), asked && on);
                let named = verbose || method.generic || method.code == Code::Dynamic;
                prop_assert!(form.is_none_or(|form| (form == Form::Verbose) == named));
            }
        }
    }

    /// A session that is the only one gets every raised event: the enable rule admits every event
    /// that the rules raise.
    #[test]
    #[cfg_attr(miri, ignore = "Miri reads the tables for many minutes")]
    fn raises_implies_admits_for_a_single_session(mask in mask(), level in 0u8..8) {
        let registry = Registry::builtin();
        let session = Enablement::new(level, mask);
        let (runtime, rundown) = (Runtime::new(mask, level), Rundown::new(mask, level));
        for (at, name) in ["runtime", "rundown"].into_iter().enumerate() {
            for event in &registry.find(name).unwrap().events {
                let event = &event.schema;
                let raised = if at == 0 { runtime.raises(event) } else { rundown.raises(event) };
                let admitted = session.admits_level(event.level.value)
                    && session.admits_keyword(event.keywords);
                // First versions of loader events had one keyword only.
                if raised && event.keywords != keyword::LOADER {
                    prop_assert!(admitted, "{} {}", name, event.name);
                }
            }
        }
    }
}
