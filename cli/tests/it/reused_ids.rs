//! Ids of processes and threads that are used again: whose is what.

use serde_json::{Value, json};

use super::common::{directory, etlkit};
use raw::event::Event;
use raw::{File, Out, perfinfo, system};

#[path = "../../../etl-format/tests/it/common/mod.rs"]
mod raw;

const START: u16 = 1;
const END: u16 = 2;

fn process(type_of: u16, at: i64, pid: u32, parent: u32) -> Vec<u8> {
    named_process(type_of, at, pid, parent, b"a.exe\0")
}

fn named_process(type_of: u16, at: i64, pid: u32, parent: u32, name: &[u8]) -> Vec<u8> {
    let payload = Out::default()
        .u64(pid.into())
        .u32(pid)
        .u32(parent)
        .u32(1)
        .u32(0)
        .u64(0);
    let names = payload.u32(0).u32(0).bytes(name).u16(0).u16(0).u16(0);
    let mut record = system(true, 0x0300 | type_of, at, &names.0);
    record[0] = 4;
    record
}

fn thread(type_of: u16, at: i64, pid: u32, tid: u32) -> Vec<u8> {
    let payload = Out::default().u32(pid).u32(tid).bytes(&[0; 64]);
    let mut record = system(true, 0x0500 | type_of, at, &payload.0);
    record[0] = 3;
    record
}

fn name(at: i64, pid: u32, tid: u32, name: &str) -> Vec<u8> {
    system(
        true,
        0x0548,
        at,
        &Out::default().u32(pid).u32(tid).utf16(name).u16(0).0,
    )
}

fn sample(at: i64, tid: u32) -> Vec<u8> {
    let payload = Out::default().u64(0x7ff0_0000_1000).u32(tid).u32(1);
    perfinfo(true, 0x0f2e, at, None, &[], &payload.0)
}

/// A report on records, as it is printed.
fn printed(records: &[Vec<u8>], args: &[&str]) -> String {
    let mut file = File::new(0x1_0000);
    for records in records.chunks(200) {
        file = file.buffer(0, records);
    }
    let here = directory(&[("t.etl", &file.bytes())]);
    let done = etlkit(here.path(), &[&["analyze"], args, &["t.etl"]].concat());
    assert!(done.code < 2, "{}", done.err);
    done.out
}

/// The rows of a report on records.
fn report(records: &[Vec<u8>], args: &[&str], rows: &str) -> Vec<Value> {
    let json = printed(records, &[args, &["--format", "json"]].concat());
    let report: Value = serde_json::from_str(&json).unwrap();
    report[rows].as_array().unwrap().clone()
}

fn pick(rows: &[Value], names: [&str; 2]) -> Value {
    rows.iter()
        .map(|row| json!([row[names[0]], row[names[1]]]))
        .collect()
}

#[test]
fn dump_uses_only_names_of_the_process_and_thread_of_an_event() {
    let of = |timestamp, process, thread| {
        Event {
            timestamp,
            process,
            thread,
            id: 7,
            ..Event::default()
        }
        .bytes()
    };
    let records = [
        of(1_500, 200, 48),
        process(START, 2_000, 200, 4),
        thread(START, 2_010, 200, 48),
        name(2_020, 200, 48, "Alpha"),
        of(2_100, 200, 48),
        thread(END, 2_200, 200, 48),
        // A thread of another process, whose start is not known.
        of(3_000, 300, 48),
    ];
    let here = directory(&[("t.etl", &File::new(0x1_0000).buffer(0, &records).bytes())]);
    let csv = [
        "--format",
        "csv",
        "--columns",
        "pid,process,thread",
        "--id",
        "7",
    ];
    let done = etlkit(here.path(), &[&["dump", "t.etl"], &csv[..]].concat());
    let rows = "200,,\n200,a.exe,Alpha\n300,,\n";
    assert_eq!(done.out, format!("pid,process,thread\n{rows}"));
}

#[test]
fn thread_has_the_name_that_it_has_in_its_process() {
    let records = [
        process(START, 2_000, 200, 4),
        thread(START, 2_010, 200, 48),
        name(2_020, 200, 48, "Alpha"),
        sample(2_100, 48),
        thread(END, 2_200, 200, 48),
        process(START, 3_000, 300, 4),
        thread(START, 3_010, 300, 48),
        name(3_020, 300, 48, "Beta"),
        sample(3_100, 48),
        // The same ids once more.
        process(END, 4_000, 200, 4),
        process(START, 5_000, 200, 4),
        thread(END, 5_005, 300, 48),
        thread(START, 5_010, 200, 48),
        name(5_020, 200, 48, "Gamma"),
        sample(5_100, 48),
    ];
    let mut rows = report(&records, &["cpu", "--group-by", "thread"], "rows");
    rows.sort_by_key(|row| row["thread"].as_str().map(str::to_owned));
    let expected = json!([[200, "Alpha"], [300, "Beta"], [200, "Gamma"]]);
    assert_eq!(pick(&rows, ["pid", "thread"]), expected);
}

