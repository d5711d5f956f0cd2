//! Splits a real merged trace and merges it again; compresses and decompresses real traces.

use etl_format::Ticks;
use etl_format::compress::Effort;
use etl_format::constants::{CompressionFormat, LogFileMode};
use etl_format::cursor::Bytes;
use etl_format::read::{Options, Order, PipeSource, Record, Trace};
use etl_format::rewrite::merge::{Allow, Merger, Relation};
use etl_format::rewrite::repack::Repacker;
use etl_format::rewrite::repair::Repairer;
use etl_format::write::record::Raw;
use etl_format::write::{BufferCompressor, Session, SessionConfig, fill};
use etl_test_support::{all_traces, foreign, needs, trace};

const MERGED: &str = "perfview/net.4.5.2.x64.etl";
const RUNTIME: &str = "e13c0d23-ccbc-4e12-931b-d9cc2eee27e4";
const RUNDOWN: &str = "a669021c-c450-4609-a035-5af59af4df18";

/// The session of a record: 0 for the kernel, 1 for the runtime, 2 for the rundown.
fn origin(record: &Record<'_>) -> usize {
    let provider = record.event().map(|e| e.provider.to_string());
    match provider.as_deref() {
        Some(RUNTIME) => 1,
        Some(RUNDOWN) => 2,
        _ => 0,
    }
}

/// One of the three sessions, as the kernel would have written it. Its clock is `faster` times as
/// fast as the original's.
fn session(file: &[u8], which: usize, faster: i64) -> Vec<u8> {
    let mut trace = Trace::open(file, &Options::default()).unwrap();
    let mut header = trace.header().clone();
    header.mode = LogFileMode::SEQUENTIAL;
    header.set_log_version();
    header.logger_name = format!("session {which}").encode_utf16().collect();
    let start = header.timestamp.get();
    let timestamp = |old: i64| {
        if faster == 1 {
            old
        } else {
            (old - start) * faster + 77
        }
    };
    header.timestamp = timestamp(start).into();
    header.perf_freq *= faster;
    let end = header.end_time;
    let config = SessionConfig::new(header);
    let mut session = Session::in_memory(config).unwrap();
    let mut records = trace.records(Order::Time).unwrap();
    let mut bytes = Vec::new();
    while let Some(record) = records.next_record().unwrap() {
        if record.hook() == Some(0) || origin(&record) != which {
            continue;
        }
        bytes.clear();
        bytes.extend_from_slice(record.bytes());
        if faster != 1 {
            assert!(record.is_event(), "its payload may have timestamps");
            let new = timestamp(bytes.i64_at(0x10).unwrap());
            bytes[0x10..0x18].copy_from_slice(&new.to_le_bytes());
        }
        let raw = Raw {
            bytes: &bytes,
            timestamp: Some(Ticks::new(timestamp(record.timestamp().get()))),
        };
        session.write(record.processor(), &raw).unwrap();
    }
    session.close(Some(end)).unwrap().output
}

/// FILETIME, processor and bytes of every record after the header event, in time order. Records of
/// one processor with equal timestamps are sorted by their bytes. `timestamps` keeps the timestamps
/// in the bytes.
fn stream(file: &[u8], timestamps: bool) -> Vec<(i64, u16, Vec<u8>)> {
    let mut trace = Trace::open(file, &Options::default()).unwrap();
    let clock = trace.clock();
    let mut records = trace.records(Order::Time).unwrap();
    let mut out = Vec::new();
    let mut last = i64::MIN;
    while let Some(record) = records.next_record().unwrap() {
        assert!(record.timestamp() >= Ticks::new(last), "time order");
        last = record.timestamp().get();
        if record.hook() == Some(0) {
            continue;
        }
        let mut bytes = record.bytes().to_vec();
        if !timestamps {
            let at = if record.is_kernel() && record.thread_id().is_none() {
                8
            } else {
                0x10
            };
            bytes[at..at + 8].fill(0);
            // Timestamps and durations in payloads: the event of a stack, the start of interrupts
            // and faults, the time of the disk.
            let place = match record.hook() {
                Some(0x1820 | 0x1825 | 0x1826 | 0x0f32 | 0x0f42..=0x0f45 | 0x0220) => Some(0),
                Some(0x010a | 0x010b) => Some(24 + 2 * record.pointer_size().unwrap().bytes()),
                Some(0x010e) => Some(8),
                _ => None,
            };
            if let Some(place) = place {
                let at = bytes.len() - record.payload().len() + place;
                bytes[at..at + 8].fill(0);
            }
        }
        out.push((
            clock.time(record.timestamp()).get(),
            record.processor(),
            bytes,
        ));
    }
    assert!(records.report().was_in_order());
    out.sort();
    out
}

