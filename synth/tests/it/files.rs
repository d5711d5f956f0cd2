//! What is in the files of sessions: order, numbers, and what becomes of files that are used twice,
//! damaged, edited or merged again.

use std::collections::BTreeMap;

use etl_format::read::{Note, Options, Order, Trace};
use etl_schema::providers::{CLR_RUNDOWN, IMAGE_ID};
use etl_synth::truth::{
    BufferOutcome, BufferReport, EventOutcome, InMemoryTruth, KnownEvent, KnownFault, RefusalCode,
};
use etl_synth::{Script, Simulation};

use crate::common::run;

/// A process whose four threads, each on its own processor, throw and allocate.
const BUSY: &str = r#"
process "A.exe" pid=5000 threads=4 {
    clr "core" { assembly "A" { module "C:\\A.dll" { methods 20 ready=10 } } }
    every "1ms" from="1.1s" until="2s" { throw 1; allocate 1; jit 1 }
}
"#;

/// Timestamps of the records after the first buffer, in the order of the file.
fn timestamps(bytes: &[u8]) -> Vec<i64> {
    let mut trace = Trace::open(bytes, &Options::default()).unwrap();
    let mut records = trace.records(Order::File).unwrap();
    let mut out = Vec::new();
    while let Some(record) = records.next_record().unwrap() {
        if record.location().buffer_offset > 0 {
            out.push(record.timestamp().get());
        }
    }
    out
}

/// Sequence numbers of buffers, in the order of the file.
fn numbers(bytes: &[u8]) -> Vec<i64> {
    let trace = Trace::open(bytes, &Options::default()).unwrap();
    trace.buffers().iter().map(|b| b.sequence_number).collect()
}

/// The last report of each buffer of a session.
fn buffers(truth: &InMemoryTruth, session: usize) -> BTreeMap<i64, &BufferReport> {
    let of = truth
        .buffers
        .iter()
        .filter(|buffer| buffer.session == session);
    of.map(|buffer| (buffer.report.sequence, &buffer.report))
        .collect()
}

#[test]
fn buffers_of_all_processors_are_in_time_order() {
    let enable = r#"enable "runtime" keywords="GC|Exception|Jit" level=5"#;
    let (truth, files) = run(&format!(
        r#"{BUSY} machine disk-bytes-per-second=300000
        at "1s" {{
            session "file" file="file.etl" mode="no-per-processor" buffer-kb=16 {{ {enable} }}
            session "lossy" file="lossy.etl" mode="no-per-processor independent" buffer-kb=4 buffers=2 {{ {enable} }}
            session "live" mode="real-time no-per-processor" buffer-kb=16 {{ {enable} }}
            session "ring" mode="buffering no-per-processor" buffer-kb=16 buffers=4 {{ {enable} }}
            session "kernel" file="kernel.etl" mode="no-per-processor system-logger" {{ kernel "switches ready profile" }}
            consume "live" into="live.etl"
        }}
        at "1.5s" {{ flush "ring" into="early.etl"; flush "file" }}
        at "2.5s" {{ flush "ring" into="late.etl" }}
        at "3s" {{ stop "file"; stop "lossy"; stop "live"; stop "ring"; stop "kernel" }}"#
    ));
    assert_eq!(files.len(), 6);
    for (name, bytes) in &files {
        let found = timestamps(bytes);
        assert!(found.len() > 50, "{name}: {}", found.len());
        assert!(found.is_sorted(), "{name}");
    }
    // The buffers contain what was recorded, and the truth says where.
    for (index, file) in [(0, "file.etl"), (1, "lossy.etl")] {
        let mut recorded: Vec<_> = truth.events.iter().collect();
        recorded.retain(|e| e.outcome(index) == Some(EventOutcome::Recorded));
        recorded.sort_by_key(|e| (e.at, e.number));
        let mut next = recorded.iter();
        for buffer in buffers(&truth, index).values() {
            let of: Vec<_> = next.by_ref().take(buffer.events as usize).collect();
            let ends = of.first().zip(of.last()).map(|(a, b)| (a.number, b.number));
            assert_eq!(
                ends,
                Some((buffer.first_event, buffer.last_event)),
                "{file}"
            );
        }
        assert_eq!(
            timestamps(&files[file]),
            Vec::from_iter(recorded.iter().map(|e| e.timestamp.get()))
        );
        assert_eq!(truth.sessions[index].events_lost > 0, index == 1, "{file}");
    }
}

