//! What recorded streams of .NET Core 3.1, .NET 8 and .NET 10 say about the events of the runtime,
//! compared with the tables: each test is one statement.

use std::collections::{BTreeMap, BTreeSet};

use etl_control::enable::Enablement;
use etl_nettrace::{Options, Order, Reader};
use etl_schema::Identity;
use etl_schema::tables::{Registry, TableEvent};
use etl_test_support::{needs, traces};
use serde_json::Value;

use super::recorded::stream;

const RUNTIME: &str = "Microsoft-Windows-DotNETRuntime";
const RUNDOWN: &str = "Microsoft-Windows-DotNETRuntimeRundown";
const SAMPLER: &str = "Microsoft-DotNETCore-SampleProfiler";

/// The recordings with everything of `dotnet-trace`'s default mask at level 5.
const WHOLE: [&str; 3] = [
    "3.1-1CCBD-5.nettrace.gz",
    "8.0-1CCBD-5.nettrace.gz",
    "10.0-1CCBD-5.nettrace.gz",
];

/// An event of a stream.
struct Seen {
    provider: String,
    id: u16,
    version: u8,
    level: u8,
    keywords: u64,
    has_stack: bool,
    payload: Vec<u8>,
}

impl Seen {
    fn is_of_tables(&self) -> bool {
        [RUNTIME, RUNDOWN, SAMPLER].contains(&self.provider.as_str())
    }

    fn table(&self) -> &'static TableEvent {
        let provider = Registry::builtin().find(&self.provider).unwrap();
        let identity = Identity::Modern {
            id: self.id,
            version: self.version,
        };
        let event = Registry::builtin().event(provider.guid, identity);
        event.unwrap_or_else(|| panic!("{} {} {}", self.provider, self.id, self.version))
    }

    /// The number in four bytes of the payload.
    fn word(&self, offset: usize) -> u32 {
        u32::from_le_bytes(self.payload[offset..offset + 4].try_into().unwrap())
    }

    /// The number in the last eight bytes of the payload.
    fn last_word(&self) -> u64 {
        let last = self.payload.last_chunk::<8>().unwrap();
        u64::from_le_bytes(*last)
    }
}

fn events(name: &str) -> Vec<Seen> {
    let stream = stream(name);
    let options = Options {
        order: Order::Time,
        ..Options::default()
    };
    let mut reader = Reader::with_options(stream.as_slice(), &options).unwrap();
    let mut events = Vec::new();
    while let Some(event) = reader.next_event().unwrap() {
        events.push(Seen {
            provider: event.provider().to_owned(),
            id: event.id().try_into().unwrap(),
            version: event.version().try_into().unwrap(),
            level: event.level().try_into().unwrap(),
            keywords: event.keywords(),
            has_stack: !event.stack.is_empty(),
            payload: event.payload.to_vec(),
        });
    }
    events
}

/// The events of the runtime.
fn of_runtime(name: &str) -> Vec<Seen> {
    let mut events = events(name);
    events.retain(|event| event.provider == RUNTIME);
    assert!(!events.is_empty(), "{name}");
    events
}

/// The ids of the events of a provider.
fn ids(name: &str, provider: &str) -> BTreeSet<u16> {
    let mut ids = BTreeSet::new();
    for event in events(name) {
        if event.provider == provider {
            ids.insert(event.id);
        }
    }
    ids
}

/// The ids of some events, of the wanted kinds only.
fn order(events: &[Seen], wanted: &[u16]) -> Vec<u16> {
    let ids = events.iter().map(|event| event.id);
    ids.filter(|id| wanted.contains(id)).collect()
}

/// A recording in the manifest.
struct Recording {
    name: String,
    runtime: String,
    providers: String,
}

fn recordings() -> Vec<Recording> {
    let path = traces().join("nettrace/manifest.json");
    let manifest: Value = serde_json::from_slice(&std::fs::read(path).unwrap()).unwrap();
    let mut recordings = Vec::new();
    for entry in manifest.as_array().unwrap() {
        let text = |key: &str| entry[key].as_str().unwrap_or_default().to_owned();
        recordings.push(Recording {
            name: text("file"),
            runtime: text("runtime"),
            providers: text("providers"),
        });
    }
    assert_eq!(recordings.len(), 22);
    recordings
}

#[needs(traces)]
#[test]
fn every_event_has_the_level_and_keywords_of_the_tables() {
    let mut checked = BTreeSet::new();
    for recording in recordings() {
        for event in events(&recording.name) {
            if !event.is_of_tables() {
                continue;
            }
            let table = event.table();
            let descriptor = table.schema.descriptor();
            let mut is_equal =
                (descriptor.level, descriptor.keyword) == (event.level, event.keywords);
            // The entry point of precompiled code has its level since .NET 8.
            if let Some(older) = &table.older
                && event.id == 159
                && recording.runtime.starts_with("3.1")
            {
                is_equal |= (older.level, older.keywords) == (event.level, event.keywords);
            }
            let Seen { id, version, .. } = event;
            assert!(is_equal, "{}: {id} version {version}", recording.name);
            checked.insert((event.provider, id, version));
        }
    }
    assert!(checked.len() > 80, "{} kinds", checked.len());
}

