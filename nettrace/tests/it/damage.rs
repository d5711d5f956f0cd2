//! Cut, damaged and hostile streams.

use chacha20::ChaCha8Rng;
use etl_nettrace::{Limits, Mode, Options, Reader};
use etl_test_support::{needs, traces};
use rand::{RngExt, SeedableRng};

use crate::judge::unpacked;
use crate::text;
use crate::write::*;

/// Streams with all kinds of blocks.
fn made() -> Vec<Vec<u8>> {
    let mut plain = ObjectStream::new(4);
    plain.metadata(&[metadata_blob(1, "A", 1, ""), metadata_blob(2, "B", 2, "")]);
    plain.block("StackBlock", &stack_block(1, 4, &[&[1, 2], &[3]]));
    let rows: Vec<EventRow> = (1..20).map(row).collect();
    let content = event_block(&rows, Headers::Plain, Format::Objects);
    plain.block("EventBlock", &content);
    plain.events(&rows);
    plain.block("SPBlock", &sequence_point(60, &[(3, 40), (4, 50)]));
    plain.block("StackBlock", &stack_block(1, 4, &[&[4], &[5, 6, 7]]));
    plain.events(&rows);
    vec![sample(), sample_of_version_6(), plain.finish()]
}

fn row(number: u32) -> EventRow {
    EventRow {
        metadata: 1 + number % 2,
        sequence: number,
        capture_thread: (number / 3).into(),
        thread: (number / 4).into(),
        stack: number % 3,
        time: u64::from(number * 7 % 50) + 10,
        barrier: number.is_multiple_of(5),
        payload: vec![number as u8; number as usize],
        ..EventRow::default()
    }
}

fn row_without_stack(number: u32) -> EventRow {
    EventRow {
        stack: 0,
        ..row(number)
    }
}

/// An event with its file offset.
struct Located {
    offset: u64,
    text: String,
}

fn located(stream: &[u8]) -> Vec<Located> {
    let mut reader = Reader::new(stream).unwrap();
    let mut events = Vec::new();
    while let Some(event) = reader.next_event().unwrap() {
        events.push(Located {
            offset: event.offset,
            text: text::event(&event),
        });
    }
    events
}

/// Checks every prefix: the events are a prefix, and the cut is reported.
fn check_prefixes(stream: &[u8], name: &str) {
    let all = located(stream);
    let mut before = 0;
    for len in 0..stream.len() {
        let part = &stream[..len];
        let Ok(mut reader) = Reader::new(part) else {
            assert_eq!(before, 0, "{name}: {len} bytes");
            continue;
        };
        let mut count = 0;
        while let Some(event) = reader.next_event().unwrap() {
            assert_eq!(event.offset, all[count].offset, "{name}: {len} bytes");
            if len % 16 == 0 {
                assert_eq!(text::event(&event), all[count].text, "{name}: {len} bytes");
            }
            count += 1;
        }
        assert!(count >= before, "{name}: {len} bytes have fewer events");
        // An event is intact if another one begins after it.
        let begun = all.iter().filter(|event| event.offset < len as u64).count();
        assert!(
            count + 1 >= begun,
            "{name}: {len} bytes: {count} of {begun}"
        );
        assert_eq!(reader.cut_offset(), Some(len as u64), "{name}");
        assert!(!reader.is_complete());
        let last = reader.damage().last().unwrap();
        assert_eq!(last.range.end, len as u64, "{name}: {:?}", last);
        assert_eq!(last.error.code(), "truncated", "{name}");
        assert_eq!(reader.damage_count(), 1, "{name}: {:?}", reader.damage());
        before = count;
    }
    assert_eq!(before, all.len(), "{name}: the last bytes are not an event");
}

#[test]
fn every_prefix_has_a_prefix_of_the_events() {
    for (number, stream) in made().iter().enumerate() {
        check_prefixes(stream, &format!("stream {number}"));
    }
}

#[needs(traces)]
#[test]
fn every_prefix_of_recorded_streams_has_a_prefix_of_the_events() {
    for name in [
        "10.0-10-4",
        "10.0-rundown-20000100",
        "8.0-60-5",
        "v6-one_collect",
    ] {
        let path = traces().join(format!("nettrace/{name}.nettrace.gz"));
        check_prefixes(&unpacked(&path), name);
    }
}

