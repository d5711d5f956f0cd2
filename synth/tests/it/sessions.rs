//! Where enablements reach, and what a consumer of a real-time session learns of losses.

use etl_format::Guid;
use etl_format::constants::BufferFlags;
use etl_format::read::{Options, Trace};
use etl_schema::encode::OwnedValue;
use etl_schema::providers::{CLR_RUNDOWN, CLR_RUNTIME};
use etl_synth::truth::{BufferOutcome, EventOutcome, InMemoryTruth, KnownEvent};
use etl_synth::{MemoryFileSystem, Script, Simulation};

use crate::common::{Files, run};

/// Events of a kind that a process raised, wherever they were recorded.
fn raised(truth: &InMemoryTruth, pid: u32, provider: Guid, id: u16) -> usize {
    let of_process = truth.events.iter().filter(|e| e.pid == pid);
    of_process
        .filter(|e| e.provider == provider && e.descriptor.id == id)
        .count()
}

/// Three processes with a CLR, and a session that enables the rundown provider in all of them.
const THREE: &str = r#"
process "A.exe" pid=100 { clr "core" { assembly "A" { module "C:\\A.dll" { methods 3 ready=3 } } } }
process "B.exe" pid=200 { clr "core" { assembly "B" { module "C:\\B.dll" { methods 3 ready=3 } } } }
process "C.exe" pid=300 { clr "core" { assembly "C" { module "C:\\C.dll" { methods 3 ready=3 } } } }
at "1s" { session "all" file="all.etl" { enable "rundown" keywords=0x138 level=5; enable "runtime" keywords=0x8 level=5 } }
"#;

#[test]
fn enablement_reaches_only_processes_of_its_session_and_filter() {
    // Each enablement makes the CLRs that it reaches list everything for all their sessions.
    let lists = |steps: &str| {
        let (truth, _) = run(&format!("{THREE}\n{steps}"));
        [100, 200, 300].map(|pid| raised(&truth, pid, CLR_RUNDOWN, 148))
    };
    assert_eq!(lists(""), [1, 1, 1]);
    let private = r#"at "2s" { session "own" process="B.exe" file="own.etl" { enable "rundown" keywords=0x138 level=5 } }"#;
    assert_eq!(lists(private), [1, 2, 1]);
    // The end of the private session changes what its process sees, which lists again for the
    // session that remains.
    let ended = format!("{private}\nat \"4s\" {{ stop \"own\" }}");
    assert_eq!(lists(&ended), [1, 3, 1]);
    let by_id = r#"at "2s" { session "two" file="two.etl" { enable "rundown" keywords=0x138 level=5 processes="100 300" } }"#;
    assert_eq!(lists(by_id), [2, 1, 2]);
    let by_name = r#"at "2s" { session "two" file="two.etl" { enable "rundown" keywords=0x138 level=5 executables="c.exe" } }"#;
    assert_eq!(lists(by_name), [1, 1, 2]);
    // The processes of the old filter learn that they are left, and those of the new one that they
    // are reached.
    let other = format!(
        "{by_name}\nat \"4s\" {{ enable \"rundown\" in=\"two\" keywords=0x138 level=5 processes=\"100\" }}"
    );
    assert_eq!(lists(&other), [2, 1, 3]);
    // Without filters, all of them.
    let everywhere =
        r#"at "2s" { session "two" file="two.etl" { enable "rundown" keywords=0x138 level=5 } }"#;
    assert_eq!(lists(everywhere), [2, 2, 2]);
}

/// Real private sessions have these bytes in the first record, and Windows writes NEWFILE ones.
#[test]
fn private_session_writes_its_header_as_its_process_does() {
    for (mode, file) in [("circular", "own.etl"), ("newfile", "own%d.etl")] {
        let (_, files) = run(&format!(
            r#"{THREE}
at "2s" {{ session "own" process="B.exe" mode="{mode}" file="{file}" maximum-size=1 {{ enable "rundown" keywords=0x138 level=5 }} }}
at "4s" {{ stop "own" }}"#
        ));
        let bytes = &files[&file.replace("%d", "1")];
        assert_eq!(bytes[0x48..0x4c], [0, 0, 2, 0xc0]);
        let trace = Trace::open(&bytes[..], &Options::default()).unwrap();
        assert_eq!(trace.header().process_id, 200);
        assert_eq!(trace.header().dialect(), "private session");
        assert_ne!(trace.header().thread_id, 0);
    }
}

#[test]
fn capture_state_reaches_the_processes_of_the_session_alone() {
    let script = format!(
        r#"{THREE}
at "2s" {{ session "own" process="A.exe" file="own.etl" {{ enable "runtime" keywords=0x8 level=5 }} }}
at "3s" {{ session "some" file="some.etl" {{ enable "runtime" keywords=0x8 level=5 processes="300" }} }}
at "4s" {{ capture-state "runtime" in="own" }}
at "5s" {{ capture-state "runtime" in="some"; capture-state "runtime" in="some" }}
at "7s" {{ stop "own"; stop "some" }}"#
    );
    let (truth, _) = run(&script);
    // The first module of each list is that of the program.
    assert_eq!(
        [100, 200, 300].map(|pid| raised(&truth, pid, CLR_RUNTIME, 152)),
        [1, 0, 2]
    );
}

