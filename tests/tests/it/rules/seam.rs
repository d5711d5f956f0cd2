//! The seam between the runtime session and the rundown, in files that were merged.

use etl_verify::{Enabled, Report, Verifier};

use super::base::{files_of, judge};

/// A runtime session that stops at {stop}, a rundown session from 4 s on, and a kernel session over
/// both; all in one file, the last one.
fn merged(stop: &str) -> Vec<u8> {
    let script = r#"
machine processors=2
process "App.exe" pid=100 threads=2 start="2.05s" {
    clr "desktop" version="4.8.4000.0" {
        assembly "Core" { module "C:\\App\\Core.dll" { methods 40 ready=4 } }
    }
    every "100ms" from="2.2s" until="3.9s" { jit 1 }
    at "4.8s" { jit 1 }
}
at "1.9s" { session "NT Kernel Logger" file="kernel.etl" { kernel "processes" } }
at "2s" { session "clr" file="clr1.etl" { enable "runtime" keywords=0x98 level=5 } }
at "4s" { session "rundown" file="clr2.etl" { enable "rundown" keywords=0x138 level=5 } }
at "{stop}" { stop "clr" }
at "5s" { stop "rundown" }
at "5.1s" { stop "NT Kernel Logger" }
at "5.5s" { merge "kernel.etl clr1.etl clr2.etl" into="merged.etl" }
"#;
    let script = script.replace("{stop}", stop);
    files_of("seam", &script).remove("merged.etl").unwrap()
}

/// Why methods of the rundown without a load event are no certain loss. A merged file does not say
/// when its sessions ended.
fn gaps(report: &Report) -> Vec<&str> {
    let gaps = report
        .findings
        .iter()
        .filter(|f| f.rule == "filter.missing-loads");
    gaps.filter_map(|f| f.because.as_deref()).collect()
}

#[test]
fn gap_is_found_inside_a_merged_file() {
    let enabled = Enabled::parse("runtime:0x98:5").unwrap();
    // The recorded start of the CLR shows what was enabled as well.
    for verifier in [Verifier::new().enabled(enabled), Verifier::new()] {
        let report = judge(&[merged("3s")], verifier);
        let found = gaps(&report);
        let why = "the runtime session may have ended before the rundown";
        assert!(
            found.len() == 1 && found[0].contains(why),
            "{found:?} {}",
            report.text()
        );
    }
}

#[test]
fn gap_is_not_found_where_the_runtime_session_ends_last() {
    let report = judge(&[merged("4.9s")], Verifier::new());
    assert_eq!(gaps(&report), Vec::<&str>::new(), "{}", report.text());
}

#[test]
fn gap_is_found_beside_a_start_rundown() {
    let script = r#"
machine processors=2
process "App.exe" pid=100 threads=2 {
    clr "core" version="8.0.100" {
        assembly "Core" { module "C:\\App\\Core.dll" { methods 60 ready=4 } }
    }
    every "100ms" from="2.5s" until="6s" { jit 1 }
}
at "2s" { session "clr" file="clr1.etl" { enable "runtime" keywords=0x98 level=5 } }
at "2.1s" { session "start" file="clr0.etl" { enable "rundown" keywords=0x78 level=5 } }
at "2.4s" { stop "start" }
at "4s" { stop "clr" }
at "6.5s" { session "end" file="clr2.etl" { enable "rundown" keywords=0x138 level=5 } }
at "7s" { stop "end" }
at "7.5s" { merge "clr0.etl clr1.etl clr2.etl" into="merged.etl" }
"#;
    let mut files = files_of("seam", script);
    let report = judge(&[files.remove("merged.etl").unwrap()], Verifier::new());
    assert_eq!(gaps(&report).len(), 1, "{}", report.text());
    let files = ["clr0.etl", "clr1.etl", "clr2.etl"].map(|name| files.remove(name).unwrap());
    let report = judge(&files, Verifier::new());
    assert!(
        report.findings.iter().any(|f| f.rule == "merge.gap"),
        "{}",
        report.text()
    );
}
