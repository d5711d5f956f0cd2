//! Tiers of methods: a simulated runtime that counts calls compiles them again as recorded runtimes
//! did, in the same order, for the same tiers, with the same versions.

use etl_events::eventpipe::{ConvertOptions, convert};
use etl_format::cursor::Cursor;
use etl_format::read::{Header, Options, Order, Trace};
use etl_schema::providers::CLR_RUNTIME;
use etl_synth::{Script, Simulation};
use etl_test_support::{needs, traces};

/// The load of a method at level 5, and the events of background compilation.
const LOAD: u16 = 143;
const PAUSE: u16 = 281;
const RESUME: u16 = 282;
const START: u16 = 283;
const STOP: u16 = 284;

/// Tiers, as flags of methods have them.
const OPTIMIZED: u32 = 2;
const TIER_0: u32 = 3;
const TIER_1: u32 = 4;
const OSR: u32 = 5;
const INSTRUMENTED: u32 = 6;
const INSTRUMENTED_OPTIMIZED: u32 = 7;

/// The methods that the program of the recordings calls often.
const HOT: [&str; 3] = [
    "Work::HotLoop",
    "Work::Twice",
    "System.Threading.Thread::Sleep",
];

/// An event of the runtime.
struct Seen {
    id: u16,
    version: u8,
    tid: u32,
    milliseconds: i64,
    payload: Vec<u8>,
}

/// New code of a method.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Load {
    method: String,
    tier: u32,
    /// 0 for the first code of a method.
    version: u64,
}

fn text(cursor: &mut Cursor<'_>) -> String {
    let units = cursor.utf16z().unwrap().chunks_exact(2);
    let units: Vec<u16> = units
        .map(|unit| u16::from_le_bytes([unit[0], unit[1]]))
        .collect();
    String::from_utf16(&units).unwrap()
}

impl Seen {
    fn load(&self) -> Load {
        let mut cursor = Cursor::new(&self.payload);
        // Ids of method and module, address, size, token.
        cursor.take(32).unwrap();
        let flags = cursor.u32().unwrap();
        let namespace = text(&mut cursor);
        let name = text(&mut cursor);
        text(&mut cursor);
        cursor.u16().unwrap();
        let version = cursor.u64();
        assert_eq!(self.version, if version.is_some() { 2 } else { 1 });
        Load {
            method: format!("{namespace}::{name}"),
            tier: flags >> 7 & 7,
            version: version.unwrap_or(0),
        }
    }
}

fn seen(trace: &[u8]) -> Vec<Seen> {
    let mut trace = Trace::open(trace, &Options::default()).unwrap();
    let frequency = trace.header().perf_freq;
    let mut records = trace.records(Order::Time).unwrap();
    let mut seen = Vec::new();
    while let Some(record) = records.next_record().unwrap() {
        if let Header::Event(header) = record.header()
            && header.provider == CLR_RUNTIME
        {
            seen.push(Seen {
                id: header.descriptor.id,
                version: header.descriptor.version,
                tid: header.thread_id.get(),
                milliseconds: record.timestamp().get() / (frequency / 1000),
                payload: record.payload().to_vec(),
            });
        }
    }
    seen
}

fn recorded(name: &str) -> Vec<Seen> {
    let path = traces().join("nettrace").join(name);
    let packed = flate2::read::GzDecoder::new(std::fs::File::open(path).unwrap());
    let converted = convert(packed, Vec::new(), &ConvertOptions::default()).unwrap();
    seen(&converted.output)
}

/// The calls of the program of the recordings: 61, a pause, 139, another pause, and more of one.
/// The pauses of its loop are longer here, so that the compilations are done between calls.
fn simulated(version: &str, keywords: &str, calls: &str) -> Vec<Seen> {
    let script = format!(
        r#"scenario "tiers" seed=5
process "Work.exe" start="100ms" threads=1 {{
    clr "core" version="{version}" {{
        assembly "Core" {{
            module "C:\\Core.dll" kind="r2r" {{
                method "System.Threading.Thread::Sleep" kind="precompiled" ready=#false
            }}
        }}
        assembly "Work" {{
            module "C:\\Work.dll" {{
                method "Work::HotLoop" ready=#false
                method "Work::Twice" ready=#false
                methods 5 ready=0
            }}
        }}
    }}
    {calls}
}}
at "900ms" {{ session "s" kind="eventpipe" process="Work.exe" file="s.etl" no-rundown=#true {{
    enable "runtime" keywords={keywords} level=5
}} }}
at "3s" {{ stop "s" }}
"#
    );
    let scenario = match Script::new("tiers.kdl", &script).parse() {
        Ok(scenario) => scenario,
        Err(errors) => panic!("{errors:#?}"),
    };
    let files = Simulation::new(&scenario).run_in_memory().unwrap();
    seen(&files[0].bytes)
}

const CALLS: &str = r#"
    every "20us" from="1s" until="1.00122s" {
        call "Work::HotLoop" rounds=100; call "Work::Twice"; call "System.Threading.Thread::Sleep"
    }
    every "20us" from="1.25s" until="1.25278s" {
        call "Work::HotLoop" rounds=100; call "Work::Twice"; call "System.Threading.Thread::Sleep"
    }
    at "1.55s" { call "Work::HotLoop" times=200 rounds=100 }
    at "1.8s" { call "Work::HotLoop" times=50 rounds=100 }
"#;

