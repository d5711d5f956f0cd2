//! Arbitrary bytes: no panic, no endless loop, and all ways of reading agree.

use etl_format::Ticks;
use std::sync::LazyLock;

use crate::common::event::{Event, chain};
use crate::common::packed::{huffman, lznt1, xpress};
use crate::common::reading::{file_order, salvage, spots, strict};
use crate::common::records::{MESSAGE, opaque};
use crate::common::{
    File, Out, compact, event, full, instance, message, perfinfo, run, small, system,
};
use etl_format::read::{Buffers, Header, Options, Record, Records, Trace};
use etl_format::{BufferHeader, FileHeader};
use proptest::prelude::*;
use proptest::sample::Index;

/// A trace with a record of every kind, and extended items of every type.
fn all_kinds() -> File {
    let data = [7u8; 24];
    let items: Vec<_> = (0..=0x14u16).map(|kind| (kind, &data[..])).collect();
    let made = Event {
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
        message(0xc00f, 0xbb, 1006, b"args"),
        opaque(0xc00c, &[0; 12]),
        opaque(0xc0ee, &[0; 20]),
        opaque(0xa000, &[0; 12]),
        event(false, 7, 1007, b"user data"),
        made.bytes(),
    ];
    let mut file = File::new(0x800);
    let masks = (0..9).fold(Out::default(), |out, i| out.u32(i)).0;
    file.extras = [0x05, 0x08, 0x20, 0x40, 0x42, 0x43, 0x50, 0x52, 0x30, 0x99]
        .map(|hook| system(true, hook, 901, &masks))
        .to_vec();
    file.buffer(0, &records)
        .buffer(1, &run(1003, 3))
        .buffer(0, &records[..5])
}

/// Made once: compressing them takes longer than a case.
static TEMPLATES: LazyLock<Vec<Vec<u8>>> = LazyLock::new(|| {
    if cfg!(miri) {
        // Miri needs minutes to compress them.
        return [small().bytes(), all_kinds().bytes()]
            .into_iter()
            .cycle()
            .take(6)
            .collect();
    }
    vec![
        small().bytes(),
        all_kinds().bytes(),
        small().compressed(3, xpress).bytes(),
        all_kinds().compressed(2, lznt1).bytes(),
        all_kinds().compressed(4, xpress).bytes(),
        all_kinds().compressed(4, huffman).bytes(),
    ]
});

/// One kind of damage to a file.
#[derive(Clone, Debug)]
enum Damage {
    Bit(Index, u8),
    Byte(Index, u8),
    /// A 32-bit field takes a value that is at an edge of something.
    Word(Index, u32),
    Delete(Index, usize),
    Insert(Index, Vec<u8>),
    Fill(Index, usize, u8),
    Truncate(Index),
    /// A piece is copied somewhere else.
    Splice(Index, usize, Index),
}

fn damage() -> impl Strategy<Value = Damage> {
    let at = any::<Index>;
    let word = prop::sample::select(vec![
        0,
        1,
        7,
        8,
        0x20,
        0x48,
        0x400,
        0x7fff_ffff,
        0x8000_0000,
        u32::MAX,
        0xc013_0000,
        0xc001_0002,
        0x9000_0020,
    ]);
    prop_oneof![
        (at(), 0..8u8).prop_map(|(i, bit)| Damage::Bit(i, bit)),
        (at(), any::<u8>()).prop_map(|(i, byte)| Damage::Byte(i, byte)),
        (at(), prop_oneof![word, any::<u32>()]).prop_map(|(i, word)| Damage::Word(i, word)),
        (at(), 0..0x500usize).prop_map(|(i, len)| Damage::Delete(i, len)),
        (at(), prop::collection::vec(any::<u8>(), 0..64)).prop_map(|(i, v)| Damage::Insert(i, v)),
        (
            at(),
            0..0x900usize,
            prop::sample::select(vec![0u8, 0xff, 0x5a])
        )
            .prop_map(|(i, len, byte)| Damage::Fill(i, len, byte)),
        at().prop_map(Damage::Truncate),
        (at(), 0..0x900usize, at()).prop_map(|(i, len, to)| Damage::Splice(i, len, to)),
    ]
}

fn apply(bytes: &mut Vec<u8>, damage: &Damage) {
    if bytes.is_empty() {
        return;
    }
    let (total, place) = (bytes.len(), |i: &Index| i.index(bytes.len()));
    match damage {
        Damage::Bit(i, bit) => {
            let at = place(i);
            bytes[at] ^= 1 << bit;
        }
        Damage::Byte(i, byte) => {
            let at = place(i);
            bytes[at] = *byte;
        }
        Damage::Word(i, word) => {
            let at = place(i) & !3;
            let len = 4.min(total - at);
            bytes[at..at + len].copy_from_slice(&word.to_le_bytes()[..len]);
        }
        Damage::Delete(i, len) => {
            let at = place(i);
            bytes.drain(at..total.min(at + len));
        }
        Damage::Insert(i, new) => {
            let at = place(i);
            bytes.splice(at..at, new.iter().copied());
        }
        Damage::Fill(i, len, byte) => {
            let at = place(i);
            bytes[at..total.min(at + len)].fill(*byte);
        }
        Damage::Truncate(i) => {
            let at = place(i);
            bytes.truncate(at);
        }
        Damage::Splice(i, len, to) => {
            let (at, to) = (place(i), place(to));
            let piece = bytes[at..total.min(at + len)].to_vec();
            bytes.splice(to..to, piece);
        }
    }
}

