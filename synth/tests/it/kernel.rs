//! Compares the kernel's simulated session with its script: context switches to the tick, group
//! masks, configuration of the machine, and the identities that a merge adds.

use etl_format::ThreadId;
use std::collections::{BTreeMap, BTreeSet};

use etl_format::read::{Header, Options, Records};
use etl_schema::store::SchemaStore;
use etl_synth::model::Scenario;
use etl_synth::truth::{InMemoryTruth, KnownIdentity, RecordFormat, Timeline};
use etl_synth::{MemoryFileSystem, Script};
use etl_test_support::{foreign, needs, root};

/// A record, decoded by the tables.
#[derive(Clone, Debug)]
struct Decoded {
    cpu: u16,
    timestamp: i64,
    /// Of kernel records; `None` for others.
    hook: Option<u16>,
    class: String,
    opcode: u8,
    /// `None` for records without it, and with an unknown one.
    tid: Option<u32>,
    in_buffer_0: bool,
    numbers: BTreeMap<String, u64>,
    texts: BTreeMap<String, String>,
}

impl Decoded {
    fn number(&self, name: &str) -> u64 {
        *self
            .numbers
            .get(name)
            .unwrap_or_else(|| panic!("{name}: {self:?}"))
    }

    fn is(&self, hook: u16) -> bool {
        self.hook == Some(hook)
    }
}

/// All records in file order: those of a processor are in the order of time.
fn decoded(file: &[u8]) -> Vec<Decoded> {
    let store = SchemaStore::new();
    let mut records = Records::stream(file, &Options::default()).unwrap();
    let mut all = Vec::new();
    while let Some(record) = records.next_record().unwrap() {
        let (mut numbers, mut texts) = (BTreeMap::new(), BTreeMap::new());
        if let Some(fields) = store.fields(&record) {
            for (field, value) in fields {
                let name = field.name.to_string();
                if let Some(number) = value.as_u64() {
                    numbers.insert(name, number);
                } else if let Some(text) = value.as_utf16() {
                    texts.insert(name, text.before_nul().to_string());
                } else if let etl_schema::decode::Value::Guid(guid) = value {
                    texts.insert(name, guid.to_string());
                } else if let etl_schema::decode::Value::Ansi(bytes) = value {
                    texts.insert(name, String::from_utf8_lossy(bytes).into_owned());
                }
            }
        }
        let tid = match record.header() {
            Header::PerfInfo(_) => None,
            _ => record.thread_id().filter(|tid| *tid != u32::MAX),
        };
        all.push(Decoded {
            cpu: record.processor(),
            timestamp: record.timestamp().get(),
            hook: record.hook(),
            class: record.provider().unwrap_or_default().to_string(),
            opcode: record.identity().opcode,
            tid: tid.map(ThreadId::get),
            in_buffer_0: record.location().buffer_offset == 0,
            numbers,
            texts,
        });
    }
    all
}

fn files(scenario: &Scenario) -> (BTreeMap<String, Vec<u8>>, InMemoryTruth) {
    let (mut files, mut truth) = (MemoryFileSystem::default(), InMemoryTruth::default());
    etl_synth::Simulation::new(scenario)
        .observer(&mut truth)
        .run(&mut files)
        .unwrap();
    let files = files
        .into_files()
        .into_iter()
        .map(|file| (file.name, file.bytes));
    (
        files.filter(|(name, _)| name.ends_with(".etl")).collect(),
        truth,
    )
}

fn corpus(name: &str, seed: Option<u64>) -> Scenario {
    let text = std::fs::read_to_string(root().join("corpus").join(name)).unwrap();
    let include = |file: &str| std::fs::read_to_string(root().join("corpus").join(file));
    let script = Script::new(name, &text).include(&include);
    let script = seed.map_or(script.clone(), |seed| script.seed(seed));
    script.parse().unwrap_or_else(|e| panic!("{name}: {e:#?}"))
}

const CSWITCH: u16 = 0x0524;
const READY: u16 = 0x0532;
const STACK: u16 = 0x1820;
const SAMPLE: u16 = 0x0f2e;
/// Ticks of the clock in a millisecond.
const MS: i64 = 10_000;

