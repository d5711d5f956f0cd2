//! The session writer, against a naive reader and against the read half.

use std::cell::RefCell;
use std::rc::Rc;

use crate::writing::naive::{self, Found, buffers, i64_at, u32_at};
use crate::writing::{START, event};
use etl_format::compress::Effort;
use etl_format::constants::{BufferFlags, ClockType, CompressionFormat, LogFileMode, hook};
use etl_format::read::{Options, Order, Trace};
use etl_format::write::{BufferCompressor, Output, Pipe, Resume, Session, SessionConfig, Style};
use etl_format::{FileHeader, FileTime, Guid, Ticks};
use proptest::prelude::*;

fn header(buffer_size: u32, processors: u32, mode: LogFileMode) -> FileHeader {
    FileHeader {
        timestamp: Ticks::new(1_000),
        start_time: FileTime::new(START),
        buffer_size,
        processors,
        mode,
        logger_name: "probe".encode_utf16().collect(),
        log_file_name: "C:\\probe.etl".encode_utf16().collect(),
        ..FileHeader::new()
    }
}

/// Timestamp, processor and number of the events, as the read half returns them in time order.
fn ordered(file: &[u8]) -> Vec<(i64, u16, u32)> {
    let mut trace = Trace::open(file, &Options::default()).unwrap();
    let mut records = trace.records(Order::Time).unwrap();
    let mut out = Vec::new();
    while let Some(record) = records.next_record().unwrap() {
        if record.is_event() {
            let thread = record.thread_id().unwrap().get();
            out.push((record.timestamp().get(), record.processor(), thread));
        }
    }
    out
}

#[derive(Clone, Debug)]
enum Step {
    Event {
        processor: u16,
        ticks: i64,
        len: usize,
    },
    LoseEvents {
        processor: u16,
        count: u64,
    },
    LoseBuffer {
        processor: u16,
    },
    Seal {
        processor: u16,
    },
    Flush,
}

