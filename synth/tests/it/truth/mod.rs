//! Compares every trace of the corpus with its truth: the decoded fields of all events, and the
//! counts of dissect.etl.

mod compare;

use etl_format::Ticks;
use std::collections::{BTreeMap, BTreeSet};

use compare::Frame;
use etl_format::constants::LogFileMode;
use etl_format::read::{Header, Options, Order, Record, Records, Trace};
use etl_schema::store::SchemaStore;
use etl_synth::model::{Fault, ProviderKind, Scenario};
use etl_synth::truth::{BufferOutcome, InMemoryTruth, KnownEvent, KnownMerge};
use etl_synth::{MemoryFileSystem, SECOND};
use etl_test_support::{foreign, needs};

use crate::simulated::{Simulated, corpus, simulate, timestamp};

/// Whether the session wrote a record into its first buffer by itself: the header event, the
/// partition, and masks of zeros. They are not events, and a merge copies them. Group masks that
/// are events have shorter records.
fn is_own(record: &Record<'_>) -> bool {
    record.hook().is_some_and(|h| h >> 8 == 0) && !matches!(record.header(), Header::PerfInfo(_))
}

/// Whether a merge added a record: to identify an image, or to describe the machine.
fn is_added(record: &Record<'_>) -> bool {
    const CLASSES: [&str; 2] = [
        "b3e675d7-2554-4f18-830b-2762732560de",
        "9b79ee91-b5fd-41c0-a243-4248e266e9d0",
    ];
    record
        .provider()
        .is_some_and(|class| CLASSES.contains(&&*class.to_string()))
}

/// Merges that add nothing: `xperf -merge ... -mergeonly`.
const MERGED_ONLY: [(&str, &str); 1] = [("kernel-session", "plain.etl")];

/// How many records describe the machine in a merge: directories of Windows, a volume without
/// drive letter, two names of the system's directory, and each drive letter.
fn descriptions(made: &Simulated, file: &str) -> u64 {
    if MERGED_ONLY.contains(&(&*made.name, file)) {
        return 0;
    }
    let volumes: usize = made
        .scenario
        .machine
        .disks
        .iter()
        .map(|disk| disk.volumes.len())
        .sum();
    4 + volumes as u64
}

/// A store that knows the events of a scenario. Traces do not contain the schemas of manifests and
/// of classic events.
fn store(scenario: &Scenario) -> SchemaStore {
    let mut store = SchemaStore::new();
    let elsewhere = [
        ProviderKind::Manifest,
        ProviderKind::Classic,
        ProviderKind::Wpp,
    ];
    let known_elsewhere = scenario
        .providers
        .iter()
        .filter(|p| elsewhere.contains(&p.kind));
    store.add_schemas(known_elsewhere.flat_map(|p| p.events.clone()));
    store
}

/// The ends of records in their buffer, by its sequence number.
fn ends(bytes: &[u8]) -> BTreeMap<i64, Vec<u64>> {
    let mut ends: BTreeMap<i64, Vec<u64>> = BTreeMap::new();
    let mut records = Records::stream(bytes, &Options::default()).unwrap();
    while let Some(record) = records.next_record().unwrap() {
        if !is_own(&record) {
            let place = record.location();
            let end = u64::from(place.in_buffer) + record.bytes().len() as u64;
            ends.entry(place.sequence_number).or_default().push(end);
        }
    }
    ends
}

/// The scenario without faults of finished files.
fn without_faults(scenario: &Scenario) -> Scenario {
    let mut scenario = scenario.clone();
    for step in &mut scenario.steps {
        if let etl_synth::model::Action::Start(plan) = &mut step.action {
            plan.faults.retain(|f| !f.is_of_the_file());
        }
    }
    scenario
        .faults
        .retain(|named| !named.fault.is_of_the_file());
    scenario
}

