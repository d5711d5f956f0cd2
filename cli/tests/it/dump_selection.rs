//! `etlkit dump` with the tables of Windows' providers: names, fields, and selection by them.

use etl_test_support::needs;

use crate::common::{BUFFER, directory, etlkit, etlkit_piped, trace};
use crate::provider_names::{made_up, trace_of};

/// When the sessions of made-up traces start.
pub const START: i64 = 133_000_000_000_000_000;

const HTTP: &str = "tx/HTTP_Server.etl";

fn dump(args: &[&str]) -> (i32, String, String) {
    let path = etl_test_support::trace(HTTP);
    let here = directory(&[]);
    let said = etlkit(
        here.path(),
        &[&["dump", path.to_str().unwrap()], args].concat(),
    );
    (said.code, said.out, said.err)
}

fn lines(args: &[&str]) -> Vec<serde_json::Value> {
    let (code, out, err) = dump(&[args, &["--format", "jsonl"]].concat());
    assert_eq!((code, err.as_str()), (0, ""), "{args:?}");
    out.lines()
        .map(|line| serde_json::from_str(line).unwrap())
        .collect()
}

#[needs(trace = "tx/HTTP_Server.etl")]
#[test]
fn dump_names_and_decodes_events_of_windows_providers() {
    let all = lines(&[]);
    assert_eq!(all.len(), 2_042);
    assert!(
        all.iter()
            .all(|event| event["event"].is_string() && event["fields"].is_object())
    );
    let first = &all[1];
    assert_eq!(first["provider"], "Microsoft-Windows-HttpService");
    assert_eq!(
        first["fields"]["RemoteAddr"],
        "[2001:4898:0:fff:0:5efe:a50:e410]:37837"
    );
    assert_eq!(first["task_name"], "HTTPConnectionTraceTask");
}

#[needs(trace = "tx/HTTP_Server.etl")]
#[test]
fn conditions_select_by_event_field_and_text() {
    let count = |args: &[&str]| {
        let counted = dump(&[args, &["--count"]].concat());
        assert_eq!((counted.0, counted.2.as_str()), (0, ""), "{args:?}");
        let printed = lines(args).len();
        assert_eq!(counted.1, format!("{printed}\n"), "{args:?}");
        printed
    };
    let connects = count(&["--event", "*ConnConnect*"]);
    assert!(connects > 0 && connects == count(&["--id", "21"]));
    let with_address = count(&["--where", "LocalAddrLength = 28"]);
    assert!(with_address >= connects);
    assert_eq!(
        count(&["--where", "LocalAddrLength != 28", "--id", "21"]),
        0
    );
    let port = count(&["--where", "LocalAddr ~ *:80", "--event", "*ConnConnect*"]);
    assert!(port > 0 && port <= connects);
    // Columns are compared, too: with their numbers, and with their names.
    assert_eq!(
        count(&["--where", "id = 21", "--where", "task_name ~ *Connection*"]),
        connects
    );
    assert_eq!(
        count(&["--where", "event = HTTPConnectionTraceTask/ConnConnect"]),
        connects
    );
    let keyword = count(&["--where", "keyword = 0x8000000000000010"]);
    assert!(keyword >= connects);
    assert_eq!(
        count(&["--where", "keyword = 9223372036854775824"]),
        keyword
    );
    assert!(count(&["--grep", "http://"]) > 0);
    assert_eq!(count(&["--grep", "no such text at all"]), 0);
}

