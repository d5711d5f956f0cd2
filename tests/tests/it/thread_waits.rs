//! What threads ran and waited for, against the truth of a simulated machine.

use std::collections::BTreeMap;
use std::process::Command;

use etl_analysis::behavior::waits::Waits;
use etl_analysis::{Analysis, Recording, ThreadKey};
use etl_synth::Script;
use etl_test_support::{needs, python, root};
use etlkit::run_captured;
use serde_json::{Value, json};

use crate::kinds::{Kind, kinds};
use crate::sampled::{kernel_stacks, lock_stacks, path_of, simulated};
use crate::simulated::{Simulated, simulate};

#[needs(python)]
#[test]
fn threads_run_and_wait_as_the_truth_has_it() {
    let mut wakers_seen = 0;
    for name in ["kernel-session", "kernel-io", "windows-32"] {
        wakers_seen += compare_threads(name, &simulated(name), &["kernel.etl"]);
    }
    assert!(wakers_seen > 3);
    for Kind {
        name,
        simulated,
        files,
    } in kinds()
    {
        assert!(compare_threads(name, simulated, files) > 3, "{name}");
    }
}

/// Compares what threads ran and waited for with what a script computes from the truth. Returns the
/// number of pairs of a thread and another one that ended waits of it.
fn compare_threads(name: &str, simulated: &Simulated, files: &[&str]) -> usize {
    let mut wakers_seen = 0;
    let here = tempfile::tempdir().unwrap();
    let truth = here.path().join("truth.jsonl");
    std::fs::write(&truth, &simulated.texts["truth.jsonl"]).unwrap();
    let script = root().join("tests/foreign/waits.py");
    let command = Command::new(python())
        .arg(script)
        .arg(&truth)
        .arg("NT Kernel Logger")
        .output();
    let output = command.unwrap();
    assert!(
        output.status.success(),
        "{}",
        String::from_utf8_lossy(&output.stderr)
    );
    let theirs: Value = serde_json::from_slice(&output.stdout).unwrap();
    let theirs: BTreeMap<String, Value> =
        serde_json::from_value(theirs["threads"].clone()).unwrap();

    let traces = files
        .iter()
        .map(|file| (simulated.traces[*file].as_slice(), *file));
    let mut recording = Recording::open(traces).unwrap();
    let mut waits = Waits::new();
    let machine = Analysis::new()
        .with_names()
        .run(&mut recording, &mut waits)
        .unwrap();
    let pid = |key: ThreadKey| machine.process(key.process.unwrap()).unwrap().pid();
    let mut ours = BTreeMap::new();
    for (&key, times) in waits.threads() {
        let waits: BTreeMap<String, [u64; 2]> = times
            .waits
            .iter()
            .map(|(reason, waits)| (reason.to_string(), [waits.count(), waits.total()]))
            .collect();
        let wakers: BTreeMap<String, [u64; 2]> = times
            .wakers
            .iter()
            .map(|(waker, waits)| (waker.tid.to_string(), [waits.count, waits.ticks]))
            .collect();
        wakers_seen += wakers.len();
        let thread = json!({
            "running": times.running,
            "switches": times.switches,
            "waits": waits,
            "ready": [times.ready.count(), times.ready.total()],
            "wakers": wakers,
        });
        ours.insert(format!("{}|{}", pid(key), key.tid), thread);
    }
    assert!(ours.len() > 3, "{name}");
    for (thread, expected) in &theirs {
        assert_eq!(ours.get(thread), Some(expected), "{name} {thread}");
    }
    assert_eq!(ours.len(), theirs.len(), "{name}");
    assert_eq!(waits.reason_name(15), Some("WrQueue"));
    wakers_seen
}