/// Changes some bytes and returns the offset of the first change.
fn mutate(bytes: &mut Vec<u8>, random: &mut ChaCha8Rng) -> usize {
    let mut first = bytes.len();
    for _ in 0..random.random_range(1..5) {
        let at = random.random_range(0..bytes.len().max(1));
        first = first.min(at);
        match random.random_range(0..6) {
            0 => bytes.truncate(at),
            1 => bytes.insert(at, random.random()),
            2 => drop(bytes.splice(at..(at + 3).min(bytes.len()), [])),
            3 => bytes[at] = [0, 1, 0x7f, 0x80, 0xff][random.random_range(0..5)],
            _ => bytes[at] ^= 1 << random.random_range(0..8),
        }
        if bytes.is_empty() {
            break;
        }
    }
    first
}

/// Limits that a small stream exceeds if it lies about sizes.
fn options(order: etl_nettrace::Order, mode: Mode) -> Options {
    let limits = Limits {
        block: 1 << 20,
        tables: 1 << 20,
        sorting: 10_000,
    };
    Options {
        order,
        mode,
        limits,
    }
}

fn check_mutations(streams: &[Vec<u8>], seed: u64, count: usize) {
    use etl_nettrace::Order;
    let mut random = ChaCha8Rng::seed_from_u64(seed);
    let originals: Vec<Vec<Located>> = streams.iter().map(|stream| located(stream)).collect();
    for round in 0..count {
        let number = round % streams.len();
        let mut bytes = streams[number].clone();
        let changed = mutate(&mut bytes, &mut random);
        for order in [Order::File, Order::Time] {
            for mode in [Mode::Salvage, Mode::Strict] {
                let options = options(order, mode);
                let Ok(mut reader) = Reader::with_options(bytes.as_slice(), &options) else {
                    continue;
                };
                let mut items = 0;
                while let Ok(Some(_)) = reader.next_item() {
                    items += 1;
                    assert!(items <= bytes.len(), "round {round}: no progress");
                }
                let is_whole = reader.is_complete() && reader.damage_count() == 0;
                let is_reported = reader.damage_count() > 0 || reader.next_item().is_err();
                assert!(is_whole || is_reported, "round {round}: {reader:?}");
            }
        }
        check_before_change(&bytes, changed, &originals[number], round);
    }
}

/// The events before the first changed byte are the same.
fn check_before_change(bytes: &[u8], changed: usize, original: &[Located], round: usize) {
    let Ok(mut reader) = Reader::new(bytes) else {
        return;
    };
    let begun = original
        .iter()
        .filter(|event| event.offset < changed as u64);
    let intact = begun.count().saturating_sub(1);
    for expected in &original[..intact] {
        let event = reader.next_event().unwrap().unwrap();
        assert_eq!(text::event(&event), expected.text, "round {round}");
    }
}

#[test]
fn ten_thousand_mutations_do_no_harm() {
    check_mutations(&made(), 0x0e71_c075, 10_000);
}

#[needs(traces)]
#[test]
fn mutations_of_recorded_streams_do_no_harm() {
    let mut streams = Vec::new();
    for name in [
        "10.0-10-4",
        "10.0-rundown-101",
        "8.0-60-5",
        "v6-one_collect",
    ] {
        streams.push(unpacked(
            &traces().join(format!("nettrace/{name}.nettrace.gz")),
        ));
    }
    check_mutations(&streams, 7, 2_000);
}

#[test]
fn random_bytes_after_the_header_do_no_harm() {
    let mut random = ChaCha8Rng::seed_from_u64(40);
    let mut streams = Vec::new();
    for header in [ObjectStream::new(8).bytes, BlockStream::new(4).bytes] {
        for _ in 0..200 {
            let mut bytes = header.clone();
            bytes.extend((0..random.random_range(0..400)).map(|_| random.random::<u8>() & 0x1f));
            streams.push(bytes);
        }
    }
    for bytes in streams {
        let mut reader = Reader::new(bytes.as_slice()).unwrap();
        while let Ok(Some(_)) = reader.next_item() {}
    }
}

