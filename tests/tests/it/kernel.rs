//! Decodes the classic events of real traces to the last byte.

use std::collections::{BTreeMap, BTreeSet};

use etl_format::read::{Options, Order, Trace};
use etl_schema::store::SchemaStore;
use etl_test_support::{all_traces, needs};

/// Kinds that the tables do not describe: class, types, reason.
const NOT_DESCRIBED: &[(&str, &[u8], &str)] = &[
    ("9b79ee91-b5fd-41c0-a243-4248e266e9d0", &[36, 37], "added by merges: no public description"),
    ("bbccf6c1-6cd1-48c4-80ff-839482e37671", &[32, 33], "schemas, which the store learns instead"),
    ("ed54dff8-c409-4cf6-bf83-05e1e61a09c4", &[33, 35, 37], "compressed XML of an assessment"),
];

/// Kinds that the tables describe in older versions only: class, type, version, reason.
const OLDER_VERSIONS: &[(&str, u8, u16, &str)] = &[(
    "01853a65-418f-4f36-aefc-dc0f1d2fd235",
    22,
    5,
    "the state of a device and the code of its problem are new",
)];

/// Written by a test of another project: payloads of a 64-bit machine in 32-bit records.
const WRONG_POINTERS: &str = "syzygy/process_data_64_v2.etl";

#[needs(traces)]
#[test]
fn decoder_reads_every_byte_of_classic_events() {
    let mut listed = BTreeSet::new();
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
            let reason = NOT_DESCRIBED
                .iter()
                .find(|(c, types, _)| *c == class && types.contains(&id.opcode));
            let note = store
                .decoder(&record)
                .map(|decoder| decoder.check(record.payload(), record.pointer_size().unwrap()));
            let place = format!("{class} type {} version {}", id.opcode, id.version);
            match (reason, note) {
                (Some((.., why)), None) => {
                    listed.insert((class, id.opcode, *why));
                }
                (Some(_), Some(_)) => {
                    panic!("{place}: the tables describe it, remove it from the list")
                }
                (None, Some(note)) if note.is_exact() => *kinds.entry(kind).or_default() += 1,
                (None, Some(_))
                    if OLDER_VERSIONS
                        .iter()
                        .any(|(c, t, v, _)| (*c, *t, *v) == (&*class, id.opcode, id.version)) => {}
                (None, note) if !path.ends_with(WRONG_POINTERS) => {
                    bad.entry(place).or_insert_with(|| {
                        let length = record.payload().len();
                        format!("{}: {note:?} of {length} bytes", path.display())
                    });
                }
                (None, _) => {}
            }
        }
    }
    assert!(bad.is_empty(), "{bad:#?}");
    let types: usize = NOT_DESCRIBED.iter().map(|(_, types, _)| types.len()).sum();
    assert_eq!(listed.len(), types, "a kind is listed that no trace has: {listed:?}");
    assert!(kinds.len() >= 70, "only {} kinds were seen", kinds.len());
    assert!(kinds.values().sum::<u64>() > 100_000);
}
