//! Writes every table of a trace as Arrow, and data sets with the tables of its kinds of events as
//! Parquet. Not among the targets of etl_tests: the tests would build Arrow too.
#![no_main]

use etl_format::read::Limits;
use etl_tables::dataset::{self, Dataset};
use etl_tables::{Error, Options, ipc, tables};
use etl_tests::fuzz::mutate;
use libfuzzer_sys::{fuzz_mutator, fuzz_target, fuzzer_mutate};

const LIMITS: Limits = Limits {
    buffer: 1 << 20,
    held: 64 << 20,
    budget: None,
};

fuzz_target!(|data: &[u8]| {
    let Some((&way, trace)) = data.split_last() else {
        return;
    };
    match tables::ALL.get(usize::from(way)) {
        Some(table) => write(trace, table.name, way),
        None if way % 2 == 0 => add(trace, way),
        None => write(trace, "EventTrace.Header", way),
    }
});

fn options() -> Options {
    Options::new("t.etl").limits(LIMITS).threads(1)
}

/// Writes a table; an error states what is wrong.
fn write(trace: &[u8], table: &str, way: u8) {
    let form = if way % 2 == 0 {
        ipc::Form::Stream
    } else {
        ipc::Form::File
    };
    if let Err(error) = ipc::write(trace, table, options(), form, Vec::new()) {
        stated(&error);
    }
}

/// Adds the trace to a data set, which then knows it.
fn add(trace: &[u8], way: u8) {
    let root = tempfile::tempdir().expect("a temporary directory");
    let mut source = trace;
    let hash = dataset::hash(&mut source).expect("bytes in memory");
    let mut known = false;
    for _ in 0..2 {
        let mut dataset = Dataset::open(root.path()).expect("a data set");
        if way % 4 == 0 {
            dataset = dataset.typed_tables();
        }
        if way % 8 < 4 {
            dataset = dataset.events_by_provider();
        }
        assert_eq!(dataset.has(&hash), known);
        match dataset.add(trace, "t.etl", &hash, options()) {
            Ok(_) => known = true,
            Err(error) => {
                stated(&error);
                assert!(!dataset.has(&hash));
                return;
            }
        }
    }
}

fn stated(error: &Error) {
    assert!(!error.to_string().is_empty());
}

fuzz_mutator!(|data: &mut [u8], size: usize, max_size: usize, seed: u32| {
    // The last byte selects what is written. Half of the changes respect the structure.
    let way = size.checked_sub(1).and_then(|last| data.get(last).copied());
    let structured = size > 0x49 && max_size > 0 && seed & 1 == 1;
    let Some(way) = way.filter(|_| structured) else {
        return fuzzer_mutate(data, size, max_size);
    };
    let mut bytes = data[..size - 1].to_vec();
    mutate::trace(&mut bytes, max_size - 1, seed);
    bytes.push(way);
    data[..bytes.len()].copy_from_slice(&bytes);
    bytes.len()
});
