//! Names that `dump` shows: of processes in other traces of a session, of codes and of members.

use crate::common::{directory, etlkit};
use etl_test_support::{needs, trace};

fn dump(args: &[&str]) -> String {
    let here = directory(&[]);
    let said = etlkit(here.path(), &[&["dump"], args].concat());
    assert_eq!((said.code, said.err.as_str()), (0, ""), "{args:?}");
    said.out
}

/// The kernel's session of a diagnostics hub has the names of the processes of the other one.
#[needs(trace = "perfview/diaghub.user_paged.1.etl")]
#[test]
fn merged_traces_of_one_machine_name_each_others_processes() {
    let [kernel, user] = ["kernel.1", "user_paged.1"].map(|part| {
        trace(&format!("perfview/diaghub.{part}.etl"))
            .display()
            .to_string()
    });
    let select = ["--event", "ModuleLoad_V2", "--limit", "1"];
    let alone = dump(&[&[user.as_str()], &select[..]].concat());
    assert!(alone.contains("  pid 2140 tid 2192 "), "{alone}");
    let merged = dump(&[&["--merge", &kernel, &user], &select[..]].concat());
    assert!(
        merged.contains("  pid locProject.exe (2140) tid 2192 "),
        "{merged}"
    );
    let selected = [
        "--merge",
        &kernel,
        &user,
        "--process",
        "locProject",
        "--count",
    ];
    let own = dump(&[&selected[..], &["--event", "ModuleLoad_V2"]].concat());
    assert_eq!(own.trim(), "56");
    // The clock of another trace started elsewhere: its processes are others.
    let other = trace("perfview/net.4.5.2.x64.etl").display().to_string();
    let select = [&select[..], &["--pid", "2140"]].concat();
    let apart = dump(&[&["--merge", &other, &user], &select[..]].concat());
    assert!(apart.contains("  pid 2140 tid 2192 "), "{apart}");
}

#[needs(trace = "perfview/net.4.5.2.x64.etl")]
#[test]
fn what_a_merge_says_of_volumes_is_not_replaced_by_them() {
    let path = trace("perfview/net.4.5.2.x64.etl").display().to_string();
    let volumes = dump(&[&path, "--event", "VolumeMapping"]);
    let c = r#"NtPath="\Device\HarddiskVolume2\" DosPath="C:\""#;
    assert!(volumes.contains(c), "{volumes}");
    let images = dump(&[
        &path,
        "-p",
        "KernelTraceControl/ImageID",
        "--format",
        "jsonl",
    ]);
    assert!(
        !images.contains("4294967295"),
        "an id with all bits set is unknown"
    );
}

#[needs(trace = "perfview/diaghub.kernel.1.etl")]
#[test]
fn exit_statuses_have_names_beside_their_number() {
    let path = trace("perfview/diaghub.kernel.1.etl").display().to_string();
    let ended = [
        "--where",
        "ExitStatus = STATUS_CONTROL_C_EXIT",
        "--event",
        "End",
    ];
    let text = dump(&[&[path.as_str()], &ended[..]].concat());
    assert!(
        text.contains(" ExitStatus=0xc000013a(STATUS_CONTROL_C_EXIT) "),
        "{text}"
    );
    let json = dump(
        &[
            &[path.as_str(), "--format", "jsonl", "--limit", "1"],
            &ended[..],
        ]
        .concat(),
    );
    let row: serde_json::Value = serde_json::from_str(&json).unwrap();
    assert_eq!(row["fields"]["ExitStatus"], "0xc000013a");
    assert_eq!(row["fields"]["ExitStatus_name"], "STATUS_CONTROL_C_EXIT");
}

#[needs(trace = "perfview/gcrundownevents.etl")]
#[test]
fn flags_of_methods_name_the_tier_of_their_code() {
    let path = trace("perfview/gcrundownevents.etl").display().to_string();
    let select = [
        "--where",
        "MethodFlags = QuickJitted",
        "--where",
        "MethodFlags = Generic",
    ];
    let text = dump(&[&[path.as_str()], &select[..]].concat());
    assert_eq!(text.lines().count(), 10, "{text}");
    assert_eq!(
        text.matches("MethodFlags=0x18a(Generic|Jitted|QuickJitted)")
            .count(),
        10,
        "{text}"
    );
}

#[needs(trace = "perfview/gcevents.etl")]
#[test]
fn conditions_reach_members_of_structures_in_arrays() {
    let path = trace("perfview/gcevents.etl").display().to_string();
    let count = |condition| {
        dump(&[&path, "--count", "--where", condition])
            .trim()
            .to_owned()
    };
    // The elements have Index 0 to 8, and 215 plugs in the first one.
    assert_eq!(count("Values.Index = 8"), "1");
    assert_eq!(count("Values[8].Index = 8"), "1");
    assert_eq!(count("Values[0].Index = 8"), "0");
    assert_eq!(count("Values[0].Count = 215"), "1");
    let here = directory(&[]);
    let said = etlkit(here.path(), &["dump", &path, "--where", "Values.Sice > 1"]);
    assert_eq!(said.code, 1);
    assert!(
        said.err.contains("no event has the field Values.Sice; "),
        "{}",
        said.err
    );
    assert!(said.err.contains(", Values.Size"), "{}", said.err);
}

/// Windows' own names: a load of an image is an event of the class Image, although its hook is in
/// the group of processes.
#[needs(trace = "perfview/net.4.5.2.x64.etl")]
#[test]
fn loads_of_images_are_events_of_their_class() {
    let path = trace("perfview/net.4.5.2.x64.etl").display().to_string();
    let count = |args: &[&str]| dump(&[&[path.as_str(), "--count"], args].concat());
    let loads = count(&["-p", "Image", "--event", "Load"]);
    assert_ne!(loads.trim(), "0");
    assert_eq!(
        count(&[
            "-p",
            "2cb15d1d-5fc1-11d2-abe1-00a0c911f518",
            "--event",
            "Load"
        ]),
        loads
    );
    let first = dump(&[&path, "-p", "Image", "--event", "Load", "--limit", "1"]);
    assert!(first.contains(" Image "), "{first}");
    assert!(first.contains(" FileName="), "{first}");
}

/// The Windows Performance Recorder writes marks as classic events.
#[needs(trace = "new/ebpforwindows.etl")]
#[test]
fn marks_of_a_recorder_have_their_text() {
    let path = trace("new/ebpforwindows.etl").display().to_string();
    let marks = dump(&[&path, "-p", "PerfInfo", "--event", "Mark"]);
    assert_eq!(marks.lines().count(), 4, "{marks}");
    assert_eq!(marks.matches(" Message=\"").count(), 4, "{marks}");
    assert!(!marks.contains("left over"), "{marks}");
}

#[needs(trace = "perfview/net.4.5.2.x64.etl")]
#[test]
fn flags_of_samples_name_interrupts() {
    let path = trace("perfview/net.4.5.2.x64.etl").display().to_string();
    let select = [
        "--event",
        "SampleProf",
        "--where",
        "Flags = DPC",
        "--limit",
        "1",
    ];
    let sample = dump(&[&[path.as_str()], &select[..]].concat());
    assert!(sample.contains("(DPC"), "{sample}");
}
