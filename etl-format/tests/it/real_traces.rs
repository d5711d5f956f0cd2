//! Compares counts of every real trace with those of other tools.

use etl_format::Ticks;
use std::collections::BTreeMap;
use std::path::Path;

use etl_format::constants::RecordKind;
use etl_format::read::{Identity, Mode, Options, Order, OrderCheck, Record, Trace};
use etl_test_support::{all_traces, foreign, needs, trace};

/// Counts of a trace, as tests/foreign/dissect_counts.py prints them.
#[derive(Debug, Default, PartialEq, Eq)]
struct Counts {
    kinds: BTreeMap<String, u64>,
    events: BTreeMap<String, u64>,
    digest: u32,
    records: u64,
}

impl Counts {
    fn add(&mut self, record: &Record<'_>) {
        *self.kinds.entry(record.kind().to_string()).or_default() += 1;
        *self.events.entry(key(record)).or_default() += 1;
        self.records += 1;
        let mut hasher = crc32fast::Hasher::new_with_initial(self.digest);
        hasher.update(&[record.kind().0]);
        let timestamp = if record.has_own_timestamp() {
            record.timestamp()
        } else {
            Ticks::new(-1)
        };
        hasher.update(&timestamp.get().to_le_bytes());
        hasher.update(&(record.bytes().len() as i64).to_le_bytes());
        self.digest = hasher.finalize();
    }
}

fn key(record: &Record<'_>) -> String {
    let i = record.identity();
    let provider = if i.hook.is_some() {
        String::new()
    } else {
        i.provider.to_string()
    };
    let hook = i.hook.map_or(String::new(), |h| h.to_string());
    format!(
        "{}|{provider}|{hook}|{}|{}|{}|{}|{}|{}",
        record.kind(),
        i.id,
        i.version,
        i.opcode,
        i.task,
        i.level,
        i.keyword
    )
}

fn counts(bytes: &[u8]) -> Counts {
    let mut trace = Trace::open(bytes, &Options::default()).unwrap();
    let mut records = trace.records(Order::File).unwrap();
    let mut counts = Counts::default();
    while let Some(record) = records.next_record().unwrap() {
        counts.add(&record);
    }
    counts
}

fn map(value: &serde_json::Value) -> BTreeMap<String, u64> {
    value
        .as_object()
        .unwrap()
        .iter()
        .map(|(k, v)| (k.clone(), v.as_u64().unwrap()))
        .collect()
}

/// The `COUNT` lines of a PerfView baseline: event name to count.
fn baseline_counts(path: &Path) -> BTreeMap<String, u64> {
    let text = std::fs::read(path).expect("the baseline is readable");
    let text = String::from_utf8_lossy(&text);
    text.lines()
        .filter_map(|line| line.trim_start_matches('\u{feff}').strip_prefix("COUNT "))
        .filter_map(|line| line.trim().rsplit_once(':'))
        .filter_map(|(name, count)| Some((name.to_owned(), count.parse().ok()?)))
        .collect()
}

/// Compares kinds, identities, and a checksum of kinds, timestamps and sizes.
#[needs(traces, python)]
#[test]
fn dissect_has_the_same_counts() {
    let traces = all_traces();
    let theirs = foreign("dissect_counts.py", &traces);
    for (path, theirs) in traces.iter().zip(theirs) {
        assert!(
            theirs.get("error").is_none(),
            "{}: {theirs}",
            path.display()
        );
        let theirs = Counts {
            kinds: map(&theirs["kinds"]),
            events: map(&theirs["events"]),
            digest: u32::try_from(theirs["digest"].as_u64().unwrap()).unwrap(),
            records: theirs["records"].as_u64().unwrap(),
        };
        let ours = counts(&std::fs::read(path).unwrap());
        assert_eq!(ours, theirs, "{}", path.display());
    }
}