fn steps(processors: u16) -> impl Strategy<Value = Vec<Step>> {
    let processor = 0..processors;
    let step = prop_oneof![
        12 => (processor.clone(), 0..20_i64, 0..400_usize)
            .prop_map(|(processor, ticks, len)| Step::Event { processor, ticks, len }),
        1 => (processor.clone(), 0..5_u64)
            .prop_map(|(processor, count)| Step::LoseEvents { processor, count }),
        1 => processor.clone().prop_map(|processor| Step::LoseBuffer { processor }),
        1 => processor.prop_map(|processor| Step::Seal { processor }),
        1 => Just(Step::Flush),
    ];
    proptest::collection::vec(step, 0..120)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(96))]

    /// Every event is read once, in its processor's order and in time order; lost events are
    /// counted; the header's numbers are exact.
    #[test]
    fn session_writes_every_event_once(
        (processors, steps) in (1..4_u16).prop_flat_map(|n| (Just(n), steps(n))),
        kilobytes in 1..4_u32,
        flush_ticks in prop_oneof![Just(0_u64), 1..200_u64],
        hold_sealed: bool,
        one_lane: bool,
        legacy: bool,
    ) {
        let mode = if one_lane { LogFileMode::NO_PER_PROCESSOR_BUFFERING } else { LogFileMode(0) };
        let lane = |processor: u16| if one_lane { 0 } else { processor };
        let mut config =
            SessionConfig::new(header(kilobytes * 1024, processors.into(), mode));
        config.flush_ticks = flush_ticks;
        config.hold_sealed = hold_sealed;
        config.style = if legacy { Style::LegacyKernel } else { Style::Kernel };
        let mut session = Session::in_memory(config).unwrap();
        let mut now = 1_000;
        // `lose_buffer` returns the number of lost events; those are the latest of the lane.
        let mut kept: Vec<Vec<(i64, u32, usize)>> = vec![Vec::new(); processors.into()];
        let (mut events_lost, mut buffers_lost, mut gone) = (0, 0, 0);
        let payload = [0x5a; 400];
        for (number, step) in steps.iter().enumerate() {
            match *step {
                Step::Event { processor, ticks, len } => {
                    now += ticks;
                    let number = number as u32;
                    session.write(processor, &event(number, now, &payload[..len])).unwrap();
                    kept[usize::from(lane(processor))].push((now, number, len));
                }
                Step::LoseEvents { processor, count } => {
                    session.lose_events(processor, count).unwrap();
                    events_lost += count;
                }
                Step::LoseBuffer { processor } => {
                    let taken = session.lose_buffer(processor).unwrap();
                    let lane = &mut kept[usize::from(lane(processor))];
                    lane.truncate(lane.len() - taken as usize);
                    buffers_lost += 1;
                    gone += taken;
                }
                Step::Seal { processor } => session.seal(processor).unwrap(),
                Step::Flush => session.flush(now).unwrap(),
            }
        }
        let finished = session.close(Some(FileTime::new(START + 77))).unwrap();
        let file = finished.output;
        let summary = finished.report;
            prop_assert_eq!(summary.events_lost, events_lost);
        prop_assert_eq!(summary.buffers_lost, buffers_lost);
        prop_assert_eq!(summary.events_in_lost_buffers, gone);
        prop_assert_eq!(summary.events_written, kept.iter().map(|k| k.len() as u64).sum::<u64>());

        let found = buffers(&file);
        prop_assert_eq!(found.len() as u64, summary.buffers_written);
        prop_assert!(found.iter().all(|b| b.size == kilobytes as usize * 1024));
        let head = &found[0].records[0].bytes;
        prop_assert_eq!(i64_at(head, 0x20 + 0x10), START + 77);
        prop_assert_eq!(u32_at(head, 0x20 + 0x24), found.len() as u32);
        prop_assert_eq!(u64::from(u32_at(head, 0x20 + 0x30)), events_lost);
        prop_assert_eq!(u64::from(u32_at(head, 0x20 + 0x114)), buffers_lost);
        for (processor, kept) in kept.iter().enumerate() {
            let lane: Vec<&Found> = found[1..]
                .iter()
                .filter(|b| usize::from(b.processor & 0xff) == processor)
                .flat_map(|b| &b.records)
                .collect();
            let got: Vec<_> = lane
                .iter()
                .map(|r| (r.timestamp, u32_at(&r.bytes, 8), r.bytes.len() - 0x50))
                .collect();
            prop_assert_eq!(&got, kept);
        }
        let last = found.len() - 1;
        let mut losses = 0;
        for (i, b) in found.iter().enumerate() {
            prop_assert_eq!(b.flags & 1 != 0, i == 0 || i == last);
            prop_assert_eq!(b.flags & 0x20 != 0, !legacy);
            losses |= b.flags & 6;
            prop_assert!(i == 0 || !b.records.is_empty(), "an empty buffer was written");
            if i > 1 {
                prop_assert!(b.timestamp >= found[i - 1].timestamp);
                prop_assert!(b.sequence > found[i - 1].sequence);
            }
            prop_assert!(i == 0 || b.records.iter().all(|r| r.timestamp <= b.timestamp));
        }
        if losses & BufferFlags::BUFFER_LOST.0 != 0 {
            prop_assert!(buffers_lost > 0);
        }

        let mut expected: Vec<_> = kept
            .iter()
            .enumerate()
            .flat_map(|(cpu, k)| k.iter().map(move |(timestamp, n, _)| (*timestamp, cpu as u16, *n)))
            .collect();
        expected.sort_by_key(|(timestamp, cpu, _)| (*timestamp, *cpu));
        prop_assert_eq!(ordered(&file), expected);
    }
}

/// Fills a session of one processor with events of 0x1a8 bytes, two to a buffer of 1 KB.
fn fill<O: Output>(session: &mut Session<O>, events: std::ops::Range<u32>) {
    for number in events {
        session
            .write(0, &event(number, 1_000 + i64::from(number), &[7; 0x158]))
            .unwrap();
    }
}

