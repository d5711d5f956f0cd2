//! Sound recordings of random shapes: no warning.

use crate::case::{Case, Declared, Expected, Family};

/// Masks of the runtime provider.
const MASKS: [&str; 8] = [
    "0x98",
    "0x18",
    "0x1CCBD",
    "0x4001CCBD",
    "0x8000",
    "0x9",
    "0x89",
    "0xF8",
];

/// The number of shapes.
const SHAPES: u64 = 100;

/// A small generator of numbers (SplitMix64).
struct Random(u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut value = self.0;
        value = (value ^ (value >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        value = (value ^ (value >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        value ^ (value >> 31)
    }

    fn pick<'a>(&mut self, choices: &[&'a str]) -> &'a str {
        choices[self.next() as usize % choices.len()]
    }

    fn up_to(&mut self, most: u64) -> u64 {
        1 + self.next() % most
    }
}

/// Masks with stacks or exceptions, which have addresses. Precompiled methods of a process that
/// ends before the rundown have no names then.
const WITH_ADDRESSES: [&str; 3] = ["0x1CCBD", "0x4001CCBD", "0x8000"];

/// A process of a recording, which may have addresses of its code.
fn process(random: &mut Random, pid: u64, has_addresses: bool) -> String {
    let mut end = "exit=\"3.2s\"";
    let mut short = "start=\"2.3s\" exit=\"3.3s\"";
    if has_addresses {
        end = "";
        short = "";
    }
    let life = random.pick(&["", "", "start=\"2.4s\"", end, short]);
    let clr = random.pick(&[
        r#""core" version="6.0.100""#,
        r#""core" version="8.0.0""#,
        r#""desktop" version="4.8.4000.0""#,
    ]);
    let methods = 20 + random.up_to(100);
    let ready = random.up_to(20);
    let threads = 1 + random.up_to(3);
    let step = 15 * random.up_to(6);
    let acts = random.pick(&[
        "jit 1",
        "jit 1; allocate 3",
        "jit 1; throw 1",
        "jit 1; contend 1",
    ]);
    let collects = random.pick(&[
        "",
        "at \"2.9s\" { gc 0 }",
        "every \"150ms\" from=\"2.7s\" until=\"3.1s\" { gc 1 }",
    ]);
    format!(
        r#"
process "P{pid}.exe" pid={pid} {life} threads={threads} {{
    clr {clr} {{
        assembly "P{pid}" {{ module "C:\\App\\P{pid}.dll" {{ methods {methods} ready={ready} }} }}
    }}
    every "{step}ms" from="2.65s" until="3.15s" {{ {acts} }}
    {collects}
}}"#
    )
}

fn script(seed: u64) -> String {
    let mut random = Random(seed);
    let processors = random.up_to(4);
    let runtime = random.pick(&MASKS);
    let kernel = random.pick(&[
        "",
        "kernel \"processes images\"",
        "kernel \"processes images profile\"",
    ]);
    let has_addresses = WITH_ADDRESSES.contains(&runtime) || kernel.contains("profile");
    let count = random.up_to(4);
    let mut processes: String = (0..count)
        .map(|at| process(&mut random, 100 + at, has_addresses))
        .collect();
    // A process that runs all the time, so that the rundown lists one.
    processes.push_str(
        r#"
process "Long.exe" pid=900 {
    clr "core" version="6.0.100" {
        assembly "Long" { module "C:\\App\\Long.dll" { methods 50 ready=10 } }
    }
    every "50ms" from="2.1s" until="3.9s" { jit 1 }
}"#,
    );
    let rundown = random.pick(&["0x138", "0x138", "0x178", "0x118"]);
    // At level 4 .NET Core has no loads of compiled methods.
    let levels = if WITH_ADDRESSES.contains(&runtime) {
        ["5", "5", "5"]
    } else {
        ["4", "5", "5"]
    };
    let level = random.pick(&levels);
    let clock = random.pick(&["qpc", "system", "cycle"]);
    format!(
        r#"
scenario "shape" seed={seed}
machine processors={processors}
{processes}
at "2s" {{ session "clr" file="clr.etl" clock="{clock}" {{
    {kernel}
    enable "runtime" keywords={runtime} level={level}
}} }}
at "4s" {{ enable "rundown" in="clr" keywords={rundown} level=5 }}
at "6s" {{ stop "clr" }}
"#
    )
}

pub fn family() -> Family {
    let mut cases = Vec::new();
    for seed in 1..=SHAPES {
        for has_truth in [false, true] {
            cases.push(Case {
                name: format!("shape {seed}"),
                script: script(seed),
                file: "clr.etl",
                merged: &[],
                edit: None,
                declared: Declared {
                    has_truth,
                    ..Declared::default()
                },
                accepted: None,
                expected: Expected::Sound,
            });
        }
    }
    Family {
        name: "sound recordings of 100 random shapes",
        cases,
    }
}
