//! Records without their own timestamp keep the time that they were read with when they are
//! copying_keeps_times.

use std::collections::BTreeMap;

use crate::writing::{START, event};
use etl_format::constants::{LogFileMode, MessageFlags, RecordKind};
use etl_format::read::{Header, Options, Order, OrderCheck, Record, Trace};
use etl_format::rewrite::merge::Merger;
use etl_format::rewrite::{RelogPlan, Relogger};
use etl_format::write::record::{Message, MessageMarker, Moved, Raw};
use etl_format::write::{Session, SessionConfig};
use etl_format::{FileHeader, FileTime, Guid, Ticks};
use proptest::prelude::*;

/// A kind of record.
#[derive(Clone, Copy, Debug)]
enum Made {
    Event,
    /// A message, with the fields that these flags announce.
    Message(u16),
    /// A record of an unknown kind.
    Unknown,
}

fn header(processors: u32, buffer_size: u32) -> FileHeader {
    FileHeader {
        timestamp: Ticks::new(1_000),
        start_time: FileTime::new(START),
        end_time: FileTime::new(START + 99),
        boot_time: FileTime::new(START - 1_000_000_000),
        processors,
        buffer_size,
        mode: LogFileMode::SEQUENTIAL,
        ..FileHeader::new()
    }
}

fn unknown(number: u32, len: usize) -> Vec<u8> {
    let mut bytes = vec![0, 0, RecordKind::ERROR.0, 0xc0];
    bytes.extend(number.to_le_bytes());
    bytes.resize(16 + len, 0x5a);
    let size = bytes.len() as u16;
    bytes[..2].copy_from_slice(&size.to_le_bytes());
    bytes
}

/// A trace in which every record has a number.
fn made(first: u32, buffer_size: u32, records: &[(u16, i64, usize, Made)]) -> Vec<u8> {
    let config = SessionConfig::new(header(3, buffer_size));
    let mut session = Session::in_memory(config).unwrap();
    let mut timestamp = 1_000;
    for (index, &(processor, ticks, len, kind)) in records.iter().enumerate() {
        let number = first + index as u32;
        let payload = [number.to_le_bytes().as_slice(), &vec![7; len]].concat();
        timestamp += ticks;
        match kind {
            Made::Event => session.write(processor, &event(number, timestamp, &payload)),
            Made::Unknown => {
                let bytes = unknown(number, len);
                session.write(
                    processor,
                    &Raw {
                        bytes: &bytes,
                        timestamp: None,
                    },
                )
            }
            Made::Message(flags) => session.write(
                processor,
                &Message::new(Guid::new(7, 8, 9, [1; 8]), 10, timestamp)
                    .marker(if len % 2 == 0 {
                        MessageMarker::Wpp
                    } else {
                        MessageMarker::Kind
                    })
                    .sequence(5)
                    .component(6)
                    .process(12, 11)
                    .flags(MessageFlags(flags))
                    .payload(&payload),
            ),
        }
        .unwrap();
    }
    session
        .close(Some(FileTime::new(START + 99)))
        .unwrap()
        .output
}

/// The number and the content of a record without its timestamp, which a message may receive.
fn content(record: &Record<'_>) -> (u32, String) {
    let word = |at: usize| u32::from_le_bytes(record.bytes()[at..at + 4].try_into().unwrap());
    match record.header() {
        Header::Message(h) => {
            let number = u32::from_le_bytes(record.payload()[..4].try_into().unwrap());
            let flags = h.flags.0 & !MessageFlags::TIMESTAMP.0;
            let ids = (
                h.sequence,
                h.component_id,
                h.guid,
                h.process_id,
                h.thread_id,
            );
            (
                number,
                format!(
                    "message {flags:x} {} {ids:?} {:?}",
                    h.number,
                    record.payload()
                ),
            )
        }
        Header::Opaque => (word(4), format!("{:?}", record.bytes())),
        _ => (word(8), format!("{:?}", record.bytes())),
    }
}

