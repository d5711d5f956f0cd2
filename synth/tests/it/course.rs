//! What is recorded does not change what happens: sessions with other masks and levels meet the
//! same course of the machine. What a mask admits is written down here, by the documents; the
//! simulator has no part in it.

use std::collections::BTreeMap;

use etl_format::{Guid, ProcessId, ThreadId};
use etl_schema::encode::OwnedValue;
use etl_schema::providers::kernel_class::THREAD;
use etl_schema::providers::{CLR_RUNDOWN, CLR_RUNTIME};
use etl_synth::model::{Action, NamedValue, Request, Scenario, SessionPlan};
use etl_synth::truth::{EventOutcome, InMemoryTruth, KnownEvent};
use etl_synth::{MemoryFileSystem, SECOND, Script, Simulation};
use proptest::prelude::*;

/// Products and the kind of their precompiled modules.
const PRODUCTS: [(&str, &str); 5] = [
    ("\"core\" version=\"3.1.0\"", "r2r"),
    ("\"core\" version=\"6.0.100\"", "r2r"),
    ("\"core\" version=\"10.0.100\" heaps=3", "r2r"),
    ("\"desktop\" version=\"4.0.30319.0\"", "ngen"),
    ("\"desktop\" version=\"4.8.4000.0\"", "ngen"),
];

/// What processes do.
const WORK: [&str; 13] = [
    "jit 3",
    "tier 2; rejit 1",
    "allocate 30",
    "gc 1; gc 2 background=#true",
    "throw 2 filters=1 finallys=1; throw 1 rethrow=#true",
    "contend 3",
    "queue-work 3; queue-io 1",
    "grow-pool 2; shrink-pool 1; grow-pool 1 io=#true",
    "start-thread; end-thread",
    "stub 3; handle 2; free-handle",
    "forget 1; jit 2",
    "read-file \"C:\\\\a\" bytes=9000; write-file \"C:\\\\b\"; receive \"10.0.0.1:53\" udp=#true",
    "raise \"P\" \"E\" activity=\"start\"; raise \"P\" \"E\" activity=\"stop\"",
];

/// A process: its CLRs by product, its threads, whether it starts and exits during the session, and
/// its work with the milliseconds between two rounds.
#[derive(Clone, Debug)]
struct Program {
    clrs: Vec<usize>,
    threads: u32,
    short: bool,
    work: Vec<(usize, u32)>,
}

fn program() -> impl Strategy<Value = Program> {
    let work = prop::collection::vec((0..WORK.len(), 7u32..60), 1..5);
    (
        prop::collection::vec(0..PRODUCTS.len(), 1..4),
        1u32..4,
        any::<bool>(),
        work,
    )
        .prop_map(|(clrs, threads, short, work)| Program {
            clrs,
            threads,
            short,
            work,
        })
}

fn scenario(programs: &[Program], processors: u32, seed: u64) -> Scenario {
    let mut text = format!(
        "scenario \"random\" seed={seed}\nmachine processors={processors}\nprovider \"P\" kind=\"manifest\" {{ event \"E\" id=1 level=4 keywords=1 {{ field \"N\" \"UInt32\"; field \"G\" \"GUID\" }} }}\n"
    );
    for (number, program) in programs.iter().enumerate() {
        let times = if program.short {
            " start=\"2.1s\" exit=\"2.6s\""
        } else {
            ""
        };
        text += &format!(
            "process \"P{}.exe\" threads={}{times} {{\n",
            number % 2,
            program.threads
        );
        for (at, clr) in program.clrs.iter().enumerate() {
            let (product, kind) = PRODUCTS[*clr];
            // Dynamic methods are destroyed by themselves alone: their process does not exit.
            let dynamic = if program.short {
                ""
            } else {
                "methods 3 kind=\"dynamic\" ready=2; "
            };
            text += &format!(
                "clr {product} {{ assembly \"A{at}\" {{ module \"C:\\\\A{at}.dll\" kind=\"{kind}\" {{ methods 6 ready=3 cold=#true; methods 2 generic=#true }} }}\n assembly \"B{at}\" {{ module \"C:\\\\B{at}.dll\" {{ {dynamic}methods 30 ready=9; methods 1 kind=\"generic\" ready=1; methods 1 kind=\"helper\" ready=1 }} }}\n assembly \"C{at}\" late=#true collectible=#true signed=#true {{ module \"C:\\\\C{at}.dll\" {{ methods 5 ready=3 }} }} }}\n"
            );
        }
        for (work, period) in &program.work {
            let spread = if period % 2 == 0 {
                " spread=\"exponential\""
            } else {
                ""
            };
            let period = period * program.clrs.len() as u32;
            text += &format!(
                "every \"{period}ms\" from=\"2.05s\" until=\"2.9s\"{spread} {{ {} }}\n",
                WORK[*work]
            );
        }
        text += "at \"2.3s\" { load \"C0\" }\nat \"2.5s\" { unload \"C0\" }\n}\n";
    }
    Script::new("random", &text)
        .parse()
        .unwrap_or_else(|e| panic!("{text}\n{e:#?}"))
}

