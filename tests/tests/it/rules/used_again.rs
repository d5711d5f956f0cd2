//! Ids that are used again, and events that state again what is there: neither is a fault.

use etl_verify::{Report, Verifier};

use super::base::{files_of, judge};
use super::edit::{records, write};

/// The finding messages of a rule.
fn messages<'r>(report: &'r Report, rule: &str) -> Vec<&'r str> {
    let own = report.findings.iter().filter(|finding| finding.rule == rule);
    own.map(|finding| finding.message.as_str()).collect()
}

fn verified(name: &str, script: &str) -> Report {
    let script = format!("scenario \"{name}\" seed=1\n{script}");
    judge(&[files_of(name, &script).remove("clr.etl").unwrap()], Verifier::new())
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
    assert!(process.loaded.methods > process.unloaded.methods, "{process:?}");
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

#[test]
fn end_rundown_without_methods_of_a_module_that_it_lists_is_incomplete() {
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
        let loaded: Vec<u64> =
            all.iter().filter(|r| is_loaded(&r.name)).map(|r| r.u64(16)).collect();
        let mut left = all.clone();
        left.retain(|r| !(r.name.starts_with("MethodDCEnd") && loaded.contains(&r.u64(16))));
        assert!(left.len() + 3 < all.len(), "{mask}");
        let report = judge(&[write(&file, &left)], Verifier::new());
        let own = report.findings.iter().find(|f| f.rule == "rundown.incomplete").unwrap();
        assert!(own.is_decided(), "{mask}: {}", own.message);
        let missing = all.len() - left.len();
        assert!(own.message.contains(&format!("{missing} methods were there")), "{}", own.message);
    }
}
