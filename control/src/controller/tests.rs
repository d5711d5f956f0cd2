//! Lines of the documents and of everyday use; spans of errors; the canonical line as an inverse.

use super::tokens::quote;
use super::*;
use crate::Error;
use crate::enable::{EnableProperties, Enablement, EventKey, IdFilter, Scope};
use etl_format::constants::{ClockType, LogFileMode};
use etl_schema::tables::Registry;
use proptest::collection::vec;
use proptest::prelude::*;
use proptest::sample::select;

fn read(line: &str) -> CommandLine {
    line.parse()
        .unwrap_or_else(|error| panic!("{line}: {error}"))
}

fn started(line: &str) -> Session {
    match read(line).actions.into_iter().next() {
        Some(Action::Start(session)) => *session,
        other => panic!("{line}: {other:?}"),
    }
}

const RUNTIME: &str = "e13c0d23-ccbc-4e12-931b-d9cc2eee27e4";

#[test]
#[cfg_attr(miri, ignore = "Miri reads the tables for many minutes")]
fn parse_reads_the_recipes_of_the_documents() {
    // As they are printed: dashes of the typesetter, GUIDs in upper case, remarks at the end.
    let clr = started(&format!(
        "xperf –start clr –on {RUNTIME}:0xFFFFFFFF:0x5 –f clr.etl"
    ));
    assert_eq!(
        (clr.name.as_str(), clr.file.as_deref()),
        ("clr", Some("clr.etl"))
    );
    assert_eq!(
        clr.providers[0].provider,
        ProviderRef::Guid(RUNTIME.parse().unwrap())
    );
    assert_eq!(clr.providers[0].keywords, Some(Keywords::Mask(0xffff_ffff)));
    let line = "xperf –start clr –on A669021C-C450-4609-A035-5AF59AF4DF18:0x138:0x5 –f clr2.etl \
                (enable collection of DCEnd events)";
    assert_eq!(
        read(line).remark.as_deref(),
        Some("enable collection of DCEnd events")
    );
    let enabled = started(line).providers[0]
        .enablement(Registry::builtin())
        .unwrap();
    assert_eq!(enabled, Enablement::new(5, 0x138));
    assert!(enabled.admits(&EventKey {
        id: 146,
        level: 4,
        keyword: 0x20038
    }));

    let stop = read("xperf -stop (stop all profiling)");
    let kernel = KERNEL_SESSION.to_owned();
    assert_eq!(
        stop.actions,
        [Action::Stop {
            session: kernel,
            direct: true
        }]
    );
    for line in [
        "xperf -merge clr1.etl clr2.etl merged.etl  ",
        "xperf -merge -d clr1.etl clr2.etl merged.etl",
    ] {
        let merge = Action::Merge {
            inputs: vec!["clr1.etl".into(), "clr2.etl".into()],
            output: "merged.etl".into(),
            options: vec![],
        };
        assert_eq!(read(line).actions, [merge], "{line}");
    }
}

#[test]
fn parse_reads_lines_of_tools_that_list_and_decode() {
    let list = |line: &str| read(line).actions;
    assert_eq!(list("TraceLog -enumguid"), [Action::ListProviders]);
    assert_eq!(
        list("TraceLog -l"),
        [Action::Query {
            session: None,
            direct: true
        }]
    );
    let stop = Action::Stop {
        session: "clrrundown".to_owned(),
        direct: true,
    };
    assert_eq!(list("stop clrrundown"), [stop]);
    for line in [
        "tracelog -enumguid",
        "tracelog -l",
        "stop clrrundown",
        "tracerpt clr1.etl clr2.etl -o events.xml -of XML -import clr.man -summary summary.txt",
        "tracerpt -rt clr -y",
        "tracefmt wpp.etl -o out.txt -tmf driver.tmf -nosummary",
    ] {
        assert_eq!(read(line).to_string(), line);
    }
    let [
        Action::Decode {
            files,
            output,
            options,
            ..
        },
    ] = &list("TraceRpt.exe -l clr.etl -of csv -o clr.csv")[..]
    else {
        panic!()
    };
    assert_eq!(
        (&files[..], output.as_deref()),
        (&["clr.etl".to_owned()][..], Some("clr.csv"))
    );
    assert_eq!(options[0].values, ["csv"]);
    for line in ["tracerpt", "tracefmt clr.etl -sumary", "stop", "stop a b"] {
        assert!(line.parse::<CommandLine>().is_err(), "{line}");
    }
}

