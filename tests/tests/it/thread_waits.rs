//! What threads ran and waited for, against the truth of a simulated machine.

use std::collections::BTreeMap;
use std::process::Command;

use etl_analysis::behavior::waits::{ThreadKey, Waits};
use etl_analysis::{Analysis, Recording};
use etl_test_support::{needs, python, root};
use serde_json::{Value, json};

use crate::sampled::simulated;

#[needs(python)]
#[test]
fn threads_run_and_wait_as_the_truth_has_it() {
    let here = tempfile::tempdir().unwrap();
    let mut wakers_seen = 0;
    for name in ["kernel-session", "kernel-io", "windows-32"] {
        let simulated = simulated(name);
        let truth = here.path().join("truth.jsonl");
        std::fs::write(&truth, &simulated.texts["truth.jsonl"]).unwrap();
        let script = root().join("tests/foreign/waits.py");
        let command =
            Command::new(python()).arg(script).arg(&truth).arg("NT Kernel Logger").output();
        let output = command.unwrap();
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        let theirs: BTreeMap<String, Value> = serde_json::from_slice(&output.stdout).unwrap();

        let bytes = simulated.traces["kernel.etl"].as_slice();
        let mut recording = Recording::open([(bytes, "kernel.etl")]).unwrap();
        let mut waits = Waits::new();
        let machine = Analysis::new().names(true).run(&mut recording, &mut waits).unwrap();
        let pid = |key: ThreadKey| machine.processes()[key.0.unwrap()].pid();
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
                .map(|((_, tid), (count, ticks))| (tid.to_string(), [*count, *ticks]))
                .collect();
            wakers_seen += wakers.len();
            let thread = json!({
                "running": times.running,
                "switches": times.switches,
                "waits": waits,
                "ready": [times.ready.count(), times.ready.total()],
                "wakers": wakers,
            });
            ours.insert(format!("{}|{}", pid(key), key.1), thread);
        }
        assert!(ours.len() > 3, "{name}");
        for (thread, expected) in &theirs {
            assert_eq!(ours.get(thread), Some(expected), "{name} {thread}");
        }
        assert_eq!(ours.len(), theirs.len(), "{name}");
        assert_eq!(waits.reason_name(15), Some("WrQueue"));
    }
    assert!(wakers_seen > 3);
}
