//! Compares the tables of CLR events with the events of real traces.

use std::collections::BTreeMap;

use etl_format::Guid;
use etl_format::read::{Options, Order, Trace};
use etl_schema::Identity;
use etl_schema::decode::Value;
use etl_schema::store::SchemaStore;
use etl_schema::tables::{OlderEvent, Registry, TableEvent, erratum};
use etl_test_support::{all_traces, needs, traces};

/// Provider, id, version, level, opcode, task, keywords.
type Tuple = (String, u16, u8, u8, u8, u16, u64);

/// Whether a tuple is what the table says of its event: as newer runtimes have it, or older ones.
fn agrees(event: &TableEvent, (_, _, _, level, opcode, task, keyword): &Tuple) -> bool {
    let schema = &event.schema;
    let now = (schema.level.value, schema.keywords);
    let says = (*level, *keyword);
    (schema.task.value, schema.opcode.value) == (*task, *opcode)
        && (says == now
            || event.older
                == Some(OlderEvent {
                    level: *level,
                    keywords: *keyword,
                }))
}

/// The tuples that were counted over many real traces, more than are at hand here.
fn counted() -> BTreeMap<Tuple, u64> {
    let path = traces().join("../spec/clr-seen.tsv");
    let text = std::fs::read_to_string(path).unwrap();
    let number = |text: &str| match text.strip_prefix("0x") {
        Some(digits) => u64::from_str_radix(digits, 16).unwrap(),
        None => text.parse().unwrap(),
    };
    let rows = text.lines().skip(1).map(|line| {
        let c: Vec<&str> = line.split('\t').collect();
        let n: Vec<u64> = c[1..8].iter().map(|c| number(c)).collect();
        let tuple = (
            c[0].to_owned(),
            u16::try_from(n[0]).unwrap(),
            u8::try_from(n[1]).unwrap(),
            u8::try_from(n[2]).unwrap(),
            u8::try_from(n[3]).unwrap(),
            u16::try_from(n[4]).unwrap(),
            n[5],
        );
        (tuple, n[6])
    });
    rows.collect()
}

/// The tables contain every event of the CLR's two providers in real traces with its level, opcode,
/// task and keywords, or list them for older runtimes. The list of counted tuples contains it too.
#[needs(traces)]
#[test]
fn tables_describe_every_byte_of_clr_events() {
    let registry = Registry::builtin();
    let mut kinds: BTreeMap<Tuple, u64> = BTreeMap::new();
    for path in all_traces() {
        let bytes = std::fs::read(&path).unwrap();
        let mut trace = Trace::open(bytes.as_slice(), &Options::default()).unwrap();
        let mut records = trace.records(Order::File).unwrap();
        while let Some(record) = records.next_record().unwrap() {
            let (Some(provider), Some(d)) = (record.provider(), record.descriptor()) else {
                continue;
            };
            // EventSource manifests have their own id.
            if registry.provider(provider).is_none() || d.id == 0xfffe {
                continue;
            }
            let key = Identity::Modern {
                id: d.id,
                version: d.version,
            };
            let tuple = (
                provider.to_string(),
                d.id,
                d.version,
                d.level,
                d.opcode,
                d.task,
                d.keyword,
            );
            let place = format!("{}: {tuple:?}", path.display());
            let event = registry
                .event(provider, key)
                .unwrap_or_else(|| panic!("{place}: not described"));
            assert!(agrees(event, &tuple), "{place}: the table differs");
            let decoder = registry.decoder(provider, key).unwrap();
            let note = decoder.check(record.payload(), record.pointer_size().unwrap());
            assert!(note.is_exact(), "{place}: {note:?}");
            *kinds.entry(tuple).or_default() += 1;
        }
    }
    assert!(
        kinds.len() >= 45,
        "only {} kinds of events were seen",
        kinds.len()
    );
    assert!(kinds.values().sum::<u64>() > 65_000, "{kinds:?}");
    let counted = counted();
    // The private provider was not counted.
    let private = registry.find("private").unwrap().guid.to_string();
    for (tuple, count) in kinds.iter().filter(|(tuple, _)| tuple.0 != private) {
        let over_all = counted.get(tuple).copied().unwrap_or(0);
        assert!(
            over_all >= *count,
            "{tuple:?}: {count} here, {over_all} counted"
        );
    }
}

/// The tables agree with all tuples that were counted in real traces. An erratum lists those of
/// newer runtimes than the documents.
#[needs(traces)]
#[test]
fn erratum_counts_match_the_tables() {
    let counted = counted();
    assert!(counted.len() >= 65, "only {} tuples", counted.len());
    let registry = Registry::builtin();
    let mut newer = Vec::new();
    for tuple in counted.keys() {
        let (provider, id, version, ..) = tuple;
        let guid: Guid = provider.parse().unwrap();
        let key = Identity::Modern {
            id: *id,
            version: *version,
        };
        let event = registry
            .event(guid, key)
            .unwrap_or_else(|| panic!("{tuple:?}: not described"));
        assert!(agrees(event, tuple), "{tuple:?}: the table differs");
        if event.origin.contains("seen in traces") {
            newer.push((
                registry.provider(guid).unwrap().name.ends_with("Rundown"),
                *id,
                *version,
            ));
        }
    }
    newer.sort_unstable();
    let expected = [
        (false, 10, 4),
        (false, 205, 4),
        (false, 208, 0),
        (false, 209, 0),
        (true, 10, 0),
    ];
    assert_eq!(newer, expected);
    let newer = &erratum("X29").unwrap().shipped;
    for name in [
        "GCSettingsRundown",
        "AllocationTick 4",
        "GCGlobalHeapHistory 4",
        "GCLOHCompact",
    ] {
        assert!(newer.contains(name), "{name}");
    }
}