#[test]
fn parse_reads_common_xperf_lines() {
    let line = "C:\\wpt\\XPERF.exe -on PROC_THREAD+LOADER+PROFILE -stackwalk Profile -BufferSize 1024 \
                -MinBuffers 256 -MaxBuffers 256 -f k.etl -start clr -on Microsoft-Windows-DotNETRuntime\
                :0x14:5:'stack'+MyProvider:::'sid,stack' -f \"my clr.etl\" -FileMode Circular -MaxFile 200 \
                -clocktype perfcounter -RealTime";
    let [Action::Start(kernel), Action::Start(clr)] = &read(line).actions[..] else {
        panic!()
    };
    assert_eq!(kernel.name, KERNEL_SESSION);
    assert_eq!(kernel.kernel, ["PROC_THREAD", "LOADER", "PROFILE"]);
    assert_eq!(kernel.stack_walk, ["Profile"]);
    assert_eq!(
        (kernel.buffer_kb, kernel.max_buffers),
        (Some(1024), Some(256))
    );
    assert_eq!(clr.providers[0].properties, EnableProperties::STACK_TRACE);
    assert_eq!(clr.providers[1].keywords, None);
    assert_eq!(clr.file.as_deref(), Some("my clr.etl"));
    assert_eq!(clr.log_file_mode(), LogFileMode(0x102));
    assert_eq!(clr.clock, Some(ClockType::QPC));

    let line = "xperf -stop clr -stop -d merged.etl";
    assert_eq!(read(line).actions.len(), 3);
    assert_eq!(
        read("xperf -d merged.etl").actions.len(),
        2,
        "stops the kernel's session first"
    );
    let line = "xperf -start heaps -heap -pids 0 12 -stackwalk HeapAlloc+HeapRealloc";
    assert_eq!(started(line).processes, [0, 12]);
    let line = "xperf -start UserTrace -on Microsoft-Windows-Diagtrack+43ac453b-97cd-4b51-4376-db7c9bb963ac \
                -f C:\\tmp\\diaglog%d.etl -FileMode Newfile -MaxFile 50";
    assert_eq!(started(line).file_mode, Some(LogFileMode::NEWFILE));
}

#[test]
fn parse_provider_file_reads_lists_of_both_tools() {
    let none = ProviderSpec::new(ProviderRef::File("list.txt".into()));
    let list = "\u{feff}{1fbecc45-c060-4e7c-8a0e-0dbd6116181b} 0x00000000 5 IIS: SSL Filter\r\n\r\n; a remark\r\n\
                Microsoft-Windows-DotNETRuntime (LoaderKeyword,JitKeyword) win:Informational\n\
                \"Windows Kernel Trace\" (process,thread)\n";
    let listed = parse_provider_file(Tool::Logman, &none, list).unwrap();
    let providers: Vec<_> = listed
        .providers
        .iter()
        .map(|p| (p.provider.to_string(), p.level))
        .collect();
    let expected = [
        ("1fbecc45-c060-4e7c-8a0e-0dbd6116181b".to_owned(), Some(5)),
        ("\"Microsoft-Windows-DotNETRuntime\"".to_owned(), Some(4)),
    ];
    assert_eq!(providers, expected);
    assert_eq!(listed.kernel, ["process", "thread"]);
    let spec = ProviderSpec {
        level: Some(3),
        keywords: Some(Keywords::Flags(6)),
        ..none.clone()
    };
    let list = "d58c126f-b309-11d1-969e-0000f875a5bc  CommonProvider\n#1fbecc45-c060-4e7c-8a0e-0dbd6116181b;\n";
    let listed = parse_provider_file(Tool::Tracelog, &spec, list).unwrap();
    let guids: Vec<_> = listed
        .providers
        .iter()
        .map(|p| p.provider.to_string())
        .collect();
    assert_eq!(
        guids,
        [
            "d58c126f-b309-11d1-969e-0000f875a5bc",
            "1fbecc45-c060-4e7c-8a0e-0dbd6116181b"
        ]
    );
    assert!(
        listed
            .providers
            .iter()
            .all(|p| p.level == Some(3) && p.keywords == spec.keywords)
    );
    let failed = |tool, text| match parse_provider_file(tool, &none, text).unwrap_err() {
        Error::ProviderFile { line, error } => (line, error),
        other => panic!("{other}"),
    };
    let (line, error) = failed(Tool::Tracelog, "\nCommonProvider\n");
    assert_eq!((line, error.span), (2, 0..14));
    let (line, error) = failed(Tool::Logman, "A 0x1 very\n");
    assert_eq!(
        (line, error.expected.as_str()),
        (1, "a level from 0 to 255")
    );
}