/// A session from 2 s to 3 s; the rundown provider is enabled late.
#[derive(Clone, Copy, Debug)]
struct Asked {
    runtime: u64,
    rundown: u64,
    level: u8,
}

fn record(scenario: &Scenario, sessions: &[(&str, Asked)]) -> InMemoryTruth {
    let mut scenario = scenario.clone();
    for (name, asked) in sessions {
        let mut plan = SessionPlan::new(*name, format!("{name}.etl"));
        plan = plan.with(CLR_RUNTIME, asked.runtime, asked.level);
        plan.buffers = 100_000;
        scenario.at(2 * SECOND, Action::Start(Box::new(plan)));
        let late = SessionPlan::new("", "").with(CLR_RUNDOWN, asked.rundown, asked.level);
        let enable = Request::Enable(late.providers[0].clone());
        scenario.at(5 * SECOND / 2, Action::Session((*name).to_owned(), enable));
        let state = Request::CaptureState(CLR_RUNTIME);
        scenario.at(14 * SECOND / 5, Action::Session((*name).to_owned(), state));
        scenario.at(
            3 * SECOND,
            Action::Session((*name).to_owned(), Request::Stop),
        );
    }
    let mut truth = InMemoryTruth::default();
    Simulation::new(&scenario)
        .observer(&mut truth)
        .run(&mut MemoryFileSystem::default())
        .unwrap();
    truth
}

/// What an event says, without its number, which counts what others record.
type Said<'a> = (
    Guid,
    u16,
    u8,
    u64,
    u16,
    ProcessId,
    ThreadId,
    &'a [NamedValue<OwnedValue>],
);

fn said(event: &KnownEvent) -> Said<'_> {
    let KnownEvent {
        provider,
        descriptor: d,
        at,
        processor,
        pid,
        tid,
        fields,
        ..
    } = event;
    (
        *provider, d.id, d.version, *at, *processor, *pid, *tid, fields,
    )
}

fn field<'a>(event: &'a KnownEvent, name: &str) -> Option<&'a OwnedValue> {
    event.field(name)
}

fn number(event: &KnownEvent, name: &str) -> u64 {
    match field(event, name) {
        Some(OwnedValue::UInt(n)) => *n,
        _ => 0,
    }
}

/// The mask of `Jit` or `NGen` that a method's event needs: precompiled code has no flag 8, and
/// helpers of the runtime have flag 0x10.
fn of_code(event: &KnownEvent, compiled: u64, precompiled: u64) -> u64 {
    if number(event, "MethodFlags") & 0x18 != 0 {
        compiled
    } else {
        precompiled
    }
}

