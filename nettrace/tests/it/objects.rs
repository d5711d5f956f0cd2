//! Versions 4 and 5, as a small writer makes them.

use chacha20::ChaCha8Rng;
use etl_nettrace::{FieldType, Guid, Item, Metadata, Options, Reader, SESSION_KEYWORDS, Ticks};
use rand::{RngExt, SeedableRng};

use crate::text;
use crate::write::*;

fn row(sequence: u32, time: u64) -> EventRow {
    EventRow {
        metadata: 1,
        sequence,
        capture_thread: 31,
        thread: 31,
        time,
        ..EventRow::default()
    }
}

/// The metadata of a stream whose only metadata is `blob`.
fn metadata_of(blob: Vec<u8>) -> Metadata {
    let mut stream = ObjectStream::new(8);
    stream.metadata(&[blob]);
    let stream = stream.finish();
    let mut reader = Reader::new(stream.as_slice()).unwrap();
    match reader.next_item().unwrap() {
        Some(Item::Metadata(metadata)) => Metadata::clone(metadata),
        other => panic!("{other:?}"),
    }
}

#[test]
fn header_has_clock_and_process() {
    let stream = sample();
    let reader = Reader::new(stream.as_slice()).unwrap();
    let header = reader.header();
    assert_eq!((header.version.major, header.version.minor), (4, 0));
    assert_eq!(
        (header.process_id, header.processor_count),
        (Some(4711), Some(2))
    );
    assert_eq!(header.sampling_rate, Some(1_000_000));
    let start = header.start_time.unwrap();
    let later = header
        .file_time(Ticks::new(START_TICKS as i64 + 1_250))
        .unwrap();
    assert_eq!(later.get() - start.get(), 12, "1,250 ns");
    let earlier = header
        .file_time(Ticks::new(START_TICKS as i64 - 1))
        .unwrap();
    assert_eq!(earlier.get() - start.get(), -1);
    let unix = start
        .to_system_time()
        .unwrap()
        .duration_since(std::time::UNIX_EPOCH);
    assert_eq!(unix.unwrap().as_millis(), 1_795_857_982_203);
}

/// Any events, in blocks of both kinds of headers, are read as they were written.
#[test]
fn written_events_are_read_with_both_kinds_of_headers() {
    let mut random = ChaCha8Rng::seed_from_u64(0x4e37_0040);
    for round in 0..200 {
        let rows = random_rows(&mut random);
        for headers in [Headers::Compressed, Headers::Plain] {
            for format in [Format::Objects, Format::Blocks] {
                let stream = stream_of(&rows, headers, format);
                let name = format!("round {round}, {headers:?}, {format:?}");
                compare(&stream, &rows, format, &name);
            }
        }
    }
}

fn random_rows(random: &mut ChaCha8Rng) -> Vec<EventRow> {
    let mut rows = Vec::new();
    for _ in 0..random.random_range(0..12) {
        let mut row: EventRow = rows.last().cloned().unwrap_or_default();
        row.metadata = random.random_range(1..3);
        row.sequence = row.sequence.wrapping_add(1);
        row.time += random.random_range(0..1 << 40);
        match random.random_range(0..9) {
            0 => row.sequence = random.random(),
            1 => row.capture_thread = random.random(),
            2 => row.processor = random.random(),
            3 => row.thread = random.random_range(0..1 << 33),
            4 => row.stack = random.random_range(0..2),
            5 => row.activity = random.random(),
            6 => row.related = random.random(),
            7 => row.barrier = !row.barrier,
            _ => row.payload = vec![7; random.random_range(0..300)],
        }
        rows.push(row);
    }
    rows
}

fn stream_of(rows: &[EventRow], headers: Headers, format: Format) -> Vec<u8> {
    let content = event_block(rows, headers, format);
    let stacks = stack_block(1, 8, &[&[3, 2, 1]]);
    if format == Format::Objects {
        let mut stream = ObjectStream::new(8);
        stream.metadata(&[
            metadata_blob(1, "A", 1, "one"),
            metadata_blob(2, "B", 2, "two"),
        ]);
        stream.block("StackBlock", &stacks);
        stream.block("EventBlock", &content);
        return stream.finish();
    }
    let mut stream = BlockStream::new(8);
    let metadata = [
        metadata_row(1, "A", 1, "one", &[]),
        metadata_row(2, "B", 2, "two", &[]),
    ];
    stream.rows(block_kind::METADATA, &[0, 0], &metadata);
    stream.block(block_kind::STACKS, &stacks);
    stream.block(block_kind::EVENTS, &content);
    stream.finish()
}