#[test]
#[cfg_attr(miri, ignore = "Miri reads the tables for many minutes")]
fn parse_reads_common_logman_lines() {
    let s = started("logman start mytrace -pf logman.providers -o test.etl –ets");
    assert_eq!(
        s.providers[0].provider,
        ProviderRef::File("logman.providers".into())
    );
    assert!(s.direct);
    let s = started(
        "logman start hci -p '{8a1f9517-3a8c-4a9e-a018-4f17a200f277}' 0xffffffffffffffff 0xff -o \
         hci.etl -ets -bs 1024 -nb 16 64",
    );
    assert_eq!(s.providers[0].level, Some(255));
    assert_eq!(
        (s.buffer_kb, s.min_buffers, s.max_buffers),
        (Some(1024), Some(16), Some(64))
    );
    let s = started(
        "logman start \"NT Kernel Logger\" –p \"Windows Kernel Trace\" (process, thread,img) –o \
         systemevents.etl –ets",
    );
    assert_eq!(s.kernel, ["process", "thread", "img"]);
    let s = started(
        "logman create trace clr -p Microsoft-Windows-DotNETRuntime (LoaderKeyword,JitKeyword) \
         win:Verbose -f bincirc -max 100 -ft 1:30 -ct perf -mode globalsequence 0x100 -ets",
    );
    let enabled = s.providers[0].enablement(Registry::builtin()).unwrap();
    assert_eq!(enabled, Enablement::new(5, 0x18));
    assert_eq!(
        (s.flush_seconds, s.log_file_mode()),
        (Some(90), LogFileMode(0x4102))
    );
    let s = started("logman start x -p Microsoft-Windows-DotNETRuntime (Loader,Nope) -ets");
    assert_eq!(
        s.providers[0].enablement(Registry::builtin()),
        Err(Error::UnknownKeyword("Loader".to_owned()))
    );
    assert!(matches!(
        read("logman create trace x -p A").actions[..],
        [Action::Create(_)]
    ));
    let [Action::Update(s)] = &read("logman update x --p A --rt -ets").actions[..] else {
        panic!()
    };
    assert_eq!((s.removed.len(), s.modes_off), (1, LogFileMode::REAL_TIME));
}

#[test]
#[cfg_attr(miri, ignore = "Miri reads the tables for many minutes")]
fn parse_reads_common_tracelog_lines() {
    let s = started(
        "tracelog -start MyTrace -guid MyProvider.guid -f d:\\traces\\testtrace.etl -flag 2 -level 0xFFFF",
    );
    assert_eq!(s.providers[0].keywords, Some(Keywords::Flags(2)));
    assert_eq!(s.providers[0].level, Some(255));
    let s = started(&format!(
        "tracelog -start clr -guid #{RUNTIME} -guid *My-EventSource -matchanykw 0x1CCBD -matchallkw 0x8 \
         -level 5 -f clr.etl -cir 100 -b 64 -min 4 -max 16 -rt -UsePerfCounter -ls -ft 1 \
         -EventIdFilter -in 2 143 144 -PidFilter 1 42 -ExeFilter a.exe;b.exe"
    ));
    let enabled = s.providers[0].enablement(Registry::builtin()).unwrap();
    assert_eq!((enabled.any, enabled.all), (0x1ccbd, 8));
    assert_eq!(enabled.ids, IdFilter::In(vec![143, 144]));
    assert_eq!(s.providers[1].scope.executables, ["a.exe", "b.exe"]);
    assert_eq!(s.log_file_mode(), LogFileMode(0x8102));
    assert!(s.providers[1].provider.guid(Registry::builtin()).is_some());
    for (line, count) in [
        (
            "tracelog -enable clr -guid #e13c0d23-ccbc-4e12-931b-d9cc2eee27e4 -level 4",
            1,
        ),
        ("tracelog -disable clr", 1),
        ("tracelog -flush", 1),
        ("tracelog -q clr", 1),
        ("tracelog -l", 1),
        ("tracelog -stop clr", 1),
        ("tracelog -start -cm -fio -noprocess -f", 1),
    ] {
        assert_eq!(read(line).actions.len(), count, "{line}");
    }
}

