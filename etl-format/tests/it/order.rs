//! Time order, compared with a sort of all records.

use crate::common::packed::xpress;
use crate::common::reading::{
    Outcome, ahead, file, file_order, heads, in_file_order_on, pipe, spooled, strict, time_order,
    time_order_on, time_order_piped,
};
use crate::common::records::MESSAGE;
use crate::common::{File, message, perfinfo, run, system};
use etl_format::read::{Mode, Options, Order, RecordBatch, Trace};
use proptest::prelude::*;
use proptest::sample::Index;

/// Timestamp of the header event: what records take that have nothing else.
const START: i64 = 3;

/// A buffer to be: its processor, and the timestamps of its records where they have one.
#[derive(Clone, Debug)]
struct Plan {
    cpu: u16,
    timestamps: Vec<Option<i64>>,
}

/// The order of the buffers in the file.
#[derive(Clone, Debug)]
enum Layout {
    Sequence,
    /// The file wrapped around: the last buffers come first.
    Wrapped(Index),
    Shuffled(Vec<Index>),
}

/// Buffers with arbitrary and often equal timestamps, sorted inside if `ordered`.
fn plan(ordered: bool) -> impl Strategy<Value = Plan> {
    let timestamps = prop::collection::vec(prop::option::weighted(0.85, START..30i64), 0..9);
    (0..4u16, timestamps).prop_map(move |(cpu, mut timestamps)| {
        if ordered {
            let mut own: Vec<_> = timestamps.iter().flatten().copied().collect();
            own.sort_unstable_by(|a, b| b.cmp(a));
            timestamps
                .iter_mut()
                .flatten()
                .for_each(|timestamp| *timestamp = own.pop().unwrap());
        }
        Plan { cpu, timestamps }
    })
}

fn layout() -> impl Strategy<Value = Layout> {
    prop_oneof![
        Just(Layout::Sequence),
        any::<Index>().prop_map(Layout::Wrapped),
        prop::collection::vec(any::<Index>(), 16).prop_map(Layout::Shuffled),
    ]
}

fn record(timestamp: Option<i64>, id: usize) -> Vec<u8> {
    match timestamp {
        Some(timestamp) => perfinfo(true, 0x0f2e, timestamp, None, &[], &id.to_le_bytes()),
        None => message(MESSAGE, 1, 0, &id.to_le_bytes()),
    }
}

/// The file of these plans, and the payload numbers of its records in the order in which they are
/// due, made by sorting.
fn make(plans: &[Plan], layout: &Layout, packed: bool) -> (Vec<u8>, Vec<(i64, usize)>) {
    let mut file = File::new(0x400);
    file.event.timestamp = START;
    file.extras = vec![record(Some(START + 4), usize::MAX)];
    // Timestamp, stream, sequence number, position, number.
    let mut due = vec![(START, 0, 0, 0, 0), (START + 4, 0, 0, 1, usize::MAX)];
    let mut number = 0;
    for (plan, seq) in plans.iter().zip(1..) {
        let mut records = Vec::new();
        let mut taken = plan
            .timestamps
            .iter()
            .flatten()
            .next()
            .copied()
            .unwrap_or(START);
        for (&timestamp, position) in plan.timestamps.iter().zip(0..) {
            number += 1;
            taken = timestamp.unwrap_or(taken);
            records.push(record(timestamp, number));
            due.push((taken, plan.cpu + 1, seq, position, number));
        }
        file = file.buffer(plan.cpu, &records);
    }
    due.sort_by_key(|&(timestamp, stream, seq, position, _)| (timestamp, stream, seq, position));
    match layout {
        Layout::Sequence => {}
        Layout::Wrapped(by) if !plans.is_empty() => {
            file.buffers.rotate_right(by.index(plans.len()));
        }
        Layout::Wrapped(_) => {}
        Layout::Shuffled(swaps) => {
            for (i, swap) in swaps.iter().enumerate().take(plans.len()) {
                file.buffers.swap(i, swap.index(plans.len()));
            }
        }
    }
    let file = if packed {
        file.compressed(3, xpress)
    } else {
        file
    };
    (
        file.bytes(),
        due.into_iter()
            .map(|(timestamp, .., number)| (timestamp, number))
            .collect(),
    )
}

