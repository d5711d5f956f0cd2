//! Copies real traces record by record.

use std::path::Path;

use etl_format::read::{Options, Order, Trace};
use etl_format::rewrite::{RelogPlan, Relogger};
use etl_test_support::{all_traces, needs};

/// Every record in time order: its bytes, its timestamp, and its processor.
fn records(file: &[u8]) -> Vec<(Vec<u8>, i64, u16)> {
    let mut trace = Trace::open(file, &Options::salvage()).unwrap();
    let mut records = trace.records(Order::Time).unwrap();
    let mut all = Vec::new();
    while let Some(record) = records.next_record().unwrap() {
        all.push((
            record.bytes().to_vec(),
            record.timestamp().get(),
            record.processor(),
        ));
    }
    all
}

fn relogged(file: &[u8]) -> Vec<u8> {
    let mut trace = Trace::open(file, &Options::salvage()).unwrap();
    let plan = RelogPlan::copying(&mut trace).unwrap();
    let mut relog = Relogger::start(plan, Vec::new(), None).unwrap();
    let mut records = trace.records(Order::Time).unwrap();
    while let Some(record) = records.next_record().unwrap() {
        relog.copy(&record).unwrap();
    }
    relog.finish(&[]).unwrap().output
}

fn check(path: &Path) {
    let file = std::fs::read(path).unwrap();
    let copy = relogged(&file);
    let (before, after) = (records(&file), records(&copy));
    assert_eq!(before.len(), after.len(), "{}", path.display());
    // The header event is encoded from its fields; all other records have the same bytes.
    for (number, (before, after)) in before.iter().zip(&after).enumerate().skip(1) {
        assert_eq!(before, after, "{}: record {number}", path.display());
    }
    let header = |file: &[u8]| {
        Trace::open(file, &Options::salvage())
            .unwrap()
            .header()
            .clone()
    };
    let (mut old, new) = (header(&file), header(&copy));
    // An uncompressed copy has the log version of uncompressed traces.
    (old.mode, old.log_major, old.log_minor) = (new.mode, new.log_major, new.log_minor);
    old.maximum_file_size = 0;
    old.buffers_written = new.buffers_written;
    old.end_time = new.end_time;
    assert_eq!(old, new, "{}", path.display());
    // A second copy equals the first.
    assert_eq!(relogged(&copy), copy, "{}", path.display());
}

#[needs(traces)]
#[test]
fn relogger_keeps_every_record_of_real_traces() {
    for path in all_traces() {
        check(&path);
    }
}