#[test]
fn truth_counts_every_recorded_event_in_one_buffer() {
    for made in corpus() {
        let (name, truth) = (&made.name, &made.truth);
        for session in &truth.sessions {
            let buffers: Vec<_> = truth
                .buffers
                .range((session.index, i64::MIN)..=(session.index, i64::MAX))
                .collect();
            let mut counted = 0;
            for (_, buffer) in &buffers {
                let events = truth.events_of(session.index, buffer);
                assert_eq!(events.len() as u64, buffer.events, "{name}: {buffer:?}");
                assert_eq!(
                    events.first().map(|e| e.number),
                    Some(buffer.first_event),
                    "{name}"
                );
                counted += buffer.events;
            }
            assert_eq!(counted, session.events_recorded, "{name}: {session:?}");
            let sum = |outcomes: &[BufferOutcome]| -> u64 {
                let of = buffers
                    .iter()
                    .filter(|(_, b)| outcomes.contains(&b.outcome));
                of.map(|(_, b)| b.events).sum()
            };
            assert_eq!(
                sum(&[BufferOutcome::Lost, BufferOutcome::FileFull]),
                session.events_in_lost_buffers,
                "{name}"
            );
            let in_file = [
                BufferOutcome::Written,
                BufferOutcome::Overwritten,
                BufferOutcome::Damaged,
                BufferOutcome::CutOff,
            ];
            assert_eq!(sum(&in_file), session.events_written, "{name}");
        }
    }
}

#[test]
fn session_files_match_the_truth_buffer_by_buffer() {
    let (mut compared, mut files) = (0, 0);
    let mut kinds: BTreeSet<String> = BTreeSet::new();
    for made in corpus() {
        let merged: BTreeSet<&str> = made
            .truth
            .merges
            .iter()
            .map(|merge| merge.output.as_str())
            .collect();
        for (file, bytes) in &made.traces {
            if merged.contains(file.as_str()) {
                continue;
            }
            compared += session_file(made, file, bytes, &mut kinds);
            files += 1;
        }
    }
    eprintln!("{compared} events in {files} files compared; buffers were {kinds:?}");
    assert!(compared > 30_000 && files > 50);
    for outcome in [
        "written",
        "lost",
        "file_full",
        "overwritten",
        "unwritten",
        "damaged",
        "cut_off",
    ] {
        assert!(
            kinds.contains(outcome),
            "no buffer of the corpus was {outcome}"
        );
    }
}

