//! Compressing and decompressing buffer by buffer, and repairing.

use crate::writing::{START, event};
use etl_format::compress::Effort;
use etl_format::constants::{CompressionFormat, LogFileMode, PointerSize};
use etl_format::read::{Note, Options, Order, PipeSource, Trace};
use etl_format::rewrite::repack::Repacker;
use etl_format::rewrite::repair::{ASSUMED_FREQUENCY, RepairReport, Repairer};
use etl_format::write::{BufferCompressor, Session, SessionConfig, Style};
use etl_format::{ErrorKind, FileHeader, FileTime, Ticks};
use proptest::prelude::*;

fn config(style: Style) -> SessionConfig {
    let header = FileHeader {
        timestamp: Ticks::new(1_000),
        start_time: FileTime::new(START),
        buffer_size: 0x1000,
        processors: 3,
        logger_name: "probe".encode_utf16().collect(),
        ..FileHeader::new()
    };
    let mode = match style {
        Style::Relogger { .. } => LogFileMode::RELOG | LogFileMode::SEQUENTIAL,
        _ => LogFileMode::SEQUENTIAL,
    };
    let mut config = SessionConfig::new(FileHeader { mode, ..header });
    config.style = style;
    config
}

/// A closed session with these events: processor, ticks since the one before, length, noise.
fn session(style: Style, events: &[(u16, i64, usize, bool)]) -> Vec<u8> {
    let mut session = Session::in_memory(config(style)).unwrap();
    let mut timestamp = 1_000;
    let mut state = 1u32;
    for (number, &(processor, ticks, len, noise)) in events.iter().enumerate() {
        timestamp += ticks;
        let payload: Vec<u8> = (0..len)
            .map(|i| {
                state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
                if noise {
                    (state >> 24) as u8
                } else {
                    i as u8 & 7
                }
            })
            .collect();
        session
            .write(processor, &event(number as u32, timestamp, &payload))
            .unwrap();
    }
    session.finish().unwrap()
}

fn packed(file: &[u8], format: CompressionFormat) -> Vec<u8> {
    let compressor = BufferCompressor::new(format, Effort::Default).unwrap();
    let mut out = Vec::new();
    let mut seen = 0;
    let repacker = Repacker::compress(compressor).on_buffer(|b| seen += b);
    let done = repacker.run(file, &mut out).unwrap();
    assert_eq!(
        (done.bytes_in, done.bytes_out),
        (file.len() as u64, out.len() as u64)
    );
    assert_eq!(seen, done.bytes_in);
    out
}