#[test]
fn damage_in_a_block_costs_the_rest_of_the_block() {
    let mut stream = ObjectStream::new(8);
    stream.metadata(&[metadata_blob(1, "A", 1, ""), metadata_blob(2, "B", 2, "")]);
    let mut content = event_block(
        &[row_without_stack(1), row_without_stack(2)],
        Headers::Compressed,
        Format::Objects,
    );
    // A payload that is longer than the block.
    content.extend([0x80, 0, 0xff, 0x7f]);
    stream.block("EventBlock", &content);
    let block_end = stream.bytes.len() as u64 - 1;
    stream.events(&[row_without_stack(3)]);
    let stream = stream.finish();
    let mut reader = Reader::new(stream.as_slice()).unwrap();
    let mut numbers = Vec::new();
    while let Some(event) = reader.next_event().unwrap() {
        numbers.push(event.sequence_number);
    }
    assert_eq!(numbers, [1, 2, 3]);
    assert!(reader.is_complete());
    let [damage] = reader.damage() else {
        panic!("{:?}", reader.damage())
    };
    assert_eq!(damage.range, block_end - 4..block_end);
    let text = damage.error.to_string();
    assert!(
        text.ends_with("the payload of an event: needs 16383 bytes, has 0"),
        "{text}"
    );
}

#[test]
fn a_cut_stream_with_a_damaged_last_block_is_cut() {
    let mut stream = ObjectStream::new(8);
    // A block header that is too short, in a block that is cut.
    stream.block("EventBlock", &[19, 0, 0, 0, 0, 0, 0, 0]);
    let cut = &stream.bytes[..stream.bytes.len() - 4];
    let mut reader = Reader::new(cut).unwrap();
    assert!(reader.next_event().unwrap().is_none());
    assert_eq!(reader.cut_offset(), Some(cut.len() as u64));
    assert_eq!(reader.damage()[0].error.code(), "invalid");
}

#[test]
fn events_without_metadata_are_skipped_one_by_one() {
    let mut stream = ObjectStream::new(8);
    stream.metadata(&[metadata_blob(1, "A", 1, "")]);
    stream.events(&[
        row_without_stack(1),
        row_without_stack(2),
        row_without_stack(3),
        row_without_stack(4),
    ]);
    let stream = stream.finish();
    let events = text::events(&stream, &Options::default());
    assert_eq!(events.len(), 2);
    let damage = text::damage(&stream);
    let undefined = damage
        .iter()
        .filter(|text| text.contains("metadata 2 is not defined"));
    assert_eq!(undefined.count(), 2, "{damage:?}");
}

#[test]
fn metadata_with_damaged_fields_is_kept_without_them() {
    let mut stream = ObjectStream::new(8);
    let mut blob = metadata_blob(1, "A", 1, "x");
    blob.extend(2u32.to_le_bytes());
    blob.extend(field(9, "Count"));
    stream.metadata(&[blob, metadata_blob(2, "B", 2, "")]);
    stream.events(&[row_without_stack(1), row_without_stack(2)]);
    let stream = stream.finish();
    assert_eq!(text::events(&stream, &Options::default()).len(), 2);
    let damage = text::damage(&stream);
    assert!(
        damage[0].contains("the type of a field: needs 4 bytes, has 0"),
        "{damage:?}"
    );
}

#[test]
fn deeply_nested_fields_are_refused() {
    let mut blob = metadata_blob(1, "A", 1, "");
    blob.extend(1u32.to_le_bytes());
    for _ in 0..100_000 {
        blob.extend(19u32.to_le_bytes());
    }
    let mut stream = ObjectStream::new(8);
    stream.metadata(&[blob]);
    let damage = text::damage(&stream.finish());
    assert!(
        damage[0].contains("the nesting of a field is 0x11"),
        "{damage:?}"
    );
}

#[test]
fn damage_between_blocks_ends_the_reading() {
    let mut stream = ObjectStream::new(8);
    stream.metadata(&[metadata_blob(1, "A", 1, ""), metadata_blob(2, "B", 2, "")]);
    stream.events(&[row_without_stack(1)]);
    let tag = stream.bytes.len() - 1;
    stream.events(&[row_without_stack(2)]);
    let mut stream = stream.finish();
    stream[tag] = 9;
    let mut reader = Reader::new(stream.as_slice()).unwrap();
    assert!(reader.next_event().unwrap().is_some());
    assert!(reader.next_event().unwrap().is_none());
    assert!(!reader.is_complete() && reader.cut_offset().is_none());
    let text = reader.damage()[0].error.to_string();
    assert!(
        text.ends_with("the tag after an object is 0x9, expected 6"),
        "{text}"
    );
}

