//! Targets of the format: files, buffers, records.

use etl_format::constants::{ExtendedType, PointerSize};
use etl_format::read::{Header, Limits, Options, Record, Records, Trace};
use etl_format::{BufferHeader, FileHeader, Ticks};

use super::choice;
use super::made::common::event::Event;
use super::made::common::reading::{Outcome, salvage, salvage_within};
use super::made::common::{Buffer, File, Out, system};

/// Memory limits of a trace.
const LIMITS: Limits = Limits {
    buffer: 1 << 20,
    held: 64 << 20,
    budget: None,
};

/// Reads a trace in every way, compares the results, and calls every accessor of every record.
pub(super) fn file(data: &[u8]) {
    let options = Options {
        limits: LIMITS,
        ..Options::salvage()
    };
    let Ok(mut reader) = Records::stream(data, &options) else {
        assert!(salvage_within(data, LIMITS).records.is_empty());
        return;
    };
    let mut records = 0usize;
    while let Some(record) = reader
        .next_record()
        .expect("reading a slice in salvage mode has no error")
    {
        interrogate(&record);
        records += 1;
    }
    assert!(reader.next_record().expect("the end stays").is_none());
    let clock = reader.header().clock();
    for timestamp in [i64::MIN, -1, 0, 1, i64::MAX] {
        let _ = (
            clock.time(Ticks::new(timestamp)).get(),
            reader.header().logger_name(),
        );
    }
    if records < 1 << 16 {
        sane(&salvage_within(data, LIMITS), data);
    }
    if let Ok(trace) = Trace::open(data, &options) {
        for note in trace.notes() {
            assert!(!note.to_string().is_empty());
        }
    }
}

/// Checks a damage map.
fn sane(outcome: &Outcome, data: &[u8]) {
    for (range, _, before, after) in &outcome.damage {
        assert!(range.start <= range.end && range.start <= data.len() as u64);
        assert_eq!(before + after, outcome.records.len() as u64);
    }
    assert!(outcome.damage.is_sorted_by_key(|d| d.0.start));
}

/// Calls every accessor of a record.
pub(super) fn interrogate(r: &Record<'_>) {
    assert!(r.bytes().len() >= 8);
    assert!(r.bytes().ends_with(r.payload()));
    let mut items = r.extended();
    assert!(items.by_ref().count() <= r.bytes().len() / 8);
    let _ = (
        r.header(),
        r.identity(),
        r.provider(),
        r.pointer_size(),
        r.hook(),
    );
    let _ = (
        r.thread_id(),
        r.process_id(),
        r.event(),
        r.descriptor(),
        items.is_broken(),
    );
    let _ = FileHeader::parse(r.bytes(), 0);
    if let Header::PerfInfo(h) = r.header() {
        assert!(h.counters().count() <= 7);
    }
    for item in r.extended() {
        if let etl_format::read::ExtendedItem::Stack(stack) = item {
            assert_eq!(stack.addresses().count(), stack.len());
            assert!(stack.len() <= r.bytes().len() / 4);
        }
        assert!(!format!("{item:?}").is_empty());
    }
}

/// The bytes are the content of buffer 0, starting with the header event.
pub(super) fn header(data: &[u8]) {
    if let Ok(header) = FileHeader::parse(data, 0x48) {
        let clock = header.clock();
        let _ = (
            header.is_closed(),
            header.logger_name(),
            header.log_file_name(),
        );
        for timestamp in [i64::MIN, 0, i64::MAX] {
            let _ = clock.time(Ticks::new(timestamp)).get();
        }
        let copy = header.clone();
        let _ = copy.maximum_bytes();
    }
    let size = (data.len() as u32 + 0x48).next_multiple_of(8).max(0x400);
    let mut first = Buffer::header(size, &Default::default(), &[]);
    first.records = data.to_vec();
    let mut bytes = first.bytes();
    bytes.extend(Buffer::data(size, 1, 1, &[system(true, 0x0f01, 950, b"x")]).bytes());
    file(&bytes);
}

/// The bytes are a buffer with its header, after an intact buffer; the first byte selects the
/// compression.
pub(super) fn buffer(data: &[u8]) {
    let (way, data) = choice(data);
    let _ = BufferHeader::parse(data, 0);
    let made = File::new(0x400).buffer(0, &[system(true, 0x0f01, 1000, b"sound")]);
    let made = match way % 4 {
        0 => made,
        n => made.compressed([2, 3, 4][usize::from(n) - 1], |plain| plain.to_vec()),
    };
    let mut bytes = made.bytes();
    if way % 4 != 0 {
        // The builder wrote no compressed data; only the first buffer is needed.
        bytes.truncate(0x400);
    }
    bytes.extend_from_slice(data);
    if way & 0x80 != 0 {
        bytes.extend(Buffer::data(0x400, 0, 9, &[system(true, 0x0f01, 2000, b"after")]).bytes());
    }
    file(&bytes);
}

/// The bytes are records in one buffer between two intact ones.
pub(super) fn record(data: &[u8]) {
    let size = (data.len() as u32 + 0x100).next_multiple_of(0x400);
    let mut made = File::new(size)
        .buffer(0, &[system(true, 0x0f01, 1000, b"before")])
        .buffer(0, &[])
        .buffer(0, &[system(true, 0x0f01, 9000, b"after")]);
    made.buffers[1].records = data.to_vec();
    let bytes = made.bytes();
    file(&bytes);
    let outcome = salvage(&bytes);
    for sound in [&b"before"[..], b"after"] {
        assert!(
            outcome.records.iter().any(|r| r.bytes.ends_with(sound)),
            "an intact record is lost"
        );
    }
}

/// The bytes are extended items, raw or as the data of one item of each type.
pub(super) fn extended(data: &[u8]) {
    let (way, data) = choice(data);
    let data = &data[..data.len().min(0xf000)];
    let kinds = 0..=ExtendedType::CONTAINER_ID.0.max(0x14) + 1;
    let items: Vec<Vec<u8>> = match way % 2 {
        0 => vec![data.to_vec()],
        _ => kinds
            .map(|kind| {
                let size = 8 + data.len().next_multiple_of(8);
                let mut item = Out::default()
                    .u16(size as u16)
                    .u16(kind)
                    .u16(0)
                    .u16(data.len() as u16)
                    .bytes(data)
                    .0;
                item.resize(size, 0);
                item
            })
            .collect(),
    };
    let size = (data.len() as u32 + 0x200).next_multiple_of(0x400);
    for (wide, items) in items.iter().flat_map(|i| [(true, i), (false, i)]) {
        let event = Event {
            wide,
            flags: 1,
            items: items.clone(),
            payload: vec![7; 16],
            ..Event::default()
        };
        let bytes = File::new(size).buffer(0, &[event.bytes()]).bytes();
        let mut reader = Records::stream(bytes.as_slice(), &Options::salvage()).expect("a trace");
        let mut store = etl_schema::store::SchemaStore::default();
        while let Some(record) = reader.next_record().expect("a slice") {
            interrogate(&record);
            store.learn(&record);
            if let Some(fields) = store.fields(&record) {
                let mut out = Vec::new();
                etl_schema::render::Renderer::new().json_fields(&mut out, &mut fields.clone());
            }
            let pointers = if wide {
                PointerSize::P8
            } else {
                PointerSize::P4
            };
            assert!(!record.is_event() || record.pointer_size() == Some(pointers));
        }
    }
}
