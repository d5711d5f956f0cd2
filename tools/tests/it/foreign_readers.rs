//! Reads the output of every operation and of every mode of the session writer with other projects'
//! readers.

use std::cell::RefCell;
use std::path::PathBuf;
use std::rc::Rc;

use etl_events::Subject;
use etl_format::compress::Effort;
use etl_format::constants::{ClockType, CompressionFormat, LogFileMode};
use etl_format::read::{Options, Order, Trace};
use etl_format::rewrite::merge::{Allow, Merger};
use etl_format::rewrite::repack::Repacker;
use etl_format::rewrite::repair::Repairer;
use etl_format::write::record::Event;
use etl_format::write::{BufferCompressor, Resume, Session, SessionConfig, Style};
use etl_format::{EventDescriptor, FileHeader, FileTime, Guid, Ticks};
use etl_test_support::{foreign, needs, trace};
use etl_tools::Compression;
use etl_tools::scrub::{Lengths, Mask, Policy, Scrubber};
use etl_tools::slice::Slicer;

fn compressor() -> BufferCompressor {
    BufferCompressor::new(CompressionFormat::XPRESS, Effort::Default).unwrap()
}

/// The number of records of a trace, and of those after buffer 0.
fn counts(file: &[u8]) -> (u64, u64) {
    let mut trace = Trace::open(file, &Options::default()).unwrap();
    let mut records = trace.records(Order::Time).unwrap();
    let (mut all, mut after) = (0, 0);
    while let Some(record) = records.next_record().unwrap() {
        all += 1;
        after += u64::from(record.location().buffer_offset != 0);
    }
    (all, after)
}

/// Compares the numbers of records with `dissect.etl`, and for uncompressed files without buffer 0
/// with `etl-parser`.
fn both_read(directory: &str, files: Vec<(String, Vec<u8>)>) {
    let scratch = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join(directory);
    std::fs::create_dir_all(&scratch).unwrap();
    let mut written = Vec::new();
    for (name, file) in &files {
        let path = scratch.join(format!("{name}.etl"));
        std::fs::write(&path, file).unwrap();
        written.push(path);
    }
    let answers = foreign("dissect_counts.py", &written);
    for (answer, (name, file)) in answers.iter().zip(&files) {
        // The header also counts overwritten buffers: after the last one, dissect.etl misses them.
        let trace = Trace::open(&file[..], &Options::default()).unwrap();
        let wrapped = u64::from(trace.header().buffers_written) > trace.buffers().len() as u64;
        let read = if wrapped { "before" } else { "records" };
        assert_eq!(
            answer[read].as_u64(),
            Some(counts(file).0),
            "{name}: {answer}"
        );
    }
    let plain = |file: &[u8]| {
        let trace = Trace::open(file, &Options::default()).unwrap();
        // etl-parser reads no traces of Windows 7 or older, and no buffer 0 without saved offset.
        let header = trace.header();
        !header.mode.has(LogFileMode::COMPRESSED)
            && (header.os_major, header.os_minor) >= (6, 2)
            && u32::from_le_bytes(file[4..8].try_into().unwrap()) != 0
    };
    let plain: Vec<usize> = (0..files.len()).filter(|&i| plain(&files[i].1)).collect();
    assert!(!plain.is_empty());
    let paths: Vec<PathBuf> = plain.iter().map(|&i| written[i].clone()).collect();
    let answers = foreign("etl_parser_counts.py", &paths);
    for (answer, &i) in answers.iter().zip(&plain) {
        let (name, file) = &files[i];
        assert_eq!(
            answer["records"].as_u64(),
            Some(counts(file).1),
            "{name}: {answer}"
        );
    }
}

/// The outputs of every operation on a trace.
fn outputs(file: &[u8]) -> Vec<(String, Vec<u8>)> {
    let open = || Trace::open(file, &Options::salvage()).unwrap();
    let mut out = Vec::new();
    for compress in [false, true] {
        let mut add = |name: &str, file: Vec<u8>| {
            out.push((
                format!("{name}-{}", if compress { "packed" } else { "plain" }),
                file,
            ));
        };
        let compressor = || compress.then(compressor);
        let compression = compress.then(Compression::default);
        for keep_state in [true, false] {
            let start = open().clock().start_timestamp;
            let select = |record: &etl_format::read::Record<'_>, _: &Subject| {
                record.timestamp().saturating_since(start) % 3 != 1
            };
            let slicer = Slicer::new().compression(compression);
            let slicer = if keep_state {
                slicer
            } else {
                slicer.without_state()
            };
            let cut = slicer.run(&mut open(), select, Vec::new()).unwrap().output;
            add(if keep_state { "sliced" } else { "cut" }, cut);
        }
        for lengths in [Lengths::Keep, Lengths::Free] {
            let scrubber = Scrubber::new(Mask::new(b"salt"))
                .policy(Policy::strict())
                .secrets(["windows"])
                .lengths(lengths)
                .compression(compression);
            let made = scrubber.run(&mut open(), Vec::new()).unwrap().output;
            add(&format!("scrubbed-{lengths:?}"), made);
        }
        let merger = || Merger::new().allow(Allow::ALL).compress(compressor());
        let one = merger().run(vec![file], Vec::new()).unwrap().output;
        let two = merger().run(vec![file, &one], Vec::new()).unwrap().output;
        add("merged", one);
        add("merged-twice", two);
        let broken = &file[..file.len() - file.len() / 3];
        let repaired = Repairer::new()
            .compress(compressor())
            .run(broken, Vec::new())
            .unwrap()
            .output;
        add("repaired", repaired);
        let mut repacked = Vec::new();
        let repacker = compressor().map_or_else(Repacker::decompress, Repacker::compress);
        repacker.run(file, &mut repacked).unwrap();
        add("repacked", repacked);
    }
    out
}

