//! Masks of the documents and others, taken apart.

use super::*;
use etl_schema::{providers, tables};

fn provider(name: &str) -> &'static Provider {
    Registry::builtin().find(name).unwrap()
}

fn explained(name: &str, mask: u64, level: u8) -> Explanation<'static> {
    explain(TableSet::Shipped, provider(name), mask, level)
}

fn symbols(e: &Explanation<'_>) -> Vec<String> {
    e.raised
        .iter()
        .map(|r| r.event.schema.name.to_string())
        .collect()
}

fn says(e: &Explanation<'_>, what: &str) -> bool {
    e.remarks.iter().any(|r| r.message.contains(what))
}

#[test]
#[cfg_attr(miri, ignore = "Miri reads the tables for many minutes")]
fn explain_selects_dcend_for_the_rundown_of_the_recipe() {
    let good = explained("rundown", 0x138, 5);
    let symbols = symbols(&good);
    for wanted in [
        "DCEndInit_V1",
        "DCEndComplete_V1",
        "MethodDCEndVerbose_V2",
        "ModuleDCEnd_V3",
    ] {
        assert!(
            symbols.iter().any(|s| s == wanted),
            "{wanted} in {symbols:?}"
        );
    }
    assert!(!symbols.iter().any(|s| s.starts_with("MethodDCStart")));
    assert!(
        !symbols.iter().any(|s| s == "MethodDCEnd_V2"),
        "level 5 replaces the plain form"
    );
    assert!(
        good.remarks.iter().all(|r| r.errata == ["X04"]),
        "{:?}",
        good.remarks
    );
    assert!(good.errata(provider("rundown"), 0x138).contains(&"X04"));
}

#[test]
#[cfg_attr(miri, ignore = "Miri reads the tables for many minutes")]
fn explain_selects_nothing_for_the_other_mask_of_the_documents() {
    let bad = explained("rundown", 0xb8, 5);
    assert!(bad.raised.is_empty());
    assert_eq!(bad.unnamed, 0x80);
    assert!(
        says(&bad, "0x138") && says(&bad, "nothing at all"),
        "{:?}",
        bad.remarks
    );
    assert!(
        bad.remarks
            .iter()
            .any(|r| r.errata == ["X04"] && r.suggested_mask == Some(0x138))
    );
    let end = bad
        .suppressed
        .iter()
        .find(|w| w.event.schema.name.starts_with("DCEndComplete"));
    assert_eq!(end.unwrap().suggested_mask, Some(0x138));
    let start = bad
        .suppressed
        .iter()
        .find(|w| w.event.schema.name.starts_with("ModuleDCStart"));
    assert_eq!(start.unwrap().suggested_mask, Some(0x78));
}

#[test]
#[cfg_attr(miri, ignore = "Miri reads the tables for many minutes")]
fn suggested_masks_select_what_they_are_suggested_for() {
    for name in ["runtime", "rundown"] {
        for mask in [
            0x20,
            0x10,
            0xb8,
            0x38,
            0x1fc1f,
            0x1ccbd,
            0x40030,
            0x20000008,
            0xffff_ffff,
        ] {
            for level in [0, 1, 4, 5] {
                let e = explained(name, mask, level);
                for w in &e.suppressed {
                    let Some(suggested_mask) = w.suggested_mask else {
                        continue;
                    };
                    let then = explained(name, suggested_mask, level);
                    let given = then.raised.iter().any(|r| std::ptr::eq(r.event, w.event));
                    assert!(
                        given,
                        "{name} {mask:#x}: {} by {suggested_mask:#x}",
                        w.event.schema.name
                    );
                }
                for r in &e.remarks {
                    assert_ne!(r.suggested_mask, Some(mask), "{}", r.message);
                }
                for r in e.raised.iter().chain(&e.too_verbose) {
                    assert!(!r.levels.is_empty() && !r.versions.is_empty());
                }
            }
        }
    }
}

#[test]
#[cfg_attr(miri, ignore = "Miri reads the tables for many minutes")]
fn explain_names_the_runtime_masks_of_the_documents() {
    let names = explained("runtime", 0x1ccbd, 5).names;
    assert_eq!(
        names,
        // A bit with two names has the first one.
        [
            "GCKeyword",
            "FusionKeyword",
            "LoaderKeyword",
            "JitKeyword",
            "NGenKeyword",
            "EndEnumerationKeyword",
            "SecurityKeyword",
            "AppDomainResourceManagementKeyword",
            "ContentionKeyword",
            "ExceptionKeyword",
            "ThreadingKeyword",
        ]
    );
    let all_but = explained("runtime", 0x1fc1f, 5);
    assert!(!all_but.names.contains(&"NGenKeyword"));
    assert!(says(&all_but, "0x80") && all_but.remarks.iter().any(|r| r.errata == ["X05"]));
}

