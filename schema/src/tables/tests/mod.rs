//! The tables are valid, and errors in tables are reported.

use super::*;
use crate::model::Count;

mod kernel;

#[test]
#[cfg_attr(miri, ignore = "Miri reads the tables for many minutes")]
fn parse_accepts_every_built_in_table() {
    for TableSource { name, text } in TABLES {
        if let Err(error) = Provider::parse(name, text) {
            panic!("{error}");
        }
    }
    let TableSource { name, text } = CLASSIC_TABLE;
    if let Err(error) = Provider::parse_classes(name, text) {
        panic!("{error}");
    }
    assert_eq!(Registry::classic().providers().count(), 21);
    for TableSource { name, text } in DOCUMENTED_TABLES {
        if let Err(error) = Provider::parse(name, text) {
            panic!("{error}");
        }
    }
    if let Err(error) = Erratum::parse(ERRATA_TABLE.name, ERRATA_TABLE.text) {
        panic!("{error}");
    }
    assert_eq!(
        Registry::of(TableSet::Documented).providers().count(),
        DOCUMENTED_TABLES.len()
    );
    let registry = Registry::builtin();
    assert_eq!(registry.providers().count(), TABLES.len());
    let events: Vec<_> = registry.providers().map(|p| p.events.len()).collect();
    assert_eq!(events, [211, 51, 185, 1]);
}

#[test]
#[cfg_attr(miri, ignore = "Miri reads the tables for many minutes")]
fn find_accepts_names_parts_of_names_and_guids() {
    let registry = Registry::builtin();
    for text in [
        "Microsoft-Windows-DotNETRuntime",
        "microsoft-windows-dotnetruntime",
        "runtime",
    ] {
        assert_eq!(
            registry.find(text).unwrap().name,
            "Microsoft-Windows-DotNETRuntime"
        );
    }
    assert_eq!(
        registry.find("private").unwrap().name,
        "Microsoft-Windows-DotNETRuntimePrivate"
    );
    for text in ["rundown", "{A669021C-C450-4609-A035-5AF59AF4DF18}"] {
        assert_eq!(
            registry.find(text).unwrap().name,
            "Microsoft-Windows-DotNETRuntimeRundown"
        );
    }
    assert!(registry.find("unknown").is_none());
}

#[test]
#[cfg_attr(miri, ignore = "Miri reads the tables for many minutes")]
fn keyword_names_splits_masks() {
    let rundown = Registry::builtin().find("rundown").unwrap();
    let keywords = rundown.keyword_names(0xb8);
    assert_eq!(
        keywords.names,
        [
            "LoaderRundownKeyword",
            "JitRundownKeyword",
            "NGenRundownKeyword"
        ]
    );
    assert_eq!(
        keywords.unnamed, 0x80,
        "a bit that means nothing to this provider"
    );
    assert_eq!(rundown.keyword("endrundownkeyword"), Some(0x100));
}

#[test]
fn parse_reports_errors_with_their_line() {
    let table = |body: &str| format!("provider P e13c0d23-ccbc-4e12-931b-d9cc2eee27e4\n{body}");
    for (body, line, what) in [
        ("event 1 0 A\n  level 9x", 3, "number"),
        ("event 1 0 A\nevent 1 0 B", 3, "twice"),
        ("event 1 0 A\n  keywords Nope", 3, "keyword"),
        ("event 1 0 A\n  field X Nope", 3, "type"),
        ("event 1 0 A\n  field X UInt32 map Nope", 3, "map"),
        ("event 1 0 A\n  field X UInt32 count N", 3, "field"),
        ("event 1 0 A\n  field X UInt32 count", 3, "count"),
        ("event 1 0 A\n  errata X99", 3, "erratum"),
        ("event 1 0 A\n  shipped 1", 3, "line"),
        ("nonsense", 2, "line"),
        ("  stack", 2, "line"),
    ] {
        let error = Provider::parse("t.txt", &table(body))
            .unwrap_err()
            .to_string();
        assert!(
            error.starts_with(&format!("t.txt:{line}: ")),
            "{body}: {error}"
        );
        assert!(error.contains(what), "{body}: {error}");
    }
    assert!(
        Provider::parse("t.txt", "")
            .unwrap_err()
            .to_string()
            .contains("provider")
    );
}

#[test]
fn parse_reports_errors_of_errata_with_their_line() {
    let whole = "erratum X01 a\n  documents b\n  shipped c\n  evidence d\n  follows e\n";
    assert_eq!(Erratum::parse("e.txt", whole).unwrap().len(), 1);
    for (body, line, what) in [
        ("erratum X01 again", 6, "twice"),
        ("erratum X02 more", 6, "documents"),
        ("  nonsense x", 6, "erratum"),
        ("  masks runtime", 6, "values"),
        ("  masks", 6, "provider"),
        ("  keywords rundown 0xg", 6, "number"),
        ("nonsense", 6, "line"),
    ] {
        let error = Erratum::parse("e.txt", &format!("{whole}{body}\n")).unwrap_err();
        let error = error.to_string();
        assert!(
            error.starts_with(&format!("e.txt:{line}: ")),
            "{body}: {error}"
        );
        assert!(error.contains(what), "{body}: {error}");
    }
    let error = Erratum::parse("e.txt", "erratum X01 a\n\nerratum X02 b\n").unwrap_err();
    assert_eq!(error.line, 1, "{error}");
}

