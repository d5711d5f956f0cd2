//! One wrong bit in the size of a record: what disappears is reported, by the reader or by the
//! verifier. The trace is made here, and the bit is changed in its bytes.

use etl_format::constants::hook;
use etl_format::read::{Options, Order, Trace};
use etl_format::write::Session;
use etl_format::write::record::{Event, PerfInfo};
use etl_format::{EventDescriptor, FileHeader};
use etl_schema::providers::CLR_RUNTIME;
use etl_verify::{Report, Severity, Verifier};
use proptest::prelude::*;

/// Rounds of the trace: a sample of 32 bytes, and an event of the CLR of 96 bytes. Most sizes with
/// one wrong bit lead to the beginning of another record.
const ROUNDS: i64 = 250;

/// Bytes of a round.
const ROUND: u16 = 32 + 96;

/// The end of a collection (GCEnd_V1).
const GC_END: EventDescriptor = EventDescriptor {
    id: 2,
    version: 1,
    channel: 0,
    level: 4,
    opcode: 2,
    task: 1,
    keyword: 1,
};

fn trace() -> Vec<u8> {
    let mut session = Session::in_memory(FileHeader::new()).unwrap();
    for round in 1..=ROUNDS {
        let timestamp = round * 1_000;
        let mut sample = 0x7ff6_0000_1000_u64.to_le_bytes().to_vec();
        sample.extend([1, 0, 0, 0, 1, 0, 0, 0]);
        let record = PerfInfo::new(hook::SAMPLE, timestamp);
        session
            .write(0, &record.version(2).payload(&sample))
            .unwrap();
        let payload = [1, 0, 0, 0, 0, 0, 0, 0, 1, 0];
        let record = Event::new(CLR_RUNTIME, GC_END, timestamp + 1);
        session.write(0, &record.payload(&payload)).unwrap();
    }
    session.finish().unwrap()
}

/// A record of the trace.
#[derive(Clone, Copy, Debug)]
struct Place {
    /// Offset of its size in the file.
    size_at: usize,
    size: u16,
}

/// The records after the header event.
fn places(bytes: &[u8]) -> Vec<Place> {
    let mut trace = Trace::open(bytes, &Options::default()).unwrap();
    let mut records = trace.records(Order::File).unwrap();
    let mut places = Vec::new();
    while let Some(record) = records.next_record().unwrap() {
        let location = record.location();
        let start = location.buffer_offset as usize + location.in_buffer as usize;
        let size_at = if record.is_event() { start } else { start + 4 };
        places.push(Place {
            size_at,
            size: u16::from_le_bytes(bytes[size_at..size_at + 2].try_into().unwrap()),
        });
    }
    places.split_off(1)
}

/// Numbers of records that can be read, and of damaged places.
fn read(bytes: &[u8]) -> (usize, usize) {
    let mut trace = Trace::open(bytes, &Options::salvage()).unwrap();
    let mut records = trace.records(Order::File).unwrap();
    let mut count = 0;
    while records.next_record().unwrap().is_some() {
        count += 1;
    }
    (count, records.damage().len())
}

fn verified(bytes: &[u8]) -> Report {
    Verifier::new().verify(bytes, "t.etl").unwrap()
}

fn has(report: &Report, rule: &str, severity: Severity) -> bool {
    let mut findings = report.findings.iter();
    findings.any(|finding| finding.rule == rule && finding.severity == severity)
}

/// Writes the size of a record.
fn set(bytes: &mut [u8], place: Place, size: u16) {
    bytes[place.size_at..place.size_at + 2].copy_from_slice(&size.to_le_bytes());
}

/// A sample has a fixed layout, and nothing in it comes from a program: what is inside a longer one
/// is read.
#[test]
fn swallowed_samples_are_read_from_inside() {
    let whole = trace();
    let (expected, _) = read(&whole);
    let places = places(&whole);
    let sample = places.iter().find(|place| place.size == 32).unwrap();
    let mut bytes = whole.clone();
    set(&mut bytes, *sample, 32 + 20 * ROUND);
    assert_eq!(read(&bytes), (expected - 1, 1));
    assert!(has(&verified(&bytes), "file.damaged", Severity::Error));
}

/// The bytes in an event of a program can look like records, so they are not read; they are
/// reported.
#[test]
fn swallowed_events_of_the_clr_are_an_error() {
    let whole = trace();
    let places = places(&whole);
    let (expected, _) = read(&whole);
    let event = places.iter().find(|place| place.size == 90).unwrap();
    let mut bytes = whole.clone();
    set(&mut bytes, *event, 96 + 20 * ROUND);
    assert_eq!(read(&bytes), (expected - 40, 0));
    assert!(has(&verified(&bytes), "payload.long", Severity::Error));
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(200))]
    #[test]
    fn wrong_bit_in_a_size_is_never_silent(number: usize, bit in 0..16_u32) {
        let whole = trace();
        let places = places(&whole);
        let place = places[number % places.len()];
        let mut bytes = whole.clone();
        set(&mut bytes, place, place.size ^ 1 << bit);
        let (expected, _) = read(&whole);
        let (count, damage) = read(&bytes);
        let report = verified(&bytes);
        let is_too_long = report.findings.iter().any(|f| f.rule == "payload.long");
        prop_assert!(
            count == expected || damage > 0 || is_too_long,
            "{count} of {expected} records, {place:?}, bit {bit}"
        );
    }
}