/// Compares a file with the truth: every record is an event of a known buffer, intact buffers have
/// all their events, and damaged buffers have the events before the damage.
fn session_file(made: &Simulated, file: &str, bytes: &[u8], kinds: &mut BTreeSet<String>) -> usize {
    let truth = &made.truth;
    let place = format!("{}/{file}", made.name);
    let writers = truth.writers_of(file);
    assert!(!writers.is_empty(), "{place}: no session wrote it");
    let damaged = truth.is_damaged(file);
    let options = if damaged {
        Options::salvage()
    } else {
        Options::default()
    };
    let whole_ends = if damaged {
        let whole = simulate(&made.name, String::new(), without_faults(&made.scenario));
        ends(&whole.traces[file])
    } else {
        BTreeMap::new()
    };
    let mut records = Records::stream(bytes, &options).unwrap();
    let one = records
        .header()
        .mode
        .has(LogFileMode::NO_PER_PROCESSOR_BUFFERING);
    let clock = records.clock();
    let mut store = store(&made.scenario);
    let mut seen: BTreeMap<(usize, i64), usize> = BTreeMap::new();
    let mut strays = 0;
    while let Some(record) = records.next_record().unwrap() {
        store.learn(&record);
        if is_own(&record) && !damaged {
            continue;
        }
        let sequence = record.location().sequence_number;
        let offset = record.location().buffer_offset;
        let session = writers.iter().copied().find(|session| {
            let buffer = truth.buffers.get(&(session.index, sequence));
            let location = buffer.and_then(|buffer| buffer.location.as_ref());
            // Each session that appends to a file numbers its buffers from 1 again.
            location.is_some_and(|range| {
                let is_inside = range.start <= offset && offset < range.end;
                &*range.file == file && (writers.len() == 1 || is_inside)
            })
        });
        let buffer = session.and_then(|s| truth.buffers.get(&(s.index, sequence)));
        let (Some(session), Some(buffer)) = (session, buffer) else {
            if !is_own(&record) {
                assert!(
                    damaged,
                    "{place}: a buffer that the truth does not know: {record:?}"
                );
                strays += 1;
            }
            continue;
        };
        assert!(
            matches!(
                buffer.outcome,
                BufferOutcome::Written | BufferOutcome::Damaged
            ),
            "{place}: {buffer:?}"
        );
        let nth = seen.entry((session.index, sequence)).or_default();
        *nth += 1;
        let nth = *nth - 1;
        // Records before the damage of a buffer are unchanged.
        if buffer.outcome == BufferOutcome::Damaged
            && nth >= sound(made, file, buffer, &whole_ends[&sequence])
        {
            continue;
        }
        let events = truth.events_of(session.index, buffer);
        let event = events
            .get(nth)
            .unwrap_or_else(|| panic!("{place}: more than {buffer:?}"));
        let (machine, per_processor) = (&made.scenario.machine, !one);
        let frame = Frame {
            machine,
            session,
            clock,
            store: &store,
            per_processor,
        };
        frame.compare(&place, event, &record);
    }
    let mut compared = 0;
    let all = writers.iter().flat_map(|s| {
        truth
            .buffers
            .range((s.index, i64::MIN)..=(s.index, i64::MAX))
    });
    for (key, buffer) in all {
        let (_, sequence) = key;
        let here = buffer.file() == Some(file);
        kinds.insert(buffer.outcome.to_string());
        let found = if here {
            seen.get(key).copied().unwrap_or(0) as u64
        } else {
            0
        };
        match buffer.outcome {
            BufferOutcome::Written if here => {
                assert_eq!(found, buffer.events, "{place}: {buffer:?}")
            }
            BufferOutcome::Damaged if here => {
                let sound = sound(made, file, buffer, &whole_ends[sequence]) as u64;
                // A buffer whose own header is damaged may be known by its records alone.
                assert!(
                    found >= sound || strays > 0,
                    "{place}: {found} of {sound}: {buffer:?}"
                );
                // The record in which the damage begins may come, with what is left of it.
                let cut = truth
                    .faults
                    .iter()
                    .all(|hit| !matches!(hit.fault, Fault::Flipped(_)));
                let most = sound + 1;
                assert!(
                    found <= most || !cut,
                    "{place}: {found}, not {sound}: {buffer:?}"
                );
            }
            _ => assert_eq!(found, 0, "{place}: {buffer:?}"),
        }
        compared += found as usize;
    }
    // What is in memory has lost more by the end than a file knew that was written before.
    let own = |s: &&&etl_synth::truth::SessionReport| s.plan.file.is_some() && s.stopped.is_some();
    let alone = (writers.len() == 1)
        .then(|| writers.first().filter(own))
        .flatten();
    if let Some(session) = alone.filter(|s| !damaged && s.all_files.len() == 1) {
        let trace = Trace::open(bytes, &Options::default()).unwrap();
        let header = trace.header();
        assert_eq!(
            u64::from(header.events_lost),
            session.events_lost,
            "{place}"
        );
        assert_eq!(
            u64::from(header.buffers_lost),
            session.buffers_lost,
            "{place}"
        );
    }
    compared
}

/// How many records of a damaged buffer end before the first byte that changed.
fn sound(
    made: &Simulated,
    file: &str,
    buffer: &etl_synth::truth::BufferReport,
    ends: &[u64],
) -> usize {
    let hits = made.truth.faults.iter().filter(|hit| hit.file == file);
    let range = buffer.location.as_ref().expect("a buffer in a file");
    let inside = hits.filter(|hit| hit.bytes.start < range.end && range.start < hit.bytes.end);
    let first = inside
        .map(|hit| hit.bytes.start.saturating_sub(range.start))
        .min()
        .unwrap();
    // A buffer's own header, where it is hit, says nothing of its records any more.
    if first < 0x48 {
        return 0;
    }
    ends.partition_point(|end| *end <= first)
}

/// Events of the files that were merged, as the merge has to hold them: by processor, in the order
/// of their timestamps; what has one timestamp comes in the order of the files.
fn merged_events<'t>(
    made: &'t Simulated,
    inputs: &[String],
) -> BTreeMap<u16, Vec<(i64, usize, &'t KnownEvent)>> {
    let truth = &made.truth;
    let mut known: BTreeMap<u16, Vec<(i64, usize, &KnownEvent)>> = BTreeMap::new();
    for file in inputs {
        let session = truth.writer_of(file).unwrap();
        for buffer in truth.whole_in(session.index, file) {
            for event in truth.events_of(session.index, buffer) {
                let timestamp = timestamp(&made.scenario.machine, session, event.at);
                known
                    .entry(event.processor)
                    .or_default()
                    .push((timestamp, session.index, event));
            }
        }
    }
    known
        .values_mut()
        .for_each(|events| events.sort_by_key(|(timestamp, _, _)| *timestamp));
    known
}