/// Timestamp and number of each record.
fn numbers(records: &[crate::common::reading::Seen]) -> Vec<(i64, usize)> {
    let number = |bytes: &[u8]| usize::from_le_bytes(*bytes.last_chunk().unwrap());
    let of = |r: &crate::common::reading::Seen| {
        if r.bytes[6..8] == [0, 0] {
            0
        } else {
            number(&r.bytes)
        }
    };
    records.iter().map(|r| (r.timestamp, of(r))).collect()
}

/// `cases` cases, or `PROPTEST_CASES`. There is no file of regressions: each failure becomes a
/// test.
fn config(cases: u32) -> ProptestConfig {
    let cases = std::env::var("PROPTEST_CASES").map_or(cases, |n| n.parse().unwrap());
    ProptestConfig {
        cases,
        failure_persistence: None,
        ..ProptestConfig::default()
    }
}

proptest! {
    #![proptest_config(config(1500))]

    #[test]
    fn scan_is_a_stable_sort(
        plans in prop::collection::vec(any::<bool>().prop_flat_map(plan), 0..12),
        layout in layout(),
        packed: bool,
    ) {
        let (bytes, due) = make(&plans, &layout, packed);
        let outcome = time_order(bytes.as_slice(), &strict());
        prop_assert!(outcome.end.is_ok(), "{:?}", outcome.end);
        prop_assert_eq!(numbers(&outcome.records), due);
        prop_assert_eq!(outcome.order.late, 0);
        prop_assert!(time_order(file(&bytes), &strict()).same_as(&outcome));
        for limit in [0, 1 << 20] {
            prop_assert!(time_order(spooled(&bytes, limit), &strict()).same_as(&outcome));
        }
    }

    #[test]
    fn first_record_sorts_buffers_in_order(
        plans in prop::collection::vec(plan(true), 0..12),
        layout in layout(),
        packed: bool,
    ) {
        let (bytes, due) = make(&plans, &layout, packed);
        let outcome = time_order(bytes.as_slice(), &heads(strict()));
        prop_assert_eq!(numbers(&outcome.records), due);
        prop_assert_eq!((outcome.order.late, outcome.order.sorted_buffers), (0, 0));
        prop_assert!(time_order(file(&bytes), &heads(strict())).same_as(&outcome));
    }

    #[test]
    fn lookahead_sorts_records_displaced_within_a_buffer(
        plans in prop::collection::vec(plan(false), 0..12),
        layout in layout(),
        packed: bool,
    ) {
        // No buffer begins before the start of the previous one.
        let mut plans = plans;
        plans.retain(|p| p.timestamps.first().is_some_and(Option::is_some));
        plans.sort_by_key(|p| p.timestamps.first().copied());
        let mut reached = [i64::MIN; 4];
        plans.retain(|p| {
            let least = p.timestamps.iter().flatten().min().copied().unwrap();
            let reached = &mut reached[usize::from(p.cpu)];
            let fits = least >= *reached;
            *reached = least.max(*reached);
            fits
        });
        let (bytes, due) = make(&plans, &layout, packed);
        let outcome = time_order(bytes.as_slice(), &ahead(strict()));
        prop_assert_eq!(outcome.order.late, 0);
        prop_assert_eq!(numbers(&outcome.records), due);
        for other in [time_order(file(&bytes), &ahead(strict())), time_order(spooled(&bytes, 0), &ahead(strict()))] {
            prop_assert!(other.same_as(&outcome));
        }
    }

    #[test]
    fn first_record_counts_late_records(
        plans in prop::collection::vec(plan(false), 0..12),
        layout in layout(),
    ) {
        let (bytes, mut due) = make(&plans, &layout, false);
        let outcome = time_order(bytes.as_slice(), &heads(strict()));
        let mut given = numbers(&outcome.records);
        let sorted = given.is_sorted_by_key(|&(timestamp, _)| timestamp);
        prop_assert_eq!(outcome.order.late == 0, sorted);
        let mut latest = i64::MIN;
        let late = given.iter().filter(|&&(timestamp, _)| {
            let late = timestamp < latest;
            latest = latest.max(timestamp);
            late
        });
        prop_assert_eq!(outcome.order.late, late.count() as u64);
        given.sort_unstable();
        due.sort_unstable();
        prop_assert_eq!(given, due, "nothing is lost for it");
    }

    #[test]
    fn scan_holds_one_buffer_per_processor(
        plans in prop::collection::vec(plan(true), 0..12),
        packed: bool,
    ) {
        // Each processor's buffers follow each other in time.
        let mut plans = plans;
        for cpu in 0..4 {
            let mut own: Vec<_> = plans
                .iter()
                .filter(|p| p.cpu == cpu)
                .flat_map(|p| p.timestamps.iter().flatten().copied())
                .collect();
            own.sort_unstable_by(|a, b| b.cmp(a));
            for plan in plans.iter_mut().filter(|p| p.cpu == cpu) {
                plan.timestamps.retain(Option::is_some);
                plan.timestamps.iter_mut().flatten().for_each(|s| *s = own.pop().unwrap());
            }
        }
        plans.retain(|p| !p.timestamps.is_empty());
        let (bytes, due) = make(&plans, &Layout::Sequence, packed);
        for options in [strict(), heads(strict())] {
            let outcome = time_order(bytes.as_slice(), &options);
            prop_assert_eq!(numbers(&outcome.records), due.clone());
            prop_assert!(outcome.order.was_in_order(), "{:?}", outcome.order);
            prop_assert!(outcome.order.held <= 5 * (0x800 + 9 * 16), "{:?}", outcome.order);
        }
    }

    #[test]
    fn file_order_is_the_order_of_offsets(
        plans in prop::collection::vec(plan(false), 0..12),
        layout in layout(),
        packed: bool,
    ) {
        let (bytes, mut due) = make(&plans, &layout, packed);
        let outcome = file_order(bytes.as_slice(), &strict());
        prop_assert!(outcome.end.is_ok());
        prop_assert!(outcome.records.is_sorted_by_key(|r| (r.buffer, r.at)));
        let mut given = numbers(&outcome.records);
        given.sort_unstable();
        due.sort_unstable();
        prop_assert_eq!(given, due);
        for other in [
            file_order(file(&bytes), &strict()),
            file_order(pipe(&bytes), &strict()),
            file_order(spooled(&bytes, 5), &strict()),
        ] {
            prop_assert!(other.same_as(&outcome));
        }
    }
}

