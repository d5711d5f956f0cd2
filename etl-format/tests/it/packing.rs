//! Compression and decompression have the same result, and the same errors, with any number of
//! threads.

use std::cell::RefCell;
use std::io::{self, Cursor, Write};
use std::rc::Rc;

use crate::writing::{START, event};
use etl_format::compress::Effort;
use etl_format::constants::{CompressionFormat, LogFileMode};
use etl_format::read::{Mode, Options, PipeSource, Trace};
use etl_format::rewrite::merge::Merger;
use etl_format::rewrite::repack::{RepackReport, Repacker};
use etl_format::rewrite::repair::Repairer;
use etl_format::write::{BufferCompressor, Session, SessionConfig, SessionSummary, TraceFile};
use etl_format::{FileHeader, FileTime, Ticks};
use proptest::prelude::*;

const FORMATS: [CompressionFormat; 3] = [
    CompressionFormat::XPRESS,
    CompressionFormat::LZNT1,
    CompressionFormat::XPRESS_HUFF,
];

fn compressor(format: CompressionFormat, threads: usize) -> BufferCompressor {
    BufferCompressor::new(format, Effort::Default)
        .unwrap()
        .with_threads(threads)
}

/// Events: processor, ticks since the one before, length, whether it is noise.
type Events = Vec<(u16, i64, usize, bool)>;

fn events(most: usize) -> impl Strategy<Value = Events> {
    prop::collection::vec((0..3_u16, 0..9_i64, 0..860_usize, any::<bool>()), 0..most)
}

fn payload(len: usize, noise: bool, state: &mut u32) -> Vec<u8> {
    let step = |i| {
        *state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        if noise {
            (*state >> 24) as u8
        } else {
            i as u8 & 7
        }
    };
    (0..len).map(step).collect()
}

fn config(mode: LogFileMode, most: u32) -> SessionConfig {
    SessionConfig::new(FileHeader {
        timestamp: Ticks::new(1_000),
        start_time: FileTime::new(START),
        buffer_size: 0x400,
        processors: 3,
        mode: mode | LogFileMode::USE_KBYTES_FOR_SIZE,
        maximum_file_size: most,
        ..FileHeader::new()
    })
}

/// A session whose buffers are compressed, or not with 0 threads; all its files.
fn session(
    mode: LogFileMode,
    most: u32,
    events: &Events,
    threads: usize,
    crash: bool,
) -> (Vec<Vec<u8>>, SessionSummary) {
    let mut config = config(mode, most);
    if threads > 0 {
        config.header.mode = config.header.mode | LogFileMode::COMPRESSED;
        config.compressor = Some(compressor(CompressionFormat::XPRESS, threads));
    }
    let mut session = Session::in_memory(config).unwrap();
    let files: Rc<RefCell<Vec<Vec<u8>>>> = Rc::default();
    if mode.has(LogFileMode::NEWFILE) {
        let done = Rc::clone(&files);
        session.set_next_file(Box::new(move |output, _| {
            done.borrow_mut().push(std::mem::take(output));
            Ok(())
        }));
    }
    let (mut timestamp, mut state) = (1_000, 1);
    for (number, &(processor, ticks, len, noise)) in events.iter().enumerate() {
        timestamp += ticks;
        let payload = payload(len, noise, &mut state);
        session
            .write(processor, &event(number as u32, timestamp, &payload))
            .unwrap();
    }
    let finished = if crash {
        session.abandon()
    } else {
        session.close(None)
    }
    .unwrap();
    let last = finished.output;
    let summary = finished.report;
    files.borrow_mut().push(last);
    (files.take(), summary)
}

fn compressed(
    file: &[u8],
    out: &mut impl Write,
    format: CompressionFormat,
    threads: usize,
) -> etl_format::Result<RepackReport> {
    Repacker::compress(compressor(format, threads)).run(file, out)
}

fn decompressed(file: &[u8], out: &mut impl Write, mode: Mode, threads: usize) -> Outcome {
    let mut watched = Vec::new();
    // As it comes through a pipe.
    let done = Repacker::decompress()
        .options(Options {
            mode,
            threads,
            ..Options::default()
        })
        .on_buffer(|bytes| watched.push(bytes))
        .run(PipeSource::new(file), out);
    (done.map_err(|error| error.to_string()), watched)
}

fn with_threads(threads: usize) -> Options {
    Options {
        threads,
        ..Options::default()
    }
}

/// The result of a run, and the calls of `on_buffer`.
type Outcome = (Result<RepackReport, String>, Vec<u64>);

/// A pipe that takes `most` bytes.
struct Pipe {
    taken: Vec<u8>,
    most: usize,
}