fn unpacked(file: &[u8]) -> Vec<u8> {
    let mut out = Vec::new();
    let pipe = PipeSource::new(file);
    Repacker::decompress().run(pipe, &mut out).unwrap();
    out
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    /// Compressing and decompressing again changes nothing; in between the trace reads the same.
    #[test]
    fn decompress_restores_a_compressed_trace(
        events in prop::collection::vec((0..3_u16, 0..9_i64, 0..900_usize, any::<bool>()), 0..60),
        format in prop_oneof![
            Just(CompressionFormat::XPRESS),
            Just(CompressionFormat::LZNT1),
            Just(CompressionFormat::XPRESS_HUFF),
        ],
        style in prop_oneof![
            Just(Style::Kernel), Just(Style::LegacyKernel), Just(Style::Relogger { now: FileTime::new(77) })],
    ) {
        let plain = session(style, &events);
        let small = packed(&plain, format);
        let trace = Trace::open(&small[..], &Options::default()).unwrap();
        prop_assert_eq!(trace.notes(), &[]);
        prop_assert_eq!(trace.compression(), format);
        prop_assert!(trace.header().mode.has(LogFileMode::COMPRESSED));
        prop_assert_eq!((trace.header().log_major, trace.header().log_minor), (2, 0));
        prop_assert!(trace.buffers()[1..].iter().all(|b| b.stored <= b.fill));
        prop_assert_eq!(read(&small), read(&plain));
        prop_assert_eq!(&unpacked(&small), &plain);
        // Compressing the compressed trace again changes nothing.
        prop_assert_eq!(packed(&small, format), small);
        prop_assert_eq!(unpacked(&plain), plain);
    }

    /// A repaired trace is intact and has the records that salvage mode reads.
    #[test]
    fn repair_writes_an_intact_trace(
        events in prop::collection::vec((0..3_u16, 0..9_i64, 0..900_usize, any::<bool>()), 1..60),
        damage in prop::collection::vec((any::<prop::sample::Index>(), 1..40_usize, any::<u8>()), 1..5),
        cut in prop::option::of(any::<prop::sample::Index>()),
        compressed: bool,
    ) {
        let mut file = session(Style::Kernel, &events);
        if compressed {
            file = packed(&file, CompressionFormat::XPRESS);
        }
        for (place, len, byte) in damage {
            let at = place.index(file.len());
            let end = (at + len).min(file.len());
            file[at..end].fill(byte);
        }
        if let Some(cut) = cut {
            file.truncate(cut.index(file.len()).max(0x48));
        }
        let Ok((sound, report)) = repaired(&file) else { return Ok(()) };
        let mut trace = Trace::open(&sound[..], &Options::default()).unwrap();
        prop_assert!(trace.header().is_closed());
        // Only losses of the session and loss flags of buffers stay as notes.
        prop_assert!(trace.notes().iter().all(|n| matches!(n, Note::EventsLost(_)
            | Note::BuffersLost(_)
            | Note::EventsLostInBuffer { .. }
            | Note::BufferLostBefore { .. }
            | Note::PointerSize { .. })),
            "{:?}", trace.notes());
        prop_assert_eq!(trace.header().buffers_written as usize, trace.buffers().len());
        let mut records = trace.records(Order::Time).unwrap();
        while records.next_record().unwrap().is_some() {}
        prop_assert!(records.report().was_in_order());
        prop_assert_eq!(report.oversized_records, 0);
        let mut before = read_with(&file, &Options::salvage());
        let mut after = read(&sound);
        before.sort();
        after.sort();
        let differs = (0..before.len().max(after.len())).find(|&i| before.get(i) != after.get(i));
        let of = |all: &[(i64, Vec<u8>)]| {
            differs.and_then(|i| all.get(i).map(|(timestamp, b)| (*timestamp, b.len(), b[..8].to_vec())))
        };
        prop_assert_eq!(of(&after), of(&before), "of {} and {}", after.len(), before.len());
        prop_assert!(differs.is_none());
    }
}

fn repaired(file: &[u8]) -> etl_format::Result<(Vec<u8>, RepairReport)> {
    let finished = Repairer::new().run(file, Vec::new())?;
    let file = finished.output;
    let report = finished.report;
    Ok((file, report))
}

fn read(file: &[u8]) -> Vec<(i64, Vec<u8>)> {
    read_with(file, &Options::default())
}

/// All records but header events, also damaged ones.
fn read_with(file: &[u8], options: &Options) -> Vec<(i64, Vec<u8>)> {
    let mut trace = Trace::open(file, options).unwrap();
    let mut records = trace.records(Order::Time).unwrap();
    let mut out = Vec::new();
    while let Some(record) = records.next_record().unwrap() {
        let place = record.location();
        if record.hook() != Some(0) && (place.buffer_offset, place.in_buffer) != (0, 0x48) {
            // Damage can change which record precedes one without a timestamp.
            let timestamp = if record.has_own_timestamp() {
                record.timestamp().get()
            } else {
                0
            };
            out.push((timestamp, record.bytes().to_vec()));
        }
    }
    out
}

fn some() -> Vec<u8> {
    let events: Vec<_> = (0..40).map(|i| (i % 3, 5, 300, false)).collect();
    session(Style::Kernel, &events)
}