#[test]
#[cfg_attr(miri, ignore = "Miri reads the tables for many minutes")]
fn tables_differ_only_where_an_erratum_says_so() {
    let shipped = Registry::builtin();
    let mut named = std::collections::BTreeSet::new();
    for provider in Registry::of(TableSet::Documented).providers() {
        for event in &provider.events {
            let place = format!("{} {}", provider.name, event.schema.name);
            let key = event
                .shipped
                .unwrap_or_else(|| panic!("{place}: shipped as what?"));
            let real = shipped.event(provider.guid, key);
            let real = real.unwrap_or_else(|| panic!("{place}: {key:?} is not shipped"));
            let facts = |e: &TableEvent| {
                let fields: Vec<_> = e
                    .schema
                    .fields
                    .iter()
                    .map(|f| (f.name.clone(), f.in_type(), f.count == Count::One))
                    .collect();
                (
                    e.schema.identity,
                    e.schema.level.value,
                    e.schema.keywords,
                    fields,
                )
            };
            let (says, is) = (facts(event), facts(real));
            // A version is part of a name only in the pages.
            let unversioned = |name: &str| {
                name.trim_end_matches(|c: char| c.is_ascii_digit())
                    .to_owned()
            };
            let names = unversioned(&event.schema.name) == unversioned(&real.schema.name)
                || real.schema.name.starts_with(&*event.schema.name);
            let same = names && says == is;
            assert!(
                same || !event.errata().is_empty(),
                "{place}: differs without an erratum"
            );
            for id in event.errata() {
                assert!(
                    real.errata().contains(&id),
                    "{place}: {id} is not named by {key:?}"
                );
            }
            named.extend(event.errata().into_iter().map(str::to_owned));
            // Each kind of difference has its own.
            let has = |ids: &[&str]| ids.iter().any(|id| event.errata().contains(id));
            assert!(says.0 == is.0 || has(&["X01"]), "{place}: the id");
            // Some descriptors changed after the pages were written.
            let was = |level, keywords| real.older == Some(OlderEvent { level, keywords });
            let old = was(says.1, says.2);
            assert!(
                old || says.1 == is.1 || has(&["X02", "X35"]),
                "{place}: the level"
            );
            let keywords = ["X16", "X17", "X18", "X33", "X34", "X36", "X38"];
            assert!(
                old || says.2 == is.2 || has(&keywords),
                "{place}: the keywords"
            );
            let fields = [
                "X09", "X10", "X11", "X12", "X14", "X15", "X21", "X22", "X23", "X28", "X31", "X32",
            ];
            assert!(says.3 == is.3 || has(&fields), "{place}: the fields");
        }
    }
    let ids: Vec<_> = errata().iter().map(|e| e.id.clone()).collect();
    let expected: Vec<_> = (1..=60).map(|n| format!("X{n:02}")).collect();
    assert_eq!(ids, expected);
    // The others are about masks, keywords, command lines and what no page has.
    let others: Vec<_> = ids.into_iter().filter(|id| !named.contains(id)).collect();
    let expected = [
        "X04", "X05", "X20", "X27", "X29", "X30", "X37", "X39", "X40", "X41", "X42", "X43", "X44",
        "X45", "X46", "X49", "X51", "X52", "X53", "X54", "X56", "X57", "X58", "X59", "X60",
    ];
    assert_eq!(others, expected);
}

#[test]
#[cfg_attr(miri, ignore = "Miri reads the tables for many minutes")]
fn errata_are_found_by_mask_and_by_keyword() {
    let registry = Registry::builtin();
    let of = |name: &str, is: fn(&Erratum, &Provider, u64) -> bool, mask| -> Vec<&str> {
        let provider = registry.find(name).unwrap();
        errata()
            .iter()
            .filter(|e| is(e, provider, mask))
            .map(|e| e.id.as_str())
            .collect()
    };
    assert_eq!(of("rundown", Erratum::is_of_mask, 0xb8), ["X04"]);
    assert_eq!(of("runtime", Erratum::is_of_mask, 0x1ccbd), ["X05"]);
    assert_eq!(of("runtime", Erratum::is_of_mask, 0xb8), [""; 0]);
    assert_eq!(
        of("runtime", Erratum::is_of_keyword, 0x4000_1000),
        ["X06", "X34"]
    );
}

