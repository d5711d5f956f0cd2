//! The header event, and files that are not traces.

use crate::common::header::names;
use crate::common::{Buffer, File, HeaderEvent, patch, run, small};
use etl_format::constants::{ClockType, LogFileMode, PointerSize};
use etl_format::read::{Options, Records, Trace};
use etl_format::write::Session;
use etl_format::{Error, ErrorKind, FileHeader, Ticks};

fn read(file: &File) -> FileHeader {
    let bytes = file.bytes();
    let header = Records::stream(bytes.as_slice(), &Options::default())
        .unwrap()
        .header()
        .clone();
    let trace = Trace::open(bytes.as_slice(), &Options::default()).unwrap();
    assert_eq!(trace.header(), &header);
    assert_eq!(trace.clock(), header.clock());
    header
}

fn read_event(event: HeaderEvent) -> FileHeader {
    read(&File {
        event,
        ..File::new(0x1000)
    })
}

#[test]
fn parse_reads_all_fields_of_both_pointer_sizes() {
    for wide in [false, true] {
        let h = read_event(HeaderEvent {
            wide,
            events_lost: 41,
            buffers_lost: 2,
            logger_word: 0x0102_0304,
            file_word: 0x0506_0708,
            ..HeaderEvent::default()
        });
        assert_eq!(
            h.pointer_size,
            if wide {
                PointerSize::P8
            } else {
                PointerSize::P4
            }
        );
        assert_eq!(
            (h.thread_id, h.process_id, h.timestamp.get()),
            (0x1234, 0x5678, 900)
        );
        assert_eq!((h.kernel_time, h.user_time), (21, 22));
        assert_eq!((h.buffer_size, h.os_major, h.os_minor), (0x1000, 10, 0));
        assert_eq!(
            (h.log_major, h.log_minor, h.build, h.processors),
            (1, 5, 22631, 4)
        );
        assert_eq!(
            (h.end_time.get(), h.start_time.get()),
            (133_000_000_010_000_000, 133_000_000_000_000_000)
        );
        assert_eq!((h.timer_resolution, h.maximum_file_size), (156_250, 100));
        assert_eq!(
            (h.mode, h.buffers_written, h.start_buffers),
            (LogFileMode(1), 1, 1)
        );
        assert_eq!(
            (h.stated_pointer_size, h.events_lost),
            (if wide { 8 } else { 4 }, 41)
        );
        assert_eq!((h.cpu_mhz, h.buffers_lost), (3000, 2));
        assert_eq!(
            (h.logger_name_word, h.log_file_name_word),
            (0x0102_0304, 0x0506_0708)
        );
        let zone = &h.time_zone;
        assert_eq!(
            (zone.bias, zone.standard_bias, zone.daylight_bias),
            (-60, 0, -60)
        );
        assert_eq!(zone.standard_name(), "@tzres.dll,-322");
        assert_eq!(zone.daylight_name(), "@tzres.dll,-321");
        assert_eq!(zone.standard_date, [0, 10, 0, 5, 3, 0, 0, 0]);
        assert_eq!(zone.daylight_date, [0, 3, 0, 5, 2, 0, 0, 0]);
        assert_eq!((h.padding, h.boot_time.get()), (0, 132_999_000_000_000_000));
        assert_eq!((h.perf_freq, h.clock_type), (10_000_000, ClockType::QPC));
        assert_eq!(
            (h.logger_name().as_str(), h.log_file_name().as_str()),
            ("session", "C:\\trace.etl")
        );
        assert!(h.is_closed());
    }
}

#[test]
fn parse_keeps_64_bits_of_pointer_words() {
    let h = read_event(HeaderEvent {
        logger_word: u64::MAX,
        file_word: 1 << 63,
        ..HeaderEvent::default()
    });
    assert_eq!(
        (h.logger_name_word, h.log_file_name_word),
        (u64::MAX, 1 << 63)
    );
}

