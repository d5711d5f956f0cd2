//! False sizes, counts and numbers of buffers and records.

use etl_format::constants::CompressionFormat;
use etl_format::read::{Mode, Options, Order, OrderCheck, PipeSource, Records, Trace};

use crate::MIB;
use crate::common::event::{Event, chain};
use crate::common::records::{MESSAGE, opaque};
use crate::common::{
    BUFFER_HEADER, Buffer, File, Out, compact, event, full, instance, message, patch, perfinfo,
    run, small, system,
};
use crate::counting::peak;

/// False values: very large, or too small.
const LIES: [u64; 9] = [
    0,
    1,
    0x47,
    0xffff,
    0x1_0000,
    0x0400_0000,
    0x7fff_ffff,
    0xffff_ffff,
    u64::MAX,
];

/// Reads a trace in file order and in time order, in both modes, from a slice and from a pipe.
/// Returns the number of records in salvage mode.
fn read(bytes: &[u8]) -> u64 {
    let mut records = 0;
    for mode in [Mode::Strict, Mode::Salvage] {
        let options = Options {
            mode,
            order_check: OrderCheck::Scan,
            ..Options::default()
        };
        let mut count = 0;
        if let Ok(mut reader) = Records::stream(bytes, &options) {
            while let Ok(Some(_)) = reader.next_record() {
                count += 1;
            }
        }
        if let Ok(mut reader) = Records::stream(PipeSource::new(bytes), &options) {
            while let Ok(Some(_)) = reader.next_record() {}
        }
        if let Ok(mut trace) = Trace::open(bytes, &options)
            && let Ok(mut reader) = trace.records(Order::Time)
        {
            while let Ok(Some(_)) = reader.next_record() {}
        }
        records = count;
    }
    records
}

/// Checks that reading takes at most `each` bytes of memory for each byte of the file, plus 1 MiB.
#[track_caller]
fn within(bytes: &[u8], each: usize, what: &str) -> u64 {
    let (records, most) = peak(|| read(bytes));
    let allowed = MIB + each * bytes.len();
    assert!(
        most <= allowed,
        "{what}: {most} bytes for a file of {}",
        bytes.len()
    );
    assert!(
        records as usize <= bytes.len() / 8,
        "{what}: {records} records"
    );
    records
}

#[test]
fn reader_bounds_memory_for_sizes_in_buffer_headers() {
    let sound = small().bytes();
    for buffer in [0, 0x400, 0xc00] {
        for (at, width) in [
            (0, 4),
            (4, 4),
            (8, 4),
            (0x10, 8),
            (0x18, 8),
            (0x28, 2),
            (0x2c, 4),
            (0x30, 4),
        ] {
            for lie in LIES {
                let mut bytes = sound.clone();
                patch(&mut bytes, buffer + at, &lie.to_le_bytes()[..width]);
                within(&bytes, 8, &format!("{lie:#x} at {:#x}", buffer + at));
            }
        }
    }
}

#[test]
fn reader_bounds_memory_for_numbers_in_the_header_event() {
    let sound = small().bytes();
    // The record's header and the fixed part of the event.
    for at in (BUFFER_HEADER..BUFFER_HEADER + 0x20 + 0x118).step_by(4) {
        for lie in [0, 0xffff_ffff, 0x7fff_ffff, 0x0400_0000u64] {
            for width in [4, 8] {
                let mut bytes = sound.clone();
                patch(&mut bytes, at, &lie.to_le_bytes()[..width]);
                within(&bytes, 8, &format!("{lie:#x} at {at:#x}"));
            }
        }
    }
}

#[test]
fn reader_bounds_memory_for_sizes_in_records() {
    let items: Vec<_> = (0..=0x14u16).map(|kind| (kind, &[7u8; 24][..])).collect();
    let many = Event {
        timestamp: 1010,
        items: chain(&items),
        payload: vec![1; 9],
        ..Event::default()
    };
    let records = [
        system(true, 0x0301, 1000, b"payload"),
        compact(false, 0x0501, 1001, b"pay"),
        perfinfo(true, 0x0f2e, 1002, Some(1), &[1, 2, 3], b"p"),
        full(true, 1, 1003, b"mof"),
        instance(false, 2, 1004, b"mof"),
        message(MESSAGE, 0x2f, 1005, b"args"),
        opaque(0xc0ee, &[0; 20]),
        opaque(0xa000, &[0; 12]),
        event(false, 7, 1007, b"user data"),
        many.bytes(),
    ];
    for record in &records {
        // Every 16 bits of the record: its size, its flags, the sizes and types of its items.
        for at in (0..record.len().min(0x100) - 1).step_by(2) {
            for lie in [0u16, 1, 7, 8, 0x7fff, 0xffff] {
                let mut lying = record.clone();
                patch(&mut lying, at, &lie.to_le_bytes());
                let file = File::new(0x1000)
                    .buffer(0, &[lying, system(true, 0x0f01, 2000, b"after")])
                    .buffer(0, &[system(true, 0x0f01, 3000, b"next")]);
                let records = within(&file.bytes(), 8, &format!("{lie:#x} at {at:#x}"));
                assert!(records >= 2, "the intact buffer after it is lost");
            }
        }
    }
}