/// Processes and paths are compared as they are printed, and as the events have them.
#[needs(trace = "perfview/net.4.5.2.x64.etl")]
#[test]
fn conditions_select_by_the_names_of_processes_and_paths() {
    let path = etl_test_support::trace("perfview/net.4.5.2.x64.etl");
    let here = directory(&[]);
    let count = |select: &[&str]| {
        let said = etlkit(
            here.path(),
            &[&["dump", path.to_str().unwrap(), "--count"], select].concat(),
        );
        assert_eq!((said.code, said.err.as_str()), (0, ""), "{select:?}");
        said.out.trim().parse::<u64>().unwrap()
    };
    let mine = count(&["--process", "Test.x64"]);
    assert!(mine > 10_000, "{mine}");
    for condition in [
        "process = Test.x64.exe",
        "process = test.x64",
        "process=3676",
        "pid = 3676",
    ] {
        assert_eq!(count(&["--where", condition]), mine, "{condition}");
    }
    assert_eq!(
        count(&["--where", "process != Test.x64.exe", "--pid", "3676"]),
        0
    );
    let about = count(&["--where", "ProcessId = 3676"]);
    assert!(about > 100 && about == count(&["--where", "ProcessId = Test.x64.exe"]));
    let images = count(&["--where", r"FileName ~ *\ntdll.dll"]);
    let drive = count(&["--where", r"FileName ~ C:\Windows\*\ntdll.dll"]);
    let device = count(&[
        "--where",
        r"FileName ~ \Device\HarddiskVolume2\Windows\*\ntdll.dll",
    ]);
    // Of one event the path has the drive in the trace.
    assert!(
        device > 0 && drive == device + 1 && drive <= images,
        "{images} {drive} {device}"
    );
}

/// The kernel logs samples outside of threads; they are about the thread that ran.
#[needs(trace = "perfview/net.4.5.2.x64.etl")]
#[test]
fn count_has_the_samples_of_a_process_too() {
    let path = etl_test_support::trace("perfview/net.4.5.2.x64.etl");
    let here = directory(&[]);
    let select = [
        "dump",
        path.to_str().unwrap(),
        "--process",
        "Test.x64",
        "-p",
        "PerfInfo",
    ];
    let printed = etlkit(here.path(), &select).out.lines().count();
    let counted = etlkit(here.path(), &[&select[..], &["--count"]].concat());
    assert_eq!((counted.code, counted.out), (0, format!("{printed}\n")));
    assert!(printed > 5_000, "{printed}");
}

#[needs(trace = "tx/HTTP_Server.etl")]
#[test]
fn names_that_no_trace_has_are_reported_with_the_nearest() {
    let (code, out, err) = dump(&["-p", "Microsoft-Windows-HttpServices"]);
    assert_eq!((code, out.as_str()), (1, ""));
    assert!(
        err.contains("no event has the provider Microsoft-Windows-HttpServices"),
        "{err}"
    );
    assert!(
        err.contains("the nearest name: Microsoft-Windows-HttpService\n"),
        "{err}"
    );
    let (code, _, err) = dump(&["--event", "HTTPConnectionTraceTask/ConnConect"]);
    assert_eq!(code, 1);
    assert!(err.contains("HTTPConnectionTraceTask/ConnConnect"), "{err}");
    // The provider is there, its event is not: nothing is misspelled.
    let (code, _, err) = dump(&["-p", "Microsoft-Windows-HttpService", "--id", "9999"]);
    assert_eq!((code, err.as_str()), (0, ""));
    let (code, _, err) = dump(&["--where", "LocalAdr = 80"]);
    assert_eq!(code, 1);
    assert!(
        err.contains("no event has the field LocalAdr; the nearest name: LocalAddr"),
        "{err}"
    );
    let (code, _, err) = dump(&["--where", "LocalAddr 80"]);
    assert_eq!(code, 2);
    assert!(err.contains("FIELD OP VALUE"), "{err}");
}