/// Work of 3 ms every 10 ms, 40 times, on four threads of two processors: no thread interrupts
/// another, so every number follows from the script.
#[test]
fn each_run_causes_two_switches_at_its_start_and_end() {
    let script = r#"
        machine processors=2
        process "Work.exe" pid=2000 threads=4 { every "10ms" from="2.1s" until="2.5s" { run "3ms" } }
        at "2s" { session "k" file="k.etl" { kernel "processes switches ready" stackwalk="CSwitch" } }
        at "3s" { stop "k" }
    "#;
    let (files, _) = files(&Script::new("runs", script).parse().unwrap());
    let all = decoded(&files["k.etl"]);
    let start = all[0].timestamp;
    let work: BTreeSet<u64> = all
        .iter()
        .filter(|e| e.is(0x0503) && e.number("ProcessId") == 2000)
        .map(|e| e.number("TThreadId"))
        .collect();
    assert_eq!(
        work.len(),
        5,
        "four, and the one that providers call back on"
    );
    let switches: Vec<&Decoded> = all.iter().filter(|e| e.is(CSWITCH)).collect();
    let comes = |e: &&&Decoded| work.contains(&e.number("NewThreadId"));
    let goes = |e: &&&Decoded| work.contains(&e.number("OldThreadId"));
    assert_eq!(switches.iter().filter(comes).count(), 40);
    assert_eq!(switches.iter().filter(goes).count(), 40);
    // Each at its time, followed by its stack; the thread leaves 3 ms later.
    let mut starts: Vec<i64> = switches
        .iter()
        .filter(comes)
        .map(|e| e.timestamp - start)
        .collect();
    starts.sort_unstable();
    assert_eq!(
        starts,
        (0..40).map(|n| (100 + 10 * n) * MS).collect::<Vec<_>>()
    );
    for come in switches.iter().filter(comes) {
        let tid = come.number("NewThreadId");
        let go = switches
            .iter()
            .filter(|e| e.number("OldThreadId") == tid && e.timestamp >= come.timestamp)
            .min_by_key(|e| e.timestamp)
            .unwrap();
        assert_eq!((go.timestamp - come.timestamp, go.cpu), (3 * MS, come.cpu));
        // It waits in user mode, for something that it asked for.
        assert_eq!(
            (
                go.number("OldThreadState"),
                go.number("OldThreadWaitReason")
            ),
            (5, 6)
        );
    }
    assert_eq!(all.iter().filter(|e| e.is(READY)).count(), 40);
    for (n, event) in all.iter().enumerate().filter(|(_, e)| e.is(STACK)) {
        let before = &all[n - 1];
        assert!(
            before.is(CSWITCH) && before.cpu == event.cpu && before.timestamp == event.timestamp
        );
        assert_eq!(
            event.number("EventTimeStamp"),
            before.timestamp.cast_unsigned()
        );
        assert_eq!(event.number("StackThread"), before.number("NewThreadId"));
        assert_eq!(event.number("StackProcess"), 2000);
    }
    assert_eq!(all.iter().filter(|e| e.is(STACK)).count(), 40);
}

#[test]
fn interrupted_thread_continues_after_the_other_one() {
    let script = r#"
        machine processors=1
        process "Long.exe" pid=2100 threads=1 { at "2.6s" { run "20ms" } }
        process "Other.exe" pid=2200 threads=1 { at "2.605s" { run "4ms" } }
        at "2s" { session "k" file="k.etl" { kernel "processes switches ready" } }
        at "3s" { stop "k" }
    "#;
    let (files, _) = files(&Script::new("interrupted", script).parse().unwrap());
    let all = decoded(&files["k.etl"]);
    let start = all[0].timestamp;
    // Of each process the first thread works.
    let first = |pid: u64| {
        let of = |e: &&Decoded| e.is(0x0503) && e.number("ProcessId") == pid;
        all.iter().find(of).unwrap().number("TThreadId")
    };
    let (long, other) = (first(2100), first(2200));
    let seen: Vec<(i64, u64, u64, u64, u64)> = all
        .iter()
        .filter(|e| e.is(CSWITCH) && e.timestamp > start && e.timestamp < start + 1000 * MS)
        .map(|e| {
            let n = |name| e.number(name);
            let (old, new) = (n("OldThreadId"), n("NewThreadId"));
            (
                e.timestamp - start,
                old,
                new,
                n("OldThreadWaitReason"),
                n("OldThreadState"),
            )
        })
        .collect();
    let expected = [
        // Idle runs on; preempted, and ready; waits.
        (600 * MS, 0, long, 0, 2),
        (605 * MS, long, other, 32, 1),
        (609 * MS, other, long, 6, 5),
        (624 * MS, long, 0, 6, 5),
    ];
    assert_eq!(seen, expected);
    // An interrupted thread stays ready and is not woken.
    let woken: Vec<u64> = all
        .iter()
        .filter(|e| e.is(READY))
        .map(|e| e.number("TThreadId"))
        .collect();
    assert_eq!(woken, [long, other]);
}

