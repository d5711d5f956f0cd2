//! The end of the runtime's session, from the header of a file of one session, or from the truth:
//! loads that are missing before it are missing, and a rundown that begins after it has a gap.

use crate::case::{Case, Expected, Family};

/// A process that starts in the recording, and is quiet during the rundown.
fn one_session(seed: u64, level: u8, change: &str) -> String {
    format!(
        r#"
scenario "ends" seed={seed}
machine processors=2
process "Shop.exe" pid=100 start="2.2s" threads=3 {{
    clr "desktop" version="4.8.4000.0" {{
        assembly "Shop" {{ module "C:\\App\\Shop.dll" {{ methods 90 ready=20 }} }}
    }}
    every "40ms" from="2.6s" until="4.5s" {{ jit 1 }}
}}
at "2s" {{ session "clr" file="clr.etl" {{ enable "runtime" keywords=0x98 level={level} }} }}
at "5s" {{ enable "rundown" in="clr" keywords=0x138 level=5 }}
at "7s" {{ stop "clr" }}
{change}
"#
    )
}

fn without(event: &str, nth: u64) -> String {
    format!("edit \"clr.etl\" {{ delete \"{event}\" nth={nth} }}")
}

/// The runtime session stops at a time, and the rundown begins at 5 s.
fn two_sessions(seed: u64, stop: &str) -> String {
    format!(
        r#"
scenario "two ends" seed={seed}
machine processors=2
process "Shop.exe" pid=100 threads=3 {{
    clr "core" version="8.0.100" {{
        assembly "Shop" {{ module "C:\\App\\Shop.dll" {{ methods 90 ready=20 }} }}
    }}
    every "40ms" from="2.6s" until="5.8s" {{ jit 1 }}
}}
at "2s" {{ session "clr" file="clr1.etl" {{ enable "runtime" keywords=0x98 level=5 }} }}
at "5s" {{ session "rundown" file="clr2.etl" {{ enable "rundown" keywords=0x138 level=5 }} }}
at "{stop}" {{ stop "clr" }}
at "7s" {{ stop "rundown" }}
at "9s" {{ merge "clr1.etl clr2.etl" into="merged.etl" }}
"#
    )
}

/// A recording that begins while methods are compiled: the first loads have no beginning.
fn attached(seed: u64, from: u64) -> String {
    format!(
        r#"
scenario "attached" seed={seed}
machine processors=2
process "Shop.exe" pid=100 threads=3 {{
    clr "core" version="8.0.100" {{
        assembly "Shop" {{ module "C:\\App\\Shop.dll" {{ methods 900 ready=20 }} }}
    }}
    every "2ms" from="1.5s" until="2.5s" {{ jit 1 }}
    at "4.5s" {{ jit 1 }}
}}
at "{from}ms" {{ session "clr" file="clr.etl" {{ enable "runtime" keywords=0x98 level=5 }} }}
at "4s" {{ enable "rundown" in="clr" keywords=0x138 level=5 }}
at "7s" {{ stop "clr" }}
"#
    )
}

fn case(name: String, script: String, file: &'static str, expected: Expected) -> Case {
    Case {
        file,
        ..Case::new(name, script, expected)
    }
}

/// The same with its enablements: otherwise nothing shows that loads of methods were enabled.
fn declared(mut case: Case, level: u8) -> Case {
    case.declared.enabled = format!("runtime:0x98:{level}+rundown:0x138:5");
    case
}

fn merged_here(stop: &str, expected: Expected) -> Case {
    Case {
        merged: &["clr1.etl", "clr2.etl"],
        ..case(
            format!("merged here, stop at {stop}"),
            two_sessions(31, stop),
            "merged.etl",
            expected,
        )
    }
}

pub fn family() -> Family {
    let mut cases = Vec::new();
    let missing = Expected::Error(&["filter.missing-loads"]);
    for (level, event) in [(4, "MethodLoad"), (5, "MethodLoadVerbose")] {
        for nth in [4, 9, 20, 40] {
            let script = one_session(21, level, &without(event, nth));
            let name = format!("level {level} without {event} {nth}");
            cases.push(declared(
                case(name, script, "clr.etl", missing.clone()),
                level,
            ));
        }
        for seed in 22..26 {
            let script = one_session(seed, level, "");
            let name = format!("level {level}, seed {seed}");
            cases.push(declared(
                case(name, script, "clr.etl", Expected::Sound),
                level,
            ));
        }
    }
    for (event, nth) in [("ModuleLoad", 1), ("AssemblyLoad", 1), ("AppDomainLoad", 1)] {
        let script = one_session(21, 5, &without(event, nth));
        let of = case(
            format!("without {event}"),
            script,
            "clr.etl",
            missing.clone(),
        );
        cases.push(declared(of, 5));
    }
    for stop in ["4.2s", "4.6s", "4.8s", "4.95s"] {
        let gap = Expected::Error(&["merge.gap"]);
        let mut of = case(
            format!("stop at {stop}"),
            two_sessions(31, stop),
            "merged.etl",
            gap,
        );
        of.declared.has_truth = true;
        cases.push(of);
    }
    for stop in ["6s", "6.5s", "7.5s", "8s"] {
        let script = two_sessions(31, stop);
        let mut of = case(
            format!("stop at {stop}"),
            script,
            "merged.etl",
            Expected::Sound,
        );
        of.declared.has_truth = true;
        cases.push(of);
    }
    // A merge by this project keeps the headers of the sessions, so that no truth is needed.
    for stop in [
        "4.2s", "4.4s", "4.6s", "4.7s", "4.8s", "4.9s", "4.95s", "4.99s", "4.999s",
    ] {
        let gap = Expected::Error(&["merge.gap"]);
        cases.push(merged_here(stop, gap));
    }
    for stop in [
        "5.1s", "5.5s", "5.9s", "6s", "6.3s", "6.5s", "7.1s", "7.5s", "8s",
    ] {
        cases.push(merged_here(stop, Expected::Sound));
    }
    for from in [1503, 1611, 1702, 1800, 1955, 2101] {
        let script = attached(41, from);
        let name = format!("attached after {from} ms");
        cases.push(case(name, script, "clr.etl", Expected::Sound));
    }
    Family {
        name: "4: when the runtime's session ends and begins",
        cases,
    }
}