#[test]
#[cfg_attr(miri, ignore = "Miri reads the tables for many minutes")]
fn tables_have_every_event_of_the_pages() {
    // GCSetting is an event of another provider (X37).
    let private = Registry::builtin().find("private").unwrap();
    assert!(private.events.iter().any(|e| e.schema.name == "GCSettings"));
    // By page; SuspendThread and ResumeThread
    // are printed twice, under two names (X33).
    let runtime = "\
        RuntimeInformationEvent Exception ContentionStart_V1 ContentionStop \
        ThreadpoolSuspensionSuspendThread ThreadpoolSuspensionResumeThread \
        ThreadPoolWorkerThreadStart ThreadPoolWorkerThreadStop \
        ThreadPoolWorkerThreadRetirementStart ThreadPoolWorkerThreadRetirementStop \
        ThreadPoolWorkerThreadAdjustmentSample ThreadPoolWorkerThreadAdjustmentAdjustment \
        AppDomainLoad AppDomainUnLoad AssemblyLoad AssemblyUnload ModuleLoad ModuleUnload \
        DomainModuleLoad MethodLoad MethodUnLoad GCStart GCEnd GCHeapStats CreateSegment \
        FreeSegment ResumeFromSuspension EndResumeFromSuspension SuspendEE_V1 SuspendEEEnd \
        AllocationTick BeginFinalizers EndFinalizers CreateConcurrentThread \
        TerminateConcurrentThread CreateWorkerThread TerminateWorkerThread CreateIOThread \
        RetireWorkerThread UnretireWorkerThread RetireIOThread UnretireIOThread \
        MethodJitInliningFailed MethodJitInliningSucceeded ILStubGenerated ILStubCacheHit \
        ThreadCreated AppDomainMemAllocated AppDomainMemSurvived ThreadAppDomainEnter \
        ThreadTerminated StrongNameVerificationStart_V1 StrongNameVerificationStop_V1 \
        AuthenticodeVerificationStart_V1 AuthenticodeVerificationStop_V1 StackTrace \
        MethodLoad_V1 MethodUnLoad_V1 MethodLoadVerbose_V1 MethodUnLoadVerbose_V1 \
        MethodJittingStarted AppDomainLoad_V1 AppDomainUnLoad_V1 AssemblyLoad_V1 \
        AssemblyUnload_V1 ModuleLoad_V2 ModuleUnload_V2 DomainModuleLoad_V1 ModuleRange";
    let rundown = "\
        RuntimeInformationDCStart AppDomainDCStart AppDomainDCEnd AssemblyDCStart AssemblyDCEnd \
        ModuleDCStart ModuleDCEnd DomainModuleDCStart DomainModuleDCEnd MethodDCStart MethodDCEnd \
        DCStartComplete DCEndInit DCEndComplete ThreadDC StackTrace \
        MethodDCStart_V1 MethodDCEnd_V1 MethodDCStartVerbose_V1 MethodDCEndVerbose_V1 \
        DCStartInit_V1 DCStartComplete_V1 DCEndInit_V1 DCEndComplete_V1 \
        AppDomainDCStart_V1 AppDomainDCEnd_V1 AssemblyDCStart_V1 AssemblyDCEnd_V1 \
        ModuleDCStart_V2 ModuleDCEnd_V2 DomainModuleDCStart_V1 DomainModuleDCEnd_V1 \
        ModuleRangeDCStart ModuleRangeDCEnd";
    for (provider, names) in [("runtime", runtime), ("rundown", rundown)] {
        let pages = Registry::of(TableSet::Documented).find(provider).unwrap();
        let mut there: Vec<&str> = pages.events.iter().map(|e| &*e.schema.name).collect();
        let mut named: Vec<&str> = names.split_whitespace().collect();
        // The page calls two events CreateIOThread (X19).
        there.sort_unstable();
        there.dedup();
        named.sort_unstable();
        assert_eq!(there, named, "{provider}");
    }
}

/// .NET Framework 4.5.0 writes the structure without a field of 4.5.2: 225 bytes with pointers of 4
/// bytes in 1,050 of 1,050 payloads of a real trace.
#[test]
#[cfg_attr(miri, ignore = "Miri reads the tables for many minutes")]
fn payload_selects_the_layout_of_a_version() {
    use etl_format::constants::PointerSize;
    let private = Registry::builtin().find("Private").unwrap().guid;
    let history = Identity::Modern { id: 4, version: 2 };
    let decoder = Registry::builtin().decoder(private, history).unwrap();
    let has_commit = |size: usize, pointers| {
        let payload = vec![0; size];
        let decoder = decoder.of_payload(&payload, pointers);
        assert!(decoder.check(&payload, pointers).is_exact(), "{size}");
        decoder.schema().field_index("ExtraGen0Commit").is_some()
    };
    assert!(!has_commit(225, PointerSize::P4));
    assert!(has_commit(233, PointerSize::P4));
    assert!(!has_commit(425, PointerSize::P8));
    assert!(has_commit(433, PointerSize::P8));
    // A payload of another size is decoded by the newest layout.
    let payload = [0; 100];
    let decoder = decoder.of_payload(&payload, PointerSize::P8);
    assert!(decoder.schema().field_index("ExtraGen0Commit").is_some());
}
