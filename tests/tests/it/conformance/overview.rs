//! Rules of "ETW - Overview" about providers and sessions, on the bytes of simulated traces.

use std::collections::BTreeMap;

use etl_events::{Event, OwnedEvent};
use etl_format::constants::RecordKind;
use etl_synth::{Script, Simulation};

/// The events of each file of a script, without the events of the trace itself.
fn record(script: &str) -> BTreeMap<String, Vec<OwnedEvent>> {
    let scenario = Script::new("overview", script)
        .parse()
        .unwrap_or_else(|e| panic!("{e:#?}"));
    let files = Simulation::new(&scenario).run_in_memory().unwrap();
    let traces = files.into_iter().filter(|file| file.name.ends_with(".etl"));
    traces.map(|file| (file.name, events(file.bytes))).collect()
}

fn events(bytes: Vec<u8>) -> Vec<OwnedEvent> {
    let kinds = [
        RecordKind::EVENT32,
        RecordKind::EVENT64,
        RecordKind::FULL32,
        RecordKind::FULL64,
    ];
    let mut trace = etl_events::from_bytes(bytes).unwrap();
    let mut events = trace.events().without_names();
    let mut all = Vec::new();
    while let Some(event) = events.next().unwrap() {
        if kinds.contains(&event.kind()) {
            all.push(event.to_owned());
        }
    }
    all
}

/// The ids of events; `None` for a classic event.
fn ids(events: &[OwnedEvent]) -> Vec<Option<u16>> {
    events.iter().map(|e| e.event().id()).collect()
}

fn count(events: &[OwnedEvent], id: u16) -> usize {
    let ids = ids(events);
    ids.iter().filter(|event| **event == Some(id)).count()
}

/// The only event with an id.
fn only(events: &[OwnedEvent], id: u16) -> Event<'_> {
    assert_eq!(count(events, id), 1, "{id}");
    let mut events = events.iter().map(OwnedEvent::event);
    events.find(|event| event.id() == Some(id)).unwrap()
}

const PROVIDERS: &str = r#"
provider "Shop" kind="manifest" {
    event "Error" id=1 level=2 keywords=0x1
    event "Detail" id=2 level=5 keywords=0x2
    event "Always" id=3 level=0 keywords=0x1
    event "Plain" id=4 level=4 keywords=0x0
    event "Marked" id=5 level=4 keywords=0x4 opcode=11 task=7
    event "Unmarked" id=6 level=4 keywords=0x4
}
provider "Other" kind="manifest" { event "Event" id=9 level=4 keywords=0x1 }
process "App.exe" threads=1 {
    at "2s" {
        raise "Shop" "Error"; raise "Shop" "Detail"; raise "Shop" "Always"
        raise "Shop" "Plain"; raise "Shop" "Marked"; raise "Shop" "Unmarked"
        raise "Other" "Event"
    }
}
"#;

#[test]
fn overview_sessions_receive_the_providers_that_they_enable() {
    let script = format!(
        r#"{PROVIDERS}
at "1s" {{ session "shop" file="shop.etl" {{ enable "Shop" level=5 }} }}
at "1s" {{ session "other" file="other.etl" {{ enable "Other" level=5 }} }}
at "1s" {{ session "none" file="none.etl" }}
at "3s" {{ stop "shop"; stop "other"; stop "none" }}"#
    );
    let files = record(&script);
    assert_eq!(
        ids(&files["shop.etl"]),
        [Some(1), Some(2), Some(3), Some(4), Some(5), Some(6)]
    );
    assert_eq!(ids(&files["other.etl"]), [Some(9)]);
    assert_eq!(ids(&files["none.etl"]), [None; 0]);
    let guid = etl_schema::sources::provider_guid("Shop");
    assert!(
        files["shop.etl"]
            .iter()
            .all(|e| e.event().provider_guid() == Some(guid))
    );
}

