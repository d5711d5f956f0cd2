//! Rundowns that leave out code which no load event shows either, and those that need not list it.

use etl_format::ProcessId;
use etl_synth::Script;
use etl_verify::{Enabled, Finding, Outcome, Report, Truth, Verifier};

use crate::simulated::simulate;

/// The report on a file of a script, and that with the enablements of its truth.
fn reports(script: &str, file: &str) -> [Report; 2] {
    let script = format!("scenario \"rundowns\" seed=5\nmachine processors=2\n{script}");
    let scenario = Script::new("rundowns", &script)
        .parse()
        .unwrap_or_else(|e| panic!("{e}"));
    let simulated = simulate("rundowns", script, scenario);
    let truth = Truth::read(simulated.texts["truth.jsonl"].as_slice()).unwrap();
    let bytes = simulated.traces[file].as_slice();
    let verify = |enabled: Vec<Enabled>| Verifier::new().enabled(enabled).verify(bytes, file);
    [Vec::new(), truth.of(file).unwrap()].map(|enabled| verify(enabled).unwrap())
}

/// The findings of a family, as `pid rule severity`, with `?` if they are undecided.
fn of_family(report: &Report, family: &str) -> String {
    let own = report
        .findings
        .iter()
        .filter(|f| f.rule.starts_with(family));
    let text = |f: &Finding| {
        let open = if f.outcome == Outcome::Undecided {
            "?"
        } else {
            ""
        };
        format!(
            "{} {} {}{open}",
            f.pid.unwrap_or(ProcessId::new(0)),
            f.rule,
            f.severity.name()
        )
    };
    let mut texts: Vec<String> = own.map(text).collect();
    texts.sort();
    texts.join(", ")
}

/// What is found about rundowns without the truth, and with it.
fn found(script: &str) -> [String; 2] {
    reports(script, "clr.etl").map(|report| of_family(&report, "rundown."))
}

/// A process with precompiled and compiled methods; `life` are its properties.
fn process(pid: u32, life: &str, acts: &str) -> String {
    format!(
        r#"
process "P{pid}.exe" pid={pid} threads=2 {life} {{
    clr "core" version="6.0.100" {{
        assembly "Lib" {{ module "C:\\App\\Lib.dll" kind="r2r" {{ methods 30 namespace="Lib" }} }}
        assembly "App{pid}" {{ module "C:\\App\\App{pid}.dll" {{ methods 300 ready=30 }} }}
    }}
    {acts}
}}
"#
    )
}

/// A recording of one process that runs already, without a compilation, until 7 s.
fn recorded(life: &str, session: &str) -> [String; 2] {
    found(&format!(
        "{}{session}\nat \"7s\" {{ stop \"clr\" }}",
        process(100, life, "")
    ))
}

/// Sessions from 2 s: the runtime with a mask, and a rundown at 4 s with another.
fn masks(runtime: &str, rundown: &str) -> [String; 2] {
    recorded(
        "",
        &format!(
            r#"at "2s" {{ session "clr" file="clr.etl" {{ enable "runtime" keywords={runtime} level=5 }} }}
at "4s" {{ enable "rundown" in="clr" keywords={rundown} level=5 }}"#
        ),
    )
}

#[test]
fn an_end_rundown_without_a_kind_of_methods_is_partial() {
    let [warning, error, note] =
        ["warning", "error", "note"].map(|severity| format!("100 rundown.partial {severity}"));
    let none = String::new();
    assert_eq!(masks("0x98", "0x138"), [none.clone(), none.clone()]);
    // Only the mask proves that something was compiled and is not listed.
    assert_eq!(masks("0x98", "0x128"), [warning, error.clone()]);
    // Symbols of their images name precompiled methods.
    assert_eq!(masks("0x98", "0x118"), [none, note]);
    assert_eq!(masks("0x98", "0x108"), [error.clone(), error]);
}

