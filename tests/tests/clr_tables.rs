//! The tables of the CLR's events, against what real traces hold.

use std::collections::BTreeSet;

use etl_format::read::{Options, Trace};
use etl_schema::Identity;
use etl_schema::tables::Registry;
use etl_tests::all_traces;

/// Every event of the CLR's two providers in the real traces is in the tables with the level, opcode,
/// task and keywords that it has there, or that the table gives for older runtimes; and its payload
/// decodes to its last byte.
#[test]
fn every_clr_event_is_described_and_decodes_whole() {
    let registry = Registry::builtin();
    let mut kinds = BTreeSet::new();
    let mut decoded = 0u64;
    for path in all_traces() {
        let bytes = std::fs::read(&path).unwrap();
        let mut trace = Trace::open(bytes.as_slice(), &Options::default()).unwrap();
        let mut records = trace.file_order().unwrap();
        while let Some(record) = records.next_record().unwrap() {
            let (Some(provider), Some(d)) = (record.provider(), record.descriptor()) else {
                continue;
            };
            // EventSource manifests travel under an id of their own.
            if registry.provider(provider).is_none() || d.id == 0xfffe {
                continue;
            }
            let key = Identity::Modern { id: d.id, version: d.version };
            let place = format!("{}: {provider} id {} version {}", path.display(), d.id, d.version);
            let event =
                registry.event(provider, key).unwrap_or_else(|| panic!("{place}: not described"));
            let schema = &event.schema;
            assert_eq!((schema.task.value, schema.opcode.value), (d.task, d.opcode), "{place}");
            let now = (schema.level.value, schema.keywords);
            let says = (d.level, d.keyword);
            assert!(says == now || event.older == Some(says), "{place}: {says:?} is not {now:?}");
            let decoder = registry.decoder(provider, key).unwrap();
            let note = decoder.check(record.payload(), record.pointer_size().unwrap());
            assert!(note.is_exact(), "{place}: {note:?}");
            kinds.insert((provider, key));
            decoded += 1;
        }
    }
    if kinds.is_empty() {
        return;
    }
    assert!(kinds.len() >= 45, "only {} kinds of events were seen", kinds.len());
    assert!(decoded > 65_000, "only {decoded} events were seen");
}