#[test]
fn parse_accepts_incomplete_names() {
    let lone = [0x00, 0xd8, 0, 0, 0, 0];
    for (stored, logger, file) in [
        (names("", ""), "", ""),
        (names("", "f"), "", "f"),
        (names("l", ""), "l", ""),
        (names("Größe 漢 🦀", "x"), "Größe 漢 🦀", "x"),
        (vec![], "", ""),
        (b"a\0".to_vec(), "a", ""),
        (b"a\0\0\0b\0".to_vec(), "a", "b"),
        (b"a\0\0\0b\0c".to_vec(), "a", "b"),
        (lone.to_vec(), "\u{fffd}", ""),
    ] {
        let h = read_event(HeaderEvent {
            names: stored.clone(),
            ..HeaderEvent::default()
        });
        assert_eq!(
            (h.logger_name().as_str(), h.log_file_name().as_str()),
            (logger, file),
            "{stored:?}"
        );
    }
}

#[test]
fn zone_name_may_fill_its_field() {
    let long = "x".repeat(32);
    let standard = (long.clone(), [0; 8], 5);
    let h = read_event(HeaderEvent {
        standard,
        ..HeaderEvent::default()
    });
    assert_eq!(
        (h.time_zone.standard_name(), h.time_zone.standard_bias),
        (long, 5)
    );
}

#[test]
fn parse_accepts_log_versions_since_vista() {
    for log in [(1, 4), (1, 5), (2, 0), (1, 6), (3, 7)] {
        let h = read_event(HeaderEvent {
            log,
            ..HeaderEvent::default()
        });
        assert_eq!((h.log_major, h.log_minor), log);
    }
}

#[test]
fn mode_determines_the_dialect() {
    for (mode, dialect) in [
        (0x1, "kernel"),
        (0x0200_0080, "kernel"),
        (0x1_1001, "relogged"),
        (0x0800, "private session"),
        (0x0002_0802, "private session"),
        (0x0001_0801, "relogged"),
        (0x0400_0001, "kernel, compressed"),
        (0x0401_0001, "relogged, compressed"),
    ] {
        assert_eq!(
            read_event(HeaderEvent {
                mode,
                ..HeaderEvent::default()
            })
            .dialect(),
            dialect
        );
    }
}

/// A FILETIME one second after the start, for each kind of clock.
#[test]
fn clock_converts_each_kind() {
    for (clock, perf_freq, ticks) in [
        (0, 3_117_777, 3_117_777),
        (1, 2_337_949, 2_337_949),
        (2, 5, 10_000_000),
        (3, 5, 3_000_000_000i64),
    ] {
        let h = read_event(HeaderEvent {
            clock,
            perf_freq,
            ..HeaderEvent::default()
        });
        assert_eq!(
            h.clock().time(Ticks::new(900 + ticks)).get(),
            133_000_000_010_000_000,
            "clock {clock}"
        );
        assert_eq!(
            h.clock().time(Ticks::new(900)).get(),
            133_000_000_000_000_000
        );
    }
}

fn note_codes(file: &File) -> Vec<&'static str> {
    let bytes = file.bytes();
    Trace::open(bytes.as_slice(), &Options::default())
        .unwrap()
        .notes()
        .iter()
        .map(|n| n.code())
        .collect()
}

#[test]
fn clean_header_has_no_notes() {
    assert_eq!(note_codes(&small()), [""; 0]);
}

#[test]
fn losses_and_inconsistencies_become_notes() {
    let with = |change: fn(&mut HeaderEvent)| {
        let mut file = small();
        change(&mut file.event);
        note_codes(&file)
    };
    assert_eq!(with(|e| e.events_lost = 3), ["events-lost"]);
    assert_eq!(with(|e| e.buffers_lost = 3), ["buffers-lost"]);
    assert_eq!(with(|e| e.end_time = 0), ["unclosed"]);
    assert_eq!(with(|e| e.buffers_written = Some(0)), ["unclosed"]);
    assert_eq!(with(|e| e.buffers_written = Some(1)), ["unclosed"]);
    assert_eq!(with(|e| e.pointer_size = Some(4)), ["pointer-size"]);
    assert_eq!(with(|e| e.buffers_written = Some(5)), ["buffer-count"]);
}

