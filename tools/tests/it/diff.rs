//! Comparison of traces.

use crate::common::{Made, PROVIDER, header, open, trace, trace_of};
use etl_format::FileTime;
use etl_tools::diff::{Differ, Difference, Ignore, Summary};
use proptest::prelude::*;

/// What is compared: the parts that are ignored, and the window.
#[derive(Clone, Debug)]
struct Options {
    ignore: Ignore,
    window: usize,
}

impl Default for Options {
    fn default() -> Self {
        Options {
            ignore: Ignore::default(),
            window: Differ::DEFAULT_WINDOW,
        }
    }
}

/// The differences in short: kind, id, and the names of what changed.
fn compare(a: &[u8], b: &[u8], options: &Options) -> (Vec<String>, Summary) {
    let mut found = Vec::new();
    let differ = Differ::new()
        .ignore(options.ignore.clone())
        .window(options.window);
    let summary = differ
        .run(&mut open(a), &mut open(b), |difference| {
            found.push(match difference {
                Difference::Missing(event) => format!("missing {}", event.identity().id),
                Difference::Extra(event) => format!("extra {}", event.identity().id),
                Difference::Changed {
                    before, changes, ..
                } => {
                    let names: Vec<_> = changes.iter().map(|c| c.name.as_str()).collect();
                    format!("changed {} {}", before.identity().id, names.join(","))
                }
                _ => "?".to_owned(),
            });
        })
        .unwrap();
    (found, summary)
}

fn ignoring(what: &[&str]) -> Options {
    let mut ignore = Ignore::default();
    what.iter().for_each(|w| ignore.add(w).unwrap());
    Options {
        ignore,
        ..Options::default()
    }
}

#[test]
fn differ_compares_header_fields() {
    let events = [Made::new(2_000, 1, b"x")];
    let mut other = header();
    other.boot_time = FileTime::new(133_000_000_000_000_000);
    other.logger_name.clear();
    let (a, b) = (trace(&events), trace_of(other, &events));
    let (found, summary) = compare(&a, &b, &Options::default());
    assert!(found.is_empty() && summary.differs());
    let names: Vec<_> = summary.header.iter().map(|c| c.name.as_str()).collect();
    assert_eq!(names, ["boot_time", "logger_name"]);
    assert_eq!(summary.header[1].before.as_deref(), Some("session"));
    assert_eq!(summary.header[1].after, None);
    for ignored in [&["header"][..], &["header:boot_time", "header:logger_name"]] {
        assert!(!compare(&a, &b, &ignoring(ignored)).1.differs());
    }
}

#[test]
fn differ_compares_the_time_zone_and_who_started_the_session() {
    let mut other = header();
    let zone = &mut other.time_zone;
    (zone.standard_bias, zone.daylight_bias) = (1, -60);
    (
        zone.standard_date[1],
        zone.daylight_date[1],
        zone.daylight_name[0],
    ) = (10, 3, 0x41);
    (
        other.process_id,
        other.thread_id,
        other.kernel_time,
        other.user_time,
    ) = (1, 2, 3, 4);
    let events = [Made::new(2_000, 1, b"x")];
    let (_, summary) = compare(
        &trace(&events),
        &trace_of(other, &events),
        &Options::default(),
    );
    let after = |name| {
        let change = summary
            .header
            .iter()
            .find(|change| change.name == name)
            .unwrap();
        change.after.clone().unwrap()
    };
    for (name, value) in [
        ("standard_date", "0 10 0 0 0 0 0 0"),
        ("standard_bias", "1"),
        ("daylight_name", "A"),
        ("daylight_date", "0 3 0 0 0 0 0 0"),
        ("daylight_bias", "-60"),
        ("process_id", "1"),
        ("thread_id", "2"),
        ("kernel_time", "3"),
        ("user_time", "4"),
    ] {
        assert_eq!(after(name), value, "{name}");
    }
    assert_eq!(summary.header.len(), 9);
}

#[test]
fn summary_counts_events_and_providers() {
    let mut other = Made::new(2_002, 9, b"y");
    other.provider = etl_format::Guid::new(9, 9, 9, [9; 8]);
    let a = trace(&[Made::new(2_000, 1, b"x"), Made::new(2_001, 2, b"x")]);
    let b = trace(&[
        Made::new(2_000, 1, b"x"),
        Made::new(2_001, 1, b"x"),
        other.clone(),
    ]);
    let (_, summary) = compare(&a, &b, &Options::default());
    let counts: Vec<_> = summary
        .counts
        .iter()
        .map(|c| {
            (
                c.provider.guid,
                c.event.as_ref().unwrap().id,
                c.before,
                c.after,
            )
        })
        .collect();
    assert_eq!(
        counts,
        [
            (other.provider, 9, 0, 1),
            (PROVIDER, 1, 1, 2),
            (PROVIDER, 2, 1, 0)
        ]
    );
    let providers: Vec<_> = summary
        .providers
        .iter()
        .map(|c| (c.provider.guid, c.before, c.after))
        .collect();
    assert_eq!(providers, [(other.provider, 0, 1)]);
    let left_out = format!("provider:{}", other.provider);
    assert!(
        compare(&a, &b, &ignoring(&[&left_out]))
            .1
            .providers
            .is_empty()
    );
}

