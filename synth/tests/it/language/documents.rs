//! The sessions of the documents, line by line as they are printed, and what the tools answer.

use etl_synth::truth::InMemoryTruth;
use etl_synth::{MemoryFileSystem, Simulation};

/// Exit codes of the lines, and the files. A second passes between two lines.
fn run(lines: &[&str]) -> (Vec<i32>, Vec<String>, InMemoryTruth) {
    let mut script = r#"process "App.exe" { clr "desktop" version="4.8.4000.0" { assembly "App" { module "C:\\App.dll" { methods 30 ready=10 } } }
        every "100ms" from="1s" until="9s" { jit 1 } }
    "#
    .to_owned();
    for (second, line) in lines.iter().enumerate() {
        script += &format!("at \"{}s\" {{ run \"{line}\" }}\n", second + 2);
    }
    let scenario = super::parse(&script, &[]).unwrap_or_else(|e| panic!("{e:#?}"));
    let (mut files, mut truth) = (MemoryFileSystem::default(), InMemoryTruth::default());
    Simulation::new(&scenario)
        .observer(&mut truth)
        .run(&mut files)
        .unwrap();
    let codes = truth.commands.iter().map(|c| c.exit_code).collect();
    let names = files
        .into_files()
        .into_iter()
        .map(|file| file.name)
        .collect();
    (codes, names, truth)
}

fn count(truth: &InMemoryTruth, name: &str) -> usize {
    truth
        .events
        .iter()
        .filter(|e| e.name.starts_with(name))
        .count()
}

#[test]
fn typical_session_as_printed_fails_as_on_windows() {
    // Both sessions have one name, `-stop` without a name is for the kernel's session, which does
    // not run, and the second file is never made.
    let (codes, files, truth) = run(&[
        "xperf –start clr –on e13c0d23-ccbc-4e12-931b-d9cc2eee27e4:0x1FC1F:0x5 –f clr1.etl (turn on runtime session)",
        "xperf –start clr –on A669021C-C450-4609-A035-5AF59AF4DF18:0x138:0x5 –f clr2.etl (enable collection of DCEnd events to start a rundown session, and wait for 30 seconds for all events to be collected)",
        "xperf -stop (stop all profiling)",
        "xperf -merge -d clr1.etl clr2.etl merged.etl (stop all profiling)",
    ]);
    assert_eq!(codes, [0, 183, 4201, 2]);
    assert_eq!(files, ["clr1.etl"]);
    let said: Vec<&str> = truth.commands.iter().map(|c| c.output.as_str()).collect();
    assert_eq!(
        said[1..],
        [
            "xperf: error: clr: Cannot create a file when that file already exists. (0xb7).",
            "xperf: error: NT Kernel Logger: The instance name passed was not recognized as valid by a WMI data provider. (0x1069).",
            "xperf: error: Merge ETL: The system cannot find the file specified. (0x2).",
        ]
    );
    assert_eq!(count(&truth, "DCEndComplete"), 0);
    // The first session runs on: nothing has stopped it.
    assert!(truth.sessions[0].stopped.is_none());
}

#[test]
fn typical_session_works_with_two_names_and_both_stopped() {
    let (codes, files, truth) = run(&[
        "xperf –start clr –on e13c0d23-ccbc-4e12-931b-d9cc2eee27e4:0x1FC1F:0x5 –f clr1.etl",
        "xperf –start clrRundown –on A669021C-C450-4609-A035-5AF59AF4DF18:0x138:0x5 –f clr2.etl",
        "xperf -stop clr -stop clrRundown",
        "xperf -merge clr1.etl clr2.etl merged.etl",
    ]);
    assert_eq!(codes, [0, 0, 0, 0]);
    assert_eq!(files, ["clr1.etl", "clr2.etl", "merged.etl"]);
    assert_eq!(count(&truth, "DCEndComplete"), 1);
}

#[test]
fn session_with_two_providers_runs_as_printed() {
    let (codes, files, truth) = run(&[
        "xperf -start clr -on e13c0d23-ccbc-4e12-931b-d9cc2eee27e4:0x1CCBD:0x5 -f clr1.etl",
        "xperf -start clrRundown -on A669021C-C450-4609-A035-5AF59AF4DF18:0xB8:0x5 -f clr2.etl",
        "xperf -stop clrRundown",
        "xperf -stop clr  ",
        "xperf -merge clr1.etl clr2.etl merged.etl  ",
    ]);
    assert_eq!(codes, [0; 5]);
    assert_eq!(files, ["clr1.etl", "clr2.etl", "merged.etl"]);
    // The printed mask lacks EndRundown.
    assert_eq!(count(&truth, "DCEnd"), 0);
    assert_eq!(count(&truth, "MethodLoad"), 10);
}

#[test]
fn other_lines_of_the_documents_do_what_they_say() {
    let (codes, files, truth) = run(&[
        "xperf –start clr –on e13c0d23-ccbc-4e12-931b-d9cc2eee27e4:0xFFFFFFFF:0x5 –f clr.etl",
        "TraceLog -l",
        "TraceLog -enumguid",
        "stop clrrundown",
        "stop clr",
        "TraceRpt clr.etl -import clr.man -o events.xml",
        "TraceFmt gone.etl -tmf app.tmf",
    ]);
    // Lists leave nothing in a trace; the truth has a line of each command.
    assert_eq!(codes, [0, 0, 0, 4201, 0, 0, 2]);
    assert_eq!(files, ["clr.etl"]);
    assert!(truth.sessions[0].stopped.is_some());
}

#[test]
fn logman_and_tracelog_answer_in_their_own_words() {
    let (codes, _, truth) = run(&[
        "logman stop clr -ets",
        "tracelog -stop clr",
        "logman start clr -p {e13c0d23-ccbc-4e12-931b-d9cc2eee27e4} 0x10 5 -o clr.etl -ets",
        "logman start clr -p {e13c0d23-ccbc-4e12-931b-d9cc2eee27e4} 0x10 5 -o b.etl -ets",
        "xperf -stop clr -stop other -merge clr.etl b.etl m.etl",
    ]);
    assert_eq!(
        codes,
        [
            0x8030_0002u32.cast_signed(),
            4201,
            0,
            0x8030_00b7u32.cast_signed(),
            4201
        ]
    );
    assert!(truth.commands[1].output.contains("4201L"));
    // After a failure the other requests of the line are not performed.
    assert!(truth.merges.is_empty());
}
