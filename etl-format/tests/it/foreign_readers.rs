//! Compares written traces with real files, and reads them with other projects' readers.

use std::path::PathBuf;

use etl_format::compress::Effort;
use etl_format::constants::{
    CompressionFormat, LogFileMode, MessageFlags, PointerSize, RecordKind,
};
use etl_format::read::{BufferEntry, Options, Order, Trace};
use etl_format::write::record::{
    Event, Extended, Full, Instance, Message, PerfInfo, Raw, Record, System,
};
use etl_format::write::{BufferCompressor, Session, SessionConfig, Style};
use etl_format::{BufferHeader, EventDescriptor, FileHeader, FileTime, Guid, Ticks};
use etl_test_support::{all_traces, foreign, needs};

use crate::reencode;

/// Decodes and encodes each trace that the kernel wrote, and compares the bytes. Only padding may
/// differ: up to seven bytes after a record, and after the data of an extended item. Stale pointers
/// in buffer headers are fields of the decoded header and must be equal.
#[needs(traces)]
#[test]
fn writer_restores_the_bytes_of_kernel_written_traces() {
    let mut rewritten = 0;
    for path in all_traces() {
        let file = std::fs::read(&path).unwrap();
        let Ok(mut trace) = Trace::open(&file[..], &Options::default()) else {
            continue;
        };
        if trace.header().dialect() != "kernel" {
            continue;
        }
        let mut out: Vec<u8> = Vec::with_capacity(file.len());
        let mut undefined: Vec<std::ops::Range<usize>> = Vec::new();
        for entry in trace.buffers().to_vec() {
            let at = entry.offset as usize;
            assert_eq!(at, out.len(), "{}", path.display());
            let header = BufferHeader::parse(&file[at..], entry.offset).unwrap();
            out.extend(header.to_bytes());
            let mut records = trace.records_of(|buffer| buffer.offset == entry.offset);
            while let Some(record) = records.next_record().unwrap() {
                let start = at + record.location().in_buffer as usize;
                undefined.push(out.len()..start);
                out.resize(start, 0);
                if record.hook() == Some(0) {
                    let head = FileHeader::parse(record.bytes(), 0).unwrap();
                    head.encode(&mut out).unwrap();
                } else {
                    reencode::record(&record, &mut out);
                }
                assert_eq!(out.len() - start, record.bytes().len());
                let mut items = record.extended();
                let mut end = start + 0x50;
                while let Some(item) = items.next_raw() {
                    let data = item.data;
                    end += 8 + data.len().next_multiple_of(8);
                    undefined.push(end - (data.len().next_multiple_of(8) - data.len())..end);
                }
                if out.len() >= at + entry.fill as usize - 7 {
                    break;
                }
            }
            let fill = at + (entry.fill as usize).max(out.len() - at);
            undefined.push(out.len()..fill);
            out.resize(fill, 0);
            etl_format::write::fill(&mut out, at + entry.stored as usize);
        }
        assert_eq!(out.len(), file.len(), "{}", path.display());
        for range in undefined {
            assert!(range.len() < 8, "{}: {range:x?}", path.display());
            out[range.clone()].copy_from_slice(&file[range]);
        }
        let differs = (0..file.len()).find(|&i| file[i] != out[i]);
        assert_eq!(
            differs.map(|i| format!("{i:#x}")),
            None,
            "{}",
            path.display()
        );
        rewritten += 1;
    }
    eprintln!("{rewritten} kernel-written traces are byte-identical");
    assert!(rewritten > 3);
}

/// Timestamp, processor and bytes of every record after the header event, in time order.
fn stream(file: &[u8]) -> Vec<(i64, u16, Vec<u8>)> {
    let mut trace = Trace::open(file, &Options::default()).unwrap();
    let mut records = trace.records(Order::Time).unwrap();
    let mut out = Vec::new();
    while let Some(record) = records.next_record().unwrap() {
        if record.hook() != Some(0) {
            // Encoded again, so that undefined padding in a record is not compared.
            let mut bytes = Vec::new();
            reencode::record(&record, &mut bytes);
            out.push((record.timestamp().get(), record.processor(), bytes));
        }
    }
    out
}

/// Writes a trace with a session, each record encoded from its decoded fields.
fn relog(file: &[u8], format: Option<CompressionFormat>) -> Vec<u8> {
    let mut trace = Trace::open(file, &Options::default()).unwrap();
    let mut header = trace.header().clone();
    header.mode = LogFileMode::RELOG | LogFileMode::SEQUENTIAL;
    (header.log_major, header.log_minor) = (1, 5);
    if format.is_some() {
        header.mode = header.mode | LogFileMode::COMPRESSED;
        (header.log_major, header.log_minor) = (2, 0);
    }
    header.buffer_size = 0x2_0000;
    let most = trace
        .buffers()
        .iter()
        .map(|b| u32::from(b.processor) + 1)
        .max()
        .unwrap_or(1);
    header.processors = header.processors.max(most);
    let end = header.end_time;
    let mut config = SessionConfig::new(header);
    config.style = Style::Relogger { now: end };
    config.logger_id = 0;
    config.compressor =
        format.map(|format| BufferCompressor::new(format, Effort::Default).unwrap());
    let mut session = Session::in_memory(config).unwrap();
    let mut records = trace.records(Order::Time).unwrap();
    let mut bytes = Vec::new();
    while let Some(record) = records.next_record().unwrap() {
        if record.hook() == Some(0) {
            continue;
        }
        bytes.clear();
        reencode::record(&record, &mut bytes);
        let raw = Raw {
            bytes: &bytes,
            timestamp: Some(record.timestamp()),
        };
        session.write(record.processor(), &raw).unwrap();
    }
    session.close(Some(end)).unwrap().output
}

