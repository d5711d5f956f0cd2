//! Every small real trace, cut short at every buffer edge and at a thousand places between.

use etl_format::read::{FileOrder, Mode, Options, Trace};
use etl_tests::all_traces;
use rand::{RngExt, SeedableRng};
use rand_chacha::ChaCha8Rng;

/// Larger traces would take minutes.
const SMALL: usize = 2 << 20;
const CUTS: usize = 1000;

/// Where a record stands: buffer, place in it, length, and whether its buffer is compressed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Whole {
    buffer: u64,
    at: u32,
    len: usize,
}

fn records(bytes: &[u8], mode: Mode) -> etl_format::Result<Vec<Whole>> {
    let mut reader = FileOrder::open(bytes, &Options { mode, ..Options::default() })?;
    let mut found = Vec::new();
    while let Some(r) = reader.next_record()? {
        let (buffer, at) = (r.place().buffer_offset, r.place().in_buffer);
        found.push(Whole { buffer, at, len: r.bytes().len() });
    }
    if mode == Mode::Salvage {
        let (before, total) =
            (reader.damage().first().map(|d| d.records_before), found.len() as u64);
        assert!(before.is_none_or(|n| n <= total));
    }
    Ok(found)
}

#[test]
fn a_cut_trace_gives_all_that_is_whole() {
    for path in all_traces() {
        let bytes = std::fs::read(&path).unwrap();
        if bytes.len() > SMALL {
            continue;
        }
        let name = path.display();
        let trace = Trace::open(bytes.as_slice(), &Options::default()).unwrap();
        let buffers = trace.buffers().to_vec();
        let intact = records(&bytes, Mode::Strict).unwrap();

        let mut random = ChaCha8Rng::seed_from_u64(0x0e71_c075);
        let edges = buffers.iter().map(|b| b.offset as usize);
        let cuts: Vec<usize> =
            edges.chain((0..CUTS).map(|_| random.random_range(0..bytes.len()))).collect();
        for cut in cuts {
            let part = &bytes[..cut];
            let error = records(part, Mode::Strict).expect_err("a cut trace is not whole");
            // The fault is met in the buffer that the cut goes through, or at the cut.
            let cut_buffer = buffers.iter().rev().find(|b| b.offset <= cut as u64);
            let from = cut_buffer.map_or(0, |b| b.offset);
            let range = from..=cut as u64;
            assert!(range.contains(&error.offset), "{name} cut at {cut}: {error}");

            // Of an uncompressed buffer every record before the cut is whole. Of a compressed one,
            // what its remaining bytes stand for: at least nothing that is wrong.
            let compressed = |offset| buffers.iter().any(|b| b.offset == offset && b.compressed);
            let whole: Vec<_> = intact
                .iter()
                .copied()
                .filter(|r| {
                    if compressed(r.buffer) {
                        buffers.iter().any(|b| {
                            b.offset == r.buffer && b.offset + u64::from(b.stored) <= cut as u64
                        })
                    } else {
                        r.buffer + u64::from(r.at) + r.len as u64 <= cut as u64
                    }
                })
                .collect();
            match records(part, Mode::Salvage) {
                Ok(saved) => {
                    assert!(saved.starts_with(&whole), "{name} cut at {cut}: lost whole records");
                    assert!(intact.starts_with(&saved), "{name} cut at {cut}: made up records");
                    if !buffers.iter().any(|b| b.compressed) {
                        assert_eq!(saved.len(), whole.len(), "{name} cut at {cut}");
                    }
                }
                // Without its header event a trace is none.
                Err(error) => assert!(whole.is_empty(), "{name} cut at {cut}: {error}"),
            }
        }
    }
}

/// The large compressed trace, at fewer places, in time order as well.
#[test]
fn a_cut_compressed_trace_gives_all_whole_buffers() {
    let Some(path) = etl_tests::trace("perfview/net.4.5.2.x64.etl") else { return };
    let bytes = std::fs::read(path).unwrap();
    let trace = Trace::open(bytes.as_slice(), &Options::default()).unwrap();
    let buffers = trace.buffers().to_vec();
    let intact = records(&bytes, Mode::Strict).unwrap();
    let mut random = ChaCha8Rng::seed_from_u64(7);
    for _ in 0..12 {
        let cut = random.random_range(0x1000..bytes.len());
        assert!(records(&bytes[..cut], Mode::Strict).is_err());
        let saved = records(&bytes[..cut], Mode::Salvage).unwrap();
        assert!(intact.starts_with(&saved), "cut at {cut}");
        let end = |offset: u64| {
            buffers.iter().any(|b| b.offset == offset && offset + u64::from(b.stored) <= cut as u64)
        };
        let whole = intact.iter().filter(|r| end(r.buffer)).count();
        assert!(saved.len() >= whole, "cut at {cut}: {} of {whole}", saved.len());
        let mut trace = Trace::open(&bytes[..cut], &Options::salvage()).unwrap();
        let mut ordered = trace.ordered().unwrap();
        let (mut last, mut count) = (i64::MIN, 0);
        while let Some(r) = ordered.next_record().unwrap() {
            assert!(r.stamp() >= last);
            last = r.stamp();
            count += 1;
        }
        assert_eq!(count, saved.len());
    }
}