#[test]
fn parse_reads_a_list_of_providers_without_a_tool() {
    let [Action::Enable { providers, .. }] = &read(&format!("{RUNTIME}:0x18:5+X:1")).actions[..]
    else {
        panic!()
    };
    assert_eq!(providers.len(), 2);
}

#[test]
fn parse_reports_the_span_of_an_error() {
    for (line, at, expected) in [
        ("", "", "a command of"),
        ("perf record", "perf", "xperf, logman, tracelog"),
        (
            "C:\\wpt\\wpr.exe -start GeneralProfile",
            "C:\\wpt\\wpr.exe",
            "xperf, logman, tracelog",
        ),
        ("xperf", "", "-start, -on"),
        ("xperf clr", "clr", "a switch of xperf"),
        ("xperf -start -on A", "-on", "the session's name"),
        ("xperf -start clr -on A:0xZZ:5", "0xZZ", "a keyword mask"),
        (
            "xperf -start clr -on A:0x1FFFFFFFFFFFFFFFF",
            "0x1FFFFFFFFFFFFFFFF",
            "64 bits",
        ),
        ("xperf -start clr -on A:1:256", "256", "a level"),
        ("xperf -start clr -on A:1:5:'stak'", "'stak'", "'stack'"),
        ("xperf -start clr -on A:1:5:1:1", "1", "a plus sign"),
        ("xperf -start clr -on A++B", "", "a provider's name"),
        (
            "xperf -start clr -on e13c0d23-ccbc-4e12-931b-d9cc2eee27eX:1",
            "e13c0d23-ccbc-4e12-931b-d9cc2eee27eX",
            "a GUID",
        ),
        ("xperf -on A:1:5", "A:1:5", "a kernel flag"),
        ("xperf -f x.etl", "-f", "-start NAME"),
        ("xperf -start a -Buffersze 3", "-Buffersze", "a switch"),
        (
            "xperf -start a -FileMode round",
            "round",
            "Sequential, Circular",
        ),
        ("xperf -merge a.etl", "", "the files to merge"),
        ("logman", "", "create, start"),
        ("logman make x", "make", "create, start"),
        ("logman start -ets", "", "the session's name"),
        ("logman start x -nb 1 y", "y", "how many"),
        ("logman start x -p A (a,b", "", "a parenthesis"),
        ("logman start x -p A 1 loud", "loud", "a level"),
        ("logman start x -ft 1:2:3:4", "1:2:3:4", "a time"),
        ("logman start x y", "y", "one name"),
        ("logman create counter x", "counter", "trace"),
        ("tracelog -f x", "", "-start, -stop"),
        ("tracelog -start x -cir -rt", "-rt", "largest size"),
        (
            "tracelog -start x -guid e13c0d23-ccbc-4e12-931b-d9cc2eee27e4",
            "e13c0d23-ccbc-4e12-931b-d9cc2eee27e4",
            "#GUID",
        ),
        ("tracelog -start x -level 5", "-level", "-guid"),
        (
            "tracelog -start x -guid f -PidFilter 9 1",
            "9",
            "a count of 8",
        ),
        ("tracelog -start x -stop", "-stop", "one action"),
    ] {
        let error = line.parse::<CommandLine>().unwrap_err();
        assert!(error.expected.contains(expected), "{line}: {error}");
        assert_eq!(line.get(error.span.clone()), Some(at), "{line}: {error}");
    }
    let wpr = "wpr -stop a.etl".parse::<CommandLine>().unwrap_err();
    assert!(wpr.hint.is_some_and(|hint| hint.contains("profiles")));
    let slip = "xperf -start a -Buffersze 3"
        .parse::<CommandLine>()
        .unwrap_err();
    assert_eq!(slip.hint.as_deref(), Some("did you mean -buffersize?"));
}

