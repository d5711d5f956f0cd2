//! Version 6, as a small writer makes it.

use etl_nettrace::{FieldType, Guid, Item, Label, Options, Reader};

use crate::text;
use crate::write::*;

#[test]
fn header_has_properties() {
    let stream = sample_of_version_6();
    let reader = Reader::new(stream.as_slice()).unwrap();
    let header = reader.header();
    assert_eq!((header.version.major, header.version.minor), (6, 0));
    assert_eq!(
        (header.process_id, header.processor_count),
        (Some(4711), Some(2))
    );
    assert_eq!(header.property("Colour"), Some("red"));
    assert_eq!(header.property("Other"), None);
}

#[test]
fn events_have_the_process_of_their_thread() {
    let stream = sample_of_version_6();
    let mut reader = Reader::new(stream.as_slice()).unwrap();
    let first = reader.next_event().unwrap().unwrap();
    assert_eq!(
        (first.process_id, first.thread_id, first.capture_thread),
        (Some(12), 34, 1)
    );
    assert_eq!(first.thread.unwrap().name.as_deref(), Some("main"));
    let second = reader.next_event().unwrap().unwrap();
    assert_eq!(
        (second.process_id, second.thread_id, second.capture_thread),
        (Some(13), 35, 2)
    );
    assert_eq!(second.thread.unwrap().name, None);
}

#[test]
fn labels_replace_what_metadata_states() {
    let stream = sample_of_version_6();
    let mut reader = Reader::new(stream.as_slice()).unwrap();
    let first = reader.next_event().unwrap().unwrap();
    assert_eq!(
        (
            first.level(),
            first.version(),
            first.opcode(),
            first.keywords()
        ),
        (3, 2, 10, 32)
    );
    assert_eq!(first.metadata.level, 5);
    assert_eq!(first.activity_id, Guid::from_bytes([9; 16]));
    let second = reader.next_event().unwrap().unwrap();
    assert_eq!((second.level(), second.activity_id), (5, Guid::ZERO));
    let number = Label::Number {
        key: "n".to_owned(),
        value: -2,
    };
    assert_eq!(second.labels, [number]);
}

#[test]
fn all_labels_are_read() {
    let mut list = vec![2];
    list.extend([2; 16]);
    list.push(3);
    list.extend([3; 16]);
    list.push(4);
    list.extend(4u64.to_le_bytes());
    list.push(5);
    list.extend(utf8("key"));
    list.extend(utf8("value"));
    list.extend([7, 77, 8]);
    list.extend(8u64.to_le_bytes());
    list.extend([0x80 | 10, 100]);
    let mut block = [5u32.to_le_bytes(), 1u32.to_le_bytes()].concat();
    block.extend(list);
    let mut stream = BlockStream::new(8);
    let row = metadata_row(1, "A", 1, "", &[]);
    stream.rows(block_kind::METADATA, &[0, 0], &[row]);
    stream.rows(block_kind::THREADS, &[], &[vec![0]]);
    stream.block(block_kind::LABEL_LISTS, &block);
    stream.events(&[EventRow {
        metadata: 1,
        sequence: 1,
        labels: 5,
        ..EventRow::default()
    }]);
    let stream = stream.finish();
    let mut reader = Reader::new(stream.as_slice()).unwrap();
    let event = reader.next_event().unwrap().unwrap();
    assert_eq!(event.labels.len(), 7);
    assert_eq!(event.related_activity_id, Guid::from_bytes([2; 16]));
    assert_eq!(
        (event.opcode(), event.keywords(), event.version()),
        (77, 8, 100)
    );
    assert!(event.labels.contains(&Label::SpanId(4)));
    assert!(event.labels.contains(&Label::TraceId([3; 16])));
    assert_eq!(
        (event.thread_id, event.process_id),
        (0, Some(4711)),
        "of the index, of the header"
    );
    assert_eq!(reader.damage_count(), 0);
}

#[test]
fn items_come_in_the_order_of_the_stream() {
    let stream = sample_of_version_6();
    let expected = [
        "metadata 1",
        "thread 1",
        "thread 2",
        "event 1",
        "event 1",
        "removed 2",
        "point 1000000030",
    ];
    assert_eq!(text::items(&stream, &Options::default()), expected);
    // The thread is removed after its event.
    assert_eq!(text::items(&stream, &text::by_time()), expected);
}