/// Every record has a known kind, and no way of checking the order finds late records.
#[needs(traces)]
#[test]
fn time_order_is_a_stable_sort() {
    for path in all_traces() {
        let bytes = std::fs::read(&path).unwrap();
        let by_file = {
            let mut trace = Trace::open(bytes.as_slice(), &Options::default()).unwrap();
            let mut records = trace.records(Order::File).unwrap();
            let mut all = Vec::new();
            while let Some(r) = records.next_record().unwrap() {
                assert!(
                    r.kind().name().is_some(),
                    "{}: {}",
                    path.display(),
                    r.kind()
                );
                let place = r.location();
                // Buffer 0 comes before all processors.
                let stream = (place.sequence_number != 0, place.processor);
                all.push((
                    r.timestamp(),
                    stream,
                    place.sequence_number,
                    place.in_buffer,
                    r.bytes().len(),
                ));
            }
            all.sort();
            all
        };
        for order in [
            OrderCheck::Lookahead,
            OrderCheck::Scan,
            OrderCheck::FirstRecord,
        ] {
            let options = Options {
                order_check: order,
                ..Options::default()
            };
            let mut trace = Trace::open(bytes.as_slice(), &options).unwrap();
            let mut records = trace.records(Order::Time).unwrap();
            let mut by_time = Vec::new();
            while let Some(r) = records.next_record().unwrap() {
                let place = r.location();
                let stream = (place.sequence_number != 0, place.processor);
                by_time.push((
                    r.timestamp(),
                    stream,
                    place.sequence_number,
                    place.in_buffer,
                    r.bytes().len(),
                ));
            }
            assert!(
                records.report().was_in_order(),
                "{}: {:?}",
                path.display(),
                records.report()
            );
            assert!(by_time == by_file, "{}: {order:?} differs", path.display());
        }
    }
}

/// Strict and salvage mode return the same records.
#[needs(traces)]
#[test]
fn intact_traces_have_no_damage() {
    for path in all_traces() {
        let bytes = std::fs::read(&path).unwrap();
        let options = Options {
            mode: Mode::Salvage,
            ..Options::default()
        };
        let mut trace = Trace::open(bytes.as_slice(), &options).unwrap();
        assert!(
            trace.damage().is_empty(),
            "{}: {:?}",
            path.display(),
            trace.damage()
        );
        let mut records = trace.records(Order::File).unwrap();
        let mut salvaged = Counts::default();
        while let Some(record) = records.next_record().unwrap() {
            salvaged.add(&record);
        }
        assert!(
            records.damage().is_empty(),
            "{}: {:?}",
            path.display(),
            records.damage()
        );
        assert_eq!(salvaged, counts(&bytes), "{}", path.display());
    }
}