#[test]
fn file_that_is_open_is_not_created_again() {
    let enable = r#"enable "runtime" keywords="Exception" level=5"#;
    let (truth, files) = run(&format!(
        r#"{BUSY}
        at "1s" {{
            session "a" file="a.etl" {{ {enable} }}
            session "live" mode="real-time" {{ {enable} }}
            session "ring" mode="buffering" {{ {enable} }}
        }}
        at "1.2s" {{
            consume "live" into="a.etl"
            consume "live" into="kept.etl"
            flush "ring" into="a.etl"
            flush "ring" into="kept.etl"
            session "b" file="kept.etl" {{ {enable} }}
        }}
        at "3s" {{ stop "a"; stop "live"; stop "ring" }}"#
    ));
    let refused: Vec<_> = truth
        .refused
        .iter()
        .map(|r| (r.session.as_str(), r.request))
        .collect();
    let expected = [
        ("live", "consume"),
        ("ring", "flush"),
        ("ring", "flush"),
        ("b", "start"),
    ];
    assert_eq!(refused, expected);
    assert!(
        truth
            .refused
            .iter()
            .all(|r| r.code == RefusalCode::AlreadyExists)
    );
    assert_eq!(Vec::from_iter(files.keys()), ["a.etl", "kept.etl"]);
    // Each session counts the buffers in its files, their headers included.
    for session in &truth.sessions {
        let of = |file: &String| numbers(&files[file]).len() as u64;
        let expected = (
            session.all_files.iter().map(of).sum(),
            session.all_files.len() as u32,
        );
        assert_eq!(
            (session.buffers_written, session.files_written),
            expected,
            "{}",
            session.name
        );
    }
}

