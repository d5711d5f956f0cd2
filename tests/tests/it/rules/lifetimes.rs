//! Processes by when they start and end, against the session and its rundown: which of them have to
//! be in the rundown.

use etl_format::ProcessId;
use etl_verify::Verifier;

use super::base::{files_of, judge};

/// A recording from 2 s to 7 s with an end rundown at 4.5 s, one process that is in it, and one
/// that runs in the given time.
fn recorded(clr: &str, kernel: bool, (start, exit): (&str, &str)) -> Vec<u8> {
    let script = r#"
machine processors=2
process "Always.exe" pid=100 threads=2 {
    clr {clr} { assembly "Core" { module "C:\\App\\Core.dll" { methods 9 ready=4 } } }
    every "100ms" from="2.2s" until="3s" { jit 1 }
    at "6s" { jit 1 }
}
process "Short.exe" pid=200 threads=2 {start} {exit} {
    clr {clr} { assembly "Lib" { module "C:\\App\\Lib.dll" { methods 40 } } }
    every "50ms" from="1s" until="6.5s" { jit 1 }
}
at "2s" {
    session "clr" file="clr.etl" {
        {kernel}
        enable "runtime" keywords="Loader|Jit|NGen|EndEnumeration" level=5
    }
}
at "4.5s" { enable "rundown" in="clr" keywords=0x138 level=5 }
at "7s" { stop "clr" }
"#;
    let property = |name: &str, value: &str| match value {
        "" => String::new(),
        value => format!("{name}=\"{value}\""),
    };
    let script = script
        .replace("{clr}", clr)
        .replace("{start}", &property("start", start))
        .replace("{exit}", &property("exit", exit))
        .replace("{kernel}", if kernel { "kernel \"processes\"" } else { "" });
    files_of("lifetimes", &script).remove("clr.etl").unwrap()
}

#[test]
fn processes_without_a_rundown_are_judged_by_their_lifetime() {
    // Start, end, and what is found, with the kernel's events and without. Empty: before or after
    // the recording.
    let exited = Some("rundown.process-exited");
    let cases = [
        ("", "", None),
        ("", "3.5s", exited),
        ("2.5s", "3.5s", None),
        ("2.5s", "", None),
        ("2.5s", "6s", None),
        ("5s", "6s", None),
        ("5s", "", None),
    ];
    for clr in [
        r#""core" version="6.0.100""#,
        r#""desktop" version="4.8.4000.0""#,
    ] {
        for (start, exit, expected) in cases {
            for kernel in [true, false] {
                let report = judge(&[recorded(clr, kernel, (start, exit))], Verifier::new());
                let rules = report
                    .findings
                    .iter()
                    .filter(|f| f.pid == Some(ProcessId::new(200)))
                    .map(|f| f.rule);
                let rules: Vec<_> = rules.filter(|rule| rule.starts_with("rundown.")).collect();
                let case = format!("{clr} {start}-{exit} kernel {kernel}\n{}", report.text());
                assert_eq!(rules, Vec::from_iter(expected), "{case}");
            }
        }
    }
}
