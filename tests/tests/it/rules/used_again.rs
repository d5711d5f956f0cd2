//! Ids that are used again, and events that state again what is there: neither is a fault.

use etl_format::ProcessId;
use etl_verify::{Baseline, Enabled, Finding, Report, Verifier};

use super::base::{files_of, judge};
use super::edit::{records, write};

/// The finding messages of a rule.
fn messages<'r>(report: &'r Report, rule: &str) -> Vec<&'r str> {
    let own = report
        .findings
        .iter()
        .filter(|finding| finding.rule == rule);
    own.map(|finding| finding.message.as_str()).collect()
}

fn verified(name: &str, script: &str) -> Report {
    let script = format!("scenario \"{name}\" seed=1\n{script}");
    judge(
        &[files_of(name, &script).remove("clr.etl").unwrap()],
        Verifier::new(),
    )
}

#[test]
fn methods_unloaded_with_each_module_of_an_id_are_no_finding() {
    let report = verified(
        "plugin",
        r#"
process "Host.exe" threads=1 {
    clr "core" version="8.0.0" {
        assembly "Host" { module "C:\\App\\Host.dll" { methods 10 kind="jitted" ready=5 } }
        assembly "Plug" late=#true collectible=#true {
            module "C:\\App\\Plug.dll" { methods 10 kind="jitted" ready=5 }
        }
    }
    at "2s" { load "Plug" }
    at "4s" { unload "Plug" }
    at "5s" { load "Plug" }
    at "7s" { unload "Plug" }
}
at "1s" { session "clr" file="clr.etl" { enable "runtime" keywords=0x98 level=5 } }
at "8s" { enable "rundown" in="clr" keywords=0x138 level=5 }
at "9s" { stop "clr" }
"#,
    );
    assert!(report.processes[0].unloaded.modules == 2 && report.processes[0].unloaded.methods > 0);
    assert_eq!(messages(&report, "symbols.not-unloaded"), [""; 0]);
}

#[test]
fn methods_that_capture_state_lists_again_are_unloaded_once() {
    let report = verified(
        "captured",
        r#"
process "Host.exe" threads=1 exit="4s" {
    clr "core" version="8.0.0" {
        assembly "Host" { module "C:\\App\\Host.dll" { methods 10 kind="jitted" ready=5 } }
    }
    at "1.5s" { jit 2 }
}
at "1s" { session "clr" file="clr.etl" { enable "runtime" keywords=0x98 level=5 } }
at "2s" { capture-state "runtime" in="clr" }
at "5s" { stop "clr" }
"#,
    );
    let process = &report.processes[0];
    assert!(
        process.loaded.methods > process.unloaded.methods,
        "{process:?}"
    );
    assert_eq!(messages(&report, "symbols.not-unloaded"), [""; 0]);
}

#[test]
fn capture_state_is_no_start_of_the_clr() {
    let report = verified(
        "stated",
        r#"
process "Host.exe" threads=1 {
    clr "core" version="8.0.0" {
        assembly "Host" { module "C:\\App\\Host.dll" { methods 10 kind="jitted" ready=5 } }
        assembly "Plug" late=#true collectible=#true {
            module "C:\\App\\Plug.dll" { methods 6 kind="jitted" ready=3 }
        }
    }
    at "0.5s" { load "Plug" }
    at "2s" { unload "Plug" }
}
at "1s" { session "clr" file="clr.etl" { enable "runtime" keywords=0x98 level=5 } }
at "3s" { capture-state "runtime" in="clr" }
at "5s" { stop "clr" }
"#,
    );
    let unknown = ["3 pieces of code were unloaded without being loaded or listed before"];
    assert_eq!(messages(&report, "symbols.unload-unknown"), unknown);
}

const FIRST: u32 = 3_000;
/// No other four bytes of the traces are those of this number.
const SECOND: u32 = 311_108;

/// A trace of two processes in turn: the second one has the id of the first.
fn one_id(second: &str, keywords: &str) -> Vec<u8> {
    let script = format!(
        r#"
scenario "turns" seed=3
machine processors=2
process "First.exe" pid={FIRST} start="1.1s" exit="1.5s" threads=2 {{
    clr "core" {{ assembly "First" {{ module "C:\\App\\First.dll" {{ methods 20 ready=5 }} }} }}
    at "1.2s" {{ jit 3; gc 0 }}
}}
process "Second.exe" pid={SECOND} start="1.6s" exit="2.2s" threads=2 {{ {second} }}
process "Other.exe" pid=500 threads=2 {{
    clr "core" {{ assembly "Other" {{ module "C:\\App\\Other.dll" {{ methods 20 ready=5 }} }} }}
    at "2.3s" {{ jit 3 }}
}}
at "1s" {{
    session "clr" file="clr.etl" {{
        kernel "processes threads images"
        enable "runtime" keywords={keywords} level=5
    }}
}}
at "2.5s" {{ stop "clr" }}
"#
    );
    let mut file = files_of("turns", &script).remove("clr.etl").unwrap();
    let (from, to) = (SECOND.to_le_bytes(), FIRST.to_le_bytes());
    for at in 0..file.len() - 4 {
        if file[at..at + 4] == from {
            file[at..at + 4].copy_from_slice(&to);
        }
    }
    file
}