#[test]
fn sequence_points_forget_threads_and_metadata() {
    let mut stream = sample_of_version_6();
    // Instead of the end: an event of the same metadata and thread.
    stream.truncate(stream.len() - 4);
    let row = EventRow {
        metadata: 1,
        sequence: 2,
        thread: 1,
        ..EventRow::default()
    };
    let mut more = BlockStream { bytes: stream };
    more.events(&[row]);
    let stream = more.finish();
    assert_eq!(text::events(&stream, &Options::default()).len(), 2);
    let damage = text::damage(&stream);
    assert_eq!(damage.len(), 1);
    assert!(
        damage[0].contains("metadata 1 is not defined"),
        "{damage:?}"
    );
}

#[test]
fn fields_and_options_of_metadata_are_read() {
    let mut row = vec![1];
    row.extend(utf8("A"));
    row.push(3);
    row.extend(utf8("Name"));
    let types: [&[u8]; 7] = [
        &[20],
        &[21],
        &[22, 6, 16, 0],
        &[24, 23],
        &[25, 4],
        &[26],
        // A structure with a boolean, and bytes of a later version.
        &[1, 1, 0, 3, 0, 1, b'b', 3, 0xee, 0xee],
    ];
    row.extend((types.len() as u16).to_le_bytes());
    for code in types {
        let name = utf8("f");
        row.extend(((name.len() + code.len()) as u16).to_le_bytes());
        row.extend(name);
        row.extend(code);
    }
    let mut options = vec![4];
    options.extend(utf8("message"));
    options.push(5);
    options.extend(utf8("description"));
    options.push(6);
    options.extend(utf8("key"));
    options.extend(utf8("value"));
    options.push(7);
    options.extend([5; 16]);
    // An unknown option ends the options.
    options.extend([200, 1, 1]);
    row.extend((options.len() as u16).to_le_bytes());
    row.extend(options);
    let mut stream = BlockStream::new(8);
    stream.rows(block_kind::METADATA, &[2, 0, 7, 7], &[row]);
    let stream = stream.finish();
    let mut reader = Reader::new(stream.as_slice()).unwrap();
    let Some(Item::Metadata(metadata)) = reader.next_item().unwrap() else {
        panic!("no metadata")
    };
    let text = text::metadata(metadata);
    let fields = "f:varint,f:varuint,f:fixed(u8,16),f:relloc(char8),f:dataloc(char16),f:bool8,\
                  f:object(b:bool32)";
    assert!(text.ends_with(&format!("fields {fields}")), "{text}");
    assert_eq!(metadata.message.as_deref(), Some("message"));
    assert_eq!(metadata.description.as_deref(), Some("description"));
    assert_eq!(metadata.provider_id, Some(Guid::from_bytes([5; 16])));
    assert_eq!(
        (metadata.properties[0].key.as_str(), metadata.opcode),
        ("key", None)
    );
    assert!(matches!(
        metadata.fields[6].field_type,
        FieldType::Struct(_)
    ));
    assert!(reader.next_item().unwrap().is_none());
    assert_eq!(reader.damage_count(), 0, "{:?}", reader.damage());
}

#[test]
fn unknown_blocks_are_skipped() {
    let mut stream = BlockStream::new(8);
    stream.block(99, &[1, 2, 3]);
    let row = metadata_row(1, "A", 1, "", &[]);
    stream.rows(block_kind::METADATA, &[0, 0], &[row]);
    let stream = stream.finish();
    let items = text::items(&stream, &Options::default());
    assert_eq!(items, ["unknown 99 3", "metadata 1"]);
}

#[test]
fn threads_may_be_removed_and_replaced_while_events_are_held() {
    let mut stream = BlockStream::new(8);
    let row = metadata_row(1, "A", 1, "", &[]);
    stream.rows(block_kind::METADATA, &[0, 0], &[row]);
    stream.rows(block_kind::THREADS, &[], &[vec![1, 3, 100]]);
    let event = |time| EventRow {
        metadata: 1,
        sequence: 1,
        thread: 1,
        time,
        ..EventRow::default()
    };
    stream.events(&[event(9)]);
    stream.block(block_kind::REMOVED_THREADS, &[1, 1]);
    stream.rows(block_kind::THREADS, &[], &[vec![1, 3, 101]]);
    stream.events(&[event(8)]);
    let stream = stream.finish();
    let mut reader = Reader::with_options(stream.as_slice(), &text::by_time()).unwrap();
    let mut threads = Vec::new();
    while let Some(event) = reader.next_event().unwrap() {
        threads.push(event.thread_id);
    }
    assert_eq!(threads, [101, 100]);
    assert_eq!(reader.damage_count(), 0);
}
