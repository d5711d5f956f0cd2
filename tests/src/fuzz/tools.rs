//! Targets for operations on whole traces.

use etl_events::Subject;
use etl_format::compress::Effort;
use etl_format::constants::CompressionFormat;
use etl_format::read::{Limits, Mode, Options, Order, OrderCheck, Trace};
use etl_format::rewrite::merge::Merger;
use etl_format::rewrite::repack::Repacker;
use etl_format::rewrite::repair::Repairer;
use etl_format::write::BufferCompressor;
use etl_schema::testing::snapshot::Snapshot;
use etl_tools::diff::{Differ, Ignore};
use etl_tools::scrub::{Action, Category, Mask, Policy, Scrubber};
use etl_tools::slice::Slicer;
use etl_verify::Format;

use super::choice;

const LIMITS: Limits = Limits {
    buffer: 1 << 20,
    held: 64 << 20,
    budget: None,
};

fn strict() -> Options {
    Options {
        limits: LIMITS,
        ..Options::default()
    }
}

fn options() -> Options {
    Options {
        limits: LIMITS,
        ..Options::salvage()
    }
}

fn open(data: &[u8]) -> Option<Trace<&[u8]>> {
    Trace::open(data, &options()).ok()
}

/// Checks that a written trace is valid, and counts its records.
fn sound(bytes: Vec<u8>) -> u64 {
    let strict = Options {
        mode: Mode::Strict,
        order_check: OrderCheck::Scan,
        ..Options::default()
    };
    let mut trace = Trace::open(bytes.as_slice(), &strict).expect("what a tool writes is a trace");
    let mut records = trace.records(Order::Time).expect("in time order");
    let mut count = 0;
    while records.next_record().expect("without damage").is_some() {
        count += 1;
    }
    count
}

/// Merges traces; the first byte selects the number of inputs and the compression.
pub(super) fn merge(data: &[u8]) {
    let (way, rest) = choice(data);
    let inputs: Vec<&[u8]> = match way % 4 {
        0 => vec![data],
        1 => vec![data, data],
        2 => vec![rest, data],
        _ => {
            let (a, b) = rest.split_at(rest.len() / 2);
            vec![a, b]
        }
    };
    let compressor = (way & 0x40 != 0)
        .then(|| BufferCompressor::new(CompressionFormat::XPRESS, Effort::Fast))
        .transpose()
        .expect("a known format");
    let merger = Merger::new().options(options()).compress(compressor);
    match merger.run(inputs, Vec::new()) {
        Ok(merged) => assert!(sound(merged.output) > merged.report.records()),
        Err(error) => assert!(!error.to_string().is_empty()),
    }
}

/// Selects records by timestamp and process.
pub(super) fn slice(data: &[u8]) {
    let Some(mut trace) = open(data) else { return };
    let select = |record: &etl_format::read::Record<'_>, subject: &Subject| {
        record.timestamp().get() % 2 == 0 || subject.processes().any(|p| p.get() % 4 == 1)
    };
    let mut slicer = Slicer::new();
    if data.len().is_multiple_of(3) {
        slicer = slicer.without_state();
    }
    match slicer.run(&mut trace, select, Vec::new()) {
        Ok(slice) => assert!(sound(slice.output) >= slice.report.selected),
        Err(error) => assert!(!error.to_string().is_empty()),
    }
}

pub(super) fn scrub(data: &[u8]) {
    let Some(mut trace) = open(data) else { return };
    let mut policy = Policy::strict().with_field("ExceptionMessage", Action::Drop);
    if data.len().is_multiple_of(2) {
        for category in Category::ALL {
            policy = policy.with(category, Action::Hash);
        }
    }
    let scrubber = Scrubber::new(Mask::new(b"salt"))
        .policy(policy)
        .secrets(["jane", "App"]);
    match scrubber.run(&mut trace, Vec::new()) {
        Ok(scrubbed) => assert!(sound(scrubbed.output) >= scrubbed.report.records),
        Err(error) => assert!(!error.to_string().is_empty()),
    }
}

