//! Records of the first buffer that are repeated later, as merges of Windows leave them.

use crate::writing::{START, event};
use etl_format::read::{Mode, Options, Order, Record, RecordBatch, Records, Trace};
use etl_format::write::{Session, SessionConfig, Style};
use etl_format::{FileHeader, FileTime, Ticks};

/// A trace with two records after the header event, and `later` among the others.
fn made(style: Style, later: &[(u32, i64)]) -> Vec<u8> {
    let header = FileHeader {
        timestamp: Ticks::new(1_000),
        start_time: FileTime::new(START),
        end_time: FileTime::new(START + 99),
        boot_time: FileTime::new(START - 1_000_000_000),
        processors: 1,
        buffer_size: 1 << 12,
        ..FileHeader::new()
    };
    let mut config = SessionConfig::new(header);
    config.style = style;
    for number in [1, 2] {
        config
            .add_header_record(&event(number, 1_000, b"left over"))
            .unwrap();
    }
    let mut session = Session::in_memory(config).unwrap();
    for &(number, timestamp) in later {
        session
            .write(0, &event(number, timestamp, b"left over"))
            .unwrap();
    }
    session
        .close(Some(FileTime::new(START + 99)))
        .unwrap()
        .output
}

/// Which records are stale, in the order of the file; the header event is the first.
fn marks(file: &[u8]) -> Vec<bool> {
    let mut trace = Trace::open(
        file,
        &Options {
            mode: Mode::Strict,
            ..Options::default()
        },
    )
    .unwrap();
    let mut batch = RecordBatch::default();
    let mut records = trace.records(Order::File).unwrap();
    while let Some(record) = records.next_record().unwrap() {
        batch.push(&record);
    }
    let marks: Vec<bool> = batch.records().map(|record| record.is_stale()).collect();
    assert_eq!(
        trace.stale_records().len(),
        marks.iter().filter(|stale| **stale).count()
    );
    marks
}

const MERGE: Style = Style::Relogger {
    now: FileTime::new(START + 99),
};

#[test]
fn a_record_that_stands_once_more_later_is_stale() {
    let file = made(MERGE, &[(1, 1_000), (3, 1_001)]);
    assert_eq!(marks(&file), [false, true, false, false, false]);
    assert_eq!(
        marks(&made(MERGE, &[(2, 1_000), (1, 1_000)])),
        [false, true, true, false, false]
    );
}

#[test]
fn a_record_that_differs_in_any_byte_is_not_stale() {
    assert_eq!(marks(&made(MERGE, &[(1, 1_001), (3, 1_000)])), [false; 5]);
}

#[test]
fn records_within_the_saved_offset_are_not_stale() {
    assert_eq!(
        marks(&made(Style::Kernel, &[(1, 1_000), (3, 1_001)])),
        [false; 5]
    );
}

#[test]
fn a_stream_marks_nothing() {
    let file = made(MERGE, &[(1, 1_000)]);
    let mut records = Records::stream(file.as_slice(), &Options::default()).unwrap();
    while let Some(record) = records.next_record().unwrap() {
        assert!(!Record::is_stale(&record));
    }
}

#[test]
fn stale_records_are_left_out_on_request_in_both_orders() {
    let file = made(MERGE, &[(2, 1_000), (1, 1_000)]);
    let mut trace = Trace::open(file.as_slice(), &Options::default()).unwrap();
    for order in [Order::File, Order::Time] {
        let read = |mut records: Records<&mut &[u8]>| {
            let mut payloads = Vec::new();
            while let Some(record) = records.next_record().unwrap() {
                payloads.push((
                    record.timestamp(),
                    record.bytes().to_vec(),
                    record.is_stale(),
                ));
            }
            payloads
        };
        let mut all = read(trace.records(order).unwrap());
        let rest = read(trace.records(order).unwrap().without_stale_records());
        all.retain(|(.., is_stale)| !is_stale);
        assert_eq!((rest.len(), rest), (3, all));
    }
}