#[test]
fn ignore_covers_every_property() {
    let base = [Made::new(2_000, 1, b"x"), Made::new(2_100, 2, b"x")];
    let change = |f: &dyn Fn(&mut Made)| {
        let mut events = base.to_vec();
        events.iter_mut().for_each(f);
        trace(&events)
    };
    for (ignored, changed, said) in [
        ("time", change(&|e| e.timestamp += 7), "time"),
        ("ids", change(&|e| e.process += 4), "pid"),
        ("processor", change(&|e| e.processor = 1), "cpu"),
        (
            "addresses",
            change(&|e| e.stack = vec![1, 2]),
            "flags,stack",
        ),
    ] {
        let a = match ignored {
            "addresses" => change(&|e| e.stack = vec![1, 3]),
            _ => trace(&base),
        };
        let said = said.trim_start_matches("flags,");
        let header = ["header"];
        let (found, _) = compare(&a, &changed, &ignoring(&header));
        assert_eq!(
            found,
            [format!("changed 1 {said}"), format!("changed 2 {said}")]
        );
        let (found, summary) = compare(&a, &changed, &ignoring(&[ignored, "header"]));
        assert_eq!((found.len(), summary.same), (0, 2), "{ignored}");
    }
}

#[test]
fn ignored_field_needs_a_known_event() {
    // GCStart_V2 of the CLR: Count, Depth, Reason, Type, ClrInstanceID, ClientSequenceNumber.
    let gc = |count: u32, reason: u32| {
        let mut event = Made::new(2_000, 1, &[]);
        event.provider = "e13c0d23-ccbc-4e12-931b-d9cc2eee27e4".parse().unwrap();
        event.version = 2;
        for word in [count, 1, reason, 0] {
            event.payload.extend(word.to_le_bytes());
        }
        event.payload.extend([0; 10]);
        trace(&[event])
    };
    let (a, b) = (gc(1, 0), gc(2, 0));
    assert_eq!(compare(&a, &b, &Options::default()).0, ["changed 1 Count"]);
    assert!(!compare(&a, &b, &ignoring(&["field:count"])).1.differs());
    assert_eq!(
        compare(&a, &gc(2, 3), &ignoring(&["field:count"])).0,
        ["changed 1 Reason"]
    );
}

fn events() -> impl Strategy<Value = Vec<Made>> {
    let one = (0i64..40, 1u16..4, 0u16..2, 0u8..3);
    proptest::collection::vec(one, 1..60).prop_map(|steps| {
        let mut timestamp = 2_000;
        let made = steps
            .into_iter()
            .enumerate()
            .map(|(number, (step, id, processor, payload))| {
                // All times differ: events of one time are in the order of their processors. And
                // all payloads differ: else it would be ambiguous which of two events is missing.
                timestamp += step + 1;
                Made {
                    processor,
                    ..Made::new(timestamp, id, &[payload, number as u8])
                }
            });
        made.collect()
    })
}

/// Windows of any size give the same answers as long as they hold the difference.
fn windows() -> impl Strategy<Value = Options> {
    (2usize..40, any::<bool>()).prop_map(|(window, time)| {
        let mut options = Options {
            window,
            ..Options::default()
        };
        options.ignore.time = time;
        options
    })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn trace_does_not_differ_from_itself(events in events(), options in windows()) {
        let a = trace(&events);
        let (found, summary) = compare(&a, &a, &options);
        prop_assert!(found.is_empty() && !summary.differs());
        prop_assert_eq!(summary.same, events.len() as u64);
    }

    #[test]
    fn removed_event_is_one_missing_event(
        events in events(), options in windows(), at: prop::sample::Index,
    ) {
        let mut fewer = events.clone();
        let gone = fewer.remove(at.index(events.len()));
        let (a, b) = (trace(&events), trace(&fewer));
        let (found, summary) = compare(&a, &b, &options);
        prop_assert_eq!(found, [format!("missing {}", gone.id)]);
        prop_assert_eq!(summary.same, fewer.len() as u64);
        let (found, _) = compare(&b, &a, &options);
        prop_assert_eq!(found, [format!("extra {}", gone.id)]);
    }

    #[test]
    fn changed_event_is_one_change(
        events in events(), options in windows(), at: prop::sample::Index,
    ) {
        let mut changed = events.clone();
        let at = at.index(events.len());
        changed[at].payload = vec![9, 9];
        let (found, summary) = compare(&trace(&events), &trace(&changed), &options);
        prop_assert_eq!(found, [format!("changed {} payload", events[at].id)]);
        prop_assert_eq!(summary.same, events.len() as u64 - 1);
    }

    #[test]
    fn every_event_is_counted_once(a in events(), b in events(), options in windows()) {
        let (found, summary) = compare(&trace(&a), &trace(&b), &options);
        prop_assert_eq!(summary.same + summary.changed + summary.missing, a.len() as u64);
        prop_assert_eq!(summary.same + summary.changed + summary.extra, b.len() as u64);
        prop_assert_eq!(found.len() as u64, summary.changed + summary.missing + summary.extra);
    }
}