/// A busy machine whose kernel session has a fault or none, and what its threads did.
fn busy(fault: &str) -> Waits {
    let script = format!(
        r#"
scenario "busy" seed=11
machine processors=2
process "Shop.exe" pid=3004 threads=2 start="1s" {{
    every "7ms" from="2.05s" until="3.4s" {{ run "2ms" }}
}}
process "Mill.exe" pid=3100 threads=3 start="1s" {{
    every "20ms" from="2.3s" until="3.3s" {{ run "5ms" }}
}}
at "2s" {{
    session "NT Kernel Logger" file="kernel.etl" buffer-kb=16 {{
        {fault}
        kernel "processes images profile switches ready" interval="1ms"
    }}
}}
at "3.8s" {{ stop "NT Kernel Logger" }}
"#
    );
    let scenario = Script::new("busy", &script).parse().unwrap();
    let simulated = simulate("busy", script, scenario);
    let trace = simulated.traces["kernel.etl"].as_slice();
    let mut waits = Waits::new();
    Analysis::new()
        .run(
            &mut Recording::open([(trace, "kernel")]).unwrap(),
            &mut waits,
        )
        .unwrap();
    waits
}

#[test]
fn threads_do_nothing_in_lost_buffers_that_they_did_not_do() {
    let (all, some) = (busy(""), busy("fault \"lost-buffers\" every=2"));
    assert!(all.given_up() == 0 && some.given_up() > 0);
    // The same program ran on the same machine, so no run, wait or sum may be longer.
    let whole = |tid: u32| {
        all.threads()
            .iter()
            .find(|(key, _)| key.tid == tid)
            .unwrap()
            .1
    };
    let mut waited = 0;
    for (ThreadKey { tid, .. }, part) in some.threads() {
        let whole = whole(tid.get());
        assert!(part.running <= whole.running, "{tid}");
        assert!(part.ready.total() <= whole.ready.total() && part.ready.max() <= whole.ready.max());
        for (reason, waits) in &part.waits {
            let whole = &whole.waits[reason];
            assert!(waits.count() <= whole.count(), "{tid}: {waits:?} {whole:?}");
            assert!(
                waits.total() <= whole.total() && waits.max() <= whole.max(),
                "{tid}"
            );
            waited += waits.count();
        }
    }
    assert!(waited > 30, "{waited}");
}

/// Waits by stack: how many and for how many microseconds.
type ByStack = BTreeMap<String, (u64, f64)>;

/// The waits of a call tree that `etlkit analyze` prints, by their stacks, and the report.
fn tree(kind: &str, trace: &[u8]) -> (ByStack, Value) {
    let here = tempfile::tempdir().unwrap();
    let file = here.path().join("trace.etl");
    std::fs::write(&file, trace).unwrap();
    let words = [
        "etlkit",
        "analyze",
        kind,
        "--tree",
        "--unfold",
        "--min-percent",
        "0",
        "--format",
        "json",
    ];
    let words = words
        .into_iter()
        .map(Into::into)
        .chain([file.into_os_string()]);
    let said = run_captured(words);
    assert_eq!(said.code, 0, "{}", String::from_utf8_lossy(&said.err));
    let report: Value = serde_json::from_slice(&said.out).unwrap();
    let mut path: Vec<String> = Vec::new();
    let mut waits = ByStack::new();
    for row in report["rows"].as_array().unwrap() {
        path.truncate(row["depth"].as_u64().unwrap() as usize);
        path.push(row["name"].as_str().unwrap().trim_start().to_owned());
        let count = row["self_waits"].as_u64().unwrap();
        if count > 0 {
            waits.insert(path.join(";"), (count, row["self_us"].as_f64().unwrap()));
        }
    }
    (waits, report)
}

