//! Unloads without loads, of a CLR that was recorded from its start.

use etl_verify::{Enabled, Severity, Verifier};

use super::base::{files_of, judge};
use super::edit::{Rec, records, write};

const LIFE: &str = r#"
scenario "life" seed=3
machine processors=2
process "Host.exe" start="2s" exit="4s" threads=2 {
    clr CLR {
        assembly "Host" { module "C:\\App\\Host.dll" { methods 10 kind="jitted" ready=3 } }
        assembly "Plug" late=#true collectible=#true {
            module "C:\\App\\Plug.dll" { methods 6 kind="jitted" ready=3 }
        }
    }
    at "2.5s" { load "Plug"; jit 3 }
    at "3s" { unload "Plug" }
}
at "1s" { session "clr" file="life.etl" { enable "runtime" keywords=0x98 level=LEVEL } }
at "5s" { stop "clr" }
"#;

const CORE: &str = r#""core" version="8.0.0""#;
const DESKTOP: &str = r#""desktop" version="4.8.4000.0""#;

/// A CLR that is recorded at a level, and ids of events that tell what it loads.
struct Recording {
    clr: &'static str,
    level: &'static str,
    ids: &'static [u16],
}

/// .NET Core has no loads of methods at level 4.
const RECORDINGS: [Recording; 2] = [
    Recording {
        clr: CORE,
        level: "5",
        ids: &[143, 152, 154, 156],
    },
    Recording {
        clr: DESKTOP,
        level: "4",
        ids: &[141],
    },
];

/// Findings above a note after each event of a kind was removed in turn: rules that all of them
/// have.
fn without(id: u16, recording: &Recording, enabled: &[Enabled]) -> Vec<Vec<&'static str>> {
    let script = LIFE
        .replace("CLR", recording.clr)
        .replace("LEVEL", recording.level);
    let file = files_of("life", &script).remove("life.etl").unwrap();
    let all = records(&file);
    let found = |left: &[Rec]| {
        let verifier = Verifier::new().enabled(enabled.to_vec());
        let report = judge(&[write(&file, left)], verifier);
        let serious = report
            .findings
            .iter()
            .filter(|f| f.severity > Severity::Note);
        serious.map(|f| f.rule).collect::<Vec<_>>()
    };
    assert_eq!(found(&all), [""; 0], "nothing is missing");
    let of_kind = |at: &usize| all[*at].is_event() && all[*at].id() == id;
    let removed = (0..all.len()).filter(of_kind).map(|at| {
        let mut left = all.clone();
        left.remove(at);
        found(&left)
    });
    removed.collect()
}

#[test]
fn each_load_that_is_missing_before_an_unload_is_found() {
    let declared = |text: &str| Enabled::parse(text).unwrap();
    let unknown = "symbols.unload-unknown";
    for recording in &RECORDINGS {
        let level = recording.level;
        for enabled in [Vec::new(), declared(&format!("runtime:0x98:{level}"))] {
            for &id in recording.ids {
                let found = without(id, recording, &enabled);
                assert!(!found.is_empty(), "{id}");
                assert!(
                    found.iter().all(|rules| rules.contains(&unknown)),
                    "{id} {found:?}"
                );
                if id == 143 {
                    let jit = "symbols.jit-without-load";
                    let late = found.iter().filter(|rules| rules.contains(&jit)).count();
                    assert!(late >= 3, "{found:?}");
                }
            }
        }
    }
}
