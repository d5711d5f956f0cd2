//! Recordings whose sessions miss what they should list, ask again, or ask for the state of a CLR.

use etl_synth::Script;
use etl_verify::{Enabled, Outcome, Truth, Verifier};

use crate::simulated::simulate;

/// Rules that a file of a scenario breaks or leaves open (`?`).
fn broken(script: &str, file: &str, enabled: impl FnOnce(&Truth) -> Vec<Enabled>) -> Vec<String> {
    let scenario = Script::new("sessions", script).parse().unwrap_or_else(|e| panic!("{e}"));
    let simulated = simulate("sessions", script.to_owned(), scenario);
    let truth = Truth::read(simulated.texts["truth.jsonl"].as_slice()).unwrap();
    let bytes = simulated.traces[file].as_slice();
    let report = Verifier::new().enabled(enabled(&truth)).verify(bytes, file).unwrap();
    let rules = report.rules.iter().filter(|rule| rule.outcome < Outcome::Holds);
    let mark = |outcome| if outcome == Outcome::Undecided { "?" } else { "" };
    rules.map(|rule| format!("{}{}", rule.rule, mark(rule.outcome))).collect()
}

fn nothing(_: &Truth) -> Vec<Enabled> {
    Vec::new()
}

fn declared(text: &str) -> Vec<Enabled> {
    Enabled::parse(text).unwrap()
}

/// Two processes that run before the recording; the rundown is enabled with `with`.
fn two_processes(with: &str) -> String {
    format!(
        r#"
scenario "two" seed=11
process "Orders.exe" pid=100 {{
    clr "core" version="6.0.100" {{
        assembly "Orders" {{ module "C:\\App\\Orders.dll" {{ methods 60 ready=20 }} }}
        assembly "Late" late=#true {{ module "C:\\App\\Late.dll" {{ methods 20 }} }}
    }}
    every "50ms" from="1s" until="2.5s" {{ jit 1 }}
    at "1.5s" {{ load "Late" }}
}}
process "Web.exe" pid=200 {{
    clr "core" version="6.0.100" {{
        assembly "Web" {{ module "C:\\App\\Web.dll" {{ methods 60 ready=20 }} }}
    }}
}}
at "500ms" {{ session "clr" file="clr1.etl" {{ enable "runtime" keywords=0x98 level=5 }} }}
at "3s" {{ session "rundown" file="clr2.etl" {{ enable "rundown" {with} level=5 }} }}
at "4s" {{ stop "rundown" }}
at "5s" {{ stop "clr"; merge "clr1.etl clr2.etl" into="merged.etl" }}
"#
    )
}

#[test]
fn a_rundown_of_other_processes_is_not_that_of_the_recorded_ones() {
    let of = |with: &str| broken(&two_processes(with), "merged.etl", nothing);
    assert_eq!(of("keywords=0x138"), [""; 0]);
    let others = of("keywords=0x138 processes=200");
    assert!(others.contains(&"merge.no-common-process".to_owned()), "{others:?}");
}

#[test]
fn what_a_clr_says_of_itself_is_no_rundown() {
    // These masks list no code; some make the CLR log what it is.
    for mask in ["0x100", "0x40", "0x140", "0xB8"] {
        let of = broken(&two_processes(&format!("keywords={mask}")), "merged.etl", nothing);
        assert!(of.contains(&"rundown.none".to_owned()), "{mask}: {of:?}");
    }
}

#[test]
fn a_process_with_two_clrs_that_needs_no_rundown_lacks_none() {
    let script = r#"
scenario "clrs" seed=3
process "Short.exe" pid=100 start="1s" exit="2s" {
    clr "desktop" version="4.8.4000.0" {
        assembly "A" { module "C:\\App\\A.dll" { methods 20 ready=5 } }
    }
    clr "core" version="6.0.100" {
        assembly "B" { module "C:\\App\\B.dll" { methods 20 ready=5 } }
    }
    every "50ms" from="1.2s" until="1.8s" { jit 1 }
}
process "Other.exe" pid=200 {
    clr "core" version="6.0.100" {
        assembly "O" { module "C:\\App\\O.dll" { methods 20 ready=5 } }
    }
    every "50ms" from="1.2s" until="1.8s" { jit 1 }
}
at "500ms" { session "clr" file="clr1.etl" { enable "runtime" keywords=0x98 level=5 } }
at "3s" { session "rundown" file="clr2.etl" { enable "rundown" keywords=0x138 level=5 } }
at "4s" { stop "rundown"; stop "clr"; merge "clr1.etl clr2.etl" into="merged.etl" }
"#;
    assert_eq!(broken(script, "merged.etl", nothing), [""; 0]);
}