#[test]
fn ready_threads_are_logged_after_the_causing_operation() {
    let (_, files) = run(r#"machine processors=1
        process "A.exe" threads=4 { clr "core" { assembly "A" { module "C:\\A.dll" { methods 20 ready=10 } } }
            every "3ms" from="1.1s" until="3s" { allocate 2; jit 1; contend 1; wait "1ms"; run "1ms" }
            every "40ms" from="1.1s" until="3s" { gc 1 } }
        at "1s" { session "s" file="s.etl" buffer-kb=4 { kernel "switches ready processes"; enable "runtime" keywords=0x4091 level=5 } }
        at "4s" { stop "s" }"#);
    let timestamps = timestamps(&files["s.etl"]);
    assert!(timestamps.len() > 1000 && timestamps.is_sorted());
}

#[test]
fn buffers_of_a_replaced_file_are_overwritten() {
    let enable = r#"enable "runtime" keywords="Exception" level=5"#;
    let (truth, files) = run(&format!(
        r#"{BUSY}
        at "1s" {{
            session "a" file="a.etl" buffer-kb=16 {{ {enable} }}
            session "ring" mode="buffering" buffer-kb=16 {{ {enable} }}
        }}
        at "1.3s" {{ stop "a"; flush "ring" into="ring.etl" }}
        at "1.6s" {{ session "a" file="a.etl" buffer-kb=16 {{ {enable} }}; flush "ring" into="ring.etl" }}
        at "3s" {{ stop "a"; stop "ring" }}"#
    ));
    let first = buffers(&truth, 0);
    assert!(first.len() > 3);
    assert!(
        first
            .values()
            .all(|b| b.outcome == BufferOutcome::Overwritten)
    );
    for (session, file) in [(1, "ring.etl"), (2, "a.etl")] {
        let all = buffers(&truth, session);
        let written = all.values().filter(|b| b.outcome == BufferOutcome::Written);
        let found = numbers(&files[file]);
        assert_eq!(
            Vec::from_iter(written.map(|b| b.sequence)),
            found[1..],
            "{file}"
        );
    }
    assert!(
        buffers(&truth, 1)
            .values()
            .any(|b| b.outcome == BufferOutcome::Overwritten)
    );
}

#[test]
fn torn_buffer_is_the_one_that_was_written_last() {
    let enable = r#"enable "runtime" keywords="Exception|Jit" level=5; fault "torn""#;
    let (truth, files) = run(&format!(
        r#"{BUSY}
        at "1s" {{
            session "ring" file="ring.etl" mode="circular kbytes" maximum-size=256 buffer-kb=16 {{ {enable} }}
            session "full" file="full.etl" mode="preallocate" maximum-size=8 buffer-kb=16 {{ {enable} }}
        }}
        at "3s" {{ stop "ring"; stop "full" }}"#
    ));
    for KnownFault {
        session,
        file,
        bytes,
        ..
    } in &truth.faults
    {
        let (number, buffer) = buffers(&truth, *session).into_iter().next_back().unwrap();
        let location = buffer.location.as_ref().unwrap();
        assert_eq!(buffer.outcome, BufferOutcome::Damaged, "{file}: {number}");
        assert_eq!(
            (bytes.start, bytes.end),
            (location.start + 8192, location.end),
            "{file}"
        );
        let (from, to) = (bytes.start as usize, bytes.end as usize);
        assert!(files[file][from..to].iter().all(|b| *b == 0));
        let is_end = location.end == files[file].len() as u64;
        assert_eq!(is_end, file == "full.etl", "{file}");
    }
    assert_eq!(truth.faults.len(), 2);
}

#[test]
fn preallocated_file_shrinks_to_its_buffers_at_the_stop() {
    let enable = r#"enable "runtime" keywords="Exception|Jit" level=5"#;
    let (truth, files) = run(&format!(
        r#"{BUSY}
        at "1s" {{
            session "some" file="some.etl" mode="preallocate" maximum-size=8 buffer-kb=16 {{ {enable} }}
            session "cut" file="cut.etl" mode="preallocate" maximum-size=8 buffer-kb=16 {{ {enable}; fault "not-closed" }}
            session "ring" file="ring.etl" mode="circular preallocate kbytes" maximum-size=64 buffer-kb=16 {{ {enable} }}
            session "parts" file="part%d.etl" mode="newfile preallocate kbytes" maximum-size=72 buffer-kb=16 {{ {enable} }}
        }}
        at "3s" {{ stop "some"; stop "cut"; stop "ring"; stop "parts" }}"#
    ));
    assert!(truth.refused.is_empty());
    for (name, bytes) in &files {
        let of_buffers = numbers(bytes).len() * 16384;
        assert_eq!(
            bytes.len(),
            if name == "cut.etl" {
                8 << 20
            } else {
                of_buffers
            },
            "{name}"
        );
    }
    assert!(files.len() > 5);
}

#[test]
fn appending_session_counts_its_own_losses() {
    let enable = r#"enable "runtime" keywords="Exception" level=5"#;
    let (truth, _) = run(&format!(
        r#"{BUSY}
        at "1s" {{ session "a" file="a.etl" buffer-kb=16 {{ {enable}; fault "lost-buffers" every=3 }} }}
        at "1.5s" {{ stop "a"; session "b" file="a.etl" mode="append" buffer-kb=16 {{ {enable} }} }}
        at "3s" {{ stop "b" }}"#
    ));
    let lost: Vec<_> = truth.sessions.iter().map(|s| s.buffers_lost).collect();
    assert!(lost[0] > 0 && lost[1] == 0, "{lost:?}");
}

#[test]
fn append_continues_only_sequential_files_after_the_last_buffer() {
    let enable = r#"enable "runtime" keywords="Exception|Jit" level=5"#;
    let (truth, files) = run(&format!(
        r#"{BUSY}
        at "1s" {{
            session "ring" file="ring.etl" mode="circular kbytes" maximum-size=64 buffer-kb=16 {{ {enable} }}
            session "cut" file="cut.etl" mode="preallocate" maximum-size=8 buffer-kb=16 {{ {enable}; fault "not-closed" }}
        }}
        at "1.5s" {{
            stop "ring"; stop "cut"
            session "a" file="ring.etl" mode="append" buffer-kb=16 {{ {enable} }}
            session "b" file="cut.etl" mode="append" buffer-kb=16 {{ {enable} }}
        }}
        at "3s" {{ stop "b" }}"#
    ));
    let refused: Vec<_> = truth
        .refused
        .iter()
        .map(|r| (r.session.as_str(), r.code))
        .collect();
    assert_eq!(refused, [("a", RefusalCode::InvalidParameter)]);
    let trace = Trace::open(&files["cut.etl"][..], &Options::default()).unwrap();
    let buffers = trace.buffers();
    assert!(buffers.len() > 5);
    let mut numbers = [0, 0];
    for (index, buffer) in buffers.iter().enumerate() {
        assert_eq!(buffer.offset, index as u64 * 16384);
        // Each session numbers its own buffers from 1 on, after buffer 0 of the first.
        let number = &mut numbers[buffer.run as usize];
        if index > 0 {
            *number += 1;
        }
        assert_eq!(buffer.sequence_number, *number);
    }
    assert!(numbers.iter().all(|count| *count > 0), "{numbers:?}");
    // The rest of the preallocated file is unused: no session closed it that could shorten it.
    let end = buffers.len() as u64 * 16384;
    let len = files["cut.etl"].len() as u64 - end;
    assert_eq!(trace.notes(), [Note::UnusedTail { offset: end, len }]);
}

#[test]
fn session_has_no_modes_that_exclude_each_other() {
    let private = "process=\"A.exe\"";
    for (mode, process) in [("sequential circular", ""), ("append", private)] {
        let (truth, _) = run(&format!(
            r#"{BUSY} at "1s" {{ session "m" file="m%d.etl" mode="{mode} kbytes" maximum-size=256 {process} }}"#
        ));
        assert_eq!(
            truth.refused[0].code,
            RefusalCode::InvalidParameter,
            "{mode}"
        );
    }
}

#[test]
fn session_in_memory_has_no_mode_of_a_file() {
    for mode in ["circular", "newfile", "preallocate"] {
        let (truth, _) = run(&format!(
            r#"{BUSY} session "m" mode="buffering {mode} kbytes" maximum-size=256 file="m%d.etl""#
        ));
        assert_eq!(
            truth.refused[0].code,
            RefusalCode::InvalidParameter,
            "{mode}"
        );
    }
}

#[test]
fn edit_changes_the_buffers_of_changed_records_alone() {
    let enable = r#"enable "runtime" keywords="GC|Exception|Jit" level=5"#;
    let script = format!(
        r#"{BUSY}
        at "1s" {{
            session "lost" file="lost.etl" buffer-kb=16 {{ {enable}; fault "lost-buffers" every=3; fault "lost-events" every=9 }}
            session "ring" file="ring.etl" mode="circular kbytes" maximum-size=128 buffer-kb=16 {{ {enable} }}
            session "full" file="full.etl" mode="preallocate" maximum-size=8 buffer-kb=16 {{ {enable} }}
        }}
        at "3s" {{ stop "lost"; stop "ring"; stop "full" }}"#
    );
    let (_, before) = run(&script);
    for (name, old) in &before {
        let edited = |edit: &str| {
            let (_, files) = run(&format!("{script}\nedit \"{name}\" {{ {edit} }}"));
            files.into_iter().find(|(n, _)| n == name).unwrap().1
        };
        // Four bytes: the thread of one record.
        let new = edited(r#"alter "ExceptionThrown" nth=2 set-tid=0x11223344"#);
        assert_eq!(new.len(), old.len(), "{name}");
        let differing = old.iter().zip(&new).filter(|(a, b)| a != b).count();
        assert!((1..=4).contains(&differing), "{name}: {differing}");
        // Without its records a buffer stays, and no number is missing that was not before.
        let new = edited(r#"delete "*""#);
        assert_eq!(
            (numbers(&new), timestamps(&new).len()),
            (numbers(old), 0),
            "{name}"
        );
        // What does not fit follows in further buffers, whatever the largest size of the file is.
        let new = edited(r#"copy "ExceptionThrown" nth=2 times=1000"#);
        let (mut found, mut was) = (numbers(&new), numbers(old));
        assert_eq!(
            timestamps(&new).len(),
            timestamps(old).len() + 1000,
            "{name}"
        );
        let header = |bytes: &[u8]| {
            Trace::open(bytes, &Options::default())
                .unwrap()
                .header()
                .clone()
        };
        let further = header(&new).buffers_written - header(old).buffers_written;
        assert_eq!(found.len(), was.len() + further as usize, "{name}");
        // Gaps between numbers stay as they were.
        found.sort_unstable();
        was.sort_unstable();
        let gaps = |all: &[i64]| all.windows(2).filter(|w| w[1] - w[0] > 1).count();
        assert_eq!(gaps(&found), gaps(&was), "{name}");
    }
}

#[test]
fn edit_refuses_records_of_compressed_files() {
    let script = format!(
        r#"{BUSY}
        at "1s" {{ session "a" file="a.etl" {{ enable "runtime" keywords="Exception" level=5 }} }}
        at "3s" {{ stop "a"; merge "a.etl" into="b.etl" compress=#true }}
        edit "b.etl" {{ header "build" set=17000; EDIT }}"#
    );
    for edit in [r#"alter "ExceptionThrown" nth=1 set-tid=5"#, "damage 2"] {
        let scenario = Script::new("script", &script.replace("EDIT", edit))
            .parse()
            .unwrap();
        let error = Simulation::new(&scenario).run_in_memory().unwrap_err();
        let errors = error.script_errors().unwrap();
        let error = &errors.as_slice()[0];
        assert!(error.to_string().contains("compressed"), "{error}");
    }
}

#[test]
fn merge_of_a_merge_identifies_images_once() {
    let (_, files) = run(
        r#"process "A.exe" pid=5000 { at "1.5s" { load-image "C:\\A\\n.dll" } }
        at "1s" { session "NT Kernel Logger" file="k.etl" { kernel "processes images" } }
        at "2s" { stop "NT Kernel Logger"; merge "k.etl" into="one.etl"; merge "one.etl" into="two.etl" }"#,
    );
    let identities = |file: &str| {
        let mut trace = Trace::open(&files[file][..], &Options::default()).unwrap();
        let mut records = trace.records(Order::Time).unwrap();
        let (mut all, mut found) = (0, 0);
        while let Some(record) = records.next_record().unwrap() {
            all += 1;
            found += u32::from(record.provider() == Some(IMAGE_ID));
        }
        (all, found)
    };
    assert!(identities("one.etl").1 > 10);
    assert_eq!(identities("two.etl"), identities("one.etl"));
}

#[test]
fn old_rule_records_what_it_admits() {
    let (truth, _) = run(
        r#"provider "P" kind="manifest" { event "E" id=1 level=4 keywords=0x1 { field "x" "UInt32" } }
        process "A.exe" { every "10ms" from="1.5s" until="2s" { raise "P" "E" } }
        at "1s" { session "old" file="old.etl" { enable "P" all=0x6 level=5 old-rule=#true } }
        at "1s" { session "new" file="new.etl" { enable "P" all=0x6 level=5 } }
        at "3s" { stop "old"; stop "new" }"#,
    );
    let recorded: Vec<_> = truth.sessions.iter().map(|s| s.events_recorded).collect();
    assert_eq!(recorded, [50, 0]);
}

#[test]
fn rundown_is_repeated_for_the_session_that_stays() {
    let rundowns = |end: &str| {
        let (truth, _) = run(&format!(
            r#"{BUSY}
            at "2.1s" {{ session "a" file="a.etl" {{ enable "rundown" keywords=0x138 level=5 }} }}
            at "2.5s" {{ session "b" file="b.etl" {{ enable "rundown" keywords=0x138 level=5 }} }}
            {end}"#
        ));
        let opened = |e: &&KnownEvent| (e.provider, e.descriptor.id) == (CLR_RUNDOWN, 148);
        truth.events.iter().filter(opened).count()
    };
    assert_eq!(rundowns(r#"at "3s" { stop "a" }; at "4s" { stop "b" }"#), 3);
    assert_eq!(
        rundowns(r#"at "3s" { disable "rundown" in="a" }; at "4s" { stop "b"; stop "a" }"#),
        3
    );
    assert_eq!(rundowns(""), 2);
}

#[test]
fn collectors_of_logman_are_saved_once_and_number_their_starts() {
    let create = r#"run "logman create trace q -p {e13c0d23-ccbc-4e12-931b-d9cc2eee27e4} 0x8098 5 -o q.etl""#;
    let (truth, files) = run(&format!(
        r#"{BUSY}
        at "1s" {{ run "logman start q"; {create}; {create}; run "logman query q"; run "logman query z" }}
        at "1.1s" {{ run "logman start q"; run "logman start q" }}
        at "1.5s" {{ run "logman stop q"; run "logman start q" }}
        at "2.5s" {{ run "logman stop q"; run "logman delete q"; run "logman delete q"; run "logman start q" }}"#
    ));
    let (missing, exists) = (0x8030_0002_u32.cast_signed(), 0x8030_00b7_u32.cast_signed());
    let codes: Vec<_> = truth.commands.iter().map(|c| c.exit_code).collect();
    let expected = [
        missing, 0, exists, 0, missing, 0, exists, 0, 0, 0, 0, missing, missing,
    ];
    assert_eq!(codes, expected);
    assert_eq!(
        Vec::from_iter(files.keys()),
        ["q_000001.etl", "q_000002.etl"]
    );
}