#[needs(traces)]
#[test]
fn every_event_is_admitted_by_its_request() {
    let mut checked = 0;
    for recording in recordings() {
        // `runtime:0x1CCBD:5`, and other providers after a comma.
        let parts = recording.providers.split([',', ';', ' ']);
        let Some(request) = parts
            .map(str::trim)
            .find(|part| part.starts_with("runtime:"))
        else {
            continue;
        };
        let fields: Vec<&str> = request.split(':').collect();
        let mask = u64::from_str_radix(fields[1].trim_start_matches("0x"), 16).unwrap();
        let mut rule = Enablement::new(fields[2].parse().unwrap(), mask);
        rule.variant = etl_control::enable::Variant::EventPipe;
        for event in events(&recording.name) {
            if event.provider != RUNTIME {
                continue;
            }
            let key = etl_control::enable::EventKey {
                id: event.id,
                level: event.level,
                keyword: event.keywords,
            };
            assert!(rule.admits(&key), "{}: {}", recording.name, event.id);
            checked += 1;
        }
    }
    assert!(checked > 10_000, "{checked}");
}

#[needs(traces)]
#[test]
fn loads_of_methods_come_at_level_5_only() {
    // Jit at level 4: unloads, and no load.
    let at_4 = ids("10.0-10-4.nettrace.gz", RUNTIME);
    assert!(at_4.contains(&144), "{at_4:?}");
    assert!(!at_4.contains(&141) && !at_4.contains(&143), "{at_4:?}");
    let at_5 = ids("10.0-20010-5.nettrace.gz", RUNTIME);
    assert!(at_5.contains(&143) && at_5.contains(&190), "{at_5:?}");
    // The default mask of dotnet-trace at level 4.
    let sampled = ids("8.0-sampled.nettrace.gz", RUNTIME);
    assert!(
        sampled.contains(&144) || sampled.contains(&142),
        "{sampled:?}"
    );
    assert!(
        !sampled.contains(&141) && !sampled.contains(&143),
        "{sampled:?}"
    );
}

#[needs(traces)]
#[test]
fn precompiled_methods_have_unloads_and_no_loads() {
    const JITTED: u32 = 8;
    const DYNAMIC: u32 = 1;
    for name in WHOLE {
        for load in of_runtime(name).iter().filter(|event| event.id == 143) {
            assert_ne!(load.word(32) & (JITTED | DYNAMIC), 0, "{name}");
        }
    }
    let ngen = ids("10.0-A0-4.nettrace.gz", RUNTIME);
    assert!(ngen.contains(&142), "{ngen:?}");
    assert!(!ngen.contains(&141) && !ngen.contains(&143), "{ngen:?}");
}

#[needs(traces)]
#[test]
fn later_code_of_a_method_has_version_2_and_a_count() {
    for name in WHOLE {
        let mut next: BTreeMap<Vec<u8>, u64> = BTreeMap::new();
        let mut later = 0;
        for load in of_runtime(name).iter().filter(|event| event.id == 143) {
            let method = load.payload[..8].to_vec();
            let tier = load.word(32) >> 7 & 7;
            if load.version == 1 {
                next.insert(method, 1);
                continue;
            }
            // Precompiled code has no load, so that the first load of its method is 1 as well.
            let expected = next.entry(method).or_insert(1);
            assert_eq!(load.last_word(), *expected, "{name}");
            *expected += 1;
            assert!(matches!(tier, 4..=7), "{name}: tier {tier}");
            // Only since .NET 8 code counts for its optimization.
            assert!(tier == 4 || !name.starts_with("3.1"), "{name}: tier {tier}");
            later += 1;
        }
        assert!(later > 0, "{name}");
    }
}

#[needs(traces)]
#[test]
fn events_of_other_products_never_come() {
    // Domains that are accounted, threads that end and enter domains, the older names of the pool,
    // and modules with the build id of their image.
    for recording in recordings() {
        for event in events(&recording.name) {
            if event.provider == RUNTIME {
                let id = event.id;
                assert!(![83, 84, 86, 87].contains(&id), "{}: {id}", recording.name);
                assert!(id != 152 || event.version == 2, "{}", recording.name);
                let is_old = recording.runtime.starts_with("3.1");
                assert!(
                    is_old || ![61, 62].contains(&id),
                    "{}: {id}",
                    recording.name
                );
            }
            if event.provider == RUNDOWN && event.id == 154 {
                assert_eq!(event.version, 2, "{}", recording.name);
            }
        }
    }
    assert!(ids("3.1-1CCBD-5.nettrace.gz", RUNTIME).contains(&61));
}

#[needs(traces)]
#[test]
fn details_of_methods_need_more_than_their_keyword() {
    // 0x14C14FCCBD has MethodDiagnostic (0x4000000000) at level 4, without the loads.
    let sampled = ids("8.0-sampled.nettrace.gz", RUNTIME);
    assert!(!sampled.contains(&72), "{sampled:?}");
    for name in WHOLE {
        let found = ids(name, RUNTIME);
        for id in [15, 16, 18, 19, 38, 72] {
            assert!(!found.contains(&id), "{name}: {id}");
        }
    }
}

