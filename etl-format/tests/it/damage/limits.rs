//! Limits, and errors that stay.

use super::records::with_size;
use super::{SIZE, at, broken};
use crate::common::reading::{file_order, salvage, spots, strict, time_order};
use crate::common::{Buffer, File, HeaderEvent, patch, run};
use etl_format::ErrorKind;
use etl_format::read::{Budget, Limits, Options, Order, Records, Source, Trace};

#[test]
fn buffer_beyond_the_limit_is_an_error_or_damage() {
    let file = File::new(0x1_0000).buffer(0, &run(1000, 3));
    let bytes = file.bytes();
    let limits = Limits {
        buffer: 0x8000,
        ..Limits::default()
    };
    let outcome = file_order(bytes.as_slice(), &Options { limits, ..strict() });
    let error = outcome.end.unwrap_err();
    assert_eq!(
        (error.code(), error.offset, outcome.records.len()),
        ("limit", 0, 0)
    );
    let ErrorKind::Limit { need, limit, .. } = error.kind else {
        panic!("{error}")
    };
    assert_eq!((need, limit), (0x1_0000, 0x8000));
    assert!(Trace::open(bytes.as_slice(), &Options { limits, ..strict() }).is_err());
    let outcome = file_order(
        bytes.as_slice(),
        &Options {
            limits,
            ..Options::salvage()
        },
    );
    assert!(outcome.end.is_ok());
    assert_eq!(outcome.damage[0].1, "limit");
}

#[test]
fn huge_size_of_a_compressed_buffer_loses_that_buffer() {
    let mut file = crate::common::File::new(0x1000);
    file.event.mode = 0x0401_0001;
    let event = HeaderEvent {
        buffers_written: Some(3),
        ..file.event.clone()
    };
    let mut bytes = Buffer::header(0x200, &event, &[]).bytes();
    for i in 0..2 {
        let mut buffer = Buffer::data(0, 0, i + 1, &run(1000 + i * 10, 4));
        buffer.packed = Some(crate::common::packed::xpress(&buffer.records));
        if i == 0 {
            let mut damaged = buffer.bytes();
            patch(&mut damaged, 0, &0x7fff_ffffu32.to_le_bytes());
            bytes.extend(damaged);
        } else {
            bytes.extend(buffer.bytes());
        }
    }
    let outcome = salvage(&bytes);
    assert_eq!(outcome.timestamps(), [900, 1010, 1011, 1012, 1013]);
    assert_eq!(outcome.damage.len(), 1);
}

#[test]
fn held_memory_has_a_limit() {
    let mut file = File::new(0x400);
    for cpu in [0, 1, 2, 0, 1, 2] {
        file = file.buffer(cpu, &run(1000, 4));
    }
    file.buffers[3..]
        .iter_mut()
        .for_each(|b| b.records = crate::common::lay(&run(1004, 4)));
    let bytes = file.bytes();
    let limits = |held| Limits {
        held,
        ..Limits::default()
    };
    // A buffer of each processor, and the places of their records.
    let need = 3 * (0x400 + 4 * 16);
    for options in [strict(), crate::common::reading::heads(Options::salvage())] {
        let outcome = time_order(
            bytes.as_slice(),
            &Options {
                limits: limits(need - 1),
                ..options
            },
        );
        assert_eq!(outcome.end.unwrap_err().code(), "limit");
        let outcome = time_order(
            bytes.as_slice(),
            &Options {
                limits: limits(need),
                ..options
            },
        );
        assert!(outcome.end.is_ok());
        assert_eq!(outcome.order.held, need);
    }
}

#[test]
fn budget_ends_reading_where_it_is_exceeded() {
    let bytes = File::new(0x1_0000)
        .buffer(0, &run(1000, 1))
        .buffer(0, &run(2000, 1))
        .bytes();
    let limits = |used| Limits {
        budget: Some(Budget { bytes: 200, used }),
        ..Limits::default()
    };
    for options in [strict(), Options::salvage()] {
        let little = Options {
            limits: limits(|| 100),
            ..options
        };
        assert!(
            time_order(bytes.as_slice(), &little).end.is_ok(),
            "half of it may be in use"
        );
        let much = Options {
            limits: limits(|| 101),
            ..options
        };
        let error = Trace::open(bytes.as_slice(), &much).unwrap_err();
        assert_eq!((error.code(), error.offset), ("budget", 0));
        assert!(matches!(error.kind, ErrorKind::Budget { bytes: 200 }));
        let mut stream = Records::stream(bytes.as_slice(), &much).unwrap();
        assert_eq!(stream.next_record().unwrap_err().code(), "budget");
        assert_eq!(
            stream.next_record().unwrap_err().code(),
            "budget",
            "it stays"
        );
    }
}

