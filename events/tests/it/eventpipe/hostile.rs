//! Cut and damaged streams: the trace of each is intact and has the events of the report.

use etl_events::eventpipe::{ConvertError, ConvertOptions, convert};
use etl_format::read::{Options, Order, Trace};
use etl_test_support::needs;

use super::recorded::stream;
use super::write::{sample, sample_of_version_6};

/// Converts a stream, reads its trace strictly, and returns the number of events.
fn events_of(stream: &[u8]) -> u64 {
    let finished = match convert(stream, Vec::new(), &ConvertOptions::default()) {
        Ok(finished) => finished,
        Err(ConvertError::Read(_)) => return 0,
        Err(error) => panic!("{error}"),
    };
    let report = finished.report;
    let mut trace = Trace::open(finished.output.as_slice(), &Options::default()).unwrap();
    let mut records = trace.records(Order::Time).unwrap();
    let mut events = 0;
    while let Some(record) = records.next_record().unwrap() {
        events += u64::from(record.is_event());
    }
    assert_eq!(events, report.events);
    events
}

/// Numbers that look random, always the same.
struct Numbers(u64);

impl Numbers {
    fn next(&mut self, below: usize) -> usize {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005);
        self.0 = self.0.wrapping_add(1_442_695_040_888_963_407);
        ((self.0 >> 33) as usize) % below
    }
}

fn mutate(stream: &[u8], times: usize) {
    let mut numbers = Numbers(7);
    for _ in 0..times {
        let mut mutated = stream.to_vec();
        for _ in 0..=numbers.next(4) {
            let place = numbers.next(mutated.len());
            mutated[place] = match numbers.next(3) {
                0 => 0,
                1 => 0xff,
                _ => numbers.next(256) as u8,
            };
        }
        events_of(&mutated);
    }
}

#[test]
fn every_prefix_of_a_stream_has_an_intact_trace() {
    for stream in [sample(), sample_of_version_6()] {
        let mut before = 0;
        for len in 0..=stream.len() {
            let events = events_of(&stream[..len]);
            assert!(events >= before, "{len} bytes");
            before = events;
        }
        assert_eq!(before, 2);
    }
}

#[test]
fn damaged_streams_have_intact_traces() {
    mutate(&sample(), 5_000);
    mutate(&sample_of_version_6(), 5_000);
}

#[needs(traces)]
#[test]
fn cut_and_damaged_recordings_have_intact_traces() {
    for name in ["8.0-eventsource", "v6-one_collect"] {
        let stream = stream(&format!("{name}.nettrace.gz"));
        let mut before = 0;
        for len in (0..stream.len()).step_by(stream.len() / 100) {
            let events = events_of(&stream[..len]);
            assert!(events >= before, "{name}: {len} bytes");
            before = events;
        }
        mutate(&stream, 100);
    }
}