/// Calls every method of a record.
fn call_every_method(r: &Record<'_>) {
    assert!(r.bytes().len() >= 8);
    let payload = r.payload();
    assert!(r.bytes().ends_with(payload));
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
}

/// Reads these bytes in every way; see [`salvage`] for what is held against what.
fn check_bytes(bytes: &[u8]) {
    let outcome = salvage(bytes);
    // A decompressed buffer is at most as large as the size in the header.
    let capacity = FileHeader::parse(bytes.get(0x48..).unwrap_or_default(), 0)
        .map_or(64 << 20, |h| h.buffer_size as usize);
    let packed = outcome
        .records
        .iter()
        .any(|r| r.buffer as usize + r.at as usize > bytes.len());
    let most = if packed {
        bytes.len() / 0x48 * capacity
    } else {
        bytes.len()
    };
    assert!(outcome.records.len() <= most / 8);
    assert!(
        outcome
            .damage
            .windows(2)
            .all(|d| d[0].0.start <= d[1].0.start)
    );
    for (range, _, before, after) in &outcome.damage {
        assert!(range.start <= range.end && range.start <= bytes.len() as u64);
        assert_eq!(before + after, outcome.records.len() as u64);
    }
    let Ok(mut reader) = Records::stream(bytes, &Options::salvage()) else {
        return;
    };
    let _ = (
        reader.header().clock().time(Ticks::MAX).get(),
        reader.header().logger_name(),
    );
    while let Some(record) = reader.next_record().unwrap() {
        call_every_method(&record);
    }
    assert!(
        reader.next_record().unwrap().is_none(),
        "the end stays the end"
    );
    // Buffer by buffer, without the records.
    let mut reader = Buffers::open(bytes, &Options::salvage()).unwrap();
    while reader.next_buffer().unwrap().is_some() {
        assert!(BufferHeader::parse(reader.bytes(), 0).is_ok() || packed);
    }
    for note in Trace::open(bytes, &Options::salvage()).unwrap().notes() {
        assert!(!note.to_string().is_empty());
    }
}

/// `cases` cases, or `PROPTEST_CASES`; `cargo xtask properties` runs many more. There is no file of
/// regressions: each failure becomes a test.
fn config(cases: u32) -> ProptestConfig {
    let cases = std::env::var("PROPTEST_CASES").map_or(cases, |n| n.parse().unwrap());
    ProptestConfig {
        cases,
        failure_persistence: None,
        ..ProptestConfig::default()
    }
}

proptest! {
    #![proptest_config(config(500))]

    #[test]
    fn reading_arbitrary_bytes_never_panics(bytes in prop::collection::vec(any::<u8>(), 0..0x900)) {
        check_bytes(&bytes);
    }

    #[test]
    fn reading_arbitrary_buffers_after_buffer_0_never_panics(
        template in 0..6usize,
        bytes in prop::collection::vec(prop_oneof![
            any::<u8>(),
            prop::sample::select(vec![0, 0xff, 0xc0, 0x90, 0x48, 0x13, 0x11, 2])
        ], 0..0x900),
    ) {
        let mut all = TEMPLATES[template].clone();
        let first = u32::from_le_bytes(*all.first_chunk().unwrap()) as usize;
        all.truncate(first);
        all.extend(bytes);
        check_bytes(&all);
    }
}

proptest! {
    #![proptest_config(config(1000))]

    #[test]
    fn reading_damaged_traces_never_panics(
        template in 0..6usize,
        damages in prop::collection::vec(damage(), 1..6),
    ) {
        let mut bytes = TEMPLATES[template].clone();
        damages.iter().for_each(|damage| apply(&mut bytes, damage));
        check_bytes(&bytes);
    }

    #[test]
    fn damaged_records_leave_other_buffers_readable(
        template in 0..2usize,
        damages in prop::collection::vec((0..4096usize, prop_oneof![
            Just(0u8), Just(0xff), any::<u8>()
        ]), 1..20),
    ) {
        // Only bytes after the buffers' headers change, so records of unchanged buffers stay
        // readable.
        let mut bytes = TEMPLATES[template].clone();
        let size = [0x400, 0x800][template];
        for &(at, byte) in &damages {
            let at = size + at % (bytes.len() - size);
            if at % size >= 0x48 {
                bytes[at] = byte;
            }
        }
        check_bytes(&bytes);
        let outcome = file_order(bytes.as_slice(), &Options::salvage());
        let whole = file_order(TEMPLATES[template].as_slice(), &strict());
        for r in &whole.records {
            let range = r.buffer as usize..r.buffer as usize + size;
            if bytes[range.clone()] == TEMPLATES[template][range] {
                prop_assert!(outcome.records.contains(r));
            }
        }
    }
}

#[test]
fn templates_have_no_damage() {
    for (template, bytes) in TEMPLATES.iter().enumerate() {
        let outcome = salvage(bytes);
        // This one names a format that its bytes are not in.
        assert_eq!(
            outcome.damage.is_empty(),
            template != 4,
            "{:?}",
            outcome.damage
        );
    }
    let bytes = small().bytes();
    let mut reader = Buffers::open(bytes.as_slice(), &strict()).unwrap();
    assert!(spots(reader.damage()).is_empty());
    assert!(reader.bytes().is_empty());
    assert!(reader.next_buffer().unwrap().is_some());
}