proptest! {
    #![proptest_config(config(200))]

    #[test]
    fn time_order_does_not_depend_on_threads(
        plans in prop::collection::vec(any::<bool>().prop_flat_map(plan), 14..60),
        layout in layout(),
        packed: bool,
        threads in 2..5usize,
        damage in prop::collection::vec((any::<Index>(), any::<u8>()), 0..3),
        salvage: bool,
    ) {
        let (mut bytes, _) = make(&plans, &layout, packed);
        for (at, byte) in damage {
            let len = bytes.len();
            bytes[at.index(len)] = byte;
        }
        let mode = if salvage { Mode::Salvage } else { Mode::Strict };
        let options = Options { mode, ..strict() };
        for options in [options, ahead(options), heads(options)] {
            let alone = time_order(bytes.as_slice(), &options);
            let options = Options { threads, ..options };
            let together = time_order_on(bytes.as_slice(), &options, threads);
            prop_assert!(together.same_as(&alone));
            prop_assert_eq!(together.order, alone.order);
            let together = time_order_on(file(&bytes), &options, threads);
            prop_assert!(together.same_as(&alone));
            prop_assert_eq!(together.order, alone.order);
            let helped = time_order_piped(file(&bytes), &options, threads);
            prop_assert!(helped.same_as(&alone));
            prop_assert_eq!(helped.order, alone.order);
        }
    }

    #[test]
    fn file_order_does_not_depend_on_the_reader(
        plans in prop::collection::vec(any::<bool>().prop_flat_map(plan), 0..40),
        layout in layout(),
        packed: bool,
        threads in 1..5usize,
        damage in prop::collection::vec((any::<Index>(), any::<u8>()), 0..3),
        salvage: bool,
    ) {
        let (mut bytes, _) = make(&plans, &layout, packed);
        for (at, byte) in damage {
            let len = bytes.len();
            bytes[at.index(len)] = byte;
        }
        let mode = if salvage { Mode::Salvage } else { Mode::Strict };
        let options = Options { mode, ..strict() };
        let alone = file_order(bytes.as_slice(), &options);
        if let Some(indexed) = in_file_order_on(bytes.as_slice(), &options, threads) {
            // The index has more notes on sequence numbers.
            let indexed = Outcome { notes: alone.notes.clone(), ..indexed };
            prop_assert!(indexed.same_as(&alone));
        } else {
            // Finding all buffers beforehand meets what ends the reading.
            prop_assert!(alone.end.is_err());
        }
    }

    #[test]
    fn record_batch_returns_its_records(
        plans in prop::collection::vec(any::<bool>().prop_flat_map(plan), 0..12),
        layout in layout(),
    ) {
        let (bytes, _) = make(&plans, &layout, false);
        let outcome = time_order(bytes.as_slice(), &strict());
        let mut trace = Trace::open(bytes.as_slice(), &strict()).unwrap();
        let mut reader = trace.records(Order::Time).unwrap();
        let mut batch = RecordBatch::default();
        reader.for_each(|r| { batch.push(&r); Ok::<_, etl_format::Error>(()) }).unwrap();
        let seen: Vec<_> = batch.records().map(|r| crate::common::reading::Seen::of(&r)).collect();
        prop_assert_eq!(batch.len(), seen.len());
        prop_assert_eq!(batch.bytes(), seen.iter().map(|r| r.bytes.len()).sum::<usize>());
        prop_assert_eq!(seen, outcome.records);
        batch.clear();
        prop_assert!(batch.is_empty() && batch.records().next().is_none());
    }
}