/// PerfView's names of events: provider, and ids, opcodes of a classic class, or hooks.
enum Is {
    Event(&'static str, &'static [u16]),
    Classic(&'static str, u8),
    Hook(u16),
}

const RUNTIME: &str = "e13c0d23-ccbc-4e12-931b-d9cc2eee27e4";
const RUNDOWN: &str = "a669021c-c450-4609-a035-5af59af4df18";
const TRACING: &str = "b675ec37-bdb6-4648-bc92-f3fdc74d3ca2";
const IMAGE_ID: &str = "b3e675d7-2554-4f18-830b-2762732560de";

const NAMES: &[(&str, Is)] = &[
    (
        "Microsoft-Windows-DotNETRuntime/GC/Start",
        Is::Event(RUNTIME, &[1]),
    ),
    (
        "Microsoft-Windows-DotNETRuntime/GC/Stop",
        Is::Event(RUNTIME, &[2]),
    ),
    (
        "Microsoft-Windows-DotNETRuntime/GC/RestartEEStop",
        Is::Event(RUNTIME, &[3]),
    ),
    (
        "Microsoft-Windows-DotNETRuntime/GC/HeapStats",
        Is::Event(RUNTIME, &[4]),
    ),
    (
        "Microsoft-Windows-DotNETRuntime/GC/CreateSegment",
        Is::Event(RUNTIME, &[5]),
    ),
    (
        "Microsoft-Windows-DotNETRuntime/GC/RestartEEStart",
        Is::Event(RUNTIME, &[7]),
    ),
    (
        "Microsoft-Windows-DotNETRuntime/GC/SuspendEEStop",
        Is::Event(RUNTIME, &[8]),
    ),
    (
        "Microsoft-Windows-DotNETRuntime/GC/SuspendEEStart",
        Is::Event(RUNTIME, &[9]),
    ),
    (
        "Microsoft-Windows-DotNETRuntime/GC/AllocationTick",
        Is::Event(RUNTIME, &[10]),
    ),
    (
        "Microsoft-Windows-DotNETRuntime/GC/FinalizersStop",
        Is::Event(RUNTIME, &[13]),
    ),
    (
        "Microsoft-Windows-DotNETRuntime/GC/FinalizersStart",
        Is::Event(RUNTIME, &[14]),
    ),
    (
        "Microsoft-Windows-DotNETRuntime/GC/GenerationRange",
        Is::Event(RUNTIME, &[23]),
    ),
    (
        "Microsoft-Windows-DotNETRuntime/GC/FinalizeObject",
        Is::Event(RUNTIME, &[29]),
    ),
    (
        "Microsoft-Windows-DotNETRuntime/GC/Triggered",
        Is::Event(RUNTIME, &[35]),
    ),
    (
        "Microsoft-Windows-DotNETRuntime/Exception/Start",
        Is::Event(RUNTIME, &[80]),
    ),
    (
        "Microsoft-Windows-DotNETRuntime/Method/LoadVerbose",
        Is::Event(RUNTIME, &[143]),
    ),
    (
        "Microsoft-Windows-DotNETRuntime/Method/UnloadVerbose",
        Is::Event(RUNTIME, &[144]),
    ),
    (
        "Microsoft-Windows-DotNETRuntime/Method/JittingStarted",
        Is::Event(RUNTIME, &[145]),
    ),
    (
        "Microsoft-Windows-DotNETRuntime/Loader/DomainModuleLoad",
        Is::Event(RUNTIME, &[151]),
    ),
    (
        "Microsoft-Windows-DotNETRuntime/Loader/ModuleLoad",
        Is::Event(RUNTIME, &[152]),
    ),
    (
        "Microsoft-Windows-DotNETRuntime/Loader/ModuleUnload",
        Is::Event(RUNTIME, &[153]),
    ),
    (
        "Microsoft-Windows-DotNETRuntime/Loader/AssemblyLoad",
        Is::Event(RUNTIME, &[154]),
    ),
    (
        "Microsoft-Windows-DotNETRuntime/Loader/AssemblyUnload",
        Is::Event(RUNTIME, &[155]),
    ),
    (
        "Microsoft-Windows-DotNETRuntime/Loader/AppDomainLoad",
        Is::Event(RUNTIME, &[156]),
    ),
    (
        "Microsoft-Windows-DotNETRuntime/Loader/AppDomainUnload",
        Is::Event(RUNTIME, &[157]),
    ),
    (
        "Microsoft-Windows-DotNETRuntime/Runtime/Start",
        Is::Event(RUNTIME, &[187]),
    ),
    (
        "Microsoft-Windows-DotNETRuntimeRundown/Loader/DomainModuleDCStop",
        Is::Event(RUNDOWN, &[152]),
    ),
    (
        "Microsoft-Windows-DotNETRuntimeRundown/Loader/ModuleDCStop",
        Is::Event(RUNDOWN, &[154]),
    ),
    (
        "Microsoft-Windows-DotNETRuntimeRundown/Loader/AssemblyDCStop",
        Is::Event(RUNDOWN, &[156]),
    ),
    (
        "Microsoft-Windows-DotNETRuntimeRundown/Loader/AppDomainDCStop",
        Is::Event(RUNDOWN, &[158]),
    ),
    (
        "Microsoft-Windows-DotNETRuntimeRundown/Method/DCStopComplete",
        Is::Event(RUNDOWN, &[146]),
    ),
    (
        "Microsoft-Windows-DotNETRuntimeRundown/Method/DCStopInit",
        Is::Event(RUNDOWN, &[148]),
    ),
    (
        "Microsoft-Windows-DotNETRuntimeRundown/Runtime/Start",
        Is::Event(RUNDOWN, &[187]),
    ),
    (
        "Microsoft-Windows-Kernel-EventTracing/ETW_TASK_PROVIDER/ETW_OPCODE_REGISTER",
        Is::Event(TRACING, &[8]),
    ),
    (
        "Microsoft-Windows-Kernel-EventTracing/ETW_TASK_PROVIDER/ETW_OPCODE_UNREGISTER",
        Is::Event(TRACING, &[9]),
    ),
    (
        "Microsoft-Windows-Kernel-EventTracing/ETW_TASK_PROVIDER/ETW_OPCODE_ENABLE",
        Is::Event(TRACING, &[14]),
    ),
    ("KernelTraceControl/ImageID", Is::Classic(IMAGE_ID, 0)),
    ("KernelTraceControl/ImageID/None", Is::Classic(IMAGE_ID, 32)),
    (
        "KernelTraceControl/ImageID/DbgID_RSDS",
        Is::Classic(IMAGE_ID, 36),
    ),
    (
        "KernelTraceControl/ImageID/DbgID_ILRSDS",
        Is::Classic(IMAGE_ID, 37),
    ),
    (
        "KernelTraceControl/ImageID/FileVersion",
        Is::Classic(IMAGE_ID, 64),
    ),
    ("Windows Kernel/Image/Load", Is::Hook(0x030a)),
    ("Windows Kernel/Image/Unload", Is::Hook(0x1402)),
    ("Windows Kernel/Image/DCStart", Is::Hook(0x1403)),
    ("Windows Kernel/Image/DCStop", Is::Hook(0x1404)),
    ("Windows Kernel/Process/Start", Is::Hook(0x0301)),
    ("Windows Kernel/Process/Stop", Is::Hook(0x0302)),
    ("Windows Kernel/Process/DCStart", Is::Hook(0x0303)),
    ("Windows Kernel/Process/DCStop", Is::Hook(0x0304)),
    ("Windows Kernel/Process/PerfCtr", Is::Hook(0x0320)),
    ("Windows Kernel/Process/PerfCtrRundown", Is::Hook(0x0321)),
    ("Windows Kernel/Process/Defunct", Is::Hook(0x0327)),
    ("Windows Kernel/Thread/Start", Is::Hook(0x0501)),
    ("Windows Kernel/Thread/Stop", Is::Hook(0x0502)),
    (
        "solar_system/PrimitiveTypesTest",
        Is::Event("d3dd3dd4-aac2-4e2a-8dd4-a8fb61b77615", &[0]),
    ),
];

impl Is {
    fn it(&self, kind: RecordKind, identity: &Identity) -> bool {
        let event = matches!(kind, RecordKind::EVENT32 | RecordKind::EVENT64);
        match *self {
            Is::Event(provider, ids) => {
                event && identity.provider.to_string() == provider && ids.contains(&identity.id)
            }
            Is::Classic(class, opcode) => {
                let classic = matches!(kind, RecordKind::FULL32 | RecordKind::FULL64);
                classic && identity.provider.to_string() == class && identity.opcode == opcode
            }
            Is::Hook(hook) => identity.hook == Some(hook),
        }
    }
}

/// PerfView does not count events that it joins to others (StackWalk, ClrStack), most samples, and
/// the rundown of file names, so the table has no rows for them.
#[needs(traces)]
#[test]
fn perfview_has_the_same_counts() {
    let mut compared = 0;
    for name in ["net.4.5.2.x64", "gcrundownevents", "primitive-types"] {
        let path = trace(&format!("perfview/{name}.etl"));
        let baseline = baseline_counts(&Path::new(&path).with_extension("baseline.txt"));
        let bytes = std::fs::read(&path).unwrap();
        let mut trace = Trace::open(bytes.as_slice(), &Options::default()).unwrap();
        let mut records = trace.records(Order::File).unwrap();
        let mut identities: BTreeMap<(RecordKind, Identity), u64> = BTreeMap::new();
        while let Some(record) = records.next_record().unwrap() {
            *identities
                .entry((record.kind(), record.identity()))
                .or_default() += 1;
        }
        for (event, is) in NAMES {
            let Some(&theirs) = baseline.get(*event) else {
                continue;
            };
            let ours: u64 = identities
                .iter()
                .filter(|((kind, i), _)| is.it(*kind, i))
                .map(|(_, n)| n)
                .sum();
            assert_eq!(ours, theirs, "{name}: {event}");
            compared += 1;
        }
    }
    assert!(compared >= 55, "only {compared} counts were compared");
}