fn numbers(file: &[u8]) -> Vec<u32> {
    ordered(file)
        .into_iter()
        .map(|(_, _, number)| number)
        .collect()
}

fn limited(mode: LogFileMode, kilobytes: u32) -> SessionConfig {
    let mut header = header(1024, 1, mode | LogFileMode::USE_KBYTES_FOR_SIZE);
    header.maximum_file_size = kilobytes;
    SessionConfig::new(header)
}

#[test]
fn circular_file_keeps_the_latest_events() {
    let mut session = Session::in_memory(limited(LogFileMode::CIRCULAR, 5)).unwrap();
    fill(&mut session, 0..20);
    let finished = session.close(None).unwrap();
    let file = finished.output;
    let summary = finished.report;
    let found = buffers(&file);
    assert_eq!(found.len(), 5, "buffer 0 and four that wrap");
    assert_eq!(summary.events_written, 20);
    let sequences: Vec<_> = found.iter().map(|b| b.sequence).collect();
    assert_eq!(sequences, [0, 9, 10, 7, 8], "file order is not time order");
    assert_eq!(numbers(&file), (12..20).collect::<Vec<_>>());
    assert_eq!(
        u32_at(&found[0].records[0].bytes, 0x44),
        11,
        "ten data buffers were written"
    );
}

#[test]
fn full_file_drops_later_buffers() {
    let mut session = Session::in_memory(limited(LogFileMode::SEQUENTIAL, 3)).unwrap();
    fill(&mut session, 0..20);
    let finished = session.close(None).unwrap();
    let file = finished.output;
    let summary = finished.report;
    assert_eq!(numbers(&file), [0, 1, 2, 3]);
    assert_eq!(
        (summary.buffers_lost, summary.events_in_lost_buffers),
        (8, 16)
    );
    assert_eq!(u32_at(&buffers(&file)[0].records[0].bytes, 0x134), 8);
}

#[test]
fn new_files_begin_with_a_header() {
    let files: Rc<RefCell<Vec<Vec<u8>>>> = Rc::default();
    let mut session = Session::in_memory(limited(LogFileMode::NEWFILE, 3)).unwrap();
    let done = Rc::clone(&files);
    session.set_next_file(Box::new(move |output, number| {
        let finished = std::mem::take(output);
        done.borrow_mut().push(finished);
        assert_eq!(number as usize, done.borrow().len());
        Ok(())
    }));
    fill(&mut session, 0..11);
    let finished = session.close(None).unwrap();
    let last = finished.output;
    let summary = finished.report;
    files.borrow_mut().push(last);
    let files = files.borrow();
    assert_eq!(summary.files, 3);
    let per_file: Vec<_> = files.iter().map(|f| numbers(f)).collect();
    assert_eq!(
        per_file,
        [vec![0, 1, 2, 3], vec![4, 5, 6, 7], vec![8, 9, 10]]
    );
    let sequences: Vec<Vec<i64>> = files
        .iter()
        .map(|f| buffers(f).iter().map(|b| b.sequence).collect())
        .collect();
    assert_eq!(sequences, [[0, 1, 2], [0, 3, 4], [0, 5, 6]]);
    for file in files.iter() {
        let found = buffers(file);
        assert_eq!(u32_at(&found[0].records[0].bytes, 0x44), 3);
        assert_eq!(found.last().unwrap().flags & 1, 1);
    }
}

#[test]
fn preallocated_file_has_its_maximum_size() {
    let mode = LogFileMode::SEQUENTIAL | LogFileMode::PREALLOCATE;
    let mut session = Session::in_memory(limited(mode, 8)).unwrap();
    fill(&mut session, 0..4);
    let file = session.close(None).unwrap().output;
    assert_eq!(file.len(), 8 * 1024);
    assert_eq!(buffers(&file).len(), 3);
    let mut trace = Trace::open(&file[..], &Options::salvage()).unwrap();
    let mut count = 0;
    trace
        .records(Order::Time)
        .unwrap()
        .for_each(|_| {
            count += 1;
            Ok::<_, etl_format::Error>(())
        })
        .unwrap();
    assert_eq!(count, 1 + 4);
}

