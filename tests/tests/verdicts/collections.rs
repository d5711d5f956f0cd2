//! One missing event of a garbage collection.

use crate::case::{Case, Expected, Family};

/// Collections of one process, or of two CLRs in it.
fn script(clrs: &[&str], seed: u64, change: &str) -> String {
    let mut text = String::new();
    for (number, clr) in clrs.iter().enumerate() {
        text.push_str(&format!(
            r#"
    clr {clr} instance={} {{
        assembly "Shop{number}" {{ module "C:\\App\\Shop{number}.dll" {{ methods 40 ready=20 }} }}
    }}"#,
            9 + number
        ));
    }
    format!(
        r#"
scenario "collections" seed={seed}
machine processors=2
process "Shop.exe" pid=100 threads=3 {{{text}
    every "70ms" from="2.3s" until="3.6s" {{ gc 0 }}
    every "310ms" from="2.33s" until="3.6s" {{ gc 1 }}
    at "3.7s" {{ gc 2 background=#true }}
    at "5.5s" {{ gc 2 induced=#true }}
    every "10ms" from="2.2s" until="3.6s" {{ allocate 2 }}
}}
at "2s" {{ session "clr" file="clr.etl" {{ enable "runtime" keywords=0x1 level=4 }} }}
at "7s" {{ stop "clr" }}
{change}
"#
    )
}

const DESKTOP: &str = r#""desktop" version="4.8.4000.0""#;
const CORE: &str = r#""core" version="8.0.100""#;

/// The events that every collection has.
const EVENTS: [&str; 9] = [
    "GCStart",
    "GCEnd",
    "GCHeapStats",
    "GCSuspendEEBegin",
    "GCSuspendEEEnd",
    "GCRestartEEBegin",
    "GCRestartEEEnd",
    "GCFinalizersBegin",
    "GCFinalizersEnd",
];

pub fn family() -> Family {
    let mut cases = Vec::new();
    for clr in [DESKTOP, CORE] {
        for event in EVENTS {
            for nth in [2, 7] {
                let change = format!("edit \"clr.etl\" {{ delete \"{event}\" nth={nth} }}");
                let script = script(&[clr], 61, &change);
                let name = format!("{clr} without {event} {nth}");
                cases.push(Case::new(name, script, Expected::Found(&["gc.incomplete"])));
            }
        }
        for seed in 62..76 {
            let name = format!("{clr}, seed {seed}");
            cases.push(Case::new(name, script(&[clr], seed, ""), Expected::Sound));
        }
    }
    for seed in 76..86 {
        let script = script(&[DESKTOP, CORE], seed, "");
        cases.push(Case::new(
            format!("two CLRs, seed {seed}"),
            script,
            Expected::Sound,
        ));
    }
    Family {
        name: "6: one missing event of a collection",
        cases,
    }
}
