//! Writers at once, killed writers, traces with similar hashes, packed files and checks.

use std::path::Path;
use std::thread;

use etl_format::constants::EventFlags;
use etl_format::write::Session;
use etl_format::write::record::Event;
use etl_format::{EventDescriptor, FileHeader, Guid};

use super::*;

/// A trace with one event.
fn trace(id: u16) -> Vec<u8> {
    let mut session = Session::in_memory(FileHeader::new()).unwrap();
    let descriptor = EventDescriptor {
        id,
        ..EventDescriptor::default()
    };
    let event = Event::new(Guid::new(7, 7, 7, [7; 8]), descriptor, 2_000);
    session
        .write(0, &event.flags(EventFlags(0x40)).payload(&[1, 2]))
        .unwrap();
    session.finish().unwrap()
}

fn hash_of(bytes: &[u8]) -> Hash {
    Hash::of(bytes)
}

fn add(dataset: &Dataset, file: &str, hash: &Hash, id: u16) -> String {
    let bytes = trace(id);
    let added = dataset.add(bytes.as_slice(), file, hash, Options::new(file));
    match added.unwrap() {
        Added::Written { trace, .. } => trace,
        Added::Known => panic!("{file} was known"),
    }
}

fn open(root: &Path) -> Dataset {
    let dataset = Dataset::open_when_free(root).unwrap();
    dataset.tables(&["events", "gcs"]).unwrap()
}

/// Whether a table has a file of a trace.
fn has_file(root: &Path, table: &str, trace: &str) -> bool {
    root.join(format!("{table}/{trace}.parquet")).is_file()
}

#[test]
fn second_writer_is_refused_while_the_first_lives() {
    let root = tempfile::tempdir().unwrap();
    let first = Dataset::open(root.path()).unwrap();
    let clone = first.clone();
    drop(first);
    assert!(matches!(Dataset::open(root.path()), Err(Error::Locked(_))));
    drop(clone);
    Dataset::open(root.path()).unwrap();
}

#[test]
fn writers_at_once_lose_nothing() {
    const WRITERS: u16 = 8;
    const TRACES: u16 = 3;
    let root = tempfile::tempdir().unwrap();
    thread::scope(|scope| {
        for writer in 0..WRITERS {
            let root = root.path();
            scope.spawn(move || {
                for number in 0..TRACES {
                    let id = writer * TRACES + number;
                    let dataset = open(root);
                    add(&dataset, "t.etl", &hash_of(&trace(id)), id);
                    dataset.finish().unwrap();
                }
            });
        }
    });
    let dataset = open(root.path());
    assert_eq!(dataset.entries.len(), usize::from(WRITERS * TRACES));
    for entry in &dataset.entries {
        assert_eq!(entry.tables, ["events", "gcs"]);
        assert!(
            has_file(root.path(), "events", &entry.trace),
            "{}",
            entry.trace
        );
    }
    let files = |table: &str| layout::files_in(&root.path().join(table)).unwrap();
    assert_eq!(files("events").len(), dataset.entries.len());
    // No trace has a collection: one file has the columns.
    assert!(files("gcs").is_empty());
    assert!(root.path().join("gcs/schema.parquet").is_file());
    assert_eq!(dataset.check().unwrap().problems, []);
}

#[test]
fn empty_data_set_is_removed_only_by_its_writer() {
    let root = tempfile::tempdir().unwrap();
    thread::scope(|scope| {
        for _ in 0..8 {
            scope.spawn(|| {
                for _ in 0..20 {
                    let dataset = open(root.path());
                    assert!(dataset.lock.is_valid());
                    dataset.finish().unwrap();
                }
            });
        }
    });
    assert_eq!(fs::read_dir(root.path()).unwrap().count(), 0);
}