/// A space at the end of a keyword does not belong to it, in a list or alone.
#[test]
fn unknown_switches_are_answered_with_a_similar_one() {
    let hint = |line: &str| line.parse::<CommandLine>().unwrap_err().hint;
    assert_eq!(
        hint("xperf -start a -Buffersze 3").as_deref(),
        Some("did you mean -buffersize?")
    );
    // A switch of which every letter would have to change is not similar.
    assert_eq!(hint("tracelog -start a -q 3"), None);
}

#[test]
#[cfg_attr(miri, ignore = "Miri reads the tables for many minutes")]
fn explain_names_providers_like_an_unknown_one() {
    let line = read("xperf -start clr -on Microsoft-Windows-DotNETRuntim:0x10:5");
    let actions = line.explain();
    let unknown = actions[0].providers[0].unknown_provider.as_ref().unwrap();
    assert_eq!(unknown.name, "Microsoft-Windows-DotNETRuntim");
    assert!(unknown.nearest.contains(&"Microsoft-Windows-DotNETRuntime"));
    let line = read("xperf -start clr -on Microsoft-Windows-DotNETRuntime:0x10:5");
    assert!(line.explain()[0].providers[0].unknown_provider.is_none());
}

#[test]
fn masks_of_groups_are_empty_without_bits() {
    assert!(GroupMasks::default().is_empty());
    assert!(!GroupMasks::of([1]).is_empty());
}

#[test]
fn tracelog_prints_processes_only_if_there_are_some() {
    let with = "tracelog -start a -pids 2 4 8";
    assert_eq!(read(with).to_string(), with);
    let without = "tracelog -start a";
    assert_eq!(read(without).to_string(), without);
}

#[test]
fn logman_sessions_can_have_names_of_collectors() {
    let session = started("logman start counter -ets");
    assert_eq!(session.name, "counter");
    let error = "logman create counter a"
        .parse::<CommandLine>()
        .unwrap_err();
    assert!(error.to_string().contains("trace"), "{error}");
}

#[test]
fn logman_parses_a_keyword_without_parentheses() {
    let keywords = |line: &str| started(line).providers[0].keywords.clone();
    let named = Some(Keywords::Names(vec!["My Loader".to_owned()]));
    assert_eq!(keywords("logman start x -p Y \" My Loader \" -ets"), named);
    assert_eq!(
        keywords("logman start x -p Y \"( My Loader )\" -ets"),
        named
    );
    for nothing in ["\" \"", "\"( )\"", "()"] {
        let error = format!("logman start x -p Y {nothing} -ets")
            .parse::<CommandLine>()
            .unwrap_err();
        assert!(
            error.expected.contains("keywords in parentheses"),
            "{nothing}: {error}"
        );
    }
}

/// Text of names and files: any characters but those that separate in a list.
fn name() -> impl Strategy<Value = String> {
    prop_oneof![
        4 => "[A-Za-z][A-Za-z0-9_.-]{0,12}",
        1 => "[A-Za-z\"\\\\ &^(){}–-][^\\x00+:;,|]{0,10}"
            .prop_filter("no white space at its ends", |s| s.trim() == s && !s.is_empty()),
    ]
}

/// A plain name: not a number, a list or a GUID.
fn provider_name() -> impl Strategy<Value = String> {
    "[A-Z][A-Za-z]{0,8}(-[G-Z][A-Za-z]{0,5}){0,2}"
}

fn number() -> impl Strategy<Value = u32> {
    prop_oneof![0u32..300, any::<u32>()]
}

