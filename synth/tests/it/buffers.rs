//! Compares the buffer of each event in the truth, and refused requests, with the files of every
//! mode.

use etl_format::ProcessId;
use std::collections::BTreeMap;

use etl_format::constants::{ClockType, RecordKind};
use etl_format::read::{Options, Order, Trace};
use etl_schema::encode::OwnedValue;
use etl_schema::store::SchemaStore;
use etl_synth::model::{Fault, Scenario};
use etl_synth::truth::{
    BufferOutcome, BufferReport, EventOutcome, InMemoryTruth, KnownEvent, RecordFormat, RefusalCode,
};
use etl_synth::{MemoryFileSystem, Script};
use etl_test_support::root;

fn script(name: &str) -> Scenario {
    let corpus = root().join("corpus");
    let include = |file: &str| std::fs::read_to_string(corpus.join(file));
    let text = std::fs::read_to_string(corpus.join(format!("{name}.kdl"))).unwrap();
    Script::new(name, &text)
        .include(&include)
        .parse()
        .unwrap_or_else(|e| panic!("{name}: {:#?}", e))
}

fn run(scenario: &Scenario) -> (Vec<(String, Vec<u8>)>, InMemoryTruth) {
    let (mut files, mut truth) = (MemoryFileSystem::default(), InMemoryTruth::default());
    etl_synth::Simulation::new(scenario)
        .observer(&mut truth)
        .run(&mut files)
        .unwrap_or_else(|e| panic!("{}: {e}", scenario.name));
    let files = files
        .into_files()
        .into_iter()
        .map(|file| (file.name, file.bytes));
    (
        files
            .filter(|(name, _)| !name.ends_with(".expected.json"))
            .collect(),
        truth,
    )
}

/// Timestamps of the events that the truth says are in a file, by processor, in order.
fn expected(truth: &InMemoryTruth, file: &str) -> BTreeMap<u16, Vec<i64>> {
    // The last report of a buffer is valid.
    let mut last: BTreeMap<(usize, i64), &BufferReport> = BTreeMap::new();
    for buffer in &truth.buffers {
        last.insert((buffer.session, buffer.report.sequence), &buffer.report);
    }
    let mut of: BTreeMap<u16, Vec<i64>> = BTreeMap::new();
    for ((session, _), buffer) in last {
        if buffer.outcome != BufferOutcome::Written || buffer.file() != Some(file) {
            continue;
        }
        let range = usize::try_from(buffer.first_event).unwrap()
            ..=usize::try_from(buffer.last_event).unwrap();
        let events = truth.events[range].iter().filter(|e| {
            e.processor == buffer.processor && e.outcome(session) == Some(EventOutcome::Recorded)
        });
        let timestamps: Vec<i64> = events.map(|e| e.timestamp.get()).collect();
        assert_eq!(timestamps.len() as u64, buffer.events, "{file}: {buffer:?}");
        of.entry(buffer.processor).or_default().extend(timestamps);
    }
    of
}

/// Timestamps of the records of a file, but for those that describe the file: SYSTEM records of the
/// header's group. The kernel's masks and the end of its rundown come again as events of its
/// session.
fn found(bytes: &[u8]) -> BTreeMap<u16, Vec<i64>> {
    let mut of: BTreeMap<u16, Vec<i64>> = BTreeMap::new();
    let mut trace = Trace::open(bytes, &Options::default()).unwrap();
    assert!(trace.header().is_closed());
    let mut records = trace.records(Order::Time).unwrap();
    while let Some(record) = records.next_record().unwrap() {
        let event = matches!(
            record.kind(),
            RecordKind::PERFINFO32 | RecordKind::PERFINFO64
        );
        if record.hook().is_none_or(|h| h >> 8 != 0 || event) {
            of.entry(record.processor())
                .or_default()
                .push(record.timestamp().get());
        }
    }
    of
}