/// Enough buffers for several threads: two records on each of forty processors.
fn forty_buffers() -> Vec<u8> {
    (0..40)
        .fold(File::new(0x400), |file, cpu| {
            file.buffer(cpu, &run(1000, 2))
        })
        .bytes()
}

#[test]
fn parallel_stops_threads_when_the_work_panics() {
    let bytes = forty_buffers();
    let mut trace = Trace::open(bytes.as_slice(), &strict()).unwrap();
    let mut reader = trace.records(Order::Time).unwrap().with_threads(2);
    let work = std::panic::AssertUnwindSafe(|| {
        reader.parallel(|reader| {
            reader.next_record().unwrap();
            panic!("in the middle");
        })
    });
    assert!(std::panic::catch_unwind(work).is_err());
    assert!(
        reader.next_record().unwrap().is_some(),
        "what is left is read alone"
    );
}

#[test]
fn report_counts_sorted_and_overlapping_buffers() {
    // Buffers of one processor that overlap, and one that is not in order inside.
    let mut file = File::new(0x400)
        .buffer(0, &run(1000, 5))
        .buffer(0, &run(1002, 5));
    let mut records = run(1010, 5);
    records.swap(1, 3);
    file = file.buffer(1, &records);
    let outcome = time_order(file.bytes().as_slice(), &strict());
    assert!(outcome.timestamps().is_sorted());
    let order = outcome.order;
    let held = |buffers: u64, records: u64| buffers * 0x400 + records * 16;
    // The header's buffer is closed when the others are opened.
    assert_eq!(
        (order.overlaps, order.sorted_buffers, order.late),
        (1, 1, 0)
    );
    assert_eq!(order.held, held(2, 10));
    let order = time_order(file.bytes().as_slice(), &ahead(strict())).order;
    assert_eq!(
        (order.overlaps, order.sorted_buffers, order.late),
        (1, 1, 0)
    );
    assert_eq!(order.held, held(3, 15), "all are open at once");
    // One whose first record is not its earliest comes too late.
    let mut records = run(1000, 5);
    records.swap(0, 3);
    let file = File::new(0x400)
        .buffer(0, &run(1000, 5))
        .buffer(1, &records);
    let order = time_order(file.bytes().as_slice(), &heads(strict())).order;
    assert_eq!(
        (order.overlaps, order.sorted_buffers, order.late),
        (0, 1, 3)
    );
    let order = time_order(file.bytes().as_slice(), &ahead(strict())).order;
    assert_eq!(
        (order.overlaps, order.sorted_buffers, order.late),
        (0, 1, 0)
    );
}