#[test]
fn start_rundown_alone_needs_loads_of_methods_compiled_later() {
    let none = String::new();
    let error = "100 rundown.partial error".to_owned();
    let start = |runtime: &str, rundown: &str| {
        recorded(
            "",
            &format!(
                r#"at "2s" {{ session "clr" file="clr.etl" {{
    enable "runtime" keywords={runtime} level=5
    enable "rundown" keywords={rundown} level=5
}} }}"#
            ),
        )
    };
    let open = "100 rundown.partial note?".to_owned();
    assert_eq!(start("0x18", "0x78"), [open.clone(), none]);
    assert_eq!(start("0x8", "0x78"), [open, error.clone()]);
    // What was compiled before is not listed, either.
    assert_eq!(start("0x18", "0x48"), [error.clone(), error]);
}

#[test]
fn no_remark_on_a_mask_contradicts_a_complete_verdict() {
    for (runtime, rundown) in [("0x98", "0x138"), ("0x8", "0x138"), ("0x98", "0x118")] {
        let script = format!(
            r#"{}at "2s" {{ session "clr" file="clr.etl" {{ enable "runtime" keywords={runtime} level=5 }} }}
at "4s" {{ enable "rundown" in="clr" keywords={rundown} level=5 }}
at "7s" {{ stop "clr" }}"#,
            process(100, "", "")
        );
        let [_, report] = reports(&script, "clr.etl");
        let text = report.text();
        assert!(text.contains("verdict   complete"), "{text}");
        assert!(
            !text.contains("unknown;") && !text.contains("will have no names"),
            "{text}"
        );
    }
}

/// A process that starts at 2.05 s, and sessions without a rundown.
fn from_start(sessions: &str) -> [String; 2] {
    let acts = r#"every "20ms" from="2.1s" until="6s" { jit 1 }"#;
    found(&format!(
        "{}{sessions}\nat \"7s\" {{ stop \"clr\" }}",
        process(100, r#"start="2.05s""#, acts)
    ))
}

#[test]
fn process_recorded_from_its_start_needs_no_rundown() {
    let note = "100 rundown.none note".to_owned();
    let session = |mask: &str| {
        format!(
            r#"at "2s" {{ session "clr" file="clr.etl" {{ enable "runtime" keywords={mask} level=5 }} }}"#
        )
    };
    assert_eq!(from_start(&session("0x18")), [note.clone(), note]);
    let late = "\nat \"4s\" { enable \"runtime\" in=\"clr\" keywords=0x18 level=5 }";
    let (open, error) = (
        "100 rundown.none warning?".to_owned(),
        "100 rundown.none error".to_owned(),
    );
    assert_eq!(from_start(&(session("0x8") + late)), [open, error]);
}

#[test]
fn a_requested_state_without_compiled_methods_is_no_rundown() {
    let acts = r#"every "20ms" from="2.1s" until="6s" { jit 1 }"#;
    let script = format!(
        r#"{}at "1s" {{ session "clr" file="clr.etl" {{ enable "runtime" keywords=0x8 level=5 }} }}
at "2s" {{ capture-state "runtime" in="clr" }}
at "4s" {{ enable "runtime" in="clr" keywords=0x18 level=5 }}
at "7s" {{ stop "clr" }}"#,
        process(100, "", acts)
    );
    assert_eq!(
        found(&script),
        ["100 rundown.none warning?", "100 rundown.none error"]
    );
}

#[test]
fn rundown_after_a_clr_start_is_partial_without_method_loads() {
    let session = |runtime: &str| {
        let acts = r#"every "5ms" from="3.1s" until="3.9s" { jit 1 }"#;
        found(&format!(
            r#"{}at "2s" {{ session "clr" file="clr.etl" {{ enable "runtime" keywords={runtime} level=5 }} }}
at "3.4s" {{ enable "rundown" in="clr" keywords=0x108 level=5 }}
at "6.8s" {{ stop "clr" }}"#,
            process(100, r#"start="3s""#, acts)
        ))
    };
    let error = "100 rundown.partial error";
    assert_eq!(session("0x8"), [error, error]);
    assert_eq!(session("0x98"), ["", ""]);
}

/// Two processes, and two rundowns; the second is of one process only.
fn second_of_one(runtime: &str, life: &str, first: &str, ends: &str) -> [String; 2] {
    let acts = r#"every "20ms" from="3.2s" until="6s" { jit 1 }"#;
    found(&format!(
        r#"{}{}at "2s" {{ session "clr" file="clr.etl" {{
    kernel "processes"
    enable "runtime" keywords={runtime} level=5
}} }}
at "2.5s" {{ enable "rundown" in="clr" keywords={first} level=5 }}
at "2.8s" {{ disable "rundown" in="clr" }}
at "6.5s" {{ enable "rundown" in="clr" keywords=0x138 level=5 processes=200 }}
at "{ends}" {{ stop "clr" }}"#,
        process(100, life, acts),
        process(200, "", ""),
    ))
}