fn merged(inputs: &[Vec<u8>], merger: Merger<'_>) -> (Vec<u8>, Vec<Relation>) {
    let inputs = inputs.iter().map(Vec::as_slice).collect();
    let finished = merger.run(inputs, Vec::new()).unwrap();
    let file = finished.output;
    let report = finished.report;
    (file, report.inputs.iter().map(|i| i.relation).collect())
}

/// The report without file offsets, which change when a trace is written again.
fn judgement(file: &[u8]) -> String {
    let report = etl_verify::Verifier::new()
        .verify(&mut &file[..], "trace")
        .unwrap()
        .json();
    let lines = report
        .lines()
        .filter(|line| !line.trim_start().starts_with("\"offset\""));
    lines.collect::<Vec<_>>().join("\n")
}

#[needs(traces)]
#[test]
fn merge_restores_a_split_merged_trace() {
    let path = trace(MERGED);
    let file = std::fs::read(path).unwrap();
    let mut parts: Vec<Vec<u8>> = (0..3).map(|which| session(&file, which, 1)).collect();
    let compressor = BufferCompressor::new(CompressionFormat::XPRESS, Effort::default()).unwrap();
    let merger = || Merger::new().omit_headers().compress(compressor.clone());
    let (again, relations) = merged(&parts, merger());
    assert!(relations.iter().all(|r| *r == Relation::Same));
    assert!(
        stream(&again, true) == stream(&file, true),
        "every record, byte by byte"
    );
    assert_eq!(judgement(&again), judgement(&file));
    let header = |file: &[u8]| {
        Trace::open(file, &Options::default())
            .unwrap()
            .header()
            .clone()
    };
    let (new, old) = (header(&again), header(&file));
    assert_eq!(
        (new.logger_name(), new.log_file_name()),
        (old.logger_name(), old.log_file_name())
    );
    assert_eq!(
        (new.mode, new.log_major, new.log_minor),
        (old.mode, old.log_major, old.log_minor)
    );
    assert_eq!(
        (new.timestamp, new.start_time, new.perf_freq),
        (old.timestamp, old.start_time, old.perf_freq)
    );
    assert_eq!(
        (new.processors, new.buffer_size, new.build),
        (old.processors, old.buffer_size, old.build)
    );
    assert_eq!(new.end_time, old.end_time);
    assert!(
        again.len() <= file.len() * 11 / 10,
        "{} of {}",
        again.len(),
        file.len()
    );
    // The order of the inputs does not matter.
    parts.rotate_left(1);
    assert!(stream(&merged(&parts, merger()).0, true) == stream(&file, true));
}

#[needs(traces)]
#[test]
fn merge_converts_timestamps_of_another_clock() {
    let path = trace(MERGED);
    let file = std::fs::read(path).unwrap();
    // The rundown's clock is three times as fast. The merge uses the fastest clock, so that it
    // rounds nothing.
    let parts = [
        session(&file, 0, 1),
        session(&file, 1, 1),
        session(&file, 2, 3),
    ];
    let (again, relations) = merged(&parts, Merger::new().omit_headers());
    let converted = |r: &Relation| matches!(r, Relation::Converted { .. });
    assert_eq!(
        relations.iter().map(converted).collect::<Vec<_>>(),
        [true, true, false]
    );
    assert!(
        stream(&again, false) == stream(&file, false),
        "every record, timestamps aside"
    );
    let old: serde_json::Value = serde_json::from_str(&judgement(&file)).unwrap();
    let new: serde_json::Value = serde_json::from_str(&judgement(&again)).unwrap();
    assert_eq!(new, old);
}