/// On each processor the old thread of a switch is the new one of the switch before, and whatever
/// else a record says of its thread agrees.
#[test]
fn records_have_the_thread_that_runs_on_the_processor() {
    for seed in [1, 3, 77] {
        let (files, _) = files(&corpus("kernel-session.kdl", Some(seed)));
        let (mut checked, mut samples, mut idle) = (0, 0, 0);
        // By processor: when the last switch was, from whom and to whom.
        let mut running: BTreeMap<u16, (i64, u64, u64)> = BTreeMap::new();
        // Both halves in one, in the order of each processor.
        for e in decoded(&files["plain.etl"]) {
            // What stood in the first buffers of the sessions is not in the order of processors.
            if e.in_buffer_0 || e.hook.is_some_and(|hook| hook >> 8 == 0) {
                continue;
            }
            if e.is(CSWITCH) {
                let (old, new) = (e.number("OldThreadId"), e.number("NewThreadId"));
                let was = running.insert(e.cpu, (e.timestamp, old, new));
                assert!(was.is_none_or(|was| was.2 == old), "seed {seed}: {e:?}");
                continue;
            }
            let Some(&(since, old, now)) = running.get(&e.cpu) else {
                continue;
            };
            // A process comes into being by itself here, before it runs.
            let born = e.is(0x0301) || e.is(0x0501);
            if e.is(SAMPLE) {
                let of = e.number("ThreadId");
                // In the tick of a switch the order of merged records is not known.
                let fits = of == now || e.timestamp == since && of == old;
                assert!(fits, "seed {seed}: {e:?}, while {now} runs");
                *(if now == 0 { &mut idle } else { &mut samples }) += 1;
            } else if let Some(tid) = e.tid.filter(|_| !born) {
                let fits = u64::from(tid) == now || e.timestamp == since && u64::from(tid) == old;
                assert!(fits, "seed {seed}: {e:?}, while {now} runs");
                checked += 1;
            }
        }
        assert!(
            checked > 100 && samples > 50 && idle > 50,
            "{checked}, {samples} and {idle}"
        );
    }
}

/// The masks of each file, as the command lines state them, and the order of records about a
/// session.
#[test]
fn group_masks_have_all_flags_and_timeline_lists_unsimulated() {
    let scenario = corpus("kernel-flags.kdl", None);
    let (files, truth) = files(&scenario);
    let expected: [(&str, [u64; 3]); 4] = [
        ("k1.etl", [0x2_0103, 0x4, 0]),
        ("k2.etl", [0x1_0005, 0x4, 0]),
        ("k3.etl", [0x107, 0, 0]),
        ("k4.etl", [0x1000_0007, 0x204, 0x40]),
    ];
    for (name, masks) in expected {
        let all = decoded(&files[name]);
        let own: Vec<(u16, [u64; 3])> = all
            .iter()
            .filter(|e| matches!(e.hook, Some(0x05 | 0x08 | 0x20)))
            .map(|e| {
                let mask = |n: &str| e.numbers.get(n).copied().unwrap_or(0);
                let masks = ["GroupMask1", "GroupMask2", "GroupMask3"].map(mask);
                (e.hook.unwrap(), masks)
            })
            .collect();
        let none = [0; 3];
        let order = [
            (0x05, none),
            (0x20, none),
            (0x05, masks),
            (0x08, none),
            (0x20, masks),
            (0x05, none),
            (0x08, none),
        ];
        assert_eq!(own, order, "{name}");
        let reported = truth.kernel.iter().map(|known| known.flags.groups.0);
        assert!(
            reported
                .into_iter()
                .any(|m| m[..3].iter().map(|w| u64::from(*w)).eq(masks))
        );
        // The system configuration is logged unless a flag disables it.
        let config = all
            .iter()
            .filter(|e| e.hook.is_some_and(|h| h >> 8 == 0x0b))
            .count();
        assert_eq!(config, if name == "k4.etl" { 0 } else { 3 }, "{name}");
    }
    let mut timeline = Timeline::new(Vec::new());
    etl_synth::Simulation::new(&scenario)
        .observer(&mut timeline)
        .run(&mut MemoryFileSystem::default())
        .unwrap();
    let text = String::from_utf8(timeline.into_inner()).unwrap();
    for said in [
        "session \"k1\": set in the group masks but not simulated: REGISTRY",
        "session \"k4\": set in the group masks but not simulated: SYSCALL",
    ] {
        assert!(text.contains(said), "{said}\n{text}");
    }
    // Disks and the network are simulated.
    assert_eq!(text.matches("but not simulated").count(), 2, "{text}");
}