#[test]
fn repair_reports_an_intact_trace() {
    let (sound, report) = repaired(&some()).unwrap();
    assert!(report.was_intact() && report.header && report.closed);
    assert_eq!(report.summary.events_written, 40);
    assert_eq!(read(&sound), read(&some()));
}

#[test]
fn repair_closes_an_unclosed_trace() {
    let mut session = Session::in_memory(config(Style::Kernel)).unwrap();
    for number in 0..40 {
        session
            .write(0, &event(number, 2_000 + i64::from(number), &[3; 300]))
            .unwrap();
    }
    let file = session.abandon().unwrap().output;
    let (sound, report) = repaired(&file).unwrap();
    assert!(!report.closed && !report.was_intact() && report.damage.is_empty());
    assert_eq!(report.notes, [Note::Unclosed]);
    let trace = Trace::open(&sound[..], &Options::default()).unwrap();
    let last = read(&file).last().unwrap().0;
    assert_eq!(
        trace.header().end_time,
        trace.clock().time(Ticks::new(last))
    );
    assert_eq!(read(&sound), read(&file));
}

#[test]
fn repair_replaces_a_lost_header() {
    let mut file = some();
    file[0x48..0x200].fill(0xee);
    let (sound, report) = repaired(&file).unwrap();
    assert!(!report.header && !report.was_intact());
    let trace = Trace::open(&sound[..], &Options::default()).unwrap();
    assert_eq!(trace.header().perf_freq, ASSUMED_FREQUENCY);
    assert_eq!(trace.header().timestamp, Ticks::new(read(&sound)[0].0));
    assert_eq!(trace.header().build, 0, "what is not known is not made up");
    assert_eq!(read(&sound).len(), 40);
}

#[test]
fn repair_reports_damage() {
    let mut file = some();
    file[0x1048 + 8..0x1048 + 0x10].fill(0);
    file[0x1048..0x1048 + 4].fill(0xab);
    let (sound, report) = repaired(&file).unwrap();
    let [damage] = &report.damage[..] else {
        panic!("{:?}", report.damage)
    };
    assert_eq!(damage.range.start, 0x1048);
    assert_eq!(damage.records_before + damage.records_after + 1, 41);
    assert_eq!(read(&sound).len(), 39);
    // What cannot be read at all stays an error.
    assert_eq!(repaired(&[0x20; 4096]).unwrap_err().code(), "not-etl");
}

/// 2 MiB of identical records compress so far that readers would take them for damage.
#[test]
fn compress_writes_what_readers_accept() {
    let record = crate::common::perfinfo(true, 0x0f2e, 2_000, None, &[], &[0; 0x10]);
    let records = vec![record; (0x20_0000 - 0x48) / 0x20];
    let file = crate::common::File::new(0x20_0000)
        .buffer(0, &records)
        .bytes();
    let read = |bytes: &[u8]| {
        let mut trace = Trace::open(bytes, &Options::default()).unwrap();
        let mut reader = trace.records(Order::File).unwrap();
        reader.for_each(|_| Ok::<_, etl_format::Error>(())).unwrap();
        reader.count()
    };
    for format in [CompressionFormat::XPRESS, CompressionFormat::LZNT1] {
        assert_eq!(read(&packed(&file, format)), read(&file), "{format}");
        let compressor = BufferCompressor::new(format, Effort::Default).unwrap();
        let repair = Repairer::new().compress(compressor);
        let sound = repair.run(&file[..], Vec::new()).unwrap().output;
        assert_eq!(read(&sound), read(&file), "{format}");
    }
}

#[test]
fn compress_notes_gaps_in_the_sequence() {
    let mut file = crate::common::small();
    file.buffers.remove(3);
    let mut out = Vec::new();
    let done = Repacker::decompress()
        .run(&file.bytes()[..], &mut out)
        .unwrap();
    assert_eq!(done.notes.len(), 1, "{:?}", done.notes);
    assert!(matches!(
        done.notes[..],
        [Note::SequenceGap {
            first: 4,
            count: 1,
            ..
        }]
    ));
}