#[test]
fn truth_locates_every_event_in_its_file() {
    let mut files = 0;
    for name in [
        "recipe",
        "new-files",
        "append",
        "circular",
        "circular-wrap",
        "full-file",
        "preallocated",
        "in-memory",
        "real-time",
        "real-time-loss",
        "tool-modes",
        "tool-append",
        "tool-memory",
        "logman-time",
        "lost-buffers",
        "fault-lost-events",
        "private-sessions",
        "profile",
    ] {
        let scenario = script(name);
        assert!(
            scenario
                .faults
                .iter()
                .all(|named| !matches!(named.fault, Fault::Skew(_)))
        );
        let (made, truth) = run(&scenario);
        let merged = |file: &str| file == "profile.etl";
        for (file, bytes) in made.iter().filter(|(f, _)| !merged(f)) {
            let trace = Trace::open(&bytes[..], &Options::default()).unwrap();
            assert_eq!(trace.header().clock_type, ClockType::QPC);
            assert_eq!(found(bytes), expected(&truth, file), "{name}: {file}");
            files += 1;
        }
    }
    assert!(files > 40, "{files}");
}

#[test]
fn newfile_session_starts_a_file_when_one_is_full() {
    let (files, truth) = run(&script("new-files"));
    let names: Vec<&str> = files.iter().map(|(n, _)| n.as_str()).collect();
    assert!(names.len() > 3, "{names:?}");
    let numbered: Vec<String> = (1..=names.len()).map(|n| format!("part{n}.etl")).collect();
    assert_eq!(names, numbered);
    assert_eq!(truth.sessions[0].all_files, numbered);
    let mut next = 1;
    for (name, bytes) in &files {
        let trace = Trace::open(&bytes[..], &Options::default()).unwrap();
        assert!(
            bytes.len() <= 128 * 1024 && trace.header().is_closed(),
            "{name}"
        );
        // Buffer 0 is each file's own; the numbers of the others run on.
        for buffer in &trace.buffers()[1..] {
            assert_eq!(buffer.sequence_number, next, "{name}");
            next += 1;
        }
    }
}

#[test]
fn buffering_session_keeps_the_newest_buffers() {
    let (files, truth) = run(&script("in-memory"));
    let overwritten = truth
        .buffers
        .iter()
        .filter(|b| b.report.outcome == BufferOutcome::Discarded)
        .count();
    let dropped = truth
        .buffers
        .iter()
        .filter(|b| b.report.outcome == BufferOutcome::Unwritten)
        .count();
    assert!(overwritten > 10 && dropped > 0, "{overwritten} {dropped}");
    assert_eq!(
        truth.sessions[0].events_lost, 0,
        "nothing is lost, only overwritten"
    );
    let counts: Vec<usize> = files
        .iter()
        .map(|(_, bytes)| found(bytes).values().map(Vec::len).sum())
        .collect();
    assert_eq!(counts.len(), 2);
    assert!(counts.iter().all(|n| *n > 200), "{counts:?}");
}

#[test]
fn real_time_session_loses_events_without_a_consumer() {
    let (_, truth) = run(&script("real-time-loss"));
    let [unread, slow] = &truth.sessions[..] else {
        panic!("{:?}", truth.sessions)
    };
    assert_eq!(unread.events_delivered, 0);
    assert!(
        unread.events_lost > slow.events_lost && slow.events_lost > 0 && slow.events_delivered > 0,
        "{unread:?} {slow:?}"
    );
    let (_, truth) = run(&script("real-time"));
    assert!(truth.sessions[0].events_delivered > 1000);
}

#[test]
fn etw_refuses_requests_above_its_limits() {
    let refused = |name: &str| {
        let (_, truth) = run(&script(name));
        let of = |r: &etl_synth::truth::Refusal| (r.session.clone(), r.request, r.code);
        (truth.refused.iter().map(of).collect::<Vec<_>>(), truth)
    };
    let row = |name: &str, what, code| (name.to_owned(), what, code);
    let full = RefusalCode::NoSystemResources;
    let (said, _) = refused("sixty-five-sessions");
    let expected = [row("s65", "start", full), row("late", "start", full)];
    assert_eq!(said[..2], expected);
    assert_eq!(said[2], row("late", "stop", RefusalCode::NotFound));
    let (said, truth) = refused("nine-sessions");
    assert_eq!(said, [row("s9", "enable", full), row("s9", "enable", full)]);
    // After one of the eight has ended, the next one can start.
    assert!(truth.recorded(8).count() > 0 && truth.recorded(8).all(|e| e.at > 2_600_000_000));
    let (said, truth) = refused("private-sessions");
    assert_eq!(said, [row("p5", "start", full), row("each", "start", full)]);
    let pids: Vec<_> = truth.sessions.iter().map(|s| s.process).collect();
    assert_eq!(
        pids,
        [4312, 4312, 4312, 4312, 2216].map(|pid| Some(ProcessId::new(pid)))
    );
    for session in 0..5 {
        assert!(
            truth
                .recorded(session)
                .all(|e| Some(e.pid) == truth.sessions[session].process)
        );
        assert!(truth.recorded(session).count() > 100);
    }
    let (said, _) = refused("refused");
    let expected = [
        row("clr", "start", RefusalCode::AlreadyExists),
        row("unnumbered", "start", RefusalCode::InvalidName),
        row("unbounded", "start", RefusalCode::InvalidParameter),
        row("both", "start", RefusalCode::InvalidParameter),
        row("same-file", "start", RefusalCode::AlreadyExists),
        row("unbounded", "stop", RefusalCode::NotFound),
    ];
    assert_eq!(said, expected);
}