fn scratch(name: &str) -> PathBuf {
    let directory = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join("written");
    std::fs::create_dir_all(&directory).unwrap();
    directory.join(name)
}

#[needs(traces, python)]
#[test]
fn session_keeps_every_record_of_real_traces() {
    let mut written = Vec::new();
    for (number, path) in all_traces().into_iter().enumerate() {
        let file = std::fs::read(&path).unwrap();
        if Trace::open(&file[..], &Options::default()).is_err() {
            continue;
        }
        let relogged = relog(&file, None);
        let (before, mut after) = (stream(&file), stream(&relogged));
        assert_eq!(before.len(), after.len(), "{}", path.display());
        // Records of buffer 0 move to a buffer of processor 0, so the order of equal timestamps may
        // change.
        let mut before = before;
        before.sort();
        after.sort();
        let differs = before.iter().zip(&after).position(|(a, b)| a != b);
        assert_eq!(differs, None, "{}", path.display());
        if relogged.len() < 4 << 20 {
            let out = scratch(&format!("relogged{number}.etl"));
            std::fs::write(&out, &relogged).unwrap();
            written.push((out, before.len() as u64 + 1));
        }
    }
    let files: Vec<PathBuf> = written.iter().map(|(path, _)| path.clone()).collect();
    let answers = foreign("dissect_counts.py", &files);
    for (answer, (path, records)) in answers.iter().zip(&written) {
        assert_eq!(
            answer["records"].as_u64(),
            Some(*records),
            "{}: {answer}",
            path.display()
        );
    }
}

/// Compresses and decompresses in each format. `dissect.etl`, which reads XPRESS only, counts the
/// same records.
#[needs(traces, python)]
#[test]
fn every_compression_keeps_the_records_of_real_traces() {
    let mut written = Vec::new();
    for (number, path) in all_traces().into_iter().enumerate() {
        let file = std::fs::read(&path).unwrap();
        if Trace::open(&file[..], &Options::default()).is_err() {
            continue;
        }
        let plain = relog(&file, None);
        let before = stream(&plain);
        for format in [
            CompressionFormat::XPRESS,
            CompressionFormat::LZNT1,
            CompressionFormat::XPRESS_HUFF,
        ] {
            let packed = relog(&file, Some(format));
            let trace = Trace::open(&packed[..], &Options::default()).unwrap();
            assert_eq!(trace.compression(), format, "{}", path.display());
            assert_eq!(
                trace.notes(),
                Trace::open(&plain[..], &Options::default())
                    .unwrap()
                    .notes()
            );
            let data = &trace.buffers()[1..];
            assert!(
                data.iter().all(|b| b.stored <= b.fill),
                "{}",
                path.display()
            );
            let sum = |bytes: fn(&BufferEntry) -> u32| -> u64 {
                data.iter().map(|b| u64::from(bytes(b))).sum()
            };
            let (stored, fill) = (sum(|b| b.stored), sum(|b| b.fill));
            assert!(stored < fill * 3 / 4 || fill < 0x4000, "{}", path.display());
            assert!(stream(&packed) == before, "{} in {format}", path.display());
            assert!(
                relog(&packed, None) == plain,
                "{} in {format} and back",
                path.display()
            );
            if format == CompressionFormat::XPRESS {
                let out = scratch(&format!("packed{number}.etl"));
                std::fs::write(&out, &packed).unwrap();
                written.push((out, before.len() as u64 + 1));
            }
        }
    }
    let files: Vec<PathBuf> = written.iter().map(|(path, _)| path.clone()).collect();
    let answers = foreign("dissect_counts.py", &files);
    for (answer, (path, records)) in answers.iter().zip(&written) {
        assert_eq!(
            answer["records"].as_u64(),
            Some(*records),
            "{}: {answer}",
            path.display()
        );
    }
}

