//! Every event of the real traces has a name and fields that take its payload exactly, except
//! those in the list.

use std::collections::BTreeMap;

use etl_format::read::{Options, Order, Record, Trace};
use etl_schema::store::SchemaStore;
use etl_test_support::{all_traces, needs};

/// Why payloads are not taken exactly: provider, event, and the reason.
const LISTED: &[(&str, &str, &str)] = &[
    (
        "a8a71ac1-040f-54a2-07ca-00a89b5ab761",
        "ClrEnableParameters",
        "PerfView's manifest says that enumerations have 32 bits, but it writes 64",
    ),
    (
        "6f669bfa-816a-4204-a824-47c8e6a00474",
        "EventID(2)",
        "a provider of Visual Studio's diagnostics hub that no source describes",
    ),
];

/// Provider, name, version, and what is wrong.
type Kind = (String, String, u16, &'static str);

/// How the fields of an event differ from its payload.
fn difference(store: &SchemaStore, record: &Record<'_>) -> Option<&'static str> {
    let payload = record.payload();
    let Some(mut fields) = store.fields(record) else {
        return (!payload.is_empty()).then_some("no fields");
    };
    if fields.schema().fields.is_empty() && !payload.is_empty() {
        return Some("no fields");
    }
    fields.by_ref().for_each(drop);
    match fields.note() {
        note if note.is_exact() => None,
        note if note.is_short() => Some("too short"),
        _ => Some("too long"),
    }
}

#[needs(traces)]
#[test]
fn every_payload_is_taken_exactly_or_listed() {
    let mut others: BTreeMap<Kind, u64> = BTreeMap::new();
    let (mut all, mut described, mut exact) = (0u64, 0u64, 0u64);
    let mut used = vec![false; LISTED.len()];
    for path in all_traces() {
        let bytes = std::fs::read(&path).unwrap();
        let mut trace = Trace::open(bytes.as_slice(), &Options::default()).unwrap();
        let mut store = SchemaStore::default();
        let mut records = trace.records(Order::Time).unwrap();
        while let Some(record) = records.next_record().unwrap() {
            store.learn(&record);
            let found = store.decoder(&record);
            let name = found.map_or(String::new(), |d| d.schema().name.to_string());
            assert!(
                found.is_none() || !name.is_empty(),
                "{:?} has no name",
                record.identity()
            );
            all += 1;
            let Some(what) = difference(&store, &record) else {
                described += 1;
                exact += 1;
                continue;
            };
            described += u64::from(what != "no fields");
            let provider = record.provider().map_or(String::new(), |p| p.to_string());
            let id = record.identity();
            let name = if name.is_empty() {
                format!("EventID({})", id.id)
            } else {
                name
            };
            let listed = LISTED.iter().position(|l| (l.0, l.1) == (&provider, &name));
            match listed {
                Some(at) => used[at] = true,
                None => {
                    *others
                        .entry((provider, name, id.version, what))
                        .or_default() += 1
                }
            }
        }
    }
    assert!(others.is_empty(), "not taken exactly: {others:#?}");
    assert!(used.iter().all(|used| *used), "not needed: {used:?}");
    assert!(described <= all);
    // The payloads of 99.99 % of all events fit exactly.
    assert!(
        exact * 10_000 >= all * 9_999,
        "{exact} of {all} are exact, {described} have fields"
    );
    eprintln!("{all} events, {described} with fields, {exact} exact");
}