#[test]
fn buffers_without_timestamps_are_at_the_session_start() {
    let without_own_timestamp = |n: u64| message(MESSAGE, 1, 0, &n.to_le_bytes());
    let bytes = File::new(0x400)
        .buffer(0, &run(1000, 2))
        .buffer(0, &[without_own_timestamp(1), without_own_timestamp(2)])
        .buffer(
            0,
            &[
                without_own_timestamp(3),
                system(true, 0x0f01, 1005, b""),
                without_own_timestamp(4),
            ],
        )
        .bytes();
    let expected = [900, 900, 900, 1000, 1001, 1005, 1005, 1005];
    for options in [strict(), heads(strict())] {
        assert_eq!(
            time_order(bytes.as_slice(), &options).timestamps(),
            expected
        );
    }
    let expected = [900, 1000, 1001, 900, 900, 1005, 1005, 1005];
    assert_eq!(
        file_order(bytes.as_slice(), &strict()).timestamps(),
        expected
    );
}

#[test]
fn session_without_per_processor_buffers_is_one_stream() {
    // NO_PER_PROCESSOR_BUFFERING: threads of several processors write to one set of buffers.
    let mut file = File::new(0x400);
    file.event.mode |= 0x1000_0000;
    file.event.processors = 1;
    let mut mixed = run(1000, 6);
    mixed.swap(2, 3);
    file = file.buffer(0, &mixed).buffer(0, &run(1003, 6));
    let outcome = time_order(file.bytes().as_slice(), &strict());
    assert_eq!(outcome.records.len(), 13);
    assert!(outcome.timestamps().is_sorted());
}

#[test]
fn records_of_2048_processors_are_merged() {
    let mut file = File::new(0x200);
    for round in 0..3 {
        for cpu in (0..2048).rev() {
            file = file.buffer(cpu, &run(1000 + round * 10, 2));
        }
    }
    let outcome = time_order(file.bytes().as_slice(), &strict());
    assert_eq!(outcome.records.len(), 1 + 3 * 2048 * 2);
    assert!(outcome.records[1..].is_sorted_by_key(|r| (r.timestamp, r.cpu)));
    assert_eq!(outcome.order.held, 2048 * (0x200 + 2 * 16));
    assert!(outcome.order.was_in_order());
}

#[test]
fn extreme_timestamps_are_sorted() {
    let timestamps = [i64::MAX, i64::MIN, 0, -1, i64::MIN, i64::MAX];
    let mut file = File::new(0x400);
    for (cpu, timestamp) in (0..).zip(timestamps) {
        file = file.buffer(cpu / 2, &[system(true, 0x0f01, timestamp, b"")]);
    }
    let outcome = time_order(file.bytes().as_slice(), &strict());
    let expected = [i64::MIN, i64::MIN, -1, 0, 900, i64::MAX, i64::MAX];
    assert_eq!(outcome.timestamps(), expected);
    assert_eq!(outcome.order.late, 0);
}

#[test]
fn broken_first_record_does_not_disturb_the_order() {
    for size in [0u16, 0x1f, 0x7f, 0x3f0, 0xffff] {
        let mut first = system(true, 0x0f01, 1_000_000, b"");
        first[4..6].copy_from_slice(&size.to_le_bytes());
        let mut records = run(1000, 2);
        records.insert(0, first);
        let bytes = File::new(0x400)
            .buffer(0, &records)
            .buffer(1, &run(1000, 3))
            .bytes();
        for options in [Options::salvage(), heads(Options::salvage())] {
            let outcome = time_order(bytes.as_slice(), &options);
            assert_eq!(
                outcome.timestamps(),
                [900, 1000, 1000, 1001, 1001, 1002],
                "{size:#x}"
            );
            assert_eq!((outcome.order.late, outcome.damage.len()), (0, 1));
        }
    }
}