#[test]
#[cfg_attr(miri, ignore = "Miri reads the tables for many minutes")]
fn explain_suppresses_the_events_of_ngen_alone() {
    let e = explained("runtime", 0x20, 5);
    assert!(e.raised.iter().all(|r| r.event.schema.keywords & 0x20 == 0));
    let suggested_mask = |name: &str| {
        let found = e.suppressed.iter().find(|w| w.event.schema.name == name);
        found.and_then(|w| w.suggested_mask)
    };
    assert_eq!(suggested_mask("MethodLoadVerbose_V2"), Some(0x60));
    assert_eq!(suggested_mask("MethodUnloadVerbose_V2"), Some(0xa0));
    assert!(e.remarks.iter().any(|r| r.suggested_mask == Some(0x60)));
}

#[test]
#[cfg_attr(miri, ignore = "Miri reads the tables for many minutes")]
fn explain_lists_the_levels_of_events() {
    let e = explained("runtime", 0x10, 4);
    let find = |list: &[Raised<'_>], name: &str| {
        list.iter()
            .find(|r| r.event.schema.name == name)
            .map(|r| r.levels.clone())
    };
    assert_eq!(find(&e.raised, "MethodLoad_V2"), Some(vec![4]));
    assert_eq!(find(&e.raised, "MethodLoadVerbose_V2"), Some(vec![4, 5]));
    assert_eq!(
        find(&e.too_verbose, "MethodJittingStarted_V1"),
        Some(vec![5])
    );
    assert!(e.remarks.iter().any(|r| r.errata == ["X02"]));
    let core_levels = |name: &str| {
        let raised = e.raised.iter().find(|r| r.event.schema.name == name);
        raised.map(|r| r.core_levels.clone())
    };
    assert_eq!(core_levels("MethodLoad_V2"), Some(vec![]));
    assert!(says(&e, "level 4 has no loads of compiled methods"));
}

#[test]
#[cfg_attr(miri, ignore = "Miri reads the tables for many minutes")]
fn explain_says_which_keywords_are_missing() {
    for (mask, text, suggested) in [
        (0x40_0000_0000, "MethodDetails", Some(0x40_0000_0010)),
        (0x8_0000, "BulkType", Some(0x208_0000)),
        (0x10_0000, "GCHeapCollectKeyword", Some(0x90_0000)),
        (0x2_0000, "maps from IL", Some(0x2_0010)),
        (0x60, "StartEnumerationKeyword", None),
    ] {
        let e = explained("runtime", mask, 5);
        let remark = e.remarks.iter().find(|r| r.message.contains(text));
        assert_eq!(remark.unwrap().suggested_mask, suggested, "{mask:#x}");
    }
    let dump = explained("runtime", 0x10_0000, 5);
    assert!(!symbols(&dump).contains(&"GCBulkNode".to_owned()));
    let details = explained("runtime", 0x40_0000_0010, 4);
    let higher = details.too_verbose.iter();
    let higher: Vec<_> = higher.map(|r| &*r.event.schema.name).collect();
    assert!(higher.contains(&"MethodDetails"), "{higher:?}");
}

#[test]
#[cfg_attr(miri, ignore = "Miri reads the tables for many minutes")]
fn explain_takes_zero_as_all_and_32_ones_as_a_mask() {
    let all = explained("rundown", 0, 5);
    assert!(says(&all, "turns NGen off"));
    let ones = explained("runtime", 0xffff_ffff, 5);
    assert!(says(&ones, "32 ones"));
    assert!(!symbols(&ones).iter().any(|s| s == "MethodDetails"));
}

#[test]
#[cfg_attr(miri, ignore = "Miri reads the tables for many minutes")]
fn explain_follows_the_pages_with_documented_tables() {
    let pages = Registry::of(TableSet::Documented);
    let runtime = pages.find("runtime").unwrap();
    let e = explain(TableSet::Documented, runtime, 0x10, 4);
    let names = symbols(&e);
    assert!(names.iter().any(|n| n == "MethodLoad_V1"));
    assert!(
        !names.iter().any(|n| n == "MethodLoadVerbose_V1"),
        "level 5 by the pages (X02)"
    );
    let rundown = pages.find("rundown").unwrap();
    let markers = |mask| {
        let e = explain(TableSet::Documented, rundown, mask, 5);
        symbols(&e).iter().any(|n| n == "DCEndInit_V1")
    };
    assert!(markers(0x900) && markers(0x110) && !markers(0x10));
    assert!(
        !symbols(&explained("rundown", 0x900, 5))
            .iter()
            .any(|n| n == "DCEndInit_V1")
    );
}