#[test]
fn a_second_header_ends_the_reading() {
    let mut stream = ObjectStream::new(8);
    stream.begin("Trace", 4);
    let stream = stream.finish();
    let damage = text::damage(&stream);
    assert_eq!(damage.len(), 1);
    assert!(
        damage[0].ends_with("the number of Trace objects is 0x2, expected 1"),
        "{damage:?}"
    );
    // In version 6 a block has a size, and the block is skipped.
    let mut stream = BlockStream::new(8);
    stream.block(block_kind::TRACE, &[1, 2, 3]);
    let items = text::items(&stream.finish(), &Options::default());
    assert_eq!(items, ["unknown 1 3"]);
}

#[test]
fn strict_mode_returns_events_before_the_first_fault() {
    for order in [etl_nettrace::Order::File, etl_nettrace::Order::Time] {
        let options = Options {
            order,
            mode: Mode::Strict,
            ..Options::default()
        };
        let stream = sample();
        let cut = &stream[..stream.len() - 1];
        let mut reader = Reader::with_options(cut, &options).unwrap();
        assert!(reader.next_event().unwrap().is_some());
        assert!(reader.next_event().unwrap().is_some());
        assert_eq!(reader.next_event().unwrap_err().code(), "truncated");
        assert_eq!(reader.next_event().unwrap_err().code(), "truncated");
    }
}

#[test]
fn limits_are_errors() {
    let mut huge = ObjectStream::new(8);
    huge.begin("EventBlock", 2);
    huge.bytes.extend(0x7fff_ffffu32.to_le_bytes());
    let stream = huge.finish();
    let mut reader = Reader::new(stream.as_slice()).unwrap();
    let error = reader.next_event().unwrap_err();
    let text = "event block needs 2147483647 bytes, the limit is 67108864";
    assert!(error.to_string().ends_with(text), "{error}");

    let mut many = ObjectStream::new(8);
    for id in 0..100 {
        many.metadata(&[metadata_blob(id, "Provider", 1, "")]);
    }
    let stream = many.finish();
    let limits = Limits {
        tables: 10_000,
        ..Limits::default()
    };
    let options = Options {
        limits,
        ..Options::default()
    };
    let mut reader = Reader::with_options(stream.as_slice(), &options).unwrap();
    assert_eq!(reader.next_event().unwrap_err().code(), "limit");

    // The same id again and again takes no more memory.
    let mut same = ObjectStream::new(8);
    for _ in 0..100 {
        same.metadata(&[metadata_blob(1, "Provider", 1, "")]);
    }
    let stream = same.finish();
    let mut reader = Reader::with_options(stream.as_slice(), &options).unwrap();
    assert!(reader.next_event().unwrap().is_none());
}

#[test]
fn events_of_a_block_larger_than_the_stream_are_returned() {
    let mut stream = ObjectStream::new(8);
    stream.metadata(&[metadata_blob(1, "A", 1, ""), metadata_blob(2, "B", 2, "")]);
    stream.begin("EventBlock", 2);
    stream.bytes.extend((60u32 << 20).to_le_bytes());
    while !stream.bytes.len().is_multiple_of(4) {
        stream.bytes.push(0);
    }
    stream.bytes.extend(event_block(
        &[row_without_stack(1), row_without_stack(2)],
        Headers::Compressed,
        Format::Objects,
    ));
    let mut reader = Reader::new(stream.bytes.as_slice()).unwrap();
    let mut count = 0;
    while reader.next_event().unwrap().is_some() {
        count += 1;
    }
    assert_eq!(count, 2);
    assert_eq!(reader.cut_offset(), Some(stream.bytes.len() as u64));
}

#[test]
fn the_list_of_damage_is_bounded() {
    let mut stream = ObjectStream::new(8);
    let rows: Vec<EventRow> = (1..3000)
        .map(|number| row_without_stack(number % 40))
        .collect();
    stream.events(&rows);
    let stream = stream.finish();
    let mut reader = Reader::new(stream.as_slice()).unwrap();
    assert!(reader.next_event().unwrap().is_none());
    assert_eq!((reader.damage().len(), reader.damage_count()), (1000, 2999));
}