#[test]
fn start_rundown_without_later_loads_needs_an_end_rundown() {
    let missing = "100 rundown.missing error";
    let [open, known] = second_of_one("0x8", "", "0x78", "8s");
    assert!(
        open.contains(missing) && known.contains(missing),
        "{open}; {known}"
    );
    assert_eq!(second_of_one("0x98", "", "0x78", "8s"), ["", ""]);
}

#[test]
fn an_earlier_rundown_of_another_process_hides_no_missing_one() {
    let missing = "100 rundown.missing error";
    assert_eq!(
        second_of_one("0x8", r#"start="3s""#, "0x138", "8s"),
        [missing, missing]
    );
    // The process is gone before the second rundown, or starts after it.
    let exited = "100 rundown.process-exited note";
    let short = r#"start="3s" exit="6.2s""#;
    assert_eq!(second_of_one("0x8", short, "0x138", "8s"), [exited, exited]);
    assert_eq!(second_of_one("0x98", short, "0x138", "8s"), ["", ""]);
    assert_eq!(
        second_of_one("0x98", r#"start="6.9s""#, "0x138", "8s"),
        ["", ""]
    );
}

#[test]
fn exit_during_the_rundown_is_a_note_if_all_loads_are_recorded() {
    let session = |runtime: &str| {
        let acts = r#"every "20ms" from="3.3s" until="5.9s" { jit 1 }"#;
        let process = process(100, r#"start="3s" exit="7s""#, acts).replace(
            "version=\"6.0.100\"",
            "version=\"6.0.100\" enumeration-cost=\"2ms\"",
        );
        found(&format!(
            r#"{process}at "2s" {{ session "clr" file="clr.etl" {{
    kernel "processes"
    enable "runtime" keywords={runtime} level=5
}} }}
at "6.5s" {{ enable "rundown" in="clr" keywords=0x138 level=5 }}
at "8s" {{ stop "clr" }}"#
        ))
    };
    assert_eq!(session("0x98"), ["100 rundown.unclosed note"; 2]);
    assert_eq!(session("0x8"), ["100 rundown.unclosed error"; 2]);
}

#[test]
fn two_rundowns_of_an_idle_process_are_not_called_copies() {
    let script = format!(
        r#"{}at "2s" {{ session "clr" file="clr.etl" {{ enable "runtime" keywords=0x98 level=5 }} }}
at "3s" {{ enable "rundown" in="clr" keywords=0x138 level=5 }}
at "6s" {{ enable "rundown" in="clr" keywords=0x138 level=5 }}
at "8s" {{ stop "clr" }}"#,
        process(100, "", "")
    );
    assert_eq!(found(&script), ["", ""]);
}