#[test]
fn session_without_events_is_closed_by_its_end_time() {
    let mut file = File::new(0x1000);
    assert_eq!(note_codes(&file), [""; 0]);
    file.event.end_time = file.event.start_time;
    assert_eq!(note_codes(&file), ["unclosed"]);
    assert!(!read(&file).is_closed());
}

#[test]
fn header_event_is_the_first_record() {
    for wide in [false, true] {
        let mut file = small();
        file.event.wide = wide;
        let bytes = file.bytes();
        let mut reader = Records::stream(bytes.as_slice(), &Options::default()).unwrap();
        let first = reader.next_record().unwrap().unwrap();
        assert_eq!(first.bytes(), &bytes[0x48..0x48 + first.bytes().len()]);
        assert_eq!((first.timestamp().get(), first.hook()), (900, Some(0)));
        assert_eq!(FileHeader::parse(first.bytes(), 0x48).unwrap().wide(), wide);
    }
}

/// Short for the width, in the test above.
trait Wide {
    fn wide(&self) -> bool;
}

impl Wide for FileHeader {
    fn wide(&self) -> bool {
        self.pointer_size == PointerSize::P8
    }
}

/// Both ways to open refuse the bytes, in both modes. Returns the error of the strict mode.
fn refused(bytes: &[u8]) -> Error {
    let strict = Options::default();
    let error = Trace::open(bytes, &strict).expect_err("no trace");
    assert!(Records::stream(bytes, &strict).is_err());
    assert!(Trace::open(bytes, &Options::salvage()).is_err());
    assert!(Records::stream(bytes, &Options::salvage()).is_err());
    error
}

fn not_etl(bytes: &[u8]) -> &'static str {
    match refused(bytes).kind {
        ErrorKind::NotEtl(why) => why,
        other => panic!("{other:?}"),
    }
}

#[test]
fn traces_of_windows_xp_are_refused() {
    for (version, log) in [(2, (1, 0)), (2, (1, 2)), (2, (1, 3)), (1, (1, 0))] {
        let mut file = small();
        (file.event.version, file.event.log) = (version, log);
        let why = not_etl(&file.bytes());
        assert!(why.contains("Windows XP") && why.contains("2003"), "{why}");
    }
}

/// All 672 known traces of private sessions have these bytes at the start of their first record.
#[test]
fn private_sessions_are_read_and_written_with_version_0() {
    for wide in [false, true] {
        let mut file = small();
        file.event.wide = wide;
        file.event.version = 0;
        file.event.mode = 0x2_0802;
        let bytes = file.bytes();
        assert_eq!(bytes[0x48..0x4c], [0, 0, if wide { 2 } else { 1 }, 0xc0]);
        let header = read(&file);
        assert!(header.is_private());
        assert_eq!(header.dialect(), "private session");
        let written = Session::in_memory(header).unwrap().finish().unwrap();
        assert_eq!(written[0x48..0x4c], bytes[0x48..0x4c]);
    }
}

#[test]
fn first_buffer_with_a_header_event_needs_no_type() {
    let mut file = small();
    file.event.buffers_written = Some(7);
    let mut bytes = file.bytes();
    patch(&mut bytes, 0x36, &[0, 0]);
    for options in [Options::default(), Options::salvage()] {
        let trace = Trace::open(bytes.as_slice(), &options).unwrap();
        assert!(trace.buffers()[0].is_header());
        assert_eq!(trace.notes(), []);
        assert!(trace.damage().is_empty());
    }
}

/// The next buffers of [`small`], as a session writes them that appends to the file: without a file
/// header, with numbers from 1 on.
fn append(file: &mut File, logger: u16, first_timestamp: i64) {
    for number in 1..4 {
        let records = run(first_timestamp + number * 100, 4);
        let buffer = Buffer::data(0x400, 0, number, &records);
        file.buffers.push(Buffer { logger, ..buffer });
    }
}