#[test]
fn traces_with_similar_hashes_have_two_names() {
    let root = tempfile::tempdir().unwrap();
    let [first, second, third] = [0, 1, 2].map(|end| {
        let mut bytes = [0xab; 32];
        bytes[31] = end;
        Hash::from_bytes(bytes)
    });
    let dataset = open(root.path());
    assert_eq!(add(&dataset, "t.etl", &first, 1), "t-abababab");
    let long = add(&dataset, "T.etl", &second, 2);
    assert_eq!(long, format!("T-{second}"));
    drop(dataset);
    let dataset = open(root.path());
    assert!(dataset.has(&first) && dataset.has(&second) && !dataset.has(&third));
    assert_eq!(add(&dataset, "t.etl", &third, 3), format!("t-{third}"));
    for entry in ["t-abababab".to_owned(), long, format!("t-{third}")] {
        assert!(has_file(root.path(), "events", &entry), "{entry}");
    }
}

#[test]
fn traces_have_the_stem_of_their_file() {
    for (file, name) in [
        ("traces/Orders.ETL.zst", "Orders-1"),
        ("web.nettrace.gz", "web-1"),
        ("trace", "trace-1"),
    ] {
        assert_eq!(entry::trace_name(file, "1"), name);
    }
}

#[test]
fn files_of_a_killed_writer_are_removed_by_the_next_one() {
    let root = tempfile::tempdir().unwrap();
    let dataset = open(root.path());
    let kept = add(&dataset, "kept.etl", &hash_of(b"kept"), 1);
    let killed = add(&dataset, "killed.etl", &hash_of(b"killed"), 2);
    drop(dataset);
    // As if the process had been killed before it completed the entry.
    let entries = root.path().join(entry::FOLDER);
    let announced = entry::announced_path(root.path(), &killed);
    fs::rename(entries.join(format!("{killed}.json")), &announced).unwrap();
    let typed = root.path().join(format!("typed/P.E/{killed}.parquet"));
    fs::create_dir_all(typed.parent().unwrap()).unwrap();
    fs::write(&typed, "").unwrap();
    let dataset = open(root.path());
    assert!(!dataset.has(&hash_of(b"killed")) && dataset.has(&hash_of(b"kept")));
    assert!(!announced.exists() && !typed.exists());
    assert!(!has_file(root.path(), "events", &killed));
    assert!(has_file(root.path(), "events", &kept));
    assert_eq!(dataset.check().unwrap().problems, []);
}

#[test]
fn new_tables_of_a_killed_writer_are_removed_and_old_ones_stay() {
    let root = tempfile::tempdir().unwrap();
    let hash = hash_of(b"t");
    let dataset = open(root.path()).tables(&["events"]).unwrap();
    let name = add(&dataset, "t.etl", &hash, 1);
    drop(dataset);
    let mut entry = entry::read_all(root.path()).unwrap().remove(0);
    entry.tables.push("gcs".to_owned());
    entry.announce(root.path()).unwrap();
    fs::create_dir_all(root.path().join("gcs")).unwrap();
    fs::write(root.path().join(format!("gcs/{name}.parquet")), "").unwrap();
    let dataset = open(root.path());
    assert!(has_file(root.path(), "events", &name));
    assert!(!has_file(root.path(), "gcs", &name));
    assert_eq!(add(&dataset, "t.etl", &hash, 1), name);
    assert!(open_entry(root.path(), &name).contains("gcs"));
}

fn open_entry(root: &Path, trace: &str) -> String {
    fs::read_to_string(root.join(entry::FOLDER).join(format!("{trace}.json"))).unwrap()
}

#[test]
fn a_file_that_is_gone_is_an_error_and_no_entry() {
    let root = tempfile::tempdir().unwrap();
    let dataset = open(root.path());
    let hash = hash_of(b"t");
    let folder = dataset.unfinished().join("t-1");
    let part = Path::new("gcs/t-1.parquet");
    fs::create_dir_all(folder.join("gcs")).unwrap();
    // The folder was emptied, or removed, by someone else.
    for is_there in [true, false] {
        if !is_there {
            fs::remove_dir_all(&folder).unwrap();
        }
        let mut entry = Entry::new("t-1".to_owned(), "t.etl", &hash, "");
        let new = NewTables {
            names: vec!["gcs".to_owned()],
            rows: BTreeMap::new(),
            files: vec![part.to_owned()],
        };
        let moved = dataset.move_files(&folder, &mut entry, new);
        assert!(matches!(moved, Err(Error::File(..))), "{moved:?}");
        assert!(entry::read_all(root.path()).unwrap().is_empty());
        assert!(entry::announced(root.path()).unwrap().is_empty());
        assert!(!root.path().join(part).exists());
        fs::create_dir_all(&folder).unwrap();
    }
}