#[test]
fn unknown_kernel_flag_is_an_error() {
    for line in [
        r#"run "xperf -on PROC_THREAD+CSWICH -f k.etl""#,
        r#"run "logman start k -p \"Windows Kernel Trace\" (process,cswich) -o k.etl -ets""#,
        r#"session "k" file="k.etl" { kernel "processes cswich" }"#,
    ] {
        let errors = Script::new("wrong", &format!("at \"1s\" {{ {line} }}"))
            .parse()
            .unwrap_err();
        let text = format!("{errors:?}");
        assert!(text.to_lowercase().contains("cswich"), "{line}: {text}");
    }
}

/// What happens in each second, by the command lines: in the first one flags as the sessions were
/// started with, in the second and third as they were changed. Each file's kinds of records are
/// compared with what is listed here, the masks among them, and what is missing with
/// the truth.
#[test]
fn changed_kernel_flags_apply_from_their_change() {
    const IMAGE_START: u16 = 0x1403;
    const IMAGE_END: u16 = 0x1404;
    let (files, truth) = files(&corpus("kernel-flags-changed.kdl", None));
    // Masks in force in each second.
    let masks: [(&str, [[u64; 2]; 3]); 4] = [
        ("k1.etl", [[0x3, 0x4], [0x7, 0x2], [0x3, 0x4]]),
        ("k2.etl", [[0x7, 0], [0, 0x204], [0, 0]]),
        ("k3.etl", [[0x3, 0x4], [0x4, 0x2], [0x3, 0x4]]),
        ("k4.etl", [[0x3, 0], [0x6, 0], [0x2, 0]]),
    ];
    for (file, masks) in masks {
        let all = decoded(&files[file]);
        let begin = all[0].timestamp;
        let at = |second: i64| begin + second * 1000 * MS;
        // A record at the start of a second belongs to that second.
        let second = |e: &Decoded| (e.timestamp - begin) / (1000 * MS);
        let own: Vec<(u16, [u64; 2])> = all
            .iter()
            .filter(|e| matches!(e.hook, Some(0x05 | 0x08 | 0x20)))
            .map(|e| {
                let mask = |n: &str| e.numbers.get(n).copied().unwrap_or(0);
                (e.hook.unwrap(), ["GroupMask1", "GroupMask2"].map(mask))
            })
            .collect();
        // The header's own, and what is in force, changed three times.
        let mut expected = vec![(0x05, [0, 0])];
        let turns = [[0, 0], masks[0], masks[1], masks[2], [0, 0]];
        for turn in turns.windows(2) {
            expected.extend([(0x20, turn[0]), (0x05, turn[1]), (0x08, [0, 0])]);
        }
        assert_eq!(own, expected, "{file}");
        // What is logged in each second, and no other kind.
        let kinds: [(u16, usize, u64); 5] = [
            (0x0301, 0, 0x1),
            (0x0501, 0, 0x2),
            (0x030a, 0, 0x4),
            (CSWITCH, 1, 0x4),
            (SAMPLE, 1, 0x2),
        ];
        for (hook, word, bit) in kinds {
            for (n, in_force) in (0i64..).zip(masks) {
                let within =
                    |e: &&Decoded| e.is(hook) && e.timestamp > at(n) && e.timestamp < at(n + 1);
                let found = all.iter().filter(within).count();
                let logged = in_force[word] & bit != 0;
                assert_eq!(
                    found > 0,
                    logged,
                    "{file}, second {n}: {hook:#x} {found} times"
                );
            }
        }
        // A group has a rundown when it is added and when it is removed, and not when it stays.
        for (dc, word, bit) in [((0x0303, 0x0304), 0, 0x1), ((0x0503, 0x0504), 0, 0x2)] {
            for (n, turn) in (0i64..).zip(turns.windows(2)) {
                let has = |hook| {
                    all.iter()
                        .any(|e| e.is(hook) && !e.in_buffer_0 && second(e) == n)
                };
                let (was, is) = (turn[0][word] & bit != 0, turn[1][word] & bit != 0);
                assert_eq!(has(dc.0), !was && is, "{file}, turn {n}: {:#x}", dc.0);
                assert_eq!(has(dc.1), was && !is, "{file}, turn {n}: {:#x}", dc.1);
            }
        }
        let images = |hook| all.iter().filter(|e| e.is(hook)).count();
        if file == "k1.etl" {
            assert!(images(IMAGE_START) > 3 && images(IMAGE_START) == images(IMAGE_END));
            // Stacks are of the events that they were asked for with at that time.
            for (n, e) in all.iter().enumerate().filter(|(_, e)| e.is(STACK)) {
                let of = if second(e) == 1 { SAMPLE } else { CSWITCH };
                assert!(all[n - 1].is(of), "{:?} after {:?}", e, all[n - 1]);
            }
        }
    }
    // The sampling of one session is every millisecond, of the other every second one; that of the
    // second processor comes 10 µs after that of the first one.
    let samples = |file: &str, cpu: u16| {
        let all = decoded(&files[file]);
        let of = all.iter().filter(|e| e.is(SAMPLE) && e.cpu == cpu);
        of.map(|e| e.timestamp - all[0].timestamp)
            .collect::<Vec<i64>>()
    };
    for (cpu, late) in [(0, 0), (1, MS / 100)] {
        let (each, every_other) = (samples("k1.etl", cpu), samples("k3.etl", cpu));
        assert!(each.len() > every_other.len() && !every_other.is_empty());
        assert!(
            every_other.iter().all(|at| at % (2 * MS) == late),
            "{cpu}: {every_other:?}"
        );
    }
    // The truth contains events that a session no longer logs after a change of its flags.
    let outcome = |pid: u64, session: &str| {
        let index = truth
            .sessions
            .iter()
            .find(|s| s.name == session)
            .unwrap()
            .index;
        let event = truth.events.iter().find(|e| {
            e.format == RecordFormat::System(0x0301)
                && e.fields[1].value == u32::try_from(pid).unwrap().into()
        });
        let event = event.unwrap();
        event.outcome(index)
    };
    use etl_synth::truth::EventOutcome::{Disabled, Recorded};
    assert_eq!(outcome(2100, "k2"), Some(Recorded));
    assert_eq!(outcome(2200, "k2"), Some(Disabled));
    assert_eq!(outcome(2200, "k3"), Some(Disabled));
    assert_eq!(outcome(2300, "k3"), Some(Recorded));
    assert_eq!(outcome(2300, "k4"), Some(Disabled));
}