#[test]
fn budget_is_looked_at_inside_a_large_buffer() {
    use std::sync::atomic::{AtomicU64, Ordering};
    static USED: AtomicU64 = AtomicU64::new(0);
    let records = run(1000, 3 * Budget::RECORDS as usize);
    let size = (records.len() * records[0].len() + 0x1000).next_multiple_of(0x1000) as u32;
    let bytes = File::new(size).buffer(0, &records).bytes();
    let budget = Some(Budget {
        bytes: 2,
        used: || USED.load(Ordering::Relaxed),
    });
    let limits = Limits {
        budget,
        ..Limits::default()
    };
    let mut trace = Trace::open(bytes.as_slice(), &Options { limits, ..strict() }).unwrap();
    let mut reader = trace.records(Order::Time).unwrap();
    for _ in 0..100 {
        assert!(reader.next_record().unwrap().is_some());
    }
    USED.store(100, Ordering::Relaxed);
    let error = loop {
        match reader.next_record() {
            Ok(record) => assert!(record.is_some()),
            Err(error) => break error,
        }
    };
    assert_eq!((error.code(), reader.count()), ("budget", Budget::RECORDS));
}

#[test]
fn error_is_returned_again() {
    let bytes = with_size(0);
    let mut trace =
        Trace::open(bytes.as_slice(), &crate::common::reading::heads(strict())).unwrap();
    let mut reader = trace.records(Order::Time).unwrap();
    let first = loop {
        match reader.next_record() {
            Ok(record) => assert!(record.is_some()),
            Err(error) => break error,
        }
    };
    assert_eq!(first.offset, at(2, 1) as u64);
    assert_eq!(
        reader.count(),
        6,
        "all that is due before, and the sound record of the buffer"
    );
    assert_eq!(
        reader.next_record().unwrap_err().to_string(),
        first.to_string()
    );
}

#[test]
fn trace_reports_damaged_buffers_and_readers_all_damage() {
    let bytes = broken(|b| {
        b[3 * SIZE..4 * SIZE].fill(0);
        patch(b, at(1, 1), &[1, 1, 1, 1]);
    });
    let mut trace = Trace::open(bytes.as_slice(), &Options::salvage()).unwrap();
    assert_eq!(spots(trace.damage()), [(0xc00..0x1000, "invalid", 0, 0)]);
    let all = [
        (at(1, 1) as u64..at(1, 2) as u64, "invalid", 2, 18),
        (0xc00..0x1000, "invalid", 8, 12),
    ];
    let mut reader = trace.records(Order::File).unwrap();
    reader
        .for_each(|_| -> etl_format::Result<()> { Ok(()) })
        .unwrap();
    assert_eq!(spots(reader.damage()), all);
    let mut reader = trace.records(Order::Time).unwrap();
    reader
        .for_each(|_| -> etl_format::Result<()> { Ok(()) })
        .unwrap();
    assert_eq!(spots(reader.damage()), all);
    assert!(reader.next_record().unwrap().is_none());
    assert_eq!(spots(reader.damage()), all, "the end stays the end");
}

/// Counts the bytes that are read from it.
struct Counting<'s> {
    bytes: &'s [u8],
    read: u64,
}

impl Source for Counting<'_> {
    type Block = Vec<u8>;

    fn read(&mut self, offset: u64, len: usize, block: &mut Vec<u8>) -> std::io::Result<()> {
        let from = self.bytes.len().min(offset as usize);
        let to = self.bytes.len().min(from + len);
        self.read += (to - from) as u64;
        block.clear();
        block.extend_from_slice(&self.bytes[from..to]);
        Ok(())
    }

    fn size(&self) -> Option<u64> {
        Some(self.bytes.len() as u64)
    }
}

#[test]
fn buffers_that_state_a_large_size_are_not_read_whole() {
    const LARGE: u32 = 16 << 20;
    let mut file = File::new(LARGE);
    file.event.mode = 0x0401_0001;
    file.event.log = (2, 0);
    let event = HeaderEvent {
        buffers_written: Some(2_001),
        ..file.event.clone()
    };
    let mut bytes = Buffer::header(0x200, &event, &[]).bytes();
    for number in 1..=2_000 {
        let mut buffer = Buffer::data(80, 0, number, &[]);
        buffer.packed = Some(vec![0; 8]);
        buffer.fill = Some(80);
        let mut buffer = buffer.bytes();
        if number % 2 == 0 {
            patch(&mut buffer, 0, &(LARGE - 81).to_le_bytes());
        }
        bytes.extend(buffer);
    }
    let mut source = Counting {
        bytes: &bytes,
        read: 0,
    };
    let options = crate::common::reading::heads(Options::salvage());
    assert_eq!(
        Trace::open(&mut source, &options).unwrap().damage().len(),
        1_000
    );
    assert!(
        source.read < 200 * bytes.len() as u64,
        "{} of {}",
        source.read,
        bytes.len()
    );
}
