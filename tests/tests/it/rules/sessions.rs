//! Recordings whose sessions miss what they should list, ask again, or ask for the state of a CLR.

use etl_format::read::{Options, Trace};
use etl_format::rewrite::merge::Merger;
use etl_format::write::Session;
use etl_format::write::record::Full;
use etl_format::{FileHeader, ProcessId, Ticks};
use etl_synth::Script;
use etl_verify::{Enabled, Outcome, Severity, Truth, Verdict, Verifier};

use super::base::{files_of, judge};
use super::edit::{records, write};
use crate::simulated::simulate;

/// Rules that a file of a scenario breaks or leaves open (`?`).
fn broken(script: &str, file: &str, enabled: impl FnOnce(&Truth) -> Vec<Enabled>) -> Vec<String> {
    let scenario = Script::new("sessions", script)
        .parse()
        .unwrap_or_else(|e| panic!("{e}"));
    let simulated = simulate("sessions", script.to_owned(), scenario);
    let truth = Truth::read(simulated.texts["truth.jsonl"].as_slice()).unwrap();
    let verifier = Verifier::new().enabled(enabled(&truth));
    broken_in(&simulated.traces[file], file, verifier)
}

/// The same with a verifier.
fn broken_by(script: &str, file: &str, verifier: Verifier<'_>) -> Vec<String> {
    let files = files_of("sessions", script);
    broken_in(&files[file], file, verifier)
}