#[test]
fn append_continues_a_session() {
    let config = SessionConfig::new(header(1024, 1, LogFileMode::APPEND));
    let mut session = Session::in_memory(config.clone()).unwrap();
    session.lose_events(0, 2).unwrap();
    fill(&mut session, 0..3);
    let file = session.close(None).unwrap().output;
    let old = file;
    let last = buffers(&old).pop().unwrap();
    let mut config = config;
    config.header.events_lost = 2;
    let resume = Resume {
        at: old.len() as u64,
        buffers: 3,
        next_sequence: last.sequence + 1,
        last_flush: Ticks::new(last.timestamp),
    };
    let mut session = Session::append(old, config, resume).unwrap();
    session.lose_events(0, 1).unwrap();
    fill(&mut session, 3..7);
    let file = session.close(None).unwrap().output;
    assert_eq!(numbers(&file), [0, 1, 2, 3, 4, 5, 6]);
    let found = buffers(&file);
    assert_eq!(
        u32_at(&found[0].records[0].bytes, 0x44) as usize,
        found.len()
    );
    assert_eq!(u32_at(&found[0].records[0].bytes, 0x50), 3, "losses add up");
}

#[test]
fn abandon_leaves_flushed_buffers() {
    let mut session =
        Session::in_memory(SessionConfig::new(header(1024, 1, LogFileMode(0)))).unwrap();
    fill(&mut session, 0..7);
    let file = session.abandon().unwrap().output;
    assert_eq!(
        numbers(&file),
        [0, 1, 2, 3, 4, 5],
        "the current buffer is gone"
    );
    let trace = Trace::open(&file[..], &Options::default()).unwrap();
    assert!(!trace.header().is_closed());
    assert_eq!(
        (
            trace.header().end_time.get(),
            trace.header().buffers_written
        ),
        (0, 1)
    );
    assert!(buffers(&file)[1..].iter().all(|b| b.flags & 1 == 0));
}

#[test]
fn pipe_receives_the_same_bytes_except_the_header() {
    let config = || SessionConfig::new(header(1024, 2, LogFileMode(0)));
    let mut file = Session::in_memory(config()).unwrap();
    let mut pipe = Session::create(Pipe::new(Vec::new()), config()).unwrap();
    fill(&mut file, 0..9);
    fill(&mut pipe, 0..9);
    let file = file.close(None).unwrap().output;
    let pipe = pipe.close(None).unwrap().output.into_inner();
    assert_eq!(file.len(), pipe.len());
    assert_eq!(file[1024..], pipe[1024..]);
    assert_eq!(numbers(&file), numbers(&pipe));
    assert!(Session::create(Pipe::new(Vec::new()), limited(LogFileMode::CIRCULAR, 5)).is_err());
}

#[test]
fn create_refuses_invalid_settings() {
    let create = |change: fn(&mut FileHeader)| {
        let mut header = header(1024, 1, LogFileMode(0));
        change(&mut header);
        Session::in_memory(SessionConfig::new(header))
            .map(|_| ())
            .unwrap_err()
            .to_string()
    };
    assert!(create(|h| h.buffer_size = 1000).contains("1024"));
    assert!(create(|h| h.processors = 0).contains("processors"));
    assert!(create(|h| h.mode = LogFileMode::CIRCULAR).contains("maximum"));
    assert!(create(|h| h.mode = LogFileMode::COMPRESSED).contains("compressor"));
    assert!(create(|h| h.logger_name = vec![65; 600]).contains("fit"));
    let config = SessionConfig::new(header(1024, 1, LogFileMode(0)));
    let mut session = Session::in_memory(config).unwrap();
    assert!(
        session.write(1, &event(0, 2_000, &[])).is_err(),
        "no such processor"
    );
    assert!(
        session.write(0, &event(0, 2_000, &[0; 1024])).is_err(),
        "larger than a buffer"
    );
    session.write(0, &event(1, 2_000, &[])).unwrap();
    assert_eq!(numbers(&session.finish().unwrap()), [1]);
}