/// Whether a runtime session with mask `a` receives an event of a session with a larger mask. A
/// list of the `state` has all methods that have code.
fn admits_runtime(a: u64, level: u8, event: &KnownEvent, load_follows: bool, state: bool) -> bool {
    let all = |mask: u64| a & mask == mask;
    let any = |mask: u64| a & mask != 0;
    match event.descriptor.id {
        // Types go with the samples, or with the finalized objects, that name them.
        15 => {
            let text = format!("{:?}", event.fields);
            let finalizable = text.contains("FileStream") || text.contains("SafeFileHandle");
            any(0x8_0000)
                && if finalizable {
                    any(1) && level >= 5
                } else {
                    any(0x220_0000)
                }
        }
        72 => any(0x40_0000_0000) && load_follows,
        141 | 143 if state => any(of_code(event, 0x10, 0x20)),
        141 | 143 => all(of_code(event, 0x10, 0x60)),
        // Dynamic methods are destroyed; the others go with their module.
        142 | 144 if number(event, "MethodFlags") & 1 != 0 => any(0x10),
        142 | 144 => all(of_code(event, 0x90, 0xa0)),
        153 => any(8),
        _ => event.descriptor.keyword == 0 || any(event.descriptor.keyword),
    }
}

/// The same for the rundown provider; `end` is which enumeration it belongs to.
fn admits_rundown(a: u64, event: &KnownEvent, end: bool) -> bool {
    let any = |mask: u64| a & mask != 0;
    let enumerates = any(0x2003_0038);
    any(if end { 0x100 } else { 0x40 })
        && match event.descriptor.id {
            187 => true,
            10 => any(1),
            280 => enumerates && any(0x10_0000_0000),
            145..=148 => enumerates && any(0x2_0038),
            141..=144 => any(of_code(event, 0x10, 0x20)),
            159 => any(0x1_0000),
            _ => any(event.descriptor.keyword),
        }
}

/// The events among those of `b` that `a` admits.
fn admitted<'t>(a: Asked, b: Asked, events: &[&'t KnownEvent]) -> Vec<&'t KnownEvent> {
    let mut kept: Vec<&KnownEvent> = Vec::new();
    // Of each thread and provider: whether its last event is admitted, for the stack after it.
    let mut last: BTreeMap<(ThreadId, Guid), bool> = BTreeMap::new();
    // Threads on which the state is listed. Each list begins with the runtime.
    let lists = |e: &&&KnownEvent| {
        e.descriptor.id == 187 && e.provider == CLR_RUNTIME && e.at >= 14 * SECOND / 5
    };
    let listing: Vec<ThreadId> = events.iter().filter(lists).map(|e| e.tid).collect();
    // Of each CLR: enumerations begun so far.
    let mut begun: BTreeMap<(ProcessId, u64), u32> = BTreeMap::new();
    for (at, event) in events.iter().enumerate() {
        let rundown = event.provider == CLR_RUNDOWN;
        let of_stack = event.descriptor.id == if rundown { 0 } else { 82 };
        let mask = if rundown { a.rundown } else { a.runtime };
        let of = (event.tid, event.provider);
        let admits = if of_stack {
            mask & 0x4000_0000 != 0 && last.get(&of) == Some(&true)
        } else if rundown {
            let count = begun
                .entry((event.pid, number(event, "ClrInstanceID")))
                .or_default();
            *count += u32::from(event.descriptor.id == 187);
            let end = match (b.rundown & 0x40 != 0, b.rundown & 0x100 != 0) {
                (true, true) => count.is_multiple_of(2),
                (_, end) => end,
            };
            admits_rundown(mask, event, end)
        } else {
            let mut later = events.iter().skip(at).filter(|e| e.tid == event.tid);
            let load = later.find(|e| [141, 143].contains(&e.descriptor.id));
            let load = load.is_some_and(|e| admits_runtime(mask, a.level, e, false, false));
            admits_runtime(mask, a.level, event, load, listing.contains(&event.tid))
        };
        if !of_stack {
            last.insert(of, admits);
        }
        if admits {
            kept.push(event);
        }
    }
    kept
}

fn recorded(truth: &InMemoryTruth) -> Vec<&KnownEvent> {
    let lost = |e: &KnownEvent| e.outcomes.iter().any(|o| o.outcome == EventOutcome::Lost);
    assert!(!truth.events.iter().any(lost), "an event is lost");
    truth.recorded(0).collect()
}

