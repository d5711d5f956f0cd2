//! Merging: order, clocks, headers and refusals.

use crate::writing::{START, event};
use etl_format::compress::Effort;
use etl_format::constants::{
    ClockType, CompressionFormat, ExtendedType, LogFileMode, PointerSize, hook,
};
use etl_format::read::{ExtendedItem, Mode, Note, Options, Order, Trace};
use etl_format::rewrite::merge::{Allow, MergeReport, Merger, Reason, Relation};
use etl_format::rewrite::repair::Repairer;
use etl_format::write::record::Record;
use etl_format::write::record::{Event, Extended, PerfInfo};
use etl_format::write::{BufferCompressor, Session, SessionConfig};
use etl_format::{ErrorKind, FileHeader, FileTime, Ticks, TimeZone};
use proptest::prelude::*;

fn header() -> FileHeader {
    FileHeader {
        timestamp: Ticks::new(1_000),
        start_time: FileTime::new(START),
        end_time: FileTime::new(START + 10),
        boot_time: FileTime::new(START - 1_000_000_000),
        buffer_size: 0x1000,
        processors: 4,
        logger_name: "probe".encode_utf16().collect(),
        log_file_name: "C:\\probe.etl".encode_utf16().collect(),
        time_zone: TimeZone {
            bias: -60,
            ..TimeZone::default()
        },
        ..FileHeader::new()
    }
}

/// A trace of records on processors.
fn trace(header: FileHeader, records: &[(u16, &dyn Record)]) -> Vec<u8> {
    let (config, end) = (SessionConfig::new(header.clone()), header.end_time);
    trace_of(config, end.get(), records)
}

fn trace_of(config: SessionConfig, end: i64, records: &[(u16, &dyn Record)]) -> Vec<u8> {
    let mut session = Session::in_memory(config).unwrap();
    for (processor, record) in records {
        session.write(*processor, record).unwrap();
    }
    session.close(Some(FileTime::new(end))).unwrap().output
}

fn xpress() -> BufferCompressor {
    BufferCompressor::new(CompressionFormat::XPRESS, Effort::Fast).unwrap()
}

fn merged(inputs: &[Vec<u8>], merger: Merger<'_>) -> (Vec<u8>, MergeReport) {
    let inputs = inputs.iter().map(Vec::as_slice).collect();
    let finished = merger.run(inputs, Vec::new()).unwrap();
    let file = finished.output;
    let report = finished.report;
    (file, report)
}

/// Timestamp, processor and bytes of all records but the header event.
fn records(file: &[u8]) -> Vec<(i64, u16, Vec<u8>)> {
    let mut trace = Trace::open(file, &Options::default()).unwrap();
    let lost = |note: &Note| {
        let counted = matches!(note, Note::EventsLost(_) | Note::BuffersLost(_));
        counted
            || matches!(
                note,
                Note::EventsLostInBuffer { .. } | Note::BufferLostBefore { .. }
            )
    };
    assert!(trace.notes().iter().all(lost), "{:?}", trace.notes());
    let mut records = trace.records(Order::Time).unwrap();
    let mut out = Vec::new();
    while let Some(record) = records.next_record().unwrap() {
        if record.hook() != Some(0) {
            out.push((
                record.timestamp().get(),
                record.processor(),
                record.bytes().to_vec(),
            ));
        }
    }
    assert!(records.report().was_in_order());
    out
}

