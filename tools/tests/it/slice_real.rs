//! Slices real traces: addresses resolve and events decode as in the whole trace.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::path::Path;

use etl_analysis::address::Tallies;
use etl_analysis::files::Timeline;
use etl_analysis::{MachineBuilder, ProcessIndex};
use etl_events::Subject;
use etl_format::read::{ExtendedItem, Options, Order, Record, Trace};
use etl_schema::render::Renderer;
use etl_schema::views::{clr, kernel};
use etl_test_support::{all_traces, needs, trace};
use etl_tools::slice::Slicer;

/// A selection.
type Select = fn(&Record<'_>, &Subject) -> bool;

fn cut(file: &[u8], select: Select) -> Vec<u8> {
    cut_with(file, select, true)
}

fn cut_with(file: &[u8], select: Select, keep_state: bool) -> Vec<u8> {
    let mut trace = Trace::open(file, &Options::salvage()).unwrap();
    let slicer = if keep_state {
        Slicer::new()
    } else {
        Slicer::new().without_state()
    };
    let made = slicer.run(&mut trace, select, Vec::new());
    made.unwrap().output
}

fn for_each(file: &[u8], mut f: impl FnMut(&Record<'_>)) {
    let mut trace = Trace::open(file, &Options::salvage()).unwrap();
    let mut records = trace.records(Order::Time).unwrap();
    while let Some(record) = records.next_record().unwrap() {
        f(&record);
    }
}

/// A key for each record of a trace.
type Id = (i64, u16, Vec<u8>);

fn id(record: &Record<'_>) -> Id {
    (
        record.timestamp().get(),
        record.processor(),
        record.bytes().to_vec(),
    )
}

/// Whether verification looks addresses up in this record.
fn has_addresses(record: &Record<'_>) -> bool {
    if record.is_event() {
        return record
            .extended()
            .any(|item| matches!(item, ExtendedItem::Stack(_)))
            || clr::decode(record).is_some_and(|c| {
                use clr::Event::{EntryPoint, Exception, Stack};
                matches!(c.event, Stack { .. } | Exception(_) | EntryPoint(_))
            });
    }
    matches!(
        kernel::decode(record),
        Some(
            kernel::Event::Sample { .. }
                | kernel::Event::Stack { .. }
                | kernel::Event::StackKey { .. }
        )
    )
}

/// The coverage of some records with the state of the whole file, by process, and the addresses
/// that do not resolve.
type Resolved = (BTreeMap<u32, Tallies>, Vec<(u32, u64, u64)>, u64);

fn resolved(file: &[u8], wanted: impl Fn(&Record<'_>) -> bool) -> Resolved {
    let trace = Trace::open(file, &Options::salvage()).unwrap();
    let mut builder = MachineBuilder::new(Timeline::new(vec![trace.clock()]));
    for_each(file, |record| {
        if !has_addresses(record) || wanted(record) {
            builder.record(record, 0, &mut ());
        }
    });
    let machine = builder.build();
    let processes = machine
        .processes()
        .iter()
        .filter(|p| p.tallies() != Tallies::default());
    let tallies = processes.map(|p| (p.pid().get(), p.tallies())).collect();
    let pid = |index: ProcessIndex| machine.process(index).unwrap().pid().get();
    let mut nowhere: Vec<_> = machine
        .unresolved()
        .iter()
        .map(|o| (pid(o.process), o.address, o.count))
        .collect();
    nowhere.sort_unstable();
    (tallies, nowhere, machine.undefined_stacks())
}

/// Checks that the addresses of selected records resolve in the slice as in the whole trace.
/// Returns the number of these records. Addresses of records that are kept as state need not
/// resolve.
fn resolves_alike(file: &[u8], select: Select) -> usize {
    let slice = cut(file, select);
    let stateless = cut_with(file, select, false);
    let mut kept = HashSet::new();
    for_each(&stateless, |record| {
        if has_addresses(record) {
            kept.insert(id(record));
        }
    });
    let of_slice = resolved(&slice, |record| kept.contains(&id(record)));
    let of_whole = resolved(file, |record| kept.contains(&id(record)));
    for (pid, tallies) in of_whole.0.iter().chain(&of_slice.0) {
        let (after, before) = (of_slice.0.get(pid), of_whole.0.get(pid));
        assert_eq!(after, before, "process {pid}: {tallies:?}");
    }
    assert_eq!(of_slice.1, of_whole.1, "addresses that resolve to nothing");
    assert_eq!(
        of_slice.2, of_whole.2,
        "stacks of keys that are not defined"
    );
    kept.len()
}

#[needs(trace = "perfview/net.4.5.2.x64.etl")]
#[test]
fn addresses_in_slices_resolve_as_before() {
    let path = trace("perfview/net.4.5.2.x64.etl");
    let file = std::fs::read(path).unwrap();
    let start = Trace::open(file.as_slice(), &Options::salvage())
        .unwrap()
        .clock()
        .start_timestamp;
    assert_eq!(start, START, "the times below count from here");
    let cases: [(&str, Select, usize); 7] = [
        ("a second and a half", |r, _| within(r, 3.0, 4.5), 5_000),
        (
            "the end of a process and after it",
            |r, _| within(r, 7.9, 10.0),
            1_000,
        ),
        ("a process", |_, s| s.processes().any(|p| p == 3676), 10_000),
        (
            "a process with a rundown",
            |_, s| s.processes().any(|p| p == 3988),
            300,
        ),
        (
            "a thread for a second",
            |r, s| s.threads().any(|t| t == 3680) && within(r, 5.0, 6.0),
            2_000,
        ),
        (
            "exceptions and allocations, with their stacks",
            |r, _| clr_ids(r, &[10, 80]),
            5_000,
        ),
        ("samples", |r, _| r.hook() == Some(0x0f2e), 79_000),
    ];
    for (name, select, least) in cases {
        let records = resolves_alike(&file, select);
        assert!(
            records >= least,
            "{name}: only {records} records with addresses"
        );
    }
}

/// The first raw timestamp of the merged trace.
const START: i64 = 1_942_608_875;

fn within(record: &Record<'_>, from: f64, to: f64) -> bool {
    let seconds = (record.timestamp().get() - START) as f64 / 1e7;
    (from..to).contains(&seconds)
}

fn clr_ids(record: &Record<'_>, ids: &[u16]) -> bool {
    record.provider() == Some(etl_schema::providers::CLR_RUNTIME)
        && record.descriptor().is_some_and(|d| ids.contains(&d.id))
}

/// Each record, and the name and the fields of its event, in order.
fn decoded(file: &[u8]) -> Vec<(Id, Option<String>)> {
    let mut trace = etl_events::from_bytes(file).unwrap();
    let mut events = trace.events().without_names().with_stale_records();
    let mut all = Vec::new();
    while let Some(event) = events.next().unwrap() {
        let text = event.fields().map(|mut fields| {
            let mut text = event.name().as_bytes().to_vec();
            Renderer::new().json_fields(&mut text, &mut fields);
            String::from_utf8_lossy(&text).into_owned()
        });
        all.push((id(event.record()), text));
    }
    all
}

fn decodes_alike(path: &Path, selections: &[Select]) {
    let file = std::fs::read(path).unwrap();
    let whole: HashMap<Id, Option<String>> = decoded(&file).into_iter().collect();
    // The large trace is slow.
    let selections = if file.len() > 4 << 20 {
        &selections[..1]
    } else {
        selections
    };
    for select in selections {
        for (number, (id, text)) in decoded(&cut(&file, *select))
            .into_iter()
            .enumerate()
            .skip(1)
        {
            assert_eq!(
                Some(&text),
                whole.get(&id),
                "{}: record {number}",
                path.display()
            );
        }
    }
}

#[needs(traces)]
#[test]
fn events_in_slices_decode_as_before() {
    let cases: [Select; 3] = [
        |r, _| r.timestamp().get() % 3 == 0,
        |r, _| {
            r.descriptor()
                .is_some_and(|d| d.id % 2 == 0 && d.id < 1_000)
        },
        |_, s| s.processes().any(|p| p.get() % 8 == 0),
    ];
    for path in all_traces() {
        decodes_alike(&path, &cases);
    }
}

#[needs(traces)]
#[test]
fn slice_of_everything_keeps_every_record() {
    for path in all_traces() {
        let file = std::fs::read(&path).unwrap();
        let (mut before, mut after) = (Vec::new(), Vec::new());
        for_each(&file, |record| before.push(id(record)));
        for_each(&cut(&file, |_, _| true), |record| after.push(id(record)));
        assert_eq!(before[1..], after[1..], "{}", path.display());
    }
}