#[test]
fn close_computes_the_end_time() {
    for (clock_type, end) in [
        (ClockType::QPC, 10_000),
        (ClockType::SYSTEM_TIME, 5_000),
        (ClockType::CPU_CYCLE, 25),
    ] {
        let mut header = header(1024, 1, LogFileMode(0));
        (header.clock_type, header.perf_freq, header.cpu_mhz) = (clock_type, 5_000_000, 2_000);
        let mut session = Session::in_memory(SessionConfig::new(header)).unwrap();
        session.write(0, &event(0, 6_000, &[])).unwrap();
        let file = session.finish().unwrap();
        let trace = Trace::open(&file[..], &Options::default()).unwrap();
        assert_eq!(trace.header().end_time.get() - START, end);
        assert_eq!(
            trace.clock().time(Ticks::new(6_000)),
            trace.header().end_time
        );
    }
}

#[test]
fn header_records_follow_the_header_event() {
    let header = header(0x1000, 1, LogFileMode::SYSTEM_LOGGER);
    let mut config = SessionConfig::new(header);
    let masks: Vec<u8> = [7, 0, 0, 0, 0, 0, 0, 1, 0x46]
        .into_iter()
        .flat_map(u32::to_le_bytes)
        .collect();
    let pdb = [
        &Guid::new(1, 2, 3, [4; 8]).to_bytes()[..],
        &[1, 0, 0, 0],
        b"p.pdb\0",
    ]
    .concat();
    let groups: [(u16, &[u8]); 6] = [
        (hook::PARTITION_INFO, &[0; 48]),
        (hook::EXTENSION, &masks),
        (
            hook::BUILD_LAB,
            b"19041.1.amd64fre.vb_release.191206-1406\0",
        ),
        (hook::DBGID_RSDS, &pdb),
        (hook::PROCESSOR_WORDS, &[0; 24]),
        (hook::RUNDOWN_COMPLETE, &[]),
    ];
    for (hook, payload) in groups {
        config.add_header_group(hook, payload).unwrap();
    }
    let file = Session::in_memory(config)
        .unwrap()
        .close(None)
        .unwrap()
        .output;
    let found = buffers(&file);
    let sizes: Vec<_> = found[0]
        .records
        .iter()
        .map(|r| (naive::u16_at(&r.bytes, 6), r.bytes.len() - 0x20))
        .collect();
    assert_eq!(
        sizes[1..],
        [
            (0x50, 48),
            (0x05, 36),
            (0x42, 40),
            (0x40, 26),
            (0x52, 24),
            (0x08, 0)
        ]
    );
    let mut trace = Trace::open(&file[..], &Options::default()).unwrap();
    let mut records = trace.records(Order::File).unwrap();
    let mut found = Vec::new();
    while let Some(record) = records.next_record().unwrap() {
        found.push((record.hook().unwrap(), record.payload().to_vec()));
    }
    assert_eq!(found.remove(0).0, hook::HEADER);
    assert!(
        found
            .iter()
            .map(|(hook, payload)| (*hook, &payload[..]))
            .eq(groups)
    );
}

/// Bytes that no encoder makes smaller.
fn noise(len: usize, mut seed: u64) -> Vec<u8> {
    let step = || {
        seed ^= seed << 13;
        seed ^= seed >> 7;
        seed ^= seed << 17;
        (seed >> 32) as u8
    };
    std::iter::repeat_with(step).take(len).collect()
}