/// The thread of each event, which numbers it.
fn numbers(file: &[u8]) -> Vec<u32> {
    let word = |b: &[u8]| u32::from_le_bytes(b[8..12].try_into().unwrap());
    records(file).iter().map(|(.., b)| word(b)).collect()
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    /// Inputs on one counter: every record comes once, unchanged, in the order of a stable sort.
    #[test]
    fn merge_is_a_stable_sort(
        inputs in prop::collection::vec(
            prop::collection::vec((0..4_u16, 0..30_i64, 0..600_usize), 0..60), 1..5),
        losses in prop::collection::vec((0..9_u32, 0..9_u32), 4),
        compress: bool,
    ) {
        let mut files = Vec::new();
        let mut expected = Vec::new();
        for (index, input) in inputs.iter().enumerate() {
            let mut timestamp = 1_000 + 7 * index as i64;
            let header = FileHeader {
                timestamp: Ticks::new(timestamp),
                start_time: FileTime::new(START + 7 * index as i64),
                end_time: FileTime::new(START + 7 * index as i64 + 10),
                events_lost: losses[index].0,
                buffers_lost: losses[index].1,
                ..header()
            };
            let payload = vec![index as u8; 600];
            let events: Vec<(u16, Event<'_>)> = input
                .iter()
                .enumerate()
                .map(|(number, (processor, ticks, len))| {
                    timestamp += ticks;
                    (*processor, event((index * 100 + number) as u32, timestamp, &payload[..*len]))
                })
                .collect();
            for (processor, event) in &events {
                let mut bytes = Vec::new();
                event.encode(&mut bytes).unwrap();
                expected.push((event.timestamp().unwrap().get(), *processor, bytes));
            }
            let given: Vec<_> = events.iter().map(|(p, e)| (*p, e as &dyn Record)).collect();
            files.push(trace(header, &given));
        }
        // Equal timestamps: by processor, on a processor by input, in an input as it was.
        expected.sort_by_key(|(timestamp, processor, _)| (*timestamp, *processor));
        let compression = compress.then(xpress);
        let (file, report) = merged(&files, Merger::new().compress(compression));
        prop_assert_eq!(records(&file), expected);
        let (ahead, _) = merged(&files, Merger::new().compress(compress.then(xpress)).look_ahead());
        prop_assert!(ahead == file);
        prop_assert!(report.inputs.iter().all(|i| i.relation == Relation::Same));
        prop_assert_eq!(report.records(), inputs.iter().map(|i| i.len() as u64).sum::<u64>());
        let trace = Trace::open(&file[..], &Options::default()).unwrap();
        let lost = &losses[..inputs.len()];
        prop_assert_eq!(trace.header().events_lost, lost.iter().map(|l| l.0).sum::<u32>());
        prop_assert_eq!(trace.header().buffers_lost, lost.iter().map(|l| l.1).sum::<u32>());
        prop_assert_eq!(trace.header().timestamp.get(), 1_000);
        prop_assert_eq!(trace.header().start_time.get(), START);
    }

    /// Inputs on any clocks: records come in the order in which they were made, and the merged
    /// clock has their times, to a tick of the coarser clock.
    #[test]
    fn merge_aligns_clocks(
        clocks in prop::collection::vec(
            (0..3_u32, 1_000_000..20_000_000_i64, 0..1_i64 << 50, 0..600_000_000_i64, 1_000..4_000_u32),
            2..5),
        instants in prop::collection::vec((0..4_usize, 0..2_000_000_000_i64), 1..60),
    ) {
        let mut files = Vec::new();
        let mut made = Vec::new();
        for (index, &(kind, freq, timestamp, began, mhz)) in clocks.iter().enumerate() {
            let mut header = FileHeader {
                timestamp: Ticks::new(timestamp),
                start_time: FileTime::new(START + began),
                clock_type: ClockType(kind + 1),
                perf_freq: freq,
                ..header()
            };
            if header.clock_type == ClockType::SYSTEM_TIME {
                header.timestamp = header.start_time.get().into();
            }
            header.cpu_mhz = if header.clock_type == ClockType::CPU_CYCLE { mhz } else { 0 };
            let clock = header.clock();
            let mut events: Vec<_> = instants
                .iter()
                .enumerate()
                .filter(|(_, (input, _))| input % clocks.len() == index)
                .map(|(number, (_, since))| {
                    let time = header.start_time.get() + since;
                    made.push((time, number as u32, 10_000_000 / clock.frequency + 2));
                    event(number as u32, clock.ticks_at(FileTime::new(time)).get(), &[])
                })
                .collect();
            events.sort_by_key(|e| e.timestamp());
            let given: Vec<_> = events.iter().map(|e| (0, e as &dyn Record)).collect();
            files.push(trace(header, &given));
        }
        let (file, _) = merged(&files, Merger::new().allow(Allow::ALL));
        let trace = Trace::open(&file[..], &Options::default()).unwrap();
        let clock = trace.clock();
        made.sort();
        let merged: Vec<_> = records(&file)
            .iter()
            .map(|(timestamp, _, b)| (clock.time(Ticks::new(*timestamp)).get(), u32::from_le_bytes(b[8..12].try_into().unwrap())))
            .collect();
        prop_assert_eq!(merged.len(), made.len());
        for (time, number, tick) in made {
            let (found, _) = merged.iter().find(|(_, n)| *n == number).unwrap();
            let slack = tick + 10_000_000 / clock.frequency + 2;
            prop_assert!(found.abs_diff(time) <= slack, "{} became {}", time, found);
        }
        prop_assert!(trace.header().start_time <= FileTime::new(merged.first().map_or(i64::MAX, |t| t.0)));
    }
}

/// A second counter of 3 MHz, started a second later, whose records fall between those of the
/// first.
fn slower() -> FileHeader {
    FileHeader {
        timestamp: Ticks::new(5_000),
        start_time: FileTime::new(START + 10_000_000),
        perf_freq: 3_000_000,
        ..header()
    }
}

#[test]
fn merge_converts_timestamps_in_payloads() {
    let addresses = [7u8; 16];
    let sample = PerfInfo::new(0x0f2e, 5_000 + 300).payload(&addresses);
    let mut stack = 5_300_i64.to_le_bytes().to_vec();
    stack.extend([0; 8]);
    stack.extend(addresses);
    let walk = PerfInfo::new(0x1820, 5_330).payload(&stack);
    let isr = PerfInfo::new(0x0f43, 5_360).payload(&stack);
    let mut disk = vec![0; 24 + 16];
    disk.extend(300_i64.to_le_bytes());
    disk.extend([0; 4]);
    let read = PerfInfo::new(0x010a, 5_390).payload(&disk);
    let other = PerfInfo::new(0x0524, 5_400).payload(&stack);
    let second = trace(
        slower(),
        &[(1, &sample), (1, &walk), (1, &isr), (1, &read), (1, &other)],
    );
    let first = trace(
        header(),
        &[(0, &event(1, 2_000, &[])), (0, &event(2, 10_002_040, &[]))],
    );
    let (file, report) = merged(&[first.clone(), second], Merger::new());
    assert!(matches!(
        report.inputs[1].relation,
        Relation::Converted { .. }
    ));
    let found = records(&file);
    let timestamps: Vec<_> = found.iter().map(|(s, ..)| *s).collect();
    // 300 ticks of 3 MHz are 1000 of 10 MHz, a second after 1000.
    let base = 10_001_000;
    assert_eq!(
        timestamps,
        [
            2_000,
            base + 1_000,
            10_002_040,
            base + 1_100,
            base + 1_200,
            base + 1_300,
            base + 1_333
        ]
    );
    let word = |i: usize, at: usize| i64::from_le_bytes(found[i].2[at..at + 8].try_into().unwrap());
    assert_eq!(
        word(3, 0x10),
        base + 1_000,
        "the stack has the timestamp of its event"
    );
    assert_eq!(word(4, 0x10), base + 1_000, "the interrupt began then");
    assert_eq!(word(5, 0x10 + 40), 1_000, "the disk took as long");
    assert_eq!(
        word(6, 0x10),
        5_300,
        "a field that is not a timestamp stays"
    );
    // The disk's time counts the performance counter, with any clock of the session.
    let system_time = FileHeader {
        clock_type: ClockType::SYSTEM_TIME,
        timestamp: Ticks::new(START + 10_000_000),
        ..slower()
    };
    let read = PerfInfo::new(0x010a, START + 10_000_300).payload(&disk);
    let (file, _) = merged(&[first, trace(system_time, &[(1, &read)])], Merger::new());
    let found = records(&file);
    assert_eq!(
        found[1].0,
        base - 1_000 + 1_300,
        "a tick of system time is one of 10 MHz"
    );
    let time = i64::from_le_bytes(found[1].2[0x38..0x40].try_into().unwrap());
    assert_eq!(time, 1_000, "300 ticks of 3 MHz");
}

/// Durations of the performance counter are in its ticks, for any clock of the session.
#[test]
fn merge_converts_qpc_deltas() {
    let ticks = (-600i64).to_le_bytes();
    let delta = [
        Extended::Other(ExtendedType::TS_ID, &[1, 0, 0, 0]),
        Extended::Other(ExtendedType::QPC_DELTA, &ticks),
    ];
    let with_delta = |number, timestamp| event(number, timestamp, &[]).extended(&delta);
    let deltas = |file: &[u8]| -> Vec<i64> {
        let mut trace = Trace::open(file, &Options::default()).unwrap();
        let mut records = trace.records(Order::Time).unwrap();
        let mut out = Vec::new();
        while let Some(record) = records.next_record().unwrap() {
            out.extend(record.extended().filter_map(|item| match item {
                ExtendedItem::QpcDelta(ticks) => Some(ticks),
                _ => None,
            }));
        }
        out
    };
    let first = trace(header(), &[(0, &with_delta(1, 2_000))]);
    for (clock_type, perf_freq, expected) in [
        (ClockType::QPC, 3_000_000, -2_000),
        (ClockType::SYSTEM_TIME, 3_000_000, -2_000),
        (ClockType::SYSTEM_TIME, 10_000_000, -600),
        (ClockType::SYSTEM_TIME, 0, -600),
    ] {
        let slower = FileHeader {
            clock_type,
            perf_freq,
            ..slower()
        };
        let timestamp = slower.timestamp.get() + 3_000;
        let second = trace(slower, &[(1, &with_delta(2, timestamp))]);
        let (file, report) = merged(&[first.clone(), second], Merger::new());
        assert!(matches!(
            report.inputs[1].relation,
            Relation::Converted { .. }
        ));
        assert_eq!(
            deltas(&file),
            [-600, expected],
            "{clock_type:?} {perf_freq}"
        );
    }
}

#[test]
fn merge_keeps_loss_flags_of_buffers() {
    let lossy = |events: &[(u16, u32, i64)], lossy: u16, buffer: bool| {
        let mut session = Session::in_memory(SessionConfig::new(header())).unwrap();
        for (processor, number, timestamp) in events {
            if *processor == lossy && buffer {
                session.lose_buffer(lossy).unwrap();
            } else if *processor == lossy {
                session.lose_events(lossy, 2).unwrap();
            }
            session
                .write(*processor, &event(*number, *timestamp, &[0; 200]))
                .unwrap();
        }
        session
            .close(Some(FileTime::new(START + 9)))
            .unwrap()
            .output
    };
    let first = lossy(&[(0, 1, 2_000), (1, 2, 2_010)], 1, false);
    let second = lossy(&[(2, 3, 2_005), (3, 4, 2_020)], 3, true);
    for compression in [None, Some(xpress())] {
        let merger = Merger::new().compress(compression);
        let (file, _) = merged(&[first.clone(), second.clone()], merger);
        let trace = Trace::open(&file[..], &Options::default()).unwrap();
        let flags = |processor| {
            let mut of = trace
                .buffers()
                .iter()
                .skip(1)
                .filter(|b| b.processor == processor);
            of.next().unwrap().flags.0 & 6
        };
        assert_eq!([0, 1, 2, 3].map(flags), [0, 2, 0, 4]);
        assert_eq!(
            (trace.header().events_lost, trace.header().buffers_lost),
            (2, 1)
        );
        assert_eq!(numbers(&file), [1, 3, 2, 4]);
    }
}

#[test]
fn merge_writes_the_header_of_a_merger() {
    let late = FileHeader {
        timestamp: Ticks::new(9_000),
        start_time: FileTime::new(START + 8_000),
        end_time: FileTime::new(START + 99),
        ..header()
    };
    let first = trace(header(), &[(2, &event(1, 2_000, &[]))]);
    let second = trace(
        late,
        &[(0, &event(2, 9_010, &[])), (0, &event(3, 9_500, &[]))],
    );
    // The order of the inputs does not matter for who began first.
    for inputs in [[first.clone(), second.clone()], [second, first.clone()]] {
        let (file, _) = merged(&inputs, Merger::new());
        let trace = Trace::open(&file[..], &Options::default()).unwrap();
        let h = trace.header();
        assert_eq!(
            (h.timestamp.get(), h.start_time.get(), h.end_time.get()),
            (1_000, START, START + 99)
        );
        assert_eq!(h.mode, LogFileMode::RELOG | LogFileMode::SEQUENTIAL);
        assert_eq!(
            (h.log_major, h.log_minor, h.buffer_size, h.processors),
            (1, 5, 0x1_0000, 4)
        );
        assert_eq!(
            (h.logger_name().as_str(), h.log_file_name().as_str()),
            ("Relogger", "[multiple files]")
        );
        assert_eq!(
            (h.logger_name_word, h.log_file_name_word, h.time_zone.bias),
            (0, 0, -60)
        );
        assert_eq!(h.buffers_written as usize, trace.buffers().len());
        assert_eq!(numbers(&file), [1, 2, 3]);
        assert!(trace.buffers()[1..].iter().all(|b| b.stored == 0x1_0000));
        assert_eq!(
            file,
            merged(&inputs, Merger::new()).0,
            "the same bytes again"
        );
    }
    let (file, _) = merged(&[first], Merger::new());
    let trace = Trace::open(&file[..], &Options::default()).unwrap();
    assert_eq!(
        trace.header().log_file_name(),
        "C:\\probe.etl",
        "one input keeps its name"
    );
}

#[test]
fn merge_keeps_records_of_header_buffers() {
    let mut config = SessionConfig::new(header());
    config
        .add_header_group(hook::PARTITION_INFO, &[0; 48])
        .unwrap();
    config.add_header_group(hook::EXTENSION, &[1; 36]).unwrap();
    let kernel = trace_of(config, START + 5, &[(1, &event(1, 1_500, &[]))]);
    let hooks = |file: &[u8], zero: bool| {
        let mut trace = Trace::open(file, &Options::default()).unwrap();
        let mut records = trace.records(Order::Time).unwrap();
        let mut out = Vec::new();
        while let Some(record) = records.next_record().unwrap() {
            if (record.location().buffer_offset == 0) == zero {
                out.extend(record.hook());
            }
        }
        out
    };
    let (once, _) = merged(&[kernel.clone(), kernel.clone()], Merger::new());
    assert_eq!(
        hooks(&once, true),
        [0, 0x50],
        "the partition is in buffer 0"
    );
    assert_eq!(
        hooks(&once, false),
        [0, 0x50, 5, 0, 0x50, 5],
        "and all of them among the records"
    );
    let (again, _) = merged(std::slice::from_ref(&once), Merger::new());
    assert_eq!(
        (hooks(&again, true), hooks(&again, false)),
        (hooks(&once, true), hooks(&once, false))
    );
}

/// Merging in stages has the records of merging at once, partitions included.
#[test]
fn merge_of_merged_traces_has_each_record_once() {
    let files: Vec<_> = (0..4u8)
        .map(|index| {
            let mut config = SessionConfig::new(header());
            config
                .add_header_group(hook::PARTITION_INFO, &[index; 48])
                .unwrap();
            let number = u32::from(index);
            trace_of(
                config,
                START + 5,
                &[(1, &event(number, 1_500 + i64::from(number), &[]))],
            )
        })
        .collect();
    let (whole, _) = merged(&files, Merger::new());
    let stages = [
        merged(&files[..2], Merger::new()).0,
        merged(&files[2..], Merger::new()).0,
    ];
    let (staged, _) = merged(&stages, Merger::new());
    assert_eq!(records(&staged), records(&whole));
    assert_eq!(records(&whole).len(), 4 + 4 + 1);
    let (again, _) = merged(std::slice::from_ref(&whole), Merger::new());
    assert_eq!(records(&again), records(&whole));
}

/// The end times of the header events of a trace.
fn header_ends(file: &[u8]) -> Vec<FileTime> {
    let mut trace = Trace::open(file, &Options::default()).unwrap();
    let mut records = trace.records(Order::Time).unwrap();
    let mut ends = Vec::new();
    while let Some(record) = records.next_record().unwrap() {
        if record.hook() == Some(hook::HEADER) {
            ends.push(FileHeader::parse(record.bytes(), 0).unwrap().end_time);
        }
    }
    ends
}

#[test]
fn merge_keeps_the_headers_of_sessions_once() {
    let mut files = Vec::new();
    for ends in [30, 20, 10] {
        let header = FileHeader {
            end_time: FileTime::new(START + ends),
            ..header()
        };
        files.push(trace(header, &[(0, &PerfInfo::new(hook::SAMPLE, 1_001))]));
    }
    let ends = |ends: &[i64]| -> Vec<FileTime> {
        let times = ends.iter().map(|end| FileTime::new(START + end));
        times.collect()
    };
    let (all, report) = merged(&files, Merger::new());
    assert_eq!(report.records(), 3);
    assert_eq!(header_ends(&all), ends(&[30, 30, 20, 10]));
    let (first, _) = merged(&files[..2], Merger::new());
    let (staged, _) = merged(&[first, files[2].clone()], Merger::new());
    assert_eq!(header_ends(&staged), ends(&[30, 30, 20, 10]));
    let (as_windows, _) = merged(&files, Merger::new().omit_headers());
    assert_eq!(header_ends(&as_windows), ends(&[30]));
}

/// In passes, each timestamp is converted once, to the clock of the merged trace.
#[test]
fn merge_in_passes_writes_the_same_records() {
    let payload = [7; 200];
    let clocks = [
        FileHeader {
            perf_freq: 3_579_545,
            ..header()
        },
        FileHeader {
            perf_freq: 2_337_949,
            start_time: FileTime::new(START + 77),
            ..header()
        },
        FileHeader {
            clock_type: ClockType::SYSTEM_TIME,
            timestamp: Ticks::new(START),
            ..header()
        },
        header(),
    ];
    let files: Vec<_> = clocks
        .iter()
        .zip(0..)
        .map(|(header, index)| {
            let mut config = SessionConfig::new(header.clone());
            config.header.buffer_size = 0x1_0000;
            config
                .add_header_group(hook::PARTITION_INFO, &[index as u8; 48])
                .unwrap();
            let timestamp = |number: u32| header.timestamp.get() + i64::from(number) * 3;
            let events: Vec<_> = (0..1200)
                .map(|number| {
                    (
                        number,
                        event(2000 * index + number, timestamp(number), &payload),
                    )
                })
                .collect();
            let given: Vec<_> = events
                .iter()
                .map(|(n, e)| ((n % 4) as u16, e as &dyn Record))
                .collect();
            trace_of(config, header.end_time.get(), &given)
        })
        .collect();
    let (whole, one) = merged(&files, Merger::new());
    let mut inputs: Vec<_> = files.iter().map(Vec::as_slice).collect();
    let mut passes = 0;
    let merger = Merger::new().max_memory(0x12_0000);
    let done = merger.run_in_passes(&mut inputs, Vec::new(), || {
        passes += 1;
        Ok(std::io::Cursor::new(Vec::new()))
    });
    let finished = done.unwrap();
    let staged = finished.output;
    let report = finished.report;
    assert_eq!(passes, 2);
    assert_eq!(records(&staged), records(&whole));
    let relations = |report: &MergeReport| -> Vec<_> {
        report
            .inputs
            .iter()
            .map(|input| (input.records, input.relation))
            .collect()
    };
    assert_eq!(relations(&report), relations(&one));
    let header = |file: &[u8]| {
        Trace::open(file, &Options::default())
            .unwrap()
            .header()
            .clone()
    };
    let buffers_written = header(&whole).buffers_written;
    assert_eq!(
        FileHeader {
            buffers_written,
            ..header(&staged)
        },
        header(&whole)
    );
}

/// Buffers without records, of a processor that has others and of one that has none. What no flag
/// can say, the header counts.
#[test]
fn merge_and_repair_keep_losses_of_empty_buffers() {
    for (processor, expected, counts) in [(1, [0, 2], (0, 1)), (3, [0, 0], (1, 1))] {
        let mut file = crate::common::File::new(0x400);
        file = file
            .buffer(0, &crate::common::run(1000, 4))
            .buffer(1, &crate::common::run(1000, 4));
        file = file.buffer(processor, &[]);
        file.buffers[2].flags |= 6;
        let file = file.bytes();
        let repaired = Repairer::new().run(&file[..], Vec::new()).unwrap().output;
        for out in [
            merged(std::slice::from_ref(&file), Merger::new()).0,
            repaired,
        ] {
            let trace = Trace::open(&out[..], &Options::default()).unwrap();
            let flags: Vec<_> = trace.buffers()[1..].iter().map(|b| b.flags.0 & 6).collect();
            assert_eq!(flags, expected, "{processor}");
            let header = trace.header();
            assert_eq!(
                (header.events_lost, header.buffers_lost),
                counts,
                "{processor}"
            );
        }
    }
    // No record at all: the header counts what the flags say.
    let mut file = crate::common::File::new(0x400).buffer(1, &[]);
    file.buffers[0].flags |= 6;
    let (out, _) = merged(&[file.bytes()], Merger::new());
    let trace = Trace::open(&out[..], &Options::default()).unwrap();
    assert_eq!(
        (trace.header().events_lost, trace.header().buffers_lost),
        (1, 1)
    );
}

#[test]
fn merge_and_repair_keep_the_mark_of_selections() {
    let made = |mode| {
        let mut file = crate::common::File::new(0x400).buffer(0, &crate::common::run(1000, 4));
        file.event.mode = mode;
        file.bytes()
    };
    let is_selection = |file: &[u8]| {
        Trace::open(file, &Options::default())
            .unwrap()
            .header()
            .is_selection()
    };
    // The same bit means nothing in the mode of a session.
    for (mode, expected) in [(0x1_1000, true), (0x1001, false), (0x1_0001, false)] {
        let file = made(mode);
        let repaired = Repairer::new().run(&file[..], Vec::new()).unwrap().output;
        assert_eq!(is_selection(&repaired), expected, "{mode:#x}");
        let (merged, _) = merged(&[made(1), file], Merger::new());
        assert_eq!(is_selection(&merged), expected, "{mode:#x}");
    }
}

fn refused(inputs: [FileHeader; 2]) -> (Reason, etl_format::Result<MergeReport>) {
    let files = inputs.map(|header| {
        let timestamp = header.timestamp.get() + 5;
        trace(header, &[(0, &event(1, timestamp, &[]))])
    });
    let run = |allow| {
        let inputs = files.iter().map(Vec::as_slice).collect();
        Merger::new()
            .allow(allow)
            .run(inputs, Vec::new())
            .map(|finished| finished.report)
    };
    let ErrorKind::Refused(refusal) = run(Allow::default()).unwrap_err().kind else {
        panic!()
    };
    (refusal.reason, run(Allow::ALL))
}

#[test]
fn merge_refuses_unrelated_traces_unless_allowed() {
    let (reason, allowed) = refused([
        header(),
        FileHeader {
            build: 9_600,
            ..header()
        },
    ]);
    assert_eq!(
        (reason.name(), reason.to_string().contains("9600")),
        ("machine", true)
    );
    assert_eq!(allowed.unwrap().inputs[1].relation, Relation::Same);
    let (reason, _) = refused([
        header(),
        FileHeader {
            processors: 2,
            ..header()
        },
    ]);
    assert_eq!(
        reason,
        Reason::Machine {
            what: "processors",
            one: 2,
            other: 4
        }
    );
    let (reason, _) = refused([
        header(),
        FileHeader {
            cpu_mhz: 3_900,
            ..header()
        },
    ]);
    assert_eq!(reason.name(), "machine");
    // The same counter values an hour later: the machine was restarted.
    let later = FileHeader {
        start_time: FileTime::new(START + 36_000_000_000),
        ..header()
    };
    let (reason, allowed) = refused([header(), later]);
    assert_eq!(reason, Reason::Boot { seconds: 3_600 });
    assert!(matches!(
        allowed.unwrap().inputs[1].relation,
        Relation::Converted { .. }
    ));
    let booted = FileHeader {
        boot_time: FileTime::new(START - 99_000_000_000),
        ..slower()
    };
    let (reason, _) = refused([header(), booted]);
    assert_eq!(reason.name(), "boot");
    // A counter that went on when the machine was started again.
    let booted = FileHeader {
        boot_time: FileTime::new(header().boot_time.get() + 99_000_000_000),
        ..header()
    };
    let (reason, allowed) = refused([header(), booted]);
    assert_eq!(reason, Reason::Boot { seconds: 9_900 });
    assert_eq!(allowed.unwrap().inputs[1].relation, Relation::Same);
    for lame in [
        FileHeader {
            clock_type: ClockType(0),
            ..header()
        },
        FileHeader {
            perf_freq: 0,
            ..header()
        },
        FileHeader {
            start_time: FileTime::new(0),
            ..header()
        },
    ] {
        let (reason, allowed) = refused([header(), lame]);
        assert_eq!(reason.name(), "clock");
        assert_eq!(allowed.unwrap().inputs[1].relation, Relation::Same);
    }
    let narrow = FileHeader {
        pointer_size: PointerSize::P4,
        stated_pointer_size: 4,
        ..header()
    };
    let (reason, allowed) = refused([header(), narrow]);
    assert_eq!(reason, Reason::PointerSize { one: 4, other: 8 });
    assert_eq!(allowed.unwrap().records(), 2);
}

#[test]
fn merge_ignores_a_small_change_of_the_wall_clock() {
    let set = FileHeader {
        timestamp: Ticks::new(40_000_000),
        start_time: FileTime::new(START + 90_000_000),
        ..header()
    };
    let first = trace(
        header(),
        &[
            (0, &event(1, 39_999_999, &[])),
            (0, &event(3, 40_000_001, &[])),
        ],
    );
    let second = trace(set, &[(0, &event(2, 40_000_000, &[]))]);
    let (file, report) = merged(&[first, second], Merger::new());
    assert_eq!(report.inputs[1].relation, Relation::Same);
    assert_eq!(numbers(&file), [1, 2, 3]);
}

#[test]
fn merge_errors_name_the_input() {
    let sound = trace(
        header(),
        &[(0, &event(1, 2_000, &[7; 900])), (0, &event(2, 2_001, &[]))],
    );
    let cut = sound[..0x1100].to_vec();
    let run = |inputs: Vec<&[u8]>, mode| {
        Merger::new()
            .options(Options {
                mode,
                ..Options::default()
            })
            .run(inputs, Vec::new())
    };
    assert_eq!(run(vec![], Mode::Strict).unwrap_err().code(), "no-input");
    let error = run(vec![&sound, &cut], Mode::Strict).unwrap_err();
    assert_eq!((error.input, error.code()), (Some(1), "truncated"));
    let report = run(vec![&sound, &cut], Mode::Salvage).unwrap().report;
    assert_eq!(report.inputs[0].damage.len(), 0);
    assert_eq!(report.inputs[1].damage.len(), 1);
}

#[test]
fn merge_that_looks_ahead_refuses_what_is_further_out_of_order() {
    // Two buffers of 4 KiB and more lie between the second record and its place.
    let payload = [0; 600];
    let times = std::iter::once(5_000)
        .chain([1_500])
        .chain((0..20).map(|i| 6_000 + i));
    let shuffled = std::iter::once(2_000)
        .chain((0..20).map(|i| 6_000 + i))
        .chain([1_500]);
    for (times, in_order) in [
        (times.collect::<Vec<_>>(), true),
        (shuffled.collect(), false),
    ] {
        let events: Vec<_> = times
            .iter()
            .map(|t| event(*t as u32, *t, &payload))
            .collect();
        let given: Vec<_> = events.iter().map(|e| (0, e as &dyn Record)).collect();
        let file = trace(header(), &given);
        let inputs = || vec![&file[..], &file[..]];
        let ahead = Merger::new().look_ahead().run(inputs(), Vec::new());
        let scanned = merged(&[file.clone(), file.clone()], Merger::new()).0;
        assert_eq!(records(&scanned).len(), 2 * times.len());
        match ahead {
            Ok(ahead) => assert!(in_order && ahead.output == scanned),
            Err(error) => {
                assert!(
                    !in_order && matches!(error.kind, ErrorKind::OutOfOrder),
                    "{error}"
                );
                assert_eq!(error.input, Some(0));
            }
        }
    }
}