#[test]
fn dump_prints_whole_documents_or_nothing() {
    let here = directory(&[("t.etl", &trace_of(&[made_up(1_010, 7, &[5, 0, 0, 0])]))]);
    let run = |args: &[&str]| etlkit(here.path(), &[&["dump", "t.etl"], args].concat());
    for format in [&["--count"][..], &["--format", "xml"], &["--format", "csv"]] {
        for (span, option) in [
            (
                &["--from", "2", "--to", "1"][..],
                "--to: must be after --from",
            ),
            (&["--from", "nan"], "--from: \"nan\" is not a time"),
            (&["--to", ""], "--to: \"\" is not a time"),
        ] {
            let said = run(&[format, span].concat());
            assert_eq!(
                (said.code, said.out.as_str()),
                (2, ""),
                "{format:?} {span:?}"
            );
            assert!(
                said.err.starts_with(&format!("error: {option}")),
                "{}",
                said.err
            );
        }
        let empty = run(&[format, &["--id", "9"]].concat());
        assert!(empty.code == 0 && !empty.out.is_empty(), "{format:?}");
        if format != ["--count"] {
            let none = run(&[format, &["--limit", "0"]].concat());
            assert_eq!((none.code, none.out), (0, empty.out), "{format:?}");
        }
    }
}

#[test]
fn several_files_have_a_column_for_their_names() {
    let trace = trace_of(&[made_up(1_010, 7, b"\x05\0\0\0hidden text\0")]);
    let here = directory(&[("a.etl", &trace), ("b.etl", &trace), ("c.txt", b"no trace")]);
    let run = |args: &[&str]| {
        let said = etlkit(here.path(), &[&["dump", "--id", "7"], args].concat());
        assert_eq!((said.code, said.err.as_str()), (0, ""), "{args:?}");
        said.out
    };
    let csv = run(&["--format", "csv", "."]);
    let rows: Vec<&str> = csv.lines().collect();
    assert!(rows[0].starts_with("file,time,"), "{csv}");
    assert_eq!(rows.len(), 3);
    assert!(
        rows[1].contains("a.etl,") && rows[2].contains("b.etl,"),
        "{csv}"
    );
    assert_eq!(run(&["--count", "a.etl", "b.etl"]), "2\n");
    assert_eq!(run(&["--limit", "1", "a.etl", "b.etl"]).lines().count(), 1);
    let json = run(&["--format", "jsonl", "--relative", "b.etl", "a.etl"]);
    let first: serde_json::Value = serde_json::from_str(json.lines().next().unwrap()).unwrap();
    assert_eq!(first["file"], "b.etl");
    assert!(first["seconds"].is_number());
    // Nothing describes the event: it has a name and its readable text all the same.
    assert_eq!(first["event"], "EventID(7)");
    assert_eq!(first["payload_text"], "hidden text");
    assert!(first.get("fields").is_none());
    let xml = run(&["--format", "xml", "a.etl", "b.etl"]);
    assert_eq!(
        (
            xml.matches("<Events>").count(),
            xml.matches("</Events>").count()
        ),
        (1, 1)
    );
    let said = etlkit(here.path(), &["dump", "missing.etl", "a.etl", "--id", "7"]);
    assert_eq!((said.code, said.out.lines().count()), (2, 1));
}

#[test]
fn merged_traces_are_printed_in_time_order() {
    let trace = |times: &[i64]| {
        trace_of(
            &times
                .iter()
                .map(|time| made_up(*time, 7, &[]))
                .collect::<Vec<_>>(),
        )
    };
    let here = directory(&[
        ("a.etl", &trace(&[1_010, 1_030])),
        ("b.etl", &trace(&[1_020, 1_030])),
    ]);
    let args = [
        "dump",
        "--merge",
        "--id",
        "7",
        "--format",
        "csv",
        "--columns",
        "file,timestamp",
    ];
    let merged = |more: &[&str]| {
        let said = etlkit(here.path(), &[&args, more, &["a.etl", "b.etl"]].concat());
        assert_eq!((said.code, said.err.as_str()), (0, ""));
        said.out
    };
    let rows = "file,timestamp\na.etl,1010\nb.etl,1020\na.etl,1030\nb.etl,1030\n";
    assert_eq!(merged(&[]), rows);
    assert_eq!(merged(&["--limit", "2"]).lines().count(), 3);
}

