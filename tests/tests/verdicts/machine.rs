//! The kernel's session: samples without processors, with another clock or with a gap, and lists
//! of the end that are missing.

use etl_format::cursor::Bytes;

use crate::case::{Case, Declared, Edit, Expected, Family};
use crate::edit::Rec;

/// Bytes before the payload of a record of the kernel's performance events.
const HOOK: usize = 6;
/// The hook of samples.
const SAMPLE: u16 = 0x0f2e;

fn script(mode: &str, interval: &str, interrupts: u64, seed: u64) -> String {
    format!(
        r#"
scenario "machine" seed={seed}
machine processors=2 interrupts={interrupts}
process "Work.exe" pid=100 threads=2 {{
    clr "core" version="8.0.100" {{
        assembly "Work" {{ module "C:\\App\\Work.dll" {{ methods 40 ready=20 }} }}
    }}
    every "50ms" from="2.1s" until="5.5s" {{ jit 1; run "8ms" }}
}}
process "Native.exe" pid=200 threads=2 {{
    every "90ms" from="2.1s" until="5.5s" {{ run "20ms" }}
}}
at "2s" {{ session "clr" file="clr.etl" {mode} {{
    kernel "processes images profile" {interval}
    enable "runtime" keywords=0x98 level=5
}} }}
at "6s" {{ enable "rundown" in="clr" keywords=0x138 level=5 }}
at "8s" {{ stop "clr" }}
"#
    )
}

/// Scales the time of the samples: the clock has another frequency than its header states.
fn scaled(records: &mut [Rec], percent: i64) {
    let Some(first) = records.iter().map(Rec::timestamp).min() else {
        return;
    };
    for record in records {
        let time = first + (record.timestamp() - first) * percent / 100;
        let place = if is_of_performance(record) { 8 } else { 16 };
        record.put(place, &time.to_le_bytes());
    }
}

fn is_of_performance(record: &Rec) -> bool {
    matches!(record.bytes[2], 0x10 | 0x11) && record.bytes[3] == 0xc0
}

fn is_sample(record: &Rec) -> bool {
    is_of_performance(record) && record.bytes.u16_at(HOOK) == Some(SAMPLE)
}

/// Removes the samples of a processor for two of its seconds.
fn without_samples(records: &mut Vec<Rec>, processor: u16) {
    let times = records.iter().filter(|record| is_sample(record));
    let Some(first) = times.map(Rec::timestamp).min() else {
        return;
    };
    let second = 10_000_000;
    let gap = first + second..first + 3 * second;
    records.retain(|record| {
        let is_of_gap = record.processor == processor && gap.contains(&record.timestamp());
        !(is_sample(record) && is_of_gap)
    });
}

/// Removes the kernel's lists at the end.
fn without_end_lists(records: &mut Vec<Rec>) {
    let is_list = |record: &Rec| !record.is_event() && record.name == "DCEnd";
    records.retain(|record| !is_list(record));
}

/// A change that breaks a recording, and the rule that finds it.
struct Break {
    name: &'static str,
    edit: Edit,
    rules: &'static [&'static str],
}

const BREAKS: [Break; 5] = [
    Break {
        name: "10 % slow",
        edit: |records| scaled(records, 110),
        rules: &["kernel.sample-interval"],
    },
    Break {
        name: "10 % fast",
        edit: |records| scaled(records, 90),
        rules: &["kernel.sample-interval"],
    },
    Break {
        name: "no samples of processor 0",
        edit: |records| without_samples(records, 0),
        rules: &["kernel.samples-missing"],
    },
    Break {
        name: "no samples of processor 1",
        edit: |records| without_samples(records, 1),
        rules: &["kernel.samples-missing"],
    },
    Break {
        name: "no lists at the end",
        edit: without_end_lists,
        rules: &["kernel.not-listed"],
    },
];

pub fn family() -> Family {
    let mut cases = Vec::new();
    for seed in [91, 92] {
        let sound = Case {
            name: format!("seed {seed}"),
            script: script("", "", 0, seed),
            file: "clr.etl",
            merged: &[],
            edit: None,
            declared: Declared::default(),
            accepted: None,
            expected: Expected::Sound,
        };
        for of in BREAKS {
            cases.push(Case {
                name: format!("{}, seed {seed}", of.name),
                edit: Some(of.edit),
                expected: Expected::Found(of.rules),
                ..sound.clone()
            });
        }
        let modes = [
            r#"mode="no-per-processor""#,
            r#"clock="system""#,
            r#"clock="cycle""#,
        ];
        for mode in modes {
            for interrupts in [0, 30] {
                cases.push(Case {
                    name: format!("{mode}, {interrupts} % interrupts, seed {seed}"),
                    script: script(mode, "", interrupts, seed),
                    ..sound.clone()
                });
            }
        }
        for interval in ["interval=\"500us\"", "interval=\"2ms\""] {
            cases.push(Case {
                name: format!("{interval}, seed {seed}"),
                script: script("", interval, 0, seed),
                ..sound.clone()
            });
        }
        cases.push(sound);
    }
    Family {
        name: "7: samples and lists of the kernel",
        cases,
    }
}