#[test]
fn session_without_kernel_flags_cannot_change_them() {
    let script = r#"
        at "1s" { session "plain" file="plain.etl" { enable "runtime" keywords=0x8 level=4 } }
        at "2s" { kernel "processes" in="plain" }
        at "3s" { stop "plain" }
    "#;
    let (files, truth) = files(&Script::new("refused", script).parse().unwrap());
    let [refusal] = &truth.refused[..] else {
        panic!("{:?}", truth.refused)
    };
    assert_eq!((&*refusal.session, refusal.code.number()), ("plain", 87));
    assert!(
        decoded(&files["plain.etl"])
            .iter()
            .all(|e| e.hook.is_none() || e.in_buffer_0)
    );
}

#[test]
fn system_configuration_matches_the_script() {
    let (files, _) = files(&corpus("kernel-session.kdl", None));
    let all = decoded(&files["kernel.etl"]);
    let of = |hook: u16| all.iter().filter(|e| e.is(hook)).collect::<Vec<_>>();
    let [cpu] = of(0x0b0a)[..] else {
        panic!("one CPU record")
    };
    assert_eq!(
        (cpu.number("NumberOfProcessors"), cpu.number("MemSize")),
        (2, 8192)
    );
    assert_eq!(
        (&*cpu.texts["ComputerName"], &*cpu.texts["DomainName"]),
        ("BUILD7", "corp.example")
    );
    let [disk] = of(0x0b0b)[..] else {
        panic!("one disk")
    };
    let bytes = 128u64 << 30;
    assert_eq!(disk.number("Cylinders"), bytes / (512 * 63 * 255));
    // Two volumes, and that which starts.
    assert_eq!(
        (
            disk.number("PartitionCount"),
            &*disk.texts["BootDriveLetter"]
        ),
        (3, "C")
    );
    let volumes: Vec<_> = of(0x0b0c)
        .iter()
        .map(|v| {
            let letter = v.texts["DriveLetterString"].clone();
            (
                letter,
                v.number("PartitionNumber"),
                v.number("TotalNumberOfClusters"),
            )
        })
        .collect();
    let clusters = |gb: u64| (gb << 30) / 4096;
    assert_eq!(
        volumes,
        [
            ("C:".into(), 2, clusters(100)),
            ("D:".into(), 3, clusters(20))
        ]
    );
    let [card] = of(0x0b0d)[..] else {
        panic!("one card")
    };
    assert_eq!(
        (card.number("PhysicalAddrLen"), &*card.texts["IpAddresses"]),
        (6, "10.0.0.5;fe80::5")
    );
    let [display] = of(0x0b0e)[..] else {
        panic!("one display")
    };
    assert_eq!(
        (display.number("XResolution"), display.number("YResolution")),
        (1280, 1024)
    );
    assert_eq!(of(0x0b1c)[0].number("UserDPI"), 120);
    let services: Vec<_> = of(0x0b0f)
        .iter()
        .map(|s| {
            (
                s.number("ProcessId"),
                s.number("ServiceState"),
                &*s.texts["ServiceName"],
            )
        })
        .collect();
    assert_eq!(services, [(2000, 4, "Work"), (0, 1, "Idle")]);
    // All of it comes after the other events, and before the last masks.
    let last = all.iter().rposition(|e| e.is(0x0b0c)).unwrap();
    assert!(all[last..].iter().any(|e| e.is(0x20)));
}