#[test]
fn entry_with_the_name_of_another_trace_is_refused() {
    let root = tempfile::tempdir().unwrap();
    let entry = Entry::new("../t".to_owned(), "t.etl", &hash_of(b"t"), "");
    let folder = root.path().join(entry::FOLDER);
    fs::create_dir_all(&folder).unwrap();
    let text = serde_json::to_string(&entry).unwrap();
    fs::write(folder.join("t.json"), text).unwrap();
    let opened = Dataset::open(root.path());
    assert!(matches!(opened, Err(Error::NoEntry(..))), "{opened:?}");
}

/// A trace with an event of each of some providers.
fn many_providers(count: u16) -> Vec<u8> {
    let mut session = Session::in_memory(FileHeader::new()).unwrap();
    for number in 0..count {
        let descriptor = EventDescriptor {
            id: number,
            ..EventDescriptor::default()
        };
        let provider = Guid::new(number.into(), 7, 7, [7; 8]);
        let event = Event::new(provider, descriptor, 2_000 + i64::from(number));
        session
            .write(0, &event.flags(EventFlags(0x40)).payload(&[1, 2]))
            .unwrap();
    }
    session.finish().unwrap()
}

#[test]
fn providers_after_the_first_share_a_partition() {
    let root = tempfile::tempdir().unwrap();
    let dataset = Dataset::open(root.path()).unwrap();
    let dataset = dataset.tables(&["events"]).unwrap().events_by_provider();
    let bytes = many_providers(1_200);
    let hash = hash_of(&bytes);
    let added = dataset.add(bytes.as_slice(), "t.etl", &hash, Options::new("t.etl"));
    let Added::Written { trace, rows, .. } = added.unwrap() else {
        panic!("it was known")
    };
    assert_eq!(rows, 1_201, "the events and the header event");
    let events = root.path().join("events");
    assert_eq!(fs::read_dir(&events).unwrap().count(), 1_025);
    let others = events.join(format!("provider=%28other%20providers%29/{trace}.parquet"));
    let file = fs::File::open(others).unwrap();
    let reader = parquet::arrow::arrow_reader::ParquetRecordBatchReaderBuilder::try_new(file);
    let reader = reader.unwrap();
    assert_eq!(reader.metadata().file_metadata().num_rows(), 177);
    assert!(reader.schema().field_with_name("other_provider").is_ok());
    assert!(reader.schema().field_with_name("provider").is_err());
}

/// A trace with an event of each of some kinds, which describe themselves (TraceLogging).
fn many_kinds(count: u16) -> Vec<u8> {
    let mut session = Session::in_memory(FileHeader::new()).unwrap();
    for number in 0..count {
        // Its size, no tags, its name, and a field of type UInt8.
        let mut metadata = vec![0, 0, 0];
        metadata.extend(format!("Kind{number}\0").bytes());
        metadata.extend(b"value\0\x04");
        let len = metadata.len() as u16;
        metadata[..2].copy_from_slice(&len.to_le_bytes());
        let descriptor = EventDescriptor {
            channel: 11,
            ..EventDescriptor::default()
        };
        let event = Event::new(
            Guid::new(7, 7, 7, [7; 8]),
            descriptor,
            2_000 + i64::from(number),
        );
        let payload = [number as u8];
        let event = event.metadata(&metadata).payload(&payload);
        session.write(0, &event).unwrap();
    }
    session.finish().unwrap()
}

