//! Decodes the classic events of real traces to the last byte.

use std::collections::BTreeMap;

use etl_format::read::{Options, Order, Trace};
use etl_schema::store::SchemaStore;
use etl_test_support::{all_traces, needs};

/// Written by a test of another project: payloads of a 64-bit machine in 32-bit records.
const WRONG_POINTERS: &str = "syzygy/process_data_64_v2.etl";

#[needs(traces)]
#[test]
fn decoder_reads_every_byte_of_classic_events() {
    let mut bad: BTreeMap<String, String> = BTreeMap::new();
    let mut kinds: BTreeMap<_, u64> = BTreeMap::new();
    for path in all_traces() {
        let bytes = std::fs::read(&path).unwrap();
        let mut file = Trace::open(bytes.as_slice(), &Options::default()).unwrap();
        let mut store = SchemaStore::default();
        let mut records = file.records(Order::File).unwrap();
        while let Some(record) = records.next_record().unwrap() {
            if record.is_event() {
                continue;
            }
            store.learn(&record);
            let id = record.identity();
            let class = record.provider().unwrap_or_default().to_string();
            let kind = (class.clone(), id.opcode, id.version);
            let note = store
                .decoder(&record)
                .map(|decoder| decoder.check(record.payload(), record.pointer_size().unwrap()));
            let place = format!("{class} type {} version {}", id.opcode, id.version);
            match note {
                Some(note) if note.is_exact() => *kinds.entry(kind).or_default() += 1,
                note if !path.ends_with(WRONG_POINTERS) => {
                    bad.entry(place).or_insert_with(|| {
                        let length = record.payload().len();
                        format!("{}: {note:?} of {length} bytes", path.display())
                    });
                }
                _ => {}
            }
        }
    }
    assert!(bad.is_empty(), "{bad:#?}");
    assert!(kinds.len() >= 70, "only {} kinds were seen", kinds.len());
    assert!(kinds.values().sum::<u64>() > 100_000);
}