#[test]
fn overview_level_0_and_keyword_0_pass() {
    let script = format!(
        r#"{PROVIDERS}
at "1s" {{ session "errors" file="errors.etl" {{ enable "Shop" keywords=0x1 level=2 }} }}
at "1s" {{ session "details" file="details.etl" {{ enable "Shop" keywords=0x2 level=5 }} }}
at "1s" {{ session "without" file="without.etl" {{ enable "Shop" keywords=0x2 level=5 ignore-keyword-0=#true }} }}
at "3s" {{ stop "errors"; stop "details"; stop "without" }}"#
    );
    let files = record(&script);
    // 3 has level 0, 4 keyword 0 and level 4.
    assert_eq!(ids(&files["errors.etl"]), [Some(1), Some(3)]);
    assert_eq!(ids(&files["details.etl"]), [Some(2), Some(4)]);
    assert_eq!(ids(&files["without.etl"]), [Some(2)]);
}

#[test]
fn overview_opcode_and_task_route_nothing() {
    let script = format!(
        r#"{PROVIDERS}
at "1s" {{ session "s" file="s.etl" {{ enable "Shop" keywords=0x4 level=4 ignore-keyword-0=#true }} }}
at "1s" {{ session "t" file="t.etl" {{ enable "Shop" keywords=0x8 level=4 ignore-keyword-0=#true }} }}
at "3s" {{ stop "s"; stop "t" }}"#
    );
    let files = record(&script);
    assert_eq!(ids(&files["s.etl"]), [Some(5), Some(6)], "both, or neither");
    assert_eq!(ids(&files["t.etl"]), [None; 0]);
}

#[test]
fn overview_session_requests_stacks_of_some_events() {
    let script = format!(
        r#"{PROVIDERS}
at "1s" {{ session "with" file="with.etl" {{ enable "Shop" level=5 stacks=#true stack-ids="1 2" }} }}
at "1s" {{ session "without" file="without.etl" {{ enable "Shop" level=5 }} }}
at "3s" {{ stop "with"; stop "without" }}"#
    );
    let files = record(&script);
    let frames = |file: &str| -> Vec<usize> {
        let events = files[file].iter();
        events.map(|e| e.event().stack().count()).collect()
    };
    // A native process has frames of its program and of the system.
    let with = frames("with.etl");
    assert!(with[..2].iter().all(|frames| *frames >= 2), "{with:?}");
    assert_eq!(with[2..], [0; 4]);
    assert_eq!(frames("without.etl"), [0; 6]);
}

#[test]
fn overview_provider_has_eight_sessions() {
    let script = format!(
        r#"{PROVIDERS}
repeat 9 as="n" {{ at "1s" {{ session "s{{n}}" file="s{{n}}.etl" {{ enable "Shop" level=5 }} }} }}
repeat 9 as="n" {{ at "3s" {{ stop "s{{n}}" }} }}"#
    );
    let counts: Vec<usize> = record(&script).values().map(Vec::len).collect();
    assert_eq!(counts, [6, 6, 6, 6, 6, 6, 6, 6, 0]);
}

#[test]
fn overview_classic_provider_has_one_session() {
    let script = r#"
provider "Old" kind="classic" { event "Request" opcode=10 level=4 }
process "App.exe" { every "10ms" from="1.105s" until="1.9s" { raise "Old" "Request" } }
at "1s" { session "first" file="first.etl" { enable "Old" keywords=0x1 level=5 } }
at "1.5s" { session "second" file="second.etl" { enable "Old" keywords=0x1 level=5 } }
at "3s" { stop "first"; stop "second" }"#;
    let files = record(script);
    let [first, second] = ["first.etl", "second.etl"].map(|file| files[file].len());
    assert!(first > 30 && second > 30, "{first} {second}");
    // The second one took the provider over: no event is in both.
    assert_eq!(first + second, 80);
}

#[test]
fn overview_activity_has_one_id_from_start_to_stop() {
    let script = r#"
provider "Web" kind="eventsource" {
    event "OuterStart" id=1 level=4 opcode=1
    event "InnerStart" id=2 level=4 opcode=1
    event "Step" id=3 level=4
    event "InnerStop" id=4 level=4 opcode=2
    event "OuterStop" id=5 level=4 opcode=2
    event "After" id=6 level=4
}
process "App.exe" threads=1 {
    at "2s" {
        raise "Web" "OuterStart" activity="start"; raise "Web" "InnerStart" activity="start"
        raise "Web" "Step"; raise "Web" "InnerStop" activity="stop"
        raise "Web" "OuterStop" activity="stop"; raise "Web" "After"
    }
}
at "1s" { session "s" file="s.etl" { enable "Web" level=5 } }
at "3s" { stop "s" }"#;
    let files = record(script);
    let [outer, inner, step, inner_end, outer_end, after] =
        [1, 2, 3, 4, 5, 6].map(|id| only(&files["s.etl"], id));
    assert!(outer.activity().is_some());
    assert_ne!(outer.activity(), inner.activity());
    // An event without an id of its own has the id of its thread.
    assert_eq!(step.activity(), inner.activity());
    assert_eq!(inner_end.activity(), inner.activity());
    assert_eq!(outer_end.activity(), outer.activity());
    assert_eq!(after.activity(), None);
    // Only the start names the activity around it.
    assert_eq!(inner.related_activity(), outer.activity());
    for other in [step, inner_end, outer_end, after] {
        assert_eq!(other.related_activity(), None, "{}", other.name());
    }
}

#[test]
fn overview_event_is_for_all_sessions_or_none() {
    let run = |mode: &str| {
        record(&format!(
            r#"
machine processors=1 disk-bytes-per-second=20000
provider "Shop" kind="manifest" {{ event "Sold" id=1 level=4 {{ field "Text" "UnicodeString" }} }}
process "App.exe" threads=1 {{
    every "1ms" from="1.1s" until="2.1s" {{ raise "Shop" "Sold" {{ Text "{}" }} }}
}}
at "1s" {{ session "small" file="small.etl" buffer-kb=4 buffers=3 {{ enable "Shop" level=5 }} }}
at "1s" {{ session "large" file="large.etl" buffer-kb=64 buffers=100 mode="{mode}" {{ enable "Shop" level=5 }} }}
at "3s" {{ stop "small"; stop "large" }}"#,
            "x".repeat(200)
        ))
    };
    let [together, apart] = ["sequential", "sequential independent"].map(run);
    let small = together["small.etl"].len();
    assert!(small < 900, "events are lost: {small}");
    assert_eq!(
        together["large.etl"].len(),
        small,
        "no session has an event that another lost"
    );
    assert_eq!(apart["large.etl"].len(), 1000);
}

#[test]
fn overview_capture_and_disable_reach_the_provider() {
    let script = r#"
process "App.exe" threads=2 {
    clr "core" version="6.0.100" {
        assembly "App" { module "C:\\App\\App.dll" { methods 40 ready=20 } }
    }
    every "20ms" from="1.1s" until="3s" { jit 1 }
}
at "1s" { session "s" file="s.etl" { enable "runtime" keywords=0x18 level=5 } }
at "2s" { disable "runtime" in="s" }
at "2.5s" { enable "rundown" in="s" keywords=0x118 level=5 }
at "3.5s" { stop "s" }"#;
    let files = record(script);
    let loads = count(&files["s.etl"], 143);
    let lists = count(&files["s.etl"], 144);
    // The provider logs until it is disabled; the other one answers when it is enabled.
    assert!((20..60).contains(&loads), "{loads}");
    assert!(lists > loads, "{lists}");
    assert!(count(&files["s.etl"], 146) > 0, "the list is complete");
}
