//! The reader: requested columns, selected rows, and its end.

use std::fs;
use std::io::{self, Cursor};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use etl_events::conditions::Conditions;
use etl_events::filter::Filter;
use etl_format::read::{FileSource, Source};
use etl_format::{Clock, Ticks};
use etl_tables::tables::Table;
use etl_tables::{Options, Reader};
use etl_test_support::{needs, trace};

use crate::common::{REAL, all, numbers, read, words};

#[needs(trace = "perfview/net.4.5.2.x64.etl")]
#[test]
fn projection_and_filter_select_what_all_rows_have() {
    let bytes = fs::read(trace(REAL)).unwrap();
    let whole = all(&bytes, "events");
    let names = words(&whole, "event");
    let sequences = numbers(&whole, "sequence");
    let options = || {
        Options::new("t")
            .columns(["event", "sequence"])
            .batch_rows(1000)
    };
    let some = read(&bytes, "events", options());
    assert!(
        some.iter()
            .all(|batch| batch.num_rows() <= 1000 && batch.num_columns() == 2)
    );
    assert_eq!(words(&some, "event"), names);
    let conditions = Conditions::new(&["GC*"], &[], &[]).unwrap();
    let gc = read(&bytes, "events", options().events(conditions));
    let expected: Vec<_> = sequences
        .iter()
        .zip(&names)
        .filter(|(_, name)| name.as_ref().is_some_and(|name| name.starts_with("GC")))
        .map(|(sequence, _)| *sequence)
        .collect();
    assert!(expected.len() > 100);
    assert_eq!(numbers(&gc, "sequence"), expected);
    let filter = Filter {
        ids: vec![1],
        ..Filter::default()
    };
    let by_id = read(&bytes, "events", options().filter(filter));
    let expected: Vec<_> = sequences
        .iter()
        .zip(numbers(&whole, "id"))
        .filter(|(_, id)| *id == Some(1))
        .map(|(sequence, _)| *sequence)
        .collect();
    assert_eq!(numbers(&by_id, "sequence"), expected);
}

/// A source that counts the bytes that are read.
struct Counting {
    source: FileSource<Cursor<Vec<u8>>>,
    read: Arc<AtomicU64>,
}

impl Source for Counting {
    type Block = <FileSource<Cursor<Vec<u8>>> as Source>::Block;

    fn read(&mut self, offset: u64, len: usize, block: &mut Self::Block) -> io::Result<()> {
        self.read.fetch_add(len as u64, Ordering::Relaxed);
        self.source.read(offset, len, block)
    }

    fn size(&self) -> Option<u64> {
        self.source.size()
    }
}

#[needs(trace = "perfview/net.4.5.2.x64.etl")]
#[test]
fn trace_is_not_read_on_once_the_reader_is_dropped() {
    let bytes = fs::read(trace(REAL)).unwrap();
    let size = bytes.len() as u64;
    let open = || {
        let read = Arc::new(AtomicU64::new(0));
        let source = FileSource::new(Cursor::new(bytes.clone())).unwrap();
        let source = Counting {
            source,
            read: Arc::clone(&read),
        };
        (
            Reader::open(source, "samples", Options::new("t")).unwrap(),
            read,
        )
    };
    let (reader, read) = open();
    assert!(reader.map(Result::unwrap).count() > 0);
    assert!(
        read.load(Ordering::Relaxed) >= 2 * size,
        "a table of facts needs two passes"
    );

    let (reader, read) = open();
    drop(reader);
    // The thread has the source, and with it the other count.
    while Arc::strong_count(&read) > 1 {
        std::thread::sleep(Duration::from_millis(1));
    }
    let read = read.load(Ordering::Relaxed);
    assert!(read < size, "{read} bytes of {size} were read");
}

#[test]
fn tables_and_columns_that_are_not_there_are_named() {
    let clock = Clock::assumed(Ticks::new(0));
    assert_eq!(clock.start_time, Clock::assumed(Ticks::new(0)).start_time);
    let empty = FileSource::new(Cursor::new(Vec::new())).unwrap();
    assert!(Reader::open(empty, "events", Options::new("t")).is_err());
    assert!(Table::named("nothing").is_none());
}