/// A circular file that is full counts buffers that it does not have, and still does when it is
/// much shorter.
#[test]
fn compress_keeps_a_full_circular_trace_intact() {
    let mut file = crate::common::small();
    (file.event.mode, file.event.maximum_file_size) = (0x2002, 8);
    file.event.buffers_written = Some(113);
    (100..)
        .zip(&mut file.buffers)
        .for_each(|(seq, buffer)| buffer.seq = seq);
    let plain = file.bytes();
    let small = packed(&plain, CompressionFormat::XPRESS);
    assert!(small.len() < plain.len() / 2);
    assert_eq!(read(&small), read(&plain));
    assert_eq!(unpacked(&small), plain);
    let lost = |file: &[u8]| {
        let (sound, report) = repaired(file).unwrap();
        assert!(
            report.damage.is_empty() && report.was_intact(),
            "{:?}",
            report.damage
        );
        Trace::open(&sound[..], &Options::default())
            .unwrap()
            .header()
            .buffers_lost
    };
    assert_eq!(lost(&small), lost(&plain));
    // One that is not full has lost what it counts and does not have.
    file.event.maximum_file_size = 80;
    let compressor = BufferCompressor::new(CompressionFormat::XPRESS, Effort::Default).unwrap();
    let run = Repacker::compress(compressor).run(&file.bytes()[..], &mut Vec::new());
    assert_eq!(run.unwrap_err().code(), "truncated");
}

#[test]
fn repair_leaves_out_copies_of_buffers() {
    let whole = crate::common::small();
    let mut file = whole.clone();
    let copy = file.buffers[2].clone();
    file.buffers.insert(4, copy);
    let (sound, report) = repaired(&file.bytes()).unwrap();
    assert!(!report.was_intact());
    assert!(report.notes.contains(&Note::BufferTwice {
        offset: 0x1400,
        number: 3
    }));
    assert_eq!(read(&sound), read(&whole.bytes()));
    assert_eq!(
        Trace::open(&sound[..], &Options::default())
            .unwrap()
            .header()
            .buffers_lost,
        0
    );
    // Another buffer with the same number is not a copy.
    file.buffers[4].records[0x30] ^= 1;
    let (sound, report) = repaired(&file.bytes()).unwrap();
    assert!(report.notes.contains(&Note::SequenceTwice {
        offset: 0x1400,
        number: 3
    }));
    assert_eq!(read(&sound).len(), 28);
}

/// A header event later than the other records of buffer 0, which are not in order.
#[test]
fn repair_is_done_after_one_repair() {
    let mut file = crate::common::small();
    let extra = |timestamp| crate::common::system(true, 0x0050, timestamp, &[0; 8]);
    file.extras = vec![extra(990), extra(980)];
    file.event.timestamp = 999;
    let (sound, report) = repaired(&file.bytes()).unwrap();
    assert_eq!(
        (
            report.was_intact(),
            report.order.sorted_buffers,
            report.records
        ),
        (false, 1, 26)
    );
    let (again, report) = repaired(&sound).unwrap();
    assert_eq!(
        (
            report.was_intact(),
            report.order.sorted_buffers,
            report.records
        ),
        (true, 0, 26)
    );
    assert_eq!(again, sound);
}

#[test]
fn repair_states_the_pointer_size_of_the_records() {
    let stated = 0x48 + 0x20 + 0x2c;
    for bytes in [[0; 4], [0xff; 4]] {
        let mut file = some();
        assert_eq!(file[stated..stated + 4], [8, 0, 0, 0]);
        file[stated..stated + 4].copy_from_slice(&bytes);
        let (sound, report) = repaired(&file).unwrap();
        assert!(!report.was_intact());
        assert_eq!(sound[stated..stated + 4], [8, 0, 0, 0]);
    }
    // Without a header event the records say it.
    let narrow = |i: i64| crate::common::system(false, 0x0f01, 1000 + i, &[7; 8]);
    let records: Vec<_> = (0..4).map(narrow).collect();
    let mut file = crate::common::File::new(0x400).buffer(0, &records).bytes();
    file[0x48..0x400].fill(0xee);
    let (sound, _) = repaired(&file).unwrap();
    let header = Trace::open(&sound[..], &Options::default())
        .unwrap()
        .header()
        .clone();
    assert_eq!(
        (header.pointer_size, header.stated_pointer_size),
        (PointerSize::P4, 4)
    );
}