#[test]
fn kinds_after_the_first_share_a_typed_table() {
    let root = tempfile::tempdir().unwrap();
    let dataset = Dataset::open(root.path()).unwrap();
    let dataset = dataset.tables(&["gcs"]).unwrap().typed_tables();
    let bytes = many_kinds(4_200);
    let hash = hash_of(&bytes);
    let added = dataset.add(bytes.as_slice(), "t.etl", &hash, Options::new("t.etl"));
    let Added::Written { trace, rows, .. } = added.unwrap() else {
        panic!("it was known")
    };
    let tables = fs::read_dir(root.path().join("typed")).unwrap();
    // The header event has a kind too.
    assert_eq!(tables.count(), 4_097);
    assert_eq!(rows, 4_201);
    let others = root
        .path()
        .join(format!("typed/other_events/{trace}.parquet"));
    let file = fs::File::open(others).unwrap();
    let reader = parquet::arrow::arrow_reader::ParquetRecordBatchReaderBuilder::try_new(file);
    let reader = reader.unwrap();
    assert_eq!(reader.metadata().file_metadata().num_rows(), 4_201 - 4_096);
    for column in ["provider", "event", "fields"] {
        assert!(reader.schema().field_with_name(column).is_ok(), "{column}");
    }
}

/// The rows of `events` by trace.
fn events_of(root: &Path) -> BTreeMap<String, u64> {
    let mut rows = BTreeMap::new();
    for path in layout::files_in(&root.join("events")).unwrap() {
        for batch in compact::DataFile::read(&path).unwrap().batches().unwrap() {
            for trace in compact::trace_names(&batch.unwrap()) {
                *rows.entry(trace.unwrap().to_owned()).or_default() += 1;
            }
        }
    }
    rows
}

/// A data set with traces of one event.
fn with_traces(root: &Path, count: u16) -> Vec<String> {
    let dataset = open(root);
    let mut traces = Vec::new();
    for id in 0..count {
        traces.push(add(&dataset, "t.etl", &hash_of(&trace(id)), id));
    }
    dataset.finish().unwrap();
    traces
}

#[test]
fn compact_packs_small_files_and_keeps_all_rows() {
    let root = tempfile::tempdir().unwrap();
    with_traces(root.path(), 9);
    let before = events_of(root.path());
    let dataset = open(root.path());
    let done = dataset.compact(Packing::default()).unwrap();
    assert_eq!((done.replaced, done.written), (9, 1));
    assert_eq!(
        layout::files_in(&root.path().join("events")).unwrap().len(),
        1
    );
    assert_eq!(events_of(root.path()), before);
    let checked = dataset.check().unwrap();
    assert_eq!(checked.problems, []);
    assert_eq!((checked.traces, checked.files, checked.rows), (9, 1, 18));
    // Another trace comes, and is packed with the others.
    assert_eq!(
        dataset.compact(Packing::default()).unwrap(),
        Compacted::default()
    );
    add(&dataset, "t.etl", &hash_of(&trace(10)), 10);
    drop(dataset);
    let dataset = open(root.path());
    let done = dataset.compact(Packing::default()).unwrap();
    assert_eq!((done.replaced, done.written), (2, 1));
    assert_eq!(dataset.check().unwrap().problems, []);
}

#[test]
fn packed_files_are_compressed_as_before() {
    let root = tempfile::tempdir().unwrap();
    let dataset = open(root.path()).codec(Codec::None);
    for id in 0..2 {
        add(&dataset, "t.etl", &hash_of(&trace(id)), id);
    }
    drop(dataset);
    open(root.path()).compact(Packing::default()).unwrap();
    let files = layout::files_in(&root.path().join("events")).unwrap();
    assert_eq!(files.len(), 1);
    let file = fs::File::open(&files[0]).unwrap();
    let reader = parquet::arrow::arrow_reader::ParquetRecordBatchReaderBuilder::try_new(file);
    let metadata = reader.unwrap().metadata().clone();
    let compression = metadata.row_group(0).column(0).compression();
    assert_eq!(compression, parquet::basic::Compression::UNCOMPRESSED);
}

#[test]
fn compact_writes_files_of_the_requested_size() {
    let root = tempfile::tempdir().unwrap();
    with_traces(root.path(), 6);
    let files = layout::files_in(&root.path().join("events")).unwrap();
    let bytes = fs::metadata(&files[0]).unwrap().len();
    let packing = Packing {
        bytes: 2 * bytes + bytes / 2,
    };
    let done = open(root.path()).compact(packing).unwrap();
    assert_eq!((done.replaced, done.written), (6, 3));
    // Files of half the size and more stay.
    let packing = Packing { bytes: bytes / 2 };
    assert_eq!(
        open(root.path()).compact(packing).unwrap(),
        Compacted::default()
    );
}