/// Compares a trace with itself, and with a damaged part of it.
pub(super) fn diff(data: &[u8]) {
    let (Some(mut a), Some(mut b)) = (open(data), open(data)) else {
        return;
    };
    let differ = |ignore: &Ignore| Differ::new().window(8).ignore(ignore.clone());
    let nothing = Ignore::default();
    let done = differ(&nothing).run(&mut a, &mut b, |_| panic!("differs"));
    assert!(done.is_ok_and(|summary| !summary.differs()));
    let (_, half) = data.split_at(data.len() / 4 * 3);
    let mut damaged = data[..data.len() - half.len()].to_vec();
    if let Some(byte) = damaged.last_mut() {
        *byte ^= 0x20;
    }
    let Some(mut b) = open(&damaged) else { return };
    let mut some = Ignore::default();
    for what in ["time", "ids", "addresses"] {
        some.add(what).expect("known");
    }
    for ignore in [&nothing, &some] {
        let mut differences = 0u64;
        if let Ok(summary) = differ(ignore).run(&mut a, &mut b, |_| differences += 1) {
            assert_eq!(
                differences,
                summary.changed + summary.missing + summary.extra
            );
        }
    }
}

pub(super) fn repair(data: &[u8]) {
    match Repairer::new().options(options()).run(data, Vec::new()) {
        Ok(repaired) => {
            assert!(sound(repaired.output) > 0);
            for damage in &repaired.report.damage {
                assert!(!damage.error.to_string().is_empty());
            }
        }
        Err(error) => assert!(!error.to_string().is_empty()),
    }
}

/// Compresses and decompresses a trace: the records stay the same.
pub(super) fn repack(data: &[u8]) {
    let format = [
        CompressionFormat::XPRESS,
        CompressionFormat::LZNT1,
        CompressionFormat::XPRESS_HUFF,
    ][data.len() % 3];
    let compressor = BufferCompressor::new(format, Effort::Fast).expect("a known format");
    let mut packed = Vec::new();
    if Repacker::compress(compressor)
        .options(strict())
        .run(data, &mut packed)
        .is_err()
    {
        let mut plain = Vec::new();
        let _ = Repacker::decompress()
            .options(strict())
            .run(data, &mut plain);
        return;
    }
    let mut plain = Vec::new();
    if Repacker::decompress()
        .options(strict())
        .run(packed.as_slice(), &mut plain)
        .is_err()
    {
        // A plain file cannot hold buffers larger than its header states.
        return;
    }
    let timestamps = |bytes: &[u8]| -> Vec<(i64, Vec<u8>)> {
        // Compression changes how far the reader looks ahead, so only the exact order is the same.
        let exact = Options {
            order_check: OrderCheck::Scan,
            ..options()
        };
        let mut trace = Trace::open(bytes, &exact).expect("a trace");
        let mut records = trace.records(Order::Time).expect("in time order");
        let mut out = Vec::new();
        while let Ok(Some(record)) = records.next_record() {
            // Header events state the compression.
            if record.hook() != Some(etl_format::constants::hook::HEADER) {
                out.push((record.timestamp().get(), record.bytes().to_vec()));
            }
        }
        out
    };
    let (packed, plain) = (timestamps(&packed), timestamps(&plain));
    assert_eq!(packed.len(), plain.len());
    for (number, (packed, plain)) in packed.iter().zip(&plain).enumerate() {
        assert_eq!(packed, plain, "record {number}");
    }
}

/// Renders every record with its fields, as snapshot tests do.
pub(super) fn decode(data: &[u8]) {
    let Some(trace) = open(data) else { return };
    if trace
        .buffers()
        .iter()
        .map(|b| u64::from(b.fill))
        .sum::<u64>()
        > LIMITS.held
    {
        return;
    }
    let one = Snapshot::new().render(data).expect("a trace");
    let two = Snapshot::new()
        .keep_times()
        .keep_ids()
        .keep_addresses()
        .render(data)
        .expect("a trace");
    for text in [&one, &two] {
        let bad = text.chars().find(|c| c.is_control() && *c != '\n');
        assert_eq!(bad, None, "a control character is not escaped");
    }
}

/// Verifies a trace alone and together with itself, and renders the report in each format.
pub(super) fn verify(data: &[u8]) {
    let Some(trace) = open(data) else { return };
    if trace
        .buffers()
        .iter()
        .map(|b| u64::from(b.fill))
        .sum::<u64>()
        > LIMITS.held
    {
        return;
    }
    let report = etl_verify::Verifier::new()
        .verify(data, "fuzz.etl")
        .expect("a trace");
    assert!(!report.text().is_empty());
    let json = serde_json::to_string(&report.json()).expect("a report is JSON");
    assert!(json.len() > 2);
    let together = vec![(data, "a.etl"), (data, "b.etl")];
    let both = etl_verify::Verifier::new()
        .verify_together(together)
        .expect("traces");
    assert!(!both.text().is_empty());
    let reports = [report];
    for format in [Format::Sarif, Format::Junit, Format::Html] {
        assert!(!etl_verify::render(&reports, format).is_empty());
    }
}