fn ids() -> impl Strategy<Value = IdFilter> {
    prop_oneof![
        Just(IdFilter::Any),
        vec(any::<u16>(), 0..4).prop_map(IdFilter::In),
        vec(any::<u16>(), 0..4).prop_map(IdFilter::Out),
    ]
}

fn guid() -> impl Strategy<Value = ProviderRef> {
    any::<[u8; 16]>().prop_map(|bytes| ProviderRef::Guid(etl_format::Guid::from_bytes(bytes)))
}

fn named() -> impl Strategy<Value = ProviderRef> {
    prop_oneof![guid(), provider_name().prop_map(ProviderRef::Name)]
}

fn xperf_spec() -> impl Strategy<Value = ProviderSpec> {
    let mask = proptest::option::of(any::<u64>().prop_map(Keywords::Mask));
    (
        named(),
        mask,
        proptest::option::of(any::<u8>()),
        prop_oneof![0u32..8, any::<u32>()],
    )
        .prop_map(|(provider, keywords, level, bits)| ProviderSpec {
            keywords,
            level,
            properties: EnableProperties(bits),
            ..ProviderSpec::new(provider)
        })
}

fn logman_spec() -> impl Strategy<Value = ProviderSpec> {
    let names = vec("[a-zA-Z][a-zA-Z ]{0,6}[a-z]", 1..3).prop_map(Keywords::Names);
    let keywords = prop_oneof![any::<u64>().prop_map(Keywords::Mask), names];
    let named = (named(), keywords, proptest::option::of(any::<u8>())).prop_map(|(p, k, level)| {
        ProviderSpec {
            keywords: Some(k),
            level,
            ..ProviderSpec::new(p)
        }
    });
    prop_oneof![
        named,
        name().prop_map(|file| ProviderSpec::new(ProviderRef::File(file))),
        provider_name().prop_map(|name| ProviderSpec::new(ProviderRef::Name(name))),
    ]
}

fn tracelog_specs() -> impl Strategy<Value = Vec<ProviderSpec>> {
    let provider = prop_oneof![
        guid(),
        provider_name().prop_map(ProviderRef::Hashed),
        provider_name().prop_map(ProviderRef::File),
    ];
    let keywords = prop_oneof![
        Just(None),
        any::<u64>().prop_map(|mask| Some(Keywords::Mask(mask))),
        any::<u32>().prop_map(|flags| Some(Keywords::Flags(flags))),
    ];
    let list = || vec("[a-z]{1,5}( [a-z])?", 0..3);
    let scope = (vec(any::<u32>(), 0..8), list(), list(), list()).prop_map(
        |(processes, executables, packages, apps)| Scope {
            processes,
            executables,
            packages,
            apps,
        },
    );
    let rest = (
        any::<u64>(),
        proptest::option::of(any::<u8>()),
        any::<u32>(),
        ids(),
        ids(),
        scope,
    );
    (vec(provider, 0..3), keywords, rest).prop_map(
        |(providers, keywords, (all, level, bits, ids, stack_ids, scope))| {
            let spec = |provider| ProviderSpec {
                provider,
                keywords: keywords.clone(),
                all,
                level,
                properties: EnableProperties(bits),
                ids: ids.clone(),
                stack_ids: stack_ids.clone(),
                scope: scope.clone(),
                arguments: String::new(),
                variant: crate::enable::Variant::Current,
            };
            providers.into_iter().map(spec).collect()
        },
    )
}

/// What all tools can say of a session.
fn session(specs: impl Strategy<Value = Vec<ProviderSpec>>) -> impl Strategy<Value = Session> {
    let some = || proptest::option::of(number());
    let clock = proptest::option::of(select(vec![
        ClockType::QPC,
        ClockType::SYSTEM_TIME,
        ClockType::CPU_CYCLE,
    ]));
    let mode = proptest::option::of(select(FILE_MODES.to_vec()));
    let head = (
        name(),
        specs,
        proptest::option::of(name()),
        mode,
        clock,
        any::<bool>(),
    );
    (head, (some(), some(), some(), some(), some())).prop_map(
        |((name, providers, file, file_mode, clock, rt), (kb, min, max, size, flush))| Session {
            name,
            providers,
            file,
            file_mode,
            clock,
            buffer_kb: kb,
            min_buffers: min,
            max_buffers: max,
            max_file: size,
            flush_seconds: flush,
            modes: LogFileMode(if rt { LogFileMode::REAL_TIME.0 } else { 0 }),
            direct: true,
            ..Session::default()
        },
    )
}