#[test]
fn merged_files_match_the_truth_of_their_inputs() {
    let mut compared = 0;
    for made in corpus() {
        for KnownMerge {
            output: file,
            inputs,
            ..
        } in &made.truth.merges
        {
            let place = format!("{}/{file}", made.name);
            let known = merged_events(made, inputs);
            let mut store = store(&made.scenario);
            let bytes = made.traces[file].as_slice();
            let mut trace = Trace::open(bytes, &Options::default()).unwrap();
            let (clock, machine) = (trace.clock(), &made.scenario.machine);
            let mut places: BTreeMap<u16, usize> = BTreeMap::new();
            let mut records = trace.records(Order::Time).unwrap();
            while let Some(record) = records.next_record().unwrap() {
                store.learn(&record);
                if is_own(&record) || is_added(&record) {
                    continue;
                }
                let nth = places.entry(record.processor()).or_default();
                let event = known.get(&record.processor()).and_then(|k| k.get(*nth));
                let (_, session, event) =
                    event.unwrap_or_else(|| panic!("{place}: more than the truth: {record:?}"));
                *nth += 1;
                let session = &made
                    .truth
                    .sessions
                    .iter()
                    .find(|s| s.index == *session)
                    .unwrap();
                let frame = Frame {
                    machine,
                    session,
                    clock,
                    store: &store,
                    per_processor: true,
                };
                frame.compare(&place, event, &record);
                compared += 1;
            }
            for (processor, events) in &known {
                let found = places.get(processor).copied().unwrap_or(0);
                assert_eq!(found, events.len(), "{place}: processor {processor}");
            }
        }
    }
    eprintln!("{compared} events of merged files compared");
    assert!(compared > 1000);
}

#[test]
fn undamaged_files_are_in_time_order() {
    for made in corpus() {
        for (file, bytes) in made
            .traces
            .iter()
            .filter(|(f, _)| !made.truth.is_damaged(f))
        {
            let mut trace = Trace::open(&bytes[..], &Options::default()).unwrap();
            let mut records = trace.records(Order::Time).unwrap();
            let mut last = i64::MIN;
            while let Some(record) = records.next_record().unwrap() {
                assert!(
                    record.timestamp() >= Ticks::new(last),
                    "{}/{file}",
                    made.name
                );
                last = record.timestamp().get();
            }
            assert_eq!(records.report().late, 0, "{}/{file}", made.name);
        }
    }
}

const COUNTS_OVERWRITTEN: &str =
    "the header counts overwritten buffers, too; after the last one it misses them";

/// Files that dissect.etl does not read to their end, and why.
const BEYOND_DISSECT: &[(&str, &str)] = &[
    ("circular/circular.etl", COUNTS_OVERWRITTEN),
    ("circular-wrap/wrapped.etl", COUNTS_OVERWRITTEN),
    ("flipped/flipped.etl", "it stops at an invalid marker"),
    (
        "not-closed/open.etl",
        "an open file's header counts one buffer; it reads no more than that",
    ),
    ("tool-modes/logman-circular.etl", COUNTS_OVERWRITTEN),
    ("tool-modes/tracelog-circular.etl", COUNTS_OVERWRITTEN),
    ("tool-modes/xperf-circular.etl", COUNTS_OVERWRITTEN),
    ("torn/torn.etl", "it stops at zeros"),
    (
        "truncated/truncated.etl",
        "it stops where the file ends in a buffer",
    ),
];