#[test]
fn scenarios_of_the_documentation_run() {
    let text = std::fs::read_to_string(root().join("docs/scenario.md")).unwrap();
    let mut examples = 0;
    for example in text
        .split("```kdl\n")
        .skip(1)
        .map(|rest| rest.split("```").next().unwrap())
    {
        let scenario = etl_synth::Script::new("example", example)
            .parse()
            .unwrap_or_else(|e| panic!("{example}\n{:#?}", e));
        let (files, truth) = run(&scenario);
        assert!(!files.is_empty() && truth.events.len() > 10, "{example}");
        assert!(truth.refused.is_empty(), "{example}: {:?}", truth.refused);
        examples += 1;
    }
    assert!(examples >= 3, "{examples}");
}

#[test]
fn tmf_file_decodes_wpp_messages() {
    let (files, truth) = run(&script("wpp"));
    let text = &files.iter().find(|(n, _)| n == "storage.tmf").unwrap().1;
    let tmf = etl_schema::sources::tmf::parse(std::str::from_utf8(text).unwrap()).unwrap();
    let schemas = tmf.schemas;
    assert_eq!(schemas.len(), 3);
    let mut store = SchemaStore::new();
    store.add_schemas(schemas);
    let bytes = &files.iter().find(|(n, _)| n == "later.etl").unwrap().1;
    let mut trace = Trace::open(&bytes[..], &Options::default()).unwrap();
    let mut records = trace.records(Order::Time).unwrap();
    let mut read = 0;
    while let Some(record) = records.next_record().unwrap() {
        if record.hook().is_some_and(|h| h >> 8 == 0) {
            continue;
        }
        let fields = store.fields(&record).unwrap();
        let schema = fields.schema();
        let message = schema
            .message
            .as_deref()
            .map(|m| m.trim_start_matches("%0"));
        assert_eq!(message, Some("read %10!d! bytes at %11!I64u! from %12!S!"));
        let names: Vec<String> = fields.map(|(field, _)| field.name.to_string()).collect();
        assert_eq!(names, ["length", "offset", "file"]);
        read += 1;
    }
    // The flags of the later session leave the retries out; the earlier one got none from then on.
    assert_eq!(read, truth.recorded(1).count());
    assert!(read > 50);
    let raised = |e: &&KnownEvent| matches!(e.format, RecordFormat::Message(_));
    assert!(
        truth
            .recorded(0)
            .filter(raised)
            .all(|e| e.at <= 1_500_000_000)
    );
    assert!(truth.recorded(0).filter(raised).count() > 50);
}

#[test]
fn events_contain_the_user_and_the_rejit_id() {
    let (_, truth) = run(&script("wpp"));
    let of = |e: &&KnownEvent| {
        e.field("ImageFileName")
            .is_some_and(|value| format!("{value:?}").contains("svchost"))
    };
    let process = truth.events.iter().find(of).unwrap();
    let sid = OwnedValue::Sid(vec![1, 1, 0, 0, 0, 0, 0, 5, 19, 0, 0, 0]);
    assert!(
        process.fields.iter().any(|field| field.value == sid),
        "{process:?}"
    );
    let (_, truth) = run(&script("rejit"));
    let again = |e: &&KnownEvent| {
        e.field("ReJITID")
            .is_some_and(|id| *id != OwnedValue::UInt(0))
    };
    assert!(truth.recorded(0).filter(again).count() > 50);
}
