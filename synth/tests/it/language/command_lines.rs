//! Command lines that refer to files with lists of providers, and to providers that the script
//! declares.

use super::outcome;

/// The `enable` lines of a session in the truth: provider, mask and level.
fn enabled(truth: &str, session: &str) -> Vec<(String, String, u64)> {
    let of = format!("\"session\":\"{session}\"");
    let lines = truth
        .lines()
        .filter(|l| l.contains("\"kind\":\"enable\"") && l.contains(&of));
    lines
        .map(|line| {
            let line: serde_json::Value = serde_json::from_str(line).unwrap();
            let text = |name: &str| line[name].as_str().unwrap_or_default().to_owned();
            (
                text("provider_guid"),
                text("match_any_keyword"),
                line["level"].as_u64().unwrap(),
            )
        })
        .collect()
}

const RUNTIME: &str = "e13c0d23-ccbc-4e12-931b-d9cc2eee27e4";
const RUNDOWN: &str = "a669021c-c450-4609-a035-5af59af4df18";
const OWN: &str = "11111111-2222-3333-4444-555555555555";

#[test]
fn run_reads_lists_of_providers_from_files() {
    let script = r#"
        provider "Contoso-Orders" guid="11111111-2222-3333-4444-555555555555" { event "Placed" level=3 keywords=0x2 }
        process "App.exe" { every "10ms" from="1.1s" until="1.5s" { raise "Contoso-Orders" "Placed" } }
        at "1s" {
            run "logman start all -pf C:\\lists\\providers.txt -o all.etl -ets"
            run "tracelog -start two -guid guids.txt -matchanykw 0x2 -level 3 -f two.etl"
            run "logman create trace saved -pf providers.txt -o saved.etl"
            run "logman start saved"
        }
        at "2s" { run "tracelog -disable two -guid guids.txt" }
        at "3s" { run "logman stop all -ets"; run "tracelog -stop two"; run "logman stop saved" }"#;
    let out = outcome(script, &[]).unwrap();
    let listed = vec![
        (RUNTIME.to_owned(), "0x8018".to_owned(), 5),
        (RUNDOWN.to_owned(), "0x138".to_owned(), 4),
        (OWN.to_owned(), "0x2".to_owned(), 3),
    ];
    assert_eq!(enabled(&out, "all"), listed);
    assert_eq!(enabled(&out, "saved"), listed);
    let of = |guid: &str| (guid.to_owned(), "0x2".to_owned(), 3);
    assert_eq!(enabled(&out, "two"), [of(OWN), of(RUNTIME)]);
    assert!(out.contains(r#""sessions":{"all":"recorded","two":"recorded","saved":"recorded"}"#));
    // The list also contains flags of the kernel.
    assert!(out.contains("hook 0x303 pid"), "{out}");
}

#[test]
fn run_accepts_names_of_declared_providers() {
    let script = r#"
        provider "Contoso-Orders" guid="11111111-2222-3333-4444-555555555555" { event "Placed" level=3 keywords=0x2 }
        process "App.exe" { every "10ms" from="1.1s" until="1.5s" { raise "Contoso-Orders" "Placed" } }
        at "1s" {
            run "xperf -start x -on contoso-orders:0x2:3 -f x.etl"
            run "logman start l -p \"Contoso-Orders\" 0x1 5 -o l.etl -ets"
            run "xperf -start t -on Contoso-Orders -f t.etl"
        }
        at "3s" { run "xperf -stop x -stop t"; run "logman stop l -ets" }"#;
    let out = outcome(script, &[]).unwrap();
    assert_eq!(enabled(&out, "x"), [(OWN.to_owned(), "0x2".to_owned(), 3)]);
    assert!(
        out.contains(r#""sessions":{"x":"recorded","l":"keyword","t":"recorded"}"#),
        "{out}"
    );
}

#[test]
fn load_selects_the_clr_that_has_the_assembly() {
    let clr = |kind: &str, name: &str| {
        format!(
            r#"clr "{kind}" {{ domain "{name}" {{ assembly "{name}" late=#true {{ module "C:\\App\\{name}.dll" {{ methods 5 }} }} }} }}"#
        )
    };
    let script = format!(
        r#"process "App.exe" {{ {}; {}; at "1s" {{ load "New"; load "Old"; enter-domain "Old" }} }}
           session "s" file="s.etl" {{ enable "runtime" keywords="Loader" level=4 }}
           at "2s" {{ stop "s" }}"#,
        clr("core", "New"),
        clr("desktop", "Old")
    );
    let out = outcome(&script, &[]).unwrap();
    for name in ["New", "Old"] {
        let path = format!(r#""ModuleILPath":"C:\\App\\{name}.dll""#);
        let loads = out
            .lines()
            .filter(|l| l.contains("\"ModuleLoad") && l.contains(&path));
        assert_eq!(loads.count(), 1, "{name}");
    }
}

#[test]
fn private_session_records_its_process_only() {
    let script = r#"
        provider "p" { event "E" }
        process "App.exe" pid=400 { at "1s" { raise "p" "E" } }
        process "Other.exe" pid=500 { at "1s" { raise "p" "E" } }
        session "mine" file="mine.etl" process="App.exe" { enable "p" }
        at "1.5s" { in "400" { raise "p" "E" } }
        at "2s" { stop "mine" }"#;
    let out = outcome(script, &[]).unwrap();
    let events: Vec<_> = out
        .lines()
        .filter(|l| l.contains("\"kind\":\"event\""))
        .collect();
    assert_eq!(events.len(), 2, "{events:#?}");
    assert!(
        events
            .iter()
            .all(|l| l.contains("\"pid\":400") && l.contains("\"mine\":\"recorded\""))
    );
}

#[test]
fn process_ids_of_the_script_are_not_used_twice() {
    // 1016 is the id that the first process would have.
    let script = r#"
        process "A.exe"
        process "B.exe" pid=1016
        session "s" file="s.etl" { kernel "processes" }
        at "1s" { stop "s" }"#;
    let out = outcome(script, &[]).unwrap();
    let ids: Vec<u64> = out
        .lines()
        .filter(|l| l.contains("\"kind\":\"process\"") || l.contains("\"kind\":\"thread\""))
        .map(|l| serde_json::from_str::<serde_json::Value>(l).unwrap())
        .map(|l| l["tid"].as_u64().or(l["pid"].as_u64()).unwrap())
        .collect();
    let different: std::collections::BTreeSet<_> = ids.iter().filter(|id| **id != 0).collect();
    assert_eq!(
        different.len(),
        ids.iter().filter(|id| **id != 0).count(),
        "{ids:?}"
    );
}

#[test]
fn simulation_error_has_its_location() {
    let script = "session \"s\" file=\"s.etl\"\nat \"1s\" { stop \"s\" }\nat \"2s\" { stop \"s\" }";
    let scenario = super::parse(script, &[]).unwrap();
    let error = etl_synth::Simulation::new(&scenario)
        .run_in_memory()
        .unwrap_err();
    let etl_synth::Error::Scenario {
        at,
        message,
        location: Some(location),
        ..
    } = error
    else {
        panic!("{error}")
    };
    assert_eq!(
        (at, message.as_str()),
        (2_000_000_000, "no session \"s\" is running")
    );
    assert_eq!(location.span().offset(), script.rfind("stop").unwrap());
    assert_eq!(location.source().name(), "script.kdl");
}

#[test]
fn timeline_reports_work_before_the_start_once() {
    let script = r#"process "App.exe" start="1s" { clr "core"; at "0s" { run "1ms" }; at "1s" { jit 1 } }
        process "Late.exe" { clr "core"; every "1ms" from="1ms" until="3ms" { throw 1 } }"#;
    let scenario = super::parse(script, &[]).unwrap();
    let mut timeline = etl_synth::truth::Timeline::new(Vec::new());
    etl_synth::Simulation::new(&scenario)
        .observer(&mut timeline)
        .run(&mut etl_synth::MemoryFileSystem::default())
        .unwrap();
    let text = String::from_utf8(timeline.into_inner()).unwrap();
    assert_eq!(
        text.matches("\"App.exe\" has not begun yet").count(),
        1,
        "{text}"
    );
    assert_eq!(
        text.matches("\"Late.exe\" has no clr that runs yet")
            .count(),
        1,
        "{text}"
    );
}