#[test]
fn appended_sessions_number_their_buffers_again() {
    // Windows' setup: other ids, without the mode. Network diagnostics: the mode, perhaps one id.
    for (mode, logger) in [(0x1, 9), (0x4, 9), (0x4, 7)] {
        let mut file = small();
        file.event.mode = mode;
        file.event.buffers_written = Some(7);
        append(&mut file, logger, 10_000);
        append(&mut file, logger + 1, 20_000);
        assert_eq!(note_codes(&file), [""; 0], "{mode:#x} {logger}");
        let bytes = file.bytes();
        let trace = Trace::open(bytes.as_slice(), &Options::default()).unwrap();
        let runs: Vec<u32> = trace.buffers().iter().map(|b| b.run).collect();
        assert_eq!(runs, [0, 0, 0, 0, 0, 0, 0, 1, 1, 1, 2, 2, 2]);
    }
    // One id without the mode: pieces of files that were put together.
    let mut file = small();
    append(&mut file, 7, 10_000);
    assert!(note_codes(&file).contains(&"sequence-twice"));
}

#[test]
fn damaged_id_of_a_session_begins_no_run() {
    let mut file = small();
    file.buffers[3].logger = 0x1007;
    assert_eq!(note_codes(&file), [""; 0]);
}

#[test]
fn other_files_are_refused() {
    assert_eq!(not_etl(b""), "it is empty");
    let filled = |magic: &[u8], rest: u8| {
        let mut bytes = vec![rest; 0x3000];
        patch(&mut bytes, 0, magic);
        bytes
    };
    let text = b"Just some text, line after line.\r\n".repeat(300);
    for (name, bytes) in [
        ("text", text),
        ("evtx", filled(b"ElfFile\0", 0)),
        ("zip", filled(b"PK\x03\x04\x14\0\0\0\x08\0", 0x55)),
        ("pcap", filled(&[0xd4, 0xc3, 0xb2, 0xa1, 2, 0, 4, 0], 0)),
        (
            "pcapng",
            filled(
                &[
                    0x0a, 0x0d, 0x0d, 0x0a, 0x1c, 0, 0, 0, 0x4d, 0x3c, 0x2b, 0x1a,
                ],
                0,
            ),
        ),
        ("zeros", vec![0; 0x3000]),
        ("filler", vec![0xff; 0x3000]),
    ] {
        let why = not_etl(&bytes);
        assert!(why.contains("trace header event"), "{name}: {why}");
    }
    for short in [&b"x"[..], b"MZ\x90\0", &[0; 0x47]] {
        assert_eq!(refused(short).code(), "truncated");
    }
}

#[test]
fn other_first_record_is_refused() {
    let mut file = small();
    file.event.hook = 0x0005;
    let error = Trace::open(file.bytes().as_slice(), &Options::default()).unwrap_err();
    assert_eq!((error.offset, error.code()), (0x48, "not-etl"));
}

#[test]
fn truncated_header_event_states_the_missing_bytes() {
    let whole = File {
        event: HeaderEvent::default(),
        ..File::new(0x1000)
    }
    .bytes();
    for len in 0..0x48 + 0x138 {
        let error = Trace::open(&whole[..len], &Options::default()).unwrap_err();
        if len > 0x48 + 8 {
            assert_eq!(error.offset, 0x48, "{len:#x}");
            let ErrorKind::Truncated { need, have, .. } = error.kind else {
                panic!("{error}")
            };
            assert_eq!((need, have), (0x138, len as u64 - 0x48));
        }
    }
}

#[test]
fn too_small_header_event_is_refused() {
    let mut bytes = small().bytes();
    patch(&mut bytes, 0x48 + 4, &0x137u16.to_le_bytes());
    let error = Trace::open(bytes.as_slice(), &Options::default()).unwrap_err();
    assert_eq!((error.offset, error.code()), (0x4c, "invalid"));
}

#[test]
fn buffer_sizes_of_windows_are_read() {
    for size in [0x1000, 0x2000, 0x1_0000, 0x8_0000, 0x10_0000, 0x100_0000] {
        let file = File::new(size)
            .buffer(0, &run(1000, 3))
            .buffer(1, &run(1000, 3));
        assert_eq!(read(&file).buffer_size, size);
        assert_eq!(crate::common::reading::sound(&file.bytes()).len(), 7);
    }
}