/// Records of a file by the truth: those of the session itself, those of intact buffers, and
/// of these only the ones before the first damage.
fn counts(made: &Simulated, file: &str) -> (u64, u64) {
    let truth = &made.truth;
    // The header event, and the partition's since Windows 10 1709.
    let partition = u64::from(made.scenario.machine.os.build >= 17_763);
    let own = 1 + partition;
    // Group masks of zeros, where the kernel is asked for something.
    let zeros = |file: &str| {
        u64::from(
            truth
                .writer_of(file)
                .is_some_and(|s| !s.plan.kernel.is_empty()),
        )
    };
    let of = |file: &str, until: u64| -> u64 {
        let writers = truth.writers_of(file);
        let whole = writers.iter().flat_map(|s| truth.whole_in(s.index, file));
        whole
            .filter(|b| b.location.as_ref().is_some_and(|range| range.end <= until))
            .map(|b| b.events)
            .sum()
    };
    // The inputs' header events are gone, their partitions' come along.
    if let Some(KnownMerge { inputs, .. }) = truth.merges.iter().find(|m| m.output == file) {
        let all = inputs
            .iter()
            .map(|i| of(i, u64::MAX) + partition + zeros(i))
            .sum::<u64>()
            + own;
        let identified = |input: &String| -> u64 {
            let writers = truth.writers_of(input);
            let whole = |s: usize| truth.whole_in(s, input).map(move |b| (s, b));
            let whole = writers.iter().flat_map(|s| whole(s.index));
            whole
                .map(|(session, buffer)| truth.identities_of(file, session, buffer))
                .sum()
        };
        let versions = truth
            .versions
            .iter()
            .filter(|(merged, ..)| merged == file)
            .count() as u64;
        let added = versions + descriptions(made, file);
        let all = all + inputs.iter().map(identified).sum::<u64>() + added;
        return (all, all);
    }
    let hits = truth.faults.iter().filter(|hit| hit.file == file);
    let first = hits.map(|hit| hit.bytes.start).min().unwrap_or(u64::MAX);
    let own = own + zeros(file);
    (own + of(file, u64::MAX), own + of(file, first))
}

#[needs(python)]
#[test]
fn dissect_counts_match_the_truth() {
    let directory = tempfile::tempdir().unwrap();
    let (mut paths, mut expected) = (Vec::new(), Vec::new());
    for made in corpus() {
        for (file, bytes) in &made.traces {
            let path = directory.path().join(format!("{}.{file}", made.name));
            std::fs::write(&path, bytes).unwrap();
            paths.push(path);
            expected.push((format!("{}/{file}", made.name), counts(made, file)));
        }
    }
    let found = foreign("dissect_counts.py", &paths);
    assert_eq!(found.len(), paths.len());
    let mut wrong = Vec::new();
    for ((name, (all, before)), found) in expected.iter().zip(&found) {
        let limit = BEYOND_DISSECT.iter().find(|(n, _)| n == name);
        let same = found["records"].as_u64() == Some(*all);
        // It has read the records before the damage.
        let read = found["before"].as_u64().is_none_or(|n| n >= *before);
        if same == limit.is_some() || !read {
            wrong.push(format!(
                "{name}: {all} expected, {before} before damage: {found}"
            ));
        }
    }
    for (name, _) in BEYOND_DISSECT {
        assert!(
            expected.iter().any(|(n, _)| n == name),
            "{name} is not in the corpus"
        );
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn lost_events_are_counted_in_header_and_truth() {
    // Two buffers for many events, and a disk that is slower than the events.
    let text = r#"
        machine processors=1 disk-bytes-per-second=100000
        process "a.exe" {
            clr "core" { assembly "A" { module "C:\\A.dll" { methods 2000 ready=0 } } }
            at "1.5s" { jit 2000 }
        }
        at "1s" { session "s" file="s.etl" buffer-kb=4 buffers=2 { enable "runtime" keywords=0x10 level=5 } }
        at "5s" { stop "s" }
    "#;
    let scenario = etl_synth::Script::new("lost", text).parse().unwrap();
    let (mut files, mut truth) = (MemoryFileSystem::default(), InMemoryTruth::default());
    etl_synth::Simulation::new(&scenario)
        .observer(&mut truth)
        .run(&mut files)
        .unwrap();
    let report = &truth.sessions[0];
    assert!(report.events_lost > 100, "{report:?}");
    assert!(report.events_recorded > 50, "{report:?}");
    let bytes = &files.into_files()[0].bytes;
    let trace = Trace::open(&bytes[..], &Options::default()).unwrap();
    assert_eq!(u64::from(trace.header().events_lost), report.events_lost);
    let seen = trace.header().start_time;
    assert_eq!(
        seen.get(),
        scenario.machine.start.get() + i64::try_from(SECOND / 100).unwrap()
    );
}