/// Every record by its number: timestamp, processor and content.
fn all(file: &[u8]) -> BTreeMap<u32, (i64, u16, String)> {
    let options = Options {
        order_check: OrderCheck::Scan,
        ..Options::default()
    };
    let mut trace = Trace::open(file, &options).unwrap();
    let mut records = trace.records(Order::Time).unwrap();
    let mut out = BTreeMap::new();
    let mut last = i64::MIN;
    while let Some(record) = records.next_record().unwrap() {
        assert!(record.timestamp() >= Ticks::new(last));
        last = record.timestamp().get();
        if record.hook().is_none() {
            let (number, text) = content(&record);
            let known = out.insert(number, (record.timestamp().get(), record.processor(), text));
            assert!(known.is_none(), "{number} came twice");
        }
    }
    out
}

fn kind() -> impl Strategy<Value = Made> {
    prop_oneof![
        3 => Just(Made::Event),
        2 => (0..0x40_u16).prop_map(|flags| Made::Message(flags & 0x27)),
        1 => (0..0x40_u16).prop_map(Made::Message),
        1 => Just(Made::Unknown),
    ]
}

fn records() -> impl Strategy<Value = Vec<(u16, i64, usize, Made)>> {
    proptest::collection::vec((0..3_u16, 0..4_i64, 0..300_usize, kind()), 0..60)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(128))]

    /// All of a trace, in buffers of other sizes: every record keeps its time.
    #[test]
    fn copying_keeps_times(records in records(), from in 1..4_u32, to in 1..4_u32) {
        let file = made(0, from * 1024, &records);
        let mut trace = Trace::open(&file[..], &Options::default()).unwrap();
        let mut plan = RelogPlan::copying(&mut trace).unwrap();
        plan.header.buffer_size = to * 1024;
        let mut relog = Relogger::start(plan, Vec::new(), None).unwrap();
        let mut ordered = trace.records(Order::Time).unwrap();
        while let Some(record) = ordered.next_record().unwrap() {
            relog.copy(&record).unwrap();
        }
        let finished = relog.finish(&[]).unwrap();
        let out = finished.output;
        let summary = finished.report;
        let (before, after) = (all(&file), all(&out));
        prop_assert_eq!(before.len(), records.len());
        let moved = before.iter().filter(|(number, what)| after[number] != **what).count();
        prop_assert_eq!(before.len(), after.len());
        // Unknown records before every timestamped one of their buffer are read with the session's
        // start if there is no timestamped one at all: no record of that time is anywhere.
        prop_assert!(moved as u64 <= summary.timestamps_lost, "{} {:?}", moved, summary);
        for (number, (timestamp, processor, what)) in &before {
            let (now, place, same) = &after[number];
            prop_assert_eq!((processor, what), (place, same));
            let message = what.starts_with("message");
            prop_assert!(timestamp == now || !message, "{number}: {timestamp} became {now}");
        }
    }

    /// Some records of a trace: they keep their times without the records before them.
    #[test]
    fn skipping_records_keeps_times(records in records(), chosen in proptest::collection::vec(any::<bool>(), 60)) {
        let file = made(0, 1024, &records);
        let mut trace = Trace::open(&file[..], &Options::default()).unwrap();
        let plan = RelogPlan::copying(&mut trace).unwrap();
        let mut relog = Relogger::start(plan, Vec::new(), None).unwrap();
        let mut ordered = trace.records(Order::Time).unwrap();
        while let Some(record) = ordered.next_record().unwrap() {
            let kept = record.hook().is_some() || chosen[content(&record).0 as usize];
            match kept {
                true => relog.copy(&record).unwrap(),
                false => relog.skip(&record).unwrap(),
            }
        }
        let finished = relog.finish(&[]).unwrap();
        let out = finished.output;
        let summary = finished.report;
        let (before, after) = (all(&file), all(&out));
        prop_assert_eq!(after.len(), chosen.iter().take(records.len()).filter(|c| **c).count());
        let mut lost = 0;
        for (number, what) in &after {
            if before[number] != *what {
                prop_assert!(!before[number].2.starts_with("message"), "{:?}", what);
                lost += 1;
            }
        }
        prop_assert!(lost <= summary.timestamps_lost);
    }

    /// Several traces: every record keeps its time.
    #[test]
    fn merging_keeps_times(inputs in proptest::collection::vec(records(), 1..4)) {
        let files: Vec<_> = inputs
            .iter()
            .enumerate()
            .map(|(index, records)| made(index as u32 * 100, 1024, records))
            .collect();
        let mut before = BTreeMap::new();
        files.iter().for_each(|file| before.append(&mut all(file)));
        let sources = files.iter().map(Vec::as_slice).collect();
        let finished = Merger::new().run(sources, Vec::new()).unwrap();
        let out = finished.output;
        let report = finished.report;
        let after = all(&out);
        prop_assert_eq!(before.len(), after.len());
        let mut lost = 0;
        for (number, what) in &before {
            if after[number] != *what {
                prop_assert!(!what.2.starts_with("message"), "{:?} {:?}", what, after[number]);
                lost += 1;
            }
        }
        prop_assert!(lost <= report.summary.timestamps_lost, "{}", lost);
    }
}