fn compare(stream: &[u8], rows: &[EventRow], format: Format, name: &str) {
    let mut reader = Reader::new(stream).unwrap();
    for row in rows {
        let event = reader.next_event().unwrap().unwrap();
        assert_eq!(event.metadata.metadata_id, row.metadata, "{name}");
        assert_eq!(event.sequence_number, row.sequence, "{name}");
        assert_eq!(event.capture_thread, row.capture_thread, "{name}");
        assert_eq!(event.thread_id, row.thread, "{name}");
        assert_eq!(event.processor.unwrap_or(u32::MAX), row.processor, "{name}");
        assert_eq!(event.timestamp.get() as u64, row.time, "{name}");
        assert_eq!(event.stack.len(), row.stack as usize * 3, "{name}");
        assert_eq!(event.is_barrier, row.barrier, "{name}");
        assert_eq!(event.payload, row.payload, "{name}");
        if format == Format::Objects {
            assert_eq!(event.activity_id.to_bytes(), row.activity, "{name}");
            assert_eq!(event.related_activity_id.to_bytes(), row.related, "{name}");
        }
    }
    assert!(reader.next_event().unwrap().is_none(), "{name}");
    assert!(reader.is_complete(), "{name}");
    // The writer makes no threads of version 6.
    if format == Format::Objects {
        assert_eq!(reader.damage_count(), 0, "{name}: {:?}", reader.damage());
    }
}

#[test]
fn headers_start_from_zeros_in_each_block() {
    let mut stream = ObjectStream::new(8);
    stream.metadata(&[metadata_blob(1, "A", 1, "")]);
    // Only the number of the metadata: everything else is 0.
    let mut bare = event_block(&[], Headers::Compressed, Format::Objects);
    bare.extend([1, 1, 9]);
    stream.events(&[row(7, 99)]);
    stream.block("EventBlock", &bare);
    let events = text::events(&stream.finish(), &Options::default());
    assert_eq!(events.len(), 2);
    assert!(
        events[1].contains("number 1 pid 4711 thread 0 captured by 0 on 0 at 9"),
        "{events:?}"
    );
}

#[test]
fn longer_block_headers_are_skipped() {
    let mut stream = ObjectStream::new(8);
    stream.metadata(&[metadata_blob(1, "A", 1, "")]);
    let mut content = event_block(&[row(1, 5)], Headers::Compressed, Format::Objects);
    content[0] = 26;
    content.splice(20..20, [0xff; 6]);
    stream.block("EventBlock", &content);
    assert_eq!(text::events(&stream.finish(), &Options::default()).len(), 1);
}

#[test]
fn stacks_of_32_bit_processes_have_addresses_of_4_bytes() {
    let mut stream = ObjectStream::new(4);
    stream.metadata(&[metadata_blob(1, "A", 1, "")]);
    stream.block("StackBlock", &stack_block(8, 4, &[&[1], &[0xffff_ffff, 2]]));
    stream.events(&[EventRow {
        stack: 9,
        ..row(1, 5)
    }]);
    let stream = stream.finish();
    let mut reader = Reader::new(stream.as_slice()).unwrap();
    assert_eq!(reader.header().pointer_size, 4);
    let event = reader.next_event().unwrap().unwrap();
    assert_eq!(event.stack, [0xffff_ffff, 2]);
}

#[test]
fn stacks_are_forgotten_at_sequence_points() {
    let mut stream = ObjectStream::new(8);
    stream.metadata(&[metadata_blob(1, "A", 1, "")]);
    stream.block("StackBlock", &stack_block(1, 8, &[&[1]]));
    let with_stack = |sequence, time| EventRow {
        stack: 1,
        ..row(sequence, time)
    };
    stream.events(&[with_stack(1, 5)]);
    stream.block("SPBlock", &sequence_point(6, &[]));
    stream.events(&[with_stack(2, 7)]);
    let stream = stream.finish();
    for options in [Options::default(), text::by_time()] {
        let events = text::events(&stream, &options);
        assert!(events[0].contains("stack [1]"), "{events:?}");
        assert!(events[1].contains("stack []"), "{events:?}");
    }
    let damage = text::damage(&stream);
    assert_eq!(damage.len(), 1);
    assert!(
        damage[0].ends_with("stack 1 is not defined before its use"),
        "{damage:?}"
    );
}

/// An event does not get a stack that is defined after it, while it is held.
#[test]
fn a_stack_belongs_to_the_events_after_it() {
    let mut stream = ObjectStream::new(8);
    stream.metadata(&[metadata_blob(1, "A", 1, "")]);
    let with_stack = |sequence, time| EventRow {
        stack: 1,
        ..row(sequence, time)
    };
    stream.events(&[with_stack(1, 5)]);
    stream.block("StackBlock", &stack_block(1, 8, &[&[1]]));
    stream.events(&[with_stack(2, 6)]);
    stream.block("StackBlock", &stack_block(1, 8, &[&[2]]));
    stream.events(&[with_stack(3, 7)]);
    let stream = stream.finish();
    let in_file = text::events(&stream, &Options::default());
    for (event, stack) in in_file.iter().zip(["stack []", "stack [1]", "stack [2]"]) {
        assert!(event.contains(stack), "{event}");
    }
    assert_eq!(text::events(&stream, &text::by_time()), in_file);
}