fn broken_in(bytes: &[u8], file: &str, mut verifier: Verifier<'_>) -> Vec<String> {
    let report = verifier.verify(bytes, file).unwrap();
    let rules = report
        .rules
        .iter()
        .filter(|rule| rule.outcome < Outcome::Holds);
    let mark = |outcome| {
        if outcome == Outcome::Undecided {
            "?"
        } else {
            ""
        }
    };
    rules
        .map(|rule| format!("{}{}", rule.rule, mark(rule.outcome)))
        .collect()
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
fn rundown_of_other_processes_does_not_cover_recorded_ones() {
    let of = |with: &str| broken(&two_processes(with), "merged.etl", nothing);
    assert_eq!(of("keywords=0x138"), [""; 0]);
    let others = of("keywords=0x138 processes=200");
    // Nothing shows that the other process still ran.
    assert!(
        others.contains(&"merge.no-common-process?".to_owned()),
        "{others:?}"
    );
}

#[test]
fn what_a_clr_says_of_itself_is_no_rundown() {
    // These masks list no code; some make the CLR log what it is.
    for mask in ["0x100", "0x40", "0x140", "0xB8"] {
        let of = broken(
            &two_processes(&format!("keywords={mask}")),
            "merged.etl",
            nothing,
        );
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
    let of = broken(&script, "merged.etl", |truth| {
        truth.of("merged.etl").unwrap()
    });
    assert_eq!(of, [""; 0]);
}

/// At level 4 .NET Core raises unloads of compiled methods and no loads: the rundown names them.
#[test]
fn unloads_without_loads_break_no_rule_at_level_4() {
    let script = r#"
scenario "unloads" seed=3
process "Orders.exe" pid=200 start="1s" exit="5s" {
    clr "core" version="8.0.0" {
        assembly "Orders" { module "C:\\App\\Orders.dll" { methods 90 ready=5 } }
    }
    at "2s" { jit 20; tier 5 }
}
at "500ms" { session "clr" file="clr1.etl" { enable "runtime" keywords=0x98 level=4 } }
at "4s" { session "rundown" file="clr2.etl" { enable "rundown" keywords=0x138 level=5 } }
at "6s" { stop "rundown"; stop "clr"; merge "clr1.etl clr2.etl" into="merged.etl" }
"#;
    let declared = broken(script, "merged.etl", |truth| {
        truth.of("merged.etl").unwrap()
    });
    assert_eq!(declared, [""; 0]);
    let inferred = broken(script, "merged.etl", |_| Vec::new());
    assert_eq!(inferred, [""; 0]);
}

#[test]
fn events_raised_for_another_session_are_not_called_wrong() {
    let script = compiling(
        r#"at "500ms" { session "clr" file="clr1.etl" { enable "runtime" keywords=0x98 level=4 } }
at "1s" { session "other" file="other.etl" { enable "runtime" keywords=0x98 level=5 } }
at "1.5s" { stop "other" }"#,
    );
    let of = |text: &str| broken(&script, "merged.etl", |_| declared(text));
    // The names of methods need level 5, but the events that have them have level 4.
    assert_eq!(of("runtime:0x98:4"), ["filter.not-enabled"]);
    let verifier = Verifier::new()
        .enabled(declared("runtime:0x98:4"))
        .with_other_sessions();
    let open = broken_by(&script, "merged.etl", verifier);
    assert_eq!(open, ["filter.not-enabled?"]);
    assert_eq!(of("runtime:0x98:4+runtime:0x98:5"), [""; 0]);
    // What does not pass the session's own filter is wrong.
    assert_eq!(of("runtime:0x8:4"), ["filter.not-enabled"]);
    let truth = |truth: &Truth| truth.of("merged.etl").unwrap();
    assert_eq!(
        broken(&script, "merged.etl", truth),
        [""; 0],
        "the truth has the other session"
    );
}

#[test]
fn events_admitted_by_the_old_match_all_rule_are_not_wrong() {
    let script = r#"
scenario "old" seed=5
provider "My-Prov" kind="manifest" { event "A" id=1 level=2 keywords=0x1 }
process "Host.exe" { every "100ms" from="2s" until="3s" { raise "My-Prov" "A" } }
at "1s" {
    session "s" file="old.etl" {
        enable "My-Prov" keywords=0 all=0x4 level=0 old-rule=#true
    }
}
at "4s" { stop "s" }
"#;
    let truth = |truth: &Truth| truth.of("old.etl").unwrap();
    assert_eq!(broken(script, "old.etl", truth), [""; 0]);
}

#[test]
fn state_listed_on_request_existed_before() {
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
            assert_eq!(
                of,
                ["rundown.none"],
                "{at} {file}: a note that nothing is missing"
            );
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
        broken(&with_a_break(during, after), "clr.etl", |truth| {
            truth.of("clr.etl").unwrap()
        })
    };
    let enable = |mask: &str| format!("enable \"runtime\" in=\"clr\" keywords={mask} level=5");
    let missing = "filter.missing-loads".to_owned();
    for during in [enable("0x8"), "disable \"runtime\" in=\"clr\"".to_owned()] {
        let rules = of(&during, &enable("0x98"));
        assert!(!rules.contains(&missing), "{during}: {rules:?}");
    }
    assert_eq!(
        of(&enable("0x98"), &enable("0x98")),
        [""; 0],
        "enabled again as before"
    );
}

#[test]
fn loads_that_the_level_leaves_out_are_not_missing() {
    let script = r#"
scenario "level" seed=3
process "Orders.exe" pid=100 start="2s" {
    clr "core" version="6.0.100" {
        assembly "Orders" { module "C:\\App\\Orders.dll" { methods 60 ready=20 } }
    }
    every "40ms" from="2.5s" until="4s" { jit 1 }
}
at "1s" {
    session "clr" file="clr.etl" {
        kernel "processes"
        enable "runtime" keywords=0x98 level=LEVEL
    }
}
at "5s" { enable "rundown" in="clr" keywords=0x138 level=5 }
at "6s" { stop "clr" }
"#;
    let of = |level: &str| {
        let script = script.replace("LEVEL", level);
        broken(&script, "clr.etl", |truth| truth.of("clr.etl").unwrap())
    };
    assert_eq!(of("4"), [""; 0]);
    let low = of("3");
    assert!(!low.contains(&"filter.missing-loads".to_owned()), "{low:?}");
}

/// A recording without a rundown in two files: the CLR's events, and the kernel's.
const TWO_FILES: &str = r#"
scenario "two files" seed=5
process "Orders.exe" pid=100 {
    clr "core" version="6.0.100" {
        assembly "Orders" { module "C:\\App\\Orders.dll" { methods 60 ready=20 } }
    }
    every "50ms" from="1s" until="2.5s" { jit 1 }
}
at "500ms" {
    session "kernel" file="kernel.etl" { kernel "processes images" }
    session "clr" file="clr.etl" { enable "runtime" keywords=0x98 level=5 }
}
at "3s" { stop "clr"; stop "kernel" }
"#;

#[test]
fn losses_in_a_file_leave_questions_about_its_events_open() {
    let files = files_of("two files", TWO_FILES);
    let lost_in = |lossy: &str| {
        let files = ["clr.etl", "kernel.etl"].map(|name| {
            let mut file = files[name].clone();
            // The count of lost events in the header event of the file.
            file[EVENTS_LOST..EVENTS_LOST + 4]
                .copy_from_slice(&u32::from(name == lossy).to_le_bytes());
            file
        });
        let report = judge(&files, Verifier::new());
        let of = |rule| {
            let mut found = report.findings.iter().filter(|f| f.rule == rule);
            found.next().map(|f| f.outcome)
        };
        (of("rundown.none"), report.verdict)
    };
    assert_eq!(lost_in(""), (Some(Outcome::Broken), Verdict::Incomplete));
    assert_eq!(
        lost_in("kernel.etl"),
        (Some(Outcome::Broken), Verdict::Incomplete)
    );
    assert_eq!(
        lost_in("clr.etl"),
        (Some(Outcome::Undecided), Verdict::CannotTell)
    );
}

#[test]
fn record_about_a_loss_is_a_loss_at_its_time() {
    for (opcode, rule) in [
        (32, "file.events-lost"),
        (33, "file.buffers-lost"),
        (34, "file.buffers-lost"),
    ] {
        let record = |timestamp| {
            // The class is as in wmicore.mof.
            Full::new(
                "6a399ae0-4bc6-4de9-870b-3657f8947e7e".parse().unwrap(),
                opcode,
                timestamp,
            )
            .process(4, 8)
        };
        let header = FileHeader {
            timestamp: Ticks::new(1_000),
            perf_freq: 10_000_000,
            ..FileHeader::new()
        };
        let mut session = Session::in_memory(header).unwrap();
        session.write(0, &record(2_000)).unwrap();
        session.write(0, &record(3_000)).unwrap();
        let file = session.finish().unwrap();
        let report = judge(&[file], Verifier::new());
        let found: Vec<_> = report.findings.iter().filter(|f| f.rule == rule).collect();
        let [found] = found[..] else {
            panic!("{}", report.text())
        };
        assert!(
            found.message.starts_with("2 records say that "),
            "{}",
            found.message
        );
        assert_eq!(found.timestamp().map(Ticks::get), Some(2_000));
        assert_eq!(
            (report.losses.len(), report.verdict),
            (2, Verdict::CannotTell)
        );
    }
}

/// The rules that a trace breaks about a process.
fn about(file: &[u8], pid: u32) -> Vec<&'static str> {
    let report = judge(&[file.to_vec()], Verifier::new());
    let of = report
        .findings
        .iter()
        .filter(|f| f.pid == Some(ProcessId::new(pid)) && f.is_decided());
    of.map(|f| f.rule).collect()
}