fn xperf() -> impl Strategy<Value = CommandLine> {
    let user = (session(vec(xperf_spec(), 0..3)), vec(provider_name(), 0..2)).prop_map(
        |(session, stack_walk)| {
            Box::new(Session {
                stack_walk,
                ..session
            })
        },
    );
    let flags = vec(
        select(vec!["PROC_THREAD", "LOADER", "Base"]).prop_map(str::to_owned),
        0..4,
    );
    let kernel = (session(Just(vec![])), flags).prop_map(|(session, kernel)| {
        Box::new(Session {
            kernel,
            name: KERNEL_SESSION.to_owned(),
            ..session
        })
    });
    let files = (vec(name(), 1..4), name(), any::<bool>());
    let action = prop_oneof![
        3 => user.prop_map(Action::Start),
        2 => kernel.prop_map(Action::Start),
        1 => session(vec(xperf_spec(), 0..3)).prop_map(|s| Action::Update(Box::new(s))),
        1 => name().prop_map(|session| Action::Stop { session, direct: true }),
        1 => (name(), vec(xperf_spec(), 1..3))
            .prop_map(|(session, providers)| Action::CaptureState { session, providers }),
        1 => (name(), proptest::option::of(name()))
            .prop_map(|(session, file)| Action::Flush { session, file, direct: true }),
    ];
    let merge = files.prop_map(|(inputs, output, pii)| Action::Merge {
        inputs,
        output,
        options: if pii {
            vec!["suppresspii".to_owned()]
        } else {
            vec![]
        },
    });
    (
        vec(action, 1..4),
        proptest::option::of(merge),
        proptest::option::of("[a-z][a-z .]{0,8}[a-z]"),
    )
        .prop_map(|(mut actions, merge, remark)| {
            actions.extend(merge);
            CommandLine {
                tool: Tool::Xperf,
                actions,
                remark,
            }
        })
}

fn logman() -> impl Strategy<Value = CommandLine> {
    let modes = prop_oneof![Just(0u32), any::<u32>()];
    let session = (
        session(vec(logman_spec(), 0..3)),
        vec(named(), 0..2),
        modes,
        any::<[bool; 3]>(),
    );
    let session = session
        .prop_map(|(s, removed, modes, [off, direct, kernel])| {
            let file: u32 = FILE_MODES.iter().map(|mode| mode.0).sum();
            let on = s.modes.0 | modes & !file;
            let off = if off {
                LogFileMode::REAL_TIME.0 & !on
            } else {
                0
            };
            Box::new(Session {
                removed: removed.into_iter().map(ProviderSpec::new).collect(),
                modes: LogFileMode(on),
                modes_off: LogFileMode(off),
                kernel: if kernel {
                    vec!["process".into(), "disk io".into()]
                } else {
                    vec![]
                },
                // The tool has one option for both.
                max_buffers: s.max_buffers.filter(|_| s.min_buffers.is_some()),
                direct,
                ..s
            })
        })
        .boxed();
    let action = prop_oneof![
        3 => session.clone().prop_map(Action::Start),
        1 => session.clone().prop_map(|s| Action::Create(Box::new(Session { direct: false, ..*s }))),
        1 => session.prop_map(Action::Update),
        1 => (name(), any::<bool>()).prop_map(|(session, direct)| Action::Stop { session, direct }),
        1 => name().prop_map(|session| Action::Delete { session }),
        1 => (proptest::option::of(name()), any::<bool>())
            .prop_map(|(session, direct)| Action::Query { session, direct }),
    ];
    action.prop_map(|a| CommandLine {
        tool: Tool::Logman,
        actions: vec![a],
        remark: None,
    })
}