#[test]
fn incompressible_buffer_stays_uncompressed() {
    for format in [CompressionFormat::XPRESS, CompressionFormat::LZNT1] {
        let mode = LogFileMode::SEQUENTIAL | LogFileMode::COMPRESSED;
        let header = FileHeader {
            log_major: 2,
            log_minor: 0,
            ..header(0x1_0000, 1, mode)
        };
        let compressor = BufferCompressor::new(format, Effort::Default).unwrap();
        let mut config = SessionConfig::new(header);
        config.compressor = Some(compressor);
        let mut session = Session::in_memory(config).unwrap();
        // Noise but for the headers of two records; then all the same.
        session
            .write(0, &event(0, 2_000, &noise(0x7fff, 1)))
            .unwrap();
        session
            .write(0, &event(1, 2_001, &noise(0x7000, 2)))
            .unwrap();
        session.seal(0).unwrap();
        session.write(0, &event(2, 2_002, &[7; 0x7000])).unwrap();
        let file = session.finish().unwrap();
        let trace = Trace::open(&file[..], &Options::default()).unwrap();
        let [zero, first, second] = trace.buffers() else {
            panic!("three buffers")
        };
        assert_eq!(
            (zero.stored, zero.compressed),
            (0x200, false),
            "a short buffer 0"
        );
        assert_eq!(
            (first.compressed, first.stored),
            (false, first.fill),
            "{format}"
        );
        assert!(
            second.compressed && second.stored < second.fill / 8,
            "{format}"
        );
        assert_eq!(trace.compression(), format);
        assert_eq!(numbers(&file), [0, 1, 2]);
    }
    assert!(BufferCompressor::new(CompressionFormat::NONE, Effort::Fast).is_err());
    assert!(BufferCompressor::new(CompressionFormat(9), Effort::Fast).is_err());
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(96))]

    /// In every mode, events are complete and in their processor's order. Only those that the mode
    /// drops are missing (the oldest of a circular file, the latest of a full one), and they are
    /// counted.
    #[test]
    fn each_mode_keeps_its_events(
        events in prop::collection::vec((0..3_u16, 0..9_i64, 0..700_usize), 0..150),
        mode in prop_oneof![
            Just(LogFileMode::SEQUENTIAL),
            Just(LogFileMode::CIRCULAR),
            Just(LogFileMode::NEWFILE),
            Just(LogFileMode::SEQUENTIAL | LogFileMode::PREALLOCATE),
            Just(LogFileMode::SEQUENTIAL | LogFileMode::NO_PER_PROCESSOR_BUFFERING),
            Just(LogFileMode::SEQUENTIAL | LogFileMode::COMPRESSED),
            Just(LogFileMode::NEWFILE | LogFileMode::COMPRESSED),
        ],
        buffer in 1..4_u32,
        most in 3..12_u32,
        flush_ticks in prop_oneof![Just(0_u64), 1..99_u64],
        legacy: bool,
        clock in 1..4_u32,
    ) {
        let mut config = SessionConfig::new(FileHeader {
            clock_type: ClockType(clock),
            maximum_file_size: most * buffer,
            ..header(buffer * 1024, 3, mode | LogFileMode::USE_KBYTES_FOR_SIZE)
        });
        config.flush_ticks = flush_ticks;
        config.style = if legacy { Style::LegacyKernel } else { Style::Kernel };
        if mode.has(LogFileMode::COMPRESSED) {
            let compressor = BufferCompressor::new(CompressionFormat::XPRESS, Effort::Fast).unwrap();
            config.compressor = Some(compressor);
        }
        let mut session = Session::in_memory(config).unwrap();
        let files: Rc<RefCell<Vec<Vec<u8>>>> = Rc::default();
        let done = Rc::clone(&files);
        session.set_next_file(Box::new(move |output, _| {
            done.borrow_mut().push(std::mem::take(output));
            Ok(())
        }));
        let one = mode.has(LogFileMode::NO_PER_PROCESSOR_BUFFERING);
        let lane = |processor: u16| if one { 0 } else { processor };
        let (mut now, mut given) = (1_000, vec![Vec::new(); 3]);
        for (number, &(processor, ticks, len)) in events.iter().enumerate() {
            now += ticks;
            let payload = [number as u8; 700];
            session.write(processor, &event(number as u32, now, &payload[..len])).unwrap();
            given[usize::from(lane(processor))].push(number as u32);
        }
        let finished = session.close(None).unwrap();
        let last = finished.output;
        let summary = finished.report;
        files.borrow_mut().push(last);
        prop_assert_eq!(
            summary.events_written + summary.events_in_lost_buffers, events.len() as u64);
        let limit = u64::from(most * buffer) * 1024;
        let mut found = vec![Vec::new(); 3];
        for file in files.borrow().iter() {
            prop_assert!(file.len() as u64 <= limit, "{} of {}", file.len(), limit);
            let trace = Trace::open(&file[..], &Options::default()).unwrap();
            prop_assert!(trace.buffers().iter().all(|b| b.fill <= buffer * 1024));
            prop_assert!(trace.header().is_closed());
            prop_assert_eq!(trace.clock().kind, ClockType(clock));
            let (mut timestamp, mut counts) = (i64::MIN, 0);
            for (at, processor, number) in ordered(file) {
                prop_assert!(at >= timestamp);
                timestamp = at;
                found[usize::from(processor)].push(number);
                counts += 1;
            }
            if files.borrow().len() == 1 && !mode.has(LogFileMode::CIRCULAR) {
                prop_assert_eq!(counts, summary.events_written);
                prop_assert_eq!(u64::from(trace.header().buffers_lost), summary.buffers_lost);
            }
        }
        for (found, given) in found.iter().zip(&given) {
            if mode.has(LogFileMode::CIRCULAR) {
                // Each processor's latest are there, without a hole.
                prop_assert!(given.ends_with(found), "{:?} of {:?}", found, given);
            } else if mode.has(LogFileMode::NEWFILE) {
                prop_assert_eq!(found, given);
            } else {
                // A full file takes no more; a later, smaller compressed buffer may still fit.
                let mut rest = given.iter();
                prop_assert!(found.iter().all(|n| rest.any(|g| g == n)), "{:?} of {:?}", found, given);
                if !mode.has(LogFileMode::COMPRESSED) {
                    prop_assert!(given.starts_with(found));
                }
            }
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(48))]

    /// A session that is closed and continued several times has all events.
    #[test]
    fn append_many_times_keeps_all_events(
        parts in prop::collection::vec(
            prop::collection::vec((0..3_u16, 0..9_i64, 0..700_usize), 0..40), 1..5),
        losses in prop::collection::vec(0..4_u64, 5),
    ) {
        let mut config = SessionConfig::new(header(2048, 3, LogFileMode::APPEND));
        let mut file: Option<Vec<u8>> = None;
        let (mut now, mut number, mut lost) = (1_000, 0_u32, 0);
        let mut given = Vec::new();
        for (part, losses) in parts.iter().zip(losses) {
            let mut session = match file.take() {
                None => Session::in_memory(config.clone()).unwrap(),
                Some(old) => {
                    let (resume, events_lost) = {
                        let trace = Trace::open(&old[..], &Options::default()).unwrap();
                        prop_assert!(trace.header().is_closed());
                        let last = buffers(&old).pop().unwrap();
                        let resume = Resume {
                            at: old.len() as u64,
                            buffers: trace.header().buffers_written,
                            next_sequence: last.sequence + 1,
                            last_flush: Ticks::new(last.timestamp),
                        };
                        (resume, trace.header().events_lost)
                    };
                    config.header.events_lost = events_lost;
                    Session::append(old, config.clone(), resume).unwrap()
                }
            };
            for &(processor, ticks, len) in part {
                now += ticks;
                session.write(processor, &event(number, now, &[7; 700][..len])).unwrap();
                given.push((now, processor, number));
                number += 1;
            }
            session.lose_events(1, losses).unwrap();
            lost += losses;
            file = Some(session.finish().unwrap());
        }
        let file = file.unwrap();
        given.sort_by_key(|(timestamp, processor, _)| (*timestamp, *processor));
        prop_assert_eq!(ordered(&file), given);
        let trace = Trace::open(&file[..], &Options::default()).unwrap();
        prop_assert_eq!(u64::from(trace.header().events_lost), lost);
        prop_assert_eq!(trace.header().buffers_written as usize, buffers(&file).len());
    }
}
