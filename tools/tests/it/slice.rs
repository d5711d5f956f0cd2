//! Slices of traces: selected events, their stacks, and the state that they need.

use crate::common::{Made, header, open, trace, trace_of};
use etl_events::Subject;
use etl_format::Guid;
use etl_format::read::{Order, Record};
use etl_tools::slice::{KeepReason, Slicer, Summary};
use proptest::prelude::*;

fn cut(
    file: &[u8],
    select: impl FnMut(&Record<'_>, &Subject) -> bool,
    keep_state: bool,
) -> (Vec<u8>, Summary) {
    let slicer = if keep_state {
        Slicer::new()
    } else {
        Slicer::new().without_state()
    };
    let finished = slicer.run(&mut open(file), select, Vec::new()).unwrap();
    (finished.output, finished.report)
}

/// Timestamps of all records but the header event.
fn timestamps(file: &[u8]) -> Vec<i64> {
    let mut trace = open(file);
    let mut records = trace.records(Order::Time).unwrap();
    let mut all = Vec::new();
    while let Some(record) = records.next_record().unwrap() {
        all.push(record.timestamp().get());
    }
    all.split_off(1)
}

fn words(words: &[u64]) -> Vec<u8> {
    words.iter().flat_map(|w| w.to_le_bytes()).collect()
}

fn halves(halves: &[u32]) -> Vec<u8> {
    halves.iter().flat_map(|w| w.to_le_bytes()).collect()
}

/// Kernel events of process `process` and its thread.
fn process(timestamp: i64, kind: u16, process: u32) -> Made {
    Made::kernel(
        timestamp,
        0x0300 | kind,
        &[words(&[0]), halves(&[process, 1, 0, 0])].concat(),
    )
}

fn thread(timestamp: i64, kind: u16, process: u32, thread: u32) -> Made {
    Made::kernel(timestamp, 0x0500 | kind, &halves(&[process, thread, 0, 0]))
}

fn image(timestamp: i64, kind: u16, process: u32) -> Made {
    Made::kernel(
        timestamp,
        0x1400 | kind,
        &[words(&[0x10_0000, 0x1000]), halves(&[process])].concat(),
    )
}

fn sample(timestamp: i64, thread: u32) -> Made {
    Made::kernel(
        timestamp,
        0x0f2e,
        &[words(&[0x10_0010]), halves(&[thread, 1])].concat(),
    )
}

fn stack(timestamp: i64, of: i64, process: u32, thread: u32) -> Made {
    let payload = [
        of.to_le_bytes().to_vec(),
        halves(&[process, thread]),
        words(&[0x10_0010]),
    ];
    Made::kernel(timestamp, 0x1820, &payload.concat())
}

fn stack_key(timestamp: i64, of: i64, process: u32, thread: u32, key: u64) -> Made {
    let payload = [
        of.to_le_bytes().to_vec(),
        halves(&[process, thread]),
        words(&[key]),
    ];
    Made::kernel(timestamp, 0x1826, &payload.concat())
}

fn key(timestamp: i64, key: u64) -> Made {
    Made::kernel(timestamp, 0x1824, &words(&[key, 0x10_0010]))
}

fn clr(timestamp: i64, rundown: bool, id: u16, process: u32, thread: u32) -> Made {
    let guid = if rundown {
        "a669021c-c450-4609-a035-5af59af4df18"
    } else {
        "e13c0d23-ccbc-4e12-931b-d9cc2eee27e4"
    };
    let provider: Guid = guid.parse().unwrap();
    Made {
        provider,
        process,
        thread,
        ..Made::new(timestamp, id, &[0; 40])
    }
}

#[test]
fn slice_of_a_process_keeps_its_state() {
    let file = trace(&[
        process(2_001, 3, 100),
        process(2_002, 3, 200),
        thread(2_003, 3, 100, 101),
        thread(2_004, 3, 200, 201),
        image(2_005, 3, 100),
        image(2_006, 3, 200),
        image(2_007, 3, 4),
        sample(2_010, 101),
        sample(2_011, 201),
        stack(2_012, 2_010, 100, 101),
        stack(2_013, 2_011, 200, 201),
        Made::new(2_020, 1, b"one"),
        Made {
            process: 200,
            thread: 201,
            ..Made::new(2_021, 1, b"other")
        },
        stack_key(2_022, 2_020, 100, 101, 0xaaaa),
        stack_key(2_023, 2_021, 200, 201, 0xbbbb),
        clr(2_030, true, 144, 100, 7),
        clr(2_031, true, 144, 200, 7),
        clr(2_032, false, 143, 100, 101),
        key(2_040, 0xaaaa),
        key(2_041, 0xbbbb),
    ]);
    let of_process = |_: &Record<'_>, s: &Subject| s.processes().any(|p| p == 100);
    let (slice, summary) = cut(&file, of_process, true);
    // Everything of process 100, the system's image, and the key of its stack.
    assert_eq!(
        timestamps(&slice),
        [
            2_001, 2_003, 2_005, 2_007, 2_010, 2_012, 2_020, 2_022, 2_030, 2_032, 2_040
        ]
    );
    assert_eq!((summary.selected, summary.kept_as_state), (9, 2));
    assert_eq!(summary.kept[&KeepReason::StackKey], 1);
    // One event by time only: what its process, its stack and its addresses need comes along.
    let (slice, summary) = cut(&file, |r, _| r.timestamp() == 2_020, true);
    assert_eq!(
        timestamps(&slice),
        [
            2_001, 2_003, 2_005, 2_007, 2_020, 2_022, 2_030, 2_032, 2_040
        ]
    );
    assert_eq!(summary.selected, 2);
    let state: Vec<_> = summary
        .kept
        .iter()
        .map(|(reason, count)| (reason.name(), *count))
        .collect();
    assert_eq!(
        state,
        [
            ("system", 0),
            ("schemas", 0),
            ("processes", 1),
            ("threads", 1),
            ("images", 2),
            ("managed_code", 2),
            ("stack_keys", 1),
            ("names", 0)
        ]
    );
    let (slice, _) = cut(&file, |r, _| r.timestamp() == 2_020, false);
    assert_eq!(timestamps(&slice), [2_020, 2_022]);
}

#[test]
fn clr_stack_follows_the_event_before_it() {
    let file = trace(&[
        clr(2_001, false, 10, 100, 101),
        clr(2_002, false, 80, 100, 102),
        clr(2_003, false, 82, 100, 101),
        clr(2_004, false, 82, 100, 102),
        clr(2_005, false, 10, 100, 102),
        clr(2_006, false, 82, 100, 102),
    ]);
    let thrown = |r: &Record<'_>, _: &Subject| r.event().is_some_and(|h| h.descriptor.id == 80);
    let (slice, summary) = cut(&file, thrown, true);
    assert_eq!(timestamps(&slice), [2_002, 2_004]);
    assert_eq!((summary.records, summary.selected), (6, 2));
}

#[test]
fn event_that_alone_names_a_thread_is_kept() {
    let file = trace(&[
        Made::new(2_001, 1, b"names process of thread 101"),
        Made::new(2_002, 1, b"names nothing new"),
        image(2_003, 3, 100),
        image(2_004, 3, 200),
        sample(2_010, 101),
        sample(2_011, 999),
    ]);
    let (slice, summary) = cut(&file, |r, _| r.hook() == Some(0x0f2e), true);
    assert_eq!(timestamps(&slice), [2_001, 2_003, 2_010, 2_011]);
    assert_eq!(summary.kept[&KeepReason::Thread], 1);
    // The same after a thread event.
    let file = trace(&[
        thread(2_000, 3, 100, 101),
        Made::new(2_001, 1, b"names nothing new"),
        sample(2_010, 101),
    ]);
    let (slice, _) = cut(&file, |r, _| r.hook() == Some(0x0f2e), true);
    assert_eq!(timestamps(&slice), [2_000, 2_010]);
}

#[test]
fn manifests_of_kept_providers_are_kept() {
    let other = Guid::new(9, 9, 9, [9; 8]);
    let file = trace(&[
        Made::new(2_001, 0xfffe, b"manifest"),
        Made {
            provider: other,
            ..Made::new(2_002, 0xfffe, b"manifest")
        },
        Made::new(2_003, 5, b"event"),
        Made {
            provider: other,
            ..Made::new(2_004, 6, b"event")
        },
    ]);
    let five = |r: &Record<'_>, _: &Subject| r.event().is_some_and(|h| h.descriptor.id == 5);
    assert_eq!(timestamps(&cut(&file, five, true).0), [2_001, 2_003]);
}

#[test]
fn file_names_are_kept_for_disk_events() {
    let file = trace(&[
        Made::kernel(2_001, 0x0424, &words(&[1, 0])),
        Made::kernel(2_002, 0x0916, &words(&[1, 0])),
        Made::kernel(2_003, 0x010a, &words(&[0, 0, 0, 1, 0, 0])),
        Made {
            thread: 7,
            ..Made::new(2_004, 5, b"event")
        },
    ]);
    assert_eq!(
        timestamps(&cut(&file, |r, _| r.timestamp() == 2_003, true).0),
        [2_001, 2_003]
    );
    assert_eq!(
        timestamps(&cut(&file, |r, _| r.timestamp() == 2_004, true).0),
        [2_004]
    );
}

#[test]
fn header_is_relogged_and_keeps_losses() {
    let mut lossy = header();
    lossy.events_lost = 7;
    let file = trace_of(lossy, &[Made::new(2_001, 1, b"x")]);
    let (slice, summary) = cut(&file, |_, _| false, true);
    let made = open(&slice);
    assert_eq!(made.header().events_lost, 7);
    assert!(made.header().is_selection());
    assert_eq!(made.header().end_time, header().end_time);
    assert_eq!((summary.selected, timestamps(&slice).len()), (0, 0));
}

fn events() -> impl Strategy<Value = Vec<Made>> {
    let one = (0u8..12, 0u32..4, 0u32..4, 0i64..6, 0u64..3);
    proptest::collection::vec(one, 0..80).prop_map(|steps| {
        let made = steps
            .into_iter()
            .enumerate()
            .map(|(number, (kind, p, t, back, k))| {
                let (pid, tid, timestamp) = (100 * p, 100 * p + t, 2_000 + number as i64);
                let made = match kind {
                    0 => process(timestamp, 3, pid),
                    1 => thread(timestamp, 3, pid, tid),
                    2 => image(timestamp, 3, pid),
                    3 => sample(timestamp, tid),
                    4 => stack(timestamp, timestamp - back, pid, tid),
                    5 => stack_key(timestamp, timestamp - back, pid, tid, k),
                    6 => key(timestamp, k),
                    7 => clr(timestamp, false, 143, pid, tid),
                    8 => clr(timestamp, false, 82, pid, tid),
                    9 => clr(timestamp, true, 144, pid, tid),
                    10 => Made {
                        process: pid,
                        thread: tid,
                        ..Made::new(timestamp, 0xfffe, b"m")
                    },
                    _ => Made {
                        process: pid,
                        thread: tid,
                        ..Made::new(timestamp, 7, b"x")
                    },
                };
                Made {
                    processor: (number % 2) as u16,
                    ..made
                }
            });
        made.collect()
    })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    /// A slice holds what is selected, nothing twice, in order; what a slice of all keeps is all;
    /// and slicing a slice again by the same condition changes nothing.
    #[test]
    fn slice_keeps_selected_records_in_order(events in events(), from in 0i64..80, len in 0i64..80) {
        let file = trace(&events);
        let all = timestamps(&file);
        prop_assert_eq!(&timestamps(&cut(&file, |_, _| true, true).0), &all);
        let within = |r: &Record<'_>, _: &Subject| {
            (2_000 + from..2_000 + from + len).contains(&r.timestamp().get())
        };
        let (slice, summary) = cut(&file, within, true);
        let kept = timestamps(&slice);
        prop_assert!(kept.is_sorted());
        prop_assert_eq!(kept.len() as u64, summary.selected + summary.kept_as_state);
        prop_assert_eq!(summary.records as usize, all.len());
        for timestamp in &all {
            if (2_000 + from..2_000 + from + len).contains(timestamp) {
                prop_assert!(kept.contains(timestamp));
            }
        }
        let (stateless, _) = cut(&file, within, false);
        prop_assert!(timestamps(&stateless).iter().all(|timestamp| kept.contains(timestamp)));
        let (again, _) = cut(&slice, within, true);
        prop_assert_eq!(timestamps(&again), kept);
    }
}