fn tracelog() -> impl Strategy<Value = CommandLine> {
    let modes: u32 = super::tracelog::MODES.iter().map(|(_, mode)| mode.0).sum();
    let session = (session(tracelog_specs()), any::<u32>())
        .prop_map(move |(s, more)| {
            Box::new(Session {
                modes: LogFileMode(s.modes.0 | more & modes),
                // The line has the file's mode in the same switch as its size.
                file_mode: s.file_mode.filter(|mode| {
                    s.max_file.is_some()
                        || [LogFileMode::APPEND, LogFileMode::BUFFERING].contains(mode)
                }),
                max_file: s.max_file.filter(|_| s.file_mode.is_some()),
                ..s
            })
        })
        .boxed();
    let kernel = || {
        let mut switches = super::tracelog::KERNEL.to_vec();
        switches.extend(["eflag 2 0x7 0x20000004", "eflag 0"]);
        vec(select(switches).prop_map(str::to_owned), 0..3)
    };
    let action = prop_oneof![
        3 => session.clone().prop_map(Action::Start),
        1 => session.prop_map(Action::Update),
        1 => (name(), tracelog_specs(), kernel())
            .prop_map(|(session, providers, kernel)| Action::Enable { session, providers, kernel }),
        1 => (name(), tracelog_specs(), kernel())
            .prop_map(|(session, providers, kernel)| Action::Disable { session, providers, kernel }),
        1 => name().prop_map(|session| Action::Stop { session, direct: true }),
        1 => name().prop_map(|session| Action::SystemRundown { session }),
        1 => proptest::option::of(name())
            .prop_map(|session| Action::Query { session, direct: true }),
    ];
    action.prop_map(|a| CommandLine {
        tool: Tool::Tracelog,
        actions: vec![a],
        remark: None,
    })
}

/// Lines of words that mean something to one tool or another, in any order.
fn soup() -> impl Strategy<Value = String> {
    let word = prop_oneof![
        6 => select(vec![
            "-start", "-on", "-f", "-stop", "-merge", "-d", "–p", "-pf", "-ets", "-guid", "-level",
            "-rt", "--rt", "-nb", "-max", "-cir", "-mode", "-EventIdFilter", "-in", "-flush", "-q",
            "start", "stop", "create", "trace", "update", "query", "0x5", "7", "(a,", "b)", "(c)",
            "A:1:5:'stack'", "A+B", "-stackwalk", "-heap", "-matchanykw", "-filemode", "append",
            "-buffering", "-append", "-seq", "-n", "-cnf", "-a", "bin", "-ct", "perf", "-enable",
        ]).prop_map(str::to_owned),
        2 => name().prop_map(|name| quote(&name)),
    ];
    let tool = select(vec!["xperf", "logman", "tracelog", ""]);
    (tool, vec(word, 0..9)).prop_map(|(tool, words)| format!("{tool} {}", words.join(" ")))
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(512))]

    #[test]
    fn display_parses_as_the_same_value(
        line in prop_oneof![xperf(), logman(), tracelog()],
    ) {
        let text = line.to_string();
        prop_assert_eq!(text.parse(), Ok(line), "{}", text);
    }

    #[test]
    fn display_of_a_parsed_line_parses_the_same(line in soup()) {
        if let Ok(read) = line.parse::<CommandLine>() {
            let canonical = read.to_string();
            prop_assert_eq!(canonical.parse(), Ok(read), "{} -> {}", line, canonical);
        }
    }

    #[test]
    fn parse_accepts_or_refuses_any_line(line in prop_oneof![
        any::<String>(),
        any::<String>().prop_map(|rest| format!("xperf -start x {rest}")),
        any::<String>().prop_map(|rest| format!("logman start {rest}")),
        any::<String>().prop_map(|rest| format!("tracelog -{rest}")),
        soup(),
    ]) {
        match line.parse::<CommandLine>() {
            Ok(read) => prop_assert!(read.actions.len() <= line.len()),
            Err(error) => {
                prop_assert!(line.get(error.span.clone()).is_some(), "{:?}", error);
                prop_assert!(!error.to_string().is_empty());
            }
        }
    }
}
