//! Rings in memory that no longer hold the starts of threads.

use std::collections::{BTreeMap, BTreeSet};

use etl_analysis::address::Origin;
use etl_analysis::{Analysis, Recording};
use etl_format::constants::hook;
use etl_format::read::{Options, Order, Trace};
use etl_schema::views::kernel;
use etl_synth::Script;

use crate::simulated::simulate;

/// A ring of six buffers. Before it is flushed, each processor has filled many of them.
const RING: &str = r#"
scenario "ring" seed=3
machine processors=2
process "Orders.exe" pid=100 threads=4 {
    clr "core" version="6.0.100" {
        assembly "Orders" { module "C:\\App\\Orders.dll" { methods 60 ready=20 } }
    }
    every "5ms" from="2.1s" until="4.9s" { run "2ms"; allocate 2 }
}
process "Billing.exe" pid=200 threads=3 {
    clr "core" version="6.0.100" {
        assembly "Billing" { module "C:\\App\\Billing.dll" { methods 20 ready=20 } }
    }
    every "7ms" from="2.1s" until="4.9s" { run "3ms"; allocate 1 }
}
at "2s" {
    session "ring" mode="buffering" buffer-kb=16 buffers=6 {
        kernel "processes images profile"
        enable "runtime" keywords="GC" level=5
    }
}
at "5s" { flush "ring" into="ring.etl" }
at "6s" { stop "ring" }
"#;

#[test]
fn samples_of_a_ring_find_their_process_by_any_thread_event() {
    let scenario = Script::new("ring", RING)
        .parse()
        .unwrap_or_else(|e| panic!("{e}"));
    let simulated = simulate("ring", RING.to_owned(), scenario);
    let file = simulated.traces["ring.etl"].as_slice();

    // What the truth knows of the threads.
    let lines = simulated.truth.inventory.iter();
    let lines = lines.map(|line| serde_json::from_str::<serde_json::Value>(line).unwrap());
    let number = |line: &serde_json::Value, key: &str| line[key].as_u64().unwrap() as u32;
    let owners: BTreeMap<u32, u32> = lines
        .filter(|line| line["kind"] == "thread")
        .map(|line| (number(&line, "tid"), number(&line, "pid")))
        .collect();

    // What the file holds: samples by thread, threads with an event, no start of any.
    let mut trace = Trace::open(file, &Options::default()).unwrap();
    let mut records = trace.records(Order::Time).unwrap();
    let (mut samples, mut named) = (BTreeMap::<u32, u64>::new(), BTreeSet::new());
    while let Some(record) = records.next_record().unwrap() {
        match record.hook() {
            Some(hook::SAMPLE) => {
                *samples
                    .entry(kernel::sample(&record).unwrap().tid)
                    .or_default() += 1
            }
            Some(id) => assert_ne!(id >> 8, hook::THREAD_START >> 8, "a thread's start is left"),
            None => named.extend(record.event().map(|header| header.thread_id.get())),
        }
    }
    let mut expected = BTreeMap::<u32, u64>::new();
    // No image covers what idle processors ran: they do not count.
    samples.remove(&0);
    for (tid, count) in &samples {
        let owner = owners
            .get(tid)
            .copied()
            .filter(|_| named.contains(tid))
            .unwrap_or(0);
        *expected.entry(owner).or_default() += count;
    }
    assert!(expected[&100] > 0 && expected[&200] > 0, "{expected:?}");

    let mut recording = Recording::open([(file, "ring.etl")]).unwrap();
    let machine = Analysis::new().run(&mut recording, &mut ()).unwrap();
    let of = |p: &etl_analysis::machine::Process| p.tallies()[Origin::Sample as usize].stacks;
    let found = machine
        .processes()
        .iter()
        .map(|p| (p.pid().get(), of(p)))
        .filter(|(_, n)| *n > 0);
    assert_eq!(found.collect::<BTreeMap<_, _>>(), expected);
}