/// A session on four processors with some hundred records of each kind.
fn everything(kinds: &[RecordKind]) -> (Vec<u8>, u64) {
    let header = FileHeader {
        timestamp: Ticks::new(1_000),
        start_time: FileTime::new(132_000_000_000_000_000),
        buffer_size: 0x1000,
        processors: 4,
        logger_name: "probe".encode_utf16().collect(),
        log_file_name: "probe.etl".encode_utf16().collect(),
        ..FileHeader::new()
    };
    let config = SessionConfig::new(header);
    let mut session = Session::in_memory(config).unwrap();
    let class = Guid::new(
        0xe13c0d23,
        0xccbc,
        0x4e12,
        [0x93, 0x1b, 0xd9, 0xcc, 0x2e, 0xee, 0x27, 1],
    );
    let payload = [0x11; 64];
    for round in 0..400_i64 {
        let kind = kinds[round as usize % kinds.len()];
        let wide = matches!(
            kind,
            RecordKind::SYSTEM64
                | RecordKind::COMPACT64
                | RecordKind::FULL64
                | RecordKind::INSTANCE64
                | RecordKind::PERFINFO64
                | RecordKind::EVENT64
        );
        let pointer_size = if wide {
            PointerSize::P8
        } else {
            PointerSize::P4
        };
        let (timestamp, thread_id, process_id) = (2_000 + round * 3, 8, 4);
        let payload = &payload[..round as usize % 64];
        let full = Full::new(class, 1, timestamp)
            .pointer_size(pointer_size)
            .version(2)
            .level(4)
            .process(process_id, thread_id)
            .payload(payload);
        let (version, hook) = (2, 0x0301);
        let mut bytes = Vec::new();
        match kind {
            RecordKind::SYSTEM32 | RecordKind::SYSTEM64 => System::new(hook, timestamp)
                .pointer_size(pointer_size)
                .version(version)
                .process(process_id, thread_id)
                .payload(payload)
                .encode(&mut bytes),
            RecordKind::COMPACT32 | RecordKind::COMPACT64 => System::new(hook, timestamp)
                .pointer_size(pointer_size)
                .version(version)
                .process(process_id, thread_id)
                .compact()
                .payload(payload)
                .encode(&mut bytes),
            RecordKind::PERFINFO32 | RecordKind::PERFINFO64 => PerfInfo::new(0x0f2e, timestamp)
                .pointer_size(pointer_size)
                .payload(payload)
                .encode(&mut bytes),
            RecordKind::FULL32 | RecordKind::FULL64 => full.encode(&mut bytes),
            RecordKind::INSTANCE32 | RecordKind::INSTANCE64 => {
                Instance::new(full, 1).parent(class, 2).encode(&mut bytes)
            }
            RecordKind::MESSAGE => Message::new(class, 10, timestamp)
                .sequence(1)
                .process(process_id, thread_id)
                .flags(MessageFlags(0x2b))
                .payload(payload)
                .encode(&mut bytes),
            _ => Event::new(
                class,
                EventDescriptor {
                    id: 1,
                    version: 2,
                    level: 4,
                    ..EventDescriptor::default()
                },
                timestamp,
            )
            .pointer_size(pointer_size)
            .process(process_id, thread_id)
            .extended(if round % 2 == 0 {
                &[]
            } else {
                &[
                    Extended::RelatedActivity(Guid::ZERO),
                    Extended::Stack64 {
                        match_id: 0,
                        addresses: &[1, 2, 3],
                    },
                ]
            })
            .payload(payload)
            .encode(&mut bytes),
        }
        .unwrap();
        session
            .write(
                (round % 4) as u16,
                &Raw {
                    bytes: &bytes,
                    timestamp: Some(Ticks::new(timestamp)),
                },
            )
            .unwrap();
    }
    let finished = session.close(None).unwrap();
    let file = finished.output;
    let summary = finished.report;
    (file, summary.events_written)
}

#[needs(python)]
#[test]
fn other_readers_count_every_written_record() {
    use RecordKind as K;
    let kinds = [
        K::SYSTEM32,
        K::SYSTEM64,
        K::COMPACT32,
        K::COMPACT64,
        K::PERFINFO32,
        K::PERFINFO64,
        K::FULL32,
        K::FULL64,
        K::INSTANCE32,
        K::INSTANCE64,
        K::EVENT32,
        K::EVENT64,
        K::MESSAGE,
    ];
    let mut files = Vec::new();
    for kind in kinds {
        let (file, records) = everything(&[kind]);
        assert_eq!(records, 400);
        assert_eq!(stream(&file).len(), 400);
        let path = scratch(&format!("{kind}.etl"));
        std::fs::write(&path, &file).unwrap();
        files.push((kind, path));
    }
    let (file, _) = everything(&kinds);
    let mixed = scratch("mixed.etl");
    std::fs::write(&mixed, &file).unwrap();
    let mut paths: Vec<PathBuf> = files.iter().map(|(_, p)| p.clone()).collect();
    paths.push(mixed);
    let answers = foreign("dissect_counts.py", &paths);
    for (answer, path) in answers.iter().zip(&paths) {
        assert_eq!(
            answer["records"].as_u64(),
            Some(401),
            "{}: {answer}",
            path.display()
        );
    }
    // etl-parser skips buffer 0.
    let known = [
        K::SYSTEM64,
        K::PERFINFO64,
        K::FULL64,
        K::EVENT32,
        K::EVENT64,
    ];
    let paths: Vec<PathBuf> = files
        .iter()
        .filter(|(k, _)| known.contains(k))
        .map(|(_, p)| p.clone())
        .collect();
    let answers = foreign("etl_parser_counts.py", &paths);
    for (answer, path) in answers.iter().zip(&paths) {
        assert_eq!(
            answer["records"].as_u64(),
            Some(400),
            "{}: {answer}",
            path.display()
        );
    }
}
