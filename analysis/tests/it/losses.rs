//! Losses of traces made for it.

use std::io::Cursor;

use etl_analysis::loss::LossKind;
use etl_analysis::{Analysis, Recording};
use etl_format::constants::{LogFileMode, PointerSize};
use etl_format::read::{Options, Trace};
use etl_format::write::record::PerfInfo;
use etl_format::write::{File, FileHeader, Session, SessionConfig};

/// First and last timestamp.
type Span = (Option<i64>, Option<i64>);

/// A trace of two processors with many buffers of each. The second one is slower.
fn trace(mode: LogFileMode) -> Vec<u8> {
    let header = FileHeader {
        timestamp: 1_000,
        perf_freq: 10_000_000,
        start_time: 132_000_000_000_000_000,
        buffer_size: 1 << 12,
        processors: 2,
        mode,
        ..FileHeader::new()
    };
    let file = File::new(Cursor::new(Vec::new()));
    let mut session = Session::create(file, SessionConfig::new(header)).unwrap();
    for number in 0..200_i64 {
        let record = PerfInfo {
            pointer_size: PointerSize::P8,
            version: 2,
            hook: 0x0f43,
            timestamp: 2_000 + number,
            pebs_index: None,
            counters: &[],
            payload: &[0; 400],
        };
        session.write(u16::from(number % 3 == 0), &record).unwrap();
    }
    session.close(None).unwrap().0.into_inner().into_inner()
}

/// The trace without some of its buffers, and the times in which they were written according to
/// those that are left: of each processor the neighbours.
fn without(mut bytes: Vec<u8>, missing: &[usize]) -> (Vec<u8>, Vec<Span>) {
    let buffers = Trace::open(bytes.as_slice(), &Options::default()).unwrap().buffers().to_vec();
    let mut left = buffers.clone();
    for &index in missing.iter().rev() {
        let buffer = &buffers[index];
        let start = buffer.offset as usize;
        bytes.drain(start..start + buffer.stored as usize);
        left.remove(index);
    }
    let neighbours = missing.iter().map(|&index| {
        let number = buffers[index].sequence_number;
        let of = |processor| left.iter().skip(1).filter(move |b| b.processor == processor);
        let before = |processor| {
            let earlier = of(processor).filter(|b| b.sequence_number < number);
            earlier.map(|b| b.first_timestamp).max()
        };
        let after = |processor| {
            let later = of(processor).filter(|b| b.sequence_number > number);
            later.map(|b| b.first_timestamp).min()
        };
        let to = after(0).zip(after(1)).map(|(a, b)| a.max(b));
        (before(0).zip(before(1)).map(|(a, b)| a.min(b)), to)
    });
    let neighbours = neighbours.collect();
    (bytes, neighbours)
}

fn gaps(bytes: &[u8]) -> Vec<Span> {
    let mut recording = Recording::open([(bytes, "made")]).unwrap();
    let machine = Analysis::new().run(&mut recording, &mut ()).unwrap();
    let losses = machine.losses().iter().filter(|loss| loss.what == LossKind::BuffersMissing);
    losses.map(|loss| (loss.from, loss.to)).collect()
}

#[test]
fn missing_numbers_of_a_relogged_file_are_losses_between_their_neighbours() {
    let whole = trace(LogFileMode::RELOG | LogFileMode::SEQUENTIAL);
    assert_eq!(gaps(&whole), []);
    for missing in [vec![1], vec![6], vec![5, 9, 14]] {
        let (bytes, expected) = without(whole.clone(), &missing);
        assert_eq!(gaps(&bytes), expected, "{missing:?}");
    }
    let (bytes, expected) = without(whole, &[9]);
    assert!(matches!(expected[..], [(Some(from), Some(to))] if from < to));
    assert_eq!(gaps(&bytes), expected);
}

#[test]
fn missing_numbers_of_a_file_of_the_kernel_are_no_losses() {
    let (bytes, _) = without(trace(LogFileMode::SEQUENTIAL), &[6]);
    assert_eq!(gaps(&bytes), []);
}