/// A record of an unknown kind that does not fit moves to the next buffer together with its
/// neighbour.
#[test]
fn unknown_record_moves_with_its_neighbour() {
    let config = SessionConfig::new(header(1, 1024));
    let mut session = Session::in_memory(config).unwrap();
    session.write(0, &event(1, 2_000, &[0; 400])).unwrap();
    session.write(0, &event(2, 2_010, &[0; 200])).unwrap();
    let bytes_of = unknown(3, 400);
    let raw = Raw {
        bytes: &bytes_of,
        timestamp: None,
    };
    session
        .write(
            0,
            &Moved {
                raw,
                timestamp: Ticks::new(2_010),
            },
        )
        .unwrap();
    // One that waits for its neighbour, and one for which none comes.
    let (waits, lost) = (unknown(4, 10), unknown(6, 10));
    session
        .write(
            0,
            &Moved {
                raw: Raw {
                    bytes: &waits,
                    ..raw
                },
                timestamp: Ticks::new(2_020),
            },
        )
        .unwrap();
    session.write(0, &event(5, 2_020, &[0; 300])).unwrap();
    session
        .write(
            0,
            &Moved {
                raw: Raw {
                    bytes: &lost,
                    ..raw
                },
                timestamp: Ticks::new(2_025),
            },
        )
        .unwrap();
    session.write(0, &event(7, 2_030, &[0; 9])).unwrap();
    let finished = session.close(None).unwrap();
    let file = finished.output;
    let summary = finished.report;
    let timestamps: Vec<_> = all(&file)
        .values()
        .map(|(timestamp, ..)| *timestamp)
        .collect();
    assert_eq!(
        timestamps,
        [2_000, 2_010, 2_010, 2_020, 2_020, 2_020, 2_030]
    );
    assert_eq!((summary.events_written, summary.timestamps_lost), (7, 1));
    let trace = Trace::open(&file[..], &Options::default()).unwrap();
    assert_eq!(trace.buffers().len(), 4);
}

/// More records of unknown kinds than fit into a buffer with the record to which they belong. Every
/// record that loses its time is counted, not only the first one.
#[test]
fn times_lost_for_want_of_space_are_counted() {
    use Made::{Event, Unknown};
    let records = [
        (0, 0, 129, Unknown),
        (0, 0, 177, Unknown),
        (0, 0, 225, Unknown),
    ];
    let records = [
        records.as_slice(),
        &[(0, 0, 0, Unknown), (0, 1, 269, Event)],
    ]
    .concat();
    let file = made(0, 2048, &records);
    let mut trace = Trace::open(&file[..], &Options::default()).unwrap();
    let mut plan = RelogPlan::copying(&mut trace).unwrap();
    plan.header.buffer_size = 1024;
    let mut relog = Relogger::start(plan, Vec::new(), None).unwrap();
    let mut ordered = trace.records(Order::Time).unwrap();
    while let Some(record) = ordered.next_record().unwrap() {
        relog.copy(&record).unwrap();
    }
    let finished = relog.finish(&[]).unwrap();
    let out = finished.output;
    let summary = finished.report;
    let (before, after) = (all(&file), all(&out));
    let lost: Vec<_> = before
        .keys()
        .filter(|number| before[number] != after[number])
        .collect();
    assert_eq!(lost, [&2, &3]);
    assert_eq!(summary.timestamps_lost, 2);
}