impl Write for Pipe {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let len = bytes.len().min(self.most - self.taken.len());
        if len == 0 && !bytes.is_empty() {
            return Err(io::ErrorKind::StorageFull.into());
        }
        self.taken.extend_from_slice(&bytes[..len]);
        Ok(len)
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(24))]

    #[test]
    fn session_bytes_do_not_depend_on_threads(
        events in events(160),
        mode in prop_oneof![
            Just((LogFileMode::SEQUENTIAL, 0)),
            // Full after a while.
            (3..24_u32).prop_map(|most| (LogFileMode::SEQUENTIAL, most)),
            (3..24_u32).prop_map(|most| (LogFileMode::NEWFILE, most)),
            Just((LogFileMode::SEQUENTIAL | LogFileMode::PREALLOCATE, 16)),
            Just((LogFileMode::SEQUENTIAL | LogFileMode::NO_PER_PROCESSOR_BUFFERING, 0)),
        ],
        crash: bool,
    ) {
        let (mode, most) = mode;
        let alone = session(mode, most, &events, 1, crash);
        for threads in [2, 5] {
            prop_assert!(session(mode, most, &events, threads, crash) == alone, "{} threads", threads);
        }
    }

    #[test]
    fn rewriting_does_not_depend_on_threads(events in events(160), format in prop::sample::select(&FORMATS[..])) {
        let (files, _) = session(LogFileMode::SEQUENTIAL, 0, &events, 0, false);
        let plain = &files[0];
        let mut alone = Vec::new();
        let expected = compressed(plain, &mut alone, format, 1).unwrap();
        let merged = |threads| {
            let compressor = BufferCompressor::new(format, Effort::Fast).unwrap();
            let merger = Merger::new().compress(compressor.with_threads(threads));
            let finished = merger.run(vec![&plain[..], &alone[..]], Vec::new()).unwrap();
            let file = finished.output;
            let report = finished.report;
            (file, report.summary)
        };
        let repaired = |threads| {
            // Its end is cut off.
            let cut = &alone[..alone.len() - alone.len() / 3];
            let finished = Repairer::new().options(with_threads(threads)).run(cut, Vec::new()).ok()?;
            let file = finished.output;
            let report = finished.report;
            Some((file, report.summary, report.damage.len()))
        };
        for threads in [2, 5] {
            let mut out = Vec::new();
            prop_assert_eq!(compressed(plain, &mut out, format, threads).unwrap(), expected.clone());
            prop_assert!(out == alone, "{} threads", threads);
            prop_assert!(merged(threads) == merged(1), "merged by {} threads", threads);
            prop_assert!(repaired(threads) == repaired(1), "repaired by {} threads", threads);
        }
    }

    /// Intact or damaged, in both modes.
    #[test]
    fn decompress_does_not_depend_on_threads(
        events in events(160),
        format in prop::sample::select(&FORMATS[..]),
        damage in prop::collection::vec((any::<prop::sample::Index>(), 1..40_usize, any::<u8>()), 0..4),
        cut in prop::option::of(any::<prop::sample::Index>()),
    ) {
        let (files, _) = session(LogFileMode::SEQUENTIAL, 0, &events, 0, false);
        let mut file = Vec::new();
        compressed(&files[0], &mut file, format, 1).unwrap();
        let sound = damage.is_empty() && cut.is_none();
        for (place, len, byte) in damage {
            let at = place.index(file.len());
            let end = (at + len).min(file.len());
            file[at..end].fill(byte);
        }
        if let Some(cut) = cut {
            file.truncate(cut.index(file.len()));
        }
        for mode in [Mode::Strict, Mode::Salvage] {
            let mut alone = Vec::new();
            let expected = decompressed(&file, &mut alone, mode, 1);
            prop_assert!(!sound || (expected.0.is_ok() && alone == files[0]));
            for threads in [2, 5] {
                let mut out = Vec::new();
                prop_assert_eq!(&decompressed(&file, &mut out, mode, threads), &expected);
                prop_assert!(out == alone, "{} threads", threads);
            }
        }
    }
}

#[test]
fn fill_that_is_too_small_is_corrected_by_any_number_of_threads() {
    let (files, _) = session(LogFileMode::SEQUENTIAL, 0, &Vec::new(), 0, false);
    let mut file = Vec::new();
    compressed(&files[0], &mut file, CompressionFormat::XPRESS, 1).unwrap();
    // Its only buffer is not compressed, and ends with filler.
    file[378..393].fill(1);
    for threads in [1, 2, 5] {
        let mut out = Vec::new();
        let (report, _) = decompressed(&file, &mut out, Mode::Salvage, threads);
        assert_eq!(report.unwrap().used, 512, "{threads} threads");
    }
}

/// A trace large enough for several threads.
fn many() -> Vec<u8> {
    let events = (0..260)
        .map(|n| (n % 3, 7, 300 + usize::from(n) % 400, n % 7 == 0))
        .collect();
    session(LogFileMode::SEQUENTIAL, 0, &events, 0, false)
        .0
        .remove(0)
}