#[needs(traces, python)]
#[test]
fn merge_of_different_machines_keeps_every_record() {
    let mut inputs = Vec::new();
    let mut records = 0;
    for path in all_traces() {
        let file = std::fs::read(path).unwrap();
        if file.len() < 600_000 && Trace::open(&file[..], &Options::default()).is_ok() {
            records += stream(&file, false).len();
            inputs.push(file);
        }
    }
    let slices = || inputs.iter().map(Vec::as_slice).collect::<Vec<&[u8]>>();
    assert!(Merger::new().run(slices(), Vec::new()).is_err());
    let (file, _) = merged(&inputs, Merger::new().omit_headers().allow(Allow::ALL));
    let expected = records_of_merge(records, &inputs, &file);
    assert_eq!(stream(&file, false).len(), expected);
    // Another reader reads header events among the records.
    let (file, _) = merged(&inputs, Merger::new().allow(Allow::ALL));
    let headers = header_events(&file);
    assert!(headers > 1, "only that of the merged trace");
    let path = std::path::PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join("merged-all.etl");
    std::fs::write(&path, &file).unwrap();
    let answers = foreign("dissect_counts.py", &[path]);
    assert_eq!(
        answers[0]["records"].as_u64(),
        Some((expected + headers) as u64)
    );
}

/// The number of header events: that of the file, and those of merged sessions.
fn header_events(file: &[u8]) -> usize {
    let mut trace = Trace::open(file, &Options::default()).unwrap();
    let mut records = trace.records(Order::File).unwrap();
    let mut count = 0;
    while let Some(record) = records.next_record().unwrap() {
        count += usize::from(record.hook() == Some(0));
    }
    count
}

/// The number of records after a merge: it adds a copy of the first input's partition in buffer 0,
/// and leaves out such copies of the inputs, which another buffer has once more.
fn records_of_merge(records: usize, inputs: &[Vec<u8>], file: &[u8]) -> usize {
    let partitions = |file: &[u8]| {
        let mut trace = Trace::open(file, &Options::default()).unwrap();
        let mut records = trace.records(Order::File).unwrap();
        let (mut in_buffer_0, mut elsewhere) = (Vec::new(), Vec::new());
        while let Some(record) = records.next_record().unwrap() {
            if record.hook() == Some(0x50) {
                let is_first = record.location().buffer_offset == 0;
                let place = if is_first {
                    &mut in_buffer_0
                } else {
                    &mut elsewhere
                };
                place.push(record.bytes().to_vec());
            }
        }
        (in_buffer_0, elsewhere)
    };
    let copies = |input: &Vec<u8>| {
        let (in_buffer_0, elsewhere) = partitions(input);
        in_buffer_0
            .iter()
            .filter(|bytes| elsewhere.contains(bytes))
            .count()
    };
    records + partitions(file).0.len() - inputs.iter().map(copies).sum::<usize>()
}

#[needs(traces)]
#[test]
fn decompress_restores_compressed_real_traces() {
    for path in all_traces() {
        let file = std::fs::read(&path).unwrap();
        let Ok(trace) = Trace::open(&file[..], &Options::default()) else {
            continue;
        };
        let was = trace.compression();
        let packed = trace.header().mode.has(LogFileMode::COMPRESSED);
        let mut plain = Vec::new();
        let pipe = PipeSource::new(&file[..]);
        Repacker::decompress().run(pipe, &mut plain).unwrap();
        if !packed {
            // Decompressing an uncompressed trace copies it.
            assert!(plain == file, "{}", path.display());
        }
        let format = if packed {
            was
        } else {
            CompressionFormat::XPRESS
        };
        let compressor = BufferCompressor::new(format, Effort::default()).unwrap();
        let mut small = Vec::new();
        Repacker::compress(compressor)
            .run(&plain[..], &mut small)
            .unwrap();
        let mut again = Vec::new();
        Repacker::decompress().run(&small[..], &mut again).unwrap();
        assert!(again == plain, "{}", path.display());
        assert!(small.len() < file.len() || packed, "{}", path.display());
        assert!(small.len() <= file.len() * 11 / 10, "{}", path.display());
    }
}

#[needs(trace = "etl-parser/AMSITrace.etl")]
#[test]
fn repair_keeps_the_intact_records_of_a_damaged_trace() {
    let path = trace("etl-parser/AMSITrace.etl");
    let mut file = std::fs::read(path).unwrap();
    // Filler replaces its end, and one buffer is lost.
    let whole = stream(&file, true).len();
    file[0x2_0000..0x3_0000].fill(0xcc);
    file.truncate(0x5_8000);
    fill(&mut file, 0x5_9000);
    let finished = Repairer::new().run(&file[..], Vec::new()).unwrap();
    let sound = finished.output;
    let report = finished.report;
    assert!(!report.was_intact() && !report.damage.is_empty());
    let left = stream(&sound, true);
    assert!(
        left.len() < whole && left.len() as u64 == report.summary.events_written + 1,
        "{}",
        left.len()
    );
}
