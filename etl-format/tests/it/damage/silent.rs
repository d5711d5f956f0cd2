//! No record of an undamaged trace is missing without damage or a remark that weighs something.

use std::collections::BTreeSet;

use super::{SIZE, at};
use crate::common::packed::xpress;
use crate::common::{File, patch, run, small};
use etl_format::read::{Note, Options, Order, Trace, Weight};
use proptest::prelude::*;

/// What happens to a trace.
#[derive(Clone, Debug)]
enum Fault {
    /// Records of a buffer become zeros or filler.
    Records {
        buffer: usize,
        from: usize,
        to: usize,
        byte: u8,
    },
    /// A fill changes: `SavedOffset`, `Offset`, or both.
    Fill {
        buffer: usize,
        fields: usize,
        fill: u32,
    },
    /// A buffer header becomes zeros or filler.
    Header { buffer: usize, byte: u8 },
    /// The file ends early.
    Cut { len: usize },
    /// A buffer is removed.
    Removed { buffer: usize },
}

fn fault() -> impl Strategy<Value = Fault> {
    let byte = || prop_oneof![Just(0u8), Just(0xff)];
    let fill = prop_oneof![0u32..0x120, any::<u32>(), Just(0x400), Just(0x401)];
    prop_oneof![
        (1usize..7, 0usize..4, 1usize..5, byte()).prop_map(|(buffer, from, len, byte)| {
            Fault::Records {
                buffer,
                from,
                to: (from + len).min(4),
                byte,
            }
        }),
        (1usize..7, 0usize..3, fill).prop_map(|(buffer, fields, fill)| Fault::Fill {
            buffer,
            fields,
            fill
        }),
        (0usize..7, byte()).prop_map(|(buffer, byte)| Fault::Header { buffer, byte }),
        (SIZE..7 * SIZE).prop_map(|len| Fault::Cut { len }),
        (1usize..7).prop_map(|buffer| Fault::Removed { buffer }),
    ]
}

/// Applies a fault; `start` is where a buffer begins.
fn apply(bytes: &mut Vec<u8>, fault: &Fault, start: &dyn Fn(usize) -> usize) {
    match *fault {
        Fault::Records {
            buffer,
            from,
            to,
            byte,
        } => {
            bytes[at(buffer, from)..at(buffer, to)].fill(byte);
        }
        Fault::Fill {
            buffer,
            fields,
            fill,
        } => {
            for field in [&[4][..], &[0x30], &[4, 0x30]][fields] {
                patch(bytes, start(buffer) + field, &fill.to_le_bytes());
            }
        }
        Fault::Header { buffer, byte } => {
            bytes[start(buffer)..start(buffer) + 0x48].fill(byte);
        }
        Fault::Cut { len } => bytes.truncate(len),
        Fault::Removed { buffer } => {
            bytes.drain(start(buffer)..start(buffer + 1));
        }
    }
}

/// The timestamps that can be read, and whether anything is said of the trace.
fn look(bytes: &[u8], order: Order) -> Option<(BTreeSet<i64>, bool)> {
    let mut trace = Trace::open(bytes, &Options::salvage()).ok()?;
    let mode = trace.header().mode;
    let remarked = trace
        .notes()
        .iter()
        .any(|note| note.weight(mode) > Weight::Detail);
    let mut records = trace.records(order).unwrap();
    let mut found = BTreeSet::new();
    while let Some(record) = records.next_record().unwrap() {
        found.insert(record.timestamp().get());
    }
    Some((found, remarked || !records.damage().is_empty()))
}

fn check(whole: &[u8], damaged: &[u8], faults: &[Fault]) -> Result<(), TestCaseError> {
    let (all, said) = look(whole, Order::File).unwrap();
    prop_assert!(!said, "the undamaged trace");
    for order in [Order::File, Order::Time] {
        let Some((found, said)) = look(damaged, order) else {
            continue;
        };
        let missing: Vec<_> = all.difference(&found).collect();
        prop_assert!(
            missing.is_empty() || said,
            "{missing:?} are missing after {faults:?}"
        );
        prop_assert!(found.is_subset(&all), "made up after {faults:?}");
    }
    Ok(())
}

proptest! {
    #[test]
    fn missing_records_are_never_silent(fault in fault()) {
        let whole = small().bytes();
        let mut damaged = whole.clone();
        apply(&mut damaged, &fault, &|buffer| buffer * SIZE);
        check(&whole, &damaged, &[fault])?;
    }

    #[test]
    fn missing_records_of_compressed_buffers_are_never_silent(fault in fault()) {
        let whole = small().compressed(3, xpress).bytes();
        let mut starts = vec![0];
        while let Some(size) = whole.get(starts[starts.len() - 1]..).and_then(|b| b.first_chunk()) {
            starts.push(starts[starts.len() - 1] + u32::from_le_bytes(*size) as usize);
        }
        let mut damaged = whole.clone();
        let in_plain = matches!(fault, Fault::Records { .. });
        prop_assume!(!in_plain);
        apply(&mut damaged, &fault, &|buffer| starts[buffer]);
        check(&whole, &damaged, &[fault])?;
    }
}

/// A circular file loses its oldest buffers only when it is full: before, a gap is as in other
/// files.
#[test]
fn gap_of_a_circular_file_that_was_never_full_is_noted() {
    let file = |maximum_file_size: u32| {
        let mut file = File::new(SIZE as u32);
        file.event.mode = 0x0001_0002;
        file.event.maximum_file_size = maximum_file_size;
        for buffer in 0..8 {
            file = file.buffer(0, &run(1000 + buffer * 10, 4));
        }
        let mut bytes = file.bytes();
        bytes.drain(SIZE..4 * SIZE);
        // The header counts the buffers that are left.
        patch(&mut bytes, 0x48 + 0x44, &6_u32.to_le_bytes());
        bytes
    };
    let opened = |bytes: &[u8]| {
        let trace = Trace::open(bytes, &Options::salvage()).unwrap();
        let gaps = trace.notes().iter().filter(|note| {
            matches!(
                note,
                Note::SequenceGap {
                    first: 1,
                    count: 3,
                    ..
                }
            )
        });
        (gaps.count(), trace.overwritten())
    };
    // In MiB: the file has 6 KiB.
    assert_eq!(opened(&file(1)), (1, None));
    // Without a largest size, nothing is overwritten.
    assert_eq!(opened(&file(0)), (1, None));
    let mut small = file(6);
    // In KiB.
    patch(&mut small, 0x48 + 0x40, &0x0001_2002_u32.to_le_bytes());
    assert_eq!(opened(&small), (0, Some(3)));
}