#[test]
fn threads_count_for_the_process_that_had_the_id() {
    let records = [
        process(START, 2_000, 200, 4),
        thread(START, 2_010, 200, 48),
        thread(END, 2_020, 200, 48),
        process(END, 2_030, 200, 4),
        process(START, 3_000, 200, 4),
        thread(START, 3_010, 200, 48),
        thread(START, 3_020, 200, 52),
    ];
    let mut rows = report(&records, &["processes"], "processes");
    rows.retain(|row| row["pid"] == 200);
    assert_eq!(pick(&rows, ["pid", "threads"]), json!([[200, 1], [200, 2]]));
}

#[test]
fn tree_and_children_agree_on_parents() {
    let records = [
        process(START, 2_000, 200, 4),
        process(START, 2_010, 300, 200),
        process(END, 2_020, 200, 4),
        // The id of its parent is free at this time.
        process(START, 2_030, 400, 200),
        // Its parent had the id that it has itself.
        process(END, 2_040, 300, 200),
        process(START, 2_040, 300, 300),
    ];
    let rows = report(&records, &["processes"], "processes");
    let own: Vec<Value> = rows
        .into_iter()
        .filter(|row| row["parent_pid"] != 0)
        .collect();
    let expected = json!([[200, 0], [300, 1], [300, 2], [400, 0]]);
    assert_eq!(pick(&own, ["pid", "depth"]), expected);
    let args = ["processes", "--process", "200", "--children"];
    let rows = report(&records, &args, "processes");
    assert_eq!(
        pick(&rows, ["pid", "parent_pid"]),
        json!([[200, 4], [300, 200], [300, 300]])
    );
}

#[test]
fn long_chain_of_processes_has_short_rows() {
    const COUNT: u32 = 3_000;
    let chain = (0..COUNT).map(|n| process(START, 2_000 + i64::from(n), 200 + 4 * n, 196 + 4 * n));
    let text = printed(&chain.collect::<Vec<_>>(), &["processes", "--top", "0"]);
    let longest = text.lines().map(str::len).max();
    assert!(
        text.lines().count() >= COUNT as usize && longest < Some(250),
        "{longest:?}"
    );
}

#[test]
fn collections_without_an_end_have_a_limit() {
    const RUNTIME: [u8; 16] = *b"\x23\x0d\x3c\xe1\xbc\xcc\x12\x4e\x93\x1b\xd9\xcc\x2e\xee\x27\xe4";
    const COUNT: u32 = 80;
    let event = |id, version, at: u32, payload: Out| {
        let timestamp = 2_000 + i64::from(at);
        let of = Event {
            provider: RUNTIME,
            id,
            version,
            timestamp,
            ..Event::default()
        };
        Event {
            process: 100,
            thread: 8,
            opcode: id as u8,
            payload: payload.0,
            ..of
        }
        .bytes()
    };
    let starts = (0..COUNT).map(|n| {
        let start = Out::default().u32(n).u32(0).u32(0).u32(0).u16(9).u64(0);
        event(1, 2, n, start)
    });
    let ends = (0..COUNT).map(|n| event(2, 1, COUNT + n, Out::default().u32(n).u32(0).u16(9)));
    let rows = report(&starts.chain(ends).collect::<Vec<_>>(), &["gc"], "gcs");
    let ended = rows
        .iter()
        .filter(|row| !row["duration_us"].is_null())
        .count();
    assert_eq!((rows.len(), ended), (COUNT as usize, 64));
}

#[cfg(feature = "parquet")]
#[test]
fn tables_have_rows_of_the_selected_process_alone() {
    let other = |type_of, at| named_process(type_of, at, 200, 4, b"b.exe\0");
    let records = [
        process(START, 2_000, 200, 4),
        thread(START, 2_010, 200, 48),
        thread(START, 2_011, 200, 52),
        thread(END, 2_020, 200, 48),
        thread(END, 2_021, 200, 52),
        process(END, 2_030, 200, 4),
        other(START, 3_000),
        thread(START, 3_010, 200, 48),
        other(END, 4_000),
    ];
    let here = directory(&[("t.etl", &File::new(0x1_0000).buffer(0, &records).bytes())]);
    for (table, process, rows) in [
        ("processes", "a", 1),
        ("processes", "b", 1),
        ("threads", "a", 2),
        ("threads", "b", 1),
    ] {
        let args = [
            "export", "arrow", "t.etl", "--force", "-o", "x", "--table", table,
        ];
        let made = etlkit(here.path(), &[&args[..], &["--process", process]].concat());
        assert_eq!(
            made.out,
            format!("x: {rows} rows of {table}\n"),
            "{process}: {}",
            made.err
        );
    }
    let args = [
        "export",
        "arrow",
        "t.etl",
        "-o",
        "y",
        "--table",
        "processes",
        "--tid",
        "48",
    ];
    assert!(etlkit(here.path(), &args).err.contains("have no thread"));
}