/// A small mask within a large one, with the keywords that depend on each other more often.
fn masks(often: &'static [u64]) -> impl Strategy<Value = (u64, u64)> {
    let bits = prop::collection::vec((prop::sample::select(often), 0u8..3), 1..14);
    (bits, any::<u64>(), any::<u64>(), 0u8..4).prop_map(|(bits, noise, keep, noisy)| {
        let part = |least: u8| {
            bits.iter()
                .filter(|(_, of)| *of >= least)
                .fold(0, |mask, (bit, _)| mask | bit)
        };
        let noise = if noisy == 0 { noise } else { 0 };
        // These two change what others mean: one takes precompiled methods away, one collects.
        let (a, b) = (part(1) | noise & keep, part(0) | noise);
        let allowed = !(0x4_0000 | 0x80_0000);
        let (a, b) = (a & allowed, b & allowed);
        // In .NET Core maps of code need the keyword of its loads.
        let jit = if a & 0x2_0000 != 0 { 0x10 } else { 0 };
        let (a, b) = (a | jit, b | jit);
        // No bit would mean all.
        if a == 0 { (0x8, b | 0x8) } else { (a, b) }
    })
}

const RUNTIME: &[u64] = &[
    0x1,
    0x2,
    0x8,
    0x10,
    0x20,
    0x40,
    0x80,
    0x800,
    0x1000,
    0x4000,
    0x8000,
    0x1_0000,
    0x2_0000,
    0x8_0000,
    0x20_0000,
    0x200_0000,
    0x40_0000,
    0x2000_0000,
    0x4000_0000,
    0x40_0000_0000,
    0x80_0000_0000,
];
const RUNDOWN: &[u64] = &[
    0x1,
    0x8,
    0x10,
    0x20,
    0x40,
    0x100,
    0x800,
    0x1_0000,
    0x2_0000,
    0x2000_0000,
    0x4000_0000,
    0x10_0000_0000,
];

/// 64 cases, or as many as `PROPTEST_CASES` states.
fn config() -> ProptestConfig {
    let default = ProptestConfig {
        failure_persistence: None,
        ..ProptestConfig::default()
    };
    match std::env::var_os("PROPTEST_CASES") {
        Some(_) => default,
        None => ProptestConfig {
            cases: 64,
            ..default
        },
    }
}

proptest! {
    #![proptest_config(config())]

    #[test]
    fn session_with_fewer_keywords_records_a_subset_of_the_events(
        programs in prop::collection::vec(program(), 1..3),
        processors in 1u32..4,
        seed in 1u64..1000,
        (runtime_a, runtime_b) in masks(RUNTIME),
        (rundown_a, rundown_b) in masks(RUNDOWN),
        level in 4u8..6,
    ) {
        let scenario = scenario(&programs, processors, seed);
        let a = Asked { runtime: runtime_a, rundown: rundown_a, level };
        let b = Asked { runtime: runtime_b, rundown: rundown_b, level };
        let (few, many) = (record(&scenario, &[("s", a)]), record(&scenario, &[("s", b)]));
        let found = recorded(&few);
        let expected = recorded(&many);
        let expected = admitted(a, b, &expected);
        for (found, expected) in found.iter().zip(&expected) {
            prop_assert_eq!(said(found), said(expected), "{:x?} {:x?}", a, b);
        }
        let odd = |of: &[&KnownEvent], at: usize| of.get(at).map(|e| format!("{e:?}"));
        let at = found.len().min(expected.len());
        prop_assert_eq!(
            found.len(), expected.len(),
            "{:x?} {:x?}: found {:?}, expected {:?}", a, b, odd(&found, at), odd(&expected, at)
        );
        prop_assert_eq!(&few.inventory, &many.inventory);
    }

    #[test]
    fn another_session_and_another_level_change_nothing(
        programs in prop::collection::vec(program(), 1..3),
        seed in 1u64..1000,
        (runtime, other) in masks(RUNTIME),
        (rundown, other_rundown) in masks(RUNDOWN),
        level in 4u8..6,
    ) {
        let scenario = scenario(&programs, 2, seed);
        let one = Asked { runtime, rundown, level: 5 };
        let two = Asked { runtime: other, rundown: other_rundown, level };
        let nothing = record(&scenario, &[]);
        let alone = record(&scenario, &[("s", one)]);
        let both = record(&scenario, &[("s", one), ("t", two)]);
        prop_assert_eq!(&nothing.inventory, &alone.inventory);
        prop_assert_eq!(&nothing.inventory, &both.inventory);
        // The other session can add events, by what it makes the providers raise.
        let of_runtime = |e: &&KnownEvent| e.provider == CLR_RUNTIME;
        let mut with = recorded(&both).into_iter().filter(of_runtime);
        for event in recorded(&alone).into_iter().filter(of_runtime) {
            prop_assert!(with.any(|e| said(e) == said(event)), "{:?}", event);
        }
    }
}