#[needs(trace = "etl-parser/AMSITrace.etl", python)]
#[test]
fn other_readers_read_operations_on_a_session() {
    let path = trace("etl-parser/AMSITrace.etl");
    both_read("dissected-session", outputs(&std::fs::read(path).unwrap()));
}

#[needs(trace = "perfview/SelfDescribingSingleEvent.etl", python)]
#[test]
fn other_readers_read_operations_on_a_compressed_trace() {
    let path = trace("perfview/SelfDescribingSingleEvent.etl");
    both_read("dissected-packed", outputs(&std::fs::read(path).unwrap()));
}

fn event(number: u32, timestamp: i64, payload: &[u8]) -> Event<'_> {
    Event::new(
        Guid::new(1, 2, 3, [4; 8]),
        EventDescriptor {
            id: 1,
            ..EventDescriptor::default()
        },
        timestamp,
    )
    .process(4, number)
    .payload(payload)
}

/// The files of a session of some mode; several for NEWFILE.
fn session(mode: LogFileMode, clock: u32, style: Style) -> Vec<Vec<u8>> {
    let header = FileHeader {
        timestamp: Ticks::new(1_000),
        start_time: FileTime::new(132_000_000_000_000_000),
        buffer_size: 0x1000,
        processors: 3,
        mode: mode | LogFileMode::USE_KBYTES_FOR_SIZE,
        // In KB: a few buffers for those that wrap and roll.
        maximum_file_size: match () {
            () if mode.has(LogFileMode::CIRCULAR) || mode.has(LogFileMode::NEWFILE) => 20,
            () if mode.has(LogFileMode::PREALLOCATE) => 100,
            () => 0,
        },
        clock_type: ClockType(clock),
        ..FileHeader::new()
    };
    let mut config = SessionConfig::new(header);
    config.header.set_log_version();
    config.style = style;
    config.flush_ticks = 700;
    if mode.has(LogFileMode::COMPRESSED) {
        config.compressor = Some(compressor());
    }
    let begin = |config: SessionConfig| Session::in_memory(config).unwrap();
    let feed = |session: &mut Session<Vec<u8>>, from: u32| {
        for number in from..from + 60 {
            let payload = vec![7; 40 + (number as usize * 37) % 700];
            let record = event(number, 2_000 + i64::from(number) * 20, &payload);
            session.write((number % 3) as u16, &record).unwrap();
        }
        session.lose_events(1, 2).unwrap();
    };
    let mut session = begin(config.clone());
    let files: Rc<RefCell<Vec<Vec<u8>>>> = Rc::default();
    let done = Rc::clone(&files);
    session.set_next_file(Box::new(move |medium, _| {
        done.borrow_mut().push(std::mem::take(medium));
        Ok(())
    }));
    feed(&mut session, 0);
    let mut last = session.close(None).unwrap().output;
    if mode.has(LogFileMode::APPEND) {
        let trace = Trace::open(&last[..], &Options::default()).unwrap();
        let resume = Resume {
            at: last.len() as u64,
            buffers: trace.header().buffers_written,
            next_sequence: trace.buffers().len() as i64,
            last_flush: Ticks::new(2_000 + 60 * 20),
        };
        config.header.events_lost = trace.header().events_lost;
        let mut session = Session::append(last, config, resume).unwrap();
        feed(&mut session, 60);
        last = session.close(None).unwrap().output;
    }
    let mut files = files.take();
    files.push(last);
    files
}

#[needs(python)]
#[test]
fn other_readers_read_every_mode_of_the_writer() {
    let mut files = Vec::new();
    for (name, mode) in [
        ("sequential", LogFileMode::SEQUENTIAL),
        ("circular", LogFileMode::CIRCULAR),
        ("newfile", LogFileMode::NEWFILE),
        (
            "preallocated",
            LogFileMode::SEQUENTIAL | LogFileMode::PREALLOCATE,
        ),
        ("append", LogFileMode::APPEND),
        (
            "one-lane",
            LogFileMode::SEQUENTIAL | LogFileMode::NO_PER_PROCESSOR_BUFFERING,
        ),
        ("packed", LogFileMode::SEQUENTIAL | LogFileMode::COMPRESSED),
        (
            "packed-newfile",
            LogFileMode::NEWFILE | LogFileMode::COMPRESSED,
        ),
    ] {
        for clock in 1..=3 {
            for (number, file) in session(mode, clock, Style::Kernel).into_iter().enumerate() {
                files.push((format!("{name}-clock{clock}-{number}"), file));
            }
        }
    }
    for (name, style) in [
        ("legacy", Style::LegacyKernel),
        (
            "relogger",
            Style::Relogger {
                now: FileTime::new(132_000_000_000_000_000),
            },
        ),
    ] {
        files.push((
            name.to_owned(),
            session(LogFileMode::SEQUENTIAL, 1, style).remove(0),
        ));
    }
    assert!(files.len() > 30);
    both_read("dissected-modes", files);
}
