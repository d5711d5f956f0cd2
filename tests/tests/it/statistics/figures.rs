//! Figures of a trace.

use std::collections::BTreeMap;

use etl_format::compress::Effort;
use etl_format::constants::{CompressionFormat, hook};
use etl_format::read::{Options, Order, Record, Records, Trace};
use etl_format::rewrite::repack::Repacker;
use etl_format::write::BufferCompressor;
use etl_schema::providers::{CLR_RUNDOWN, CLR_RUNTIME};

/// Number and bytes of some records.
type Counts = BTreeMap<String, (u64, u64)>;

/// Figures of a trace by name.
pub fn figures(stored: &[u8]) -> BTreeMap<String, f64> {
    let mut plain = Vec::new();
    let options = Options::default();
    let bytes = if Repacker::decompress().run(stored, &mut plain).is_ok() {
        &plain
    } else {
        stored
    };
    let mut records = Records::stream(bytes, &options).unwrap();
    let buffer_size = f64::from(records.header().buffer_size);
    let (mut all, mut kinds, mut groups) = ((0, 0), Counts::new(), Counts::new());
    while let Some(record) = records.next_record().unwrap() {
        let len = (record.bytes().len() as u64).next_multiple_of(8);
        let kind = kinds.entry(record.kind().to_string()).or_default();
        let group = groups.entry(group(&record)).or_default();
        for (count, bytes) in [&mut all, kind, group] {
            (*count, *bytes) = (*count + 1, *bytes + len);
        }
    }
    let mut trace = Trace::open(bytes, &options).unwrap();
    let buffers = trace.buffers().len() as f64;
    let used: u64 = trace.buffers().iter().map(|b| u64::from(b.fill)).sum();
    let mut packed = Vec::new();
    let compressor = BufferCompressor::new(CompressionFormat::XPRESS, Effort::Default).unwrap();
    Repacker::compress(compressor)
        .run(bytes, &mut packed)
        .unwrap();
    let (count, size) = (all.0 as f64, all.1 as f64);
    let mut figures = BTreeMap::from([
        ("records".to_owned(), count),
        ("bytes of a record, on average".to_owned(), size / count),
        ("buffers".to_owned(), buffers),
        ("KiB of a buffer".to_owned(), buffer_size / 1024.0),
        (
            "fill of a buffer, %".to_owned(),
            100.0 * used as f64 / (buffers * buffer_size),
        ),
        (
            "compressed to, % of the used bytes".to_owned(),
            100.0 * packed.len() as f64 / used as f64,
        ),
    ]);
    for (name, (count_of, bytes_of)) in kinds.into_iter().chain(groups) {
        figures.insert(
            format!("{name}, % of records"),
            100.0 * count_of as f64 / count,
        );
        figures.insert(
            format!("{name}, bytes on average"),
            bytes_of as f64 / count_of as f64,
        );
    }
    let gaps = gaps(&mut trace);
    for (name, share) in [("median", 0.5), ("90th percentile", 0.9)] {
        let at = ((gaps.len() - 1) as f64 * share) as usize;
        figures.insert(
            format!("time to the next record of a processor, {name}, µs"),
            gaps[at],
        );
    }
    figures
}

/// What a record is about.
fn group(record: &Record<'_>) -> String {
    let group = match (record.provider(), record.hook()) {
        (_, Some(hook::SAMPLE)) => "samples",
        (_, Some(hook)) if hook >> 8 == hook::STACK >> 8 => "stacks of the kernel",
        (_, Some(hook)) if hook >> 8 == 0x14 => "images",
        (_, Some(hook)) if hook >> 8 == 0x03 => "processes",
        (_, Some(hook)) if hook >> 8 == 0x05 => "threads",
        (_, Some(hook)) if hook >> 8 == 0x04 => "files",
        (_, Some(hook)) if hook >> 8 == 0x0b => "configuration",
        (_, Some(_)) => "other events of the kernel",
        (Some(CLR_RUNTIME), _) if record.descriptor().is_some_and(|d| d.id == 82) => "CLR stacks",
        (Some(CLR_RUNTIME), _) => "CLR runtime",
        (Some(CLR_RUNDOWN), _) => "CLR rundown",
        _ => "others",
    };
    group.to_owned()
}

/// Microseconds between each record and the next one of its processor, in order of size.
fn gaps(trace: &mut Trace<&[u8]>) -> Vec<f64> {
    let ticks = trace.clock().frequency as f64;
    let mut records = trace.records(Order::Time).unwrap();
    let (mut last, mut gaps) = (BTreeMap::new(), Vec::new());
    while let Some(record) = records.next_record().unwrap() {
        if let Some(before) = last.insert(record.processor(), record.timestamp()) {
            gaps.push(record.timestamp().saturating_since(before) as f64 * 1e6 / ticks);
        }
    }
    gaps.sort_by(f64::total_cmp);
    gaps
}