#[test]
fn process_with_a_clr_that_is_in_no_rundown_is_found() {
    let script = r#"
scenario "idle" seed=4
process "Busy.exe" pid=100 {
    clr "core" version="6.0.100" {
        assembly "Busy" { module "C:\\App\\Busy.dll" { methods 60 ready=20 } }
    }
    every "50ms" from="1s" until="2.5s" { jit 1 }
}
process "Idle.exe" pid=200 {
    clr "core" version="6.0.100" {
        assembly "Idle" { module "C:\\App\\Idle.dll" { methods 60 ready=20 } }
    }
}
process "Native.exe" pid=300
at "500ms" {
    session "clr" file="clr.etl" {
        kernel "processes images"
        enable "runtime" keywords=0x98 level=5
    }
}
at "3s" { enable "rundown" in="clr" keywords=0x138 level=5 }
at "5s" { stop "clr" }
"#;
    let file = files_of("idle", script).remove("clr.etl").unwrap();
    let silent = "filter.silent-process";
    assert!(
        (100..=300)
            .step_by(100)
            .all(|pid| !about(&file, pid).contains(&silent))
    );
    let mut left = records(&file);
    left.retain(|r| !(r.is_event() && r.pid() == 200));
    let file = write(&file, &left);
    assert!(about(&file, 200).contains(&silent));
    assert!(!about(&file, 100).contains(&silent) && !about(&file, 300).contains(&silent));
}

