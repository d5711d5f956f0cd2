//! Simulated EventPipe sessions: their traces are like the traces of recorded streams.

use etl_format::read::{Header, Options, Order, Trace};
use etl_schema::providers::{CLR_RUNDOWN, CLR_RUNTIME, DOTNET_EVENT_PIPE};
use etl_synth::{Script, Simulation};
use etl_verify::{Report, TraceOrigin, Verdict, Verifier};

/// A process of .NET 8, and a session with these properties that is stopped after two seconds.
fn recorded(session: &str, enabled: &str) -> Vec<u8> {
    let script = format!(
        r#"scenario "pipe" seed=3
process "Orders.exe" pid=4312 threads=2 command-line="Orders.exe --serve" {{
    clr "core" version="8.0.0" {{
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
at "2s" {{ stop "app" }}
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
    provider: etl_format::Guid,
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
    // The rundown follows all events of the runtime, and the process is named last.
    let first = events
        .iter()
        .position(|e| e.provider == CLR_RUNDOWN)
        .unwrap();
    assert!(events[first..].iter().all(|e| e.provider != CLR_RUNTIME));
    assert_eq!(events.last().unwrap().provider, DOTNET_EVENT_PIPE);
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