/// The trace of a session on the same counter that started so many ticks of 100 ns later. By then
/// the time of day was set by `set`.
pub fn later(mut trace: Vec<u8>, by: i64, set: i64) -> Vec<u8> {
    for (before, after) in [(1_000, 1_000 + by), (START, START + by + set)] {
        let at = trace
            .windows(8)
            .position(|bytes| bytes == i64::to_le_bytes(before))
            .unwrap();
        trace[at..at + 8].copy_from_slice(&i64::to_le_bytes(after));
    }
    trace
}

#[test]
fn times_of_merged_traces_count_from_the_earliest_start() {
    const SECOND: i64 = 10_000_000;
    let events = |times: [i64; 2]| trace_of(&times.map(|time| made_up(1_000 + time, 7, &[])));
    let first = events([SECOND, 3 * SECOND]);
    for set in [0, 3_000_000] {
        let second = later(events([2 * SECOND + 1, 4 * SECOND]), 2 * SECOND, set);
        let here = directory(&[("a.etl", &first), ("b.etl", &second)]);
        for files in [["a.etl", "b.etl"], ["b.etl", "a.etl"]] {
            let merged = |more: &[&str]| {
                let args = [&["dump", "--merge", "--id", "7"], more, &files[..]].concat();
                let said = etlkit(here.path(), &args);
                assert_eq!((said.code, said.err.as_str()), (0, ""));
                said.out
            };
            assert_eq!(merged(&["--from", "2", "--to", "4", "--count"]).trim(), "2");
            let rows = merged(&["--relative", "--format", "csv", "--columns", "time,file"]);
            let times: Vec<_> = rows.lines().skip(1).collect();
            let expected = ["1.0000000,a", "2.0000001,b", "3.0000000,a", "4.0000000,b"];
            assert_eq!(times, expected.map(|row| format!("{row}.etl")), "{set}");
            let rows = merged(&["--format", "csv", "--columns", "time"]);
            let utc = |time: i64| etl_format::FileTime::new(START + time).to_string();
            let expected = [SECOND, 2 * SECOND + 1, 3 * SECOND, 4 * SECOND].map(utc);
            let times = rows
                .lines()
                .skip(1)
                .map(|row| row.split_once(',').unwrap().1);
            assert_eq!(times.collect::<Vec<_>>(), expected, "{set}");
        }
    }
}

#[test]
fn manifests_of_a_directory_are_used_by_dump_and_info() {
    let trace = trace_of(&[made_up(1_010, 7, &[5, 0, 0, 0])]);
    let manifest = crate::provider_names::MANIFEST.as_bytes();
    let here = directory(&[
        ("t.etl", &trace),
        ("schemas/m.man", manifest),
        ("none/x.txt", b""),
    ]);
    let dumped = etlkit(
        here.path(),
        &["dump", "--manifest", "schemas", "--id", "7", "t.etl"],
    );
    assert!(dumped.out.contains("Stepped N=5"), "{}", dumped.out);
    let info = etlkit(here.path(), &["info", "--manifest", "schemas", "t.etl"]);
    assert!(info.out.contains("Made-Up Stepped"), "{}", info.out);
    let none = etlkit(here.path(), &["dump", "--manifest", "none", "t.etl"]);
    assert_eq!(none.code, 2);
    assert!(
        none.err.contains("the directory has no .man or .xml file"),
        "{}",
        none.err
    );
}

#[needs(trace = "tx/HTTP_Server.etl")]
#[test]
fn csv_of_a_single_kind_of_event_has_a_column_for_each_field() {
    let header = |args: &[&str]| {
        let (code, out, err) = dump(&[args, &["--format", "csv", "--limit", "1"]].concat());
        assert_eq!((code, err.as_str()), (0, ""), "{args:?}");
        out.lines().next().unwrap().to_owned()
    };
    let columns = ",event,ConnectionObj,LocalAddrLength,LocalAddr,";
    let kind = "Microsoft-Windows-HttpService";
    for args in [
        &["-p", kind, "--id", "21"],
        &["--event", "HTTPConnectionTraceTask/ConnConnect"][..],
    ] {
        let line = header(args);
        assert!(
            line.contains(columns) && !line.contains(",fields,"),
            "{line}"
        );
    }
    assert!(header(&["--event", "HTTP*"]).contains(",event,fields,message,"));
}

