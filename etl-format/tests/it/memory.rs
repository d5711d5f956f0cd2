//! The memory of a reader in time order, compared with its report.

use std::cell::Cell;
use std::io;

use crate::common::packed::xpress;
use crate::common::{File, run, system};
use etl_format::read::{Options, Order, OrderCheck, Source, Trace};
use etl_format::rewrite::merge::Merger;
use etl_format::write::Output;

thread_local! {
    static LIVE: Cell<usize> = const { Cell::new(0) };
    static PEAK: Cell<usize> = const { Cell::new(0) };
}

/// Counts the memory of one read. Like the memory of a file reader, it is never freed while in use.
#[derive(Default)]
struct Counted(Vec<u8>, usize);

impl AsRef<[u8]> for Counted {
    fn as_ref(&self) -> &[u8] {
        &self.0[..self.1]
    }
}

impl Drop for Counted {
    fn drop(&mut self) {
        LIVE.set(LIVE.get() - self.0.len());
    }
}

struct Counting<'a>(&'a [u8]);

impl Source for Counting<'_> {
    type Block = Counted;

    fn read(&mut self, offset: u64, len: usize, block: &mut Counted) -> io::Result<()> {
        let rest = self.0.get(offset as usize..).unwrap_or_default();
        let bytes = &rest[..len.min(rest.len())];
        if block.0.len() < bytes.len() {
            LIVE.set(LIVE.get() + bytes.len() - block.0.len());
            block.0.resize(bytes.len(), 0);
        }
        block.0[..bytes.len()].copy_from_slice(bytes);
        block.1 = bytes.len();
        PEAK.set(PEAK.get().max(LIVE.get()));
        Ok(())
    }

    fn size(&self) -> Option<u64> {
        Some(self.0.len() as u64)
    }
}

/// Peak memory of reading in time order, and the reader's report of it.
fn peak(bytes: &[u8], order_check: OrderCheck) -> (usize, u64) {
    let mut trace = Trace::open(
        Counting(bytes),
        &Options {
            order_check,
            ..Options::default()
        },
    )
    .unwrap();
    PEAK.set(LIVE.get());
    let mut reader = trace.records(Order::Time).unwrap();
    while reader.next_record().unwrap().is_some() {}
    (PEAK.get(), reader.report().held)
}

#[test]
fn reader_holds_one_buffer_per_processor() {
    let mut file = File::new(0x1_0000);
    for round in 0..40 {
        for cpu in 0..4 {
            file = file.buffer(cpu, &run(1000 + round * 100, 50));
        }
    }
    let bytes = file.bytes();
    for (order, each) in [(OrderCheck::FirstRecord, 1), (OrderCheck::Lookahead, 2)] {
        let (peak, held) = peak(&bytes, order);
        assert_eq!(held, each * 4 * (0x1_0000 + 50 * 16), "{order:?}");
        // Vectors grow in steps.
        assert!(
            peak as u64 <= each * 4 * (0x1_0000 + 64 * 16),
            "{order:?}: {peak:#x}"
        );
    }
}

#[test]
fn small_buffer_does_not_keep_the_memory_of_a_large_one() {
    // Each large buffer is followed by a small one that stays open to the end.
    let mut file = File::new(0x10_0000);
    let large = system(true, 0x0f01, 0, &[7; 0xf000]);
    for i in 0..50i64 {
        let mut record = large.clone();
        record[0x10..0x18].copy_from_slice(&(1000 + i * 10).to_le_bytes());
        file = file.buffer(i as u16 * 2, &vec![record; 8]);
        let small =
            [1005 + i * 10, 1_000_000].map(|timestamp| system(true, 0x0f01, timestamp, b""));
        file = file.buffer(i as u16 * 2 + 1, &small);
    }
    let bytes = file.compressed(3, xpress).bytes();
    let (peak, held) = peak(&bytes, OrderCheck::FirstRecord);
    assert!(held < 0x20_0000, "{held:#x}");
    assert!(peak < 0x20_0000, "{peak:#x}");
}

/// Takes what is written and keeps nothing of it.
struct Nowhere(u64);

impl Output for Nowhere {
    fn write_at(&mut self, at: u64, bytes: &[u8]) -> etl_format::Result<()> {
        self.0 = self.0.max(at + bytes.len() as u64);
        Ok(())
    }

    fn is_seekable(&self) -> bool {
        true
    }

    fn flush(&mut self) -> etl_format::Result<()> {
        Ok(())
    }
}

#[test]
fn merge_holds_one_buffer_per_processor_of_each_input() {
    let input = |rounds: i64| {
        let mut file = File::new(0x1_0000);
        for round in 0..rounds {
            for cpu in 0..4 {
                file = file.buffer(cpu, &run(1000 + round * 100, 50));
            }
        }
        file.bytes()
    };
    // However long the inputs are.
    for rounds in [5, 60] {
        let bytes = input(rounds);
        PEAK.set(LIVE.get());
        let before = LIVE.get();
        let inputs = (0..6).map(|_| Counting(&bytes)).collect();
        let finished = Merger::new().run(inputs, Nowhere(0)).unwrap();
        let output = finished.output;
        let report = finished.report;
        assert_eq!(report.records(), 6 * 4 * 50 * rounds as u64);
        assert!(output.0 > 0x1_0000);
        // And one for looking at every record beforehand.
        let peak = PEAK.get() - before;
        assert!(
            peak <= (6 * 4 + 1) * 0x1_0000,
            "{peak:#x} for {rounds} rounds"
        );
    }
}
