//! Truncates every small real trace at every buffer and at a thousand other offsets.

use chacha20::ChaCha8Rng;
use etl_format::constants::LogFileMode;
use etl_format::read::{Mode, Options, Order, PipeSource, Records, Source, Trace};
use etl_format::{ErrorKind, Ticks};
use etl_test_support::{all_traces, needs, trace};
use rand::{RngExt, SeedableRng};

/// Larger traces would take minutes.
const SMALL: usize = 2 << 20;
const CUTS: usize = 1000;

/// The place of a record: its buffer, its offset there, and its length.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Whole {
    buffer: u64,
    at: u32,
    len: usize,
}

fn records(bytes: &[u8], mode: Mode) -> etl_format::Result<Vec<Whole>> {
    let mut reader = Records::stream(
        bytes,
        &Options {
            mode,
            ..Options::default()
        },
    )?;
    let mut found = Vec::new();
    while let Some(r) = reader.next_record()? {
        let (buffer, at) = (r.location().buffer_offset, r.location().in_buffer);
        found.push(Whole {
            buffer,
            at,
            len: r.bytes().len(),
        });
    }
    if mode == Mode::Salvage {
        let (before, total) = (
            reader.damage().first().map(|d| d.records_before),
            found.len() as u64,
        );
        assert!(before.is_none_or(|n| n <= total));
    }
    Ok(found)
}

/// Whether a cut between buffers is an error: a circular file may end after any buffer.
fn shows_every_cut(bytes: &[u8]) -> bool {
    let trace = Trace::open(bytes, &Options::default()).unwrap();
    !trace.header().mode.has(LogFileMode::CIRCULAR)
}

#[needs(traces)]
#[test]
fn salvage_of_a_truncated_trace_returns_all_intact_records() {
    for path in all_traces() {
        let bytes = std::fs::read(&path).unwrap();
        if bytes.len() > SMALL || !shows_every_cut(&bytes) {
            continue;
        }
        let name = path.display();
        let trace = Trace::open(bytes.as_slice(), &Options::default()).unwrap();
        let buffers = trace.buffers().to_vec();
        let intact = records(&bytes, Mode::Strict).unwrap();

        let mut random = ChaCha8Rng::seed_from_u64(0x0e71_c075);
        let edges = buffers.iter().map(|b| b.offset as usize);
        let cuts: Vec<usize> = edges
            .chain((0..CUTS).map(|_| random.random_range(0..bytes.len())))
            .collect();
        for cut in cuts {
            let part = &bytes[..cut];
            assert!(records(part, Mode::Strict).is_err(), "{name} cut at {cut}");

            // Every record before the cut is intact in an uncompressed buffer. A compressed buffer
            // may have further intact records.
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
                    assert!(
                        saved.starts_with(&whole),
                        "{name} cut at {cut}: lost intact records"
                    );
                    assert!(
                        intact.starts_with(&saved),
                        "{name} cut at {cut}: invented records"
                    );
                    if !buffers.iter().any(|b| b.compressed) {
                        assert_eq!(saved.len(), whole.len(), "{name} cut at {cut}");
                    }
                }
                // A trace without header event cannot be read.
                Err(error) => assert!(whole.is_empty(), "{name} cut at {cut}: {error}"),
            }
        }
    }
}

#[needs(trace = "perfview/net.4.5.2.x64.etl")]
#[test]
fn salvage_of_a_cut_compressed_trace_returns_all_intact_buffers() {
    let path = trace("perfview/net.4.5.2.x64.etl");
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
            buffers
                .iter()
                .any(|b| b.offset == offset && offset + u64::from(b.stored) <= cut as u64)
        };
        let whole = intact.iter().filter(|r| end(r.buffer)).count();
        assert!(
            saved.len() >= whole,
            "cut at {cut}: {} of {whole}",
            saved.len()
        );
        let mut trace = Trace::open(&bytes[..cut], &Options::salvage()).unwrap();
        let mut ordered = trace.records(Order::Time).unwrap();
        let (mut last, mut count) = (i64::MIN, 0);
        while let Some(r) = ordered.next_record().unwrap() {
            assert!(r.timestamp() >= Ticks::new(last));
            last = r.timestamp().get();
            count += 1;
        }
        assert_eq!(count, saved.len());
    }
}

/// The layout of an intact trace, found in the raw bytes without the reader under test.
struct Layout {
    /// First byte and bytes of each buffer.
    buffers: Vec<(usize, usize)>,
    /// Bytes of the header event before its names.
    header_event: usize,
    /// Minimum bytes of a buffer: its size, or the header of a compressed buffer.
    min_buffer: usize,
}

