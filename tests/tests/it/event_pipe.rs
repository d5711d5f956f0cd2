//! Simulated EventPipe sessions: their traces are like the traces of recorded streams.

use etl_format::Guid;
use etl_format::read::{Header, Options, Order, Trace};
use etl_schema::providers::{CLR_RUNDOWN, CLR_RUNTIME, DOTNET_EVENT_PIPE, DOTNET_SAMPLE_PROFILER};
use etl_synth::{Script, Simulation};
use etl_test_support::{needs, traces};
use etl_verify::{Report, TraceOrigin, Verdict, Verifier};

/// A process of .NET 8, and a session with these properties that is stopped after two seconds.
fn recorded(session: &str, enabled: &str) -> Vec<u8> {
    simulated("8.0.0", "", r#"at "2s" { stop "app" }"#, session, enabled)
}

/// A process of a version of .NET that exits after two seconds, and a session that ends with it.
fn recorded_to_the_exit(version: &str, enabled: &str) -> Vec<u8> {
    simulated(version, r#"exit="2s""#, "", "", enabled)
}

/// A process of a version of .NET with these properties, and a session with these properties, up
/// to an end.
fn simulated(version: &str, process: &str, end: &str, session: &str, enabled: &str) -> Vec<u8> {
    let script = format!(
        r#"scenario "pipe" seed=3
process "Orders.exe" pid=4312 threads=2 command-line="Orders.exe --serve" {process} {{
    clr "core" version="{version}" {{
        assembly "Orders" {{
            module "C:\\App\\Orders.dll" {{ methods 60 ready=20 }}
        }}
    }}
    every "20ms" from="1.1s" until="1.9s" {{ jit 2 }}
}}
process "Other.exe" pid=5000 {{
    clr "core" version="8.0.0" {{
        assembly "Other" {{ module "C:\\App\\Other.dll" {{ methods 10 }} }}
    }}
}}
at "1s" {{ session "app" kind="eventpipe" process="Orders.exe" file="app.etl" {session} {{ {enabled} }} }}
{end}
"#
    );
    let scenario = Script::new("pipe.kdl", &script).parse().unwrap();
    let files = Simulation::new(&scenario).run_in_memory().unwrap();
    let [file] = &files[..] else {
        panic!("one trace");
    };
    file.bytes.clone()
}

const RUNTIME: &str = r#"enable "runtime" keywords=0x1CCBD level=5"#;

/// An event of a trace.
#[derive(Debug, PartialEq, Eq)]
struct Seen {
    provider: Guid,
    id: u16,
    pid: u32,
}

fn events(bytes: &[u8]) -> Vec<Seen> {
    let mut trace = Trace::open(bytes, &Options::default()).unwrap();
    assert!(trace.header().is_event_pipe() && trace.header().is_closed());
    let mut records = trace.records(Order::Time).unwrap();
    let mut out = Vec::new();
    while let Some(record) = records.next_record().unwrap() {
        if let Header::Event(header) = record.header() {
            out.push(Seen {
                provider: header.provider,
                id: header.descriptor.id,
                pid: header.process_id.get(),
            });
        }
    }
    out
}

fn verified(bytes: &[u8]) -> Report {
    let report = Verifier::new().verify(bytes, "app.etl").unwrap();
    assert_eq!(report.origin, TraceOrigin::EventPipe);
    report
}

#[test]
fn stopped_session_ends_with_rundown_and_process() {
    let trace = recorded("", RUNTIME);
    let events = events(&trace);
    // One process, and nothing of the kernel.
    assert!(events.iter().all(|event| event.pid == 4312));
    let is_rundown = |event: &&Seen| event.provider == CLR_RUNDOWN;
    let rundown: Vec<u16> = events.iter().filter(is_rundown).map(|e| e.id).collect();
    // The end rundown lists domains after their modules; there is no start rundown.
    for id in [143, 145, 147, 151, 153, 155, 157] {
        assert!(!rundown.contains(&id) || id == 151, "{id}");
    }
    let place = |id| rundown.iter().position(|other| *other == id).unwrap();
    assert!(place(148) < place(144) && place(144) < place(146));
    assert!(place(154) < place(156) && place(156) < place(158));
    assert_eq!(rundown.last(), Some(&146));
    // All events of the runtime come first, then the name of the process, then the rundown.
    assert_eq!(
        parts(&events),
        [CLR_RUNTIME, DOTNET_EVENT_PIPE, CLR_RUNDOWN]
    );
    let report = verified(&trace);
    assert!(report.verdict.passes(), "{}", report.text());
}

/// The providers of consecutive events.
fn parts(events: &[Seen]) -> Vec<Guid> {
    let mut parts: Vec<Guid> = events.iter().map(|event| event.provider).collect();
    parts.dedup();
    parts
}

/// The events of a recorded stream of a process that exits.
fn stream(name: &str) -> Vec<Seen> {
    let file = std::fs::File::open(traces().join("nettrace").join(name)).unwrap();
    let options = etl_nettrace::Options {
        order: etl_nettrace::Order::Time,
        ..etl_nettrace::Options::default()
    };
    let packed = flate2::read::GzDecoder::new(file);
    let mut reader = etl_nettrace::Reader::with_options(packed, &options).unwrap();
    let pid = reader.header().process_id.unwrap();
    let mut events = Vec::new();
    while let Some(event) = reader.next_event().unwrap() {
        events.push(Seen {
            provider: provider(event.provider()),
            id: u16::try_from(event.id()).unwrap(),
            pid: u32::try_from(pid).unwrap(),
        });
    }
    events
}

/// The GUID of a provider that a stream names.
fn provider(name: &str) -> Guid {
    match name {
        "Microsoft-Windows-DotNETRuntime" => CLR_RUNTIME,
        "Microsoft-Windows-DotNETRuntimeRundown" => CLR_RUNDOWN,
        "Microsoft-DotNETCore-EventPipe" => DOTNET_EVENT_PIPE,
        other => panic!("{other}"),
    }
}

/// The kinds of events of a provider after the last load of a method: the exit.
fn kinds_of_exit(events: &[Seen]) -> Vec<u16> {
    let is_load = |event: &Seen| event.provider == CLR_RUNTIME && event.id == 143;
    let last_load = events.iter().rposition(is_load).unwrap();
    let of_runtime = events[last_load..].iter();
    let of_runtime = of_runtime.filter(|event| event.provider == CLR_RUNTIME);
    let unloads = of_runtime.filter(|event| [144, 153, 155, 157].contains(&event.id));
    let mut kinds: Vec<u16> = unloads.map(|event| event.id).collect();
    kinds.sort_unstable();
    kinds.dedup();
    kinds
}

#[needs(traces)]
#[test]
fn exit_is_reported_as_real_runtimes_report_it() {
    for (version, recording) in [
        ("3.1.0", "3.1-1CCBD-5.nettrace.gz"),
        ("8.0.0", "8.0-1CCBD-5.nettrace.gz"),
        ("10.0.0", "10.0-1CCBD-5.nettrace.gz"),
    ] {
        let trace = recorded_to_the_exit(version, RUNTIME);
        let simulated = events(&trace);
        let real = stream(recording);
        let unloads = kinds_of_exit(&real);
        assert_eq!(kinds_of_exit(&simulated), unloads, "{version}");
        assert_eq!(unloads.is_empty(), version == "3.1.0");
        assert_eq!(parts(&simulated), parts(&real), "{version}");
        // The last unloads are a module, its assembly, and the app domain.
        if !unloads.is_empty() {
            assert_eq!(last_of_runtime(&simulated), [153, 155, 157]);
            assert_eq!(last_of_runtime(&real), [153, 155, 157]);
        }
        // What was unloaded is listed afterwards.
        let report = verified(&trace);
        assert!(report.verdict.passes(), "{version}: {}", report.text());
    }
}

/// The last three events of the runtime.
fn last_of_runtime(events: &[Seen]) -> Vec<u16> {
    let of_runtime = events.iter().filter(|event| event.provider == CLR_RUNTIME);
    let ids: Vec<u16> = of_runtime.map(|event| event.id).collect();
    ids[ids.len() - 3..].to_vec()
}

#[test]
fn sampling_thread_suspends_and_samples_all_threads() {
    let sampler = r#"enable "Microsoft-DotNETCore-SampleProfiler" level=5;
        enable "runtime" keywords=0x9 level=4"#;
    let trace = recorded("", sampler);
    let events = events(&trace);
    let is_sample = |event: &&Seen| event.provider == DOTNET_SAMPLE_PROFILER;
    let samples = events.iter().filter(is_sample).count();
    // Two workers and the finalizer, a second long.
    assert!((2_000..=3_000).contains(&samples), "{samples}");
    // The first round: what a real stream has between two rounds.
    let ids: Vec<u16> = events.iter().map(|event| event.id).collect();
    let first = events.iter().position(|event| is_sample(&event)).unwrap();
    assert_eq!(ids[first - 2..first], [9, 8]);
    let after = ids[first..].iter().position(|id| *id != 0).unwrap();
    assert_eq!(ids[first + after..first + after + 2], [7, 3]);
    let report = verified(&trace);
    assert!(report.verdict.passes(), "{}", report.text());
}

#[test]
fn session_without_rundown_is_incomplete() {
    let trace = recorded("no-rundown=#true", RUNTIME);
    let events = events(&trace);
    assert!(events.iter().all(|event| event.provider != CLR_RUNDOWN));
    let report = verified(&trace);
    assert_eq!(report.verdict, Verdict::Incomplete);
    assert!(report.findings.iter().any(|f| f.rule == "rundown.none"));
}

#[test]
fn mask_of_0_requests_events_without_keyword() {
    let nothing = recorded("no-rundown=#true", r#"enable "runtime" keywords=0 level=5"#);
    let runtime = |bytes: &[u8]| {
        let events = events(bytes);
        events.iter().filter(|e| e.provider == CLR_RUNTIME).count()
    };
    assert_eq!(runtime(&nothing), 0);
    assert!(runtime(&recorded("no-rundown=#true", RUNTIME)) > 10);
}

#[test]
fn stacks_are_in_the_events_of_a_session() {
    let stacks = r#"enable "runtime" keywords=0x40008010 level=5"#;
    let trace = recorded("", stacks);
    let events = events(&trace);
    let is_stack = |e: &Seen| e.provider == CLR_RUNTIME && e.id == 82;
    assert!(!events.iter().any(is_stack));
}