/// The header and the flags of the buffers of a file.
fn header_and_flags(bytes: &[u8]) -> (u32, u32, Vec<BufferFlags>) {
    let trace = Trace::open(bytes, &Options::default()).unwrap();
    let header = trace.header();
    let flags = trace.buffers().iter().skip(1).map(|b| b.flags).collect();
    (header.events_lost, header.buffers_lost, flags)
}

#[test]
fn file_of_a_consumer_counts_the_events_that_its_session_lost() {
    let (truth, files) = run(r#"
machine processors=2
process "App.exe" threads=4 { clr "core" { assembly "A" { module "C:\\A.dll" { methods 9 ready=9 } } } }
every "2ms" from="1.1s" until="4s" { in "App.exe" { allocate 8 } }
at "1s" {
    session "slow" mode="real-time independent" buffer-kb=4 buffers=6 flush="200ms" { enable "runtime" keywords="GC" level=5 }
}
at "2s" { consume "slow" into="slow.etl" bytes-per-second=20000 }
at "3s" { leave "slow" }
at "3.2s" { consume "slow" into="late.etl" bytes-per-second=20000 }
at "4s" { stop "slow" }"#);
    let lost = |until: u64| {
        let lost = |e: &&KnownEvent| e.at <= until && e.outcome(0) == Some(EventOutcome::Lost);
        truth.events.iter().filter(lost).count() as u32
    };
    let (first, without, last) = (lost(2_000_000_000), lost(3_000_000_000), lost(u64::MAX));
    assert!(
        0 < first && first < without && without < last,
        "{first} {without} {last}"
    );
    // What was lost before the consumer came is counted as well: the session lost it.
    for (file, expected) in [("slow.etl", without), ("late.etl", last)] {
        let (events, buffers, _) = header_and_flags(&files[file]);
        // Events of an operation that began before the consumer left are raised a little later.
        assert!(
            events.abs_diff(expected) <= 8,
            "{file}: {events} {expected}"
        );
        assert_eq!(buffers, 0, "{file}");
    }
    let (events, _, flags) = header_and_flags(&files["late.etl"]);
    assert!(
        flags.iter().any(|f| f.has(BufferFlags::EVENTS_LOST)),
        "{flags:?}"
    );
    assert_eq!(u64::from(events), truth.sessions[0].events_lost);
}

#[test]
fn consumer_file_counts_buffers_that_newer_ones_replaced() {
    // The file of the session takes all events; in memory, new buffers replace those that the
    // consumer has not yet received.
    let (truth, files) = run(r#"
machine processors=1
process "App.exe" threads=2 { clr "core" { assembly "A" { module "C:\\A.dll" { methods 9 ready=9 } } } }
every "2ms" from="1.1s" until="4s" { in "App.exe" { allocate 8 } }
at "1s" {
    session "both" file="all.etl" mode="real-time" buffer-kb=4 buffers=8 flush="200ms" { enable "runtime" keywords="GC" level=5 }
    consume "both" into="seen.etl" bytes-per-second=20000
}
at "4s" { stop "both" }"#);
    let (events, buffers, _) = header_and_flags(&files["all.etl"]);
    assert_eq!((events, buffers), (0, 0));
    let (events, buffers, flags) = header_and_flags(&files["seen.etl"]);
    assert_eq!(events, 0);
    assert!(
        buffers > 10 && flags.iter().any(|f| f.has(BufferFlags::BUFFER_LOST)),
        "{buffers}"
    );
    // Numbers of lost buffers stay unused, so what is there and what is lost add up.
    let all = Trace::open(&files["all.etl"][..], &Options::default())
        .unwrap()
        .buffers()
        .len();
    assert_eq!(flags.len() + buffers as usize, all - 1);
    assert!(
        truth
            .buffers
            .iter()
            .all(|b| b.report.outcome != BufferOutcome::Lost)
    );
}

#[test]
fn only_precompiled_code_has_a_cold_part() {
    let script = r#"
process "App.exe" start="1.5s" {
    clr "desktop" version="4.8.4000.0" { assembly "A" {
        module "C:\\R.dll" kind="ngen" { methods 6 ready=6 cold=#true }
        module "C:\\I.dll" { methods 6 ready=6 }
    } }
    at "2s" { rejit 20; tier 20 }
}
at "1s" { session "s" file="s.etl" { enable "runtime" keywords=0x70 level=5 } }
at "4s" { stop "s" }"#;
    let mut scenario = Script::new("script", script)
        .parse()
        .unwrap_or_else(|e| panic!("{e:#?}"));
    // The model admits what a script cannot say; compiled code has no cold part in spite of it.
    scenario.processes[0].clrs[0].domains[0].assemblies[0].modules[1].methods[0].cold = true;
    let mut truth = InMemoryTruth::default();
    let files = &mut MemoryFileSystem::default();
    Simulation::new(&scenario)
        .observer(&mut truth)
        .run(files)
        .unwrap();
    let flags = |e: &KnownEvent| match e.field("MethodFlags") {
        Some(OwnedValue::UInt(flags)) => *flags,
        _ => 0,
    };
    let loads = truth
        .events
        .iter()
        .filter(|e| e.descriptor.id == 143)
        .map(flags);
    let (cold, hot): (Vec<u64>, Vec<u64>) = loads.partition(|flags| flags >> 28 == 1);
    assert_eq!(cold.len(), 6);
    // Flag 8: compiled.
    assert!(cold.iter().all(|flags| flags & 8 == 0), "{cold:x?}");
    assert!(
        hot.iter().filter(|flags| *flags & 8 != 0).count() > 6,
        "{hot:x?}"
    );
}

/// A kernel session with samples each millisecond from 1 s to 3 s.
fn sampled(session: &str, steps: &str) -> (InMemoryTruth, Files) {
    run(&format!(
        r#"
process "App.exe" pid=100 {{ every "10ms" from="1s" until="3s" {{ run "4ms" }} }}
at "1s" {{ session "k" file="k.etl" {{ kernel "processes profile" interval="1ms"; {session} }} }}
{steps}
at "3s" {{ stop "k" }}
"#
    ))
}

#[test]
fn changes_of_the_sampling_interval_are_logged() {
    let step = r#"at "2s" { kernel "processes profile" in="k" interval="2ms" }"#;
    let intervals = |truth: &InMemoryTruth| -> Vec<(String, Vec<OwnedValue>)> {
        let of = |e: &&KnownEvent| matches!(&*e.name, "SetInterval" | "CollectionStart");
        let found = truth.events.iter().filter(of);
        let values = |e: &KnownEvent| {
            e.fields[1..3]
                .iter()
                .map(|field| field.value.clone())
                .collect()
        };
        found.map(|e| (e.name.to_string(), values(e))).collect()
    };
    let values = |new: u32, old: u32| vec![OwnedValue::from(new), OwnedValue::from(old)];
    let start = ("CollectionStart".to_owned(), values(10_000, 10_000));
    let (truth, _) = sampled("", step);
    assert_eq!(
        intervals(&truth),
        [
            start.clone(),
            ("SetInterval".to_owned(), values(20_000, 10_000))
        ]
    );
    let same = r#"at "2s" { kernel "processes profile switches" in="k" }"#;
    assert_eq!(intervals(&sampled("", same).0), [start]);
}

#[test]
fn lost_events_are_lost_of_the_kernel_as_well() {
    let (truth, files) = sampled(r#"fault "lost-events" every=10"#, "");
    let of = |wanted| {
        let outcomes = truth.events.iter().flat_map(|event| &event.outcomes);
        outcomes.filter(|entry| entry.outcome == wanted).count()
    };
    let (lost, recorded) = (of(EventOutcome::Lost), of(EventOutcome::Recorded));
    assert!(
        lost > 100 && lost == (lost + recorded) / 10,
        "{lost} {recorded}"
    );
    let trace = Trace::open(files["k.etl"].as_slice(), &Options::default()).unwrap();
    assert_eq!(trace.header().events_lost as usize, lost);
}

#[test]
fn classic_events_are_recorded_by_low_flags_and_level() {
    let recorded = |keywords: u64, level: u8| {
        let (truth, _) = run(&format!(
            r#"provider "W" kind="wpp" {{
    event "Plain" level=4 message="a"
    event "One" level=4 keywords=0x1 message="b"
    event "Both" level=0 keywords=0x3 message="c"
    event "High" level=0 keywords=0x100000000 message="d"
}}
provider "K" kind="classic" {{ event "Any" opcode=1 level=3; event "Two" opcode=2 level=3 keywords=0x2 }}
process "App.exe" {{ at "2s" {{
    raise "W" "Plain"; raise "W" "One"; raise "W" "Both"; raise "W" "High"; raise "K" "Any"; raise "K" "Two"
}} }}
at "1s" {{ session "s" file="s.etl" {{
    enable "W" keywords={keywords:#x} level={level}; enable "K" keywords={keywords:#x} level={level}
}} }}
at "3s" {{ stop "s" }}"#
        ));
        Vec::from_iter(truth.events.into_iter().map(|e| e.name.to_string())).join(" ")
    };
    assert_eq!(recorded(0x3, 5), "Plain One Both Any Two");
    assert_eq!(recorded(0x1, 3), "Both Any");
    assert_eq!(recorded(0x2, 0), "Both");
    // Neither 0 nor bits above the flags are "all".
    assert_eq!(recorded(0, 5), "Plain Any");
    assert_eq!(recorded(0x1_0000_0000, 5), "Plain Any");
}