impl Layout {
    fn of(bytes: &[u8]) -> Self {
        let word = |at: usize| u32::from_le_bytes(bytes[at..at + 4].try_into().unwrap());
        let mut buffers = Vec::new();
        let mut at = 0;
        while at < bytes.len() {
            let len = word(at) as usize;
            assert!(len >= 0x48 && at + len <= bytes.len(), "buffer at {at:#x}");
            buffers.push((at, len));
            at += len;
        }
        let narrow = bytes[0x4a] == 1;
        let (event, compressed) = (0x48 + 0x20, word(0x48 + 0x20 + 0x20) & 0x0400_0000 != 0);
        assert_eq!(
            word(event + 0x24) as usize,
            buffers.len(),
            "the stated count of buffers"
        );
        Layout {
            buffers,
            header_event: 0x20 + if narrow { 0x110 } else { 0x118 },
            min_buffer: if compressed {
                0x48
            } else {
                word(event) as usize
            },
        }
    }

    /// The error of strict mode for the first `cut` bytes: the incomplete structure, its offset,
    /// its size, and the bytes that are left of it.
    fn fault(&self, cut: usize) -> Fault {
        if cut == 0 {
            return Fault {
                offset: 0,
                missing: None,
            };
        }
        let Some(&(start, len)) = self.buffers.iter().rfind(|&&(start, _)| start < cut) else {
            panic!("a trace begins with a buffer");
        };
        let have = cut - start;
        let fault = |offset, what, need| Fault {
            offset: offset as u64,
            missing: Some((what, need as u64, (cut - offset) as u64)),
        };
        if have == len {
            let further = self
                .buffers
                .iter()
                .filter(|&&(start, _)| start >= cut)
                .count();
            fault(
                cut,
                "further buffers that the file header counts",
                further * self.min_buffer,
            )
        } else if have < 0x48 {
            fault(start, "buffer header", 0x48)
        } else if start == 0 && cut < 0x48 + 4 {
            // The first word states the pointer size, which determines the length.
            fault(0x48, "header event", 4)
        } else if start == 0 && cut < 0x48 + self.header_event {
            fault(0x48, "header event", self.header_event)
        } else {
            fault(start, "buffer", len)
        }
    }
}

/// The offset at which reading stops, and the incomplete structure: its name, its size, and its
/// bytes in the file. An empty file has none.
#[derive(Debug, PartialEq, Eq)]
struct Fault {
    offset: u64,
    missing: Option<(&'static str, u64, u64)>,
}

impl Fault {
    fn of(error: &etl_format::Error) -> Self {
        let missing = match error.kind {
            ErrorKind::Truncated { what, need, have } => Some((what, need, have)),
            ErrorKind::NotEtl("it is empty") => None,
            _ => panic!("{error} is no truncation"),
        };
        Fault {
            offset: error.offset,
            missing,
        }
    }
}

/// The number of records that strict mode returns, and the error after them.
fn strict<S: Source>(source: S) -> (u64, Fault) {
    let mut reader = match Records::stream(source, &Options::default()) {
        Ok(reader) => reader,
        Err(error) => return (0, Fault::of(&error)),
    };
    loop {
        match reader.next_record() {
            Ok(Some(_)) => {}
            Ok(None) => panic!("a truncated trace is an error"),
            Err(error) => return (reader.count(), Fault::of(&error)),
        }
    }
}

#[needs(traces)]
#[test]
fn strict_mode_fails_at_the_exact_offset_of_a_cut() {
    for path in all_traces() {
        let bytes = std::fs::read(&path).unwrap();
        if bytes.len() > SMALL || !shows_every_cut(&bytes) {
            continue;
        }
        let name = path.display();
        let layout = Layout::of(&bytes);
        let intact = records(&bytes, Mode::Strict).unwrap();

        let mut random = ChaCha8Rng::seed_from_u64(0x0e71_c075);
        // Offsets near the start and near the end of the header of each buffer.
        let near = |at: usize| [-8, -1, 0, 1, 2, 3, 4, 8].map(|by| at.saturating_add_signed(by));
        let edges = layout.buffers.iter().flat_map(|&(start, _)| {
            near(start)
                .into_iter()
                .chain(near(start + 0x48))
                .filter(|&cut| cut < bytes.len())
        });
        let edges = edges.chain(near(0x48 + layout.header_event));
        let cuts: Vec<usize> = edges
            .chain((0..CUTS).map(|_| random.random_range(0..bytes.len())))
            .collect();
        for cut in cuts {
            let (part, expected) = (&bytes[..cut], layout.fault(cut));
            let before = |&&(start, len): &&(usize, usize)| start + len <= cut;
            let whole = layout.buffers.iter().take_while(before).count();
            let whole: Vec<u64> = layout.buffers[..whole]
                .iter()
                .map(|&(start, _)| start as u64)
                .collect();
            let given = intact.iter().filter(|r| whole.contains(&r.buffer)).count() as u64;
            let found = strict(part);
            assert_eq!(found, (given, expected), "{name} cut at {cut:#x}");
            assert_eq!(
                strict(PipeSource::new(part)),
                found,
                "{name} cut at {cut:#x}, piped"
            );
            let error = Trace::open(part, &Options::default()).expect_err("not whole");
            assert_eq!(
                Fault::of(&error),
                found.1,
                "{name} cut at {cut:#x}, all buffers first"
            );
        }
    }
}