/// The loads of the methods that are called often.
fn hot_loads(events: &[Seen]) -> Vec<Load> {
    let loads = events.iter().filter(|event| event.id == LOAD);
    let loads = loads.map(Seen::load);
    loads
        .filter(|load| HOT.contains(&load.method.as_str()))
        .collect()
}

#[needs(traces)]
#[test]
fn called_methods_reach_the_tiers_of_recorded_ones() {
    for (version, recording) in [
        ("3.1.23", "3.1-1CCBD-5.nettrace.gz"),
        ("8.0.4", "8.0-1CCBD-5.nettrace.gz"),
        ("10.0.0", "10.0-1CCBD-5.nettrace.gz"),
    ] {
        let real = hot_loads(&recorded(recording));
        let mut simulated = hot_loads(&simulated(version, "0x10", CALLS));
        // In 3.1 the loop of the program is optimized, and this method part of its code.
        if version.starts_with("3.") {
            simulated.retain(|load| !load.method.ends_with("Sleep"));
        }
        assert_eq!(simulated, real, "{version}");
    }
}

/// Background compilation: a pause when methods run for the first time, the end of the pause at
/// least 100 ms later, and then compilations, all on one thread. Returns how many there are.
fn check_background(events: &[Seen], name: &str) -> usize {
    let mut paused: Option<i64> = None;
    let mut compiled = 0;
    let mut is_compiling = false;
    let mut worker = None;
    for event in events {
        match event.id {
            PAUSE => {
                assert!(paused.is_none(), "{name}");
                assert_ne!(Some(event.tid), worker, "{name}");
                paused = Some(event.milliseconds);
            }
            RESUME => {
                // A recording may begin in a pause.
                if let Some(since) = paused.take() {
                    assert!(event.milliseconds - since >= 99, "{name}");
                }
            }
            START => {
                assert!(!is_compiling && paused.is_none(), "{name}");
                is_compiling = true;
            }
            STOP => {
                assert!(is_compiling, "{name}");
                is_compiling = false;
                compiled += 1;
            }
            _ => continue,
        }
        if event.id != PAUSE {
            assert_eq!(*worker.get_or_insert(event.tid), event.tid, "{name}");
        }
    }
    compiled
}

#[needs(traces)]
#[test]
fn background_compilation_is_reported_as_recorded() {
    let real = recorded("8.0-sampled.nettrace.gz");
    assert!(check_background(&real, "real") >= 4);
    let simulated = simulated("8.0.4", "0x1000000010", CALLS);
    assert!(check_background(&simulated, "simulated") >= 2);
    // The later loads are on the thread that reports the compilations.
    let worker = simulated
        .iter()
        .find(|event| event.id == START)
        .unwrap()
        .tid;
    let later = simulated
        .iter()
        .filter(|event| event.id == LOAD && event.version == 2);
    assert!(later.into_iter().all(|event| event.tid == worker));
}

#[test]
fn methods_that_keep_appearing_prolong_the_delay() {
    // A method runs for the first time every 60 ms, five times.
    let calls = r#"
    at "1s" { call "Work::Twice" }
    every "60ms" from="1.06s" until="1.36s" { jit 1; call "Work::Twice" times=20 }
    at "1.9s" { call "Work::Twice" times=29 }
    at "2s" { call "Work::Twice" }
"#;
    let events = simulated("8.0.4", "0x1000000010", calls);
    let pauses: Vec<i64> = at(&events, PAUSE);
    let resumes: Vec<i64> = at(&events, RESUME);
    assert_eq!((pauses.len(), resumes.len()), (1, 1));
    let delay = resumes[0] - pauses[0];
    assert!((400..=500).contains(&delay), "{delay}");
    // Calls before the end of the delay are not counted: the thirtieth counted one is the last.
    let twice = hot_loads(&events).pop().unwrap();
    assert_eq!((twice.tier, twice.version), (INSTRUMENTED, 1));
    let last = events.iter().rfind(|event| event.id == LOAD).unwrap();
    assert!(last.milliseconds - pauses[0] >= 1000);
}

/// When events of a kind happened.
fn at(events: &[Seen], id: u16) -> Vec<i64> {
    let events = events.iter().filter(|event| event.id == id);
    events.map(|event| event.milliseconds).collect()
}

/// The tiers and versions of the loads of the methods that are called.
fn tiers(version: &str, calls: &str) -> Vec<(u32, u64)> {
    let loads = hot_loads(&simulated(version, "0x10", calls));
    loads.iter().map(|load| (load.tier, load.version)).collect()
}

#[test]
fn long_loops_are_replaced_while_they_run() {
    let calls =
        r#"at "1s" { call "Work::HotLoop" times=2 rounds=9999; call "Work::Twice" rounds=999 }"#;
    // Nine reports of the first call of a method are not enough.
    assert_eq!(tiers("8.0.4", calls), [(TIER_0, 0), (OSR, 1), (TIER_0, 0)]);
    // Code that runs cannot be replaced: it is optimized from the beginning.
    assert_eq!(tiers("6.0.0", calls), [(OPTIMIZED, 0), (OPTIMIZED, 0)]);
}

#[test]
fn precompiled_methods_are_compiled_when_called_often() {
    let calls = r#"
    at "1s" { call "System.Threading.Thread::Sleep" }
    at "1.3s" { call "System.Threading.Thread::Sleep" times=30 }
    at "1.4s" { call "System.Threading.Thread::Sleep" times=29 }
    at "1.5s" { call 1 times=1 }
"#;
    let expected = [(INSTRUMENTED_OPTIMIZED, 1), (TIER_1, 2)];
    assert_eq!(tiers("8.0.4", calls), expected);
}