const MANAGED: &str = r#"
    clr "core" { assembly "Second" { module "C:\\App\\Second.dll" { methods 20 ready=5 } } }
    at "1.9s" { jit 4; gc 1 }
"#;

#[test]
fn collections_of_processes_with_one_id_are_kept_apart() {
    // Both begin with collection 1.
    let report = judge(&[one_id(MANAGED, "0x1099")], Verifier::new());
    assert_eq!(
        report
            .processes
            .iter()
            .filter(|process| process.pid == FIRST)
            .count(),
        2
    );
    assert_eq!(messages(&report, "gc.incomplete"), [""; 0]);
}

#[test]
fn findings_name_the_process_that_had_the_id() {
    let report = judge(&[one_id(MANAGED, "0x98")], Verifier::new());
    let own = |f: &&Finding| f.rule == "rundown.none" && f.pid == Some(ProcessId::new(FIRST));
    assert_eq!(report.findings.iter().filter(own).count(), 2);
    let text = report.text();
    let baseline = Baseline::of(std::slice::from_ref(&report)).json();
    for name in ["First.exe", "Second.exe"] {
        assert!(
            text.contains(&format!("rundown.none pid {FIRST} {name} at")),
            "{text}"
        );
        assert!(
            baseline.contains(&format!("\"process\": \"{name}\"")),
            "{baseline}"
        );
    }
}

#[test]
fn native_process_with_the_id_of_a_managed_one_is_not_silent() {
    let file = one_id("", "0x98");
    let silent = |file: &[u8]| {
        let enabled = Enabled::parse("runtime:0x98:5").unwrap();
        let report = judge(&[file.to_vec()], Verifier::new().enabled(enabled));
        messages(&report, "filter.silent-process").len()
    };
    assert_eq!(silent(&file), 0);
    // Without its events the first one is.
    let mut left = records(&file);
    left.retain(|r| !(r.is_event() && r.pid() == FIRST));
    assert_eq!(silent(&write(&file, &left)), 1);
}

#[test]
fn end_rundown_listing_a_module_without_methods_is_incomplete() {
    let script = r#"
scenario "listed" seed=3
machine processors=2
process "Host.exe" threads=2 {
    clr "core" version="8.0.0" {
        assembly "Host" { module "C:\\App\\Host.dll" { methods 10 kind="jitted" ready=3 } }
        assembly "Plug" late=#true collectible=#true {
            module "C:\\App\\Plug.dll" { methods 6 kind="jitted" ready=3 }
        }
        assembly "Late" late=#true {
            module "C:\\App\\Late.dll" { methods 6 kind="jitted" ready=3 }
        }
    }
    at "2.1s" { load "Plug" }
    at "2.2s" { load "Late" }
    at "2.5s" { jit 3 }
    at "3s" { unload "Plug" }
}
at "2s" { session "clr" file="clr.etl" { enable "runtime" keywords={mask} level=5 } }
at "4s" { enable "rundown" in="clr" keywords=0x138 level=5 }
at "5s" { stop "clr" }
"#;
    // Without EndEnumeration no event shows that the methods of the plug-in have gone.
    for mask in ["0x98", "0x18"] {
        let script = script.replace("{mask}", mask);
        let file = files_of("listed", &script).remove("clr.etl").unwrap();
        let report = judge(std::slice::from_ref(&file), Verifier::new());
        assert_eq!(messages(&report, "rundown.incomplete"), [""; 0], "{mask}");
        let all = records(&file);
        let is_loaded = |name: &str| name.starts_with("MethodLoad");
        let loaded: Vec<u64> = all
            .iter()
            .filter(|r| is_loaded(&r.name))
            .map(|r| r.u64(16))
            .collect();
        let mut left = all.clone();
        left.retain(|r| !(r.name.starts_with("MethodDCEnd") && loaded.contains(&r.u64(16))));
        assert!(left.len() + 3 < all.len(), "{mask}");
        let report = judge(&[write(&file, &left)], Verifier::new());
        let own = report
            .findings
            .iter()
            .find(|f| f.rule == "rundown.incomplete")
            .unwrap();
        assert!(own.is_decided(), "{mask}: {}", own.message);
        let missing = all.len() - left.len();
        assert!(
            own.message
                .contains(&format!("{missing} methods were there")),
            "{}",
            own.message
        );
    }
}