#[test]
fn items_of_repeated_rundowns_count_once() {
    let message = |more: &str| {
        let script = format!(
            r#"{}at "2s" {{ session "clr" file="clr.etl" {{ enable "runtime" keywords=0x98 level=5 }} }}
at "3s" {{ enable "rundown" in="clr" keywords=0x108 level=5 }}
{more}
at "8s" {{ stop "clr" }}"#,
            process(100, "", "")
        );
        let [report, _] = reports(&script, "clr.etl");
        let partial = report
            .findings
            .into_iter()
            .find(|f| f.rule == "rundown.partial");
        partial.map(|f| f.message)
    };
    let once = message("");
    let again = message(r#"at "5s" { enable "rundown" in="clr" keywords=0x108 level=5 }"#);
    assert!(
        once.as_ref()
            .is_some_and(|text| text.contains(" and no method")),
        "{once:?}"
    );
    assert_eq!(again, once);
}

/// A process that starts at 1.5 s and compiles from 1.6 s on, and a session from 1 s to 6 s that
/// enables loads of methods.
fn script_with_break(life: &str, acts: &str) -> String {
    let until = if life.is_empty() { "4.9s" } else { "1.8s" };
    let compile = format!(r#"every "20ms" from="1.6s" until="{until}" {{ jit 1 }}"#);
    format!(
        r#"{}
at "1s" {{
    session "clr" file="clr.etl" {{ kernel "processes"; enable "runtime" keywords=0x98 level=5 }}
}}
{acts}
at "6s" {{ stop "clr" }}
"#,
        process(100, &format!(r#"start="1.5s" {life}"#), &compile)
    )
}

/// What is found in a file of this script with the truth.
fn with_break(file: &str, life: &str, acts: &str) -> String {
    let [_, report] = reports(&script_with_break(life, acts), file);
    of_family(&report, "rundown.")
}

/// The runtime provider is enabled again, with another mask or level.
fn again(at: &str, mask: &str, level: u8) -> String {
    format!("at \"{at}\" {{ enable \"runtime\" in=\"clr\" keywords={mask} level={level} }}\n")
}

/// The same from 2 s to 3 s.
fn meanwhile(mask: &str, level: u8) -> String {
    again("2s", mask, level) + &again("3s", "0x98", 5)
}

fn disable(at: &str) -> String {
    format!("at \"{at}\" {{ disable \"runtime\" in=\"clr\" }}\n")
}

#[test]
fn a_break_in_the_loads_of_a_running_process_needs_a_rundown() {
    let off = disable("2s") + &again("3s", "0x98", 5);
    // The process runs .NET Core, which logs loads of methods at level 5 only.
    for acts in [
        meanwhile("0x8", 5),
        meanwhile("0x98", 4),
        meanwhile("0x98", 3),
        off,
    ] {
        assert_eq!(
            with_break("clr.etl", "", &acts),
            "100 rundown.none error",
            "{acts}"
        );
    }
}

#[test]
fn a_break_at_level_4_has_all_loads_of_framework() {
    let script = script_with_break("", &meanwhile("0x98", 4))
        .replace(
            r#""core" version="6.0.100""#,
            r#""desktop" version="4.8.4000.0""#,
        )
        .replace(r#" kind="r2r""#, "");
    let [_, report] = reports(&script, "clr.etl");
    assert_eq!(of_family(&report, "rundown."), "100 rundown.none note");
}

#[test]
fn a_break_without_loads_that_are_needed_is_a_note() {
    let note = "100 rundown.none note";
    assert_eq!(
        with_break("clr.etl", "", &meanwhile("0x98", 5)),
        note,
        "as before"
    );
    assert_eq!(
        with_break("clr.etl", r#"exit="1.9s""#, &meanwhile("0x8", 5)),
        note,
        "after it"
    );
    let other = meanwhile("0x8", 5)
        + r#"at "1s" { session "other" file="other.etl" { enable "runtime" keywords=0x10 level=5 } }
at "6.1s" { stop "other"; merge "clr.etl other.etl" into="merged.etl" }"#;
    assert_eq!(
        with_break("merged.etl", "", &other),
        note,
        "another session has them"
    );
}

#[test]
fn loads_that_stop_early_are_undecided_without_a_rundown() {
    let off = disable("3s");
    assert_eq!(with_break("clr.etl", "", &off), "100 rundown.none warning?");
    let rundown = r#"at "5s" { enable "rundown" in="clr" keywords=0x138 level=5 }"#;
    assert_eq!(with_break("clr.etl", "", &(off + rundown)), "");
}