#[test]
fn remove_takes_a_trace_out_of_packed_files() {
    let root = tempfile::tempdir().unwrap();
    let traces = with_traces(root.path(), 3);
    let mut expected = events_of(root.path());
    let mut dataset = open(root.path());
    dataset.compact(Packing::default()).unwrap();
    assert!(dataset.remove(&traces[1]).unwrap());
    assert!(!dataset.remove(&traces[1]).unwrap());
    expected.remove(&traces[1]);
    assert_eq!(events_of(root.path()), expected);
    assert_eq!(dataset.check().unwrap().problems, []);
    for trace in [&traces[0], &traces[2]] {
        assert!(dataset.remove(trace).unwrap());
    }
    assert!(
        layout::files_in(&root.path().join("events"))
            .unwrap()
            .is_empty()
    );
    dataset.finish().unwrap();
    assert_eq!(dataset.traces().count(), 0);
}

#[test]
fn killed_compaction_is_finished_or_given_up() {
    for is_renamed in [false, true] {
        let root = tempfile::tempdir().unwrap();
        with_traces(root.path(), 2);
        let expected = events_of(root.path());
        let old = layout::files_in(&root.path().join("events")).unwrap();
        let copies: Vec<Vec<u8>> = old.iter().map(|path| fs::read(path).unwrap()).collect();
        open(root.path()).compact(Packing::default()).unwrap();
        let new = layout::files_in(&root.path().join("events"))
            .unwrap()
            .remove(0);
        // As if the process had been killed before it removed the old files.
        for (path, bytes) in old.iter().zip(copies) {
            fs::write(path, bytes).unwrap();
        }
        if !is_renamed {
            fs::remove_file(&new).unwrap();
        }
        let from_root = |path: &PathBuf| path.strip_prefix(root.path()).unwrap().to_owned();
        let replacement = journal::Replacement {
            new: Some(from_root(&new)),
            old: old.iter().map(from_root).collect(),
        };
        let text = serde_json::to_string(&replacement).unwrap();
        fs::write(root.path().join(".replaced.json"), text).unwrap();
        let dataset = open(root.path());
        assert_eq!(events_of(root.path()), expected);
        assert_eq!(dataset.check().unwrap().problems, []);
        assert_eq!(new.exists(), is_renamed);
    }
}

#[test]
fn check_finds_what_entries_do_not_state() {
    let root = tempfile::tempdir().unwrap();
    let traces = with_traces(root.path(), 4);
    let events = root.path().join("events");
    let file = |trace: &str| events.join(format!("{trace}.parquet"));
    fs::remove_file(file(&traces[0])).unwrap();
    fs::write(file(&traces[1]), "PAR1").unwrap();
    fs::copy(file(&traces[2]), file("other-12345678")).unwrap();
    let problems = open(root.path()).check().unwrap().problems;
    let lines: Vec<String> = problems
        .iter()
        .map(|problem| format!("{}: {}", problem.place, problem.message))
        .collect();
    assert_eq!(lines.len(), 4, "{lines:#?}");
    assert!(
        lines[0].starts_with(&format!("events/{}.parquet: ", traces[1])),
        "{lines:#?}"
    );
    for line in [
        format!("events: {} has 0 rows, and its entry 2", traces[0]),
        format!("events: {} has 4 rows, and its entry 2", traces[2]),
    ] {
        assert!(lines.contains(&line), "{lines:#?}");
    }
}

#[test]
fn journal_with_paths_outside_is_refused() {
    let root = tempfile::tempdir().unwrap();
    with_traces(root.path(), 1);
    let text = r#"{"new":null,"old":["../t"]}"#;
    fs::write(root.path().join(".replaced.json"), text).unwrap();
    let opened = Dataset::open(root.path());
    assert!(matches!(opened, Err(Error::NoEntry(..))), "{opened:?}");
}