#[needs(python)]
#[test]
fn waits_have_the_stacks_of_the_truth() {
    let simulated = simulated("kernel-session");
    let here = tempfile::tempdir().unwrap();
    let truth = here.path().join("truth.jsonl");
    std::fs::write(&truth, &simulated.texts["truth.jsonl"]).unwrap();
    let script = root().join("tests/foreign/waits.py");
    let mut command = Command::new(python());
    let output = command
        .arg(script)
        .arg(&truth)
        .arg("NT Kernel Logger")
        .output()
        .unwrap();
    let theirs: Value = serde_json::from_slice(&output.stdout).unwrap();
    let owners: BTreeMap<u32, u32> = theirs["threads"]
        .as_object()
        .unwrap()
        .keys()
        .map(|key| key.split_once('|').unwrap())
        .map(|(pid, tid)| (tid.parse().unwrap(), pid.parse().unwrap()))
        .collect();
    let names: BTreeMap<u64, String> = (simulated.truth.inventory.iter())
        .map(|line| serde_json::from_str::<Value>(line).unwrap())
        .filter(|item| item["kind"] == "process")
        .map(|item| {
            (
                item["pid"].as_u64().unwrap(),
                item["name"].as_str().unwrap().to_owned(),
            )
        })
        .collect();
    let stacks = kernel_stacks(&simulated);
    let (mut expected, mut with_stack) = (ByStack::new(), 0);
    for wait in theirs["resumed"].as_array().unwrap() {
        let (time, ticks) = (wait[0].as_i64().unwrap(), wait[2].as_u64().unwrap());
        let tid = wait[1].as_u64().unwrap() as u32;
        let pid = owners[&tid];
        let mut path = format!("{} ({pid})", names[&pid.into()]);
        if let Some((_, labels)) = stacks.get(&(time, tid)) {
            path = format!("{path};{}", path_of(labels));
            with_stack += 1;
        }
        let entry = expected.entry(path).or_default();
        *entry = (entry.0 + 1, entry.1 + ticks as f64 / 10.0);
    }
    let (ours, report) = tree("waits", &simulated.traces["merged.etl"]);
    assert_eq!(report["with_stack"], with_stack);
    assert!(
        with_stack > 30 && expected.len() > 5,
        "{with_stack} {}",
        expected.len()
    );
    compare(&ours, &expected);
}

fn compare(ours: &ByStack, expected: &ByStack) {
    assert_eq!(
        ours.keys().collect::<Vec<_>>(),
        expected.keys().collect::<Vec<_>>()
    );
    for (path, (count, us)) in expected {
        assert_eq!(ours[path].0, *count, "{path}");
        assert!(
            (ours[path].1 - us).abs() < 0.01,
            "{path}: {} {us}",
            ours[path].1
        );
    }
}

const LOCKS: &str = r#"
scenario "locks" seed=5
process "Shop.exe" pid=5000 threads=3 start="1.5s" {
    clr "core" version="6.0.100" { assembly "Shop" { module "C:\\App\\Shop.dll" { methods 40 ready=20 } } }
    every "10ms" from="2.1s" until="3s" { contend 2 }
}
at "1s" { session "clr" file="clr.etl" { enable "runtime" keywords="Loader|Jit|Contention|Stack" level=5 } }
at "3.5s" { enable "rundown" in="clr" keywords=0x138 level=5 }
at "4s" { stop "clr" }
"#;

/// A machine on which threads wait for locks, and for each wait its ticks and the stack of its
/// beginning.
pub fn locks() -> (Simulated, Vec<(u64, String)>) {
    let scenario = Script::new("locks", LOCKS).parse().unwrap();
    let simulated = simulate("locks", LOCKS.to_owned(), scenario);
    let stacks = lock_stacks(&simulated)
        .into_iter()
        .map(|(ticks, mut labels)| {
            // The session has no events of images.
            labels
                .iter_mut()
                .filter(|label| label.ends_with("!?"))
                .for_each(|l| *l = "?".to_owned());
            (ticks, path_of(&labels))
        });
    let stacks = stacks.collect();
    (simulated, stacks)
}

#[test]
fn waits_for_locks_have_the_stacks_of_the_truth() {
    let (simulated, stacks) = locks();
    let mut expected = ByStack::new();
    for (ticks, path) in stacks {
        let entry = expected.entry(path).or_default();
        *entry = (entry.0 + 1, entry.1 + ticks as f64 / 10.0);
    }
    let (ours, report) = tree("contention", &simulated.traces["clr.etl"]);
    let ours: ByStack = ours
        .into_iter()
        .map(|(path, waits)| (path.split_once(';').unwrap().1.to_owned(), waits))
        .collect();
    assert!(expected.len() > 5, "{}", expected.len());
    assert_eq!(
        report["with_stack"],
        expected.values().map(|(count, _)| count).sum::<u64>()
    );
    compare(&ours, &expected);
}
