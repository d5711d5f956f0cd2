//! Which events a filter admits.

use crate::common::{Made, open, trace};
use etl_control::enable::{Enablement, IdFilter};
use etl_events::filter::Filter;
use etl_format::read::{Mode, Options, Order, Records};
use etl_format::{ProcessId, ThreadId, Ticks, TimeRange};

/// Ids of the admitted events. Event 1 has keyword 0, event N level 4 and keyword N - 1.
fn admitted(filter: &Filter) -> Vec<u16> {
    let made = |id: u16| Made {
        keyword: u64::from(id) - 1,
        ..Made::new(2_000 + i64::from(id), id, b"")
    };
    let file = trace(&[made(1), made(2), made(3), made(5)]);
    let mut trace = open(&file);
    let mut records = trace.records(Order::Time).unwrap();
    let mut ids = Vec::new();
    while let Some(record) = records.next_record().unwrap() {
        if record.is_event() && filter.admits(&record) {
            ids.extend(record.descriptor().map(|d| d.id));
        }
    }
    ids
}

fn enabled(level: u8, any: u64) -> Filter {
    Filter {
        enablement: Enablement::new(level, any),
        ..Filter::default()
    }
}

#[test]
fn level_0_and_keyword_0_admit_everything() {
    assert_eq!(admitted(&enabled(0, 0)), [1, 2, 3, 5]);
    assert_eq!(
        admitted(&Filter {
            ids: vec![1, 5],
            ..enabled(0, 0)
        }),
        [1, 5]
    );
}

#[test]
fn level_admits_lower_and_equal_levels() {
    assert!(admitted(&enabled(3, 0)).is_empty());
    assert_eq!(admitted(&enabled(4, 0)), [1, 2, 3, 5]);
}

#[test]
fn keyword_admits_events_with_one_of_the_bits_or_none() {
    assert_eq!(admitted(&enabled(0, 1)), [1, 2]);
    assert_eq!(admitted(&enabled(0, 6)), [1, 3, 5]);
}

#[test]
fn every_part_of_an_enablement_counts() {
    let of = |enablement| {
        let filter = Filter {
            enablement,
            ..Filter::default()
        };
        assert!(!filter.admits_all());
        admitted(&filter)
    };
    let none = Enablement::default;
    assert_eq!(of(Enablement { all: 4, ..none() }), [1, 5]);
    assert_eq!(
        of(Enablement {
            ignore_keyword_0: true,
            ..none()
        }),
        [2, 3, 5]
    );
    assert_eq!(
        of(Enablement {
            ids: IdFilter::In(vec![2, 5]),
            ..none()
        }),
        [2, 5]
    );
    assert_eq!(
        of(Enablement {
            ids: IdFilter::Out(vec![2, 5]),
            ..Enablement::new(4, 3)
        }),
        [1, 3]
    );
}

/// A session filters by keywords and ids only what has them.
#[test]
fn records_without_keyword_and_id_pass_an_enablement() {
    let ids = IdFilter::In(vec![1]);
    let enablement = Enablement {
        ids,
        ignore_keyword_0: true,
        ..Enablement::new(4, 8)
    };
    let filter = Filter {
        enablement,
        ..Filter::default()
    };
    let file = trace(&[Made {
        keyword: 1,
        ..Made::new(2_000, 1, b"")
    }]);
    let mut trace = open(&file);
    let mut records = trace.records(Order::File).unwrap();
    let (mut kernel, mut events) = (0, 0);
    while let Some(record) = records.next_record().unwrap() {
        let count = if record.is_kernel() {
            &mut kernel
        } else {
            &mut events
        };
        *count += u32::from(filter.admits(&record));
    }
    assert_eq!((kernel > 0, events), (true, 0));
}

#[test]
fn every_kind_of_condition_must_hold() {
    let filter = || Filter {
        ids: vec![2, 3, 5],
        processes: vec![ProcessId::new(100)],
        ..Filter::default()
    };
    assert_eq!(admitted(&filter()), [2, 3, 5]);
    let limit = Some(Ticks::new(2_003));
    assert_eq!(
        admitted(&Filter {
            time: TimeRange::new(limit, None),
            ..filter()
        }),
        [3, 5]
    );
    assert_eq!(
        admitted(&Filter {
            time: TimeRange::new(None, limit),
            ..filter()
        }),
        [2]
    );
    assert!(
        admitted(&Filter {
            threads: vec![ThreadId::new(7)],
            ..filter()
        })
        .is_empty()
    );
    assert!(
        admitted(&Filter {
            opcodes: vec![1],
            ..filter()
        })
        .is_empty()
    );
    let of = |name: &str| Filter {
        providers: Filter::of_providers([name]).providers,
        ..filter()
    };
    assert!(admitted(&of("Microsoft-Windows-DotNETRuntime")).is_empty());
    assert_eq!(
        admitted(&of(&crate::common::PROVIDER.to_string())),
        [2, 3, 5]
    );
}

#[test]
fn unknown_provider_names_are_returned() {
    let file = trace(&[Made::new(2_000, 1, b"")]);
    let mut trace = open(&file);
    let mut filter = Filter::of_providers(["No-Such-Provider"]);
    assert_eq!(filter.names, ["No-Such-Provider"]);
    let known = etl_schema::store::SchemaStore::default();
    let mut records = trace.records(Order::File).unwrap();
    let unknown = filter.learn_names_of_trace(&mut records, &known).unwrap();
    assert_eq!(unknown, ["No-Such-Provider"]);
}

/// What cannot be read may define the name: it is not reported as unknown.
#[test]
fn provider_names_of_a_damaged_trace_are_not_unknown() {
    let mut file = trace(&[Made::new(2_000, 1, b"")]);
    file.truncate(file.len() - 0x800);
    let options = Options {
        mode: Mode::Strict,
        ..Options::default()
    };
    let mut records = Records::stream(file.as_slice(), &options).unwrap();
    let mut filter = Filter::of_providers(["No-Such-Provider"]);
    let known = etl_schema::store::SchemaStore::default();
    assert!(filter.learn_names_of_trace(&mut records, &known).is_err());
}