#[needs(trace = "demikernel/PktMon.etl")]
#[test]
fn stale_records_are_left_out_unless_they_are_asked_for() {
    let path = etl_test_support::trace("demikernel/PktMon.etl");
    let (path, here) = (path.to_str().unwrap(), directory(&[]));
    let count = |args: &[&str]| {
        let said = etlkit(here.path(), &[&["dump", "--count", path], args].concat());
        assert_eq!((said.code, said.err.as_str()), (0, ""));
        said.out.trim().parse::<u64>().unwrap()
    };
    for order in [&[][..], &["--file-order"]] {
        assert_eq!(
            count(&[order, &["--stale"]].concat()),
            count(order) + 1,
            "{order:?}"
        );
    }
    let info = etlkit(here.path(), &["info", "--format", "json", path]);
    let info: serde_json::Value = serde_json::from_str(&info.out).unwrap();
    assert_eq!(
        (&info["stale_records"], info["records"].as_u64()),
        (&1.into(), Some(count(&["--stale"])))
    );
    let records = |args: &[&str]| {
        let said = etlkit(
            here.path(),
            &[&["verify", "--format", "json", path], args].concat(),
        );
        let report: serde_json::Value = serde_json::from_str(&said.out).unwrap();
        report["records"].as_u64().unwrap()
    };
    assert_eq!(records(&["--stale"]), records(&[]) + 1);
}

#[needs(trace = "perfview/net.4.5.2.x64.etl")]
#[test]
fn ids_paths_and_addresses_have_names() {
    let path = etl_test_support::trace("perfview/net.4.5.2.x64.etl");
    let here = directory(&[]);
    let first = |args: &[&str]| {
        let args = [&["dump", path.to_str().unwrap(), "--limit", "1"], args].concat();
        let said = etlkit(here.path(), &args);
        assert_eq!((said.code, said.err.as_str()), (0, ""), "{args:?}");
        said.out
    };
    // A sample has no process of its own: it belongs to the thread that ran.
    let text = first(&["-p", "PerfInfo", "--opcode", "46", "--pid", "3676"]);
    assert!(text.contains("  pid Test.x64.exe (3676) tid "), "{text}");
    let stack = ["-p", "StackWalk", "--opcode", "32"];
    let text = first(&[&stack[..], &["--resolve"]].concat());
    assert!(text.contains("  pid System (4) tid 584 "), "{text}");
    assert!(
        text.contains("(winhv.sys+0x2191)") && !first(&stack).contains("winhv"),
        "{text}"
    );
    let line = first(&[&stack[..], &["--resolve", "--format", "jsonl"]].concat());
    let stack: serde_json::Value = serde_json::from_str(&line).unwrap();
    assert_eq!(
        (&stack["pid"], &stack["process"]),
        (&4.into(), &"System".into())
    );
    assert_eq!(stack["fields"]["StackProcess_name"], "System");
    assert_eq!(
        stack["fields"]["Stack_name"],
        serde_json::json!([null, "winhv.sys+0x2191"])
    );
    let image = [
        "-p",
        "Image",
        "--event",
        "DCStart",
        "--where",
        "ProcessId = 3988",
    ];
    let text = first(&image);
    assert!(text.contains("FileName=\"C:\\"), "{text}");
    assert!(text.contains("ProcessId=3988(PerfView.exe)"), "{text}");
    let text = first(&[&image[..], &["--raw-paths"]].concat());
    assert!(
        text.contains("FileName=\"\\Device\\HarddiskVolume2\\"),
        "{text}"
    );
}