/// Ten bytes of XPRESS for any number of bytes: one literal and its repetition.
fn bomb() -> Vec<u8> {
    let out = Out::default().u32(0x7fff_ffff).bytes(&[7]);
    // Distance 1. Length: 7 in three bits, 15 in a half byte, 255 in a byte, 0 in 16 bits, then
    // 32 bits.
    out.u16(7).u8(0x0f).u8(0xff).u16(0).u32(0x7fff_ffff).0
}

/// Buffers of a few bytes that claim to contain `claim` bytes each.
fn bombs(count: u16, claim: u32) -> Vec<u8> {
    let mut file = File::new(claim).compressed(3, |_| bomb());
    file.event.processors = 64;
    file.event.names = Vec::new();
    for cpu in 0..count {
        let mut buffer = Buffer::data(0, cpu, i64::from(cpu) + 1, &[]);
        (buffer.packed, buffer.fill) = (Some(bomb()), Some(claim));
        file.buffers.push(buffer);
    }
    let mut bytes = file.bytes();
    // The builder fills buffer 0 up to the size that the header states; a compressed one is short.
    let first = u32::from_le_bytes(bytes[..4].try_into().unwrap()) as usize;
    assert!(first < 0x1000, "{first:#x}");
    bytes.shrink_to_fit();
    bytes
}

#[test]
fn reader_bounds_expansion_of_compressed_buffers() {
    let mut whole = vec![0; MIB];
    let done = etl_format::compress::decompress(CompressionFormat::XPRESS, &bomb(), &mut whole);
    assert_eq!(done, Ok(()), "the compressed data is valid");
    assert!(whole.iter().all(|b| *b == 7));
    for count in [1, 40] {
        let bytes = bombs(count, 64 << 20);
        let options = Options::salvage();
        let (_, most) = peak(|| {
            let mut trace = Trace::open(bytes.as_slice(), &options).unwrap();
            let mut reader = trace.records(Order::Time).unwrap();
            while let Ok(Some(_)) = reader.next_record() {}
        });
        // Each buffer has 85 bytes and claims 64 MiB.
        let each = 8192 * 100;
        assert!(
            most <= MIB + (usize::from(count) + 2) * each,
            "{count} buffers: {most} bytes"
        );
    }
}

#[test]
fn reader_bounds_memory_for_many_processors() {
    let mut file = File::new(0x400);
    for cpu in (0..=0xffffu32).step_by(97) {
        file = file.buffer(cpu as u16, &run(1000 + i64::from(cpu), 2));
    }
    let bytes = file.bytes();
    let records = within(&bytes, 8, "processors");
    assert!(records > 1000);
}

#[test]
fn operations_accept_extreme_timestamps() {
    let edges = [i64::MIN, i64::MIN + 1, -1, 0, 1, i64::MAX - 1, i64::MAX];
    let mut file = File::new(0x1000);
    for (cpu, timestamp) in edges.into_iter().enumerate() {
        file = file.buffer(cpu as u16, &run(timestamp.min(i64::MAX - 2), 2));
        file = file.buffer(
            cpu as u16,
            &[
                event(true, 1, timestamp, b""),
                full(true, 1, timestamp, b""),
            ],
        );
    }
    for (start, freq) in [
        (0, 0),
        (i64::MAX, 1),
        (i64::MIN, i64::MAX),
        (1, -1),
        (-1, i64::MIN),
    ] {
        for timestamp in edges {
            file.event.timestamp = timestamp;
            (
                file.event.start_time,
                file.event.perf_freq,
                file.event.end_time,
            ) = (start, freq, start);
            file.event.boot_time = freq;
            let bytes = file.bytes();
            within(&bytes, 8, "edges");
            for name in [
                "merge", "slice", "scrub", "diff", "repair", "repack", "verify", "decode",
            ] {
                (etl_tests::fuzz::find(name).run)(&bytes);
            }
        }
    }
}

/// Times of the session and of its records that are far apart.
#[test]
fn verify_accepts_extreme_session_times() {
    let edges = [i64::MIN, -1, 0, 133_000_000_000_000_000, i64::MAX];
    let far = |a: usize, b: usize, c: usize, d: usize| [a, b, c, d].map(|i| edges[i]);
    for n in 0..edges.len().pow(4) {
        let [start, end, first, timestamp] = far(n % 5, n / 5 % 5, n / 25 % 5, n / 125);
        let mut file = File::new(0x400).buffer(0, &[event(true, 1, timestamp, b"")]);
        (file.event.start_time, file.event.end_time) = (start, end);
        (file.event.timestamp, file.event.boot_time) = (first, start);
        // Timestamps are FILETIMEs themselves, or ticks of 100 ns.
        file.event.clock = 1 + n as u32 % 2;
        let bytes = file.bytes();
        let report = etl_verify::Verifier::new()
            .verify(bytes.as_slice(), "edges.etl")
            .unwrap();
        assert!(!report.render(etl_verify::Format::Html).is_empty() && !report.text().is_empty());
        (etl_tests::fuzz::find("decode").run)(&bytes);
    }
}

#[test]
fn damage_map_grows_with_the_file() {
    let mut file = File::new(0x1_0000);
    let mut bad = Vec::new();
    while bad.len() < 0xff00 {
        bad.extend(system(true, 0x0f01, 1000, b""));
        bad.extend([0xee; 8]);
    }
    for _ in 0..8 {
        file = file.buffer(0, &[]);
        file.buffers.last_mut().unwrap().records = bad.clone();
    }
    let bytes = file.bytes();
    let records = within(&bytes, 40, "faults");
    assert!(records >= 8 * 1000, "{records}");
}