#[test]
fn each_clr_of_a_process_answers_once() {
    for clrs in 1..=3usize {
        let program = Program {
            clrs: vec![3, 1, 2][..clrs].to_vec(),
            threads: 2,
            short: false,
            work: Vec::new(),
        };
        let scenario = scenario(&[program], 2, 1);
        // Both enumerations.
        let asked = Asked {
            runtime: 0x8,
            rundown: 0x178,
            level: 5,
        };
        let truth = record(&scenario, &[("s", asked)]);
        let events = recorded(&truth);
        let mut counts: BTreeMap<(u64, u16), usize> = BTreeMap::new();
        for event in events.iter().filter(|e| e.provider == CLR_RUNDOWN) {
            *counts
                .entry((number(event, "ClrInstanceID"), event.descriptor.id))
                .or_default() += 1;
        }
        for instance in (9u64..).take(clrs) {
            for id in [145, 146, 147, 148] {
                assert_eq!(
                    counts.get(&(instance, id)),
                    Some(&1),
                    "{clrs} CLRs: {instance} {id}"
                );
            }
            assert_eq!(
                counts.get(&(instance, 187)),
                Some(&2),
                "{clrs} CLRs: {instance}"
            );
        }
        assert_eq!(counts.keys().filter(|(_, id)| *id == 147).count(), clrs);
        // The state of the runtime provider: each module of each CLR once.
        let mut modules: BTreeMap<u64, usize> = BTreeMap::new();
        let state = |e: &&&KnownEvent| e.provider == CLR_RUNTIME && e.at >= 14 * SECOND / 5;
        for event in events
            .iter()
            .filter(state)
            .filter(|e| e.descriptor.id == 152)
        {
            *modules.entry(number(event, "ModuleID")).or_default() += 1;
        }
        assert_eq!(modules.len(), 2 * clrs, "{modules:?}");
        assert!(
            modules.values().all(|count| *count == 1),
            "{clrs} CLRs: {modules:?}"
        );
    }
}

#[test]
fn new_threads_raise_nothing_before_the_kernel_logs_their_start() {
    let script = r#"machine processors=8
process "P.exe" {
    clr "desktop" version="4.8.4000.0" { assembly "A" { module "C:\\A.dll" { methods 30 ready=10 } } }
    every "50ms" from="3.1s" until="5.5s" { start-thread; queue-work 2; throw 1; jit 1 }
}
at "2s" { session "s" file="s.etl" { kernel "processes"; enable "runtime" keywords=0x40008098 level=5 } }
at "6s" { stop "s" }"#;
    let scenario = Script::new("script", script).parse().unwrap();
    let mut truth = InMemoryTruth::default();
    let simulation = Simulation::new(&scenario).observer(&mut truth);
    simulation.run(&mut MemoryFileSystem::default()).unwrap();
    let starts = truth
        .events
        .iter()
        .filter(|e| (e.provider, e.descriptor.opcode) == (THREAD, 1));
    let mut checked = 0;
    for start in starts {
        let OwnedValue::UInt(tid) = start.fields[1].value else {
            panic!("{:?}", start.fields)
        };
        let first = truth.events.iter().find(|e| u64::from(e.tid.get()) == tid);
        if let Some(first) = first {
            assert!(first.at >= start.at, "{tid}: {first:?}");
            checked += 1;
        }
    }
    assert!(checked > 10);
}