#[test]
fn damaged_buffers_end_compression() {
    let file = some();
    let compressor = BufferCompressor::new(CompressionFormat::XPRESS, Effort::Fast).unwrap();
    let mut out = Vec::new();
    let cut = &file[..file.len() - 5];
    let error = Repacker::compress(compressor)
        .run(cut, &mut out)
        .unwrap_err();
    assert_eq!(error.code(), "truncated");
    let mut small = packed(&file, CompressionFormat::XPRESS);
    let at = Trace::open(&small[..], &Options::default())
        .unwrap()
        .buffers()[1];
    let begin = at.offset as usize + 0x48;
    small[begin..begin + 8].fill(0);
    small[begin + 8..at.offset as usize + at.stored as usize].fill(0xff);
    let error = Repacker::decompress()
        .run(&small[..], &mut out)
        .unwrap_err();
    assert_eq!((error.code(), error.offset), ("compression", at.offset));
}

#[test]
fn damaged_records_end_compression() {
    let file = some();
    let at = Trace::open(&file[..], &Options::default())
        .unwrap()
        .buffers()[1];
    let (first, end) = (
        at.offset as usize + 0x48,
        at.offset as usize + at.fill as usize,
    );
    for byte in [0, 0xff] {
        for (from, to) in [(first, first + 8), (first, end)] {
            let mut file = file.clone();
            file[from..to].fill(byte);
            for threads in [1, 3] {
                let options = Options {
                    threads,
                    ..Options::default()
                };
                let xpress = BufferCompressor::new(CompressionFormat::XPRESS, Effort::Fast);
                let compress = Repacker::compress(xpress.unwrap().with_threads(threads));
                for repacker in [compress, Repacker::decompress()] {
                    let run = repacker.options(options).run(&file[..], &mut Vec::new());
                    let error = run.unwrap_err();
                    assert_eq!((error.code(), error.offset), ("invalid", from as u64));
                }
            }
        }
    }
}

#[test]
fn decompress_checks_the_limit_of_buffers() {
    let mut file = packed(
        &session(Style::Kernel, &[(0, 1, 10, false)]),
        CompressionFormat::XPRESS,
    );
    // The size of buffers in the header event.
    file[0x68..0x6c].copy_from_slice(&0x2b83_0000u32.to_le_bytes());
    let mut out = Vec::new();
    let error = Repacker::decompress().run(&file[..], &mut out).unwrap_err();
    assert!(
        matches!(
            error.kind,
            ErrorKind::Limit {
                need: 0x2b83_0000,
                ..
            }
        ),
        "{error}"
    );
    assert_eq!(out, [0; 0]);
}

#[test]
fn decompress_checks_the_limit_without_header_event() {
    let mut file = session(Style::Kernel, &[(0, 1, 10, false)]);
    file[0x68..0x6c].copy_from_slice(&0x2b83_0000u32.to_le_bytes());
    // The buffer ends within the event, which is read all the same.
    file[0x30..0x34].copy_from_slice(&0x4fu32.to_le_bytes());
    for threads in [1, 2] {
        let mut out = Vec::new();
        let error = Repacker::decompress()
            .options(Options {
                threads,
                ..Options::salvage()
            })
            .run(&file[..], &mut out)
            .unwrap_err();
        assert!(
            matches!(
                error.kind,
                ErrorKind::Limit {
                    need: 0x2b83_0000,
                    ..
                }
            ),
            "{error}"
        );
        assert_eq!(out, [0; 0]);
    }
}