#[test]
fn compress_to_a_full_disk_writes_a_prefix() {
    let plain = many();
    let mut whole = Vec::new();
    compressed(&plain, &mut whole, CompressionFormat::XPRESS, 1).unwrap();
    for threads in [1, 2, 5] {
        for most in (0..whole.len())
            .step_by(whole.len() / 60)
            .chain([whole.len() - 1])
        {
            let mut pipe = Pipe {
                taken: Vec::new(),
                most,
            };
            let error =
                compressed(&plain, &mut pipe, CompressionFormat::XPRESS, threads).unwrap_err();
            assert_eq!(error.code(), "io", "{threads} threads at {most}");
            assert!(pipe.taken == whole[..most], "{threads} threads at {most}");
        }
    }
}

#[test]
fn decompress_to_a_full_disk_writes_a_prefix() {
    let plain = many();
    let mut small = Vec::new();
    compressed(&plain, &mut small, CompressionFormat::XPRESS, 1).unwrap();
    for threads in [1, 2, 5] {
        for most in (0..plain.len())
            .step_by(plain.len() / 60)
            .chain([plain.len() - 1])
        {
            let mut pipe = Pipe {
                taken: Vec::new(),
                most,
            };
            let repacker = Repacker::decompress().options(with_threads(threads));
            let error = repacker.run(&small[..], &mut pipe).unwrap_err();
            assert_eq!(error.code(), "io", "{threads} threads at {most}");
            assert!(pipe.taken == plain[..most], "{threads} threads at {most}");
        }
    }
}

/// Of two faults the first one in the file is returned, although the other one is found first: the
/// end of the file is missing, and a buffer before it, still on its way, does not decompress to the
/// declared size.
#[test]
fn decompress_returns_the_first_of_two_faults() {
    let plain = many();
    let mut small = Vec::new();
    compressed(&plain, &mut small, CompressionFormat::XPRESS, 1).unwrap();
    let buffers = Trace::open(&small[..], &Options::default())
        .unwrap()
        .buffers()
        .to_vec();
    let packed: Vec<_> = buffers.iter().filter(|buffer| buffer.compressed).collect();
    assert!(packed.len() > 40, "enough that threads are at work");
    let bad = packed[packed.len() - 3];
    let records = bad.offset as usize + 0x48..bad.offset as usize + bad.stored as usize;
    small[records.clone()].fill(0xff);
    small[records.start..records.start + 8].fill(0);
    small.truncate(small.len() - 5);
    let outcome = |threads| {
        let mut out = Vec::new();
        let repacker = Repacker::decompress().options(with_threads(threads));
        let error = repacker.run(&small[..], &mut out).unwrap_err();
        assert_eq!(
            (error.code(), error.offset),
            ("compression", bad.offset),
            "{threads} threads"
        );
        out
    };
    let before = buffers
        .iter()
        .filter(|buffer| buffer.offset < bad.offset)
        .count();
    assert!(
        outcome(1) == plain[..before * 0x400],
        "the bytes before it are written"
    );
    for threads in [2, 5, 64, usize::MAX] {
        assert!(outcome(threads) == outcome(1), "{threads} threads");
    }
}

#[test]
fn decompress_writes_the_buffers_before_a_fault() {
    let plain = many();
    let mut cut = plain.clone();
    cut.truncate(plain.len() - 5);
    let outcome = |threads| {
        let mut out = Vec::new();
        let error = compressed(&cut, &mut out, CompressionFormat::XPRESS, threads).unwrap_err();
        (out, error.to_string())
    };
    let alone = outcome(1);
    assert!(!alone.0.is_empty());
    for threads in [2, 5] {
        assert!(outcome(threads) == alone, "{threads} threads");
    }
}

#[test]
fn failing_output_ends_the_session() {
    struct Short(Cursor<Vec<u8>>, usize);
    impl Write for Short {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            if self.0.position() as usize + bytes.len() > self.1 {
                return Err(io::ErrorKind::StorageFull.into());
            }
            self.0.write(bytes)
        }
        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }
    impl io::Seek for Short {
        fn seek(&mut self, to: io::SeekFrom) -> io::Result<u64> {
            self.0.seek(to)
        }
    }
    for threads in [1, 2, 5] {
        let output = TraceFile::new(Short(Cursor::default(), 9_000));
        let mode = LogFileMode::SEQUENTIAL | LogFileMode::COMPRESSED;
        let compressor = compressor(CompressionFormat::XPRESS, threads);
        let mut config = config(mode, 0);
        config.compressor = Some(compressor);
        let mut session = Session::create(output, config).unwrap();
        let mut state = 1;
        let mut write = |session: &mut Session<_>, number: u32| {
            let payload = payload(700, true, &mut state);
            session.write(0, &event(number, 2_000 + i64::from(number), &payload))
        };
        let failed = (0..200).find_map(|number| write(&mut session, number).err());
        assert_eq!(
            failed.expect("the disk is full").code(),
            "io",
            "{threads} threads"
        );
    }
}