#[needs(traces)]
#[test]
fn histories_of_the_heap_come_before_its_heaps() {
    for name in WHOLE {
        let order = order(&of_runtime(name), &[204, 205]);
        assert_eq!(order.len() % 2, 0, "{name}");
        assert!(order.chunks(2).all(|pair| pair == [205, 204]), "{name}");
        assert!(order.len() > 10, "{name}");
    }
}

#[needs(traces)]
#[test]
fn first_module_announces_the_app_domain() {
    let loads = order(&of_runtime("8.0-8-4.nettrace.gz"), &[151, 152, 154, 156]);
    assert_eq!(loads[..7], [154, 152, 151, 156, 154, 152, 151]);
    assert_eq!(loads.iter().filter(|id| **id == 156).count(), 1);
    let rest = &loads[4..];
    assert!(
        rest.chunks(3).all(|load| load == [154, 152, 151]),
        "{rest:?}"
    );
}

#[needs(traces)]
#[test]
fn exit_of_new_runtimes_unloads_and_then_lists() {
    for name in ["8.0-1CCBD-5.nettrace.gz", "10.0-1CCBD-5.nettrace.gz"] {
        let events = events(name);
        let info = events
            .iter()
            .position(|event| event.provider.ends_with("EventPipe"));
        let (before, after) = events.split_at(info.unwrap());
        let last: Vec<u16> = before[before.len() - 3..].iter().map(|e| e.id).collect();
        assert_eq!(last, [153, 155, 157], "{name}");
        assert!(
            after[1..].iter().all(|event| event.provider == RUNDOWN),
            "{name}"
        );
        assert_eq!(after.last().unwrap().id, 146, "{name}");
    }
    // The collectible assemblies are unloaded, and nothing at the exit.
    let old = order(&of_runtime("3.1-1CCBD-5.nettrace.gz"), &[153, 157]);
    assert_eq!(old, [153, 153]);
}

#[needs(traces)]
#[test]
fn exceptions_of_net_10_have_no_address_and_no_rethrow() {
    let mut counts = Vec::new();
    for name in WHOLE {
        let events = of_runtime(name);
        let thrown: Vec<&Seen> = events.iter().filter(|event| event.id == 80).collect();
        counts.push(thrown.len());
        for event in thrown {
            // Address, error code, flags and instance follow two texts.
            let address = &event.payload[event.payload.len() - 16..event.payload.len() - 8];
            let is_zero = address.iter().all(|byte| *byte == 0);
            assert_eq!(is_zero, name.starts_with("10.0"), "{name}");
            assert!(event.has_stack, "{name}");
        }
    }
    assert_eq!(counts, [10, 10, 9]);
}

#[needs(traces)]
#[test]
fn settings_in_a_rundown_need_their_own_keyword() {
    let with_gc = ids("10.0-rundown-101.nettrace.gz", RUNDOWN);
    assert_eq!(with_gc, BTreeSet::from([10, 187]));
    let without = ids("10.0-rundown-108.nettrace.gz", RUNDOWN);
    assert!(!without.contains(&10), "{without:?}");
    let tiers = ids("10.0-rundown-1000010100.nettrace.gz", RUNDOWN);
    assert!(tiers.contains(&280), "{tiers:?}");
    let perf_track = ids("10.0-rundown-20000100.nettrace.gz", RUNDOWN);
    assert!(!perf_track.contains(&146), "{perf_track:?}");
}

/// Events that have a stack in streams, although ETW's list of stacks does not name them (X54).
const STACKS_OF_EVENT_PIPE: [u16; 9] = [59, 81, 90, 146, 205, 290, 291, 292, 296];

#[needs(traces)]
#[test]
fn stacks_beyond_the_list_of_etw_are_declared() {
    let mut beyond = BTreeSet::new();
    for recording in recordings() {
        for event in of_tables(&recording.name) {
            if event.has_stack && event.provider == RUNTIME && !event.table().stack {
                beyond.insert(event.id);
            }
            // Samples always have one, events of a rundown never.
            assert!(!event.has_stack || event.provider != RUNDOWN);
            assert!(event.has_stack || event.provider != SAMPLER);
        }
    }
    assert_eq!(beyond, BTreeSet::from(STACKS_OF_EVENT_PIPE));
}

fn of_tables(name: &str) -> Vec<Seen> {
    let mut events = events(name);
    events.retain(Seen::is_of_tables);
    events
}

#[needs(traces)]
#[test]
fn samples_have_the_types_of_their_table() {
    let mut types = BTreeSet::new();
    for event in events("8.0-sampled.nettrace.gz") {
        if event.provider == SAMPLER {
            assert_eq!((event.id, event.payload.len()), (0, 4));
            types.insert(event.word(0));
        }
    }
    // In other code, and in managed code.
    assert_eq!(types, BTreeSet::from([1, 2]));
}