/// The file name of the image without PDB and version information.
fn without_pdb(scenario: &Scenario) -> String {
    let mut images = scenario
        .processes
        .iter()
        .flat_map(|process| &process.images);
    let image = images
        .find(|image| image.no_pdb && image.about.nothing)
        .unwrap();
    image.path.rsplit('\\').next().unwrap().to_owned()
}

/// Opcode of the record with the version of the file of an image.
const FILE_VERSION: u8 = 64;
const IMAGE_ID: &str = "b3e675d7-2554-4f18-830b-2762732560de";
const SYSTEM_CONFIG_EX: &str = "9b79ee91-b5fd-41c0-a243-4248e266e9d0";

/// Each event of an image has the image and its PDB in front of it, as in real merged traces: that
/// the file was merged with its identities, and not without.
#[test]
fn merge_identifies_each_image_and_mergeonly_does_not() {
    let scenario = corpus("kernel-session.kdl", None);
    let (files, truth) = files(&scenario);
    let plain = decoded(&files["plain.etl"]);
    assert!(plain.iter().all(|e| e.class != IMAGE_ID));
    let merged = decoded(&files["merged.etl"]);
    let images = |all: &[Decoded]| {
        let hooks = [0x030a, 0x1402, 0x1403, 0x1404];
        all.iter()
            .filter(|e| e.hook.is_some_and(|h| hooks.contains(&h)))
            .count()
    };
    let added = |e: &&Decoded| [IMAGE_ID, SYSTEM_CONFIG_EX].contains(&e.class.as_str());
    let added = merged.iter().filter(added).count();
    let versions = merged
        .iter()
        .filter(|e| e.class == IMAGE_ID && e.opcode == FILE_VERSION)
        .count();
    // As real merges do, it describes the machine first: the directories of Windows, the system
    // partition, prefixes of paths, and the devices of the volumes.
    let machine: Vec<&Decoded> = merged
        .iter()
        .filter(|e| e.class == SYSTEM_CONFIG_EX)
        .collect();
    assert!(machine.iter().all(|e| e.timestamp == merged[0].timestamp));
    assert_eq!(
        machine.iter().map(|e| e.opcode).collect::<Vec<_>>(),
        [33, 34, 35, 35, 35, 35]
    );
    let text = |at: usize, name: &str| machine[at].texts[name].as_str();
    let mapping = |at: usize| (text(at, "NtPath"), text(at, "DosPath"));
    assert_eq!(mapping(4), (r"\Device\HarddiskVolume2\", r"C:\"));
    assert_eq!(mapping(5), (r"\Device\HarddiskVolume3\", r"D:\"));
    let (added_images, all) = (added - machine.len(), 2 * images(&plain));
    assert_eq!(
        added_images - versions,
        all,
        "two for each event of an image"
    );
    assert_eq!(merged.len() - added, plain.len(), "and nothing else");
    let mut reported = BTreeMap::new();
    for (n, e) in merged
        .iter()
        .enumerate()
        .filter(|(_, e)| e.class == IMAGE_ID && e.opcode == 0)
    {
        let (id, event) = (&merged[n + 1], &merged[n + 2]);
        let place = |e: &Decoded| {
            (
                e.number("ProcessId"),
                e.number("ImageBase"),
                e.timestamp,
                e.cpu,
            )
        };
        assert!(
            place(e) == place(id) && place(e) == place(event),
            "{e:?} {id:?} {event:?}"
        );
        let path = &event.texts["FileName"];
        assert!(path.ends_with(&e.texts["OriginalFileName"]), "{path}");
        let pdb = match id.opcode {
            36 => Some((id.texts["GuidSig"].clone(), id.number("Age"))),
            32 => None,
            other => panic!("{other}"),
        };
        reported.insert(
            (e.number("ProcessId"), e.number("ImageBase")),
            (path.clone(), pdb),
        );
    }
    let named = |end: &str| {
        reported
            .values()
            .find(|(path, _)| path.ends_with(end))
            .unwrap()
            .1
            .clone()
    };
    let given = "11112222-3333-4444-5555-666677778888".to_owned();
    assert_eq!(named("\\native.dll"), Some((given, 3)));
    assert_eq!(named(&without_pdb(&scenario)), None);
    // The truth says the same, image by image, of the file that has them.
    let known: BTreeMap<_, _> = truth
        .identities
        .iter()
        .map(|KnownIdentity { file, image: i, .. }| {
            assert_eq!(file, "merged.etl");
            let pdb = i
                .pdb
                .map(|pdb| (pdb.signature.to_string(), u64::from(pdb.age)));
            ((u64::from(i.pid.get()), i.base), (i.path.clone(), pdb))
        })
        .collect();
    assert_eq!(reported, known);
}

/// Real merged traces have one record for each file, in front of the first image that is made of
/// it: version 0 of its class, with the time, processor and process of the image.
#[test]
fn merge_reports_the_version_of_each_file_once() {
    let scenario = corpus("kernel-session.kdl", None);
    let plain_file = without_pdb(&scenario);
    let (files, truth) = files(&scenario);
    let merged = decoded(&files["merged.etl"]);
    let mut reported = BTreeMap::new();
    let mut seen = BTreeSet::new();
    for (n, e) in merged.iter().enumerate() {
        let of_image = e.class == IMAGE_ID && e.opcode == 0;
        if of_image {
            let before = &merged[n - 1];
            let file = (
                e.texts["OriginalFileName"].clone(),
                e.number("TimeDateStamp"),
                e.number("ImageSize"),
            );
            let first = seen.insert(file.clone());
            let has = before.class == IMAGE_ID && before.opcode == FILE_VERSION;
            assert_eq!(has, first && file.0 != plain_file, "{before:?} {e:?}");
        }
        if e.class != IMAGE_ID || e.opcode != FILE_VERSION {
            continue;
        }
        let next = &merged[n + 1];
        assert!(next.class == IMAGE_ID && next.opcode == 0, "{next:?}");
        assert_eq!((e.timestamp, e.cpu), (next.timestamp, next.cpu));
        for same in ["TimeDateStamp", "ImageSize"] {
            assert_eq!(e.number(same), next.number(same));
        }
        let text = |name: &str| e.texts[name].clone();
        let file = text("OrigFileName");
        assert_eq!(file, next.texts["OriginalFileName"]);
        let says = [
            "FileVersion",
            "FileDescription",
            "CompanyName",
            "ProductName",
            "VerLanguage",
        ];
        reported.insert(
            (file, e.number("TimeDateStamp"), e.number("ImageSize")),
            says.map(text),
        );
    }
    let of = |name: &str| {
        reported
            .iter()
            .find(|((file, ..), _)| file == name)
            .map(|(_, says)| says)
    };
    let native = ["2.1.0.7 (main)", "Counts", "Example", "Orders", "1031"].map(str::to_owned);
    assert_eq!(of("native.dll"), Some(&native));
    assert_eq!(of(&plain_file), None);
    assert_eq!(of("ntdll.dll").unwrap()[2], "Microsoft Corporation");
    // What an assembly is called is what its file says.
    assert_eq!(of("App.dll").unwrap()[0], "1.0.0.0");
    let known: BTreeMap<_, _> = truth
        .identities
        .iter()
        .filter_map(|KnownIdentity { image: i, .. }| {
            let v = i.version.clone()?;
            let file = i.path.rsplit('\\').next().unwrap().to_owned();
            let says = [
                v.version,
                v.description,
                v.company,
                v.product,
                v.language.to_string(),
            ];
            Some(((file, u64::from(i.link_time), i.size), says))
        })
        .collect();
    assert_eq!(reported, known);
}

#[needs(python)]
#[test]
fn dissect_etl_reads_the_kernels_sessions_and_their_merge() {
    let scratch = std::path::PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join("synth_kernel");
    std::fs::create_dir_all(&scratch).unwrap();
    let mut written = Vec::new();
    for script in ["kernel-session.kdl", "kernel-flags.kdl"] {
        for (name, bytes) in files(&corpus(script, None)).0 {
            let path = scratch.join(name);
            std::fs::write(&path, &bytes).unwrap();
            written.push((path, decoded(&bytes).len() as u64));
        }
    }
    let paths: Vec<_> = written.iter().map(|(path, _)| path.clone()).collect();
    let answers = foreign("dissect_counts.py", &paths);
    for (answer, (path, count)) in answers.iter().zip(&written) {
        assert_eq!(
            answer["records"].as_u64(),
            Some(*count),
            "{}",
            path.display()
        );
    }
}

/// On a 32-bit Windows the header, every record and every address are of 32 bits; a program that is
/// narrower than its machine is marked, others are not.
#[test]
fn all_of_a_32_bit_windows_is_narrow() {
    use etl_format::constants::PointerSize;
    use etl_format::read::Trace;

    let (files, _) = files(&corpus("windows-32.kdl", None));
    for (name, file) in &files {
        let trace = Trace::open(&file[..], &Options::default()).unwrap();
        assert_eq!(trace.header().pointer_size, PointerSize::P4, "{name}");
        let mut records = Records::stream(&file[..], &Options::default()).unwrap();
        while let Some(record) = records.next_record().unwrap() {
            assert_eq!(
                record.pointer_size(),
                Some(PointerSize::P4),
                "{name}: {}",
                record.kind()
            );
        }
    }
    let kernel = decoded(&files["kernel.etl"]);
    let of = |hook: u16| kernel.iter().filter(move |r| r.is(hook));
    assert!(of(0x0303).count() >= 4 && of(0x0303).all(|process| process.number("Flags") == 0));
    assert!(of(0x0503).all(|thread| (0x8000_0000..1 << 32).contains(&thread.number("StackBase"))));
    let (of_kernel, of_programs): (Vec<_>, Vec<_>) = of(0x1403)
        .map(|image| (image.number("ProcessId"), image.number("ImageBase")))
        .partition(|(pid, _)| *pid == 4);
    assert_eq!(of_kernel.len(), 3);
    assert!(
        of_kernel.iter().all(|(_, base)| *base >= 0x8000_0000),
        "{of_kernel:x?}"
    );
    assert!(
        of_programs.iter().all(|(_, base)| *base < 0x8000_0000),
        "{of_programs:x?}"
    );

    // The same program on a 64-bit machine is emulated there, and the kernel is wide.
    let text = r#"
machine bits=64
process "Narrow.exe" bits=32 threads=1
process "Wide.exe" threads=1
at "1s" { session "k" file="k.etl" { kernel "PROC_THREAD+LOADER" } }
at "2s" { stop "k" }"#;
    let (files, _) = self::files(&Script::new("wow64", text).parse().unwrap());
    let kernel = decoded(&files["k.etl"]);
    let flags = |name: &str| {
        let found = kernel.iter().find(|r| {
            r.is(0x0303)
                && r.texts
                    .get("ImageFileName")
                    .is_some_and(|image| image == name)
        });
        found
            .unwrap_or_else(|| panic!("{name} has no event"))
            .number("Flags")
    };
    assert_eq!((flags("Narrow.exe"), flags("Wide.exe")), (2, 0));
    let trace = Trace::open(&files["k.etl"][..], &Options::default()).unwrap();
    assert_eq!(trace.header().pointer_size, PointerSize::P8);
}
