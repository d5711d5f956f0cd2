//! Which events a filter admits.

use crate::common::{Made, open, trace};
use etl_format::read::Order;
use etl_tools::filter::Filter;

/// Ids of the admitted events. Event 1 has keyword 0, event N level 4 and keyword N - 1.
fn admitted(filter: &Filter) -> Vec<u16> {
    let made =
        |id: u16| Made { keyword: u64::from(id) - 1, ..Made::new(2_000 + i64::from(id), id, b"") };
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

#[test]
fn level_0_admits_every_level() {
    assert_eq!(admitted(&Filter::new().level(0)), [1, 2, 3, 5]);
    assert_eq!(admitted(&Filter::new().level(0).ids([2])), [2]);
}

#[test]
fn level_admits_lower_and_equal_levels() {
    assert_eq!(admitted(&Filter::new().level(3)), []);
    assert_eq!(admitted(&Filter::new().level(4)), [1, 2, 3, 5]);
}

#[test]
fn keyword_0_admits_every_keyword() {
    assert_eq!(admitted(&Filter::new().keyword(0)), [1, 2, 3, 5]);
    assert_eq!(admitted(&Filter::new().keyword(0).ids([1, 5])), [1, 5]);
}

#[test]
fn keyword_admits_events_with_one_of_the_bits_or_none() {
    assert_eq!(admitted(&Filter::new().keyword(1)), [1, 2]);
    assert_eq!(admitted(&Filter::new().keyword(6)), [1, 3, 5]);
}

#[test]
fn every_kind_of_condition_must_hold() {
    let filter = || Filter::new().ids([2, 3, 5]).processes([100]);
    assert_eq!(admitted(&filter()), [2, 3, 5]);
    assert_eq!(admitted(&filter().from(2_003)), [3, 5]);
    assert_eq!(admitted(&filter().to(2_003)), [2]);
    assert_eq!(admitted(&filter().threads([7])), []);
    assert_eq!(admitted(&filter().opcodes([1])), []);
    assert_eq!(admitted(&filter().providers(["Microsoft-Windows-DotNETRuntime"])), []);
    assert_eq!(admitted(&filter().providers([crate::common::PROVIDER.to_string()])), [2, 3, 5]);
}

#[test]
fn unknown_provider_names_are_returned() {
    let file = trace(&[Made::new(2_000, 1, b"")]);
    let mut trace = open(&file);
    let mut filter = Filter::new().providers(["No-Such-Provider"]);
    assert!(filter.has_unresolved_names());
    let known = etl_schema::store::SchemaStore::default();
    let unknown = filter.learn_names_of_trace(&mut trace.records(Order::File).unwrap(), &known);
    assert_eq!(unknown, ["No-Such-Provider"]);
}