#[test]
fn kind_of_event_that_comes_with_each_collection_is_missed() {
    let script = r#"
scenario "collections" seed=4
process "Orders.exe" pid=100 {
    clr "core" version="6.0.100" {
        assembly "Orders" { module "C:\\App\\Orders.dll" { methods 60 ready=20 } }
    }
    every "2ms" from="2.1s" until="6s" { allocate 4 }
}
at "2s" { session "clr" file="clr.etl" { enable "runtime" keywords="GC" level=5 } }
at "6.5s" { stop "clr" }
"#;
    let file = files_of("collections", script).remove("clr.etl").unwrap();
    let incomplete = "gc.incomplete";
    assert!(!about(&file, 100).contains(&incomplete));
    let all = records(&file);
    // Suspensions, restarts, starts, ends and sizes.
    for id in [9, 8, 7, 3, 1, 2, 4] {
        let mut left = all.clone();
        left.retain(|r| !(r.is_event() && r.id() == id));
        assert!(
            all.len() >= left.len() + 10,
            "{id}: {}",
            all.len() - left.len()
        );
        assert!(
            about(&write(&file, &left), 100).contains(&incomplete),
            "{id}"
        );
    }
}

/// Offset of the count of lost events, after the headers of the first buffer and of its record.
const EVENTS_LOST: usize = 0x48 + 0x20 + 0x30;

/// A session that begins a new file of eight buffers whenever the last one is full.
const PARTS: &str = r#"
scenario "parts" seed=5
machine processors=2
process "Orders.exe" pid=100 {
    clr "core" version="6.0.100" {
        assembly "Orders" { module "C:\\App\\Orders.dll" { methods 200 } }
    }
    every "4ms" from="2.1s" until="4s" { jit 1; throw 1 }
}
at "2s" {
    session "clr" file="p%d.etl" mode="newfile kbytes" buffer-kb=16 maximum-size=128 {
        enable "runtime" keywords=0x8018 level=5
    }
}
at "4.5s" { enable "rundown" in="clr" keywords=0x138 level=5 }
at "5s" { stop "clr" }
"#;

#[test]
fn part_that_is_missing_between_others_is_lost() {
    let files = files_of("parts", PARTS);
    let parts: Vec<_> = (1..)
        .map_while(|n| files.get(&format!("p{n}.etl")).cloned())
        .collect();
    assert!(parts.len() >= 4, "{} parts", parts.len());
    // All buffers but that of the header.
    let missing = parts[2].len() as u64 / (16 << 10) - 1;
    let without = [&parts[..2], &parts[3..]].concat();
    let gap = |parts: &[Vec<u8>]| {
        let report = judge(parts, Verifier::new());
        let found = report
            .findings
            .into_iter()
            .find(|f| f.rule == "file.sequence-gap");
        (found.map(|f| (f.message, f.severity)), report.verdict)
    };
    assert_eq!(gap(&parts).0, None);
    let (found, verdict) = gap(&without);
    let (message, severity) = found.unwrap();
    let expected = format!("{missing} buffers are missing between 2.etl and 3.etl: numbers ");
    assert!(message.starts_with(&expected), "{message}");
    assert!(
        severity == Severity::Warning && !verdict.passes(),
        "{message}: {verdict:?}"
    );
    assert_eq!(
        gap(&parts[1..]).0,
        None,
        "where the recording began is not known"
    );

    let lost = |parts: Vec<Vec<u8>>| {
        let inputs: Vec<_> = parts.iter().map(Vec::as_slice).collect();
        let merged = Merger::new().run(inputs, Vec::new()).unwrap().output;
        let trace = Trace::open(merged.as_slice(), &Options::default()).unwrap();
        trace.header().buffers_lost
    };
    assert_eq!((lost(parts), u64::from(lost(without))), (0, missing));
}
