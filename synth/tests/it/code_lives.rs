//! No stack has code outside of its life: each address of a stack or a sample that lies where a
//! method was reported is one of a method whose load event came before, and whose unload event has
//! not come yet. The lives are those that the events of the session state.

use std::collections::BTreeMap;

use etl_schema::encode::OwnedValue;
use etl_schema::providers::CLR_RUNTIME;
use etl_synth::truth::{InMemoryTruth, KnownEvent};
use etl_synth::{MemoryFileSystem, Script, Simulation};
use proptest::prelude::*;

/// Work that loads code, and work that takes it away.
const WORK: [&str; 6] = [
    "jit 3",
    "tier 2; rejit 1",
    "forget 2; jit 2",
    "throw 1",
    "gc 0",
    "run \"700us\"",
];

fn script(seed: u64, processors: u32, threads: u32, core: bool, work: &[(usize, u32)]) -> String {
    let (product, kind) = match core {
        true => ("\"core\" version=\"6.0.100\"", "r2r"),
        false => ("\"desktop\" version=\"4.8.4000.0\"", "ngen"),
    };
    let mut text = format!(
        "scenario \"lives\" seed={seed}\nmachine processors={processors}\nat \"1ms\" {{ session \"s\" file=\"s.etl\" buffers=100000 {{ kernel \"processes images profile switches\" stackwalk=\"Profile+CSwitch\"; enable \"runtime\" keywords=0x400080f8 level=5 }} }}\nat \"1.4s\" {{ stop \"s\" }}\n"
    );
    for number in 0..2 {
        text += &format!(
            "process \"P{number}.exe\" threads={threads} start=\"1.0s\" exit=\"1.3s\" {{\nclr {product} {{\nassembly \"A\" {{ module \"C:\\\\A.dll\" kind=\"{kind}\" {{ methods 20 ready=15 cold=#true }} }}\nassembly \"B\" {{ module \"C:\\\\B.dll\" {{ methods 60 ready=20; methods 12 kind=\"dynamic\" ready=8 }} }}\nassembly \"C\" late=#true collectible=#true {{ module \"C:\\\\C.dll\" {{ methods 30 ready=25 }} }} }}\n"
        );
        for (what, period) in work {
            let of = WORK[*what];
            text += &format!("every \"{period}us\" from=\"1.02s\" until=\"1.28s\" {{ {of} }}\n");
        }
        text += "at \"1.1s\" { load \"C\" }\nat \"1.2s\" { unload \"C\" }\n}\n";
    }
    text
}

fn number(event: &KnownEvent, name: &str) -> Option<u64> {
    event.number(name)
}

/// The process of an event's addresses, and the addresses.
fn addresses(event: &KnownEvent) -> (u32, Vec<u64>) {
    let mut pid = event.pid.get();
    let mut found = event.stack.clone();
    for field in &event.fields {
        match (field.name.as_str(), &field.value) {
            ("InstructionPointer", OwnedValue::Pointer(address)) => found.push(*address),
            ("Stack" | "StackAddresses", OwnedValue::Array(frames)) => {
                found.extend(frames.iter().filter_map(|frame| match frame {
                    OwnedValue::Pointer(address) => Some(*address),
                    _ => None,
                }));
            }
            ("StackProcess", value) => pid = value.as_u64().map_or(pid, |p| p as u32),
            _ => {}
        }
    }
    (pid, found)
}

/// No method here has so many bytes.
const LARGEST: u64 = 0x1_0000;

/// Code at an address, with the timestamps of its load and its unload.
struct Life {
    size: u64,
    loaded: i64,
    unloaded: i64,
}

/// By process and first address.
type Lives = BTreeMap<(u32, u64), Vec<Life>>;

fn lives(truth: &InMemoryTruth) -> Lives {
    let mut lives = Lives::new();
    for e in truth.events.iter().filter(|e| e.provider == CLR_RUNTIME) {
        let place = number(e, "MethodStartAddress").map(|start| (e.pid.get(), start));
        let (Some(place), Some(size)) = (place, number(e, "MethodSize")) else {
            continue;
        };
        // Helpers of the runtime lie in its image, among other code.
        if number(e, "ModuleID") == Some(0) {
            continue;
        }
        let at = lives.entry(place).or_default();
        match e.descriptor.id {
            141 | 143 => at.push(Life {
                size,
                loaded: e.timestamp.get(),
                unloaded: i64::MAX,
            }),
            142 | 144 => {
                let is_compiled = number(e, "MethodFlags").is_some_and(|flags| flags & 8 != 0);
                // .NET Core has no loads of precompiled methods.
                if at.is_empty() && !is_compiled {
                    continue;
                }
                let open = at.last_mut().filter(|l| l.unloaded == i64::MAX);
                let Some(last) = open.filter(|l| l.loaded < e.timestamp.get()) else {
                    panic!("unloaded code was not loaded: {e:?}")
                };
                last.unloaded = e.timestamp.get();
            }
            _ => {}
        }
    }
    lives
}

/// How many addresses are in code; each of them is in code that is there.
fn check(truth: &InMemoryTruth) -> Result<usize, TestCaseError> {
    let lives = lives(truth);
    let mut checked = 0;
    for event in &truth.events {
        let (pid, found) = addresses(event);
        // A stack of the kernel has the time of its event.
        let at = number(event, "EventTimeStamp").map_or(event.timestamp.get(), |at| at as i64);
        for address in found {
            let before = lives.range((pid, address.saturating_sub(LARGEST))..=(pid, address));
            let mut any = false;
            let mut there = false;
            for ((_, start), here) in before {
                for life in here.iter().filter(|life| address < start + life.size) {
                    any = true;
                    there |= life.loaded < at && at < life.unloaded;
                }
            }
            prop_assert!(
                there || !any,
                "{:#x} of {} at {}: {:?}",
                address,
                pid,
                at,
                event
            );
            checked += usize::from(any);
        }
    }
    Ok(checked)
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 24, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn no_stack_has_code_before_its_load_or_after_its_unload(
        seed in 1u64..1000,
        processors in 1u32..5,
        threads in 1u32..4,
        core in any::<bool>(),
        work in prop::collection::vec((0..WORK.len(), 300u32..5000), 2..5),
    ) {
        let text = script(seed, processors, threads, core, &work);
        let scenario = Script::new("lives", &text).parse().unwrap_or_else(|e| panic!("{text}\n{e:#?}"));
        let mut truth = InMemoryTruth::default();
        Simulation::new(&scenario).observer(&mut truth).run(&mut MemoryFileSystem::default()).unwrap();
        let checked = check(&truth)?;
        prop_assert!(checked > 50, "{} addresses", checked);
    }
}