#[test]
fn metadata_of_the_runtime_ends_after_the_level() {
    let metadata = metadata_of(metadata_blob(9, "Microsoft-Windows-DotNETRuntime", 143, ""));
    assert_eq!(
        (metadata.metadata_id, metadata.event_id, metadata.level),
        (9, 143, 4)
    );
    assert_eq!(metadata.keywords, SESSION_KEYWORDS | 1);
    assert_eq!(metadata.own_keywords(), 1);
    assert!(metadata.name.is_empty() && metadata.fields.is_empty());
    assert_eq!((metadata.opcode, metadata.opcode_or_implied()), (None, 0));
}

#[test]
fn tags_of_version_5_have_the_opcode_and_arrays() {
    let mut blob = metadata_blob(1, "A", 1, "WorkStart");
    blob.extend(0u32.to_le_bytes());
    let mut fields = 2u32.to_le_bytes().to_vec();
    for (name, code) in [("Ids", &[19u32, 12][..]), ("Unknown", &[99, 1, 2])] {
        let name = utf16(name);
        fields.extend((4 + name.len() as u32 + 4 * code.len() as u32).to_le_bytes());
        fields.extend(name);
        fields.extend(code.iter().flat_map(|c| c.to_le_bytes()));
    }
    for (kind, content) in [(2, &fields[..]), (77, b"other"), (1, &[9])] {
        blob.extend((content.len() as u32).to_le_bytes());
        blob.push(kind);
        blob.extend(content);
    }
    let metadata = metadata_of(blob);
    assert_eq!(
        (metadata.opcode, metadata.opcode_or_implied()),
        (Some(9), 9)
    );
    let array = FieldType::Array(Box::new(FieldType::U64));
    assert_eq!(metadata.fields[0].field_type, array);
    assert_eq!(metadata.fields[0].name, "Ids");
    assert_eq!(metadata.fields[1].field_type, FieldType::Unknown(99));
}

#[test]
fn structures_contain_fields() {
    let mut blob = metadata_blob(1, "A", 1, "EventCounters");
    blob.extend(1u32.to_le_bytes());
    blob.extend(1u32.to_le_bytes());
    blob.extend(2u32.to_le_bytes());
    blob.extend(field(18, "Name"));
    blob.extend(field(14, "Mean"));
    blob.extend(utf16(""));
    let metadata = metadata_of(blob);
    let FieldType::Struct(inner) = &metadata.fields[0].field_type else {
        panic!("{metadata:?}")
    };
    assert_eq!(inner[1].field_type, FieldType::F64);
    assert_eq!(metadata.opcode_or_implied(), 0);
}

#[test]
fn names_of_event_sources_imply_the_opcode() {
    for (name, opcode) in [("GetStart", 1), ("GetStop", 2), ("Get", 0)] {
        let metadata = metadata_of(metadata_blob(1, "A", 1, name));
        assert_eq!(metadata.opcode_or_implied(), opcode, "{name}");
    }
}

#[test]
fn metadata_may_be_replaced_while_events_are_held() {
    let mut stream = ObjectStream::new(8);
    stream.metadata(&[metadata_blob(1, "Old", 1, "")]);
    stream.events(&[row(1, 5)]);
    stream.metadata(&[metadata_blob(1, "New", 1, "")]);
    stream.events(&[row(2, 4)]);
    let stream = stream.finish();
    let events = text::events(&stream, &text::by_time());
    assert!(
        events[0].contains("New/1v0") && events[1].contains("Old/1v0"),
        "{events:?}"
    );
}

#[test]
fn unknown_objects_are_skipped() {
    let mut stream = ObjectStream::new(8);
    stream.metadata(&[metadata_blob(1, "A", 1, "")]);
    stream.block("Something", &[1, 2, 3]);
    stream.events(&[row(1, 5)]);
    let stream = stream.finish();
    let items = text::items(&stream, &Options::default());
    assert_eq!(items, ["metadata 1", "unknown Something 3", "event 1"]);
    assert!(text::damage(&stream).is_empty());
}

#[test]
fn sources_may_return_single_bytes() {
    struct Single<'a>(&'a [u8]);
    impl std::io::Read for Single<'_> {
        fn read(&mut self, out: &mut [u8]) -> std::io::Result<usize> {
            let len = out.len().min(1);
            self.0.read(&mut out[..len])
        }
    }
    for stream in [sample(), sample_of_version_6()] {
        let mut reader = Reader::new(Single(&stream)).unwrap();
        let mut events = Vec::new();
        while let Some(event) = reader.next_event().unwrap() {
            events.push(text::event(&event));
        }
        assert_eq!(events, text::events(&stream, &Options::default()));
        assert!(reader.is_complete());
    }
}

#[test]
fn activities_are_kept_until_they_change() {
    let stream = sample();
    let mut reader = Reader::new(stream.as_slice()).unwrap();
    let first = reader.next_event().unwrap().unwrap();
    assert!(first.activity_id.is_zero() && first.is_barrier);
    assert_eq!(first.processor, None);
    let second = reader.next_event().unwrap().unwrap();
    assert_eq!(second.activity_id, Guid::from_bytes([7; 16]));
    assert_eq!(second.related_activity_id, Guid::ZERO);
    assert_eq!(
        second.stack,
        [0x7f01, 0x7f02],
        "the stack is the same as before"
    );
}