/// A process that compiles until 4.9 s, and sessions until 6 s.
fn compiling(sessions: &str) -> String {
    format!(
        r#"
scenario "compiling" seed=3
process "Orders.exe" pid=200 {{
    clr "core" version="6.0.100" {{
        assembly "Orders" {{ module "C:\\App\\Orders.dll" {{ methods 90 ready=5 }} }}
    }}
    every "50ms" from="600ms" until="4.9s" {{ jit 1 }}
}}
{sessions}
at "5s" {{ session "rundown" file="clr2.etl" {{ enable "rundown" keywords=0x138 level=5 }} }}
at "6s" {{ stop "rundown"; stop "clr"; merge "clr1.etl clr2.etl" into="merged.etl" }}
"#
    )
}

#[test]
fn a_session_that_asks_again_with_a_lower_level_breaks_no_rule() {
    let script = compiling(
        r#"at "500ms" { session "clr" file="clr1.etl" { enable "runtime" keywords=0x98 level=5 } }
at "3s" { enable "runtime" in="clr" keywords=0x98 level=4 }"#,
    );
    let of = broken(&script, "merged.etl", |truth| truth.of("merged.etl").unwrap());
    assert_eq!(of, [""; 0]);
}

#[test]
fn events_that_another_session_made_the_clr_raise_are_not_called_wrong() {
    let script = compiling(
        r#"at "500ms" { session "clr" file="clr1.etl" { enable "runtime" keywords=0x98 level=4 } }
at "1s" { session "other" file="other.etl" { enable "runtime" keywords=0x98 level=5 } }
at "1.5s" { stop "other" }"#,
    );
    let of = |text: &str| broken(&script, "merged.etl", |_| declared(text));
    // The names of methods need level 5, but the events that have them have level 4.
    assert_eq!(of("runtime:0x98:4"), ["filter.not-enabled?"]);
    assert_eq!(of("runtime:0x98:4+runtime:0x98:5"), [""; 0]);
    // What does not pass the session's own filter is wrong.
    assert_eq!(of("runtime:0x8:4"), ["filter.not-enabled"]);
}

#[test]
fn what_a_clr_lists_when_its_state_is_requested_was_there_before() {
    let script = |at: &str| {
        format!(
            r#"
scenario "capture" seed=9
process "Orders.exe" pid=100 threads=2 {{
    clr "core" version="6.0.100" {{
        assembly "Orders" {{ module "C:\\App\\Orders.dll" {{ methods 200 ready=50 }} }}
    }}
    every "20ms" from="200ms" until="4.8s" {{ jit 1; run "2ms" }}
}}
session "NT Kernel Logger" file="kernel.etl" {{ kernel "processes images profile stacks" }}
at "500ms" {{ session "clr" file="clr.etl" {{ enable "runtime" keywords=0x1CCBD level=5 }} }}
at "{at}" {{ capture-state "runtime" in="clr" }}
at "5s" {{
    stop "clr"
    stop "NT Kernel Logger"
    merge "kernel.etl clr.etl" into="merged.etl"
}}
"#
        )
    };
    for at in ["600ms", "4s"] {
        for file in ["clr.etl", "merged.etl"] {
            let of = broken(&script(at), file, |_| declared("runtime:0x1CCBD:5"));
            assert_eq!(of, ["rundown.none"], "{at} {file}: a note that nothing is missing");
        }
    }
}

/// A running process whose runtime provider is enabled for a while with another mask, or not at
/// all, between two rundowns.
fn with_a_break(during: &str, after: &str) -> String {
    format!(
        r#"
scenario "break" seed=3
process "Orders.exe" pid=100 {{
    clr "core" version="6.0.100" {{
        assembly "Orders" {{ module "C:\\App\\Orders.dll" {{ methods 180 ready=40 }} }}
    }}
    every "40ms" from="1.1s" until="5.9s" {{ jit 1 }}
}}
at "1s" {{
    session "clr" file="clr.etl" {{
        enable "runtime" keywords=0x98 level=5
        enable "rundown" keywords=0x78 level=5
    }}
}}
at "3s" {{ {during} }}
at "4s" {{ {after} }}
at "5s" {{ enable "rundown" in="clr" keywords=0x138 level=5 }}
at "6s" {{ stop "clr" }}
"#
    )
}

#[test]
fn loads_while_the_keyword_was_known_to_be_off_are_not_missing() {
    let of = |during: &str, after: &str| {
        broken(&with_a_break(during, after), "clr.etl", |truth| truth.of("clr.etl").unwrap())
    };
    let enable = |mask: &str| format!("enable \"runtime\" in=\"clr\" keywords={mask} level=5");
    let missing = "filter.missing-loads".to_owned();
    for during in [enable("0x8"), "disable \"runtime\" in=\"clr\"".to_owned()] {
        let rules = of(&during, &enable("0x98"));
        assert!(!rules.contains(&missing), "{during}: {rules:?}");
    }
    assert_eq!(of(&enable("0x98"), &enable("0x98")), [""; 0], "enabled again as before");
}