/// Real traces follow the rules for the forms of method events.
#[needs(traces)]
#[test]
fn method_events_follow_the_rules_of_their_form() {
    const RUNDOWN: &str = "a669021c-c450-4609-a035-5af59af4df18";
    const RUNTIME: &str = "e13c0d23-ccbc-4e12-931b-d9cc2eee27e4";
    // Dynamic, generic, helper: always named. Helpers are never enumerated and never unloaded.
    let (named, helper) = (0x1 | 0x2 | 0x10, 0x10);
    let mut seen = 0u64;
    for path in all_traces() {
        let bytes = std::fs::read(&path).unwrap();
        let mut trace = Trace::open(bytes.as_slice(), &Options::default()).unwrap();
        let mut records = trace.records(Order::File).unwrap();
        while let Some(record) = records.next_record().unwrap() {
            let (Some(provider), Some(d)) = (record.provider(), record.descriptor()) else {
                continue;
            };
            let provider = provider.to_string();
            let (rundown, runtime) = (provider == RUNDOWN, provider == RUNTIME);
            if !(rundown || runtime) || !(141..=144).contains(&d.id) {
                continue;
            }
            // Id, module and start are 8 bytes each, size and token 4.
            let flags = u32::from_le_bytes(record.payload()[32..36].try_into().unwrap());
            let place = format!(
                "{}: {provider} id {} flags {flags:#x}",
                path.display(),
                d.id
            );
            if d.id < 143 {
                assert_eq!(flags & named, 0, "{place}: plain");
            }
            if rundown || d.id == 144 {
                assert_eq!(flags & helper, 0, "{place}: a helper");
            }
            seen += 1;
        }
    }
    assert!(seen > 10_000, "only {seen} methods");
}

/// Before .NET Framework 4.6 the CLR wrote a structure of its memory as it was. Other events of the
/// same collection say the same of the heap.
#[needs(trace = "perfview/net.4.5.2.x64.etl")]
#[test]
fn heap_histories_agree_with_the_other_events_of_a_collection() {
    let number = |fields: &[(String, u64)], name: &str| {
        fields
            .iter()
            .find(|(field, _)| field == name)
            .map(|(_, value)| *value)
    };
    let bytes = std::fs::read(etl_test_support::trace("perfview/net.4.5.2.x64.etl")).unwrap();
    let mut trace = Trace::open(bytes.as_slice(), &Options::default()).unwrap();
    let store = SchemaStore::default();
    let mut records = trace.records(Order::Time).unwrap();
    let (mut desired, mut history, mut compared) = (None, None, 0);
    while let Some(record) = records.next_record().unwrap() {
        let Some(mut fields) = store.fields(&record) else {
            continue;
        };
        let schema = fields.schema();
        match &*schema.name {
            "GCGlobalHeapHistory_V1" => {
                let fields: Vec<_> = fields.map(|(f, v)| (f.name.to_string(), v)).collect();
                let value = fields
                    .iter()
                    .find(|(name, _)| name == "FinalYoungestDesired");
                desired = value.and_then(|(_, value)| value.as_u64());
            }
            "GCPerHeapHistory" => {
                let (_, values) = fields.by_ref().next().unwrap();
                let Value::Array(values) = values else {
                    panic!("{values:?}")
                };
                let generations: Vec<Vec<(String, u64)>> = values
                    .iter()
                    .map(|value| {
                        let Value::Struct(members) = value else {
                            panic!("{value:?}")
                        };
                        let members = members.fields();
                        members
                            .map(|(f, v)| (f.name.to_string(), v.as_u64().unwrap()))
                            .collect()
                    })
                    .collect();
                fields.by_ref().for_each(drop);
                assert!(fields.note().is_exact());
                assert_eq!(number(&generations[0], "NewAllocation"), desired);
                history = Some((record.process_id(), generations));
            }
            "GCHeapStats_V1" => {
                let Some((process, generations)) = history.take() else {
                    continue;
                };
                if process != record.process_id() {
                    continue;
                }
                let fields: Vec<_> = fields
                    .filter_map(|(f, v)| Some((f.name.to_string(), v.as_u64()?)))
                    .collect();
                for (at, generation) in generations.iter().enumerate().take(4) {
                    let size = number(&fields, &format!("GenerationSize{at}"));
                    assert_eq!(number(generation, "SizeAfter"), size);
                    compared += 1;
                }
            }
            _ => {}
        }
    }
    assert_eq!(compared, 4 * 264);
}