/// A session of any kind can record processes by the provider Microsoft-Windows-Kernel-Process.
#[needs(trace = "tx/Process.etl")]
#[test]
fn processes_have_the_names_that_their_provider_states() {
    let path = etl_test_support::trace("tx/Process.etl");
    let (path, here) = (path.to_str().unwrap(), directory(&[]));
    let info = etlkit(here.path(), &["info", "--format", "json", path]);
    let info: serde_json::Value = serde_json::from_str(&info.out).unwrap();
    let processes = info["process_counts"].as_array().unwrap();
    let named = processes
        .iter()
        .find(|process| process["pid"] == 5_864)
        .unwrap();
    assert_eq!(named["name"], "devenv.exe");
    assert_eq!(named["parent_pid"], 3_324);
    assert_eq!(named["start_time"], "2010-10-29T19:08:00.7281303Z");
    assert_eq!(named["end_time"], "2010-10-29T19:10:10.2260725Z");
    let count = |select: &[&str]| {
        let said = etlkit(here.path(), &[&["dump", path, "--count"], select].concat());
        said.out.trim().parse::<u64>().unwrap()
    };
    let own = count(&["--where", "process = OUTLOOK"]);
    assert!(
        own > 100 && own == count(&["--process", "outlook.exe"]),
        "{own}"
    );
    let dumped = etlkit(
        here.path(),
        &["dump", path, "--pid", "5864", "--limit", "1"],
    );
    assert!(
        dumped.out.contains("  pid devenv.exe (5864) tid "),
        "{}",
        dumped.out
    );
}

#[test]
fn events_with_an_empty_name_are_called_by_their_number() {
    let text: Vec<u8> = "hello\0"
        .encode_utf16()
        .flat_map(u16::to_le_bytes)
        .collect();
    let mut trace = crate::common::trace_of([7; 16], 9, 0, &text);
    // The flags of the event: its payload is a string, and it has no name.
    trace[BUFFER + 0x48 + 4] |= 0x04;
    let here = directory(&[("t.etl", &trace)]);
    let run = |args: &[&str]| etlkit(here.path(), args).out;
    let row = run(&[
        "dump",
        "--event",
        "EventID(9)",
        "--format",
        "jsonl",
        "t.etl",
    ]);
    let row: serde_json::Value = serde_json::from_str(&row).unwrap();
    assert_eq!(
        (&row["event"], row["fields"].is_object()),
        (&"EventID(9)".into(), true),
        "{row}"
    );
    let info: serde_json::Value =
        serde_json::from_str(&run(&["info", "--format", "json", "t.etl"])).unwrap();
    let names: Vec<_> = info["events"]
        .as_array()
        .unwrap()
        .iter()
        .map(|e| &e["event"])
        .collect();
    assert!(names.contains(&&"EventID(9)".into()), "{info}");
}

#[test]
fn merged_printing_rejects_a_trace_that_is_named_twice() {
    let here = directory(&[("a.etl", &trace())]);
    std::fs::hard_link(here.path().join("a.etl"), here.path().join("b.etl")).unwrap();
    for command in [&["dump", "--merge"][..], &["merge", "-o", "out.etl"]] {
        let said = etlkit(here.path(), &[command, &["a.etl", "b.etl"]].concat());
        assert_eq!((said.code, said.out.as_str()), (2, ""));
        let twice = "error: b.etl: is named twice, first as a.etl\nhint: ";
        assert!(said.err.starts_with(twice), "{}", said.err);
    }
    assert_eq!(
        etlkit(here.path(), &["dump", "--count", "a.etl", "b.etl"]).out,
        "12\n"
    );
}

#[test]
fn standard_input_is_read_once() {
    let said = |args: &[&str]| etlkit_piped(&trace(), &[args, &["-", "-"]].concat());
    assert_eq!(said(&["dump", "--count"]).out, "6\n");
    let twice = "error: (standard input): only one of the files can be standard input\n";
    for command in [
        &["dump", "--count"][..],
        &["dump", "--merge"],
        &["info"],
        &["verify"],
    ] {
        let said = said(command);
        assert_eq!(said.code, 2);
        assert!(said.err.starts_with(twice), "{command:?}: {}", said.err);
    }
}