#[test]
#[cfg_attr(miri, ignore = "Miri reads the tables for many minutes")]
fn explain_applies_only_the_enable_rule_to_the_private_provider() {
    let garbage = explained("private", 0x1, 4);
    assert!(garbage.remarks.is_empty(), "{:?}", garbage.remarks);
    assert!(symbols(&garbage).iter().any(|s| s == "GCSettings_V1"));
    assert!(garbage.suppressed.is_empty());
    assert!(
        garbage
            .too_verbose
            .iter()
            .any(|r| r.event.schema.name == "GCJoin_V1")
    );
    assert!(
        garbage
            .raised
            .iter()
            .all(|r| r.event.schema.keywords & 1 != 0 || r.event.schema.name == "FailFast")
    );
}

#[test]
#[cfg_attr(miri, ignore = "Miri reads the tables for many minutes")]
fn explain_names_channels_in_masks_of_windows_providers() {
    let process = tables::provider(TableSet::Shipped, providers::KERNEL_PROCESS).unwrap();
    let e = explain(TableSet::Shipped, process, 0x8000_0000_0000_0010, 5);
    assert_eq!(e.names, ["WINEVENT_KEYWORD_PROCESS"]);
    assert!(
        symbols(&e)
            .iter()
            .any(|symbol| symbol.starts_with("ProcessStart")),
        "{:?}",
        symbols(&e)
    );
    assert!(!symbols(&e).iter().any(|symbol| symbol.starts_with("Image")));
    assert!(says(&e, "0x8000000000000000 select channels") && !says(&e, "mean nothing"));
    let e = explain(TableSet::Shipped, process, 0x10_0000_0000, 5);
    assert!(
        e.raised.is_empty() && says(&e, "0x1000000000 mean nothing"),
        "{:?}",
        e.remarks
    );
}

#[test]
#[cfg_attr(miri, ignore = "Miri reads the tables for many minutes")]
fn explain_says_what_a_rundown_mask_lacks() {
    let lacks = |mask: u64| {
        let explanation = explained("rundown", mask, 5);
        let mut lacks = Vec::new();
        for name in [
            "JitRundownKeyword",
            "LoaderRundownKeyword",
            "NGenRundownKeyword",
        ] {
            let mut remarks = explanation.remarks.iter();
            let remark = remarks.find(|remark| remark.message.starts_with(name));
            lacks.extend(remark.map(|remark| (name, remark.suggested_mask)));
        }
        lacks
    };
    assert_eq!(lacks(0x138), []);
    assert_eq!(lacks(0x128), [("JitRundownKeyword", Some(0x138))]);
    assert_eq!(lacks(0x130), [("LoaderRundownKeyword", Some(0x138))]);
    assert_eq!(lacks(0x118), [("NGenRundownKeyword", Some(0x138))]);
    assert_eq!(lacks(0x108), [("JitRundownKeyword", Some(0x118))]);
    assert_eq!(
        lacks(0x120),
        [
            ("JitRundownKeyword", Some(0x130)),
            ("LoaderRundownKeyword", Some(0x128))
        ]
    );
}

#[test]
#[cfg_attr(miri, ignore = "Miri reads the tables for many minutes")]
fn explain_suggests_a_whole_end_rundown_without_one() {
    let suggested_mask = |mask: u64| {
        let explanation = explained("rundown", mask, 5);
        let mut remarks = explanation.remarks.iter();
        let remark = remarks.find(|remark| remark.message.contains("EndRundownKeyword"));
        remark.and_then(|remark| remark.suggested_mask)
    };
    // Nothing is enumerated: modules and all methods are wanted.
    assert_eq!(suggested_mask(0x40), Some(0x178));
    // What is enumerated is enough.
    assert_eq!(suggested_mask(0x48), Some(0x148));
    assert_eq!(suggested_mask(0x138), None);
}

#[test]
#[cfg_attr(miri, ignore = "Miri reads the tables for many minutes")]
fn explain_warns_below_the_level_of_the_clr_only() {
    for (level, is_low) in [(0, false), (1, true), (3, true), (4, false), (5, false)] {
        let explanation = explained("runtime", 0x1ccbd, level);
        assert_eq!(says(&explanation, "below level 4"), is_low, "level {level}");
    }
}
